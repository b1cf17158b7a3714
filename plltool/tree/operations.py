"""From a tree to the slots and instruction lists of an engine.

Every directed CLA has its own slot: inner node u looking away from its neighbour in column k is slot
``3 (u - n_taxa) + k``. An operand is such a slot, or ``~taxon`` for a tip.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from plltool.tree.topology import IntArray, Tree

ROOT = 0  # traversals start at the branch of this tip; any branch gives the same likelihood


def directed_slots(n_taxa: int) -> int:
    """CLAs of a tree, one per directed inner edge."""
    return 3 * (n_taxa - 2)


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
        self.away: IntArray = np.where(nodes < n, ~nodes, 3 * (nodes - n) + np.arange(3, dtype=np.int32))
        flat = tree.edges.ravel()
        used = np.flatnonzero(flat >= 0)
        pairs = used[np.argsort(flat[used], kind="stable")].reshape(-1, 2)  # the two places of each branch
        back = np.zeros(tree.edges.size, dtype=np.int32)
        back[pairs] = pairs[:, ::-1] % 3
        self.back: IntArray = back.reshape(tree.edges.shape)
        self.facing = self.away[tree.neighbours, self.back]

    @cached_property
    def preorder(self) -> npt.NDArray[np.int32]:
        """(n_taxa - 2, 2): inner nodes seen from the root tip, parents first, with the parent's column."""
        rows = [(node, parent) for node, parent, _ in self.tree.directed_from(ROOT) if node >= self.tree.n_taxa]
        nodes, parents = np.array(rows, dtype=np.int32).reshape(-1, 2).T
        columns = np.argmax(self.tree.neighbours[nodes] == parents[:, None], axis=1)
        return np.column_stack([nodes, columns]).astype(np.int32)

    def sources(self, nodes: IntArray, columns: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
        """The newview that makes each CLA (node, column): slot, a, branch a, b, branch b."""
        k1, k2 = (columns + 1) % 3, (columns + 2) % 3
        edges = self.tree.edges
        return (
            self.away[nodes, columns],
            self.facing[nodes, k1],
            edges[nodes, k1],
            self.facing[nodes, k2],
            edges[nodes, k2],
        )
