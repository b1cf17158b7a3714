"""A tree to look at: as characters, SVG, PDF or PNG, and as a picture in notebooks."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import DRAWING_WIDTH
from plltool.errors import InputError
from plltool.reports import picture
from plltool.reports.plots import xml_text
from plltool.tree.rooted_nodes import RootedNodes

TEXT_WIDTH = 80  # characters in a line of a tree drawn with characters
LEFT, RIGHT, UP, DOWN = 1, 2, 4, 8  # the directions in which lines leave a cell
LINES = {
    LEFT: "─", RIGHT: "─", LEFT | RIGHT: "─", UP | DOWN: "│",
    RIGHT | DOWN: "┌", RIGHT | UP: "└", LEFT | DOWN: "┐", LEFT | UP: "┘",
    LEFT | RIGHT | DOWN: "┬", LEFT | RIGHT | UP: "┴", RIGHT | UP | DOWN: "├", LEFT | UP | DOWN: "┤",
    LEFT | RIGHT | UP | DOWN: "┼",
}  # fmt: skip
ASCII = str.maketrans("─│┌└┐┘┬┴├┤┼", "-|++++++|++")
FITTING_STEPS = 60  # halvings of an interval: more than digits in a double


def draw_characters(nodes: RootedNodes, width: int, labels: bool = True, ascii_only: bool = False) -> str:
    """A tree with its root at the left and a row for each tip, as lines of text.

    Branches are in proportion to their lengths, but at least one character long, and long enough for their `labels`,
    such as supports; a scale bar follows if the tree has lengths. The text is wider than `width` characters only if
    there is no room otherwise. `ascii_only`: draw with ``-``, ``|`` and ``+``.
    """
    children = nodes.children()
    rows = np.floor(picture.node_rows(nodes)).astype(int).tolist()
    texts = [label if labels and below else "" for label, below in zip(nodes.labels, children, strict=True)]
    least = np.array([len(text) + 1 for text in texts])
    lengths, are_own = picture.drawn_lengths(nodes)
    tips = nodes.tips
    room = width - 1 - max(len(nodes.labels[tip]) for tip in tips)
    scale = _fit(nodes, lengths, least, max(room, 1))
    columns = _columns(nodes, lengths, least, scale)
    cells = np.zeros((max(rows) + 1, max(columns) + 1), dtype=np.uint8)
    for node, below in enumerate(children):
        column, below_rows = columns[node], [rows[child] for child in below]
        for child, row in zip(below, below_rows, strict=True):
            cells[row, column] |= RIGHT
            cells[row, column + 1 : columns[child]] |= LEFT | RIGHT
        if below:
            cells[below_rows[0] : below_rows[-1], column] |= DOWN
            cells[below_rows[0] + 1 : below_rows[-1] + 1, column] |= UP
        if below and node:
            cells[rows[node], column] |= LEFT
    glyphs = np.array([LINES.get(cell, " ") for cell in range(2 * DOWN)])
    drawn = [str(glyphs[row].view(f"U{len(row)}")[0]) for row in cells]
    for node, text in enumerate(texts):
        if text and node:
            line, end = drawn[rows[node]], columns[node]
            drawn[rows[node]] = line[: end - len(text)] + text + line[end:]
    for tip in tips:
        drawn[rows[tip]] = f"{drawn[rows[tip]].rstrip()} {nodes.labels[tip]}"
    if are_own:
        length = picture.nice_length(max(max(columns) * picture.BAR_SHARE, 2.0) / scale) if scale else 0.0
        bar = f"├{'─' * max(round(length * scale) - 1, 0)}┤ {length:g}"
        drawn += ["", bar if round(length * scale) else ""]
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
    steps = np.maximum(np.rint(lengths * scale), least).astype(int).tolist()
    columns = [0] * len(steps)
    for node, parent in enumerate(nodes.parents[1:], start=1):
        columns[node] = columns[parent] + steps[node]
    return columns


# --- any picture ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class TreeDrawing:
    """A tree with a root and an order of its clades, ready to be drawn; printing it shows it as characters.

    Attributes
    ----------
    nodes : the tree; labels of inner nodes, such as supports, belong to the branches above them
    marks : what is drawn at the branch above each node, if not what stands at inner nodes
    time : when the nodes lived, if lengths are years: the picture then has an axis of years
    """

    nodes: RootedNodes
    marks: tuple[picture.Mark, ...] | None = None
    time: picture.TimeScale | None = None

    @property
    def n_taxa(self) -> int:
        return len(self.nodes.tips)

    def __repr__(self) -> str:
        return f"<TreeDrawing: {self.n_taxa} taxa>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = TEXT_WIDTH, labels: bool = True, ascii_only: bool = False) -> str:
        """The tree as lines of characters, see `draw_characters`."""
        nodes = self.nodes
        if self.marks is not None:  # they stand behind the names of tips
            texts = [mark.text or "*" * (mark.dot is not None) for mark in self.marks]
            rows = zip(nodes.labels, texts, nodes.children(), strict=True)
            marked = [text if below else f"{name} [{text}]" if text else name for name, text, below in rows]
            nodes = RootedNodes(nodes.parents, nodes.lengths, marked)
        return draw_characters(nodes, width, labels, ascii_only)

    def svg(self, width: float = DRAWING_WIDTH, labels: bool = True, unrooted: bool = False) -> str:
        """The tree as an SVG document.

        Parameters
        ----------
        width : in points; the picture is wider where long names leave too little room
        labels : with the labels of inner branches, and dots coloured by support: from 95 %, from 80 %, and below
        unrooted : clades in sectors around a point, instead of a root at the left
        """
        return write_svg(self._picture(width, labels, unrooted), self._title)

    def pdf(self, width: float = DRAWING_WIDTH, labels: bool = True, unrooted: bool = False) -> bytes:
        """The tree as a PDF of one page; parameters as for `svg`. Raises InputError if matplotlib is not installed."""
        return write_pdf(self._picture(width, labels, unrooted))

    def png(self, width: float = DRAWING_WIDTH, labels: bool = True, unrooted: bool = False) -> bytes:
        """The tree as PNG, 3 pixels to a point; as `pdf`."""
        return write_pdf(self._picture(width, labels, unrooted), as_png=True)

    def _picture(self, width: float, labels: bool, unrooted: bool) -> picture.Picture:
        marks = [picture.Mark()] * len(self.nodes.parents)
        if labels:
            marks = picture.support_marks(self.nodes) if self.marks is None else list(self.marks)
        if unrooted:
            return picture.draw_unrooted(self.nodes, width, marks)
        if self.time is not None:
            return picture.draw_timed(self.nodes, self.time, width, marks)
        return picture.draw_rectangular(self.nodes, width, marks)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture in the colour of its text, no wider than the page and not too high."""
        drawn = write_svg(self._picture(DRAWING_WIDTH, True, False), self._title, is_inline=True)
        return f'<div style="max-height:45em;overflow:auto">{drawn}</div>'

    @property
    def _title(self) -> str:
        return f"Tree of {self.n_taxa} taxa"


POINTS_PER_INCH = 72.0
PIXELS_PER_POINT = 3
ALIGNMENTS = {"start": "left", "middle": "center", "end": "right"}


def write_pdf(drawn: picture.Picture, as_png: bool = False) -> bytes:
    """A picture as a PDF of one page, or as PNG. Raises InputError if matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_pdf import FigureCanvasPdf
        from matplotlib.collections import LineCollection
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a picture as PDF or PNG needs matplotlib: pip install 'plltool[pdf]'") from None
    figure = Figure(figsize=(drawn.width / POINTS_PER_INCH, drawn.height / POINTS_PER_INCH))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, drawn.width), ylim=(drawn.height, 0.0))
    axes.axis("off")
    for lines in picture.group_lines(drawn.lines):
        segments = [[(line.x1, line.y1), (line.x2, line.y2)] for line in lines]
        cap = "butt" if lines[0].is_thick else "projecting"
        axes.add_collection(LineCollection(segments, colors=lines[0].colour, linewidths=lines[0].width, capstyle=cap))
    for dot in drawn.dots:
        axes.plot(dot.x, dot.y, "o", color=dot.colour, markersize=2 * picture.DOT, markeredgewidth=0)
    for text in drawn.texts:
        axes.text(
            text.x, text.y, text.text.encode("utf-8", "replace").decode(), fontsize=text.size, color=text.colour,
            ha=ALIGNMENTS[text.anchor], va="center" if text.angle else "baseline", rotation=-text.angle,
            rotation_mode="anchor", parse_math=False,
        )  # fmt: skip
    content = io.BytesIO()
    if as_png:
        figure.set_dpi(POINTS_PER_INCH * PIXELS_PER_POINT)
        FigureCanvasAgg(figure).print_png(content)
    else:
        FigureCanvasPdf(figure).print_pdf(content, metadata={"CreationDate": None})
    return content.getvalue()


# within HTML they have the colour of the text around them
INHERITED = dict.fromkeys((picture.LINE_COLOUR, picture.TEXT_COLOUR, picture.LABEL_COLOUR), "currentColor")


def write_svg(drawn: picture.Picture, title: str, is_inline: bool = False) -> str:
    """A picture as an SVG document; `title` is for those who cannot see it.

    `is_inline` is for a picture within HTML: it takes the colour of the text there, and is no wider than its place.
    """
    width, height = _write_number(drawn.width), _write_number(drawn.height)
    colours = INHERITED if is_inline else {}
    style = ' style="display:block;max-width:100%;height:auto"' if is_inline else ""
    lines = "\n".join(_write_path(own, colours) for own in picture.group_lines(drawn.lines))
    dots = "\n".join(
        f'<circle cx="{_write_number(dot.x)}" cy="{_write_number(dot.y)}" r="{picture.DOT}" fill="{dot.colour}">'
        f"<title>{xml_text(dot.title)}</title></circle>"
        for dot in drawn.dots
    )
    texts = "\n".join(_write_text(text, colours.get(text.colour, text.colour)) for text in drawn.texts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif"{style}>\n'
        f"<title>{xml_text(title)}</title>\n"
        f"{lines}\n{dots}\n{texts}\n</svg>\n"
    )


def _write_path(lines: Sequence[picture.Line], colours: Mapping[str, str]) -> str:
    """Lines of one colour and width."""
    ends = [[_write_number(own) for own in (line.x1, line.y1, line.x2, line.y2)] for line in lines]
    path = "".join(f"M{x1} {y1}L{x2} {y2}" for x1, y1, x2, y2 in ends)
    colour, cap = colours.get(lines[0].colour, lines[0].colour), "butt" if lines[0].is_thick else "square"
    stroke = f'stroke="{colour}" stroke-width="{_write_number(lines[0].width)}" stroke-linecap="{cap}"'
    return f'<path d="{path}" fill="none" {stroke}/>'


def _write_text(text: picture.Text, colour: str) -> str:
    x, y = _write_number(text.x), _write_number(text.y)
    turn = f"rotate({_write_number(text.angle)} {x} {y})"
    turned = f' transform="{turn}" dominant-baseline="central"' if text.angle else ""
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    return (
        f'<text x="{x}" y="{y}" font-size="{_write_number(text.size)}" fill="{colour}"{anchor}{turned}>'
        f"{xml_text(text.text)}</text>"
    )


def _write_number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
