"""Searches and evaluations under per-site rates, which end under gamma rates."""

import json
from dataclasses import replace

import numpy as np
import pytest
from oracles.likelihood import pruning
from oracles.substitution import q_matrix

import plltool
from plltool.analyses.search.analysis import search
from plltool.analyses.supports.bootstrap import bootstrap
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.optimise.categories import CATEGORY_GAIN
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.memory import plan_memory
from plltool.tree.random_tree import random_tree
from plltool.tree_search.effort import SearchOptions

OPTIONS = SearchOptions("fast", starts=1, radii=(1, 2), perturbations=0)
MODEL = "HKY+F+PSR4"
SAME_OPTIMUM = 0.05  # lnL reached by another way with default criteria
GIVEN = "HKY{1/4}+FU{0.3/0.2/0.2/0.3}+PSR3{0.1/1/6}"


@pytest.fixture(scope="module")
def found(sequences):
    return search(sequences | {"twin": sequences["Homo_sapiens"]}, MODEL, options=OPTIONS, device="numpy")


def start(sequences):
    """Some tree of these taxa."""
    return random_tree(tuple(sequences), np.random.default_rng(2))


def site_oracle(tree, sequences, model, rate_of):
    """lnL of each site, each at its own rate; taxa in the order of the tree."""
    q = q_matrix(model.exchangeabilities, model.frequencies)
    sets = {"A": 1, "C": 2, "G": 4, "T": 8}
    columns = [[sets.get(sequences[name][site], 15) for name in tree.names] for site in range(len(rate_of))]
    lnl = np.empty(len(rate_of))
    for rate in np.unique(rate_of):
        own = np.flatnonzero(rate_of == rate)
        components = [(1.0, model.frequencies, q * rate)]
        lnl[own] = pruning(tree.ends.tolist(), tree.lengths, [columns[site] for site in own], components)
    return lnl


def test_lnl_is_that_of_each_site_at_its_rate(sequences, found):
    with Likelihood(sequences, start(sequences), MODEL, device="numpy") as likelihood:
        before = likelihood.lnl()
        reached = likelihood.optimise()
        rates, model, tree = likelihood.site_rates(), likelihood.model, likelihood.tree
        assert reached == likelihood.lnl() > before
        expected = site_oracle(tree, sequences, model, rates)
        assert likelihood.site_lnl() == pytest.approx(expected, rel=1e-10)
        assert reached == pytest.approx(expected.sum(), rel=1e-10)
    assert rates.mean() == pytest.approx(1.0)
    assert len(set(rates.tolist())) <= 4


def test_a_written_model_leads_back(sequences):
    """Each site chooses again among the rates, which an optimisation leaves when the gain is small."""
    with Likelihood(sequences, start(sequences), MODEL, device="numpy") as likelihood:
        lnl = likelihood.optimise()
        given = likelihood.tree, likelihood.model_string
    with Likelihood(sequences, *given, device="numpy") as likelihood:
        assert lnl - 1e-6 < likelihood.lnl() < lnl + CATEGORY_GAIN


def test_given_rates(sequences):
    """Each site has the best of them."""
    tree = start(sequences)
    with Likelihood(sequences, tree, GIVEN, device="numpy") as likelihood:
        lnls = [site_oracle(tree, sequences, likelihood.model, np.full(300, rate)) for rate in (0.1, 1.0, 6.0)]
        assert likelihood.site_lnl() == pytest.approx(np.max(lnls, axis=0), rel=1e-10)
        assert likelihood.site_rates().tolist() == [(0.1, 1.0, 6.0)[k] for k in np.argmax(lnls, axis=0)]


def test_a_search_ends_under_gamma(sequences, found):
    """Lengths, model and lnL are those of gamma rates, with all taxa."""
    assert found.tree.n_taxa == 8
    again = evaluate(sequences | {"twin": sequences["Homo_sapiens"]}, found.tree, "HKY+F+G4", device="numpy")
    assert found.lnl == pytest.approx(again.lnl, abs=SAME_OPTIMUM)
    assert found.model.startswith("HKY{")
    assert "+G4{" in found.model
    assert found.psr.lnl > found.lnl
    assert found.psr.model.startswith("HKY{")
    assert "+PSR4{" in found.psr.model
    (own,) = found.psr.parts
    assert own.rates @ own.shares == pytest.approx(1.0)
    assert np.bincount(own.categories) / 300 == pytest.approx(own.shares)
    record = json.loads(found.to_json())
    assert record["psr"]["parts"][0]["categories"] == own.categories.tolist()
    assert record["psr"]["lnl"] == found.psr.lnl
    assert found.describe_models()[0].startswith("lnL under per-site rates: ")


def test_an_evaluation_ends_under_gamma(sequences):
    tree = start(sequences)
    under = evaluate(sequences, tree, "GTR+F+CAT", device="numpy", site_lnl=True)
    alone = evaluate(sequences, tree, "GTR+F+G4", device="numpy")
    assert under.lnl == pytest.approx(alone.lnl, abs=SAME_OPTIMUM)
    assert under.site_lnl.sum() == pytest.approx(under.lnl)
    assert under.psr.lnl > under.lnl
    assert alone.psr is None
    assert "psr" not in alone.as_record()


def test_rapid_replicates_hold_the_rates_of_sites(sequences):
    made = bootstrap(sequences, MODEL, replicates=2, rapid=True, device="numpy", workers=1)
    twice = bootstrap(sequences, MODEL, replicates=2, rapid=True, device="numpy", workers=2)
    assert made.lnls == twice.lnls


def test_several_starts_at_once_change_nothing(sequences):
    options = replace(OPTIONS, starts=2)
    one, two = (search(sequences, MODEL, options=options, device="numpy", workers=n) for n in (1, 2))
    assert (one.lnl, one.newick, one.psr.lnl) == (two.lnl, two.newick, two.psr.lnl)


@pytest.mark.opencl
def test_little_memory_changes_nothing(sequences):
    settings = {"options": OPTIONS, "device": "opencl"}
    whole = search(sequences, MODEL, **settings)
    little = search(sequences, MODEL, memory=plan(sequences, MODEL, "opencl").full_bytes // 4, **settings)
    assert (little.lnl, little.newick, little.psr.lnl) == (whole.lnl, whole.newick, whole.psr.lnl)


def plan(sequences, model, device):
    data, models = resolve_inputs(sequences, model)
    return plan_memory(data.patterns, models, Hardware(device))


def test_memory_is_a_quarter(sequences):
    """CLAs have one component; categories are padded to blocks of 4 lanes."""
    share = plan(sequences, "GTR+F+PSR4", "numpy").full_bytes / plan(sequences, "GTR+F+G4", "numpy").full_bytes
    assert 0.25 <= share < 0.3
    assert plan(sequences, "GTR+F+PSR25", "numpy").full_bytes > plan(sequences, "GTR+F+PSR4", "numpy").full_bytes


def one_query(data):
    row = next(iter(data.values()))
    return plltool.Sequences(("query",), (row if isinstance(row, bytes) else row.encode(),), "queries", None, least=1)


REFUSED = {
    "alrt": lambda data, tree: plltool.alrt(data, tree, MODEL),
    "test": lambda data, tree: plltool.topology_tests(data, [tree, tree], MODEL),
    "ancestral": lambda data, tree: plltool.ancestral_states(data, tree, MODEL),
    "place": lambda data, tree: plltool.place(data, tree, one_query(data), MODEL),
    "ufboot": lambda data, tree: plltool.ultrafast_bootstrap(data, tree, MODEL),
    "simulate": lambda data, tree: plltool.simulate(tree, "JC+PSR3", 10),
    "fixed": lambda data, tree: evaluate(data, tree, GIVEN, fixed=True),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(sequences, what):
    with pytest.raises(InputError, match=r"model '.*PSR.*': .* cannot use per-site rates \(\+PSR\), expected another"):
        REFUSED[what](sequences, start(sequences))


def test_several_models_are_refused(sequences):
    refused = pytest.raises(InputError, match="the likelihood under several models cannot use")
    with Likelihood(sequences, start(sequences), MODEL, device="numpy") as likelihood, refused:
        likelihood.likelihoods([MODEL])
