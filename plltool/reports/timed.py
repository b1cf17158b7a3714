"""A tree in time: branch lengths are years, and an axis of years stands below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plltool.arrays import FloatArray
from plltool.reports.picture import (
    BAND_COLOUR,
    FONT,
    GAP,
    LABEL_COLOUR,
    MARGIN,
    ROW,
    SMALL_FONT,
    Line,
    Marks,
    Picture,
    Text,
    add_rows,
    names_width,
    tree_height,
)
from plltool.reports.shape import drawn_lengths, node_depths, node_rows, round_ticks
from plltool.tree.rooted_nodes import RootedNodes

TICKS = 10  # years with a line, roughly
GRID_COLOUR = "#d0d0d0"
RANGE_WIDTH = 7.0


@dataclass(frozen=True)
class TimeScale:
    """When the nodes of a tree lived whose lengths are years.

    Attributes
    ----------
    latest : the year of the tip that is furthest from the root
    ranges : of each node the years between which it lies, None where they are not known; or none of any node
    """

    latest: float
    ranges: tuple[tuple[float, float] | None, ...] = ()

    def years(self, nodes: RootedNodes) -> FloatArray:
        """(n_nodes,) the year of each node."""
        depths = node_depths(nodes, drawn_lengths(nodes)[0])
        return self.latest - depths.max() + depths


def draw_timed(nodes: RootedNodes, time: TimeScale, width: float, marks: Marks) -> Picture:
    """A tree with its root at the left, a row for each tip, and bars over the years between which nodes lie.

    The sheet is wider than `width` if the names of tips leave less than a third of it for the tree.
    """
    years, names, bottom = time.years(nodes), names_width(nodes), tree_height(nodes)
    known = [ends for ends in time.ranges if ends is not None]
    first = min([float(years.min()), *(ends[0] for ends in known)])
    last = max([float(years.max()), *(ends[1] for ends in known)])
    room = max(width - 2 * MARGIN - GAP - names, width / 3.0)
    scale = room / max(last - first, 1e-300)
    picture = Picture(max(width, MARGIN + room + names + GAP + MARGIN), bottom + FONT + GAP + MARGIN)
    for year, text in round_ticks(first, last, TICKS):
        x = MARGIN + (year - first) * scale
        picture.lines.append(Line(x, MARGIN, x, bottom, colour=GRID_COLOUR))
        picture.texts.append(Text(x, bottom + FONT + GAP, text, SMALL_FONT, "middle", colour=LABEL_COLOUR))
    _add_ranges(picture, nodes, time.ranges, first, scale)
    add_rows(picture, nodes, MARGIN + (years - first) * scale, marks)
    return picture


def _add_ranges(
    picture: Picture, nodes: RootedNodes, ranges: Sequence[tuple[float, float] | None], first: float, scale: float
) -> None:
    """Bars of nodes whose dates are not exact."""
    rows = node_rows(nodes).tolist()
    for row, ends in zip(rows, ranges, strict=False):
        if ends is not None and ends[0] < ends[1]:
            y = MARGIN + ROW / 2.0 + row * ROW
            x1, x2 = (MARGIN + (year - first) * scale for year in ends)
            picture.lines.append(Line(x1, y, x2, y, RANGE_WIDTH, BAND_COLOUR))
