"""The section on the tree."""

from __future__ import annotations

import heapq
import math

from plltool.constants import REPORT_ROWS
from plltool.pages.blocks import Block, Facts, Prose, Section, TreePicture
from plltool.pages.records import Records
from plltool.tree.rooted_nodes import RootedNodes

UNROOTED = (
    "The root in the picture has no meaning unless an outgroup was given: the method finds trees without a root."
    " Branch lengths are expected substitutions per site."
)
ROOTED = "The model finds the root. Branch lengths are expected substitutions per site."


def describe_tree(records: Records, nodes: RootedNodes) -> Section:
    """The tree, with its supports if they are known."""
    run = records.main
    kinds: tuple[tuple[str, str], ...] = ()
    if records.supports is not None and records.supports_are_of_main_tree:
        kinds = tuple((kind, str(own["unit"])) for kind, own in records.supports["kinds"].items())
    rows = [("Taxa", str(sum(not below for below in nodes.children())))]
    if run is not None:
        rows.append(("Log-likelihood (lnL)", f"{run['lnl']:.4f}"))
    rows.append(("Length of the tree", f"{sum_lengths(nodes):.4f}"))
    if kinds:
        rows.append(("Numbers at branches", " / ".join(f"{kind} ({unit})" for kind, unit in kinds)))
    remark = ROOTED if nodes.parents.count(0) == 2 else UNROOTED
    blocks: list[Block] = [Facts(tuple(rows)), TreePicture(nodes.ladderized(), kinds), Prose(remark)]
    return Section("tree", "Tree", tuple(blocks))


def sum_lengths(nodes: RootedNodes) -> float:
    """The sum of all branch lengths that are given."""
    return math.fsum(length for length in nodes.lengths[1:] if not math.isnan(length))


def collapse_large(nodes: RootedNodes) -> tuple[RootedNodes, int]:
    """A tree of at most REPORT_ROWS rows: the smallest clades become tips, named by the number of their taxa.

    Returns the tree, and the number of clades that were collapsed. A clade ends at the mean depth of its tips.
    """
    children = nodes.children()
    sizes, depths = [int(not below) for below in children], [0.0] * len(children)  # depths: summed over tips
    for node in range(len(children) - 1, 0, -1):
        length = 0.0 if math.isnan(nodes.lengths[node]) else nodes.lengths[node]
        parent = nodes.parents[node]
        sizes[parent] += sizes[node]
        depths[parent] += depths[node] + length * sizes[node]
    if sizes[0] <= REPORT_ROWS:
        return nodes, 0
    opened, waiting, n_rows = set(), [(-sizes[0], 0)], 1
    while waiting and n_rows + len(children[waiting[0][1]]) - 1 <= REPORT_ROWS:
        node = heapq.heappop(waiting)[1]
        opened.add(node)
        n_rows += len(children[node]) - 1
        for child in children[node]:
            if children[child]:
                heapq.heappush(waiting, (-sizes[child], child))
    made, n_collapsed = RootedNodes(), 0
    numbers: dict[int, int] = {}
    for node, parent in enumerate(nodes.parents):
        if node and parent not in opened:
            continue
        numbers[node] = made.add(numbers.get(parent, parent))
        made.lengths[-1], made.labels[-1] = nodes.lengths[node], nodes.labels[node]
        if children[node] and node not in opened:
            n_collapsed += 1
            made.lengths[-1] += depths[node] / sizes[node]
            made.labels[-1] = f"[{sizes[node]} taxa, among them {_first_tip(nodes, children, node)}]"
    return made, n_collapsed


def _first_tip(nodes: RootedNodes, children: list[list[int]], node: int) -> str:
    while children[node]:
        node = children[node][0]
    return nodes.labels[node]
