"""A tree as lines, dots and texts on a sheet, in points; `plltool.drawing.svg` and `plltool.drawing.pdf` write it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from plltool.arrays import FloatArray
from plltool.drawing.shape import drawn_lengths, equal_angles, nice_length, node_depths, node_rows
from plltool.tree.rooted_nodes import RootedNodes

Anchor = Literal["start", "middle", "end"]

FONT, SMALL_FONT = 12.0, 9.0  # heights of letters
LETTER_WIDTH = 0.6  # of a letter, on average, relative to its height; sans-serif letters are rarely wider
ROW = 18.0  # from one tip to the next
MARGIN = 12.0
GAP = 4.0  # between a branch and what is written beside it
DOT = 3.5  # the radius of a dot at a node
BAR_SHARE = 0.25  # of the width of the tree, at most, is the scale bar
LINE_COLOUR, TEXT_COLOUR, LABEL_COLOUR = "#333333", "#111111", "#666666"
SUPPORT_COLOURS = ((95.0, "#1b7837"), (80.0, "#b8860b"), (0.0, "#b2182b"))  # from which per cent on
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?")


@dataclass(frozen=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float


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


def draw_rectangular(nodes: RootedNodes, width: float, labels: bool = True) -> Picture:
    """A tree with its root at the left and a row for each tip, branches in proportion to their lengths.

    Parameters
    ----------
    width : of the sheet; it is wider if the names of tips leave less than a third of it for the tree
    labels : draw what stands at inner nodes: the text, and a dot whose colour tells a support
    """
    lengths, are_own = drawn_lengths(nodes)
    depths, rows = node_depths(nodes, lengths), node_rows(nodes)
    children = nodes.children()
    names = max(text_width(label) for label, below in zip(nodes.labels, children, strict=True) if not below)
    room = max(width - 2 * MARGIN - GAP - names, width / 3.0)
    scale = room / float(depths.max())
    left = MARGIN + (_overhang(nodes, children, depths * scale) if labels else 0.0)
    x, y = (left + depths * scale).tolist(), (MARGIN + ROW / 2.0 + rows * ROW).tolist()
    picture = Picture(max(width, left + room + names + GAP + MARGIN), max(y) + ROW / 2.0 + MARGIN)
    for node, below in enumerate(children):
        above = x[nodes.parents[node]] if node else x[0]
        if node:
            picture.lines.append(Line(above, y[node], x[node], y[node]))
        if below:
            picture.lines.append(Line(x[node], y[below[0]], x[node], y[below[-1]]))
            if labels and node and nodes.labels[node]:
                _add_label(picture, nodes.labels[node], x[node], y[node], Text(
                    x[node] - GAP, y[node] - GAP, nodes.labels[node], SMALL_FONT, "end", colour=LABEL_COLOUR
                ))  # fmt: skip
        else:
            picture.texts.append(Text(x[node] + GAP, y[node] + FONT / 3.0, nodes.labels[node]))
    if are_own:
        _add_scale_bar(picture, scale, room)
    return picture


def draw_unrooted(nodes: RootedNodes, width: float, labels: bool = True) -> Picture:
    """A tree without a root, its clades in sectors around a point; names stand in the direction of their branches.

    Parameters as for `draw_rectangular`; the sheet is as high as the tree needs.
    """
    lengths, are_own = drawn_lengths(nodes)
    points, directions = equal_angles(nodes, lengths)
    children = nodes.children()
    tips = [node for node, below in enumerate(children) if not below]
    names = max(text_width(nodes.labels[tip]) for tip in tips) + GAP
    spread = points.max(axis=0) - points.min(axis=0)
    room = max(width - 2 * (MARGIN + names), width / 3.0)
    scale = room / float(max(spread.max(), 1e-300))
    edge = MARGIN + names
    places = (points - points.min(axis=0)) * scale + edge
    x, y = places[:, 0].tolist(), places[:, 1].tolist()
    picture = Picture(spread[0] * scale + 2 * edge, spread[1] * scale + 2 * edge)
    for node, parent in enumerate(nodes.parents[1:], start=1):
        picture.lines.append(Line(x[parent], y[parent], x[node], y[node]))
        if children[node] and labels and nodes.labels[node]:
            _add_label(picture, nodes.labels[node], x[node], y[node], Text(
                x[node] + GAP, y[node] - GAP, nodes.labels[node], SMALL_FONT, colour=LABEL_COLOUR
            ))  # fmt: skip
    for tip in tips:
        picture.texts.append(_name_along(nodes.labels[tip], x[tip], y[tip], float(directions[tip])))
    if are_own:
        _add_scale_bar(picture, scale, room)
    return picture


def text_width(text: str, size: float = FONT) -> float:
    """About how wide a line of text is."""
    return LETTER_WIDTH * size * len(text)


def support_colour(label: str) -> str | None:
    """The colour of a support, by the first number of a label, a share up to 1 as per cent; None without a number."""
    number = _NUMBER.match(label)
    if number is None:
        return None
    value = float(number[0])
    per_cent = 100.0 * value if value <= 1.0 and "." in number[0] else value
    return next(colour for least, colour in SUPPORT_COLOURS if per_cent >= least)


def _overhang(nodes: RootedNodes, children: Sequence[Sequence[int]], x: FloatArray) -> float:
    """By how much labels of inner nodes, which end at their nodes, would stick out of the sheet at the left."""
    inner = [node for node, below in enumerate(children) if node and below and nodes.labels[node]]
    return max([0.0, *(text_width(nodes.labels[node], SMALL_FONT) + GAP - MARGIN - float(x[node]) for node in inner)])


def _add_label(picture: Picture, label: str, x: float, y: float, text: Text) -> None:
    colour = support_colour(label)
    if colour is not None:
        picture.dots.append(Dot(x, y, colour, label))
    picture.texts.append(text)


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
