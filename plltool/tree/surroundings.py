"""The subtrees around each inner branch of a tree, whose nodes may have any number of branches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plltool.arrays import BoolArray
from plltool.tree.splits import branch_splits, everyone
from plltool.tree.topology import Tree

ORIENTING_TIP = 0


class Subtree(NamedTuple):
    """What hangs at an end of a branch, seen from there."""

    taxa: int  # its taxa as a set of bits, see `plltool.tree.splits`
    node: int  # the inner node at which it hangs
    column: int  # its place among the neighbours of that node


class Surroundings(NamedTuple):
    """An inner branch and the subtrees at its two ends.

    The first end is that on the side of taxon 0. The subtrees of an end are in the order of their first taxa. If each
    end has two subtrees, A, B and C, D, then the branch is AB|CD, and its interchanges are AC|BD and AD|BC.
    """

    branch: int
    ends: tuple[tuple[Subtree, ...], tuple[Subtree, ...]]

    @property
    def is_resolved(self) -> bool:
        """Whether there are two subtrees at each end."""
        return len(self.ends[0]) == len(self.ends[1]) == 2

    @property
    def subtrees(self) -> tuple[Subtree, ...]:
        """All of them, from the first end on."""
        return self.ends[0] + self.ends[1]


def find_surroundings(tree: Tree, added: BoolArray | None = None) -> list[Surroundings]:
    """The surroundings of each inner branch, in the order of the branches.

    `added`: (n_edges,) branches that only resolve nodes of more than three branches, and are no branches of the tree.
    """
    everybody, splits = everyone(tree.n_taxa), branch_splits(tree)
    is_added = np.zeros(tree.n_edges, dtype=np.bool_) if added is None else added
    lower = np.empty(tree.n_edges, dtype=np.intp)  # the end of each branch that is further from the tip
    for node, _, branch in tree.directed_from(ORIENTING_TIP):
        lower[branch] = node

    def collect(end: int, branch: int) -> tuple[Subtree, ...]:
        found, waiting = [], [(end, branch)]
        while waiting:
            node, came = waiting.pop()
            for column, (other, edge) in enumerate(zip(tree.neighbours[node], tree.edges[node], strict=True)):
                if edge == came:
                    continue
                if is_added[edge]:
                    waiting.append((int(other), int(edge)))
                    continue
                taxa = splits[edge] if lower[edge] == other else everybody ^ splits[edge]
                found.append(Subtree(taxa, node, column))
        return tuple(sorted(found, key=lambda subtree: subtree.taxa & -subtree.taxa))

    around = []
    for branch in np.flatnonzero(tree.is_inner_branch & ~is_added).tolist():
        ends = [collect(int(end), branch) for end in tree.ends[branch]]
        first, second = sorted(ends, key=lambda end: end[0].taxa & -end[0].taxa)
        around.append(Surroundings(branch, (first, second)))
    return around
