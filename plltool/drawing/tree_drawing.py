"""A tree to look at: as characters, SVG or PDF, and as a picture in notebooks."""

from __future__ import annotations

from dataclasses import dataclass

from plltool.constants import DRAWING_WIDTH, TEXT_WIDTH
from plltool.drawing.characters import draw_characters
from plltool.drawing.pdf import write_pdf
from plltool.drawing.picture import Picture, draw_rectangular, draw_unrooted
from plltool.drawing.svg import write_svg
from plltool.tree.rooted_nodes import RootedNodes


@dataclass(frozen=True, eq=False, repr=False)
class TreeDrawing:
    """A tree with a root and an order of its clades, ready to be drawn; printing it shows it as characters.

    Attributes
    ----------
    nodes : the tree; labels of inner nodes, such as supports, belong to the branches above them
    """

    nodes: RootedNodes

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
        return draw_characters(self.nodes, width, labels, ascii_only)

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

    def _picture(self, width: float, labels: bool, unrooted: bool) -> Picture:
        return (draw_unrooted if unrooted else draw_rectangular)(self.nodes, width, labels)

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture in the colour of its text, no wider than the page and not too high."""
        drawn = write_svg(self._picture(DRAWING_WIDTH, True, False), self._title, is_inline=True)
        return f'<div style="max-height:45em;overflow:auto">{drawn}</div>'

    @property
    def _title(self) -> str:
        return f"Tree of {self.n_taxa} taxa"
