"""Trees in reports, which readers of a page can turn and collapse."""

import heapq
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

from plltool.constants import REPORT_ROWS
from plltool.reports.blocks import REPORT_WIDTH, Block, wrap
from plltool.reports.picture import BAND_COLOUR, Mark, TimeScale
from plltool.reports.plots import Markup, element, read_part
from plltool.reports.tree_drawing import TreeDrawing
from plltool.tree.rooted_nodes import RootedNodes

_PICTURE_WIDTH = 980.0


@dataclass(frozen=True)
class TreePicture(Block):
    """The tree of a page."""

    nodes: RootedNodes  # the tree; labels of inner nodes are supports
    kinds: Sequence[tuple[str, str]]  # the kinds of these supports and their units, in the order of the labels
    legend: str = field(default="", kw_only=True)  # what is said of a picture only, behind its caption

    def draw(self) -> tuple[TreeDrawing, str]:
        """The tree with its smallest clades collapsed where it is large, and the caption of the picture."""
        shown, _ = _collapse_large(self.nodes)
        colours = "The colour of a dot shows the support: green from 95 % on, yellow from 80 %, red below."
        caption = colours if self.kinds else "Numbers at the scale bar are expected substitutions per site."
        return TreeDrawing(shown), _tell_collapsed(self.nodes, shown) + caption

    def facts(self) -> dict[str, Any]:
        """What the script needs beside the tree."""
        return {"kinds": [{"name": name, "largest": 1 if unit == "0 to 1" else 100} for name, unit in self.kinds]}

    def html(self, key: str) -> Markup:
        """The picture in a frame that scrolls, and what the script needs to draw it again; in a notebook alone.

        `key` tells the names of its inputs from those of other trees.
        """
        drawing, caption = self.draw()
        below = element("figcaption", f"{caption} {self.legend}".rstrip())
        if not key:
            return element("figure", Markup(drawing._repr_html_()), below)
        toolbar = Markup(read_part("toolbar.html").replace("KEY", key))
        named = {"role": "group", "aria_label": "Picture of the tree"}
        frame = element("div", Markup(drawing.svg(_PICTURE_WIDTH)), class_="scroll tree", tabindex="0", **named)
        data = element("script", Markup(self._data()), type="application/json")
        return element("figure", toolbar, frame, data, below, class_="interactive")

    def _data(self) -> str:
        """The tree as JSON that nothing in it can end: every < is written as an escape."""
        data = {
            "parents": self.nodes.parents,
            "lengths": [None if math.isnan(length) else length for length in self.nodes.lengths],
            "labels": self.nodes.labels,
            "rows": REPORT_ROWS,
            **self.facts(),
        }
        return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")

    def lines(self) -> list[str]:
        drawing = TreeDrawing(self.nodes)
        if drawing.n_taxa > REPORT_ROWS:
            pointer = "is too large for text; the HTML page and `plltool show` draw it."
            return wrap(f"The tree of {drawing.n_taxa} taxa {pointer}")
        return drawing.text(REPORT_WIDTH).rstrip("\n").split("\n")


@dataclass(frozen=True)
class MarkedTree(TreePicture):
    """A tree with marks at its branches, which readers of a page cannot turn if it keeps its root."""

    marks: Sequence[Mark]  # of the branch above each node
    caption: str  # what the marks mean
    keeps_root: bool = False  # whether the marks have a meaning only as seen from the root
    # if given, the marks of a collapsed clade add up: their texts are numbers, their bands roots of sums, of at most
    # this width
    widest: float | None = None
    time: TimeScale | None = None  # when the nodes lived, if lengths are years

    @classmethod
    def of(cls, nodes: RootedNodes, marks: Sequence[Mark], caption: str, **settings: Any) -> Self:
        """A tree, smaller clades first; `settings` are further attributes."""
        numbered = RootedNodes(nodes.parents, nodes.lengths, [str(node) for node in range(len(nodes.parents))])
        turned = numbered.ladderized()
        order = [int(label) for label in turned.labels]
        turned.labels = [nodes.labels[node] for node in order]
        made = cls(turned, (), [marks[node] for node in order], caption, **settings)
        return made if made.time is None else replace(made, time=made.time.of_nodes(order))

    def draw(self) -> tuple[TreeDrawing, str]:
        shown, kept = _collapse_large(self.nodes)
        groups = [range(first, end) for first, end in pairwise([*kept, len(self.nodes.parents)])]
        marks = tuple(_join_marks([self.marks[node] for node in own], self.widest) for own in groups)
        time = None if self.time is None else self.time.of_nodes(kept)
        return TreeDrawing(shown, marks, time), _tell_collapsed(self.nodes, shown) + self.caption

    def facts(self) -> dict[str, Any]:
        known = ([mark.colour] * (mark.colour != BAND_COLOUR) for mark in self.marks)
        marks = [[own.text, own.dot, round(own.band, 2), *one] for own, one in zip(self.marks, known, strict=True)]
        facts = {"kinds": [], "marks": marks, "keepsRoot": self.keeps_root, "widest": self.widest}
        if self.time is not None:
            facts["time"] = {"latest": self.time.latest, "ranges": self.time.ranges}
        return facts

    def lines(self) -> list[str]:
        drawing, caption = self.draw()
        return [*drawing.text(REPORT_WIDTH).rstrip("\n").split("\n"), "", *wrap(caption)]


Drawn = tuple[str, tuple[tuple[str, str], ...]] | MarkedTree  # or Newick, and the kinds of its labels with their units


def _join_marks(marks: Sequence[Mark], widest: float | None) -> Mark:
    """The mark of a branch, or of a collapsed clade whose branches have these, the one above it first."""
    if widest is None:
        return marks[0]
    number = sum(int(mark.text or 0) for mark in marks)
    band = min(widest, math.sqrt(sum(mark.band**2 for mark in marks)))
    return Mark(str(number or ""), marks[0].dot, round(band, 1))


def _tell_collapsed(whole: RootedNodes, shown: RootedNodes) -> str:
    """A sentence and a blank if clades of a tree are collapsed; else nothing."""
    if len(whole.parents) == len(shown.parents):
        return ""
    return f"The tree is large: its smallest clades are collapsed, so that it has {REPORT_ROWS} rows. "


def _collapse_large(nodes: RootedNodes) -> tuple[RootedNodes, list[int]]:
    """A tree of at most REPORT_ROWS rows: the smallest clades become tips, named by the number of their taxa.

    Returns the tree, and the nodes of the whole tree that it has. A clade ends at the mean depth of its tips.
    """
    children, sizes = nodes.children(), nodes.clade_sizes()
    if sizes[0] <= REPORT_ROWS:
        return nodes, list(range(len(children)))
    depths = [0.0] * len(children)  # below each node, summed over its tips
    for node in range(len(children) - 1, 0, -1):
        length = 0.0 if math.isnan(nodes.lengths[node]) else nodes.lengths[node]
        depths[nodes.parents[node]] += depths[node] + length * sizes[node]
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
