"""The ultrafast bootstrap's pool: estimated lnL against resampled alignments, the choice of trees."""

import numpy as np
import pytest

from plltool.alignment.patterns import compress
from plltool.api import Likelihood, evaluate, search
from plltool.io.alignment_reader import read_alignment, read_sequences
from plltool.search import rell
from plltool.search.neighbours import INTERCHANGES, interchange
from plltool.search.rell import KEPT, RellPool, choose_interchanges, draw_weights
from plltool.session import as_constraint
from plltool.tree.topology import Tree
from plltool.tree.tree_set import members_of, splits_of

MODEL = "K80{4.0}+G4{0.5}"


@pytest.fixture(scope="module")
def primates(data_dir):
    return data_dir / "primates.phy"


@pytest.fixture(scope="module")
def best(primates):
    return search(primates, MODEL, device="numpy", effort="fast")


def test_weights_are_those_of_sites_drawn_from_each_part():
    patterns = [np.array([0, 1, 1, 2]), np.array([1, 0])]
    weights = draw_weights(patterns, 4000, np.random.default_rng(2))
    assert weights.shape == (5, 4000)
    assert (weights[:3].sum(axis=0) == 4).all()
    assert (weights[3:].sum(axis=0) == 2).all()
    assert weights.mean(axis=1) == pytest.approx([1, 2, 1, 1, 1], abs=0.08)  # five standard errors


def test_estimates_are_lnls_of_the_resampled_alignment(primates, best):
    sequences = read_sequences(primates)
    patterns = compress(read_alignment(primates))
    weights = draw_weights([patterns.site_pattern], 3, np.random.default_rng(1))
    with Likelihood(primates, best.tree, MODEL, device="numpy") as likelihood:
        sites = likelihood.site_lnl()
    by_pattern = np.empty(patterns.n_patterns)
    by_pattern[patterns.site_pattern] = sites
    found = RellPool(weights, np.random.default_rng(0)).estimate(by_pattern)
    first_site = np.unique(patterns.site_pattern, return_index=True)[1]
    for column in range(3):
        columns = np.repeat(first_site, weights[:, column])
        resampled = dict(zip(sequences.names, (row.decode() for row in sequences.columns(columns)), strict=True))
        lnl = evaluate(resampled, best.tree, MODEL, fixed=True, device="numpy").lnl
        assert found[column] == pytest.approx(lnl, rel=1e-11)


class Fake:
    """A likelihood whose sites are known, and those of interchanges by inner branch and kind; others are hopeless."""

    def __init__(self, tree, sites, neighbours=()):
        self.tree = tree
        self.sites = np.array(sites, dtype=float)
        self.neighbours = dict(neighbours)

    def site_lnl(self):
        return self.sites


@pytest.fixture(autouse=True)
def _interchanges_of_fakes(monkeypatch):
    def sites(likelihood, branches):
        found = np.full((len(branches), 2, len(likelihood.sites)), -1000.0)
        for (place, kind), values in likelihood.neighbours.items():
            found[place, kind] = values
        return found

    monkeypatch.setattr(rell, "neighbour_sites", sites)


def test_each_alignment_keeps_its_best_tree(best):
    weights = np.array([[9, 0, 5], [0, 9, 5]], dtype=np.uint16)
    pool = RellPool(weights, np.random.default_rng(0))
    first, second = other_topologies(best.tree, 2)
    pool.add(Fake(first, [-1, -2]))
    pool.add(Fake(first, [0, 0]))  # the same topology again: not looked at
    assert pool.chosen.tolist() == [0, 0, 0]
    pool.add(Fake(second, [-2, -1]))  # better where the second pattern counts, as good on the third alignment
    assert pool.chosen.tolist()[:2] == [0, 1]
    assert pool.n_met == 2
    assert set(pool.trees) == {0, 1}


def test_trees_that_nobody_keeps_are_dropped_and_stay_known(best):
    weights = np.array([[10], [10]], dtype=np.uint16)
    pool = RellPool(weights, np.random.default_rng(0))
    first, second = other_topologies(best.tree, 2)
    pool.add(Fake(first, [-2, -2]))
    earlier = pool.copy()
    pool.add(Fake(second, [-1, -1]))
    pool.add(Fake(first, [0, 0]))
    assert set(pool.trees) == {1}
    assert pool.n_met == 2
    assert set(earlier.trees) == {0}
    assert earlier.n_met == 1
    again = RellPool.unpack(pool.pack(), first.names, weights, np.random.default_rng(0))
    again.add(Fake(first, [0, 0]))
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
    pool = RellPool(weights, np.random.default_rng(3))
    first, second, third = other_topologies(best.tree, 3)
    pool.add(Fake(first, [-1.0]))
    pool.add(Fake(second, [-1.02]))
    pool.add(Fake(third, [-0.99]))
    assert np.bincount(pool.chosen) == pytest.approx(2000, abs=200)  # five standard deviations
    pool.add(Fake(best.tree, [-0.5]))
    assert (pool.chosen == 3).all()


def inner(tree):
    return np.flatnonzero((tree.ends >= tree.n_taxa).all(axis=1))


def inner_splits(tree):
    return {split for split, ends in zip(splits_of(tree), tree.ends, strict=True) if ends.min() >= tree.n_taxa}


def taxa_behind(tree, node, parent):
    """The tips that are seen from `parent` at or behind `node`."""
    if tree.is_tip(node):
        return {node}
    return set().union(*(taxa_behind(tree, int(v), node) for v in tree.neighbours[node] if v != parent))


def as_split(tree, taxa):
    taxa = taxa if 0 not in taxa else set(range(tree.n_taxa)) - taxa
    return sum(1 << taxon for taxon in taxa)


def interchanged_split(tree, branch, kind):
    """The split that takes the branch's place."""
    subtrees = []
    for node, other in (tree.ends[branch], tree.ends[branch][::-1]):
        column = tree.position(int(node), int(other))
        subtrees += [taxa_behind(tree, int(tree.neighbours[node, (column + k) % 3]), int(node)) for k in (1, 2)]
    first, second = INTERCHANGES[kind][:2]
    return as_split(tree, subtrees[first] | subtrees[second])


def test_an_interchange_changes_the_splits_of_its_branch_alone(best):
    tree = best.tree
    own = list(splits_of(tree))
    for branch in inner(tree).tolist():
        for kind in (0, 1):
            found = inner_splits(interchange(tree, np.array([branch]), np.array([kind])))
            assert found == inner_splits(tree) - {own[branch]} | {interchanged_split(tree, branch, kind)}


def test_branches_that_do_not_meet_are_changed_at_once(best):
    tree = best.tree
    own, branches = list(splits_of(tree)), inner(tree)
    pairs = [(a, b) for a in branches for b in branches if a < b and not set(tree.ends[a]) & set(tree.ends[b])]
    assert pairs
    for a, b in pairs:
        found = inner_splits(interchange(tree, np.array([a, b]), np.array([1, 0])))
        new = {interchanged_split(tree, a, 1), interchanged_split(tree, b, 0)}
        assert found == inner_splits(tree) - {own[a], own[b]} | new


def test_each_alignment_makes_a_tree_its_own(best):
    tree = best.tree
    weights = np.array([[9, 0], [0, 9]], dtype=np.uint16)
    pool = RellPool(weights, np.random.default_rng(0))
    pool.add(Fake(tree, [-2, -2], {(1, 0): [-2.0, -1.0], (1, 1): [-3.0, -1.5]}))  # gains on the second one alone
    assert (pool.made[:, 0] == KEPT).all()
    assert np.flatnonzero(pool.made[:, 1] != KEPT).tolist() == [1]
    (first, one), (second, another) = pool.kept()
    assert one == another == 1
    branch = int(inner(tree)[1])
    expected = inner_splits(tree) - {list(splits_of(tree))[branch]} | {interchanged_split(tree, branch, 0)}
    assert {frozenset(inner_splits(first)), frozenset(inner_splits(second))} == {
        frozenset(inner_splits(tree)),
        frozenset(expected),
    }
    other = other_topologies(tree, 1)[0]
    pool.add(Fake(other, [-2, -1.5]))  # better than the tree, not than what was made of it
    assert pool.chosen[1] == 0
    pool.add(Fake(other_topologies(tree, 2)[1], [-2, -0.5]))
    assert pool.chosen[1] == 2
    assert (pool.made[:, 1] == KEPT).all()


def test_where_branches_meet_the_better_interchange_is_made():
    """Of a path of four branches, 0 - 1 - 2 - 3, the second gains most, then its neighbours, then the last."""
    adjacent = np.array([[1, 4, 4, 4], [0, 2, 4, 4], [1, 3, 4, 4], [2, 4, 4, 4]])
    gains = np.full((4, 2, 1), -5.0)
    gains[:, 1, 0] = 4.0, 9.0, 6.0, 2.0
    gained, made = choose_interchanges(gains, adjacent, np.random.default_rng(0))
    assert made[:, 0].tolist() == [KEPT, 1, KEPT, 1]
    assert gained.tolist() == [11.0]


def test_a_branch_without_support_takes_each_resolution_alike():
    gains = np.zeros((2, 2, 3000))
    gains[1] = -np.inf  # which may not be changed
    gained, made = choose_interchanges(gains, np.array([[1, 2, 2, 2], [0, 2, 2, 2]]), np.random.default_rng(0))
    assert np.bincount(made[0] - KEPT) == pytest.approx(1000, abs=130)  # five standard deviations
    assert (made[1] == KEPT).all()
    assert (gained == 0).all()


def test_trees_made_one_s_own_obey_a_constraint(best):
    """Every interchange gains, but some would break it."""
    names = best.tree.names
    clade = [names[taxon] for taxon in members_of(next(s for s in inner_splits(best.tree) if s.bit_count() == 4))]
    constraint = as_constraint(f"(({','.join(clade)}),{','.join(name for name in names if name not in clade)});", names)
    pool = RellPool(np.full((1, 50), 10, dtype=np.uint16), np.random.default_rng(0))
    gains = {(place, kind): [-1.0] for place in range(len(names) - 3) for kind in (0, 1)}
    pool.add(Fake(best.tree, [-2.0], gains), constraint)
    trees = [tree for tree, _ in pool.kept()]
    assert len(trees) > 5
    assert all(constraint.is_obeyed_by(tree) for tree in trees)
