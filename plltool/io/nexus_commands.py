"""Split a NEXUS file into commands (Maddison, Swofford & Maddison 1997)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import AnyStr

from plltool.errors import InputError
from plltool.io.alignment_formats import decode_name

_SIGNATURE = b"#nexus"

# A quoted name starts where a word starts, and ends on its line: an apostrophe inside a word quotes nothing.
_MARK = re.compile(rb"(?<![^\s;,=()\[\]])'[^'\n]*(?:''[^'\n]*)*'|[\[;]")
_REMARKS = re.compile(rb"\A(?:\s*+#[^\n]*+)++")  # lines before the first block that some programs write
_TREE = re.compile(rb"\s*+u?tree\b", re.IGNORECASE)  # a command whose comments may be annotations of nodes
_BRACKET = re.compile(rb"[\[\]]")
_OPTION = re.compile(r"""([^\s=]+)(?:\s*=\s*("[^"]*"|'[^']*'|\S+))?""")


@dataclass(frozen=True)
class Command:
    """A command without comments: its first word in lower case, the text after that, the line on which it starts."""

    word: str
    text: bytes
    line: int
    is_closed: bool

    def parse_options(self) -> dict[str, str]:
        """``key = value`` pairs and lone keys (value ""), keys in lower case, values without quotes."""
        found = _OPTION.findall(decode_name(self.text))
        return {key.lower(): value.strip("\"'") for key, value in found}


def starts_like_nexus(text: bytes) -> bool:
    return text.lstrip()[: len(_SIGNATURE)].lower() == _SIGNATURE


def split_commands(content: bytes, source: str) -> Iterator[Command]:
    """The commands of a NEXUS file, each ended by ``;``; a comment becomes a blank and its line breaks.

    Lines before the first command that begin with ``#`` are no part of the format, and are left out.

    Comments that begin with ``&`` stay in trees, where they are annotations.
    """
    text = content.lstrip()[len(_SIGNATURE) :]
    text = _REMARKS.sub(b"", text, count=1)
    first_line = 1 + content[: len(content) - len(text)].count(b"\n")
    parts: list[bytes] = []
    line, copied, position, is_tree = first_line, 0, 0, False
    while (mark := _MARK.search(text, position)) is not None:
        position = mark.end()
        if mark[0] == b"[":
            position = bracket_end(_BRACKET.finditer(text, mark.start()), b"[")
            if position < 0:
                line = first_line + text.count(b"\n", 0, mark.start())
                raise InputError(f"{source}: line {line}: found a comment without end, expected ']'")
            is_tree = is_tree or _TREE.match(text, copied) is not None
            if is_tree and text.startswith(b"[&", mark.start()):
                continue
            line_breaks = b"\n" * text.count(b"\n", mark.start(), position)
            parts += [text[copied : mark.start()], b" ", line_breaks]
            copied = position
        elif mark[0] == b";":
            command = b"".join([*parts, text[copied : mark.start()]])
            yield _make_command(command, line, is_closed=True)
            line += command.count(b"\n")
            parts, copied, is_tree = [], position, False
    yield _make_command(b"".join([*parts, text[copied:]]), line, is_closed=False)


def bracket_end(brackets: Iterator[re.Match[AnyStr]], opening: AnyStr) -> int:
    """The position after the bracket that closes the first of some, which may be nested; -1 without one."""
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket[0] == opening else -1
        if depth == 0:
            return bracket.end()
    return -1


def _make_command(text: bytes, line: int, is_closed: bool) -> Command:
    stripped = text.lstrip()
    line += text[: len(text) - len(stripped)].count(b"\n")
    word = stripped.split(None, 1)[0] if stripped else b""
    return Command(decode_name(word).lower(), stripped[len(word) :], line, is_closed)
