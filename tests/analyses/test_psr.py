"""Per-site rates, also in parts of an alignment: against brute force, single parts, and gamma rates in the end."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from oracles.likelihood import brute_force, dna_columns, pruning
from oracles.substitution import gamma_category_means, q_matrix

import plltool
from plltool.analyses.search.analysis import search
from plltool.analyses.supports.bootstrap import bootstrap
from plltool.analyses.supports.search_supports import search_supports
from plltool.cli import main
from plltool.constants import MAX_BRANCH_LENGTH, UNLINKED
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.optimise.categories import CATEGORY_GAIN, choose_categories
from plltool.optimise.likelihood import TreeLikelihood
from plltool.run import engines
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.memory import plan_memory, search_slots
from plltool.tree.moves import random_tree
from plltool.tree_search.effort import SearchOptions

OPTIONS = SearchOptions("fast", starts=1, radii=(1, 2), perturbations=0)
MODEL = "HKY+F+PSR4"
SAME_OPTIMUM = 0.05  # lnL reached by another way with default criteria
GIVEN = "HKY{1/4}+FU{0.3/0.2/0.2/0.3}+PSR3{0.1/1/6}"


@pytest.fixture(scope="module")
def found(sequences):
    return search(sequences | {"twin": sequences["Homo_sapiens"]}, MODEL, options=OPTIONS, device="numpy")


def site_oracle(tree, sequences, model, rate_of):
    """lnL of each site, each at its own rate; taxa in the order of the tree."""
    q = q_matrix(model.exchangeabilities, model.frequencies)
    columns = dna_columns(sequences, tree.names)
    lnl = np.empty(len(rate_of))
    for rate in np.unique(rate_of):
        own = np.flatnonzero(rate_of == rate)
        components = [(1.0, model.frequencies, q * rate)]
        lnl[own] = pruning(tree.ends.tolist(), tree.lengths, [columns[site] for site in own], components)
    return lnl


def test_lnl_is_that_of_each_site_at_its_rate(sequences, found):
    with Likelihood(sequences, start(sequences), MODEL, device="numpy") as likelihood:
        before = likelihood.lnl()
        lnl = likelihood.optimise()
        rates, model, tree = likelihood.site_rates(), likelihood.model, likelihood.tree
        assert lnl == likelihood.lnl() > before
        expected = site_oracle(tree, sequences, model, rates)
        assert likelihood.site_lnl() == pytest.approx(expected, rel=1e-10)
        assert lnl == pytest.approx(expected.sum(), rel=1e-10)
        given = tree, likelihood.model_string
    assert rates.mean() == pytest.approx(1.0)
    assert len(set(rates.tolist())) <= 4
    with Likelihood(sequences, *given, device="numpy") as likelihood:
        assert lnl - 1e-6 < likelihood.lnl() < lnl + CATEGORY_GAIN, "a written model leads back, but for small gains"


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
@pytest.mark.parametrize("name", ["one model", "all", "beside gamma"])
def test_little_memory_changes_nothing(sequences, tmp_path, name):
    model = write(tmp_path, SCHEMES[name]) if name in SCHEMES else MODEL
    settings = {"brlen": "unlinked" if name == "all" else "scaled", "options": OPTIONS, "device": "opencl"}
    whole = search(sequences, model, workers=1, **settings)
    memory = plan(sequences, model, "opencl", settings["brlen"]).full_bytes // (2 if name in SCHEMES else 4)
    little = search(sequences, model, memory=memory, workers=1, **settings)
    assert (little.lnl, little.newick, little.psr.lnl) == (whole.lnl, whole.newick, whole.psr.lnl)


def plan(sequences, model, device, brlen="scaled"):
    data, models = resolve_inputs(sequences, model, brlen)
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


# --- parts ----------------------------------------------------------------------------------------------------------


PART_OPTIONS = SearchOptions("fast", starts=1, radii=(1, 2), perturbations=1)
BRLENS = ("linked", "scaled", "unlinked")
EQUAL = np.full(4, 0.25)
SCHEMES = {
    "all": "HKY+F+PSR4, one = 1-300\\3\nJC+PSR3, two = 2-300\\3\nHKY+F+PSR2, three = 3-300\\3\n",
    "beside gamma": "HKY+F+PSR4, one = 1-300\\3\nHKY+F+G4, two = 2-300\\3\nJC, three = 3-300\\3\n",
}
ONLY = ["HKY+F+PSR4", "JC+PSR3", "HKY+F+PSR2"]  # the parts of "all"


# each scheme and each linkage
CASES = [("all", "linked"), ("all", "unlinked"), ("beside gamma", "scaled")]


@pytest.fixture
def scheme(request, tmp_path):
    return write(tmp_path, SCHEMES[request.param])


def write(folder, text):
    """A partition file."""
    (folder / "scheme").write_text(text)
    return str(folder / "scheme")


def start(sequences, brlen="linked", n_taxa=7):
    """Some tree of the first taxa; if lengths are unlinked, each of three parts has its own."""
    rng = np.random.default_rng(2)
    tree = random_tree(tuple(list(sequences)[:n_taxa]), rng)
    return tree.with_lengths(rng.exponential(0.1, (tree.n_edges, 3)).clip(1e-3)) if brlen == UNLINKED else tree


def own_lengths(tree, part):
    return tree.lengths[:, part] if tree.lengths.ndim > 1 else tree.lengths


@pytest.mark.parametrize("brlen", BRLENS)
def test_given_rates_by_brute_force(sequences, tmp_path, brlen):
    """Five taxa: +PSR with rates given, +G4, and +PSR again; with scaled lengths each part has a factor."""
    scalers = (0.7, 1.9, 1.0) if brlen == "scaled" else (1.0, 1.0, 1.0)
    scaled = [f"+B{{{scaler}}}" if brlen == "scaled" else "" for scaler in scalers]
    lines = (
        f"JC+PSR3{{0.1/1/6}}{scaled[0]}, one = 1-60\\3",
        f"JC+G4{{0.5}}{scaled[1]}, two = 2-60\\3",
        f"JC+PSR2{{0.3/2}}{scaled[2]}, three = 3-60\\3",
    )
    few = {name: sequences[name][:60] for name in list(sequences)[:5]}
    tree, jukes_cantor = start(few, brlen, 5), q_matrix(np.ones(6), EQUAL)
    expected = np.empty(60)
    for part, rates in enumerate(((0.1, 1.0, 6.0), gamma_category_means(0.5, 4), (0.3, 2.0))):
        columns = dna_columns(few, tree.names, range(part, 60, 3))
        processes = [[(1.0, EQUAL, scalers[part] * rate * jukes_cantor)] for rate in rates]
        where = tree.ends.tolist(), own_lengths(tree, part), columns
        each = np.stack([brute_force(*where, process) for process in processes])
        expected[part::3] = np.log(np.exp(each).mean(axis=0)) if part == 1 else each.max(axis=0)
    with Likelihood(few, tree, write(tmp_path, "\n".join(lines)), brlen=brlen, device="numpy") as likelihood:
        assert likelihood.site_lnl() == pytest.approx(expected, rel=1e-10)
        assert likelihood.part_lnl() == pytest.approx([expected[part::3].sum() for part in range(3)], rel=1e-10)
        assert likelihood.lnl() == pytest.approx(expected.sum(), rel=1e-10)


@pytest.fixture(scope="module")
def optimised(sequences, tmp_path_factory):
    """A likelihood of a scheme and a linkage, optimised once."""

    @cache
    def optimise(name, brlen):
        scheme = write(tmp_path_factory.mktemp("scheme"), SCHEMES[name])
        likelihood = Likelihood(sequences, start(sequences, brlen), scheme, brlen=brlen, device="numpy")
        before = likelihood.lnl()
        assert name != "all" or set(likelihood.site_rates()) == {1.0}, "nothing is chosen before an optimisation"
        assert likelihood.optimise() == likelihood.lnl() > before + 10
        return likelihood

    return optimise


@pytest.mark.parametrize(("name", "brlen"), [*(("all", brlen) for brlen in BRLENS), ("beside gamma", "scaled")])
def test_the_sum_of_parts_at_the_rates_of_sites(sequences, optimised, name, brlen):
    """After an optimisation: by pruning, part by part, each site at its rate or under gamma rates."""
    likelihood = optimised(name, brlen)
    tree, rate_of, site_lnl = likelihood.tree, likelihood.site_rates(), likelihood.site_lnl()
    for number, model in enumerate(likelihood.models):
        sites = np.arange(number, 300, 3)
        q = model.scaler * q_matrix(model.exchangeabilities, model.frequencies)
        rates = np.unique(rate_of[sites]) if model.has_site_rates else model.sites.categories()[0]
        share = 1.0 if model.has_site_rates else 1.0 / len(rates)
        for rate in rates:
            own = sites[rate_of[sites] == rate] if model.has_site_rates else sites
            components = [(share, model.frequencies, q * r) for r in ([rate] if share == 1.0 else rates)]
            columns = dna_columns(sequences, tree.names, own)
            expected = pruning(tree.ends.tolist(), own_lengths(tree, number), columns, components)
            assert site_lnl[own] == pytest.approx(expected, rel=1e-10)
    assert likelihood.lnl() == pytest.approx(site_lnl.sum(), rel=1e-10)


def test_rates_have_the_mean_1(optimised):
    """In each part that has lengths or a scaler of its own; in all parts together if they share lengths."""
    for brlen in BRLENS:
        likelihood = optimised("all", brlen)
        rates, models, longest = likelihood.site_rates(), likelihood.models, likelihood.tree.lengths.max()
        means = [rates[part::3].mean() for part in range(3)]
        if brlen == "linked":
            assert rates.mean() == pytest.approx(1.0)
            assert max(means) > 1.2, "the case shows something: parts differ"
        else:
            assert means == pytest.approx([1.0, 1.0, 1.0])
        if brlen == "scaled":
            scalers = [model.scaler for model in models]
            at_most = 1.0 if longest < MAX_BRANCH_LENGTH * (1 - 1e-9) else np.inf  # as far as the bound allows
            assert 1.0 - 1e-6 <= np.mean(scalers) <= at_most + 1e-6  # all parts have 100 sites
            assert max(scalers) > 1.2


def test_unlinked_parts_choose_as_single_alignments(sequences, tmp_path):
    """The same rates, lengths and lnL, to the bit of the order of sums."""
    tree = start(sequences, "unlinked")
    with Likelihood(sequences, tree, write(tmp_path, SCHEMES["all"]), brlen="unlinked", device="numpy") as likelihood:
        choose_categories(likelihood._likelihood)
        rates, lnls, lengths = likelihood.site_rates(), likelihood.part_lnl(), likelihood.lengths
    for part, model in enumerate(ONLY):
        alone = {name: sequence[part::3] for name, sequence in sequences.items()}
        own = tree.with_lengths(tree.lengths[:, part].copy())
        with Likelihood(alone, own, model, device="numpy") as single:
            choose_categories(single._likelihood)
            assert rates[part::3] == pytest.approx(single.site_rates(), rel=1e-12)
            assert lengths[:, part] == pytest.approx(single.lengths, rel=1e-12)
            assert lnls[part] == pytest.approx(single.lnl(), rel=1e-11)


def test_factors_leave_lnl_as_it_is(sequences, tmp_path):
    """Wherever the mean goes, each site keeps the product of its rate and its lengths."""
    for text in SCHEMES.values():
        for brlen in BRLENS:
            tree = start(sequences, brlen)
            with Likelihood(sequences, tree, write(tmp_path, text), brlen=brlen, device="numpy") as likelihood:
                on, before = likelihood._likelihood, likelihood.tree
                choose_categories(on)
                products = []
                for part, model in enumerate(on.models):
                    if model.has_site_rates:
                        change = own_lengths(on.tree, part) / own_lengths(before, part)
                        assert change == pytest.approx(np.full(len(change), change[0]))
                        products.append(model.sites.categories()[0] * model.scaler * change[0])
                logarithms = np.log2(np.concatenate(products)) * 4
            assert logarithms == pytest.approx(np.round(logarithms), abs=1e-9)  # all are rates of the grid


@pytest.mark.parametrize(("scheme", "brlen"), CASES, indirect=["scheme"])
def test_a_search_of_parts_ends_under_gamma(sequences, scheme, brlen, tmp_path):
    twins = sequences | {"twin": sequences["Homo_sapiens"]}
    found = search(twins, scheme, brlen=brlen, options=PART_OPTIONS, device="numpy", workers=1)
    assert found.tree.n_taxa == 8
    gamma = [model.under_gamma() if model.has_site_rates else model for model in found.psr.fitted]
    trees = [part.newick for part in found.parts] if brlen == UNLINKED else [found.newick]
    (tmp_path / "trees").write_text("\n".join(trees))
    again = evaluate(found.data, str(tmp_path / "trees"), gamma, brlen=brlen, device="numpy")
    assert found.lnl == pytest.approx(again.lnl, abs=SAME_OPTIMUM)
    assert found.lnl == pytest.approx(sum(part.lnl for part in found.parts))
    assert found.psr.lnl > found.lnl
    record = json.loads(found.to_json())["psr"]
    for model, own, written in zip(found.psr.fitted, found.psr.parts, record["parts"], strict=True):
        assert (own is None) == (written is None) == (not model.has_site_rates)
        if own is not None:
            assert np.bincount(own.categories) / 100 == pytest.approx(own.shares)
            assert written["rates"] == own.rates.tolist()
    assert "PSR" not in found.model
    lines = [line for line in found.describe_models() if "rates are equal" not in line]
    assert [line.startswith("partition ") for line in lines] == [False, True, True, True]
    assert record["model"].count("PSR") == sum(own is not None for own in found.psr.parts)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, indirect=True)
def test_supports(sequences, scheme):
    """Replicates are searched under per-site rates, by one process or two; the others use gamma rates."""
    found = search(sequences, scheme, options=PART_OPTIONS, device="numpy", workers=1)
    kinds = ("fbp", "ufboot", "sh-alrt")
    made = search_supports(found, kinds, replicates=2, device="numpy", workers=1)
    assert made.supports.kinds == kinds
    per_site = bootstrap(found.data, found.psr.fitted, replicates=2, device="numpy", workers=2).lnls
    gamma = bootstrap(found.data, found.models, replicates=2, device="numpy", workers=1).lnls
    assert made.bootstrap.lnls == per_site
    assert all(a > b + 1 for a, b in zip(per_site, gamma, strict=True))


def test_the_screen_of_parts_beside_gamma(sequences, tmp_path, monkeypatch):
    """Patterns with rates of their own keep them, also when these change; others have the best of four."""
    monkeypatch.setattr(engines, "SCREENING_SIZE", 1)
    scheme = write(tmp_path, SCHEMES["beside gamma"])
    data, models = resolve_inputs(sequences, scheme)
    engine, _ = engines.open_engine(data.patterns, models, search_slots(7), Hardware("numpy"), screening=True)
    with engine:
        likelihood = TreeLikelihood(start(sequences), models, engine)
        for _ in range(2):
            choose_categories(likelihood)
            likelihood.start_screening(None)
            lnls, screened = likelihood.part_lnl(), likelihood.screen.part_lnl()
            assert screened[[0, 2]] == pytest.approx(lnls[[0, 2]], rel=1e-11)
            best = (likelihood.component_lnl()[1] - np.log(0.25)).max(axis=0)
            assert screened[1] == pytest.approx(best @ data.patterns[1].weights, rel=1e-11)
            likelihood.tree.lengths[:] *= np.linspace(0.2, 5.0, 11)


def test_commands(data_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "JC+PSR5, one = 1-400\nJC+CAT3, two = 401-898\n")
    words = ["search", str(data_dir / "primates.phy"), "--model", "scheme", "--effort", "fast", "--device", "numpy"]
    result = CliRunner().invoke(main, [*words, "--prefix", "psr"])
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "psr.json").read_text())
    assert f"lnL under per-site rates: {record['psr']['lnl']:.6f}, 8 categories in 2 parts; no other" in result.stdout
    assert len(record["psr"]["parts"][1]["categories"]) == 498
    assert (tmp_path / "psr.best.model").read_text().count("+G4{") == 2
    assert "per-site rates: lnL" in (tmp_path / "psr.log").read_text()
