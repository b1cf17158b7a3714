"""The pool of the ultrafast bootstrap: estimated lnL against resampled alignments, and the choice of trees."""

import numpy as np
import pytest
from helpers import read_states

from plltool.alignment.patterns import compress
from plltool.analyses.search.analysis import search
from plltool.codec import from_arrays, to_arrays
from plltool.io.alignment_reader import read_alignment
from plltool.run.evaluation import evaluate
from plltool.run.likelihood import Likelihood
from plltool.tree.topology import Tree
from plltool.tree_search.ufboot_search import Meetings, RellPool, draw_weights, estimate_lnls

MODEL = "K80{4.0}+G4{0.5}"


@pytest.fixture(scope="module")
def best(primates):
    return search(primates, MODEL, device="numpy", effort="fast")


def test_weights_are_those_of_sites_drawn_from_each_part():
    weights = draw_weights([np.array([1.0, 2.0, 1.0]), np.array([1.0, 1.0])], 4000, np.random.default_rng(2))
    assert weights.shape == (5, 4000)
    assert (weights[:3].sum(axis=0) == 4).all()
    assert (weights[3:].sum(axis=0) == 2).all()
    assert weights.mean(axis=1) == pytest.approx([1, 2, 1, 1, 1], abs=0.08)  # five standard errors


def test_weights_of_billions_of_sites_fit():
    weights = draw_weights([np.array([3e9, 1e3]), np.array([5e9])], 3, np.random.default_rng(2))
    assert (weights[:2].sum(axis=0) == 3_000_001_000).all()
    assert (weights[2] == 5_000_000_000).all()


def test_estimates_are_lnls_of_the_resampled_alignment(primates, best):
    sequences = read_alignment(primates)
    patterns = compress(read_states(primates))
    weights = draw_weights([patterns.weights], 3, np.random.default_rng(1))
    with Likelihood(primates, best.tree, MODEL, device="numpy") as likelihood:
        sites = likelihood.site_lnl()
    by_pattern = np.empty(patterns.n_patterns)
    by_pattern[patterns.site_pattern] = sites
    found = estimate_lnls(by_pattern, weights)
    first_site = np.unique(patterns.site_pattern, return_index=True)[1]
    for column in range(3):
        columns = np.repeat(first_site, weights[:, column])
        resampled = dict(zip(sequences.names, (row.decode() for row in sequences.columns(columns)), strict=True))
        lnl = evaluate(resampled, best.tree, MODEL, fixed=True, device="numpy").lnl
        assert found[column] == pytest.approx(lnl, rel=1e-11)


class Fake:
    """A likelihood with given site lnL."""

    def __init__(self, tree, sites):
        self.tree = tree
        self.sites = np.array(sites, dtype=float)

    def site_lnl(self):
        return self.sites


def met(weights, tree, sites):
    """A tree as it is met."""
    meetings = Meetings(weights)
    meetings.meet(Fake(tree, sites))
    return meetings.trees[0]


def test_each_topology_is_met_once(best):
    weights = np.array([[9, 0], [0, 9]], dtype=np.uint16)
    first, second, third = other_topologies(best.tree, 3)
    known = Meetings(weights)
    known.meet(Fake(first, [-1, -2]))
    meetings = Meetings(weights, {known.trees[0].key})
    for tree, sites in ((second, [-2, -1]), (first, [0, 0]), (third, [-3, -4]), (second, [0, 0])):
        meetings.meet(Fake(tree, sites))
        tree.lengths[:] = 9  # what was met keeps its own
    assert [one.lnls.tolist() for one in meetings.trees] == [[-18, -9], [-27, -36]]
    assert [one.tree.ends.tolist() for one in meetings.trees] == [second.ends.tolist(), third.ends.tolist()]
    assert all((one.tree.lengths == best.tree.lengths).all() for one in meetings.trees)


def test_each_alignment_keeps_its_best_tree(best):
    weights = np.array([[9, 0, 5], [0, 9, 5]], dtype=np.uint16)
    pool = RellPool(weights.shape[1], np.random.default_rng(0))
    first, second = other_topologies(best.tree, 2)
    pool.add(met(weights, first, [-1, -2]))
    pool.add(met(weights, first, [0, 0]))  # the same topology again: not looked at
    assert pool.chosen.tolist() == [0, 0, 0]
    pool.add(met(weights, second, [-2, -1]))  # better where the second pattern counts, as good on the third alignment
    assert pool.chosen.tolist()[:2] == [0, 1]
    assert pool.n_met == 2
    assert set(pool.trees) == {0, 1}


def test_trees_that_nobody_keeps_are_dropped_and_stay_known(best):
    weights = np.array([[10], [10]], dtype=np.uint16)
    pool = RellPool(weights.shape[1], np.random.default_rng(0))
    first, second = other_topologies(best.tree, 2)
    pool.add(met(weights, first, [-2, -2]))
    earlier = pool.copy()
    pool.add(met(weights, second, [-1, -1]))
    pool.add(met(weights, first, [0, 0]))
    assert set(pool.trees) == {1}
    assert pool.n_met == 2
    assert set(earlier.trees) == {0}
    assert earlier.n_met == 1
    again = from_arrays(to_arrays(pool))
    again.add(met(weights, first, [0, 0]))
    assert again.n_met == 2
    assert again.chosen.tolist() == [1]
    assert (again.trees[1].ends == second.ends).all()


def other_topologies(tree, number):
    """Trees that differ by exchanged tips."""
    trees = []
    for k in range(number):
        ends = tree.ends.copy()
        ends[tree.ends == k] = k + 4
        ends[tree.ends == k + 4] = k
        trees.append(Tree.from_edges(tree.names, ends, tree.lengths))
    return trees


def test_ties_are_broken_evenly(best):
    weights = np.full((1, 6000), 10, dtype=np.uint16)
    pool = RellPool(weights.shape[1], np.random.default_rng(3))
    first, second, third = other_topologies(best.tree, 3)
    pool.add(met(weights, first, [-1.0]))
    pool.add(met(weights, second, [-1.02]))
    pool.add(met(weights, third, [-0.99]))
    assert np.bincount(pool.chosen) == pytest.approx(2000, abs=200)  # five standard deviations
    pool.add(met(weights, best.tree, [-0.5]))
    assert (pool.chosen == 3).all()
