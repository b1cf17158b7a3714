"""Climbs, perturbations and start trees under a constraint: every tree on the way has all splits of the constraint."""

import numpy as np
import pytest
from helpers import (
    assert_valid_tree,
    caterpillar,
    likelihood_of,
    make_tree,
    random_ends,
    random_mixture,
    simulate_codes,
)
from oracles.constraint import nested_splits, newick, obeys, random_nested
from oracles.parsimony import fitch_score

from plltool.constants import NO_NODE
from plltool.io.tree_files import read_constraint
from plltool.optimise.lengths import smooth
from plltool.tree.constraint import ANYWHERE, Regions
from plltool.tree_search import climb, fusing
from plltool.tree_search import scan as scan_module
from plltool.tree_search.climb import apply_moves, climb_round, find_moves
from plltool.tree_search.fusing import perturb
from plltool.tree_search.neighbours import Insertions
from plltool.tree_search.parsimony import parsimony_tree

N_TAXA = 14
NAMES = [f"t{i}" for i in range(N_TAXA)]


def make_case(seed, share=0.7):
    """A likelihood whose tree obeys a random constraint that contradicts the data, and the constraint in two forms."""
    rng = np.random.default_rng(seed)
    nested = ()
    while not nested_splits(nested):
        n_members = N_TAXA if share == 1 else int(rng.integers(5, round(share * N_TAXA) + 1))
        nested = random_nested(rng, [NAMES[i] for i in rng.choice(N_TAXA, n_members, replace=False)], 0.3)
    constraint = read_constraint(newick(nested) + ";", NAMES)
    mixture = random_mixture(rng, 4, 1)
    codes = simulate_codes(rng, *random_ends(rng, N_TAXA), N_TAXA, 120, mixture)
    return likelihood_of(constraint.random_tree(rng), codes, np.ones(120), mixture), constraint, nested


@pytest.fixture
def watch(monkeypatch):
    """Checks every tree whose lengths are smoothed in a climb; returns the growing list of results."""
    seen = []

    def watching(likelihood, *args, **kwargs):
        seen.append(likelihood.tree.ends.copy())
        return smooth(likelihood, *args, **kwargs)

    monkeypatch.setattr(climb, "smooth", watching)
    monkeypatch.setattr(fusing, "smooth", watching)
    return seen


@pytest.mark.parametrize(("seed", "share"), [(1, 0.7), (2, 0.7), (3, 1), (4, 1)])
def test_rounds_and_perturbations_never_hold_a_tree_that_breaks_it(seed, share, watch):
    likelihood, likelihood.constraint, nested = make_case(seed, share)
    lnl = start = smooth(likelihood)
    for radius in (1, 5, 5, 5):
        done = climb_round(likelihood, lnl, radius)
        assert done.lnl >= lnl
        lnl = done.lnl
    rng = np.random.default_rng(seed)
    for _ in range(5):
        lnl, _ = perturb(likelihood, lnl, rng)
    assert lnl > start + 1, "else nothing was tested"
    assert len(watch) > 10
    assert all(obeys(ends, NAMES, nested) for ends in [*watch, likelihood.tree.ends])


@pytest.mark.parametrize("seed", range(3))
def test_every_move_found_is_legal_and_no_better_one_is_crowded_out(seed, monkeypatch):
    """The best legal insertions of a subtree are found, even if all better ones are illegal."""
    likelihood, likelihood.constraint, nested = make_case(10 + seed)
    lnl = smooth(likelihood)
    tree = likelihood.tree
    monkeypatch.setattr(climb, "INSERTION_CUTOFF", np.inf)
    monkeypatch.setattr(climb, "INSERTIONS_PER_PRUNE", 1)
    monkeypatch.setattr(scan_module, "WALK_CUTOFF", np.inf)
    found = find_moves(likelihood, lnl, 8)
    likelihood.constraint = None
    monkeypatch.setattr(climb, "INSERTIONS_PER_PRUNE", 1000)
    every = find_moves(likelihood, lnl, 8)
    legal = np.zeros(len(every), dtype=bool)
    for k in range(len(every)):
        undone = apply_moves(likelihood, every, np.array([k]))
        legal[k] = bool(undone) and obeys(tree.ends, NAMES, nested)
        for _, undo in undone:
            undo.restore(tree)
        likelihood.topology_changed()
    assert 0 < np.count_nonzero(legal) < len(every)
    of_every = list(zip(every.joints.tolist(), every.columns.tolist(), every.branches.tolist(), strict=True))
    of_found = list(zip(found.joints.tolist(), found.columns.tolist(), found.branches.tolist(), strict=True))
    assert set(of_found) <= {row for row, good in zip(of_every, legal, strict=True) if good}
    subtrees = {row[:2] for row, good in zip(of_every, legal, strict=True) if good}
    assert {row[:2] for row in of_found} == subtrees, "each subtree that may move has a move"


def conflict():
    """Two moves on a chain, each legal alone; together they move one of the pair t1, t8 past the other."""
    rng = np.random.default_rng(1)
    mixture = random_mixture(rng)
    ends = caterpillar(10)
    tree = make_tree(ends, np.full(17, 0.1), 10)
    likelihood = likelihood_of(tree, simulate_codes(rng, ends, [0.1] * 17, 10, 20, mixture), np.ones(20), mixture)
    rows = [(10, 1, (14, 15)), (17, 8, (12, 13))]
    joints = np.array([joint for joint, _, _ in rows], dtype=np.int32)
    columns = np.array([tree.position(joint, subtree) for joint, subtree, _ in rows], dtype=np.int32)
    targets = np.array([tree.edge_between(*target) for _, _, target in rows])
    promised = np.array([-1.0, -2.0])
    moves = Insertions(joints, columns, targets, np.ones(2, bool), np.full(2, 0.1), np.full((2, 3), 0.1), promised)
    nested = ("t0", "t1", "t2", ("t7", "t8", "t9"))
    return likelihood, moves, read_constraint(newick(nested) + ";", tree.names), nested


def test_moves_that_break_it_only_together_are_not_applied_together():
    likelihood, moves, constraint, nested = conflict()
    tree = likelihood.tree
    applied = apply_moves(likelihood, moves, np.arange(2))
    assert len(applied) == 2
    assert not obeys(tree.ends, tree.names, nested), "else nothing is tested"
    for _, undo in reversed(applied):
        undo.restore(tree)
    likelihood.constraint = constraint
    for order in ([0, 1], [1, 0]):
        applied = apply_moves(likelihood, moves, np.array(order))
        assert [move for move, _ in applied] == order[:1]
        assert obeys(tree.ends, tree.names, nested)
        assert_valid_tree(tree)
        for _, undo in reversed(applied):
            undo.restore(tree)


def test_a_resolved_constraint_leaves_no_moves():
    likelihood, _, _ = make_case(1)
    text = "t0"
    for name in NAMES[1:-2]:
        text = f"({text},{name})"
    resolved = read_constraint(f"({text},{NAMES[-2]},{NAMES[-1]});", NAMES)
    assert resolved.n_splits == N_TAXA - 3
    likelihood.constraint = resolved
    likelihood.set_tree(resolved.random_tree(np.random.default_rng(1)))
    lnl = smooth(likelihood)
    assert len(find_moves(likelihood, lnl, 5)) == 0
    assert climb_round(likelihood, lnl, 5).n_moves == 0


@pytest.mark.parametrize("seed", range(10))
def test_parsimony_start_trees(seed):
    _, constraint, nested = make_case(20 + seed, 1 if seed % 2 else 0.7)
    rng = np.random.default_rng(seed)
    codes = 1 << rng.integers(0, 4, (N_TAXA, 60))
    tree = parsimony_tree(codes, np.ones(60), NAMES, rng, constraint, radius=0)
    assert_valid_tree(tree)
    assert obeys(tree.ends, NAMES, nested)
    at_random = [fitch_score(constraint.random_tree(rng).ends.tolist(), codes, np.ones(60)) for _ in range(20)]
    assert fitch_score(tree.ends.tolist(), codes, np.ones(60)) <= np.median(at_random)


def test_a_free_subtree_walks_through_whatever_it_loses(monkeypatch):
    """All branches within the radius are tried for it, however far lnL falls on the way; others are cut short."""
    monkeypatch.setattr(scan_module, "WALK_CUTOFF", -1e9)  # every walk ends at the first pause
    monkeypatch.setattr(scan_module, "WALK_LEAST", -1e9)
    monkeypatch.setattr(scan_module, "SCAN_PHASES", (1,))
    likelihood, constraint, _ = make_case(21, 0.5)
    lnl, tree = smooth(likelihood), likelihood.tree
    prunes = scan_module.all_prunes(likelihood)
    homes = Regions(constraint, tree).homes
    likelihood.constraint = constraint
    steps = scan_module.scan(likelihood, prunes, scan_module.MAX_RADIUS, lnl)
    free = [taxon for taxon in range(N_TAXA) if constraint.tips[taxon] == NO_NODE]
    for prune, (joint, column) in enumerate(zip(prunes.joints.tolist(), prunes.columns.tolist(), strict=True)):
        tried = set(steps.branch[steps.prune == prune].tolist())
        if tree.neighbours[joint, column] in free:
            assert len(tried) == tree.n_edges - 3  # all but its own and the two next to the gap
        elif homes[joint, column] != ANYWHERE:
            assert len(tried) <= 4
