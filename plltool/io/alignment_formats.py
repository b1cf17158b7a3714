"""FASTA, PHYLIP and blocks of rows with names, and what alignment formats share: records, names, layouts of lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plltool.alignment.alignment import Sequences
from plltool.alignment.states import ILLEGAL_CODE, StateSpace
from plltool.errors import InputError, show_name

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

    n_taxa: int | None  # None where the file does not tell it
    n_sites: int
    origin: str  # where the file announces it, for messages

    def choose_reading(self, readings: Iterable[list[Record]], states: StateSpace) -> list[Record] | None:
        """The first reading of this size whose characters are all of `states`; names mostly are not.

        Else the first reading of this size; None if there is none.
        """
        legal = bytes(np.flatnonzero(states.code_of != ILLEGAL_CODE).astype(np.uint8))
        first = None
        for records in readings:
            if self.n_taxa in (None, len(records)) and self._count_right_lengths(records) == len(records):
                if not any(record.sequence.translate(None, legal) for record in records):
                    return records
                first = first or records
        return first

    def explain_mismatch(self, readings: Sequence[list[Record]]) -> str:
        """Why no reading has this size, for a message: on the one with the most sequences of the right length."""
        best = max(reversed(readings), key=self._count_right_lengths)
        wrong = next((record for record in best if len(record.sequence) != self.n_sites), None)
        if wrong is None:
            found = f"found {len(best)} taxa"
        else:
            found = f"taxon {show_name(wrong.name)} (line {wrong.line}) has {len(wrong.sequence)} sites"
        taxa = "" if self.n_taxa is None else f"{self.n_taxa} taxa of "
        return f"{found}, {self.origin} announces {taxa}{self.n_sites} sites"

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
    """The name at a line's start, up to a blank or in quotes, of which two stand for one, and the sequence after it."""
    text = line.strip()
    quoted = _QUOTED_NAME.match(text)
    if quoted:
        return decode_name(quoted[1].replace(b"''", b"'")), remove_blanks(text[quoted.end() :])
    name, *sequence = text.split(None, 1)
    return decode_name(name), remove_blanks(b"".join(sequence))


def to_sequences(records: Sequence[Record], source: str, states: StateSpace | None, **more: Any) -> Sequences:
    """What the records of a file hold; `more` are other attributes of `Sequences`."""
    names, rows = tuple(own.name for own in records), tuple(own.sequence for own in records)
    return Sequences(names, rows, source, states, [own.line for own in records], **more)


def join_rows(rows: Iterable[Row]) -> list[Record]:
    return [Record(name, b"".join(pieces), line) for name, line, pieces in rows]


def read_sequential(
    lines: Iterable[Line],
    n_sites: int,
    split: NameSplitter = split_name,
    clean: Callable[[bytes], bytes] = remove_blanks,
) -> list[Record]:
    """Each taxon takes lines until it has `n_sites` characters; `split` reads lines with names, `clean` others."""
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


def read_interleaved(
    lines: Sequence[Line],
    n_taxa: int | None,
    split: NameSplitter = split_name,
    clean: Callable[[bytes], bytes] = remove_blanks,
) -> list[Record]:
    """Blocks of one line per taxon, of which the first one holds the names; `split` and `clean` as above."""
    rows: list[Row] = []
    for number, line in lines[:n_taxa]:
        name, sequence = split(line)
        rows.append((name, number, [sequence]))
    for index, (_, line) in enumerate(lines[n_taxa:] if n_taxa else ()):
        rows[index % len(rows)][2].append(clean(line))
    return join_rows(rows)


def resolve_matches(records: Sequence[Record], match: bytes) -> list[Record]:
    """Replace `match` by what the first sequence, which stays as it is, has at the same site; all are equally long."""
    first = np.frombuffer(records[0].sequence, dtype=np.uint8)
    others = ((record, np.frombuffer(record.sequence, dtype=np.uint8)) for record in records[1:])
    resolved = [replace(record, sequence=np.where(row == ord(match), first, row).tobytes()) for record, row in others]
    return [records[0], *resolved]


# --- FASTA, and blocks whose rows have names: Clustal, Stockholm, MSF -------------------------------------

NAMES_HINT = "--names first-word cuts them at the first blank, --names whole keeps them without this note"

_BLOCKS = re.compile(rb"CLUSTAL|MUSCLE|PROBCONS|MSAPROBS|KALIGN|# STOCKHOLM", re.IGNORECASE)
_MSF_NAME = re.compile(rb"^[ \t]*Name:[ \t]*(\S+)", re.MULTILINE)
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

    The head of MSF lists the names, and other lines are left out. In other formats lines that begin with a blank tell
    how columns agree, or count them; those with # are annotations. Dots and tildes are gaps. A number behind a piece
    counts its letters.
    """
    msf = _find_msf(text)
    first = max(len(text) - len(text.lstrip()), msf)
    rows: dict[bytes, Row] = {}
    for found in _MSF_NAME.finditer(text, 0, msf):
        rows[found[1]] = decode_name(found[1]), text.count(b"\n", 0, found.start()) + 1, []
    declared = set(rows)
    for number, line in list(enumerate(text.split(b"\n"), start=1))[text[:first].count(b"\n") + 1 :]:
        if line.startswith(b"//"):  # of Stockholm
            break
        name, *pieces = line.split() or [b""]
        if name not in declared if declared else not name or line[:1].isspace() or line.startswith(b"#"):
            continue
        if pieces and pieces[-1].isdigit():
            pieces.pop()
        rows.setdefault(name, (decode_name(name), number, []))[2].append(b"".join(pieces).translate(_OTHER_GAPS))
    return join_rows(rows.values())


# --- PHYLIP, with the dialects of RAxML (relaxed names) and PAML (options, position lines) ----------------

_MATCH = b"."
_STRICT_NAME_LENGTH = 10  # characters, Felsenstein's PHYLIP
_MAX_DIGITS = 18  # of a number in the header; longer ones are no sizes
SIZES = re.compile(rb"^[ \t]*\d+[ \t]+\d+[ \t]*$", re.MULTILINE)  # the first line of an alignment
_INTERLEAVED, _SEQUENTIAL = "I", "S"  # PAML's options at the end of the header


def starts_like_phylip(text: bytes) -> bool:
    """Whether the first line with text starts with two whole numbers."""
    tokens = text.lstrip().split(b"\n", 1)[0].split()
    return len(tokens) >= 2 and all(token.isdigit() and len(token) <= _MAX_DIGITS for token in tokens[:2])


def read_phylip(text: bytes, source: str, states: StateSpace) -> list[Record]:
    """The records of a PHYLIP file; see `starts_like_phylip` for how it starts.

    Names end at the first blank (or are quoted, see `split_name`); where that does not give the announced sizes, they
    are the first 10 characters of their line. Sequences are sequential or interleaved, and may hold blanks. The layout
    is the one that gives the announced sizes (and, if both do, sequences of `states`), unless the header names it by
    ``S`` or ``I``. ``.`` stands for the character of the first sequence.
    """
    (header_line, header_text), *lines = number_lines(text)
    n_taxa, n_sites, *options = header_text.split()
    announced = AnnouncedSize(int(n_taxa), int(n_sites), f"line {header_line}")
    where = f"{source}: {announced.origin}"
    if int(n_taxa) == 0 or int(n_sites) == 0:
        raise InputError(f"{where}: found {int(n_taxa)} taxa and {int(n_sites)} sites, expected at least 1 of each")
    layout = decode_name(b" ".join(options)).upper()
    if layout not in ("", _INTERLEAVED, _SEQUENTIAL):
        expected = f"expected nothing, {_INTERLEAVED} (interleaved) or {_SEQUENTIAL} (sequential)"
        raise InputError(f"{where}: found {show_name(layout)} after the two sizes, {expected}")
    relaxed = _read_layouts(lines, announced, layout, split_name)
    records = announced.choose_reading(relaxed, states)
    if records is None:
        records = announced.choose_reading(_read_layouts(lines, announced, layout, _split_strict), states)
    if records is None:
        second = next((number for number, line in lines if SIZES.fullmatch(line)), None)
        if second is not None:
            raise InputError(f"{source}: line {second}: found the sizes of another alignment, expected one in a file")
        raise InputError(f"{source}: {announced.explain_mismatch(relaxed)}")
    return resolve_matches(records, _MATCH)


def _read_layouts(
    lines: Sequence[Line], announced: AnnouncedSize, layout: str, split: NameSplitter
) -> list[list[Record]]:
    """A reading for each layout that the header allows; interleaved blocks have one line per taxon.

    With PAML's option later blocks may begin with a line that holds only a site number.
    """
    readings = []
    if layout != _INTERLEAVED:
        readings.append(read_sequential(lines, announced.n_sites, split))
    if layout != _SEQUENTIAL:
        named, others = lines[: announced.n_taxa], lines[announced.n_taxa :]
        later = [line for line in others if not (layout and line[1].strip().isdigit())]
        readings.append(read_interleaved([*named, *later], announced.n_taxa, split))
    return readings


def _split_strict(line: bytes) -> tuple[str, bytes]:
    """A name of exactly 10 characters, blanks at its ends removed, and the sequence after it."""
    text = decode_name(line)
    name, sequence = text[:_STRICT_NAME_LENGTH], text[_STRICT_NAME_LENGTH:]
    return name.strip(" \t"), remove_blanks(sequence.encode("utf-8", "surrogateescape"))


# --- writing ----------------------------------------------------------------------------------------------

PHYLIP_ENDINGS = (".phy", ".phylip")
FASTA_WIDTH = 80


def format_fasta(names: Sequence[str], sequences: Sequence[str]) -> str:
    """FASTA with lines of FASTA_WIDTH letters."""
    lines = []
    for name, sequence in zip(names, sequences, strict=True):
        lines.append(f">{name}")
        lines += [sequence[start : start + FASTA_WIDTH] for start in range(0, len(sequence), FASTA_WIDTH)]
    return "\n".join(lines) + "\n"


def format_phylip(names: Sequence[str], sequences: Sequence[str]) -> str:
    """Relaxed sequential PHYLIP. Raises InputError for a name with blanks, which would end there."""
    for name in names:
        if re.search(r"\s", name):
            raise InputError(f"found taxon {name!r}, expected a name without blanks in a PHYLIP file")
    width = max(map(len, names)) + 1
    lines = [f"{name:<{width}}{sequence}" for name, sequence in zip(names, sequences, strict=True)]
    return "\n".join([f"{len(names)} {len(sequences[0])}", *lines]) + "\n"


def format_table(names: Sequence[str], rows: Sequence[str]) -> str:
    """A table of named states; `rows` have tabs between them. Taxa with tabs or quotes in their names are quoted."""
    text = io.StringIO()
    lines = [row.split("\t") for row in rows]
    header = ["taxon", *(f"character_{number}" for number in range(1, len(lines[0]) + 1))]
    table = csv.writer(text, delimiter="\t", lineterminator="\n")
    table.writerows([header, *([name, *line] for name, line in zip(names, lines, strict=True))])
    return text.getvalue()
