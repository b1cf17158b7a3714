"""A rooted tree as it is written, with nodes of any degree and labels of inner nodes; and the same without its root."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plltool.arrays import FloatArray, IntArray, WholeArray
from plltool.constants import NO_NODE
from plltool.errors import count

if TYPE_CHECKING:
    from plltool.tree.topology import Tree


@dataclass
class RootedNodes:
    """A rooted tree as it stands in a file; nodes in preorder, node 0 being the root."""

    parents: list[int] = field(default_factory=list)  # the parent of each node, -1 for the root.
    # the length of the branch above each node, NaN where none is given.
    lengths: list[float] = field(default_factory=list)
    # the name of each tip, and what stands at inner nodes, such as the support of the branch above; or "".
    labels: list[str] = field(default_factory=list)
    # the labels that came without quotes, so that an underscore in them may stand for a blank.
    bare: set[str] = field(default_factory=set)
    # the number of branches with a negative length, which is read as 0; neighbour joining makes such.
    n_negative: int = 0
    # how far before the latest tip a node lies, at least and at most, of the nodes of which a file tells that.
    heights: dict[int, tuple[float, float]] = field(default_factory=dict)

    def add(self, parent: int, length: float = math.nan, label: str = "") -> int:
        """Append a child of `parent` and return its number."""
        self.parents.append(parent)
        self.lengths.append(length)
        self.labels.append(label)
        return len(self.parents) - 1

    def set_length(self, node: int, length: float) -> None:
        """Set the length of the branch above a node, 0 for a negative one."""
        self.n_negative += length < 0
        self.lengths[node] = max(length, 0.0)

    def describe_negative(self, source: str) -> list[str]:
        """A warning of negative lengths, if there are any."""
        lengths = count(self.n_negative, "negative branch length")
        return [f"{source}: {lengths} read as 0"] if self.n_negative else []

    @classmethod
    def of_tree(cls, tree: Tree) -> RootedNodes:
        """A tree as `write_newick` writes it, rooted at the inner node next to tip 0."""
        root = int(tree.neighbours[0, 0])
        lengths = tree.lengths if tree.lengths.ndim == 1 else tree.lengths.mean(axis=1)
        made = cls()
        number = {root: made.add(NO_NODE)}
        for node, parent, branch in tree.shown_from(root):
            label = tree.names[node] if tree.is_tip(node) else ""
            number[node] = made.add(number[parent], float(lengths[branch]), label)
        return made

    def children(self) -> list[list[int]]:
        """The children of each node, in their order."""
        found: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents[1:], start=1):
            found[parent].append(node)
        return found

    def taxa_below(self, tips: Mapping[int, int]) -> list[int]:
        """The taxa at or below each node, as a set of bits; `tips` are their numbers by node."""
        below = [1 << tips[node] if node in tips else 0 for node in range(len(self.parents))]
        for node in range(len(below) - 1, 0, -1):
            below[self.parents[node]] |= below[node]
        return below

    @property
    def tips(self) -> list[int]:
        """The nodes without children."""
        inner = set(self.parents)
        return [node for node in range(len(self.parents)) if node not in inner]

    def clade_sizes(self) -> list[int]:
        """The number of tips at or below each node."""
        inner = set(self.parents)
        sizes = [int(node not in inner) for node in range(len(self.parents))]
        for node in range(len(sizes) - 1, 0, -1):
            sizes[self.parents[node]] += sizes[node]
        return sizes

    def contracted(self, gone: Sequence[bool]) -> RootedNodes:
        """The tree without the nodes that are `gone`, which are not tips; their children go to the next node above."""
        children = self.children()
        for node in range(len(gone) - 1, 0, -1):
            if gone[node]:
                above = children[self.parents[node]]
                place = above.index(node)
                above[place : place + 1] = children[node]
        return self._ordered_by(children)

    def ladderized(self) -> RootedNodes:
        """The tree with the smaller of two clades first, at each node; equal ones keep their order."""
        sizes = self.clade_sizes()
        return self._ordered_by([sorted(below, key=sizes.__getitem__) for below in self.children()])

    def _ordered_by(self, children: Sequence[Sequence[int]]) -> RootedNodes:
        """The tree of the nodes that hang together below the root in `children`, in that order."""
        made, stack = RootedNodes(bare=self.bare), [(0, NO_NODE)]
        while stack:
            node, parent = stack.pop()
            new = made.add(parent, self.lengths[node], self.labels[node])
            if node in self.heights:
                made.heights[new] = self.heights[node]
            stack += [(child, new) for child in reversed(children[node])]
        return made


class Place(NamedTuple):
    """A point of a tree: on `branch`, at `share` of its length from its first end."""

    branch: int
    share: float


@dataclass(frozen=True)
class UnrootedNodes:
    """A tree without a root, whose nodes have any degree but 2."""

    ends: IntArray  # int32 (n_branches, 2), the two nodes of each branch
    lengths: FloatArray  # float64 (n_branches,), NaN where none is given
    labels: tuple[str, ...]  # of each branch, such as its support; "" for nothing
    names: dict[int, str]  # of the tips, by their nodes

    @classmethod
    def of(cls, nodes: RootedNodes) -> UnrootedNodes:
        """The tree without its root; the two branches at a root become one, with the first of their labels."""
        children = nodes.children()
        ends, lengths, place = unrooted_branches(nodes)
        inner = ["" if not below else label for below, label in zip(children, nodes.labels, strict=True)]
        labels = [inner[node] for node in ends[:, 0].tolist()]
        if place is not None:
            labels[place[0]] = labels[place[0]] or inner[ends[place[0], 1]]
        names = {node: label for node, label in enumerate(nodes.labels) if not children[node]}
        return cls(ends, lengths, tuple(labels), names)

    def rooted_at(self, place: Place) -> RootedNodes:
        """The tree with a root of two branches at a place; both have the label of the branch that the root divides."""
        root = int(self.ends.max()) + 1
        first, second = self.ends[place.branch].tolist()
        whole = float(self.lengths[place.branch])
        ends = np.vstack([self.ends, [root, second]])
        ends[place.branch] = first, root
        lengths = np.append(self.lengths, (1.0 - place.share) * whole)
        lengths[place.branch] = place.share * whole
        labels = (*self.labels, self.labels[place.branch])
        made = RootedNodes()
        number = {root: made.add(NO_NODE)}
        for node, parent, branch in preorder(ends, root):
            number[node] = made.add(number[parent], float(lengths[branch]), self.names.get(node, labels[branch]))
        return made


def preorder(ends: WholeArray, root: int) -> list[tuple[int, int, int]]:
    """(node, parent, branch) of every node but `root` of a tree of branches (n, 2), at each node in their order."""
    links: dict[int, list[tuple[int, int]]] = {}  # (other end, branch) of the branches at each node
    for branch, (a, b) in enumerate(ends.tolist()):
        links.setdefault(a, []).append((b, branch))
        links.setdefault(b, []).append((a, branch))
    visits = []
    stack = [(node, root, branch) for node, branch in reversed(links[root])]
    while stack:
        node, parent, branch = stack.pop()
        visits.append((node, parent, branch))
        stack += [(other, node, own) for other, own in reversed(links[node]) if own != branch]
    return visits


def unrooted_branches(nodes: RootedNodes) -> tuple[IntArray, FloatArray, tuple[int, float] | None]:
    """The branches (n, 2) and lengths (n,) without root and nodes of one child, and `Tree.root_place`."""
    parents, lengths = list(nodes.parents), list(nodes.lengths)
    n_children = np.bincount(np.array(parents[1:], dtype=np.intp), minlength=len(parents)).tolist()
    single = [number == 1 for number in n_children]
    for node, parent in enumerate(nodes.parents):
        if parent != NO_NODE and single[parent]:
            parents[node] = parents[parent]
            lengths[node] = add_lengths(lengths[node], lengths[parent])
    kept = [node for node, parent in enumerate(parents) if not single[node] and parent != NO_NODE]
    ends = [(node, parents[node]) for node in kept]
    kept_lengths = [lengths[node] for node in kept]
    root = next(node for node, parent in enumerate(parents) if not single[node] and parent == NO_NODE)
    place = None
    if n_children[root] == 2:
        first, second = (branch for branch, end in enumerate(ends) if end[1] == root)
        ends[first] = ends[first][0], ends[second][0]
        both = add_lengths(kept_lengths[first], kept_lengths[second])
        place = first, add_lengths(kept_lengths[first], 0.0) / both if both > 0 else 0.5
        kept_lengths[first] = both
        del ends[second], kept_lengths[second]
    return np.array(ends, dtype=np.int32), np.array(kept_lengths), place


def add_lengths(a: float, b: float) -> float:
    """The length of two branches in a row; one that is not given (NaN) adds nothing."""
    if math.isnan(a):
        return b
    return a if math.isnan(b) else min(a + b, sys.float_info.max)
