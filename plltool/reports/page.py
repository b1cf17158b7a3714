"""A report as one HTML file, which loads nothing and is readable without JavaScript; and results in notebooks."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from plltool.constants import REPORT_ROWS, VERSION
from plltool.io.newick import parse_nodes
from plltool.reports.blocks import (
    Block,
    Drawn,
    Facts,
    Folded,
    Gallery,
    Items,
    MarkedTree,
    Picture,
    Prose,
    Row,
    Section,
    Table,
    TreePicture,
    count,
)
from plltool.reports.plots import Markup, element
from plltool.reports.tree_drawing import TreeDrawing
from plltool.reports.tree_section import collapse_large, draw_marked, tell_collapsed

BEGIN = (  # by which a report is known
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="plltool '
)
FOLDED_ROWS = 20  # longer tables and plots are folded up
_PICTURE_WIDTH = 980.0


def write_html_page(prefix: str, sections: Sequence[Section]) -> str:
    """The page. Only this script and this style sheet can run in it, and nothing can be loaded."""
    style, script = read_part("report.css"), read_part("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src blob: data:;"
        " base-uri 'none'; form-action 'none'"
    )
    head = [
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", f"{prefix}: report of plltool"),
        element("style", Markup(style)),
    ]
    links = [element("li", element("a", section.title, href=f"#{section.key}")) for section in sections]
    body = [
        element("header", element("h1", f"Report of {prefix}"), element("p", f"Made by plltool {VERSION}")),
        element("nav", element("ul", *links), aria_label="Sections"),
        element("main", *[_write_section(section) for section in sections]),
    ]
    if any(isinstance(block, TreePicture | MarkedTree) for section in sections for block in section.blocks):
        body.append(element("script", Markup(script)))
    lines = Markup("\n").join([*head, "</head>", "<body>", *body, "</body>", "</html>"])
    return f'{BEGIN}{VERSION}">\n{lines}\n'


def read_part(name: str) -> str:
    """A file of the package."""
    return files("plltool.reports").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A source of the policy: the text with this hash, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _write_section(section: Section) -> Markup:
    heading = f"heading-{section.key}"
    blocks = [
        _write_tree(block, section.key) if isinstance(block, TreePicture | MarkedTree) else write_block(block)
        for block in section.blocks
    ]
    title = element("h2", section.title, id=heading)
    return element("section", title, *blocks, id=section.key, aria_labelledby=heading)


def write_block(block: Facts | Table | Prose | Items | Picture | Gallery | Folded) -> Markup:
    """A block as HTML, if it is no tree."""
    if isinstance(block, Facts):
        return element("dl", *[element("div", element("dt", name), element("dd", value)) for name, value in block.rows])
    if isinstance(block, Table):
        return _write_table(block)
    if isinstance(block, Prose):
        return element("p", block.text)
    if isinstance(block, Items):
        texts = [element("code", text) if block.is_code else text for text in block.texts]
        return element("ul", *[element("li", text) for text in texts])
    if isinstance(block, Gallery):
        pictures = element("div", *block.pictures, class_="gallery")
        return element("figure", pictures, element("figcaption", block.caption))
    if isinstance(block, Folded):
        return _fold(block.title, *map(write_block, block.blocks))
    figure = element("figure", block.svg, element("figcaption", block.caption))
    title = block.caption.partition(":")[0]
    return figure if block.n_rows <= FOLDED_ROWS else _fold(f"{title}: {block.n_rows} rows", figure)


def _fold(title: str, *content: Markup) -> Markup:
    """Content below a title, shown on request."""
    return element("details", element("summary", title), *content)


def _write_table(table: Table) -> Markup:
    names = element("tr", *[element("th", name, scope="col") for name in table.columns])
    rows = [
        element(
            "tr", element("th", first.text, scope="row"), *[element("td", c.text, class_=c.mark or None) for c in rest]
        )
        for first, *rest in table.cells
    ]
    content = element("caption", table.caption), element("thead", names), element("tbody", *rows)
    written = element("table", *content, class_="text" if table.is_text else None)
    framed = element("div", written, class_="scroll", tabindex="0", role="group", aria_label=table.caption)
    return framed if len(rows) <= FOLDED_ROWS else _fold(f"{table.caption}: {len(rows)} rows", framed)


def draw_tree(block: TreePicture | MarkedTree) -> tuple[TreeDrawing, str]:
    """A tree with its smallest clades collapsed where it is large, and the caption of the picture."""
    if isinstance(block, MarkedTree):
        drawing, caption = draw_marked(block)
        return drawing, f"{caption} {block.legend}".rstrip()
    shown, _ = collapse_large(block.nodes)
    colours = "The colour of a dot shows the support: green from 95 % on, yellow from 80 %, red below."
    caption = colours if block.kinds else "Numbers at the scale bar are expected substitutions per site."
    return TreeDrawing(shown), tell_collapsed(block.nodes, shown) + caption


def _write_tree(block: TreePicture | MarkedTree, key: str) -> Markup:
    """The picture of a tree in a frame that scrolls, and what the script needs to draw it again.

    `key` is that of the section, and tells the names of its inputs from those of other trees.
    """
    drawing, caption = draw_tree(block)
    toolbar = Markup(read_part("toolbar.html").replace("KEY", key))
    picture = Markup(drawing.svg(_PICTURE_WIDTH))
    frame = element("div", picture, class_="scroll tree", tabindex="0", role="group", aria_label="Picture of the tree")
    data = element("script", Markup(_tree_data(block)), type="application/json")
    return element("figure", toolbar, frame, data, element("figcaption", caption), class_="interactive")


def _tree_data(block: TreePicture | MarkedTree) -> str:
    """The tree as JSON that nothing in it can end: every < is written as an escape."""
    data: dict[str, object] = {
        "parents": block.nodes.parents,
        "lengths": [None if math.isnan(length) else length for length in block.nodes.lengths],
        "labels": block.nodes.labels,
        "rows": REPORT_ROWS,
        "kinds": [],
    }
    if isinstance(block, TreePicture):
        data["kinds"] = [{"name": name, "largest": 1 if unit == "0 to 1" else 100} for name, unit in block.kinds]
    else:
        data["marks"] = [[mark.text, mark.dot, round(mark.band, 2)] for mark in block.marks]
        data |= {"keepsRoot": block.keeps_root, "widest": block.widest}
        if block.time is not None:
            data["time"] = {"latest": block.time.latest, "ranges": block.time.ranges}
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


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
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.3f}" if abs(value) > _LARGE else f"{value:.4g}"
    text = ", ".join(map(_write_value, value)) if isinstance(value, tuple) else str(value)
    return "-" if value is None else text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
