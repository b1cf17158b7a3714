"""Constraint trees: which splits a search must keep, and where each subtree may move without breaking one.

A constraint is a tree over some of the taxa, the *members*, with nodes of any degree; the other taxa are *free*. A
tree obeys the constraint if its restriction to the members, the *core*, has every split of the constraint. Contracting
the branches of the core that are not splits of the constraint then gives the constraint: the nodes of the core that
become one node of it are a *region*, which is connected. A subtree with members may move to all branches of the core
that touch the region of the node on which it hangs, and nowhere else. A branch of the whole tree counts as the branch
of the core on which it lies, or on which its free side hangs. A subtree without members may move anywhere. Two passes
over the tree find all of this, so the work is linear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from plltool.arrays import AnyArray, ArrayLike, BoolArray, IntArray
from plltool.constants import NO_NODE
from plltool.tree.moves import attach_tip, resolve_nodes
from plltool.tree.rooted_nodes import preorder
from plltool.tree.topology import Tree

ANYWHERE = -1  # the region of a subtree that no split of the constraint restricts
ROOT = 0  # the constraint node of the first member; the others are numbered in preorder from there


@dataclass(frozen=True, eq=False)
class Constraint:
    """A tree over some of the taxa, with at least one inner branch."""

    names: tuple[str, ...]  # (n_taxa,) all taxa, in the order in which tips are numbered
    tips: IntArray  # (n_taxa,) the constraint node of each taxon, NO_NODE if the taxon is free
    parents: IntArray  # (n_nodes,) the neighbour of each node towards node 0, the first member; NO_NODE for node 0
    sizes: IntArray  # (n_nodes,) number of members at or below each node, without the first member

    @property
    def n_members(self) -> int:
        return int(np.count_nonzero(self.tips != NO_NODE))

    @property
    def n_splits(self) -> int:
        """The number of inner branches, which are the splits that matter."""
        return len(self.parents) - 1 - self.n_members

    @cached_property
    def last(self) -> IntArray:
        """(n_nodes,) one more than the last node below each: the nodes below v are v + 1 to ``last[v] - 1``."""
        last = np.arange(1, len(self.parents) + 1, dtype=np.int32)
        for node in range(len(last) - 1, 0, -1):
            last[self.parents[node]] = max(last[self.parents[node]], last[node])
        return last

    @property
    def attachments(self) -> IntArray:
        """(n_taxa,) the inner constraint node next to each member, NO_NODE for free taxa."""
        above = self.parents[self.tips]
        above[self.tips == ROOT] = 1
        return np.where(self.tips == NO_NODE, NO_NODE, above).astype(np.int32)

    def restrict(self, names: Sequence[str]) -> "Constraint | None":
        """The constraint on some of the taxa, numbered as in `names`; None if none of its splits remains."""
        numbers = {name: number for number, name in enumerate(names)}
        taxa = {
            int(node): numbers[name]
            for name, node in zip(self.names, self.tips, strict=True)
            if node != NO_NODE and name in numbers
        }
        return make_constraint(names, np.column_stack([np.arange(len(self.parents)), self.parents])[1:], taxa)

    def violated_split(self, tree: Tree) -> tuple[list[str], list[str]] | None:
        """The members on both sides of a split that the tree lacks, the smaller side first; None if the tree obeys."""
        node = _Core(self, tree).violated
        if node is None:
            return None
        below = (self.tips >= node) & (self.tips < self.last[node])
        sides = (below, ~below & (self.tips != NO_NODE))
        first, second = ([self.names[taxon] for taxon in np.flatnonzero(side)] for side in sides)
        return (first, second) if len(first) < len(second) else (second, first)

    def is_obeyed_by(self, tree: Tree) -> bool:
        """Whether a tree over the same taxa, numbered alike, has every split."""
        return _Core(self, tree).violated is None

    def random_tree(self, rng: np.random.Generator) -> Tree:
        """Draw a tree uniformly from all that obey, of default lengths: members, then the free taxa in random order."""
        n_taxa, n_placed = len(self.names), self.n_members
        branches = np.column_stack([np.arange(len(self.parents)), self.parents])[1:].astype(np.int32)
        resolved, _ = resolve_nodes(branches, np.zeros(len(branches)), rng)
        number = np.full(resolved.max() + 1, NO_NODE, dtype=np.int32)
        members = np.flatnonzero(self.tips != NO_NODE)
        number[self.tips[members]] = members
        inner = np.flatnonzero(number == NO_NODE)
        number[inner] = np.arange(n_taxa, n_taxa + len(inner))
        ends = np.empty((2 * n_taxa - 3, 2), dtype=np.int32)
        ends[: len(resolved)] = number[resolved]
        for tip in rng.permutation(np.flatnonzero(self.tips == NO_NODE)).tolist():
            attach_tip(ends, int(rng.integers(2 * n_placed - 3)), tip, n_placed)
            n_placed += 1
        return Tree.from_edges(self.names, ends)

    def addition_order(self, order: Sequence[int]) -> list[int]:
        """The taxa in this order, except that the first member comes first, and free taxa after all members."""
        kinds = np.where(self.tips == NO_NODE, 2, self.tips > ROOT)
        return sorted(order, key=kinds.tolist().__getitem__)


def make_constraint(names: Sequence[str], branches: ArrayLike, taxa: Mapping[int, int]) -> Constraint | None:
    """The constraint given by the branches (n, 2) of an unrooted tree; None if it has no inner branch.

    `names` are all taxa, `taxa` the tips that are members, and their numbers in `names`; other tips are left out, and
    the branches that meet there are joined.
    """
    if len(taxa) < 4:
        return None
    ends, root = np.asarray(branches), min(taxa, key=taxa.__getitem__)
    visits = preorder(ends, root)
    first = {node: taxa.get(node, len(names)) for node in ends.ravel().tolist()}  # taxon at or below each node
    for node, parent, _ in reversed(visits):
        first[parent] = min(first[parent], first[node])
    last_first = [branch for _, branch in sorted(((first[node], branch) for node, _, branch in visits), reverse=True)]
    visits = preorder(ends[last_first], root)
    size, branching = dict.fromkeys(first, 0), dict.fromkeys(first, 0)
    for node, parent, _ in reversed(visits):
        size[node] += node in taxa
        if size[node]:
            size[parent] += size[node]
            branching[parent] += 1
    tips = np.full(len(names), NO_NODE, dtype=np.int32)
    number = {NO_NODE: NO_NODE}
    parents: list[int] = []
    sizes: list[int] = []
    for node, parent, _ in [(root, NO_NODE, NO_NODE), *visits]:  # a node left out takes the number of the node above it
        kept = node in taxa or branching[node] > 1
        number[node] = len(parents) if kept else number[parent]
        if not kept:
            continue
        if node in taxa:
            tips[taxa[node]] = number[node]
        parents.append(number[parent])
        sizes.append(size[node])
    made = Constraint(tuple(names), tips, np.array(parents, dtype=np.int32), np.array(sizes, dtype=np.int32))
    return made if made.n_splits else None


class _Core:
    """The core of a tree, seen from the first member.

    Each node except the root tip stands for the branch above it, which lies on a branch of the core or hangs on one.

    order : (n_nodes - 1,) (node, parent, branch) as from `Tree.directed_from`
    counts : (n_nodes,) number of members at or below each node
    low : (n_nodes,) the region of the lower end of that branch of the core; for a tip its constraint node
    is_joint : (n_nodes,) whether the core branches at the node
    violated : a constraint node whose split, above it, the tree lacks; the other attributes are incomplete then. None
        if the tree obeys
    """

    def __init__(self, constraint: Constraint, tree: Tree):
        parents, sizes, tips = constraint.parents.tolist(), constraint.sizes.tolist(), constraint.tips.tolist()
        self.root = tips.index(ROOT)
        self.order = tree.directed_from(self.root)
        self.counts = [int(node > ROOT) for node in tips] + [0] * (tree.n_nodes - tree.n_taxa)
        self.low = tips + [NO_NODE] * (tree.n_nodes - tree.n_taxa)
        self.is_joint = [False] * tree.n_nodes
        self.violated: int | None = None
        counts, low = self.counts, self.low
        for node, parent, _ in reversed(self.order):
            if not counts[node]:
                continue
            if not counts[parent]:
                counts[parent], low[parent] = counts[node], low[node]
                continue
            # once all members of a region are below, the region of its parent begins
            a, b = (parents[low[v]] if counts[v] == sizes[low[v]] else low[v] for v in (parent, node))
            if a != b:
                self.violated = b if a < b < constraint.last[a] else a
                return
            low[parent] = a
            counts[parent] += counts[node]
            self.is_joint[parent] = True


class Regions:
    """Where the subtrees of one topology that obeys the constraint may move; make a new one after every move.

    sides : int32 (n_edges, 2), the regions at both ends of the core branch that each branch counts as; a tip of the
        core is a region of its own
    homes : int32 (n_nodes, 3), the region where the subtree in each column of an inner node hangs on the core;
        ANYWHERE if the subtree has no members, or the rest of the tree has at most one
    """

    def __init__(self, constraint: Constraint, tree: Tree):
        core = _Core(constraint, tree)
        if core.violated is not None:
            raise ValueError("the tree does not obey the constraint")
        low, counts, is_joint = core.low, core.counts, core.is_joint
        high = [ROOT] * tree.n_nodes
        for node, parent, _ in core.order:
            if parent != core.root:
                high[node] = low[parent] if is_joint[parent] else high[parent]
                if not counts[node]:
                    low[node] = low[parent]
        nodes, _, branches = np.array(core.order).T
        lows, highs = np.array(low, dtype=np.int32), np.array(high, dtype=np.int32)
        self.sides: IntArray = np.empty((tree.n_edges, 2), dtype=np.int32)
        self.sides[branches] = np.column_stack([lows, highs])[nodes]
        lower_end = np.empty(tree.n_edges, dtype=np.int64)
        lower_end[branches] = nodes
        below = lower_end[tree.edges]
        hangs_below = below != np.arange(tree.n_nodes)[:, None]
        self.homes: IntArray = np.where(hangs_below, highs[below], lows[below])
        is_free = np.array(counts)[below] == 0  # no members on one of the two sides of the branch
        is_tip = np.zeros(len(constraint.parents), dtype=bool)
        is_tip[constraint.tips[constraint.tips != NO_NODE]] = True
        self.homes[is_free | is_tip[self.homes]] = ANYWHERE

    def admit(self, homes: AnyArray, branches: AnyArray) -> BoolArray:
        """Mask (n,): whether subtrees with these `homes` (n,) may move into `branches` (n,)."""
        sides = self.sides[branches]
        return (homes == ANYWHERE) | (sides[:, 0] == homes) | (sides[:, 1] == homes)


class Growth:
    """Where the next taxon may go in a tree that grows by one taxon at a time, members first.

    Branches are numbered as by `attach_tip`; each is a path through the constraint. A new member meets the reached part
    of the constraint at some node c, and may go into each branch whose path passes c. Subtrees of the constraint are
    intervals of its preorder. `first`, `second`: the two tips to start with, see `Constraint.addition_order`.
    """

    def __init__(self, constraint: Constraint, first: int, second: int):
        self._constraint = constraint
        self._occupied = np.zeros(len(constraint.parents), dtype=bool)
        self._occupied[ROOT] = True
        self._ways = np.zeros((2 * len(constraint.names) - 3, 2), dtype=np.int32)
        self._ways[0] = constraint.tips[[first, second]]
        self._n_placed = 2
        self._occupied[self._path(second)] = True

    def legal(self, tip: int) -> BoolArray:
        """Mask (n_branches,) of the branches into which `tip` may go."""
        n_branches = 2 * self._n_placed - 3
        if self._constraint.tips[tip] == NO_NODE:
            return np.ones(n_branches, dtype=bool)
        node = self._path(tip)[-1]
        ways = self._ways[:n_branches]
        upper, lower = ways.min(axis=1), ways.max(axis=1)
        return (upper <= node) & (node <= lower) & (lower < self._constraint.last[node])

    def insert(self, tip: int, branch: int) -> None:
        """Note that a tip has been inserted into a branch."""
        lower, pendant = 2 * self._n_placed - 3, 2 * self._n_placed - 2
        self._n_placed += 1
        own = self._constraint.tips[tip]
        if own == NO_NODE:  # all members are placed, so nothing is restricted any more
            return
        path = self._path(tip)
        self._ways[lower] = path[-1], self._ways[branch, 1]
        self._ways[branch, 1] = path[-1]
        self._ways[pendant] = own, path[-1]
        self._occupied[path] = True

    def _path(self, tip: int) -> list[int]:
        """The nodes from a member on to the first one in the part of the constraint that has been reached."""
        path = [int(self._constraint.tips[tip])]
        while not self._occupied[path[-1]]:
            path.append(int(self._constraint.parents[path[-1]]))
        return path
