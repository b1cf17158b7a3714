"""Removing taxa from a tree, and putting duplicates back."""

import numpy as np
import pytest

from plltool.constants import MIN_BRANCH_LENGTH
from plltool.errors import InputError
from plltool.io.newick import parse_newick
from plltool.io.newick_writer import write_newick
from plltool.tree.moves import random_tree
from plltool.tree.splits import branch_score_distance, rf_distance
from plltool.tree.topology import restore_duplicates, restrict_tree


def test_joined_branches_are_as_long_as_both():
    tree = parse_newick("(a:1,b:2,(c:3,(d:4,e:5):6):7);", "test")
    smaller = restrict_tree(tree, ["e", "a", "b"])
    assert smaller.names == ("e", "a", "b")
    assert write_newick(smaller) == "(e:18.0,a:1.0,b:2.0);"


def test_restricting_to_all_taxa_only_renumbers():
    rng = np.random.default_rng(3)
    tree = random_tree([f"t{k}" for k in range(20)], rng)
    tree.lengths[:] = rng.exponential(0.1, tree.n_edges)
    names = [tree.names[k] for k in rng.permutation(20)]
    renumbered = restrict_tree(tree, names)
    assert renumbered.names == tuple(names)
    assert rf_distance(tree, renumbered) == 0
    assert branch_score_distance(tree, renumbered) == 0


@pytest.mark.parametrize("names", [["a", "b", "x"], ["a", "b", "b"], ["a", "b"]])
def test_what_cannot_be_restricted(names):
    with pytest.raises(InputError):
        restrict_tree(parse_newick("(a,b,(c,d));", "test"), names)


def test_a_twin_is_put_back_in_a_cherry():
    tree = parse_newick("(a:1,c:2,(d:3,e:4):5);", "test")
    full = restore_duplicates(tree, ["a", "twin", "c", "d", "e"], [[0, 1], [2], [3], [4]])
    least = MIN_BRANCH_LENGTH
    assert write_newick(full) == f"(a:{least},twin:{least},(c:2.0,(d:3.0,e:4.0):5.0):1.0);"
    assert full.lengths[:5].tolist() == tree.lengths.tolist()


def test_taking_restored_duplicates_out_gives_the_tree_back():
    rng = np.random.default_rng(5)
    names = [f"t{k}" for k in range(15)]
    groups = [[0, 3, 9, 14], [1], [2, 4], [5], [6, 7, 8], [10], [11, 12], [13]]
    tree = random_tree([names[group[0]] for group in groups], rng)
    full = restore_duplicates(tree, names, groups)
    assert full.names == tuple(names)
    again = restrict_tree(full, tree.names)
    assert rf_distance(tree, again) == 0
    assert again.lengths.sum() == pytest.approx(tree.lengths.sum() + 7 * MIN_BRANCH_LENGTH, abs=1e-12)


def test_deep_trees_need_no_recursion():
    n = 3000
    names = [str(k) for k in range(n)]
    comb = restore_duplicates(parse_newick("(0,1,2);", "test"), names, [[0], [1], [2, *range(3, n)]])
    assert restrict_tree(comb, names).n_taxa == n
