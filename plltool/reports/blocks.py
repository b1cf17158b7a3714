"""What a report is made of; `plltool.reports.page` shows it as HTML, `plltool.reports.text` as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from plltool.reports.picture import Mark, TimeScale
from plltool.reports.plots import Markup
from plltool.tree.rooted_nodes import RootedNodes

Row = Mapping[str, Any]  # of the table of a result, by the names of the columns


class Cell(NamedTuple):
    """A cell of a table; `mark` is "good", "bad" or "", and colours it."""

    text: str
    mark: str = ""

    @classmethod
    def judged(cls, text: str, is_good: bool) -> Cell:
        return cls(text, "good" if is_good else "bad")


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

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows; what is only a text has no mark."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]


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
    """The tree of a page, which its readers can turn and collapse."""

    nodes: RootedNodes  # the tree; labels of inner nodes are supports
    kinds: tuple[tuple[str, str], ...]  # the kinds of these supports and their units, in the order of the labels


@dataclass(frozen=True)
class MarkedTree:
    """A tree with marks at its branches, which readers of a page can collapse, and turn unless it keeps its root."""

    nodes: RootedNodes  # the tree
    marks: tuple[Mark, ...]  # of the branch above each node
    caption: str  # what the marks mean
    legend: str = ""  # what only a picture shows
    keeps_root: bool = False  # whether the marks have a meaning only as seen from the root
    # if given, the marks of a collapsed clade add up: their texts are numbers, their bands roots of sums, of at most
    # this width
    widest: float | None = None
    time: TimeScale | None = None  # when the nodes lived, if lengths are years


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


def share(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def count(number: int, noun: str) -> str:
    """A number of things, which are several unless there is one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in the units that suit it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60.0, seconds / 3600.0
    return f"{minutes:.1f} min" if hours < 1 else f"{hours:.1f} h"


def score(value: float | None) -> str:
    """A score, or a hyphen where there is none."""
    return "-" if value is None else f"{value:.3f}"
