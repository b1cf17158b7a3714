r"""The columns of a part, as partition files name them.

1-900\3, 903                  columns count from 1; ranges include both ends; every third column
901-.                         to the last column
5:70 6:69                     columns that pair in a stem of RNA
pairs{FILE}, unpaired{FILE}   columns of a structure in dot-bracket notation, see `read_structure`
genes.phy: DNA, 1-900         IQ-TREE: the file, which must be the alignment, and the type of the data
*                             all columns
first all remainder           NEXUS: charsets, all columns, those that no other part has
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from plltool.alignment.spaces import data_name
from plltool.alignment.states import MULTISTATE
from plltool.constants import (
    DEFAULT_CODON_MODEL,
    DEFAULT_MODEL,
    DEFAULT_MULTISTATE_MODEL,
    DEFAULT_PROTEIN_MODEL,
    GENETIC_CODES,
    STANDARD_CODE,
)
from plltool.errors import InputError, show_name
from plltool.io.files import read_text, source_name
from plltool.model.codons import under_code
from plltool.model.scheme import ALL_SITES, REMAINDER, SitePair, SiteRange

_MAX_RANGES = 1_000_000  # of all charsets: members of members may be as many as powers of two

# Nothing that has matched is given back (``++``), so that a line of a million blanks takes no longer than any other.
COLUMN = r"([0-9]{1,18})(?![0-9])"
_RANGE = re.compile(rf"{COLUMN}(?:\s*+-\s*+(?:{COLUMN}|(\.))(?:\s*+[\\/]\s*+{COLUMN})?)?")
_PAIR = re.compile(rf"{COLUMN}\s*+:\s*+{COLUMN}(?!\s*+[-\\/])")
_STRUCTURE = re.compile(r"(pairs|unpaired)\{([^{}]++)\}", re.IGNORECASE)
_FILE = re.compile(r"\s*+('[^']*+'|[^\s:,']++)\s*+:")
_DATA_WORD = re.compile(r"\s*+([A-Za-z][A-Za-z0-9]*+)\s*+,")
_MEMBER = re.compile(r"'[^']*+'|[^\s,']++")
_SEPARATORS = re.compile(r"[ \t\n,]*+")
_MULTISTATE_WORDS = ("BIN", "MORPH", "MULTI", "STANDARD")  # RAxML's, IQ-TREE's and MrBayes'
_WORDS_OF_CODONS = {data_name(code).upper(): code for code in GENETIC_CODES} | {"CODON1": STANDARD_CODE}
USUAL_MODELS = {"DNA": DEFAULT_MODEL, "DNAX": "GTR+FO+G4", "AA": DEFAULT_PROTEIN_MODEL, "PROT": DEFAULT_PROTEIN_MODEL}
USUAL_MODELS |= dict.fromkeys(_MULTISTATE_WORDS, DEFAULT_MULTISTATE_MODEL)
USUAL_MODELS |= {word: under_code(DEFAULT_CODON_MODEL, code) for word, code in _WORDS_OF_CODONS.items()}
DATA_NAMES = {"DNA": "DNA", "DNAX": "DNA", "AA": "protein", "PROT": "protein"}
DATA_NAMES |= dict.fromkeys(_MULTISTATE_WORDS, MULTISTATE)
DATA_NAMES |= {word: data_name(code) for word, code in _WORDS_OF_CODONS.items()}


@dataclass(frozen=True)
class PartColumns:
    """The columns of a part."""

    ranges: tuple[SiteRange, ...]  # see `PartSpec`
    where: str  # the file and line that name them, for messages
    file: str = ""  # the alignment file that they are said to be of, or empty
    data_word: str = ""  # the kind of data that they are said to be, a key of `USUAL_MODELS`, or empty
    n_sites: int | None = None  # see `PartSpec`

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,) if self.file else ()


Charsets = Mapping[str, PartColumns]


def read_columns(text: str, where: str, name: str, charsets: Charsets | None = None) -> PartColumns:
    """``[FILE:] [DATA TYPE,] RANGES``; raises InputError for a data type that is not supported.

    With `charsets` (NEXUS) these may be members, and ``all`` and ``remainder``.
    """
    position, file, word = 0, "", ""
    if (found := _FILE.match(text)) and not _PAIR.match(text.lstrip()):
        file, position = found[1].strip("'"), found.end()
    found = _DATA_WORD.match(text, position)
    if found and not (charsets and find_members(found[1], charsets)):
        word, position = found[1].upper(), found.end()
        if word not in USUAL_MODELS:
            what = f"{where}: partition {show_name(name)}: found data of type {show_name(found[1])}"
            raise InputError(f"{what}, expected DNA, AA (proteins), CODON or CODON2 and the like, BIN or MORPH")
    rest = text[position:]
    if rest.strip() == "*":
        return PartColumns(ALL_SITES, where, file, word)
    if found := _STRUCTURE.fullmatch(rest.strip()):
        what = f"{where}: partition {show_name(name)}"
        ranges, n_sites = _read_structure_columns(found[1].lower(), found[2].strip(), what)
        return PartColumns(ranges, where, file, word, n_sites)
    return PartColumns(_read_ranges(rest, where, name, charsets), where, file, word)


def _read_structure_columns(which: str, path: str, where: str) -> tuple[tuple[SiteRange, ...], int]:
    """The columns of a structure that pair or do not, and the number of all; InputError if there are none."""
    structure = read_structure(path)
    ranges: tuple[SiteRange, ...] = tuple(SiteRange(*run) for run in structure.unpaired)
    if which == "pairs":
        ranges = tuple(SitePair(*pair) for pair in structure.pairs)
    if not ranges:
        found = "no brackets" if which == "pairs" else "no dot"
        raise InputError(f"{where}: found {found} in {show_name(path)}, expected at least one")
    return ranges, structure.n_sites


def _read_ranges(text: str, where: str, name: str, charsets: Charsets | None) -> tuple[SiteRange, ...]:
    """Ranges, and in NEXUS names of charsets, separated by commas or blanks."""
    ranges: list[SiteRange] = []
    position = _skip_separators(text, 0)
    while position < len(text):
        if pair := _PAIR.match(text, position):
            first, last = sorted((int(pair[1]), int(pair[2])))
            if first == last:
                what = f"{where}: partition {show_name(name)}: found {show_name(pair[0])}"
                raise InputError(f"{what}, expected two different columns")
            ranges.append(SitePair(first, last))
            position = _skip_separators(text, pair.end())
            continue
        match = _RANGE.match(text, position)
        member = None if match or charsets is None else _MEMBER.match(text, position)
        if member and charsets is not None and (known := find_members(member[0].strip("'"), charsets)):
            ranges += known.ranges
            check_size(len(ranges), where, name)
            position = _skip_separators(text, member.end())
            continue
        if match is None or int(match[4] or 1) == 0:
            found = show_name(text[position:].strip())
            raise InputError(rf"{where}: partition {show_name(name)}: found {found}, expected columns such as 1-100\3")
        start, stop, to_end, stride = match.groups()
        ranges.append(SiteRange(int(start), None if to_end else int(stop or start), int(stride or 1)))
        position = _skip_separators(text, match.end())
    return tuple(ranges if charsets is None else dict.fromkeys(ranges))  # members may have ranges in common


def _skip_separators(text: str, position: int) -> int:
    match = _SEPARATORS.match(text, position)
    assert match is not None, "it matches nothing, too"
    return match.end()


def check_size(n_ranges: int, where: str, name: str) -> None:
    if n_ranges > _MAX_RANGES:
        found = f"{where}: charset {show_name(name)}: found more than {_MAX_RANGES} ranges"
        raise InputError(f"{found}, member charsets included, expected at most {_MAX_RANGES}")


def find_members(name: str, charsets: Charsets) -> PartColumns | None:
    """The columns of a charset, of ``all`` or ``remainder``; None if there is no such charset."""
    words = {"all": ALL_SITES, "remainder": (REMAINDER,)}
    return charsets.get(name) or (PartColumns(words[name.lower()], "") if name.lower() in words else None)


# --- structures of RNA in dot-bracket notation ------------------------------------------------------------

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
