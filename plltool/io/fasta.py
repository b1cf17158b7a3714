"""FASTA alignments."""

from __future__ import annotations

import re
from dataclasses import replace

from plltool.errors import InputError, show_name
from plltool.io.alignment_formats import Record, Row, decode_name, join_rows, remove_blanks

NAMES_HINT = "--names first-word cuts them at the first blank, --names whole keeps them without this note"


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
