"""`Likelihood`: set anything, and the next answer is that of the changed model or tree."""

import numpy as np
import pytest

from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.errors import InputError
from plltool.io.alignment_reader import read_alignment
from plltool.run.evaluation import evaluate
from plltool.run.likelihood import Likelihood
from plltool.tree.moves import random_tree


@pytest.fixture(scope="module")
def primates(data_dir):
    return read_alignment(data_dir / "primates.phy")


@pytest.fixture
def likelihood(primates):
    with Likelihood(primates, random_tree(primates.names, np.random.default_rng(2)), device="numpy") as live:
        yield live


def fresh(live):
    """The lnL of the same tree and model, computed from their text."""
    return evaluate(live.data, live.newick(), live.model_string, fixed=True, device="numpy").lnl


def test_what_is_set_is_used(likelihood):
    before = likelihood.lnl()
    likelihood.alpha = 0.3
    likelihood.exchangeabilities = [2, 8, 1, 1, 8, 1]
    likelihood.frequencies = [0.3, 0.3, 0.1, 0.3]
    likelihood.set_length(4, 0.7)
    assert (likelihood.alpha, likelihood.lengths[4]) == (0.3, 0.7)
    assert likelihood.exchangeabilities.tolist() == [2, 8, 1, 1, 8, 1]
    assert likelihood.frequencies == pytest.approx([0.3, 0.3, 0.1, 0.3])
    assert likelihood.lnl() != before
    assert likelihood.lnl() == pytest.approx(fresh(likelihood), rel=1e-11)
    likelihood.lengths = np.full(likelihood.tree.n_edges, 0.05)
    assert likelihood.lnl() == pytest.approx(fresh(likelihood), rel=1e-11)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("aplha", 0.1, "Likelihood has no attribute 'aplha' that can be set; did you mean 'alpha'?"),
        ("gamma", 2, "Likelihood has no attribute 'gamma' that can be set"),
        ("lnl", -1.0, "Likelihood has no attribute 'lnl' that can be set"),
        ("alpha", "x", "alpha: found 'x', expected numbers"),
        ("lengths", "x", "lengths: found 'x', expected numbers"),
        ("exchangeabilities", ["x"] * 6, r"exchangeabilities: found .*, expected numbers"),
    ],
)
def test_what_cannot_be_set_is_refused(likelihood, name, value, message):
    before = likelihood.lnl()
    with pytest.raises(InputError, match=message):
        setattr(likelihood, name, value)
    assert likelihood.lnl() == before
    with pytest.raises(InputError, match="no attribute 'alhpa' that can be set; did you mean 'alpha'"):
        likelihood.parts[0].alhpa = 1


def test_copies_do_not_lead_back(likelihood):
    before = likelihood.lnl()
    likelihood.tree.lengths[:] = 1.0
    likelihood.lengths[:] = 1.0
    likelihood.frequencies[:] = 0.25
    likelihood.model.set_alpha(5.0)
    assert likelihood.lnl() == before


def test_site_lnl_is_in_the_order_of_the_sites(likelihood, primates):
    sites = likelihood.site_lnl()
    assert sites.shape == (primates.n_sites,)
    assert sites.sum() == pytest.approx(likelihood.lnl(), rel=1e-11)
    letters = dict(zip(primates.names, primates.columns(np.arange(100)), strict=True))
    with Likelihood(letters, likelihood.tree, likelihood.model, device="numpy") as other:
        assert other.site_lnl() == pytest.approx(sites[:100], rel=1e-11)


def test_likelihoods_of_other_models(likelihood):
    """Each as if it were set; the likelihood's own model stays."""
    before = likelihood.lnl()
    models = ["JC+G4{0.3}", "HKY{1/4}+F+G4{2}", likelihood.model]
    found = likelihood.likelihoods(models)
    tree = likelihood.newick()
    for model, lnl in zip(models[:2], found[:2].tolist(), strict=True):
        alone = evaluate(likelihood.data, tree, model, fixed=True, device="numpy")
        assert lnl == pytest.approx(alone.lnl, rel=1e-11)
    assert found[2] == pytest.approx(before, rel=1e-12)
    assert likelihood.lnl() == before


def test_models_of_another_size_are_refused(likelihood):
    with pytest.raises(InputError, match=r"'JC': found 1 rate categories, expected 4"):
        likelihood.likelihoods(["JC"])


def test_derivatives_match_differences(likelihood):
    lnl, first, second = likelihood.derivatives()
    assert lnl == pytest.approx(likelihood.lnl(), rel=1e-11)
    assert first.shape == second.shape == (likelihood.tree.n_edges,)
    for edge in (0, 7, 20):
        length = likelihood.lengths[edge]
        step = 1e-4 * length
        lnls = []
        for shift in (-step, 0.0, step):
            likelihood.set_length(edge, length + shift)
            lnls.append(likelihood.lnl())
        likelihood.set_length(edge, length)
        # lnL near 1e4 carries 1e-12: 1e-7 of d1 and 1e-2 of d2 at steps of 1e-5
        assert first[edge] == pytest.approx((lnls[2] - lnls[0]) / (2 * step), rel=1e-5, abs=1e-3)
        assert second[edge] == pytest.approx((lnls[2] - 2 * lnls[1] + lnls[0]) / step**2, rel=1e-2, abs=5.0)


def test_optimise_only_what_is_named(sequences):
    tree = random_tree(list(sequences), np.random.default_rng(2))
    with Likelihood(sequences, tree, "HKY+F+G2", device="numpy") as likelihood:
        lengths, alpha, rates = likelihood.lengths, likelihood.alpha, likelihood.exchangeabilities
        start = likelihood.lnl()
        first = likelihood.optimise("alpha")
        assert first > start
        assert (likelihood.lengths == lengths).all()
        assert (likelihood.exchangeabilities == rates).all()
        assert likelihood.alpha != alpha
        alpha = likelihood.alpha
        second = likelihood.optimise("lengths", "rates")
        assert second > first
        assert likelihood.alpha == alpha
        trace = []
        third = likelihood.optimise(listener=trace.append)
        assert third >= second
        assert [event.lnl for event in trace] == sorted(event.lnl for event in trace)
        assert third == pytest.approx(likelihood.lnl(), rel=1e-11)


def test_values_in_braces_are_not_free(primates):
    tree = random_tree(primates.names, np.random.default_rng(2))
    with Likelihood(primates, tree, "HKY{4}+FE+G4{0.5}", device="numpy") as likelihood:
        likelihood.optimise()
        assert likelihood.alpha == 0.5
        with pytest.raises(InputError, match=r"free in .*: lengths$"):
            likelihood.optimise("alpha")


@pytest.mark.parametrize("length", [0.0, MIN_BRANCH_LENGTH / 2, MAX_BRANCH_LENGTH * 2, np.nan, -1.0])
def test_lengths_beyond_the_bounds_are_refused(likelihood, length):
    with pytest.raises(InputError, match="branch 3"):
        likelihood.set_length(3, length)


def test_branches_that_do_not_exist(likelihood):
    for edge in (-1, likelihood.tree.n_edges):
        with pytest.raises(InputError, match="branch"):
            likelihood.set_length(edge, 0.1)
    with pytest.raises(InputError, match="shape"):
        likelihood.lengths = [0.1]


@pytest.mark.opencl
def test_opencl_stays_in_step(likelihood, primates):
    with Likelihood(primates, likelihood.tree, device="opencl") as other:
        for live in (likelihood, other):
            live.alpha = 0.4
            live.set_length(2, 0.33)
        assert other.lnl() == pytest.approx(likelihood.lnl(), rel=1e-11)
        assert other.site_lnl() == pytest.approx(likelihood.site_lnl(), rel=1e-9)
        assert other.derivatives()[1] == pytest.approx(likelihood.derivatives()[1], rel=1e-8)
