"""Rules that end a climb, against closed forms, and their effect on a search."""

import numpy as np
import pytest

from plltool.analyses.search.analysis import search
from plltool.tree_search.effort import LARGE_ALIGNMENT, SearchOptions
from plltool.tree_search.stopping import is_significant


def test_a_gain_is_significant_beyond_1_645_standard_errors():
    # 100 sites: half gain a + 1, half a - 1; standard error of the sum: sqrt(100 * 100 / 99) = 10.0504
    before, noise = np.zeros(100), np.tile([1.0, -1.0], 50)
    critical = 1.645 * 10.050378
    ones = np.ones(100)
    assert is_significant(before, noise + 1.001 * critical / 100, ones)
    assert not is_significant(before, noise + 0.999 * critical / 100, ones)
    assert not is_significant(noise + 1.0, noise, ones)  # a loss is none


def test_a_pattern_counts_as_often_as_it_occurs():
    difference, weights = np.array([1.2, -0.8, 0.3]), np.array([30.0, 10.0, 20.0])
    for shift in (-0.4, -0.2, 0.0):
        sites = np.repeat(difference + shift, weights.astype(int))
        apart = is_significant(np.zeros(60), sites, np.ones(60))
        assert is_significant(np.zeros(3), difference + shift, weights) == apart


def test_large_alignments_ask_for_significance():
    assert SearchOptions().plan(0.0, 1000, LARGE_ALIGNMENT // 1000).stop == "kh"
    assert SearchOptions().plan(0.0, 1000, LARGE_ALIGNMENT // 1000 - 1).stop == "epsilon"
    assert SearchOptions("thorough").plan(0.0, 1000, LARGE_ALIGNMENT // 1000).stop == "epsilon"
    assert SearchOptions(stop="rf").plan(0.0, 1000, LARGE_ALIGNMENT // 1000).stop == "rf"


@pytest.mark.parametrize("rule", ["rf", "kh"])
def test_a_climb_ends_where_its_rule_says_so(data_dir, rule):
    """A search from its own result changes nothing: lengths, one NNI round, and the polish."""
    rows = [line.split() for line in (data_dir / "primates.phy").read_text().splitlines()[1:9]]
    few = {name: sequence[:300] for name, sequence in rows}
    settings = {"model": "JC", "device": "numpy"}
    best = search(few, **settings)
    stages = {}
    for name in ("epsilon", rule):
        heard = []
        options = SearchOptions(stop=name, perturbations=2)
        again = search(few, start=best.tree, options=options, listener=heard.append, **settings)
        assert again.lnl == pytest.approx(best.lnl, abs=0.01)
        stages[name] = list(dict.fromkeys(event.stage for event in heard))
    assert stages[rule] == ["start", "nni", "polish"]
    assert stages["epsilon"] == ["start", "nni", "spr", "model", "perturb", "polish"]
