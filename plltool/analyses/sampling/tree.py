"""The tree of a chain: lists of numbers, of which a proposal replaces those that it changes.

The tree hangs from tip 0: `top` is its only child. Every other node has a branch above it, which has the node's
number, so a branch keeps its number as long as the subtree below it. Nodes are numbered as in `Tree`. Lists are never
changed in place once a state holds them; states share those that they have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from plltool.codec import saved
from plltool.tree.topology import Tree

ROOT = 0  # the tip that the tree hangs from


@saved()
class Topology(NamedTuple):
    """Which node is above which."""

    n_taxa: int  # number of tips
    parent: list[int]  # (n_nodes,) the node above each node; -1 for tip 0
    left: list[int]  # (n_nodes,) the first node below each inner node; of tip 0 the top; else -1
    right: list[int]  # the second one; else -1

    @property
    def n_nodes(self) -> int:
        return 2 * self.n_taxa - 2

    @property
    def top(self) -> int:
        """The node below tip 0."""
        return self.left[ROOT]

    def copy(self) -> Topology:
        """The same in new lists, to be changed."""
        return Topology(self.n_taxa, self.parent.copy(), self.left.copy(), self.right.copy())

    def sibling(self, node: int) -> int:
        """The other node below the parent of a node that is not the top."""
        parent = self.parent[node]
        return self.right[parent] if self.left[parent] == node else self.left[parent]

    def replace_child(self, parent: int, old: int, new: int) -> None:
        """Hang `new` where `old` is, in place."""
        if self.left[parent] == old:
            self.left[parent] = new
        else:
            self.right[parent] = new
        self.parent[new] = parent

    def upwards(self, starts: Iterable[int]) -> list[int]:
        """Inner nodes: those that starts are and all above them, each after those below it; tip 0 is left out."""
        found: list[int] = []
        seen: set[int] = set()
        for node in starts:
            path = []
            while node != ROOT and node not in seen:
                seen.add(node)
                path.append(node)
                node = self.parent[node]
            found = path + found
        return found

    def postorder(self) -> list[int]:
        """All inner nodes, each after those below it."""
        order, stack = [], [self.top]
        while stack:
            node = stack.pop()
            if node >= self.n_taxa:
                order.append(node)
                stack += (self.left[node], self.right[node])
        order.reverse()
        return order

    def splits(self) -> list[int]:
        """(n_nodes,) the taxa below each node as a set of bits, see `plltool.tree.splits`; 0 for tip 0."""
        below = [1 << node for node in range(self.n_taxa)] + [0] * (self.n_taxa - 2)
        below[ROOT] = 0
        for node in self.postorder():
            below[node] = below[self.left[node]] | below[self.right[node]]
        return below


def from_tree(tree: Tree) -> tuple[Topology, list[float]]:
    """The topology and the lengths (n_nodes,) of the branches above the nodes, 0 for tip 0."""
    n_nodes = tree.n_nodes
    topology = Topology(tree.n_taxa, [-1] * n_nodes, [-1] * n_nodes, [-1] * n_nodes)
    lengths = [0.0] * n_nodes
    given = tree.lengths.tolist()
    for node, parent, branch in tree.directed_from(ROOT):
        topology.parent[node] = parent
        (topology.right if topology.left[parent] >= 0 else topology.left)[parent] = node
        lengths[node] = given[branch]
    return topology, lengths


def to_tree(topology: Topology, lengths: Sequence[float], names: Sequence[str]) -> Tree:
    """The same as a `Tree`, whose branch ``e`` is the one above node ``e + 1``."""
    ends = np.column_stack([topology.parent[1:], np.arange(1, topology.n_nodes)])
    return Tree.from_edges(names, ends, lengths[1:])


def format_newick(topology: Topology, lengths: Sequence[float], digits: int) -> str:
    """Newick text with the numbers of the taxa from 1 on in place of their names, as MrBayes' files of trees have it.

    It is a trifurcation at the top, whose last child is taxon 1.
    """
    left, right, n_taxa = topology.left, topology.right, topology.n_taxa
    tails = [f":{length:.{digits}e}" for length in lengths]
    texts = [f"{node + 1}{tails[node]}" for node in range(n_taxa)] + [""] * (n_taxa - 2)
    for node in topology.postorder():
        texts[node] = f"({texts[left[node]]},{texts[right[node]]}){tails[node]}"
    top = topology.top
    return f"({texts[left[top]]},{texts[right[top]]},1{tails[top]});"
