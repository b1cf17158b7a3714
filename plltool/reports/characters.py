"""A tree drawn with characters, for terminals and text files."""

from __future__ import annotations

import numpy as np

from plltool.arrays import FloatArray, IntArray
from plltool.reports.shape import drawn_lengths, nice_length, node_rows
from plltool.tree.rooted_nodes import RootedNodes

LEFT, RIGHT, UP, DOWN = 1, 2, 4, 8  # the directions in which lines leave a cell
LINES = {
    LEFT: "─",
    RIGHT: "─",
    LEFT | RIGHT: "─",
    UP | DOWN: "│",
    RIGHT | DOWN: "┌",
    RIGHT | UP: "└",
    LEFT | DOWN: "┐",
    LEFT | UP: "┘",
    LEFT | RIGHT | DOWN: "┬",
    LEFT | RIGHT | UP: "┴",
    RIGHT | UP | DOWN: "├",
    LEFT | UP | DOWN: "┤",
    LEFT | RIGHT | UP | DOWN: "┼",
}
ASCII = str.maketrans("─│┌└┐┘┬┴├┤┼", "-|++++++|++")
BAR_SHARE = 0.25  # of the width of the tree, at most, is the scale bar
FITTING_STEPS = 60  # halvings of an interval: more than digits in a double


def draw_characters(nodes: RootedNodes, width: int, labels: bool = True, ascii_only: bool = False) -> str:
    """A tree with its root at the left and a row for each tip, as lines of text.

    Branches are in proportion to their lengths, but at least one character long, and long enough for their labels; a
    scale bar follows if the tree has lengths. The text is wider than `width` only if there is no room otherwise.

    Parameters
    ----------
    width : characters in a line
    labels : write what stands at inner nodes, such as supports, on the branches
    ascii_only : draw with ``-``, ``|`` and ``+``
    """
    children = nodes.children()
    rows = np.floor(node_rows(nodes)).astype(int).tolist()
    texts = [label if labels and below else "" for label, below in zip(nodes.labels, children, strict=True)]
    least = np.array([len(text) + 1 for text in texts])
    lengths, are_own = drawn_lengths(nodes)
    tips = [node for node, below in enumerate(children) if not below]
    room = width - 1 - max(len(nodes.labels[tip]) for tip in tips)
    scale = _fit(nodes, lengths, least, max(room, 1))
    columns = _columns(nodes, lengths, least, scale)
    cells = np.zeros((max(rows) + 1, max(columns) + 1), dtype=np.int32)
    for node, below in enumerate(children):
        for child in below:
            _draw_branch(cells, rows[node], columns[node], rows[child], columns[child])
        if below and node:
            cells[rows[node], columns[node]] |= LEFT
    lines = [[LINES.get(int(cell), " ") for cell in row] for row in cells]
    for node, text in enumerate(texts):
        if text and node:
            lines[rows[node]][columns[node] - len(text) : columns[node]] = text
    drawn = ["".join(line).rstrip() for line in lines]
    for tip in tips:
        drawn[rows[tip]] += f" {nodes.labels[tip]}"
    if are_own:
        drawn += ["", _scale_bar(scale, max(columns))]
    text = "\n".join(drawn) + "\n"
    return text.translate(ASCII) if ascii_only else text


def _fit(nodes: RootedNodes, lengths: FloatArray, least: FloatArray, room: int) -> float:
    """The largest number of characters per unit of length with which the tree has at most `room` columns."""
    low, high = 0.0, room / float(lengths.max())
    for _ in range(FITTING_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if max(_columns(nodes, lengths, least, middle)) <= room else (low, middle)
    return low


def _columns(nodes: RootedNodes, lengths: FloatArray, least: FloatArray, scale: float) -> list[int]:
    """The column of each node."""
    steps = np.maximum(np.rint(lengths * scale), least).astype(int).tolist()
    columns = [0] * len(steps)
    for node, parent in enumerate(nodes.parents[1:], start=1):
        columns[node] = columns[parent] + steps[node]
    return columns


def _draw_branch(cells: IntArray, top_row: int, left: int, row: int, right: int) -> None:
    """The line from a node down or up to the row of its child, and along it."""
    first, last = min(top_row, row), max(top_row, row)
    if first < last:
        cells[first + 1 : last, left] |= UP | DOWN
        cells[top_row, left] |= DOWN if row > top_row else UP
        cells[row, left] |= UP if row > top_row else DOWN
    cells[row, left] |= RIGHT
    cells[row, left + 1 : right] |= LEFT | RIGHT


def _scale_bar(scale: float, width: int) -> str:
    length = nice_length(max(width * BAR_SHARE, 2.0) / scale) if scale else 0.0
    n_characters = round(length * scale)
    return f"├{'─' * max(n_characters - 1, 0)}┤ {length:g}" if n_characters else ""
