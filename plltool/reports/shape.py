"""Where the nodes of a tree stand in a picture, in the tree's own units."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray
from plltool.tree.rooted_nodes import RootedNodes

NICE_STEPS = (1.0, 2.0, 5.0)  # the first digit of a scale bar's length


def drawn_lengths(nodes: RootedNodes) -> tuple[FloatArray, bool]:
    """The lengths of the branches above the nodes, and whether they are the tree's own; else each is 1.

    The root has none, and a tree that has lengths at some branches only has 0 at the others.
    """
    lengths = np.array(nodes.lengths)
    lengths[0] = 0.0
    if np.isnan(lengths[1:]).all() or not np.nansum(lengths) > 0:
        lengths[1:] = 1.0
        return lengths, False
    return np.nan_to_num(lengths), True


def node_depths(nodes: RootedNodes, lengths: Sequence[float] | FloatArray) -> FloatArray:
    """(n_nodes,) the distance of each node from the root."""
    depths = np.array(lengths, dtype=np.float64)
    for node, parent in enumerate(nodes.parents[1:], start=1):
        depths[node] += depths[parent]
    return depths


def node_rows(nodes: RootedNodes) -> FloatArray:
    """(n_nodes,) tips on rows 0, 1, 2, ... from the top, an inner node in the middle of its children."""
    children = nodes.children()
    rows = np.cumsum([not below for below in children]) - 1.0
    for node in range(len(children) - 1, -1, -1):
        if children[node]:
            rows[node] = (rows[children[node][0]] + rows[children[node][-1]]) / 2.0
    return rows


def equal_angles(nodes: RootedNodes, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Points (n_nodes, 2) of an unrooted picture and the direction (n_nodes,) of the branch to each, in radians.

    Each clade has a sector in proportion to its tips, and its branch points to the middle of it (Felsenstein 2004,
    Inferring Phylogenies, p. 578).
    """
    children = nodes.children()
    n_tips = np.array([float(not below) for below in children])
    for node in range(len(children) - 1, 0, -1):
        n_tips[nodes.parents[node]] += n_tips[node]
    starts, points, directions = np.zeros(len(children)), np.zeros((len(children), 2)), np.zeros(len(children))
    for node, below in enumerate(children):
        start = starts[node]
        for child in below:
            sector = 2.0 * math.pi * n_tips[child] / n_tips[0]
            starts[child], directions[child] = start, start + sector / 2.0
            step = np.array([math.cos(directions[child]), math.sin(directions[child])])
            points[child] = points[node] + lengths[child] * step
            start += sector
    return points, directions


def nice_length(about: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most `about`, for a scale bar."""
    power = 10.0 ** math.floor(math.log10(about))
    return max(step * power for step in NICE_STEPS if step * power <= about * (1 + 1e-9))


def round_ticks(low: float, high: float, about: int) -> list[tuple[float, str]]:
    """Round numbers between `low` and `high`, roughly `about` of them, with their texts."""
    step = nice_length((high - low) / (about - 1) * 1.5)
    digits = max(0, -math.floor(math.log10(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(number * step, f"{number * step:.{digits}f}") for number in range(first, last + 1)]
