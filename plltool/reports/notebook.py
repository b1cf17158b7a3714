"""Results as HTML for notebooks: no script, nothing to load, and the colours of the page around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from plltool.io.newick import parse_nodes
from plltool.reports.blocks import Block, Drawn, Items, MarkedTree, Prose, Row, Table, TreePicture
from plltool.reports.figures import count
from plltool.reports.markup import Markup, element
from plltool.reports.page import draw_tree, read_part, write_block

SHOWN_ROWS = 12  # of a table
_WIDEST = 48  # letters of a cell
_LARGE = 100.0  # numbers beyond this have decimals, others significant digits


def write_result(title: str, drawn: Drawn | None, rows: Sequence[Row], warnings: Sequence[str]) -> str:
    """A result as HTML; the parameters are what `Shown` knows of it."""
    blocks: list[Block] = [Prose(title.strip("<>"))]
    if isinstance(drawn, MarkedTree):
        blocks.append(drawn)
    elif drawn is not None:
        newick, kinds = drawn
        blocks.append(TreePicture(parse_nodes(newick, "the tree").ladderized(), kinds))
    if rows:
        more = len(rows) - SHOWN_ROWS
        caption = f"The first {SHOWN_ROWS} of {len(rows)} rows of to_dataframe()" if more > 0 else "to_dataframe()"
        written = tuple(tuple(map(_write_value, row.values())) for row in rows[:SHOWN_ROWS])
        blocks.append(Table(caption, tuple(rows[0]), written))
    if warnings:
        blocks += [Prose(f"{count(len(warnings), 'warning')}:"), Items(tuple(warnings))]
    style = element("style", Markup(read_part("notebook.css")))
    return element("div", style, *map(_write_block, blocks), class_="plltool")


def _write_block(block: Block) -> Markup:
    if not isinstance(block, TreePicture | MarkedTree):
        return write_block(block)
    drawing, caption = draw_tree(block)
    return element("figure", Markup(drawing._repr_html_()), element("figcaption", caption))


def _write_value(value: Any) -> str:
    """A value for people."""
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.3f}" if abs(value) > _LARGE else f"{value:.4g}"
    text = ", ".join(map(_write_value, value)) if isinstance(value, tuple) else str(value)
    return "-" if value is None else text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
