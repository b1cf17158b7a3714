"""Moves on a tree, in place: prune and regraft, which can be undone bit for bit, and exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IntArray
from plltool.constants import NO_NODE
from plltool.tree.topology import Tree


@dataclass(frozen=True)
class Undo:
    """The rows of the tree's arrays that a move overwrote."""

    nodes: IntArray
    neighbours: IntArray
    edge_rows: IntArray
    edges: IntArray
    ends: IntArray
    lengths: FloatArray

    def restore(self, tree: Tree) -> None:
        """Restore the tree as it was before the move."""
        tree.neighbours[self.nodes] = self.neighbours
        tree.edges[self.nodes] = self.edge_rows
        tree.ends[self.edges] = self.ends
        tree.lengths[self.edges] = self.lengths


def subtree_contains(tree: Tree, root: int, parent: int, edge: int) -> bool:
    """Whether `edge` lies in the subtree at `root` seen from `parent`, or is the branch between the two.

    Both sides of that branch are walked in turn, so the work is bounded by the smaller one.
    """
    if tree.edge_between(root, parent) == edge:
        return True
    sides = {True: [(root, parent)], False: [(parent, root)]}
    inside = True
    while sides[inside]:
        node, came_from = sides[inside].pop()
        for neighbour, other in zip(tree.neighbours[node].tolist(), tree.edges[node].tolist(), strict=True):
            if neighbour in (came_from, NO_NODE):
                continue
            if other == edge:
                return inside
            sides[inside].append((neighbour, node))
        inside = not inside
    return not inside  # this side holds no such branch, so the other does


def prune_regraft(
    tree: Tree, joint: int, subtree: int, target: int, healed: npt.ArrayLike, lengths: Sequence[npt.ArrayLike]
) -> Undo | None:
    """Prune the subtree at `subtree` with its carrier, the inner node `joint`, and regraft it into branch `target`.

    healed : length of the branch that closes the gap; (n_parts,) if parts have separate lengths
    lengths : new lengths from `joint` to the first end of `target`, to its second end, and to `subtree`, each likewise

    `target` then runs from its first end to `joint`. Returns None, with the tree unchanged, if it touches `joint` or
    lies inside the pruned subtree.
    """
    column = tree.position(joint, subtree)
    near, far = (int(tree.neighbours[joint, (column + k) % 3]) for k in (1, 2))
    near_edge, far_edge = (int(tree.edges[joint, (column + k) % 3]) for k in (1, 2))
    if target in (near_edge, far_edge) or subtree_contains(tree, subtree, joint, target):
        return None
    first, second = (int(node) for node in tree.ends[target])
    subtree_edge = int(tree.edges[joint, column])
    nodes = np.array(sorted({joint, near, far, first, second}), dtype=np.int32)
    edges = np.array([near_edge, far_edge, target, subtree_edge], dtype=np.int32)
    undo = Undo(nodes, tree.neighbours[nodes], tree.edges[nodes], edges, tree.ends[edges], tree.lengths[edges])
    # close the gap: the near branch now joins near and far; the far branch is free
    _reconnect(tree, far, far_edge, near, near_edge)
    _reconnect(tree, near, near_edge, far, near_edge)
    tree.ends[near_edge] = near, far
    # regraft: target joins its first end and the joint; the free branch joins the joint and target's second end
    _reconnect(tree, first, target, joint, target)
    _reconnect(tree, second, target, joint, far_edge)
    tree.ends[target] = first, joint
    tree.ends[far_edge] = joint, second
    tree.neighbours[joint, (column + 1) % 3], tree.edges[joint, (column + 1) % 3] = first, target
    tree.neighbours[joint, (column + 2) % 3], tree.edges[joint, (column + 2) % 3] = second, far_edge
    tree.lengths[[near_edge, target, far_edge, subtree_edge]] = np.array([healed, *lengths])
    return undo


def exchange_subtrees(tree: Tree, nodes: tuple[int, int], columns: tuple[int, int]) -> None:
    """Let the subtrees in these columns of two nodes change places, with their branches; each is apart from the other.

    The two nodes of an inner branch and any subtree of each give a nearest-neighbour interchange.
    """
    subtrees = [int(tree.neighbours[node, column]) for node, column in zip(nodes, columns, strict=True)]
    edges = [int(tree.edges[node, column]) for node, column in zip(nodes, columns, strict=True)]
    for own, other in ((0, 1), (1, 0)):
        _reconnect(tree, subtrees[own], edges[own], nodes[other], edges[own])
        tree.neighbours[nodes[own], columns[own]] = subtrees[other]
        tree.edges[nodes[own], columns[own]] = edges[other]
        tree.ends[edges[own]] = subtrees[own], nodes[other]


def _reconnect(tree: Tree, node: int, old_edge: int, neighbour: int, edge: int) -> None:
    """Let the branch slot of `node` that held `old_edge` lead to `neighbour` by `edge`."""
    row = tree.edges[node]
    column = int(np.flatnonzero(row == old_edge)[0])
    tree.neighbours[node, column] = neighbour
    row[column] = edge
