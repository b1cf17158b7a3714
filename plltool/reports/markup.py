"""HTML elements; text within them is escaped unless it is `Markup` already, so that no name can become code."""

from __future__ import annotations

from plltool.reports.svg import xml_text

VOID = ("input", "meta")  # elements without an end


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: object) -> Markup:
    """An HTML or SVG element; `content` that is text is escaped, `Markup` is not.

    Names of attributes lose a trailing underscore, and others become hyphens; True is an attribute without a value,
    None and False leave it out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items() if value not in (None, False))
    end = "" if name in VOID else f"</{name}>"
    return Markup(f"<{name}{written}>{join(*content)}{end}")


def join(*content: str) -> Markup:
    """Several pieces of content, one behind the other."""
    return Markup("".join(piece if isinstance(piece, Markup) else xml_text(piece) for piece in content))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{xml_text(str(value)).replace(chr(34), "&quot;")}"'
