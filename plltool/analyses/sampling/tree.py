"""The tree of a chain: lists of numbers, of which a proposal replaces those that it changes.

The tree hangs from tip 0: `top` is its only child. Every other node has a branch above it, which has the node's
number, so a branch keeps its number as long as the subtree below it. Nodes are numbered as in `Tree`. Lists are never
changed in place once a state holds them; states share those that they have in common.

If parts have branch lengths of their own, those of each part follow behind those of the part before: the branch of a
node has the lengths ``lengths[node :: topology.n_branches]``, and only the first number, of tip 0, is not a length.

A tree in time has a root: of n taxa it is a `Topology` of n + 1 tips, whose tip 0 is the stem, so that its top is the
root; taxon k is tip k + 1. Heights are times before the latest tip, in years.

The lower bound a_i of an inner node i is the height of the oldest tip below it. With p for its parent, the ratio of i
is r_i = (h_i - a_i) / (h_p - a_i), a number between 0 and 1 that is free of all others (Kishino, Thorne & Bruno 2001;
Ji et al. 2023); the root has h - a. The coordinates are logit r_i and log(h - a), which have no bounds at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from plltool.arrays import FloatArray
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
    def n_branches(self) -> int:
        return 2 * self.n_taxa - 3

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


def lengths_by_part(topology: Topology, lengths: list[float]) -> list[list[float]]:
    """The lengths (n_nodes,) of each part, 0 for tip 0; only one list if parts share them."""
    n = topology.n_branches
    if len(lengths) == n + 1:
        return [lengths]
    return [[0.0, *lengths[first : first + n]] for first in range(1, len(lengths), n)]


def draw_below_top(topology: Topology, first: int, rng: np.random.Generator) -> int:
    """A node from number `first` on, drawn uniformly, but not the top: those that have an inner node above."""
    node = int(rng.integers(first, topology.n_nodes - 1))
    return node + (node >= topology.top)


def interchange(old: Topology, lower: int, below: int) -> Topology:
    """The tree in which the node `below` the branch above `lower` has changed places with the one beside it."""
    upper, beside = old.parent[lower], old.sibling(lower)
    topology = old.copy()
    topology.replace_child(lower, below, beside)
    topology.replace_child(upper, beside, below)
    return topology


def prune(topology: Topology, node: int) -> tuple[Topology, int]:
    """The tree without the subtree below a node and the joint above it, and the joint's other child."""
    joint, home = topology.parent[node], topology.sibling(node)
    rest = topology.copy()
    rest.replace_child(topology.parent[joint], joint, home)
    return rest, home


def regraft(topology: Topology, node: int, edge: int) -> Topology:
    """The tree in which the subtree below `node`, with the joint above it, hangs on another branch.

    edge : the node below the branch, in the tree without the subtree
    """
    moved, sibling = prune(topology, node)
    joint = topology.parent[node]
    moved.replace_child(moved.parent[edge], edge, joint)
    moved.replace_child(joint, sibling, edge)
    return moved


def from_tree(tree: Tree) -> tuple[Topology, list[float]]:
    """The topology and the lengths of the branches above the nodes, see the head of the module."""
    n_nodes = tree.n_nodes
    topology = Topology(tree.n_taxa, [-1] * n_nodes, [-1] * n_nodes, [-1] * n_nodes)
    branches = [0] * n_nodes
    for node, parent, branch in tree.directed_from(ROOT):
        topology.parent[node] = parent
        (topology.right if topology.left[parent] >= 0 else topology.left)[parent] = node
        branches[node] = branch
    return topology, [0.0, *tree.lengths[branches[1:]].ravel(order="F").tolist()]


def to_tree(topology: Topology, lengths: Sequence[float], names: Sequence[str]) -> Tree:
    """The same as a `Tree`, whose branch ``e`` is the one above node ``e + 1``."""
    ends = np.column_stack([topology.parent[1:], np.arange(1, topology.n_nodes)])
    return Tree.from_edges(names, ends, lengths[1:])


def hang(rooted: Topology) -> tuple[Topology, list[int]]:
    """The tree without its root, hung from taxon 0 as chains have it.

    Inner nodes keep their numbers, less 1, but for the last one: it has that of the root, which is left out.
    Also returns which of its branches that above each node of the rooted tree is, or is a part of.
    """
    top, last = rooted.top, rooted.n_nodes - 1
    number = list(range(-1, last))
    number[last] = top - 1
    parent, left, right = ([-1] * (last - 1) for _ in range(3))
    branches = [0] * (last + 1)
    up = [rooted.sibling(node) if above == top else above for node, above in enumerate(rooted.parent)]
    left[ROOT] = number[up[1]]
    stack = [(1, up[1])]
    while stack:
        upper, node = stack.pop()
        parent[number[node]] = number[upper]
        for lower, above in ((node, upper), (upper, node)):  # both if the root is between them
            if up[lower] == above:
                branches[lower] = number[node]
        if node >= rooted.n_taxa:
            first, second = (other for other in (rooted.left[node], rooted.right[node], up[node]) if other != upper)
            left[number[node]], right[number[node]] = number[first], number[second]
            stack += ((node, first), (node, second))
    return Topology(rooted.n_taxa - 1, parent, left, right), branches


def changed_nodes(
    old: Topology, old_lengths: Sequence[float], new: Topology, lengths: Sequence[float]
) -> tuple[int, ...]:
    """The inner nodes of hung trees whose children, or the lengths to these, are others."""
    return tuple(
        node
        for node in range(new.n_taxa, new.n_nodes)
        if (a := new.left[node]) != old.left[node]
        or (b := new.right[node]) != old.right[node]
        or lengths[a] != old_lengths[a]
        or lengths[b] != old_lengths[b]
    )


class TimePoint(NamedTuple):
    """What a time tree adds to a state."""

    rooted: Topology
    heights: list[float]  # (n_nodes,) of all nodes, 0 for the stem
    numbers: tuple[float, ...]  # of the clock and of the tree's prior
    # (n_nodes,) the rate of the branch above each node, relative to the clock's; none for a strict clock. Those above
    # stem and root have the prior only, so that all numbers of nodes are alike
    rates: list[float]
    branches: list[int]  # see `hang`

    @property
    def gaps(self) -> FloatArray:
        """(n_nodes,) duration of the branch above each node; 0 for the stem and the root."""
        heights, top = np.array(self.heights), self.rooted.top
        found = heights[self.rooted.parent] - heights
        found[[ROOT, top]] = 0.0
        return np.asarray(found)


def lower_bounds(rooted: Topology, heights: Sequence[float]) -> list[float]:
    """(n_nodes,) the height of the oldest tip below each node."""
    found = list(heights)
    for node in rooted.postorder():
        found[node] = max(found[rooted.left[node]], found[rooted.right[node]])
    return found


def coordinates_of_heights(rooted: Topology, heights: Sequence[float]) -> FloatArray:
    """(n - 1,) logit of the ratio of each inner node, by its number; of the root log(h - a)."""
    n, lower = rooted.n_taxa, lower_bounds(rooted, heights)
    found = [0.0] * (n - 2)
    for node in range(n, rooted.n_nodes):
        up = math.log(heights[node] - lower[node])
        found[node - n] = up if node == rooted.top else up - math.log(heights[rooted.parent[node]] - heights[node])
    return np.array(found)


def heights_at(rooted: Topology, heights: Sequence[float], coordinates: Sequence[float]) -> list[float] | None:
    """The heights (n_nodes,) that have these coordinates; None if two are too close to be told apart."""
    n, lower, found = rooted.n_taxa, lower_bounds(rooted, heights), list(heights)
    for node in reversed(rooted.postorder()):
        own = coordinates[node - n]
        if node == rooted.top:
            found[node] = lower[node] + math.exp(own)
            continue
        above = found[rooted.parent[node]]
        share = 1.0 / (1.0 + math.exp(-own)) if own > 0 else math.exp(own) / (1.0 + math.exp(own))
        found[node] = lower[node] + share * (above - lower[node])
        if not lower[node] < found[node] < above:
            return None
    return found if is_legal(rooted, found) else None


def log_jacobian(rooted: Topology, heights: Sequence[float]) -> float:
    """log |dh / dz|: of each inner node but the root (h_i - a_i) (h_p - h_i) / (h_p - a_i); h - a of the root.

    dh_i / dr_i = h_p - a_i, and dr_i / dz_i = r_i (1 - r_i). A height depends on those above it alone, so the matrix is
    triangular and its determinant the product of its diagonal: the time is linear.
    """
    lower, total = lower_bounds(rooted, heights), 0.0
    for node in range(rooted.n_taxa, rooted.n_nodes):
        up = heights[node] - lower[node]
        if node == rooted.top:
            total += math.log(up)
        else:
            above = heights[rooted.parent[node]]
            total += math.log(up * (above - heights[node]) / (above - lower[node]))
    return total


def height_slopes(rooted: Topology, heights: Sequence[float]) -> FloatArray:
    """Slopes of heights in coordinates, dh / dz: (n_nodes, n - 1): the parent's times the ratio, and its own."""
    n, lower = rooted.n_taxa, lower_bounds(rooted, heights)
    found = np.zeros((rooted.n_nodes, n - 2))
    for node in reversed(rooted.postorder()):
        up, share = heights[node] - lower[node], 0.0
        if node != rooted.top:
            share = up / (heights[rooted.parent[node]] - lower[node])
            found[node] = share * found[rooted.parent[node]]
        found[node, node - n] = up * (1.0 - share)
    return found


def coordinate_slopes(rooted: Topology, heights: Sequence[float], slopes: FloatArray) -> FloatArray:
    """(n - 1,) slopes of a function plus `log_jacobian` in the coordinates, from its slopes (n_nodes,) in the heights.

    Let g_i be the slope in h_i with all ratios below i kept. Since dh_i / dh_p = r_i, and log(h_p - a_i) is in the
    Jacobian, children add r_i g_i + 1 / (h_p - a_i) to g_p; the slope in z_i is
    g_i (h_p - a_i) r_i (1 - r_i) + 1 - 2 r_i, and in that of the root g (h - a) + 1.
    """
    n, lower = rooted.n_taxa, lower_bounds(rooted, heights)
    g = slopes.tolist()
    found = np.empty(n - 2)
    for node in rooted.postorder():
        up = heights[node] - lower[node]
        if node == rooted.top:
            found[node - n] = g[node] * up + 1.0
            continue
        parent = rooted.parent[node]
        whole = heights[parent] - lower[node]
        ratio = up / whole
        g[parent] += ratio * g[node] + 1.0 / whole
        found[node - n] = g[node] * up * (1.0 - ratio) + 1.0 - 2.0 * ratio
    return found


def is_legal(rooted: Topology, heights: Sequence[float]) -> bool:
    """Whether all nodes are above those below them."""
    inner = range(rooted.n_taxa, rooted.n_nodes)
    return all(heights[node] > max(heights[rooted.left[node]], heights[rooted.right[node]]) for node in inner)


def root_tree(
    topology: Topology, lengths: Sequence[float], dates: Sequence[float], on: int | None = None
) -> tuple[Topology, list[float], float]:
    """A tree with a root, its branch lengths (n_nodes,), and a rate: where distances from the root fit the dates best.

    The root is in the middle of a branch, that above the node `on` if there is one. `dates` are those of the taxa; if
    all are equal, distances should vary least, and the rate is 0.
    """
    n, n_nodes, parent = topology.n_taxa, topology.n_nodes, topology.parent
    near = [[parent[node], topology.left[node], topology.right[node]] for node in range(n_nodes)]

    def walk(branch: int) -> list[tuple[int, int, float]]:
        """All nodes, each after the one before it on the way from the middle of a branch, and the lengths between."""
        half = lengths[branch] / 2.0
        order = [(branch, parent[branch], half), (parent[branch], branch, half)]
        for node, before, _ in order:
            others = (other for other in near[node] if other not in (before, -1))
            order += ((other, node, lengths[other if parent[other] == node else node]) for other in others)
        return order

    centred = np.array(dates) - np.mean(dates)
    spread, fits = float(centred @ centred), []
    for branch in range(1, n_nodes) if on is None else (on,):
        distances = [0.0] * n_nodes
        for number, (node, before, length) in enumerate(walk(branch)):
            distances[node] = length + (distances[before] if number > 1 else 0.0)
        tips = np.array(distances[:n]) - np.mean(distances[:n])
        slope = max(0.0, float(tips @ centred) / spread) if spread > 0 else 0.0
        fits.append((float(np.sum((tips - slope * centred) ** 2)), branch, slope))
    _, branch, rate = min(fits)
    root = n_nodes + 1
    above, left, right, own = [-1] * (root + 1), [-1] * (root + 1), [-1] * (root + 1), [0.0] * (root + 1)
    above[root], left[ROOT] = ROOT, root
    for number, (node, before, length) in enumerate(walk(branch)):
        upper = root if number < 2 else before + 1
        above[node + 1], own[node + 1] = upper, length
        (right if left[upper] >= 0 else left)[upper] = node + 1
    return Topology(n + 1, above, left, right), own, rate
