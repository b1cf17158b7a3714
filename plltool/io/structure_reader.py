"""Secondary structures of RNA in dot-bracket notation, as RAxML reads them: which columns of an alignment pair."""

from __future__ import annotations

import re
from typing import NamedTuple

from plltool.errors import InputError, show_name
from plltool.io.content import read_text, source_name

_UNPAIRED = "."
_OPENING = {")": "(", "]": "[", "}": "{", ">": "<"}  # of each closing bracket


class Structure(NamedTuple):
    """Which of `n_sites` columns, from 1, are `pairs`; first and last columns of the ranges that are `unpaired`."""

    pairs: tuple[tuple[int, int], ...]
    unpaired: tuple[tuple[int, int], ...]
    n_sites: int


def read_structure(path: str) -> Structure:
    """The structure in a file: a character for each column, a dot or one of ``( )``, ``[ ]``, ``{ }``, ``< >``.

    Brackets of different kinds may cross each other, as in pseudoknots. Blanks and line breaks do not count.

    Raises
    ------
    InputError
        If the file cannot be read, has another character, or a bracket has no partner.
    """
    source = source_name(path)
    text = "".join(read_text(path).decode("utf-8", "replace").split())
    if not text:
        raise InputError(f"{source}: found an empty file, expected a structure in dot-bracket notation")
    pairs = []
    opened: dict[str, list[int]] = {bracket: [] for bracket in _OPENING.values()}
    for position, character in enumerate(text, start=1):
        if character in opened:
            opened[character].append(position)
        elif character in _OPENING:
            waiting = opened[_OPENING[character]]
            if not waiting:
                found = f"found {character!r} at position {position}"
                raise InputError(f"{source}: {found}, expected {_OPENING[character]!r} before it")
            pairs.append((waiting.pop(), position))
        elif character != _UNPAIRED:
            found = f"found {show_name(character)} at position {position}"
            raise InputError(f"{source}: {found}, expected '.' or one of the brackets ( ) [ ] {{ }} < >")
    left = sorted((position, bracket) for bracket, positions in opened.items() for position in positions)
    if left:
        position, bracket = left[0]
        raise InputError(f"{source}: found {bracket!r} at position {position}, expected a closing bracket after it")
    unpaired = tuple((run.start() + 1, run.end()) for run in re.finditer(r"\.+", text))
    return Structure(tuple(sorted(pairs)), unpaired, len(text))
