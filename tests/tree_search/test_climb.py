"""Rounds of moves: which moves are applied together; the tree stays valid, and lnL never falls."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import assert_valid_tree, likelihood_of, make_tree, random_ends, random_mixture, simulate_codes

from plltool.optimise.lengths import smooth
from plltool.tree.splits import rf_distance
from plltool.tree_search import climb
from plltool.tree_search.climb import apply_moves, best_steps, climb_round, find_moves, nodes_near, rank_moves
from plltool.tree_search.neighbours import Insertions
from plltool.tree_search.scan import STEP_COLUMNS, Steps


def make_moves(rows):
    """Insertions from (joint, column, branch), all of equal lengths."""
    joints, columns, branches = np.array(rows, dtype=np.int32).T
    n = len(rows)
    return Insertions(
        joints,
        columns,
        branches,
        np.ones(n, dtype=bool),
        np.full(n, 0.1),
        np.tile([0.11, 0.12, 0.13], (n, 1)),
        -np.arange(n, dtype=float),
    )


def make_case(seed, n_taxa=12, n_patterns=150):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng, 4, 1)
    true_ends, true_lengths = random_ends(rng, n_taxa)
    codes = simulate_codes(rng, true_ends, true_lengths, n_taxa, n_patterns, mixture)
    data = codes, np.ones(n_patterns), mixture
    start = make_tree(*random_ends(rng, n_taxa), n_taxa)
    return likelihood_of(start, *data), make_tree(true_ends, true_lengths, n_taxa), data


def state(tree):
    return [array.tobytes() for array in (tree.neighbours, tree.edges, tree.ends, tree.lengths)]


CHAIN = [(0, 8), (1, 8), (8, 9), (9, 2), (9, 10), (10, 3), (10, 11), (11, 4), (11, 12), (12, 5), (12, 13)]
CHAIN += [(13, 6), (13, 7)]


@pytest.fixture
def chain():
    rng = np.random.default_rng(1)
    mixture = random_mixture(rng)
    tree = make_tree(CHAIN, np.full(13, 0.1), 8)
    codes = simulate_codes(rng, CHAIN, [0.1] * 13, 8, 20, mixture)
    return likelihood_of(tree, codes, np.ones(20), mixture)


def move(tree, joint, subtree, target):
    return joint, tree.position(joint, subtree), CHAIN.index(target)


def test_moves_that_touch_the_same_nodes_are_skipped(chain):
    """The second shares node 9 with the first; the third is far from both."""
    tree = chain.tree
    moves = make_moves([move(tree, 9, 2, (0, 8)), move(tree, 10, 3, (9, 2)), move(tree, 12, 5, (13, 6))])
    before = state(tree)
    applied = apply_moves(chain, moves, np.arange(3))
    assert [index for index, _ in applied] == [0, 2]
    assert_valid_tree(tree)
    assert tree.lengths[tree.edge_between(9, 2)] == 0.13
    for _, undo in reversed(applied):
        undo.restore(tree)
    assert state(tree) == before


def test_two_moves_that_each_carry_the_others_target(chain):
    """Only the first move is applied: both together would break the tree."""
    tree = chain.tree
    moves = make_moves([move(tree, 11, 12, (0, 8)), move(tree, 10, 9, (13, 7))])
    for ranked in ([0, 1], [1, 0]):
        before = state(tree)
        applied = apply_moves(chain, moves, np.array(ranked))
        assert [index for index, _ in applied] == ranked[:1]
        assert_valid_tree(tree)
        applied[0][1].restore(tree)
        assert state(tree) == before


def test_a_longer_chain_where_no_node_is_shared():
    """As above, but the two moves share no node, so only the check of the subtree can refuse the second."""
    n = 12
    inner = list(range(n, 2 * n - 2))
    ends = [(0, inner[0])] + [(i + 1, node) for i, node in enumerate(inner)] + [(n - 1, inner[-1])]
    ends += list(pairwise(inner))
    rng = np.random.default_rng(2)
    mixture = random_mixture(rng)
    codes = simulate_codes(rng, ends, [0.1] * len(ends), n, 10, mixture)
    likelihood = likelihood_of(make_tree(ends, np.full(len(ends), 0.1), n), codes, np.ones(10), mixture)
    tree = likelihood.tree
    a = inner[5], tree.position(inner[5], inner[6]), ends.index((0, inner[0]))
    b = inner[3], tree.position(inner[3], inner[2]), ends.index((n - 1, inner[-1]))
    touched = [{j, *tree.neighbours[j].tolist(), *ends[e]} for j, _, e in (a, b)]
    moves = make_moves([a, b])
    applied = apply_moves(likelihood, moves, np.arange(2))
    assert [index for index, _ in applied] == [0]
    assert_valid_tree(tree)
    assert touched[0] & touched[1] <= {inner[4]}


@pytest.fixture
def many_insertions(monkeypatch):
    """Nearly every insertion that is scored has its lengths optimised."""
    monkeypatch.setattr(climb, "INSERTIONS_PER_PRUNE", 1000)
    monkeypatch.setattr(climb, "INSERTION_CUTOFF", 1000.0)


@pytest.mark.parametrize("seed", range(4))
def test_blind_application_of_everything_found(seed, many_insertions):
    """All moves of a neighbourhood, good or bad, in any order: the tree stays valid and is restored bit for bit."""
    likelihood, _, _ = make_case(seed)
    lnl, _ = likelihood.all_derivatives()
    moves = find_moves(likelihood, lnl - 1e6, 5)
    tree = likelihood.tree
    before = state(tree)
    applied = apply_moves(likelihood, moves, np.random.default_rng(seed).permutation(len(moves)))
    assert applied
    assert_valid_tree(tree)
    for _, undo in reversed(applied):
        undo.restore(tree)
    assert state(tree) == before


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_climbing_reaches_the_true_tree_or_better(seed):
    """From random trees; with other seeds a climb may end lower: 5 of the first 24 do."""
    likelihood, true_tree, data = make_case(seed)
    lnl = smooth(likelihood)
    start = rf_distance(likelihood.tree, true_tree)
    for _ in range(12):
        after = climb_round(likelihood, lnl, 5)
        assert after.lnl >= lnl
        assert after.lnl > lnl or not after.n_moves
        assert np.all((after.joints >= 12) & (after.joints < likelihood.tree.n_nodes))
        assert_valid_tree(likelihood.tree)
        assert likelihood.lnl() == pytest.approx(after.lnl, rel=1e-12)
        lnl = after.lnl
        if not after.n_moves:
            break
    assert after.n_moves == 0
    assert rf_distance(likelihood.tree, true_tree) < start
    lnl = smooth(likelihood)
    assert lnl >= smooth(likelihood_of(true_tree, *data)) - 0.1


def test_moves_that_do_not_pay_are_taken_back(monkeypatch, many_insertions):
    """Moves that promise much and gain nothing: the tree is as before, bit for bit."""
    likelihood, _, _ = make_case(5)
    lnl = smooth(likelihood)
    for _ in range(12):
        after = climb_round(likelihood, lnl, 5)
        lnl = after.lnl
        if not after.n_moves:
            break
    lnl = smooth(likelihood, 1e-4)
    before = state(likelihood.tree)
    monkeypatch.setattr(climb, "rank_moves", lambda moves, lnl: np.arange(len(moves)))
    after = climb_round(likelihood, lnl, 5)
    assert (after.lnl, after.n_moves, len(after.joints)) == (lnl, 0, 0)
    assert state(likelihood.tree) == before
    assert likelihood.lnl() == pytest.approx(lnl, rel=1e-12)


def make_steps(prune, scores, typical_loss):
    columns = {name: np.zeros(len(prune), dtype=np.int64) for name in STEP_COLUMNS}
    columns["prune"] = np.array(prune, dtype=np.int64)
    return Steps(**columns, prunes=None, scores=np.array(scores), typical_loss=typical_loss)


@pytest.mark.parametrize(
    ("per_prune", "cutoff", "expected"), [(3, 5.0, [1, 2, 3, 6, 7]), (1, 5.0, [1, 7]), (3, 0.25, [1, 3]), (3, 0.0, [])]
)
def test_best_steps(monkeypatch, per_prune, cutoff, expected):
    monkeypatch.setattr(climb, "INSERTIONS_PER_PRUNE", per_prune)
    monkeypatch.setattr(climb, "INSERTION_CUTOFF", cutoff)
    steps = make_steps([0, 0, 0, 0, 0, 1, 2, 2], [-5.0, -1.0, -3.0, -2.0, -4.0, -99.0, -7.0, -6.0], 10.0)
    assert best_steps(steps, 0.0).tolist() == expected


def test_nodes_near(chain):
    """On the chain 8 - 9 - 10 - 11 - 12 - 13 with its tips."""
    assert np.flatnonzero(nodes_near(chain.tree, np.array([10]), 0)).tolist() == [10]
    assert np.flatnonzero(nodes_near(chain.tree, np.array([10]), 1)).tolist() == [3, 9, 10, 11]
    assert np.flatnonzero(nodes_near(chain.tree, np.array([8, 13]), 1)).tolist() == [0, 1, 6, 7, 8, 9, 12, 13]


def test_only_the_subtrees_asked_for_move(chain):
    lnl, _ = chain.all_derivatives()
    moves = find_moves(chain, lnl - 1e6, 5, np.array([9, 12]))
    assert set(moves.joints.tolist()) == {9, 12}


def test_rank_moves():
    moves = make_moves([(8, 0, 0)] * 5)
    gains = np.array([0.5, climb.MIN_MOVE_GAIN / 2, 2.0, 2.0 + 1e-6, -1.0])  # two are equal on the grid
    moves = Insertions(
        moves.joints, moves.columns, moves.branches, moves.toward_gap, moves.healed, moves.lengths, -100.0 + gains
    )
    assert rank_moves(moves, -100.0).tolist() == [2, 3, 0]


@pytest.mark.parametrize(("lnl", "expected"), [(-1e5, 0.5), (-1e6, 3.0)])
def test_lengths_between_rounds_are_as_precise_as_lnl_needs(monkeypatch, lnl, expected):
    """The search is told of an lnL that it beats with any move; 3e-6 of it are 0.3 and 3."""
    likelihood, _, _ = make_case(2)
    asked = []

    def note(likelihood, epsilon):
        asked.append(epsilon)
        return smooth(likelihood, epsilon)

    monkeypatch.setattr(climb, "smooth", note)
    assert climb_round(likelihood, lnl, 1).n_moves > 0
    assert asked == [pytest.approx(expected)]
