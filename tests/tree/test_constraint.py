"""Constraints against a slow, obvious method: make each move, list the splits, compare."""

from collections import Counter

import numpy as np
import pytest
from helpers import assert_valid_tree
from oracles.constraint import edge_splits, nested_splits, obeys, random_nested

from plltool.tree.constraint import Growth, Regions, make_constraint
from plltool.tree.moves import attach_tip, prune_regraft, random_tree
from plltool.tree.topology import Tree


def names_of(n_taxa):
    return [f"t{i}" for i in range(n_taxa)]


def constrain(nested, names):
    """The Constraint given by nested tuples."""
    branches, taxa, nodes = [], {}, iter(range(10_000))

    def build(part):
        node = next(nodes)
        if isinstance(part, tuple):
            branches.extend((node, build(child)) for child in part)
        else:
            taxa[node] = names.index(part)
        return node

    build(nested)
    return make_constraint(names, branches, taxa)


def random_case(rng, least=5, most=12):
    """Names, members and nested tuples of a constraint with at least one split; in some cases all taxa are members."""
    while True:
        names = names_of(int(rng.integers(least, most + 1)))
        n_members = len(names) if rng.random() < 0.3 else int(rng.integers(4, len(names) + 1))
        members = [names[i] for i in rng.choice(len(names), n_members, replace=False)]
        nested = random_nested(rng, members, rng.choice([0.3, 0.5, 0.9]))
        if nested_splits(nested):
            return names, members, nested


def test_splits_are_counted_and_a_star_is_no_constraint():
    names = names_of(7)
    assert constrain((("t0", "t1"), ("t2", "t3"), "t4", ("t5", "t6")), names).n_splits == 3
    assert constrain((("t5", "t1"), ("t2", "t3")), names).n_splits == 1  # the root's two branches are one
    assert constrain((("t5", "t1"), "t2", "t3"), names).n_members == 4
    assert constrain(("t0", "t1", "t2", "t3", "t4"), names) is None
    assert constrain((("t0", "t1"), "t2"), names) is None


@pytest.mark.parametrize("seed", range(20))
def test_who_obeys_and_which_split_is_violated(seed):
    rng = np.random.default_rng(seed)
    names, members, nested = random_case(rng)
    constraint = constrain(nested, names)
    assert constraint.n_splits == len(nested_splits(nested))
    for k in range(10):
        tree = constraint.random_tree(rng) if k % 2 else random_tree(names, rng)
        assert_valid_tree(tree)
        expected = obeys(tree.ends, names, nested)
        assert expected or k % 2 == 0, "a random tree that obeys"
        assert constraint.is_obeyed_by(tree) == expected
        sides = constraint.violated_split(tree)
        assert (sides is None) == expected
        if sides is not None:
            split = frozenset(map(frozenset, sides))
            assert split in nested_splits(nested) - edge_splits(tree.ends, names, frozenset(members))
            assert len(sides[0]) <= len(sides[1])


@pytest.mark.parametrize("seed", range(25))
def test_every_insertion_of_every_subtree(seed):
    rng = np.random.default_rng(100 + seed)
    names, _, nested = random_case(rng)
    constraint = constrain(nested, names)
    tree = constraint.random_tree(rng)
    joints, columns = (array.ravel() for array in np.mgrid[tree.n_taxa : tree.n_nodes, :3])
    regions = Regions(constraint, tree)
    for joint, column in zip(joints.tolist(), columns.tolist(), strict=True):
        admitted = regions.admit(np.full(tree.n_edges, regions.homes[joint, column]), np.arange(tree.n_edges))
        for target in range(tree.n_edges):
            moved = tree.copy()
            root = int(tree.neighbours[joint, column])
            if prune_regraft(moved, joint, root, target, 0.1, (0.1, 0.1, 0.1)) is not None:
                assert admitted[target] == obeys(moved.ends, names, nested), (nested, joint, root, target)


def test_regions_of_a_tree_that_does_not_obey_are_refused():
    names = names_of(4)
    constraint = constrain((("t0", "t1"), ("t2", "t3")), names)
    with pytest.raises(ValueError, match="does not obey"):
        Regions(constraint, Tree.from_edges(names, [(0, 4), (2, 4), (4, 5), (1, 5), (3, 5)]))


@pytest.mark.parametrize("seed", range(20))
def test_growing_member_by_member(seed):
    """A branch is legal if and only if the tree with the tip there has every split of the constraint placed so far."""
    rng = np.random.default_rng(200 + seed)
    names, members, nested = random_case(rng, 5, 10)
    constraint = constrain(nested, names)
    order = constraint.addition_order(rng.permutation(len(names)).tolist())
    assert sorted(order) == list(range(len(names)))
    assert {names[tip] for tip in order[: len(members)]} == set(members)
    ends = np.empty((2 * len(names) - 3, 2), dtype=np.int32)
    ends[0] = order[:2]
    growth = Growth(constraint, *order[:2])
    for n_placed, tip in enumerate(order[2:], start=2):
        placed = {names[other] for other in order[: n_placed + 1]}
        legal = growth.legal(tip)
        for branch in range(2 * n_placed - 3):
            trial = ends.copy()
            attach_tip(trial, branch, tip, n_placed)
            splits = edge_splits(trial[: 2 * n_placed - 1], names, frozenset(placed) & frozenset(members))
            assert legal[branch] == (splits >= _split_among(nested, placed)), (nested, order, branch)
        branch = int(rng.choice(np.flatnonzero(legal)))
        attach_tip(ends, branch, tip, n_placed)
        growth.insert(tip, branch)
    assert obeys(ends, names, nested)


def _split_among(nested, placed):
    """The nontrivial splits of a constraint, restricted to the taxa `placed`."""
    cut = ([side & placed for side in split] for split in nested_splits(nested))
    return {frozenset(sides) for sides in cut if min(map(len, sides)) > 1}


def test_random_trees_that_obey_are_drawn_evenly():
    """((0,1,2),3,4) with 5 free: 3 resolutions of either node, 7 branches for the free taxon."""
    names = names_of(6)
    constraint = constrain((("t0", "t1", "t2"), "t3", "t4"), names)
    rng = np.random.default_rng(1)
    trees = (constraint.random_tree(rng) for _ in range(4200))
    drawn = Counter(frozenset(edge_splits(tree.ends, names, frozenset(names))) for tree in trees)
    assert len(drawn) == 3 * 7
    assert max(abs(count - 200) for count in drawn.values()) < 5 * 200**0.5  # five standard deviations


@pytest.mark.parametrize("seed", range(10))
def test_a_restricted_constraint_has_the_splits_that_are_left(seed):
    rng = np.random.default_rng(300 + seed)
    names, members, nested = random_case(rng, 6, 12)
    kept = [names[i] for i in sorted(rng.choice(len(names), len(names) - 2, replace=False))]
    expected = _split_among(nested, frozenset(kept) & frozenset(members))
    found = constrain(nested, names).restrict(kept)
    if found is None:
        assert not expected
        return
    assert found.n_splits == len(expected)
    for _ in range(10):
        tree = random_tree(kept, rng) if rng.random() < 0.5 else found.random_tree(rng)
        splits = edge_splits(tree.ends, kept, frozenset(kept) & frozenset(members))
        assert found.is_obeyed_by(tree) == (expected <= splits)


def test_attachments_tell_members_apart_that_no_split_separates():
    names = names_of(7)
    places = constrain((("t1", "t2"), "t3", ("t4", "t5", "t6")), names).attachments.tolist()
    assert places[0] == -1
    assert places[1] == places[2]
    assert places[4] == places[5] == places[6]
    assert len({places[1], places[3], places[4]}) == 3
