"""Prune-and-regraft: the tree after a move, refused moves, and undoing bit for bit."""

import numpy as np
import pytest
from helpers import assert_valid_tree, make_tree, random_ends

from plltool.tree.moves import prune_regraft, subtree_contains
from plltool.tree.splits import rf_distance

# ((0,1),2,(3,(4,5))) with inner nodes 6: (0,1)  7: 2  8: 3  9: (4,5)
ENDS = [(0, 6), (1, 6), (6, 7), (7, 2), (7, 8), (8, 3), (8, 9), (9, 4), (9, 5)]
LENGTHS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
BRANCH = {pair: index for index, pair in enumerate(ENDS)}


@pytest.fixture
def tree():
    return make_tree(ENDS, LENGTHS, 6)


def state(tree):
    return [array.tobytes() for array in (tree.neighbours, tree.edges, tree.ends, tree.lengths)]


def length_between(tree, a, b):
    return tree.lengths[tree.edge_between(a, b)]


def test_a_move_by_hand(tree):
    """Tip 2 with its joint 7 goes into the branch of tip 4."""
    target = BRANCH[(9, 4)]
    undo = prune_regraft(tree, 7, 2, target, healed=0.75, lengths=(0.11, 0.22, 0.33))
    assert undo is not None
    assert_valid_tree(tree)
    assert sorted(tree.neighbours[7].tolist()) == [2, 4, 9]
    assert length_between(tree, 6, 8) == 0.75
    assert length_between(tree, 7, 9) == 0.11  # the first end of the target
    assert length_between(tree, 7, 4) == 0.22
    assert length_between(tree, 7, 2) == 0.33
    assert tree.ends[target].tolist() == [9, 7]  # the target runs from its first end to the joint
    for a, b in ((0, 6), (1, 6), (8, 3), (8, 9), (9, 5)):
        assert length_between(tree, a, b) == LENGTHS[BRANCH[(a, b)]]


@pytest.mark.parametrize(
    ("joint", "subtree", "target"),
    [
        (7, 2, (6, 7)),  # touches the joint
        (7, 2, (7, 8)),
        (7, 2, (7, 2)),  # the subtree's own branch
        (7, 8, (7, 8)),
        (7, 8, (8, 3)),  # inside the subtree
        (7, 8, (9, 5)),
        (8, 7, (0, 6)),
    ],
)
def test_moves_that_are_none(tree, joint, subtree, target):
    before = state(tree)
    assert prune_regraft(tree, joint, subtree, BRANCH[target], 0.5, (0.1, 0.2, 0.3)) is None
    assert state(tree) == before


def test_what_a_subtree_contains(tree):
    inside = {branch for branch in range(9) if subtree_contains(tree, 8, 7, branch)}
    assert inside == {BRANCH[pair] for pair in ((7, 8), (8, 3), (8, 9), (9, 4), (9, 5))}
    assert [branch for branch in range(9) if subtree_contains(tree, 2, 7, branch)] == [BRANCH[(7, 2)]]


def expected_splits_after(tree, joint, subtree, target):
    """The tree after a move, built from node pairs, independently of `prune_regraft`."""
    near, far = (int(n) for n in tree.neighbours[joint] if n != subtree)
    target_pair = tuple(tree.ends[target].tolist())
    dropped = [{joint, near}, {joint, far}, set(target_pair)]
    pairs = [tuple(pair) for pair in tree.ends.tolist() if set(pair) not in dropped]
    pairs += [(near, far), (target_pair[0], joint), (joint, target_pair[1])]
    return make_tree(pairs, None, tree.n_taxa)


@pytest.mark.parametrize("seed", range(4))
def test_every_move_on_random_trees(seed):
    rng = np.random.default_rng(seed)
    n_taxa = 9
    tree = make_tree(*random_ends(rng, n_taxa), n_taxa)
    original = tree.copy()
    before = state(tree)
    done = 0
    for joint in range(n_taxa, tree.n_nodes):
        for subtree in original.neighbours[joint].tolist():
            for target in range(tree.n_edges):
                lengths = tuple(rng.random(3).tolist())
                first, second = (int(n) for n in original.ends[target])
                undo = prune_regraft(tree, joint, subtree, target, 0.125, lengths)
                if undo is None:
                    touches = joint in (first, second)
                    assert touches or subtree_contains(original, subtree, joint, target)
                    assert state(tree) == before
                    continue
                done += 1
                assert_valid_tree(tree)
                expected = expected_splits_after(original, joint, subtree, target)
                assert rf_distance(tree, expected) == 0
                found = [length_between(tree, joint, node) for node in (first, second, subtree)]
                assert tuple(found) == lengths
                near, far = (int(n) for n in original.neighbours[joint] if n != subtree)
                if {near, far} & {first, second}:  # next to the gap: one interchange, or none for a neighbouring tip
                    assert rf_distance(tree, original) <= 2
                else:
                    assert rf_distance(tree, original) > 0
                undo.restore(tree)
                assert state(tree) == before
    assert done > 150


def test_moves_undone_in_reverse_order():
    rng = np.random.default_rng(9)
    tree = make_tree(*random_ends(rng, 20), 20)
    states, undos = [], []
    while len(undos) < 30:
        states.append(state(tree))
        joint = int(rng.integers(20, tree.n_nodes))
        subtree = int(rng.choice(tree.neighbours[joint]))
        undo = prune_regraft(tree, joint, subtree, int(rng.integers(tree.n_edges)), 0.5, (0.1, 0.2, 0.3))
        if undo is None:
            states.pop()
        else:
            undos.append(undo)
    assert_valid_tree(tree)
    for undo, before in zip(reversed(undos), reversed(states), strict=True):
        undo.restore(tree)
        assert state(tree) == before


def test_two_moves_that_each_carry_the_others_target():
    """A: subtree at 8 into a branch of 6's side; B: subtree at 6 into a branch of 8's side. After A, B is none."""
    ends = [(0, 8), (1, 8), (8, 9), (9, 2), (9, 10), (10, 3), (10, 11), (11, 4), (11, 12), (12, 5), (12, 13)]
    ends += [(13, 6), (13, 7)]
    tree = make_tree(ends, None, 8)
    a = (11, 12, ends.index((0, 8)))  # joint, subtree, target
    b = (10, 9, ends.index((13, 7)))
    assert subtree_contains(tree, 9, 10, a[2])  # what B prunes carries A's target
    assert subtree_contains(tree, 12, 11, b[2])  # and the reverse
    for first, second in ((a, b), (b, a)):
        moved = tree.copy()
        assert prune_regraft(moved, *first, 0.1, (0.1, 0.1, 0.1)) is not None
        assert_valid_tree(moved)
        before = state(moved)
        assert prune_regraft(moved, *second, 0.1, (0.1, 0.1, 0.1)) is None
        assert state(moved) == before
