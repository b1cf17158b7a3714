"""Write a picture as SVG 1.1, which browsers, Inkscape and Illustrator read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from plltool.reports.picture import DOT, LABEL_COLOUR, LINE_COLOUR, TEXT_COLOUR, Line, Picture, Text, group_lines

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML does not allow


INHERITED = dict.fromkeys((LINE_COLOUR, TEXT_COLOUR, LABEL_COLOUR), "currentColor")  # that of the text around it


def write_svg(picture: Picture, title: str, is_inline: bool = False) -> str:
    """A picture as an SVG document; `title` is for those who cannot see it.

    `is_inline` is for a picture within HTML: it takes the colour of the text there, and is no wider than its place.
    """
    width, height = _number(picture.width), _number(picture.height)
    colours = INHERITED if is_inline else {}
    style = ' style="display:block;max-width:100%;height:auto"' if is_inline else ""
    lines = "\n".join(_path(own, colours) for own in group_lines(picture.lines))
    dots = "\n".join(
        f'<circle cx="{_number(dot.x)}" cy="{_number(dot.y)}" r="{DOT}" fill="{dot.colour}">'
        f"<title>{xml_text(dot.title)}</title></circle>"
        for dot in picture.dots
    )
    texts = "\n".join(_text(text, colours.get(text.colour, text.colour)) for text in picture.texts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif"{style}>\n'
        f"<title>{xml_text(title)}</title>\n"
        f"{lines}\n{dots}\n{texts}\n</svg>\n"
    )


def _path(lines: Sequence[Line], colours: Mapping[str, str]) -> str:
    """Lines of one colour and width."""
    drawn = "".join(f"M{_number(line.x1)} {_number(line.y1)}L{_number(line.x2)} {_number(line.y2)}" for line in lines)
    colour, cap = lines[0].colour, "butt" if lines[0].is_thick else "square"
    stroke = f'stroke="{colours.get(colour, colour)}" stroke-width="{_number(lines[0].width)}" stroke-linecap="{cap}"'
    return f'<path d="{drawn}" fill="none" {stroke}/>'


def xml_text(text: str) -> str:
    """A text as XML holds it; what XML does not allow becomes U+FFFD."""
    return _NOT_XML.sub("\ufffd", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _text(text: Text, colour: str) -> str:
    x, y = _number(text.x), _number(text.y)
    turned = f' transform="rotate({_number(text.angle)} {x} {y})" dominant-baseline="central"' if text.angle else ""
    anchor = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
    return (
        f'<text x="{x}" y="{y}" font-size="{_number(text.size)}" fill="{colour}"{anchor}{turned}>'
        f"{xml_text(text.text)}</text>"
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
