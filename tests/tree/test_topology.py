"""The tree as integer arrays: a hand-made tree of five taxa, and deep trees."""

import numpy as np
import pytest

from plltool.constants import DEFAULT_BRANCH_LENGTH, NO_NODE
from plltool.errors import InputError
from plltool.tree.topology import Tree

NAMES = ["a", "b", "c", "d", "e"]
ENDS = [(0, 5), (1, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 7)]  # ((a,b),c,(d,e))


@pytest.fixture
def tree():
    return Tree.from_edges(NAMES, ENDS, [1, 2, 3, 4, 5, 6, 7])


def test_sizes_and_arrays(tree):
    assert (tree.n_taxa, tree.n_nodes, tree.n_edges) == (5, 8, 7)
    assert tree.names == tuple(NAMES)
    assert tree.neighbours[0].tolist() == [5, NO_NODE, NO_NODE]
    assert sorted(tree.neighbours[6].tolist()) == [2, 5, 7]
    assert tree.is_tip(4)
    assert not tree.is_tip(5)
    assert tree.lengths.sum() == 28


def test_a_tree_takes_over_another_one_in_place(tree):
    other = Tree.from_edges(NAMES, [(0, 5), (2, 5), (5, 6), (1, 6), (6, 7), (3, 7), (4, 7)], [7, 6, 5, 4, 3, 2, 1])
    arrays = tree.neighbours, tree.edges, tree.ends, tree.lengths
    tree.assign(other)
    expected = other.neighbours, other.edges, other.ends, other.lengths
    for array, values in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, values)
    other.lengths[0] = 0.5
    assert tree.lengths[0] == 7


def test_every_branch_is_found_from_both_of_its_ends(tree):
    for branch, (a, b) in enumerate(ENDS):
        assert tree.edge_between(a, b) == tree.edge_between(b, a) == branch
        assert tree.neighbours[a, tree.position(a, b)] == b
    with pytest.raises(ValueError, match="not neighbours"):
        tree.position(0, 1)


@pytest.mark.parametrize("root", range(8))
def test_directed_from_visits_parents_first_and_every_branch_once(tree, root):
    seen = {root}
    branches = []
    for node, parent, branch in tree.directed_from(root):
        assert parent in seen
        assert {node, parent} == set(ENDS[branch])
        seen.add(node)
        branches.append(branch)
    assert sorted(branches) == list(range(7))
    assert seen == set(range(8))


def test_copy_shares_no_array(tree):
    copy = tree.copy()
    copy.lengths[0] = 99
    copy.neighbours[0, 0] = 7
    copy.edges[0, 0] = 3
    copy.ends[0, 1] = 7
    assert tree.lengths[0] == 1
    assert (tree.neighbours[0, 0], tree.edges[0, 0], tree.ends[0, 1]) == (5, 0, 5)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (ENDS[:-1], "has 7 branches, found 6"),
        ([(0, 5), (1, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 6)], "node 6 has too many branches"),
        ([(0, 5), (0, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 7)], "node 0 has too many branches"),
        ([(0, 5), (1, 5), (5, 6), (2, 6), (6, 8), (3, 7), (4, 7)], "expected nodes from 0 to 7 .*, found 8"),
        ([(0, 5), (1, 5), (5, 6), (2, 6), (6, -1), (3, 7), (4, 7)], "expected nodes from 0 to 7 .*, found -1"),
        ([(0, 5), (5, 6), (5, 7), (6, 7), (6, 1), (7, 2), (3, 4)], "do not connect all taxa"),  # a cycle
        ([(0, 5), (5, 6), (5, 6), (6, 1), (7, 2), (7, 3), (7, 4)], "do not connect all taxa"),
    ],
)
def test_what_is_no_binary_tree_is_refused(ends, message):
    with pytest.raises(InputError, match=message):
        Tree.from_edges(NAMES, ends)


def test_lengths():
    assert np.all(Tree.from_edges(NAMES, ENDS).lengths == DEFAULT_BRANCH_LENGTH)
    with pytest.raises(InputError, match=r"lengths of 7 branches, found an array \(6,\)"):
        Tree.from_edges(NAMES, ENDS, np.ones(6))
    with pytest.raises(InputError, match=r"lengths of 7 branches, found an array \(\)"):
        Tree.from_edges(NAMES, ENDS).with_lengths(0.1)


def test_two_taxa_are_refused():
    with pytest.raises(InputError, match="binary tree of 2 taxa"):
        Tree.from_edges(["a", "b"], [(0, 1)])


def test_a_deep_tree_is_walked_without_recursion():
    n_taxa = 20_000
    inner = range(n_taxa, 2 * n_taxa - 3)
    ends = [(node, node + 1) for node in inner] + [(0, n_taxa), (n_taxa - 1, 2 * n_taxa - 3)]
    ends += [(tip, n_taxa + tip - 1) for tip in range(1, n_taxa - 1)]
    tree = Tree.from_edges([str(i) for i in range(n_taxa)], ends)
    assert sum(1 for _ in tree.directed_from(0)) == tree.n_edges
