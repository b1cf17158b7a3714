"""Moves and root places under processes that are not time-reversible, against the oracle's lnL of each tree."""

import numpy as np
import pytest
from helpers import directed_mix, likelihood_of, make_tree, random_directed_mixture, random_ends, simulate_codes
from oracles.likelihood import pruning
from scipy.optimize import minimize

from plltool.tree.moves import prune_regraft
from plltool.tree.rooted import add_root, drop_root, inner_branches
from plltool.tree.splits import rf_distance
from plltool.tree.topology import Tree
from plltool.tree_search.climb import apply_moves, climb_round, describe_places, move_root, scan_root
from plltool.tree_search.neighbours import NEIGHBOUR_EPSILON, neighbour_sites, optimise_insertions
from plltool.tree_search.scan import all_prunes, scan

N_TAXA = 7


def oracle_lnl(tree, codes, mixture):
    """The root is a node of two branches, and the first of the inner nodes, from which the oracle starts."""
    n, top = tree.n_taxa, int(tree.neighbours[0, 0])
    number = {0: None, top: n - 1}
    for tip in range(1, n):
        number[tip] = tip - 1
    for k, node in enumerate(node for node in range(n, tree.n_nodes) if node != top):
        number[node] = n + k
    own = int(tree.edges[0, 0])
    branches = [(number[a], number[b]) for e, (a, b) in enumerate(tree.ends.tolist()) if e != own]
    return sum(pruning(branches, np.delete(tree.lengths, own), codes[1:].T.tolist(), mixture.oracle))


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(7)
    ends, lengths = random_ends(rng, N_TAXA, 0.15)
    mixture = random_directed_mixture(rng, 4, 2)
    tree = add_root(make_tree(ends, lengths, N_TAXA), 3, 0.6)
    rows = simulate_codes(rng, *random_ends(rng, N_TAXA, 0.3), N_TAXA, 40, mixture)
    return tree, np.vstack([np.full_like(rows[:1], 15), rows]), mixture


def likelihood_for(case):
    tree, codes, mixture = case
    return likelihood_of(tree.copy(), codes, np.ones(codes.shape[1]), mixture)


def test_the_root_comes_off():
    tree = make_tree(*random_ends(np.random.default_rng(1), 6), 6)
    for branch in range(tree.n_edges):
        rooted = add_root(tree, branch, 0.3)
        assert rooted.is_rooted
        unrooted = drop_root(rooted)
        assert rf_distance(unrooted, tree) == 0
        assert unrooted.total_length() == pytest.approx(tree.total_length())


def test_scan(case):
    """Every score is the oracle's lnL of the tree after the move; subtrees move without the root."""
    likelihood = likelihood_for(case)
    tree = likelihood.tree
    lnl = likelihood.lnl()
    assert lnl == pytest.approx(oracle_lnl(tree, *case[1:]), rel=1e-11)
    prunes = all_prunes(likelihood)
    assert len(prunes) == 2 * (tree.n_taxa - 2)
    steps = scan(likelihood, prunes, 5, lnl)
    assert len(steps) > 50
    for index in range(0, len(steps), 3):
        moved = tree.copy()
        prune, branch = int(steps.prune[index]), int(steps.branch[index])
        joint, column = int(prunes.joints[prune]), int(prunes.columns[prune])
        subtree = int(tree.neighbours[joint, column])
        half, own = tree.lengths[branch] / 2, tree.lengths[tree.edges[joint, column]]
        assert prune_regraft(moved, joint, subtree, branch, prunes.healed[prune], (half, half, own)) is not None
        assert steps.scores[index] == pytest.approx(oracle_lnl(moved, *case[1:]), rel=1e-10)


def test_optimised_insertions(case):
    likelihood = likelihood_for(case)
    steps = scan(likelihood, all_prunes(likelihood), 3, likelihood.lnl())
    chosen = np.arange(0, len(steps), 5)
    moves = optimise_insertions(likelihood, steps, chosen, -np.inf)
    assert np.all(moves.lnl >= steps.scores[chosen] - 1e-9)
    for k in range(len(moves)):
        moved = likelihood_for(case)
        assert apply_moves(moved, moves, np.array([k]))
        assert moves.lnl[k] == pytest.approx(oracle_lnl(moved.tree, *case[1:]), rel=1e-10)


def test_root_places(case):
    """The lnL of each place is the oracle's, and none of its two lengths can be improved."""
    likelihood = likelihood_for(case)
    tree = likelihood.tree
    before = likelihood.lnl()
    places = scan_root(likelihood)
    assert likelihood.lnl() == before
    assert len(places.lnl) == 2 * N_TAXA - 3
    assert places.lnl[0] >= before
    unrooted = drop_root(tree)
    for number, (first, second) in enumerate(places.ends.tolist()):
        moved = tree.copy()
        top, own = int(tree.neighbours[0, 0]), int(tree.edges[0, 0])
        lengths = places.lengths[number]
        if number:
            healed = tree.lengths[np.setdiff1d(tree.edges[top], own)].sum()
            around = (*lengths, tree.lengths[own])
            prune_regraft(moved, top, 0, int(places.branches[number]), healed, around)
        for factors in ([1, 1], [1.2, 1], [1, 1.2], [0.8, 1], [1, 0.8]):
            around = [moved.edge_between(top, first), moved.edge_between(top, second)]
            moved.lengths[around] = lengths * factors
            assert oracle_lnl(moved, *case[1:]) <= places.lnl[number] + NEIGHBOUR_EPSILON
        moved.lengths[around] = lengths
        assert places.lnl[number] == pytest.approx(oracle_lnl(moved, *case[1:]), rel=1e-10)
        assert rf_distance(drop_root(moved), unrooted) == 0


def test_descriptions_of_places(case):
    likelihood = likelihood_for(case)
    found = describe_places(likelihood, scan_root(likelihood))
    assert [place.lnl for place in found] == sorted((place.lnl for place in found), reverse=True)
    assert len({place.taxa for place in found}) == 2 * N_TAXA - 3
    assert all(len(place.taxa) <= N_TAXA / 2 and "(root)" not in place.taxa for place in found)
    assert sum(len(place.taxa) == 1 for place in found) == N_TAXA


def test_the_root_moves_to_the_best_place(case):
    likelihood = likelihood_for(case)
    lnl = likelihood.lnl()
    best = scan_root(likelihood).lnl.max()
    reached = move_root(likelihood, lnl)
    assert reached >= best > lnl
    assert reached == pytest.approx(oracle_lnl(likelihood.tree, *case[1:]), rel=1e-11)
    assert scan_root(likelihood).lnl.max() < reached + 0.02
    assert likelihood.tree.is_rooted


def interchanged(tree, branch, which):
    """The rooted tree after an interchange at an inner branch of the unrooted one, and the branches around it."""
    ends, top = tree.ends.copy(), int(tree.neighbours[0, 0])
    u, v = (int(node) for node in tree.ends[branch])
    if top in (u, v):  # the root stays between the two nodes
        u, v = (int(node) for node in tree.neighbours[top] if node != 0)
    path = {u, v, top} if top in tree.neighbours[u] and top in tree.neighbours[v] else {u, v}
    outside = [[int(node) for node in tree.neighbours[end] if node not in path] for end in (u, v)]
    for node, old, new in ((outside[0][0], u, v), (outside[1][which], v, u)):
        row = ends[tree.edge_between(node, old)]
        row[row == old] = new
    inner = [tree.edge_between(a, b) for a in path for b in path if a < b and b in tree.neighbours[a]]
    around = [tree.edge_between(node, end) for nodes, end in zip(outside, (u, v), strict=True) for node in nodes]
    return Tree.from_edges(tree.names, ends, tree.lengths), [*inner, *around]


@pytest.mark.parametrize("place", [0, 1])
def test_interchanges(place):
    """They are as likely as scipy can make them, with the root within a subtree, and on the inner branch."""
    rng = np.random.default_rng(place)
    circle = 2 * place * np.roll(np.eye(4), 1, axis=1)
    mixture = directed_mix([(1.0, rng.random((4, 4)) + 0.1 + circle, 1.0)])
    unrooted = make_tree(*random_ends(rng, N_TAXA, 0.3), N_TAXA)
    rows = simulate_codes(rng, unrooted.ends, unrooted.lengths, N_TAXA, 60, mixture)
    codes = np.vstack([np.full_like(rows[:1], 15), rows])
    is_inner = unrooted.is_inner_branch
    tree = add_root(unrooted, int(np.flatnonzero(is_inner == bool(place))[1]), 0.4)
    branches = inner_branches(tree)
    assert len(branches) == N_TAXA - 3
    likelihood = likelihood_of(tree.copy(), codes, np.ones(codes.shape[1]), mixture)
    found = neighbour_sites(likelihood, branches).sum(axis=2)
    own_branches = set(tree.edges[tree.neighbours[0, 0]].tolist())
    assert bool(own_branches & set(branches.tolist())) == bool(place)
    for branch, lnls in zip(branches.tolist(), found, strict=True):
        expected = []
        for which in (0, 1):
            other, around = interchanged(tree, branch, which)
            assert len(around) == 5 + (branch in own_branches)
            assert rf_distance(drop_root(other), drop_root(tree)) == 2

            def loss(logs, other=other, around=around):
                other.lengths[around] = np.exp(logs)
                return -oracle_lnl(other, codes, mixture)

            bounds = [(np.log(1e-6), np.log(5))] * len(around)
            expected.append(-minimize(loss, np.log(tree.lengths[around]), method="L-BFGS-B", bounds=bounds).fun)
        np.testing.assert_allclose(sorted(lnls), sorted(expected), rtol=0, atol=0.005)  # NEIGHBOUR_EPSILON


def test_climbing(case):
    likelihood = likelihood_for(case)
    lnl = likelihood.lnl()
    done = climb_round(likelihood, lnl, 5)
    assert done.n_moves
    assert done.lnl > lnl
    assert done.lnl == pytest.approx(oracle_lnl(likelihood.tree, *case[1:]), rel=1e-11)
