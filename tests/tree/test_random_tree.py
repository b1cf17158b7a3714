"""Random trees: all labelled topologies are equally likely, and equal seeds give equal trees."""

from collections import Counter

import numpy as np
import pytest

from plltool.constants import DEFAULT_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.errors import InputError
from plltool.tree.moves import attach_tip, random_topology, random_tree, randomise_short_branches, resolve_nodes
from plltool.tree.splits import inner_splits
from plltool.tree.topology import Tree

N_TOPOLOGIES_OF_6 = 105  # (2 n - 5)!!, Felsenstein 1978; 6 taxa, as 5 have one shape only
N_DRAWS = 5250
# chi-square with 104 degrees of freedom has mean 104 and variance 208: five standard deviations, for fixed seeds
MAX_CHI_SQUARE = 104 + 5 * np.sqrt(208)


def count_topologies(trees):
    return Counter(tuple(sorted(inner_splits(tree))) for tree in trees)


def assert_uniform(counts):
    expected = N_DRAWS / N_TOPOLOGIES_OF_6
    assert len(counts) == N_TOPOLOGIES_OF_6
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < MAX_CHI_SQUARE


def test_topologies_are_equally_likely():
    rng = np.random.default_rng(1)
    assert_uniform(count_topologies(random_tree("abcdef", rng) for _ in range(N_DRAWS)))


def test_shapes_have_their_share():
    """15 of the 105 topologies of 6 taxa have three cherries, the others two: a sharper test of uniformity."""
    rng = np.random.default_rng(3)
    n_draws = 20_000
    n_three = 0
    for _ in range(n_draws):
        ends = random_topology(6, rng)
        joints = ends.max(axis=1)[ends.min(axis=1) < 6]  # the inner nodes that have tips
        n_three += len(np.unique(joints)) == 3
    assert abs(n_three - n_draws / 7) < 5 * np.sqrt(n_draws * 6) / 7  # five standard deviations


@pytest.mark.parametrize("n_taxa", [3, 4, 5, 17, 1000])
def test_a_random_tree_is_a_tree_with_default_lengths(n_taxa):
    names = [f"t{i}" for i in range(n_taxa)]
    tree = random_tree(names, np.random.default_rng(n_taxa))
    assert tree.names == tuple(names)
    assert np.all(tree.lengths == DEFAULT_BRANCH_LENGTH)


def test_the_seed_decides():
    first, second, third = (random_topology(50, np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)


@pytest.mark.parametrize("n_taxa", [0, 1, 2])
def test_too_few_taxa(n_taxa):
    with pytest.raises(InputError, match=f"at least 3 taxa, found {n_taxa}"):
        random_topology(n_taxa, np.random.default_rng(0))


def test_attach_tip_splits_the_branch():
    ends = np.full((5, 2), -1, dtype=np.int32)
    ends[0] = 0, 1
    assert attach_tip(ends, 0, 2, n_placed=2) == (4, 1, 2)
    assert ends[:3].tolist() == [[0, 4], [4, 1], [2, 4]]
    assert attach_tip(ends, 1, 3, n_placed=3) == (5, 3, 4)
    assert ends.tolist() == [[0, 4], [4, 5], [2, 4], [5, 1], [3, 5]]


def test_resolutions_of_a_star_are_equally_likely():
    rng = np.random.default_rng(2)
    star = np.array([(tip, 6) for tip in range(6)], dtype=np.int32)
    lengths = np.arange(1.0, 7.0)
    trees = [Tree.from_edges("abcdef", *resolve_nodes(star, lengths, rng)) for _ in range(N_DRAWS)]
    assert_uniform(count_topologies(trees))
    for tree in trees[:20]:
        assert tree.lengths.tolist() == [1, 2, 3, 4, 5, 6, *[MIN_BRANCH_LENGTH] * 3]


def test_neighbouring_nodes_are_resolved_and_others_left():
    # nodes 9 and 10 have 5 branches each, share one, and node 11 is binary already
    ends = [(0, 9), (1, 9), (2, 9), (9, 10), (3, 10), (4, 10), (5, 10), (9, 11), (6, 11), (7, 11), (8, 10)]
    new_ends, lengths = resolve_nodes(np.array(ends, dtype=np.int32), np.arange(11.0), np.random.default_rng(3))
    tree = Tree.from_edges("abcdefghi", new_ends, lengths)
    assert np.count_nonzero(tree.lengths == MIN_BRANCH_LENGTH) == 4
    masks = set(inner_splits(tree))
    assert {0b011000000, 0b100111000} <= masks  # the two inner branches that were there: gh and def+i


def test_a_binary_tree_is_left_alone():
    ends = random_topology(30, np.random.default_rng(4))
    new_ends, lengths = resolve_nodes(ends, np.ones(57), np.random.default_rng(5))
    assert np.array_equal(new_ends, ends)
    assert lengths.tolist() == [1.0] * 57


def test_short_branches_are_drawn_anew():
    """Nodes 10 and 11, 11 and 12 are joined by such branches, which leave one node of 5 branches; others stay."""
    ends = [(0, 8), (1, 8), (8, 9), (2, 9), (9, 10), (3, 10), (10, 11), (4, 11), (11, 12), (5, 12), (12, 13)]
    ends += [(6, 13), (7, 13)]
    lengths = np.arange(1.0, 14.0)
    lengths[[6, 8, 9]] = MIN_BRANCH_LENGTH  # two inner branches, and that of a tip, which stays
    tree = Tree.from_edges("abcdefgh", ends, lengths)
    rng = np.random.default_rng(6)
    drawn = [randomise_short_branches(tree, 0.5, rng) for _ in range(N_DRAWS // 7)]
    counts = count_topologies(drawn)
    assert len(counts) == 15  # of five branches: abc, d, e, f, gh
    assert sum((count - 50) ** 2 / 50 for count in counts.values()) < 14 + 5 * np.sqrt(28)  # as MAX_CHI_SQUARE
    assert all({0b11111100, 0b11111000, 0b11000000} <= set(topology) for topology in counts)
    for other in drawn[:20]:
        assert sorted(other.lengths) == sorted(lengths)
        assert other.lengths[other.edges[:8, 0]].tolist() == tree.lengths[tree.edges[:8, 0]].tolist()
    unlinked = tree.with_lengths(np.column_stack([lengths, np.ones(13)]))
    parts = randomise_short_branches(unlinked, np.array([0.5, 0.9]), rng)
    assert count_topologies([parts]) == count_topologies([tree])  # one part has something to say
