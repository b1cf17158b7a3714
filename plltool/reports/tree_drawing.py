"""A tree to look at: as characters, SVG, PDF or PNG, and as a picture in notebooks."""

from __future__ import annotations

from dataclasses import dataclass

from plltool.constants import DRAWING_WIDTH, TEXT_WIDTH
from plltool.reports.characters import draw_characters
from plltool.reports.pdf import write_pdf
from plltool.reports.picture import Mark, Picture, draw_rectangular, draw_unrooted, no_marks, support_marks
from plltool.reports.svg import write_svg
from plltool.reports.timed import TimeScale, draw_timed
from plltool.tree.rooted_nodes import RootedNodes


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
    marks: tuple[Mark, ...] | None = None
    time: TimeScale | None = None

    @property
    def n_taxa(self) -> int:
        """The number of tips."""
        return len(self.nodes.parents) - len(set(self.nodes.parents[1:]))

    def __repr__(self) -> str:
        return f"<TreeDrawing: {self.n_taxa} taxa>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = TEXT_WIDTH, labels: bool = True, ascii_only: bool = False) -> str:
        """The tree as lines of characters, see `draw_characters`."""
        return draw_characters(self.nodes if self.marks is None else self._marked(), width, labels, ascii_only)

    def _marked(self) -> RootedNodes:
        """The tree with its marks as labels; those of tips stand behind their names."""
        texts = [mark.text for mark in self.marks or ()]
        labels = [
            text if below else f"{name} [{text}]" if text else name
            for name, text, below in zip(self.nodes.labels, texts, self.nodes.children(), strict=True)
        ]
        return RootedNodes(self.nodes.parents, self.nodes.lengths, labels)

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

    def _picture(self, width: float, labels: bool, unrooted: bool) -> Picture:
        marks = no_marks(self.nodes)
        if labels:
            marks = support_marks(self.nodes) if self.marks is None else list(self.marks)
        if unrooted:
            return draw_unrooted(self.nodes, width, marks)
        if self.time is not None:
            return draw_timed(self.nodes, self.time, width, marks)
        return draw_rectangular(self.nodes, width, marks)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture in the colour of its text, no wider than the page and not too high."""
        drawn = write_svg(self._picture(DRAWING_WIDTH, True, False), self._title, is_inline=True)
        return f'<div style="max-height:45em;overflow:auto">{drawn}</div>'

    @property
    def _title(self) -> str:
        return f"Tree of {self.n_taxa} taxa"
