"""Directed CLAs: which operand looks where, and in which order they are made."""

import numpy as np
import pytest
from helpers import caterpillar, make_tree, random_ends

from plltool.tree.operations import ROOT, DirectedView, directed_slots


def trees():
    rng = np.random.default_rng(1)
    return [make_tree(*random_ends(rng, n), n) for n in (3, 4, 5, 11, 40)] + [make_tree(caterpillar(30), None, 30)]


@pytest.fixture(params=trees(), ids=lambda tree: str(tree.n_taxa))
def tree(request):
    return request.param


def test_operands(tree):
    view = DirectedView(tree)
    n = tree.n_taxa
    for node in range(tree.n_nodes):
        for column in range(1 if node < n else 3):
            other = int(tree.neighbours[node, column])
            back = int(view.back[node, column])
            assert tree.neighbours[other, back] == node
            assert view.away[node, column] == (~node if node < n else 3 * (node - n) + column)
            assert view.facing[node, column] == (~other if other < n else 3 * (other - n) + back)
    assert directed_slots(n) == 3 * (n - 2)


def test_preorder_has_every_inner_node_after_its_parent(tree):
    view = DirectedView(tree)
    seen = {ROOT}
    for node, column in view.preorder.tolist():
        assert int(tree.neighbours[node, column]) in seen
        seen.add(node)
    assert sorted(seen - {ROOT}) == list(range(tree.n_taxa, tree.n_nodes))


def behind(tree, node, column):
    """Tips that the CLA (node, column) stands for: those not behind the neighbour in that column."""
    tips, stack = set(), [(node, int(tree.neighbours[node, column]))]
    while stack:
        at, came_from = stack.pop()
        if tree.is_tip(at):
            tips.add(at)
        stack += [(int(n), at) for n in tree.neighbours[at] if n not in (came_from, -1)]
    return tips


def test_sources_make_the_cla_from_what_lies_behind_it(tree):
    view = DirectedView(tree)
    inner = np.arange(tree.n_taxa, tree.n_nodes)
    nodes, columns = np.repeat(inner, 3), np.tile(np.arange(3), len(inner))
    for row in zip(nodes.tolist(), columns.tolist(), *(x.tolist() for x in view.sources(nodes, columns)), strict=True):
        node, column, slot, a, branch_a, b, branch_b = row
        assert slot == 3 * (node - tree.n_taxa) + column
        tips = []
        for operand, branch in ((a, branch_a), (b, branch_b)):
            if operand < 0:
                below, found = ~operand, {~operand}
            else:
                below, k = tree.n_taxa + operand // 3, operand % 3
                assert tree.neighbours[below, k] == node
                found = behind(tree, below, k)
            assert set(tree.ends[branch].tolist()) == {node, below}
            tips.append(found)
        assert tips[0].isdisjoint(tips[1])
        assert tips[0] | tips[1] == behind(tree, node, column)


def test_a_deep_tree_needs_no_recursion():
    view = DirectedView(make_tree(caterpillar(5000), None, 5000))
    assert len(view.preorder) == 4998
