"""Analyses under corrections for ascertainment bias, and the alignments that they refuse."""

import json

import numpy as np
import pytest
from oracles.ascertainment import corrected_lnl, correction, invariable_lnl
from oracles.likelihood import dna_columns, pruning
from oracles.models import components_of
from small_alignments import variable

from plltool.analyses.ancestral.analysis import ancestral_states
from plltool.analyses.machine.compare import compare
from plltool.analyses.search.analysis import search
from plltool.analyses.supports.search_supports import search_supports
from plltool.analyses.toolbox.simulate import simulate
from plltool.analyses.topology_tests.analysis import topology_tests
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.model.checks import Ascertainment
from plltool.model.model_string import parse_model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.run.engines import open_engine, plan_shards
from plltool.run.evaluation import evaluate
from plltool.run.inputs import resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.memory import search_slots
from plltool.tree.moves import random_tree
from plltool.tree_search.effort import SearchOptions
from plltool.tree_search.neighbours import neighbour_sites

OPTIONS = SearchOptions("fast", starts=1, radii=(1, 2), perturbations=0)
GIVEN = "HKY{1/4}+FU{0.3/0.2/0.2/0.3}+G4{0.5}"
SUFFIXES = ["+ASC_LEWIS", "+ASC_FELS{40}", "+ASC_STAM{30/20/10/25}"]


@pytest.fixture(scope="module", name="variable")
def make_variable(sequences):
    """The variable columns of 7 primates."""
    return variable(sequences)


def start(sequences, seed=2):
    """Some tree of these taxa."""
    return random_tree(tuple(sequences), np.random.default_rng(seed))


def oracle_lnl(tree, lengths, sequences, model, sites=slice(None)):
    columns = dna_columns(sequences, tree.names, sites)
    kind = model.spec.ascertainment
    given = tree.ends.tolist(), lengths * model.scaler, columns
    components = components_of(model)
    if kind is None:
        return pruning(*given, components).sum()
    return corrected_lnl(kind.kind, kind.unseen, *given, np.ones(len(columns)), components)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_lnl_of_a_fixed_tree(variable, suffix, device):
    tree = start(variable)
    found = evaluate(variable, tree, GIVEN + suffix, fixed=True, device=device, site_lnl=True)
    (model,) = found.models
    assert found.lnl == pytest.approx(oracle_lnl(tree, tree.lengths, variable, model), rel=1e-11)
    assert found.site_lnl.sum() == pytest.approx(found.lnl, rel=1e-12)
    assert found.model.endswith(suffix.replace("40", "40.0").replace("30/20/10/25", "30.0/20.0/10.0/25.0"))
    assert found.n_patterns == resolve_inputs(variable, None)[0].patterns[0].n_patterns


@pytest.mark.parametrize("brlen", ["linked", "scaled", "unlinked"])
def test_each_part_has_its_own_correction(variable, brlen, device):
    """DNA in three parts, two of one shape; optimised, so that scalers and lengths differ between them."""
    n = len(variable["Pan"])
    scheme = f"HKY+FO+ASC, a = 1-30\nHKY+FO+G4, b = 31-60\nHKY+FO+ASC_FELS{{20}}, c = 61-{n}"
    with Likelihood(variable, start(variable), scheme, brlen=brlen, device=device) as likelihood:
        likelihood.optimise()
        tree, models = likelihood.tree, likelihood.models
        lengths = np.broadcast_to(tree.lengths.reshape(len(tree.lengths), -1), (len(tree.lengths), 3)).T
        parts = [slice(0, 30), slice(30, 60), slice(60, n)]
        expected = [oracle_lnl(tree, *own[:1], variable, *own[1:]) for own in zip(lengths, models, parts, strict=True)]
        assert likelihood.lnl() == pytest.approx(sum(expected), rel=1e-10)


def test_per_site_rates_beside_a_correction(variable):
    """Per-site rates are chosen with values of sites of their own part only."""
    n = len(variable["Pan"])
    scheme = f"JC+PSR4, a = 1-30\nJC+ASC, b = 31-{n}"
    with Likelihood(variable, start(variable), scheme, brlen="linked", device="numpy") as likelihood:
        likelihood.optimise()
        tree, models = likelihood.tree, likelihood.models
        alone = {name: row[30:] for name, row in variable.items()}
        expected = oracle_lnl(tree, tree.lengths, alone, models[1])
        assert likelihood.site_lnl()[30:].sum() == pytest.approx(expected, rel=1e-10)


def test_lnl_of_iqtree_for_morphological_characters(tmp_path):
    """IQ-TREE 2.0.7 -st MORPH -m MK+ASC -te TREE -blfix: three states."""
    rows = ["001201012011", "011200012110", "101101?10210", "112011010021", "112011001020", "010210100112"]
    path = tmp_path / "characters.phy"
    path.write_text("6 12\n" + "".join(f"{name} {row}\n" for name, row in zip("abcdef", rows, strict=True)))
    tree = (
        "(a:0.0000027669,(b:0.0000023583,f:0.7647025707):0.4045853023,(c:0.3824591248,"
        "(d:0.0000028787,e:0.2782370626):0.8139408513):0.2390474641);"
    )
    # abs: half of the last digit that it prints
    assert evaluate(path, tree, "MK+ASC", fixed=True, device="numpy").lnl == pytest.approx(-68.0424, abs=5e-5)


def test_proteins():
    """20 states, which are codes of a table rather than bit masks."""
    rows = {"a": "ARNDCQEGHILK", "b": "ARNDVQEWHIMK", "c": "RRNECQEGYILR", "d": "AKDDCHEGHVLX"}
    rows = {name: "".join(row[site] for site in (0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11)) for name, row in rows.items()}
    tree = start(rows)
    found = evaluate(rows, tree, "LG+G4{0.8}+ASC", fixed=True, device="numpy")
    (model,) = found.models
    order = "ARNDCQEGHILKMFPSTWYV"
    sets = {letter: 1 << state for state, letter in enumerate(order)} | {"X": (1 << 20) - 1}
    columns = np.array([[sets[letter] for letter in rows[name]] for name in tree.names])
    given = tree.ends.tolist(), tree.lengths
    components = components_of(model)
    lnl = pruning(*given, columns.T.tolist(), components)
    alike = invariable_lnl(*given, components, 4).tolist()
    assert found.lnl == pytest.approx(lnl.sum() + correction("lewis", (), alike, len(lnl)), rel=1e-11)


@pytest.fixture(scope="module")
def found(variable, tmp_path_factory):
    checkpoint = tmp_path_factory.mktemp("whole") / "checkpoint"
    twin = {"twin": variable["Homo_sapiens"]}
    return search(variable | twin, "GTR+G4+ASC", options=OPTIONS, device="numpy", checkpoint=checkpoint)


def test_a_search_ends_at_its_optimum(variable, found):
    """Where an evaluation of its tree ends as well, higher than a random tree; a twin is put back."""
    rows = variable | {"twin": variable["Homo_sapiens"]}
    again = evaluate(rows, found.tree, "GTR+G4+ASC", device="numpy")
    assert found.lnl == pytest.approx(again.lnl, abs=0.05)  # reached by another way with default criteria
    assert found.lnl > evaluate(rows, start(rows), "GTR+G4+ASC", device="numpy").lnl + 1
    assert found.model.endswith("+ASC_LEWIS")
    fixed = evaluate(rows, found.tree, found.model, fixed=True, device="numpy")
    assert fixed.lnl == pytest.approx(found.lnl, rel=1e-12)
    assert parse_model(json.loads(found.to_json())["model"]).ascertainment == Ascertainment("lewis")


@pytest.mark.opencl
def test_two_devices_search_alike(variable):
    comparison = compare(variable, Hardware("numpy"), Hardware("opencl"), model="HKY+FO+G4+ASC", options=OPTIONS)
    assert comparison.agree, comparison.describe()


@pytest.mark.slow
def test_supports(found):
    made = search_supports(found, ("fbp", "ufboot", "sh-alrt"), replicates=3, device="numpy", workers=1)
    assert set(made.supports.values) == {"fbp", "ufboot", "sh-alrt"}
    for values in made.supports.values.values():
        known = values[~np.isnan(values)]
        assert ((known >= 0) & (known <= 100)).all()


def test_lnl_differences_of_topology_tests(variable):
    """Site values sum to the corrected lnL of each tree."""
    trees = [start(variable, seed) for seed in (2, 3)]
    tested = topology_tests(variable, trees, "HKY+FO+ASC", device="numpy", replicates=100)
    with Likelihood(variable, tested.newicks[1], tested.model, device="numpy") as likelihood:
        assert likelihood.lnl() == pytest.approx(tested.tests.lnl[1], rel=1e-6)  # the digits of Newick text
    assert tested.tree_site_lnl.sum(axis=1) == pytest.approx(tested.tests.lnl, rel=1e-10)


def test_interchanges_have_corrected_site_values(variable, found):
    """SH-aLRT compares a tree with its neighbours, which are worse than the best tree, but not by the correction."""
    rows = variable | {"twin": variable["Homo_sapiens"]}
    data, models = resolve_inputs(rows, found.model)
    patterns = data.patterns
    engine, _ = open_engine(patterns, models, search_slots(data.n_taxa), Hardware("numpy"))
    with engine:
        likelihood = TreeLikelihood(found.tree, models, engine)
        branches = np.flatnonzero((found.tree.ends >= data.n_taxa).all(axis=1))
        sums = neighbour_sites(likelihood, branches) @ patterns[0].weights
        lnl = likelihood.lnl()
    assert lnl == pytest.approx(found.lnl, rel=1e-12)
    uncorrected = evaluate(rows, found.tree, found.model.removesuffix("+ASC_LEWIS"), fixed=True, device="numpy").lnl
    assert uncorrected < lnl - 100
    assert (sums < lnl + 0.01).all()
    assert (sums > lnl - 50).all()


def test_ancestral_states_are_those_without_correction(variable):
    """The posterior of a state does not depend on which columns were kept."""
    tree = start(variable)
    corrected = ancestral_states(variable, tree, GIVEN + "+ASC", fixed=True, device="numpy")
    plain = ancestral_states(variable, tree, GIVEN, fixed=True, device="numpy")
    for own, other in zip(corrected.ancestors, plain.ancestors, strict=True):
        assert own.probabilities == pytest.approx(other.probabilities, rel=1e-12)


def test_rates_of_sites_are_those_without_correction(variable):
    rates = []
    for suffix in ("+ASC", ""):
        with Likelihood(variable, start(variable), GIVEN + suffix, device="numpy") as likelihood:
            rates.append(likelihood.site_rates())
    assert rates[0] == pytest.approx(rates[1], rel=1e-12)


# --- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["AAAAAAA", "AA-AAAA", "ARARARA", "TTWYKTT", "-------"])
def test_columns_that_may_be_invariable(variable, column):
    """As in IQ-TREE 2.0.7: also those that ambiguous cells leave open."""
    pairs = zip(variable.items(), column, strict=True)
    rows = {name: row[:7] + letter + row[7:9] + letter for (name, row), letter in pairs}
    message = "found 2 columns in which all taxa have or may have the same state, first column 8; expected variable"
    with pytest.raises(InputError, match=message):
        search(rows, "JC+ASC", device="numpy")
    with pytest.raises(InputError, match=r"partition 'b': found 2 columns .* first column 8"):
        evaluate(rows, start(rows), "JC, a = 1-7\nJC+ASC, b = 8-11", device="numpy")
    for suffix in ("", "+ASC_FELS{3}", "+ASC_STAM{1/1/1/1}"):
        assert evaluate(rows, start(rows), "JC" + suffix, fixed=True, device="numpy").lnl < 0


def test_models_of_a_result_are_checked_as_well(variable, sequences, found):
    (model,) = found.models
    with pytest.raises(InputError, match="expected variable columns only"):
        evaluate(sequences, start(sequences), model, device="numpy")


def test_simulations():
    with pytest.raises(InputError, match=r"a simulation cannot use a correction for ascertainment bias \(\+ASC\)"):
        simulate("(a:1,b:1,c:1);", "JC+ASC", 10)


def test_no_screen_beside_a_correction(variable, monkeypatch):
    """A screen knows one component of each pattern, a correction needs them all."""
    monkeypatch.setattr("plltool.run.engines.SCREENING_SIZE", 1)
    data, models = resolve_inputs(variable, "JC+G4+ASC")
    assert plan_shards(data.patterns, resolve_inputs(variable, "JC+G4")[1], screening=True).screen
    plan = plan_shards(data.patterns, models, screening=True)
    assert plan.screen == ()
    assert plan.engine[0].corrections == (Ascertainment("lewis"),)
    assert plan.engine[0].engine_sizes == (data.patterns[0].n_patterns, 1, 1, 1, 1)
