"""Parts of the alignment formats: records, taxon names, layouts of lines, match characters, announced sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plltool.alignment.states import ILLEGAL_CODE, StateSpace
from plltool.errors import show_name

Line = tuple[int, bytes]  # its 1-based number in the file, its text
Row = tuple[str, int, list[bytes]]  # a record that is being read: name, line, pieces of the sequence
NameSplitter = Callable[[bytes], tuple[str, bytes]]

_BLANKS = b" \t\v\f\r\n"
_QUOTED_NAME = re.compile(rb"'([^'\n]*(?:''[^'\n]*)*)'(?=\s|$)")


@dataclass(frozen=True)
class Record:
    """One taxon of a file: its name, its sequence without blanks, and the line on which it starts."""

    name: str
    sequence: bytes
    line: int


@dataclass(frozen=True)
class AnnouncedSize:
    """The size of an alignment as its file announces it."""

    # n_taxa, n_sites: the size; n_taxa is None where the file does not tell it
    n_taxa: int | None
    n_sites: int
    origin: str  # where the file announces it, for messages

    def choose_reading(self, readings: Iterable[list[Record]], states: StateSpace) -> list[Record] | None:
        """The first reading of exactly this size in which every character is one of `states`.

        That mostly excludes readings that take a name for sequence. If there is none, the first reading of this size;
        None if there is none of these either.
        """
        legal = bytes(np.flatnonzero(states.code_of != ILLEGAL_CODE).astype(np.uint8))
        first = None
        for records in readings:
            if self._is_size_of(records):
                if not any(record.sequence.translate(None, legal) for record in records):
                    return records
                first = first or records
        return first

    def explain_mismatch(self, readings: Sequence[list[Record]]) -> str:
        """Part of a message that says why no reading has this size.

        It describes the reading with the most sequences of the right length, the last one of several.
        """
        best = max(reversed(readings), key=self._count_right_lengths)
        wrong = next((record for record in best if len(record.sequence) != self.n_sites), None)
        if wrong is None:
            found = f"found {len(best)} taxa"
        else:
            found = f"taxon {show_name(wrong.name)} (line {wrong.line}) has {len(wrong.sequence)} sites"
        taxa = "" if self.n_taxa is None else f"{self.n_taxa} taxa of "
        return f"{found}, {self.origin} announces {taxa}{self.n_sites} sites"

    def _is_size_of(self, records: Sequence[Record]) -> bool:
        return self.n_taxa in (None, len(records)) and self._count_right_lengths(records) == len(records)

    def _count_right_lengths(self, records: Sequence[Record]) -> int:
        return sum(len(record.sequence) == self.n_sites for record in records)


def decode_name(name: bytes) -> str:
    """A taxon name as text that encodes back to the same bytes."""
    return name.decode("utf-8", "surrogateescape")


def remove_blanks(text: bytes) -> bytes:
    return text.translate(None, _BLANKS)


def number_lines(text: bytes, first: int = 1) -> list[Line]:
    """The lines that are not blank, numbered from `first`."""
    return [(number, line) for number, line in enumerate(text.split(b"\n"), first) if line.strip()]


def split_name(line: bytes) -> tuple[str, bytes]:
    """The name at the start of a line, up to a blank or between single quotes, and the sequence after it.

    Between quotes a name may hold blanks, and two quotes stand for one.
    """
    text = line.strip()
    quoted = _QUOTED_NAME.match(text)
    if quoted:
        return decode_name(quoted[1].replace(b"''", b"'")), remove_blanks(text[quoted.end() :])
    name, *sequence = text.split(None, 1)
    return decode_name(name), remove_blanks(b"".join(sequence))


def join_rows(rows: Iterable[Row]) -> list[Record]:
    return [Record(name, b"".join(pieces), line) for name, line, pieces in rows]


def read_sequential(
    lines: Iterable[Line],
    n_sites: int,
    split: NameSplitter = split_name,
    clean: Callable[[bytes], bytes] = remove_blanks,
) -> list[Record]:
    """Taxon after taxon; each takes lines until it has at least `n_sites` characters.

    `split` reads a line that starts with a name, `clean` one without a name.
    """
    rows: list[Row] = []
    n_missing = 0
    for number, line in lines:
        if n_missing <= 0:
            name, sequence = split(line)
            rows.append((name, number, [sequence]))
            n_missing = n_sites
        else:
            sequence = clean(line)
            rows[-1][2].append(sequence)
        n_missing -= len(sequence)
    return join_rows(rows)


def resolve_matches(records: Sequence[Record], match: bytes) -> list[Record]:
    """Replace the character `match` by that of the first sequence at the same site.

    All sequences must have the same length. The first sequence stays as it is.
    """
    first = np.frombuffer(records[0].sequence, dtype=np.uint8)
    resolved = [records[0]]
    for record in records[1:]:
        if match in record.sequence:
            characters = np.frombuffer(record.sequence, dtype=np.uint8)
            sequence = np.where(characters == ord(match), first, characters).tobytes()
            resolved.append(replace(record, sequence=sequence))
        else:
            resolved.append(record)
    return resolved
