"""What a report is made of; `plltool.reports.page` shows it as HTML, `plltool.reports.text` as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from plltool.reports.markup import Markup
from plltool.reports.picture import Mark
from plltool.reports.timed import TimeScale
from plltool.tree.rooted_nodes import RootedNodes

Row = Mapping[str, Any]  # of the table of a result, by the names of the columns


class Cell(NamedTuple):
    """A cell of a table; `mark` is "good", "bad" or "", and colours it."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Facts:
    """Names of things, and what they are."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """A table; the first column has names, the others numbers unless `is_text`."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    is_text: bool = False


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list of sentences; `is_code` for lines that are typed."""

    texts: tuple[str, ...]
    is_code: bool = False


@dataclass(frozen=True)
class Picture:
    """A plot; text pages leave it out, so that its numbers also stand elsewhere.

    `n_rows` is for plots with a row for each of many things, which pages fold up like tables.
    """

    svg: Markup
    caption: str
    n_rows: int = 0


@dataclass(frozen=True)
class Gallery:
    """Plots of a kind, side by side where a page is wide, with a caption for all; text pages leave them out."""

    pictures: tuple[Markup, ...]
    caption: str


@dataclass(frozen=True)
class TreePicture:
    """The tree of a page, which its readers can turn and collapse.

    Attributes
    ----------
    nodes : the tree; labels of inner nodes are supports
    kinds : the kinds of these supports and their units, in the order of the labels
    """

    nodes: RootedNodes
    kinds: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MarkedTree:
    """A tree with marks at its branches, which the readers of a page can collapse, and turn unless it keeps its root.

    Attributes
    ----------
    nodes : the tree
    marks : of the branch above each node
    caption : what the marks mean
    legend : what only a picture shows
    keeps_root : whether the marks have a meaning only as seen from the root
    widest : if given, the marks of a collapsed clade add up: their texts are numbers, their bands roots of sums, of at
        most this width
    time : when the nodes lived, if lengths are years
    """

    nodes: RootedNodes
    marks: tuple[Mark, ...]
    caption: str
    legend: str = ""
    keeps_root: bool = False
    widest: float | None = None
    time: TimeScale | None = None


Drawn = tuple[str, tuple[tuple[str, str], ...]] | MarkedTree  # or Newick, and the kinds of its labels with their units


@dataclass(frozen=True)
class Folded:
    """Blocks that a page shows when its reader asks for them."""

    title: str
    blocks: tuple[Facts | Table | Prose | Items | Picture, ...]


Block = Facts | Table | Prose | Items | Picture | Gallery | TreePicture | MarkedTree | Folded


@dataclass(frozen=True)
class Section:
    """A part of a report with a heading; `key` is its anchor."""

    key: str
    title: str
    blocks: tuple[Block, ...]
