"""The section on the tree."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from plltool.constants import REPORT_ROWS
from plltool.reports.blocks import Block, Facts, MarkedTree, Prose, Section, TreePicture
from plltool.reports.picture import Mark, TimeScale
from plltool.reports.records import Records
from plltool.reports.tree_drawing import TreeDrawing
from plltool.tree.rooted_nodes import RootedNodes

UNROOTED = (
    "The tree is unrooted: unless an outgroup was given, the root in the picture is arbitrary."
    " Branch lengths are expected substitutions per site."
)
ROOTED = "The model finds the root. Branch lengths are expected substitutions per site."


def describe_tree(records: Records, nodes: RootedNodes) -> Section:
    """The tree, with its supports if they are known."""
    run = records.main
    kinds: tuple[tuple[str, str], ...] = ()
    if records.supports is not None and records.supports_are_of_main_tree:
        kinds = tuple((kind, str(own["unit"])) for kind, own in records.supports["kinds"].items())
    rows = [("Taxa", str(len(nodes.tips)))]
    if run is not None:
        rows.append(("Log-likelihood (lnL)", f"{run['lnl']:.4f}"))
    rows.append(("Tree length", f"{sum_lengths(nodes):.4f}"))
    if kinds:
        rows.append(("Branch labels", " / ".join(f"{kind} ({unit})" for kind, unit in kinds)))
    remark = ROOTED if nodes.parents.count(0) == 2 else UNROOTED
    blocks: list[Block] = [Facts(tuple(rows)), TreePicture(nodes.ladderized(), kinds), Prose(remark)]
    return Section("tree", "Tree", tuple(blocks))


def sum_lengths(nodes: RootedNodes) -> float:
    return math.fsum(length for length in nodes.lengths[1:] if not math.isnan(length))


def mark_tree(nodes: RootedNodes, marks: Sequence[Mark], caption: str, **settings: Any) -> MarkedTree:
    """A tree, smaller clades first, with marks at its branches; `settings` are attributes of `MarkedTree`."""
    numbered = RootedNodes(nodes.parents, nodes.lengths, [str(node) for node in range(len(nodes.parents))])
    turned = numbered.ladderized()
    order = [int(label) for label in turned.labels]
    turned.labels = [nodes.labels[node] for node in order]
    made = MarkedTree(turned, tuple(marks[node] for node in order), caption, **settings)
    if made.time is None or not made.time.ranges:
        return made
    return replace(made, time=replace(made.time, ranges=tuple(made.time.ranges[node] for node in order)))


def draw_marked(block: MarkedTree) -> tuple[TreeDrawing, str]:
    """A tree with its smallest clades collapsed where it is large, and its caption without the legend."""
    shown, kept = collapse_large(block.nodes)
    groups = [range(first, end) for first, end in pairwise([*kept, len(block.nodes.parents)])]
    marks = tuple(_join_marks([block.marks[node] for node in own], block.widest) for own in groups)
    time = block.time
    if time is not None and time.ranges:
        time = TimeScale(time.latest, tuple(time.ranges[node] for node in kept))
    return TreeDrawing(shown, marks, time), tell_collapsed(block.nodes, shown) + block.caption


def _join_marks(marks: Sequence[Mark], widest: float | None) -> Mark:
    """The mark of a branch, or of a collapsed clade whose branches have these, the one above it first."""
    if widest is None:
        return marks[0]
    number = sum(int(mark.text or 0) for mark in marks)
    band = min(widest, math.sqrt(sum(mark.band**2 for mark in marks)))
    return Mark(str(number or ""), marks[0].dot, round(band, 1))


def tell_collapsed(whole: RootedNodes, shown: RootedNodes) -> str:
    """A sentence and a blank if clades of a tree are collapsed; else nothing."""
    if len(whole.parents) == len(shown.parents):
        return ""
    return f"The tree is large: its smallest clades are collapsed, so that it has {REPORT_ROWS} rows. "


def collapse_large(nodes: RootedNodes) -> tuple[RootedNodes, list[int]]:
    """A tree of at most REPORT_ROWS rows: the smallest clades become tips, named by the number of their taxa.

    Returns the tree, and the nodes of the whole tree that it has. A clade ends at the mean depth of its tips.
    """
    children = nodes.children()
    sizes, depths = [int(not below) for below in children], [0.0] * len(children)  # depths: summed over tips
    for node in range(len(children) - 1, 0, -1):
        length = 0.0 if math.isnan(nodes.lengths[node]) else nodes.lengths[node]
        parent = nodes.parents[node]
        sizes[parent] += sizes[node]
        depths[parent] += depths[node] + length * sizes[node]
    if sizes[0] <= REPORT_ROWS:
        return nodes, list(range(len(children)))
    opened = _open_largest(children, sizes)
    made = RootedNodes()
    numbers: dict[int, int] = {}
    for node, parent in enumerate(nodes.parents):
        if node and parent not in opened:
            continue
        numbers[node] = made.add(numbers.get(parent, parent))
        made.lengths[-1], made.labels[-1] = nodes.lengths[node], nodes.labels[node]
        if children[node] and node not in opened:
            made.lengths[-1] += depths[node] / sizes[node]
            tip = node
            while children[tip]:
                tip = children[tip][0]
            made.labels[-1] = f"[{sizes[node]} taxa, among them {nodes.labels[tip]}]"
    return made, list(numbers)


def _open_largest(children: Sequence[Sequence[int]], sizes: Sequence[int]) -> set[int]:
    """The nodes that stay open in a tree of at most REPORT_ROWS rows, the largest clades first."""
    opened, waiting, n_rows = set(), [(-sizes[0], 0)], 1
    while waiting and n_rows + len(children[waiting[0][1]]) - 1 <= REPORT_ROWS:
        node = heapq.heappop(waiting)[1]
        opened.add(node)
        n_rows += len(children[node]) - 1
        for child in children[node]:
            if children[child]:
                heapq.heappush(waiting, (-sizes[child], child))
    return opened


def name_branches(nodes: RootedNodes) -> list[str]:
    """What people call the branch above each node: its taxon, or the first and the last of the clade below it."""
    children = nodes.children()
    first, last, sizes = list(nodes.labels), list(nodes.labels), [int(not below) for below in children]
    for node in range(len(children) - 1, -1, -1):
        if children[node]:
            first[node], last[node] = first[children[node][0]], last[children[node][-1]]
            sizes[node] = sum(sizes[child] for child in children[node])
    return [
        f"{first[node]} … {last[node]} ({sizes[node]} taxa)" if below else nodes.labels[node]
        for node, below in enumerate(children)
    ]
