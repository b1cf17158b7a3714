"""What a report is made of, and how it is shown, as HTML and as text.

The content of a section is a list of paragraphs, which are texts, of facts, which are dictionaries of names and what
they are, and of blocks.
"""

import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from plltool.reports.plots import Markup, element

REPORT_WIDTH = 100  # characters in a line of a report as text
FOLDED_ROWS = 20  # a longer table or plot is folded on a page; text shows this many of its rows

Row = Mapping[str, Any]  # of the table of a result, by the names of the columns


class Block(ABC):
    """Something on a page."""

    @abstractmethod
    def html(self, key: str) -> Markup:
        """It as HTML; `key` names its section, and is empty in a notebook."""

    def lines(self) -> list[str]:
        """It as text; a text page leaves out what has no lines."""
        return []


_WORDS = re.compile(r"(?!(?:nan|inf)\b)[^\W\d_]|\d[\d, ]*-\d")  # how a cell begins that holds words or columns

Content = str | Mapping[str, str] | Block


@dataclass(frozen=True)
class Section:
    """A part of a report with a heading; `key` is its anchor."""

    key: str
    title: str
    content: Sequence[Content]


def write_html(content: Content, key: str = "") -> Markup:
    if isinstance(content, str):
        return element("p", content)
    if isinstance(content, Block):
        return content.html(key)
    return element("dl", *[element("div", element("dt", name), element("dd", own)) for name, own in content.items()])


def write_lines(content: Content) -> list[str]:
    if isinstance(content, str):
        return wrap(content)
    if isinstance(content, Block):
        return content.lines()
    width = max(map(len, content)) + 2
    return [line for name, own in content.items() for line in wrap(own, f"{name}:".ljust(width), " " * width)]


class Cell(NamedTuple):
    """A cell of a table; `mark` is "good", "bad" or "", and colours it."""

    text: str
    mark: str = ""

    @classmethod
    def judged(cls, text: str, is_good: bool) -> Self:
        return cls(text, "good" if is_good else "bad")


@dataclass(frozen=True)
class Table(Block):
    """A table; the first column has names, the others numbers, on the right, or words; sentences if `is_text`."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    is_text: bool = False

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows; what is only a text has no mark."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def html(self, key: str) -> Markup:
        words = ["words" * any(_WORDS.match(cell.text) for cell in column) for column in zip(*self.cells, strict=True)]
        pairs = zip(self.columns, words or [""] * len(self.columns), strict=True)
        names = element("tr", *[element("th", name, scope="col", class_=kind or None) for name, kind in pairs])
        rows = []
        for first, *rest in self.cells:
            kinds = [f"{cell.mark} {kind}".strip() for cell, kind in zip(rest, words[1:], strict=True)]
            cells = [element("td", cell.text, class_=kind or None) for cell, kind in zip(rest, kinds, strict=True)]
            rows.append(element("tr", element("th", first.text, scope="row"), *cells))
        content = element("caption", self.caption), element("thead", names), element("tbody", *rows)
        table = element("table", *content, class_="text" if self.is_text else None)
        framed = element("div", table, class_="scroll", tabindex="0", role="group", aria_label=self.caption)
        return framed if len(rows) <= FOLDED_ROWS else _fold(f"{self.caption}: {len(rows)} rows", framed)

    def lines(self) -> list[str]:
        cells = [[cell.text for cell in row] for row in self.cells[:FOLDED_ROWS]]
        left = len(self.rows) - len(cells)
        more = [f"  ... and {left} more, see the HTML page"] if left else []
        if self.is_text:
            facts = [dict(zip(self.columns, row, strict=True)) for row in cells]
            return [*(line for own in facts for line in write_lines(own)), *more]
        return [f"{self.caption}:", *(f"  {line}" for line in align([self.columns, *cells])), *more]


@dataclass(frozen=True)
class Items(Block):
    """A list of sentences; `is_code` for lines that are typed."""

    texts: Sequence[str]
    is_code: bool = False

    def html(self, key: str) -> Markup:
        return element("ul", *[element("li", element("code", own) if self.is_code else own) for own in self.texts])

    def lines(self) -> list[str]:
        if self.is_code:
            return [f"  {text}" for text in self.texts]
        return [line for text in self.texts for line in wrap(text, "- ", "  ")]


@dataclass(frozen=True)
class Plot(Block):
    """A plot, or several of a kind side by side; text pages leave it out, so that its numbers also stand elsewhere.

    `n_rows` is for plots with a row for each of many things, which pages fold up like tables.
    """

    drawn: Markup | Sequence[Markup]
    caption: str
    n_rows: int = 0

    def html(self, key: str) -> Markup:
        one = self.drawn if isinstance(self.drawn, Markup) else element("div", *self.drawn, class_="gallery")
        figure = element("figure", one, element("figcaption", self.caption))
        title = self.caption.partition(":")[0]
        return figure if self.n_rows <= FOLDED_ROWS else _fold(f"{title}: {self.n_rows} rows", figure)


@dataclass(frozen=True)
class Folded(Block):
    """What a page shows when its reader asks for it."""

    title: str
    content: Sequence[Content]

    def html(self, key: str) -> Markup:
        return _fold(self.title, *(write_html(own, key) for own in self.content))

    def lines(self) -> list[str]:
        return [line for own in self.content if (lines := write_lines(own)) for line in (*lines, "")][:-1]


def _fold(title: str, *content: Markup) -> Markup:
    """Content below a title, shown on request."""
    return element("details", element("summary", title), *content)


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text in columns, a line each; all but the first column are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return lines


def wrap(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        text, REPORT_WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]


# --- numbers as texts -------------------------------------------------------------------------------------


def share(value: float) -> str:
    return f"{100.0 * value:.1f} %"


def duration(seconds: float) -> str:
    """A time in the units that suit it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60.0, seconds / 3600.0
    return f"{minutes:.1f} min" if hours < 1 else f"{hours:.1f} h"


def score(value: float | None) -> str:
    """A score, or a hyphen where there is none."""
    return "-" if value is None else f"{value:.3f}"
