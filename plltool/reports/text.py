"""A report as a page of text."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from plltool.constants import REPORT_ROWS, VERSION
from plltool.reports.blocks import Block, Facts, Folded, Items, MarkedTree, Prose, Section, Table, TreePicture
from plltool.reports.tree_drawing import TreeDrawing
from plltool.reports.tree_section import draw_marked

REPORT_WIDTH = 100  # characters in a line of a report as text
BEGIN = "Report of plltool "  # by which a report is known
_MOST_ROWS = 20  # of a table


def write_text_page(prefix: str, sections: Sequence[Section]) -> str:
    """The page; lines are at most REPORT_WIDTH characters long, where names and numbers allow it."""
    title = f"{BEGIN}{VERSION}: {prefix}"
    lines = [title, "=" * min(len(title), REPORT_WIDTH)]
    for section in sections:
        lines += ["", section.title.upper(), "-" * len(section.title)]
        for block in section.blocks:
            written = _write_block(block)
            lines += ["", *written] if written else []
    return "\n".join(lines) + "\n"


def _write_block(block: Block) -> list[str]:
    """The lines of a block; none for a plot."""
    if isinstance(block, Facts):
        width = max(len(name) for name, _ in block.rows) + 2
        return [line for name, value in block.rows for line in _wrap(value, f"{name}:".ljust(width), " " * width)]
    if isinstance(block, Table):
        return _write_table(block)
    if isinstance(block, Prose):
        return _wrap(block.text)
    if isinstance(block, Items):
        if block.is_code:
            return [f"  {text}" for text in block.texts]
        return [line for text in block.texts for line in _wrap(text, "- ", "  ")]
    if isinstance(block, Folded):
        written = [lines for own in block.blocks if (lines := _write_block(own))]
        return [line for lines in written for line in (*lines, "")][:-1]
    if isinstance(block, TreePicture):
        drawing = TreeDrawing(block.nodes)
        if drawing.n_taxa > REPORT_ROWS:
            pointer = "is too large for text; the HTML page and `plltool show` draw it."
            return _wrap(f"The tree of {drawing.n_taxa} taxa {pointer}")
        return drawing.text(REPORT_WIDTH).rstrip("\n").split("\n")
    if isinstance(block, MarkedTree):
        drawing, caption = draw_marked(block)
        return [*drawing.text(REPORT_WIDTH).rstrip("\n").split("\n"), "", *_wrap(caption)]
    return []


def _write_table(table: Table) -> list[str]:
    cells = [[cell.text for cell in row] for row in table.cells[:_MOST_ROWS]]
    left = len(table.rows) - len(cells)
    more = [f"  ... and {left} more, see the HTML page"] if left else []
    if table.is_text:
        facts = [Facts(tuple(zip(table.columns, row, strict=True))) for row in cells]
        return [*(line for own in facts for line in _write_block(own)), *more]
    return [f"{table.caption}:", *(f"  {line}" for line in align([table.columns, *cells])), *more]


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text in columns, a line each; all but the first column are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return lines


def _wrap(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        text, REPORT_WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
