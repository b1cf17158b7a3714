"""FASTA alignments, and those in blocks whose rows have names: Clustal, Stockholm, MSF."""

from __future__ import annotations

import re
from dataclasses import replace

from plltool.errors import InputError, show_name
from plltool.io.alignment_formats import Record, Row, decode_name, join_rows, remove_blanks

NAMES_HINT = "--names first-word cuts them at the first blank, --names whole keeps them without this note"

_BLOCKS = re.compile(rb"CLUSTAL|MUSCLE|PROBCONS|# STOCKHOLM", re.IGNORECASE)
_HEAD = 10_000  # bytes, within which MSF announces its size
_OTHER_GAPS = bytes.maketrans(b".~", b"--")


def read_fasta(text: bytes) -> list[Record]:
    """The records of a FASTA file whose first character other than a blank is ``>``.

    The name is the whole header line, without blanks at its ends: two headers that differ after a blank are two
    taxa; see `cut_names` for shorter names. ``.`` is not a match character here and stays in the sequence.
    """
    rows: list[Row] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        content = line.strip()
        if content.startswith(b">"):
            rows.append((decode_name(content[1:].strip()), number, []))
        elif content:
            rows[-1][2].append(remove_blanks(content))
    return join_rows(rows)


def cut_names(records: list[Record], source: str) -> list[Record]:
    """The records with the first words of their names; InputError if different names have the same one."""
    first: dict[str, Record] = {}
    cut = []
    for record in records:
        word = _first_word(record.name)
        before = first.setdefault(word, record)
        if before.name != record.name:
            headers = " and ".join(f"{show_name(own.name)} (line {own.line})" for own in (before, record))
            found = f"headers {headers} have the same first word"
            raise InputError(f"{source}: {found}, expected words that differ, or --names whole")
        cut.append(replace(record, name=word))
    return cut


def note_on_blanks(records: list[Record], source: str) -> tuple[str, ...]:
    """A line that names the option if names have blanks, so that many programs would cut them."""
    blank = next((record for record in records if _first_word(record.name) != record.name), None)
    if blank is None:
        return ()
    found = f"names are whole headers with blanks, first {show_name(blank.name)} (line {blank.line})"
    return (f"{source}: {found}; {NAMES_HINT}",)


def _first_word(name: str) -> str:
    """What comes before the first blank of ASCII."""
    return re.split(r"[ \t\v\f\r]", name, maxsplit=1)[0]


def starts_like_blocks(text: bytes) -> bool:
    """Whether the first line names Clustal, a program that writes its format, or Stockholm, or a line announces MSF."""
    start = text.lstrip()
    return bool(_BLOCKS.match(start)) or _find_msf(start) > 0


def _find_msf(text: bytes) -> int:
    """Where the line is that ends the head of an MSF file; 0 for another file."""
    announced = text.find(b"MSF:", 0, _HEAD)
    return max(text.find(b"\n//", announced) + 1, 0) if announced >= 0 else 0


def read_blocks(text: bytes) -> list[Record]:
    """The records of a file as `starts_like_blocks`: the pieces of each name, in the order of the names.

    Lines that begin with a blank tell how columns agree, or count them; those with # are annotations. Dots and tildes
    are gaps. A number behind a piece counts its letters.
    """
    first = max(len(text) - len(text.lstrip()), _find_msf(text))
    rows: dict[bytes, Row] = {}
    for number, line in list(enumerate(text.split(b"\n"), start=1))[text[:first].count(b"\n") + 1 :]:
        if line.startswith(b"//"):  # of Stockholm
            break
        if not line.strip() or line[:1].isspace() or line.startswith(b"#"):
            continue
        name, *pieces = line.split()
        if pieces and pieces[-1].isdigit():
            pieces.pop()
        rows.setdefault(name, (decode_name(name), number, []))[2].append(b"".join(pieces).translate(_OTHER_GAPS))
    return join_rows(rows.values())
