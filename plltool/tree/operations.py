"""Which slot of an engine holds which CLA of a tree, and the orders in which CLAs are computed.

A CLA belongs to an inner node and a branch there: it covers the subtree at the node, seen through that branch. An
operand is a slot, or ``~taxon`` for a tip. There are three ways to fill the slots, each from slot 0.

- All directed CLAs: slot ``3 (u - n_taxa) + k`` covers the subtree at inner node u, seen from its neighbour in column k
  (`DirectedView`). A search keeps its scratch slots behind them.
- A round over all branches: slot ``u - n_taxa`` covers the subtree at inner node u, seen from the root tip. The CLAs of
  the other directions are on a stack behind these (`Descent`); each is used at once and then overwritten.
- The likelihood alone: the CLAs seen from the root tip, on a stack.

Each step deeper on the stack at least halves the number of tips, so its depth is at most logarithmic in them.
"""

from functools import cached_property

import numpy as np

from plltool.arrays import BoolArray, IntArray
from plltool.tree.topology import Tree

ROOT = 0  # the tip at whose branch traversals start; any branch gives the same likelihood


def directed_slots(n_taxa: int) -> int:
    """Number of all directed CLAs: three for each inner node."""
    return 3 * (n_taxa - 2)


def stack_slots(n_taxa: int) -> int:
    """The deepest stack that a tree may need; the likelihood alone needs no other slots."""
    return (n_taxa - 1).bit_length()


def round_slots(n_taxa: int) -> int:
    """Number of slots of a round over all branches."""
    return n_taxa - 2 + stack_slots(n_taxa)


class Descent:
    """The nodes of a tree seen from its root tip: parents first, the smaller of two subtrees before the larger one.

    Read backwards it is a post-order in which the CLA of the larger subtree comes first.

    order : (n_nodes - 1,) every node except the root tip
    parent, branch : (n_nodes,) the neighbour towards the root tip, and the branch to it; -1 for the root tip
    sibling : (n_nodes,) the parent's other child; -1 for the root tip and its neighbour
    depth : (n_nodes,) number of branches between a node and the root tip that lead into the smaller of two subtrees,
        which is the node's place on the stack
    """

    def __init__(self, tree: Tree):
        n_nodes = tree.n_nodes
        rows = tree.directed_from(ROOT)
        nodes, parents, branches = np.array(rows, dtype=np.int32).T
        self.parent: IntArray = np.full(n_nodes, -1, dtype=np.int32)
        self.branch: IntArray = np.full(n_nodes, -1, dtype=np.int32)
        self.parent[nodes], self.branch[nodes] = parents, branches
        below = nodes[1:]  # all except the neighbour of the root tip
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
        stride = np.ones(n_nodes, dtype=np.int64)  # places behind its parent: 1, and a smaller sibling's subtree
        stride[below] += np.where(smaller[below], 0, 2 * size[other] - 1)
        depth, place = smaller.tolist(), stride.tolist()
        for node, parent, _ in rows[1:]:
            depth[node] += depth[parent]
            place[node] += place[parent]
        self.depth: IntArray = np.array(depth, dtype=np.int32)
        self.order: IntArray = nodes[np.argsort(np.array(place)[nodes])]


class DirectedView:
    """The directed CLAs of one topology; make a new one after every move.

    outgoing : int32 (n_nodes, 3), the operand of the subtree at each node, seen from the neighbour in each column
    incoming : int32 (n_nodes, 3), the operand of the subtree behind the neighbour in each column, seen from the node
    back : int32 (n_nodes, 3), the column of the node among the neighbours of each of its neighbours
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
    def sides(self) -> IntArray:
        """(n_edges, 2) the operands on both sides of each branch, that at its first end first."""
        first = self.tree.ends[:, 0]
        columns = np.argmax(self.tree.edges[first] == np.arange(self.tree.n_edges)[:, None], axis=1)
        return np.column_stack([self.outgoing[first, columns], self.incoming[first, columns]])

    @cached_property
    def descent(self) -> Descent:
        """The tree seen from its root tip."""
        return Descent(self.tree)

    @cached_property
    def preorder(self) -> IntArray:
        """(n_taxa - 2, 2): inner nodes, parents first, each with the column of its parent."""
        nodes = self.descent.order[self.descent.order >= self.tree.n_taxa]
        columns = np.argmax(self.tree.neighbours[nodes] == self.descent.parent[nodes][:, None], axis=1)
        return np.column_stack([nodes, columns]).astype(np.int32)

    @cached_property
    def branch_order(self) -> IntArray:
        """(n_edges,) the branches in post-order; the branch of the root tip is the last."""
        nodes, columns = self.preorder[::-1].T
        edges = self.tree.edges
        below = np.stack([edges[nodes, (columns + 1) % 3], edges[nodes, (columns + 2) % 3]], axis=1)
        return np.append(below.ravel(), edges[ROOT, 0])

    @cached_property
    def branch_place(self) -> IntArray:
        """(n_edges,) the place of each branch in `branch_order`."""
        return np.argsort(self.branch_order).astype(np.int32)

    @cached_property
    def toward_root(self) -> BoolArray:
        """(n_nodes, 3) whether the neighbour in a column is the one towards the root tip."""
        return np.asarray((self.tree.neighbours == self.descent.parent[:, None]) & (self.tree.neighbours >= 0))

    def sources(self, nodes: IntArray, columns: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """The newview of each CLA (node, column): slot, operand a, its branch, operand b, its branch."""
        k1, k2 = (columns + 1) % 3, (columns + 2) % 3
        edges, incoming = self.tree.edges, self.incoming
        (a, to_a), (b, to_b) = ((incoming[nodes, k], edges[nodes, k]) for k in (k1, k2))
        return self.outgoing[nodes, columns], a, to_a, b, to_b
