"""Rooted trees in time: heights of their nodes, as ratios too, and the tree without its root that has a likelihood.

A rooted tree of n taxa is a `Topology` of n + 1 tips. It hangs from tip 0, the stem, so that its top is the root;
taxon k is tip k + 1. Heights are times before the latest tip, in years.

The lower bound a_i of an inner node i is the height of the oldest tip below it. With p for its parent, the ratio of i
is r_i = (h_i - a_i) / (h_p - a_i), a number between 0 and 1 that is free of all others (Kishino, Thorne & Bruno 2001;
Ji et al. 2023); the root has h - a. The coordinates are logit r_i and log(h - a), which have no bounds at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from plltool.analyses.sampling.tree import ROOT, Topology
from plltool.arrays import FloatArray


class Hung(NamedTuple):
    """A rooted tree without its root, hung from taxon 0 as chains have it."""

    topology: Topology
    branches: list[int]  # (n_nodes of the rooted tree,) which of its branches that above each node is, or is a part of


def hang(rooted: Topology) -> Hung:
    """The tree without its root.

    Inner nodes keep their numbers, less 1, but for the last one: it has that of the root, which is left out.
    """
    n, top, last = rooted.n_taxa - 1, rooted.top, rooted.n_nodes - 1
    number = list(range(-1, last))
    number[last] = top - 1
    left, right = ([-1] * (last - 1) for _ in range(2))
    parent = left.copy()
    for node in range(n + 1, last + 1):
        if node != top:
            left[number[node]], right[number[node]] = number[rooted.left[node]], number[rooted.right[node]]
    below, node = 1, rooted.parent[1]
    left[ROOT] = number[rooted.sibling(1) if node == top else node]
    while node != top:  # branches between taxon 0 and the root are turned around
        upper = rooted.parent[node]
        left[number[node]] = number[rooted.sibling(below)]
        right[number[node]] = number[rooted.sibling(node) if upper == top else upper]
        below, node = node, upper
    for node in range(n, last - 1):
        parent[left[node]] = parent[right[node]] = node
    parent[left[ROOT]] = ROOT
    branches = [0] * (last + 1)
    for node in range(1, last + 1):
        if node != top:
            above = rooted.parent[node]
            a, b = number[node], number[rooted.sibling(node) if above == top else above]
            branches[node] = a if parent[a] == b else b
    return Hung(Topology(n, parent, left, right), branches)


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
    branches: list[int]  # see `Hung`

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


def regraft(
    rooted: Topology, heights: Sequence[float], node: int, edge: int, height: float
) -> tuple[Topology, list[float]]:
    """The tree in which the subtree below `node`, with the joint above it, hangs on another branch, at a height.

    edge : the node below the branch, in the tree without the subtree
    """
    joint, sibling = rooted.parent[node], rooted.sibling(node)
    topology, changed = rooted.copy(), list(heights)
    topology.replace_child(rooted.parent[joint], joint, sibling)
    topology.replace_child(topology.parent[edge], edge, joint)
    topology.replace_child(joint, sibling, edge)
    changed[joint] = height
    return topology, changed


def is_legal(rooted: Topology, heights: Sequence[float]) -> bool:
    """Whether all nodes are above those below them."""
    inner = range(rooted.n_taxa, rooted.n_nodes)
    return all(heights[node] > max(heights[rooted.left[node]], heights[rooted.right[node]]) for node in inner)


def root_tree(
    topology: Topology, lengths: Sequence[float], dates: Sequence[float]
) -> tuple[Topology, list[float], float]:
    """A tree with a root, its branch lengths (n_nodes,), and a rate: where distances from the root fit the dates best.

    The root is in the middle of a branch. `dates` are those of the taxa; if all are equal, distances should vary least,
    and the rate is 0.
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
    for branch in range(1, n_nodes):
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
