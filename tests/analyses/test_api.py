"""`search` and `evaluate` from Python."""

from itertools import pairwise

import numpy as np
import pytest

from plltool.analyses.search.analysis import search
from plltool.constants import MIN_BRANCH_LENGTH
from plltool.errors import InputError
from plltool.io.files import RECORD_KEYS
from plltool.io.newick import parse_newick
from plltool.run.evaluation import evaluate
from plltool.tree.splits import rf_distance
from plltool.tree_search.effort import SearchOptions


def quick(alignment, **settings):
    return search(alignment, **{"model": "HKY+F", "device": "numpy", **settings})


def test_search_and_evaluate_make_the_same_record(sequences):
    found = quick(sequences)
    again = evaluate(sequences, found.tree, found.model, fixed=True, device="numpy")
    assert tuple(again.as_record()) == (*RECORD_KEYS, "data")
    assert tuple(found.as_record()) == (*RECORD_KEYS, "data", "trace", "start_distances", "climb_distances", "settings")
    assert again.lnl == pytest.approx(found.lnl, rel=1e-11)
    assert again.site_lnl is None


def test_lnl_never_falls(sequences):
    trace = []
    result = quick(sequences, start="random", listener=trace.append, model="GTR+FO+G4")
    lnls = [event.lnl for event in trace]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(lnls))  # two evaluations may round apart
    assert result.lnl == pytest.approx(lnls[-1], rel=1e-12)


def test_the_best_of_several_starts_is_kept(sequences):
    options = SearchOptions("fast", radii=(1,), epsilon=5.0)
    result = quick(sequences, start="random", starts=4, workers=1, options=options)
    assert len(result.start_lnls) == 4
    assert result.lnl == max(result.start_lnls)
    alone = quick(sequences, start="random", starts=1, options=options)
    climb = [(event.stage, event.lnl) for event in alone.trace if event.stage != "polish"]
    assert [(event.stage, event.lnl) for event in result.trace][: len(climb)] == climb


@pytest.mark.parametrize("as_text", [True, False])
def test_a_given_start_tree(sequences, as_text):
    names = list(sequences)
    text = f"({names[3]},{names[0]},({names[1]},({names[2]},({names[4]},({names[5]},{names[6]})))));"
    start = text if as_text else parse_newick(text, "test")  # numbers its tips in another order
    result = quick(sequences, start=start)
    assert result.tree.names == tuple(sorted(names))
    assert rf_distance(result.tree, quick(sequences).tree) == 0


def test_duplicates_are_put_back_beside_their_twins(sequences):
    names = list(sequences)
    with_twins = {"first twin": sequences[names[2]], **sequences, "last twin": sequences[names[2]]}
    result = quick(with_twins, model="HKY+FE")
    assert result.tree.names == tuple(sorted(with_twins))
    assert "identical sequences" in result.warnings[0]
    for twin in ("first twin", "last twin"):
        tip = result.tree.names.index(twin)
        assert result.tree.lengths[result.tree.edges[tip, 0]] == MIN_BRANCH_LENGTH
    again = evaluate(with_twins, result.tree, result.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(result.lnl, rel=1e-11)
    assert result.lnl == pytest.approx(quick(sequences, model="HKY+FE").lnl, abs=0.05)  # 3 or 4 branches of 1e-6


def test_a_start_tree_names_duplicates_too(sequences):
    names = [*sequences, "twin"]
    text = f"({names[3]},{names[0]},({names[1]},({names[2]},({names[4]},({names[5]},({names[6]},twin))))));"
    result = quick({**sequences, "twin": sequences[names[0]]}, start=text)
    assert result.n_taxa == 8
    with pytest.raises(InputError, match="twin"):
        quick({**sequences, "twin": sequences[names[0]]}, start=text.replace("twin", "nobody"))


def test_four_taxa_all_equal():
    result = quick(dict.fromkeys("abcde", "ACGTACGT"))
    assert sorted(result.tree.names) == list("abcde")
    assert np.isfinite(result.lnl)


def test_evaluate_optimises_what_is_free(sequences):
    tree = quick(sequences).tree
    tree.lengths[:] = 5.0
    found = evaluate(sequences, tree, "HKY+F", device="numpy", site_lnl=True)
    assert found.lnl == pytest.approx(quick(sequences).lnl, abs=0.05)
    assert found.start_lnls[0] < found.lnl
    assert found.site_lnl.shape == (300,)
    assert found.site_lnl.sum() == pytest.approx(found.lnl, rel=1e-11)


def test_only_lengths_or_only_parameters_are_optimised():
    """What stays is bit for bit what was given; lnL lies between that of all fixed and of all optimised."""
    rows = {"a": "ACGTACGTACGTAACC", "b": "ACGTACGAACGTAACG", "c": "ACTTACGTGCGTTACC", "d": "GCTTACGTGCATTACC"}
    tree, model = "((a:0.1,b:0.2):0.1,c:0.2,d:0.3);", "HKY{3}+FE+G4"
    settings = [{"fixed": True}, {"only": "lengths"}, {"only": "parameters"}, {}]
    fixed, lengths, parameters, both = (evaluate(rows, tree, model, device="numpy", **own) for own in settings)
    assert fixed.lnl < min(lengths.lnl, parameters.lnl) <= max(lengths.lnl, parameters.lnl) < both.lnl
    assert lengths.parameters["alpha"] == fixed.parameters["alpha"] != parameters.parameters["alpha"]
    assert parameters.tree.lengths.tolist() == fixed.tree.lengths.tolist() != lengths.tree.lengths.tolist()
    with pytest.raises(InputError, match="only"):
        evaluate(rows, tree, model, device="numpy", only="alpha")


def test_evaluate_fixed_tells_what_was_not_given(sequences):
    text = quick(sequences).newick
    without_lengths = parse_newick(text, "test")
    without_lengths.lengths[:] = 0.1
    found = evaluate(sequences, without_lengths, "HKY+F+G4", fixed=True, device="numpy")
    assert any("rates and alpha" in line for line in found.warnings)
    assert any("branch lengths are 0.1" in line for line in found.warnings)
    given = evaluate(sequences, text, "HKY{2}+FE+G4{0.5}", fixed=True, device="numpy")
    assert given.warnings == ()


def test_lengths_of_zero_are_moved_to_the_bound(sequences):
    tree = quick(sequences).tree
    tree.lengths[2] = 0.0
    found = evaluate(sequences, tree, "JC", fixed=True, device="numpy")
    assert found.tree.lengths[2] == MIN_BRANCH_LENGTH
    assert any("moved to the bound" in line for line in found.warnings)


@pytest.mark.parametrize("settings", [{"starts": 0}, {"seed": -1}, {"starts": 2, "start": "(a,b,c);"}])
def test_settings_that_make_no_sense(sequences, settings):
    with pytest.raises(InputError):
        quick(sequences, **settings)
