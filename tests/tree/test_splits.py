"""Splits, tree distances and the subtrees around branches, against values by hand and dendropy's distances."""

import dendropy
import numpy as np
import pytest
from dendropy.calculate import treecompare

from plltool.errors import InputError
from plltool.io.newick import parse_newick
from plltool.io.newick_writer import write_newick
from plltool.tree.concordance import find_surroundings
from plltool.tree.moves import random_tree
from plltool.tree.splits import branch_score_distance, branch_splits, inner_splits, members_of, rf_distance, splits_of

NAMES = ["a", "b", "c", "d", "e"]


def read(text, names=None):
    return parse_newick(text, "test", names)


def random_pair(n_taxa, seed):
    """Two random trees with random lengths over the same names; the second numbers them in another order."""
    rng = np.random.default_rng(seed)
    names = [f"t{i}" for i in range(n_taxa)]
    trees = random_tree(names, rng), random_tree(rng.permutation(names).tolist(), rng)
    for tree in trees:
        tree.lengths[:] = rng.exponential(0.1, tree.n_edges)
    return trees


def to_dendropy_pair(trees):
    namespace = dendropy.TaxonNamespace()
    return [
        dendropy.Tree.get(data="[&U]" + write_newick(tree), schema="newick", taxon_namespace=namespace)
        for tree in trees
    ]


def test_splits_by_hand():
    """Bits follow the names asked for."""
    tree = read("((a:1,b:2):3,c:4,(d:5,e:6):7);", NAMES)
    by_length = dict(zip(tree.lengths.tolist(), branch_splits(tree), strict=True))
    assert by_length == {1: 0b11110, 2: 0b00010, 3: 0b11100, 4: 0b00100, 5: 0b01000, 6: 0b10000, 7: 0b11000}
    assert splits_of(tree) == {split: length for length, split in by_length.items()}
    assert splits_of(tree.with_lengths(np.column_stack([tree.lengths, tree.lengths + 4])))[0b00100] == 6, "the mean"
    assert sorted(inner_splits(tree)) == [0b11000, 0b11100]
    assert sorted(inner_splits(tree, ["e", "d", "c", "b", "a"])) == [0b11000, 0b11100]
    assert sorted(inner_splits(tree, ["a", "d", "b", "e", "c"])) == [0b01010, 0b11010]


def test_members_of_a_split():
    assert list(members_of(0b1001010)) == [1, 3, 6]


def test_three_taxa_have_no_inner_split():
    tree = read("(a,b,c);")
    assert inner_splits(tree) == []
    assert rf_distance(tree, tree) == 0


@pytest.mark.parametrize("n_taxa", [64, 65, 130])
def test_a_tips_split_is_its_own_bit(n_taxa):
    names = [f"t{i}" for i in range(n_taxa)]
    tree = random_tree(names, np.random.default_rng(n_taxa))
    splits = branch_splits(tree)
    assert len(splits) == 2 * n_taxa - 3
    for branch, (a, b) in enumerate(tree.ends.tolist()):
        tip = min(a, b)
        if 0 < tip < n_taxa:
            assert splits[branch] == 1 << tip


@pytest.mark.parametrize("n_taxa", [4, 5, 10, 64, 65, 150])
def test_distances_agree_with_dendropy(n_taxa):
    for seed in range(5):
        trees = random_pair(n_taxa, seed)
        theirs = to_dendropy_pair(trees)
        assert rf_distance(*trees) == treecompare.symmetric_difference(*theirs)
        # both sum the same squares in double precision, in another order
        assert branch_score_distance(*trees) == pytest.approx(treecompare.euclidean_distance(*theirs), rel=1e-12)


def test_branch_score_by_hand():
    a = read("((a:1,b:1):3,c:1,(d:1,e:1):7);")
    b = read("((a:1,c:1):4,b:1,(d:1,e:3):5);")
    # the branches that differ: ab 3, ac 4, de 7 - 5, e 1 - 3
    assert branch_score_distance(a, b) == pytest.approx(np.sqrt(9 + 16 + 4 + 4), rel=1e-15)
    assert rf_distance(a, b) == 2


def test_distance_to_itself_is_zero_whatever_the_numbering():
    tree, _ = random_pair(40, 1)
    renumbered = read(write_newick(tree), list(reversed(tree.names)))
    assert rf_distance(tree, renumbered) == 0
    assert branch_score_distance(tree, renumbered) == 0


@pytest.mark.parametrize("distance", [rf_distance, branch_score_distance])
def test_other_taxa_are_refused(distance):
    with pytest.raises(InputError, match="different taxa: 'd' is in only one of them"):
        distance(read("(a,b,c);"), read("(a,b,(c,d));"))


def test_names_given_twice_are_refused():
    with pytest.raises(InputError, match="a name occurs twice"):
        inner_splits(read("(a,b,c);"), ["a", "b", "c", "c"])


def named(tree, around):
    """The taxa of each subtree, at both ends of each branch."""

    def name(subtree):
        return "".join(tree.names[taxon] for taxon in members_of(subtree.taxa))

    return sorted([[name(subtree) for subtree in end] for end in own.ends] for own in around)


@pytest.mark.parametrize("turned", [False, True])
def test_subtrees_by_hand(turned):
    tree = parse_newick("(a,(b,c),(d,(e,f)));", "test")
    if turned:
        tree = type(tree).from_edges(tree.names, tree.ends[::-1, ::-1], tree.lengths[::-1])
    around = find_surroundings(tree)
    assert named(tree, around) == [[["a", "bc"], ["d", "ef"]], [["a", "def"], ["b", "c"]], [["abc", "d"], ["e", "f"]]]
    for own in around:
        assert own.is_resolved
        for subtree in own.subtrees:
            behind = tree.neighbours[subtree.node, subtree.column]
            assert tree.is_tip(behind) == (subtree.taxa.bit_count() == 1)


def test_added_branches_are_none():
    tree = parse_newick("(a,(b,c),(d,(e,f)));", "test")
    middle = next(own.branch for own in find_surroundings(tree) if named(tree, [own]) == [[["a", "bc"], ["d", "ef"]]])
    around = find_surroundings(tree, np.arange(tree.n_edges) == middle)
    assert named(tree, around) == [[["a", "bc", "d"], ["e", "f"]], [["a", "d", "ef"], ["b", "c"]]]
    assert not any(own.is_resolved for own in around)
