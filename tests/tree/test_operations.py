"""Directed CLAs: the subtree of each operand, and the order in which they are computed."""

import numpy as np
import pytest
from helpers import balanced, caterpillar, make_tree, random_ends

from plltool.tree.operations import ROOT, DirectedView, directed_slots, round_slots, stack_slots


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
            assert view.outgoing[node, column] == (~node if node < n else 3 * (node - n) + column)
            assert view.incoming[node, column] == (~other if other < n else 3 * (other - n) + back)
    assert directed_slots(n) == 3 * (n - 2)


def test_preorder_has_every_inner_node_after_its_parent(tree):
    view = DirectedView(tree)
    seen = {ROOT}
    for node, column in view.preorder.tolist():
        assert int(tree.neighbours[node, column]) in seen
        seen.add(node)
    assert sorted(seen - {ROOT}) == list(range(tree.n_taxa, tree.n_nodes))


def test_branches_come_as_a_post_order_meets_them(tree):
    """Both branches below a node side by side, behind all branches of the subtrees that they lead to."""
    view = DirectedView(tree)
    places = view.branch_place
    assert sorted(view.branch_order.tolist()) == list(range(tree.n_edges))
    assert places[view.branch_order].tolist() == list(range(tree.n_edges))
    assert places[tree.edges[ROOT, 0]] == tree.n_edges - 1
    pairs = {}
    for _, parent, branch in tree.directed_from(ROOT):
        if parent != ROOT:
            pairs.setdefault(parent, []).append(int(places[branch]))
            above = tree.edges[parent, np.flatnonzero(tree.neighbours[parent] == view.descent.parent[parent])[0]]
            assert places[branch] < places[above]
    assert all(sorted(pair) == [min(pair), min(pair) + 1] and min(pair) % 2 == 0 for pair in pairs.values())


@pytest.mark.parametrize("n_taxa", [3, 4, 5, 6, 7, 8, 9, 33, 100])
@pytest.mark.parametrize("shape", ["caterpillar", "random"])
def test_the_stack_is_a_logarithm(n_taxa, shape):
    rng = np.random.default_rng(n_taxa)
    ends = caterpillar(n_taxa) if shape == "caterpillar" and n_taxa > 3 else random_ends(rng, n_taxa)[0]
    descent = DirectedView(make_tree(ends, None, n_taxa)).descent
    assert descent.depth.max() < stack_slots(n_taxa)
    assert 2 ** (stack_slots(n_taxa) - 1) <= n_taxa - 1
    assert round_slots(n_taxa) == n_taxa - 2 + stack_slots(n_taxa)


def test_the_stack_of_a_balanced_tree_is_full_and_that_of_a_caterpillar_has_two_slots():
    """Of the 15 tips below the root tip 7 hang on one side, then 3, then 1: three branches into smaller subtrees."""
    descent = DirectedView(make_tree(balanced(16), None, 16)).descent
    assert descent.depth.max() == 3 == stack_slots(16) - 1
    assert DirectedView(make_tree(caterpillar(50), None, 50)).descent.depth.max() == 1


def test_the_smaller_subtree_comes_first(tree):
    """Each subtree is one run of the order behind its root, and no sibling before it holds more tips."""
    descent = DirectedView(tree).descent
    place = {node: k for k, node in enumerate(descent.order.tolist())}
    below = dict.fromkeys(range(tree.n_nodes), 0)
    for node in reversed(descent.order.tolist()):
        below[node] += tree.is_tip(node)
        below[int(descent.parent[node])] += below[node]
    for node in descent.order.tolist():
        assert set(tree.ends[descent.branch[node]].tolist()) == {node, int(descent.parent[node])}
        if not tree.is_tip(node):
            first, second = sorted(
                (n for n in tree.neighbours[node].tolist() if n != descent.parent[node]), key=place.get
            )
            assert place[first] == place[node] + 1
            assert place[second] == place[first] + 2 * below[first] - 1
            assert below[first] <= below[second]
            assert (descent.sibling[first], descent.sibling[second]) == (second, first)
            assert (descent.depth[first], descent.depth[second]) == (descent.depth[node] + 1, descent.depth[node])


def behind(tree, node, column):
    """The tips that the CLA (node, column) covers: those not behind the neighbour in that column."""
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
