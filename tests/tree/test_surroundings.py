"""The subtrees around branches, by hand; neither the order of the branches nor of their ends matters."""

import numpy as np
import pytest

from plltool.io.newick import parse_newick
from plltool.tree.concordance import find_surroundings
from plltool.tree.splits import members_of


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
    assert named(tree, around) == [
        [["a", "bc"], ["d", "ef"]],
        [["a", "def"], ["b", "c"]],
        [["abc", "d"], ["e", "f"]],
    ]
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
