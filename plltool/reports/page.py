"""A report as one HTML file, which loads nothing and is readable without JavaScript, and as text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from plltool.constants import VERSION
from plltool.reports.blocks import REPORT_WIDTH, Section, write_html, write_lines
from plltool.reports.plots import Markup, element, read_part
from plltool.reports.tree_blocks import TreePicture

HTML_BEGIN = (  # by which a report is known
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="plltool '
)
TEXT_BEGIN = "Report of plltool "  # likewise, as text


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
        element("main", *map(_write_section, sections)),
    ]
    if any(isinstance(own, TreePicture) for section in sections for own in section.content):
        body.append(element("script", Markup(script)))
    lines = Markup("\n").join([*head, "</head>", "<body>", *body, "</body>", "</html>"])
    return f'{HTML_BEGIN}{VERSION}">\n{lines}\n'


def _hash(text: str) -> str:
    """A source of the policy: the text with this hash, and no other."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _write_section(section: Section) -> Markup:
    heading = f"heading-{section.key}"
    content = [write_html(own, section.key) for own in section.content]
    title = element("h2", section.title, id=heading)
    return element("section", title, *content, id=section.key, aria_labelledby=heading)


def write_text_page(prefix: str, sections: Sequence[Section]) -> str:
    """The page; lines are at most REPORT_WIDTH characters long, where names and numbers allow it."""
    title = f"{TEXT_BEGIN}{VERSION}: {prefix}"
    lines = [title, "=" * min(len(title), REPORT_WIDTH)]
    for section in sections:
        lines += ["", section.title.upper(), "-" * len(section.title)]
        lines += [line for own in section.content if (written := write_lines(own)) for line in ("", *written)]
    return "\n".join(lines) + "\n"
