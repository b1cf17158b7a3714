"""A tree as lines, dots and texts on a sheet, in points; `plltool.reports.tree_drawing` writes it.

Where nodes stand comes first, in the tree's own units.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self, TypeAlias

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
    children, n_tips = nodes.children(), nodes.clade_sizes()
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


Anchor = Literal["start", "middle", "end"]

FONT, SMALL_FONT = 12.0, 9.0  # heights of letters
LETTER_WIDTH = 0.6  # of a letter, on average, relative to its height; sans-serif letters are rarely wider
ROW = 18.0  # from one tip to the next
MARGIN = 12.0
GAP = 4.0  # between a branch and what is written beside it
DOT = 3.5  # the radius of a dot at a node
MOST_BEYOND = 36.0  # from a tip to its name, where names of neighbours would overlap
BAR_SHARE = 0.25  # of the width of the tree, at most, is the scale bar
LINE_WIDTH = 1.2
LINE_COLOUR, TEXT_COLOUR, LABEL_COLOUR, BAND_COLOUR = "#333333", "#111111", "#666666", "#9dbfe0"
GUIDE_COLOUR = "#d0d0d0"  # of a line from a tip to its name
GOOD_COLOUR, FAIR_COLOUR, POOR_COLOUR = "#1b7837", "#b8860b", "#b2182b"
SUPPORT_COLOURS = ((95.0, GOOD_COLOUR), (80.0, FAIR_COLOUR), (0.0, POOR_COLOUR))  # from which per cent on
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?")
_SUPPORT = r"(?:[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?%?|nan|-)?"


@dataclass(frozen=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    width: float = LINE_WIDTH
    colour: str = LINE_COLOUR

    @property
    def is_thick(self) -> bool:
        """Whether it ends where it should to the point; thin lines end a little later, so that corners are closed."""
        return self.width > LINE_WIDTH


@dataclass(frozen=True)
class Dot:
    """A filled circle, and what it means."""

    x: float
    y: float
    colour: str
    title: str


@dataclass(frozen=True)
class Text:
    """A line of text beside a point, turned clockwise by `angle` degrees around it."""

    x: float
    y: float
    text: str
    size: float = FONT
    anchor: Anchor = "start"
    angle: float = 0.0
    colour: str = TEXT_COLOUR


@dataclass
class Picture:
    """What stands on a sheet of `width` times `height` points; y grows downwards."""

    width: float
    height: float
    lines: list[Line] = field(default_factory=list)
    dots: list[Dot] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def group_lines(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines of the same colour and width together, in the order in which each kind comes first."""
    groups: dict[tuple[str, float], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.colour, line.width), []).append(line)
    return list(groups.values())


@dataclass(frozen=True)
class Mark:
    """What is drawn at a branch: a text, the colour of a dot at the lower end, width and colour of a band behind it."""

    text: str = ""
    dot: str | None = None
    band: float = 0.0
    colour: str = BAND_COLOUR


Marks: TypeAlias = Sequence[Mark]  # of the branch above each node


def support_marks(nodes: RootedNodes) -> list[Mark]:
    """What stands at inner nodes: the text, and a dot whose colour tells a support."""
    labels = zip(nodes.labels, nodes.children(), strict=True)
    return [Mark(label, support_colour(label)) if below else Mark() for label, below in labels]


def draw_rectangular(nodes: RootedNodes, width: float, marks: Marks) -> Picture:
    """A tree with its root at the left and a row for each tip, branches in proportion to their lengths.

    The sheet has this width, or more if the names of tips leave less than a third of it for the tree. `marks` belong to
    the nodes; the root's is left out.
    """
    lengths, are_own = drawn_lengths(nodes)
    depths = node_depths(nodes, lengths)
    names = names_width(nodes)
    room = max(width - 2 * MARGIN - GAP - names, width / 3.0)
    scale = room / float(depths.max())
    left = MARGIN + _overhang(marks, depths * scale)
    picture = Picture(max(width, left + room + names + GAP + MARGIN), tree_height(nodes))
    add_rows(picture, nodes, left + depths * scale, marks)
    if are_own:
        _add_scale_bar(picture, scale, room)
    return picture


def tree_height(nodes: RootedNodes) -> float:
    return 2 * MARGIN + ROW * len(nodes.tips)


def names_width(nodes: RootedNodes) -> float:
    return max(text_width(nodes.labels[tip]) for tip in nodes.tips)


def add_rows(picture: Picture, nodes: RootedNodes, across: FloatArray, marks: Marks) -> None:
    """Draw a tree with a row for each tip; `across` (n_nodes,) is how far from the left each node stands."""
    x, y = across.tolist(), (MARGIN + ROW / 2.0 + node_rows(nodes) * ROW).tolist()
    for node, mark in enumerate(marks[1:], start=1):
        _add_band(picture, mark, Line(x[nodes.parents[node]], y[node], x[node], y[node]))
    for node, below in enumerate(nodes.children()):
        if node:
            picture.lines.append(Line(x[nodes.parents[node]], y[node], x[node], y[node]))
            beside = Text(x[node] - GAP, y[node] - GAP, marks[node].text, SMALL_FONT, "end", colour=LABEL_COLOUR)
            _add_mark(picture, marks[node], x[node], y[node], beside)
        if below:
            picture.lines.append(Line(x[node], y[below[0]], x[node], y[below[-1]]))
        else:
            picture.texts.append(Text(x[node] + GAP, y[node] + FONT / 3.0, nodes.labels[node]))


def draw_unrooted(nodes: RootedNodes, width: float, marks: Marks) -> Picture:
    """A tree without a root, its clades in sectors around a point; names stand in the direction of their branches.

    Parameters as for `draw_rectangular`; the sheet is as high as the tree needs.
    """
    lengths, are_own = drawn_lengths(nodes)
    points, directions = equal_angles(nodes, lengths)
    tips, names = nodes.tips, names_width(nodes) + GAP
    spread = points.max(axis=0) - points.min(axis=0)
    room = max(width - 2 * (MARGIN + names), width / 3.0)
    scale = room / float(max(spread.max(), 1e-300))
    beyond = _names_apart(points[tips] * scale, directions[tips])
    edge = MARGIN + names + float(beyond.max())
    places = (points - points.min(axis=0)) * scale + edge
    x, y = places[:, 0].tolist(), places[:, 1].tolist()
    picture = Picture(spread[0] * scale + 2 * edge, spread[1] * scale + 2 * edge)
    for node, parent in enumerate(nodes.parents[1:], start=1):
        _add_band(picture, marks[node], Line(x[parent], y[parent], x[node], y[node]))
    for node, parent in enumerate(nodes.parents[1:], start=1):
        picture.lines.append(Line(x[parent], y[parent], x[node], y[node]))
        beside = Text(x[node] + GAP, y[node] - GAP, marks[node].text, SMALL_FONT, colour=LABEL_COLOUR)
        _add_mark(picture, marks[node], x[node], y[node], beside)
    for tip, far in zip(tips, beyond.tolist(), strict=True):
        direction = float(directions[tip])
        end = x[tip] + far * math.cos(direction), y[tip] + far * math.sin(direction)
        if far:
            picture.lines.append(Line(x[tip], y[tip], *end, colour=GUIDE_COLOUR))
        picture.texts.append(_name_along(nodes.labels[tip], *end, direction))
    if are_own:
        _add_scale_bar(picture, scale, room)
    return picture


def text_width(text: str, size: float = FONT) -> float:
    """About how wide a line of text is."""
    return LETTER_WIDTH * size * len(text)


def is_support(label: str) -> bool:
    """Whether what stands at an inner node is nothing, a number, or several between slashes, rather than a name."""
    return re.fullmatch(f"{_SUPPORT}(?:/{_SUPPORT})*", label) is not None


def support_colour(label: str) -> str | None:
    """The colour of a support, by the first number of a label, a share up to 1 as per cent; None without a number."""
    number = _NUMBER.match(label)
    if number is None:
        return None
    value = float(number[0])
    per_cent = 100.0 * value if value <= 1.0 and "." in number[0] else value
    return next(colour for least, colour in SUPPORT_COLOURS if per_cent >= least)


def _overhang(marks: Marks, x: FloatArray) -> float:
    """By how much the texts of marks, which end at their nodes, would stick out of the sheet at the left."""
    marked = [(mark, float(own)) for mark, own in zip(marks[1:], x[1:], strict=True) if mark.text]
    return max([0.0, *(text_width(mark.text, SMALL_FONT) + GAP - MARGIN - own for mark, own in marked)])


def _add_band(picture: Picture, mark: Mark, line: Line) -> None:
    if mark.band:
        picture.lines.append(replace(line, width=mark.band, colour=mark.colour))


def _add_mark(picture: Picture, mark: Mark, x: float, y: float, text: Text) -> None:
    if mark.dot is not None:
        picture.dots.append(Dot(x, y, mark.dot, mark.text))
    if mark.text:
        picture.texts.append(text)


def _names_apart(ends: FloatArray, directions: FloatArray) -> FloatArray:
    """(n,) how far beyond its tip each name begins, so that it does not touch the name of the next tip around."""
    beyond = np.zeros(len(ends))
    for tip in range(len(ends)):
        both = [tip - 1, tip]
        near = float(np.hypot(*(ends[tip] - ends[tip - 1])))
        sine = abs(math.sin((directions[tip] - directions[tip - 1]) / 2.0))
        if near < FONT:
            beyond[both] = np.maximum(beyond[both], min((FONT - near) / max(2.0 * sine, 1e-9), MOST_BEYOND))
    return beyond


def _name_along(name: str, x: float, y: float, direction: float) -> Text:
    """A name behind the end of a branch, never upside down."""
    degrees = math.degrees(direction) % 360.0
    x, y = x + GAP * math.cos(direction), y + GAP * math.sin(direction)
    if 90.0 < degrees < 270.0:
        return Text(x, y, name, anchor="end", angle=degrees - 180.0)
    return Text(x, y, name, angle=degrees)


def _add_scale_bar(picture: Picture, scale: float, room: float) -> None:
    """A bar of a round length below the tree, in expected substitutions per site."""
    length = nice_length(room * BAR_SHARE / scale)
    y = picture.height
    picture.lines.append(Line(MARGIN, y, MARGIN + length * scale, y))
    for x in (MARGIN, MARGIN + length * scale):
        picture.lines.append(Line(x, y - GAP, x, y + GAP))
    picture.texts.append(Text(MARGIN, y + FONT + GAP, f"{length:g}", SMALL_FONT, colour=LABEL_COLOUR))
    picture.height = y + FONT + GAP + MARGIN


# --- A tree in time: branch lengths are years, and an axis of years stands below --------------------------

TICKS = 10  # years with a line, roughly
GRID_COLOUR = "#d0d0d0"
RANGE_WIDTH = 7.0


@dataclass(frozen=True)
class TimeScale:
    """When the nodes of a tree lived whose lengths are years."""

    latest: float  # the year of the tip that is furthest from the root
    # of each node the years between which it lies, None where they are not known; or none of any node
    ranges: tuple[tuple[float, float] | None, ...] = ()

    def of_nodes(self, kept: Sequence[int]) -> Self:
        """The same for a tree that has these nodes, in this order."""
        return replace(self, ranges=tuple(self.ranges[node] for node in kept if self.ranges))

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
    for row, ends in zip(node_rows(nodes).tolist(), time.ranges, strict=False):
        if ends is not None and ends[0] < ends[1]:  # dates that are not exact
            y = MARGIN + ROW / 2.0 + row * ROW
            x1, x2 = (MARGIN + (year - first) * scale for year in ends)
            picture.lines.append(Line(x1, y, x2, y, RANGE_WIDTH, BAND_COLOUR))
    add_rows(picture, nodes, MARGIN + (years - first) * scale, marks)
    return picture
