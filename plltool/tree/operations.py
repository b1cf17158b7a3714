"""From a tree to the slots and instruction lists of an engine: which slot holds which CLA.

An operand is a slot, or ``~taxon`` for a tip. There are three ways to fill an engine's slots; each begins at slot 0, so
that one program overwrites what another one left behind.

- All directed CLAs: inner node u looking away from its neighbour in column k is slot ``3 (u - n_taxa) + k``
  (`DirectedView`). A search keeps its scratch behind them.
- A round over all branches: the CLA of inner node u that looks at the root tip's side is slot ``u - n_taxa``; those
  that look the other ways live on a stack behind them (`Descent`), each used at once and then overwritten.
- The likelihood alone: the CLAs that look at the root tip's side, on a stack.

A stack is as deep as the branches that lead into the smaller one of two subtrees are on the way from the root to any
node. Each of them halves the tips at least, so the depth is a logarithm of the number of taxa, caterpillars included.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from plltool.arrays import IntArray
from plltool.tree.topology import Tree

ROOT = 0  # traversals start at the branch of this tip; any branch gives the same likelihood


def directed_slots(n_taxa: int) -> int:
    """CLAs of a tree, one per directed inner edge."""
    return 3 * (n_taxa - 2)


def stack_slots(n_taxa: int) -> int:
    """The deepest stack that any tree needs, and all slots that the likelihood alone takes."""
    return (n_taxa - 1).bit_length()


def round_slots(n_taxa: int) -> int:
    """Slots of a round over all branches."""
    return n_taxa - 2 + stack_slots(n_taxa)


class Descent:
    """The nodes of a tree seen from its root tip, parents first, the smaller one of two subtrees before the larger one.

    Backwards it is a post-order that makes the CLA of the larger subtree first.

    Attributes
    ----------
    order : (n_nodes - 1,) every node but the root tip
    parent, branch : (n_nodes,) the neighbour towards the root tip, and the branch to it; -1 at the root tip
    sibling : (n_nodes,) the parent's other child; -1 at the root tip and at its neighbour
    depth : (n_nodes,) how many branches towards the root tip lead into the smaller one of two subtrees: a stack's slot
    """

    def __init__(self, tree: Tree):
        n_nodes = tree.n_nodes
        rows = list(tree.directed_from(ROOT))
        nodes, parents, branches = np.array(rows, dtype=np.int32).T
        self.parent: IntArray = np.full(n_nodes, -1, dtype=np.int32)
        self.branch: IntArray = np.full(n_nodes, -1, dtype=np.int32)
        self.parent[nodes], self.branch[nodes] = parents, branches
        below = nodes[1:]  # all but the neighbour of the root tip
        above = self.parent[below]
        self.sibling: IntArray = np.full(n_nodes, -1, dtype=np.int32)
        self.sibling[below] = tree.neighbours[above].sum(axis=1) - self.parent[above] - below

        tips = [1] * tree.n_taxa + [0] * (n_nodes - tree.n_taxa)
        for node, parent, _ in reversed(rows):
            tips[parent] += tips[node]
        size = np.array(tips)
        smaller = np.zeros(n_nodes, dtype=np.int64)
        other = self.sibling[below]
        smaller[below] = (size[below] < size[other]) | ((size[below] == size[other]) & (below < other))
        stride = np.ones(n_nodes, dtype=np.int64)  # places behind its parent: itself, and a smaller sibling's subtree
        stride[below] += np.where(smaller[below], 0, 2 * size[other] - 1)
        depth, place = smaller.tolist(), stride.tolist()
        for node, parent, _ in rows[1:]:
            depth[node] += depth[parent]
            place[node] += place[parent]
        self.depth: IntArray = np.array(depth, dtype=np.int32)
        self.order: IntArray = nodes[np.argsort(np.array(place)[nodes])]


class DirectedView:
    """The directed CLAs of one topology; make a new one after every move.

    Attributes
    ----------
    away : int32 (n_nodes, 3), the operand of each node looking away from each neighbour
    facing : int32 (n_nodes, 3), the operand of each neighbour looking away from the node
    back : int32 (n_nodes, 3), the column under which each neighbour knows the node
    """

    def __init__(self, tree: Tree):
        self.tree = tree
        n = tree.n_taxa
        nodes = np.arange(tree.n_nodes, dtype=np.int32)[:, None]
        self.outgoing: IntArray = np.where(nodes < n, ~nodes, 3 * (nodes - n) + np.arange(3, dtype=np.int32))
        flat = tree.edges.ravel()
        used = np.flatnonzero(flat >= 0)
        pairs = used[np.argsort(flat[used], kind="stable")].reshape(-1, 2)  # the two places of each branch
        back = np.zeros(tree.edges.size, dtype=np.int32)
        back[pairs] = pairs[:, ::-1] % 3
        self.back: IntArray = back.reshape(tree.edges.shape)
        self.incoming = self.outgoing[tree.neighbours, self.back]

    @cached_property
    def descent(self) -> Descent:
        """The tree seen from its root tip."""
        return Descent(self.tree)

    @cached_property
    def preorder(self) -> IntArray:
        """(n_taxa - 2, 2): inner nodes seen from the root tip, parents first, with the parent's column."""
        nodes = self.descent.order[self.descent.order >= self.tree.n_taxa]
        columns = np.argmax(self.tree.neighbours[nodes] == self.descent.parent[nodes][:, None], axis=1)
        return np.column_stack([nodes, columns]).astype(np.int32)

    @cached_property
    def branch_order(self) -> IntArray:
        """(n_edges,) the branches in the order in which the post-order meets them, that of the root tip last."""
        nodes, columns = self.preorder[::-1].T
        edges = self.tree.edges
        below = np.stack([edges[nodes, (columns + 1) % 3], edges[nodes, (columns + 2) % 3]], axis=1)
        return np.append(below.ravel(), edges[ROOT, 0])

    @cached_property
    def branch_place(self) -> IntArray:
        """(n_edges,) the place of each branch in `branch_order`."""
        return np.argsort(self.branch_order).astype(np.int32)

    def sources(self, nodes: IntArray, columns: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """The newview that makes each CLA (node, column): slot, a, branch a, b, branch b."""
        k1, k2 = (columns + 1) % 3, (columns + 2) % 3
        edges = self.tree.edges
        return (
            self.outgoing[nodes, columns],
            self.incoming[nodes, k1],
            edges[nodes, k1],
            self.incoming[nodes, k2],
            edges[nodes, k2],
        )
