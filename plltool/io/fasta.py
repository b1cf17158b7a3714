"""FASTA alignments, and those in blocks whose rows have names: Clustal, Stockholm, MSF."""

from __future__ import annotations

import re

from plltool.io.alignment_formats import Record, Row, decode_name, join_rows, remove_blanks

_BLOCKS = re.compile(rb"CLUSTAL|MUSCLE|PROBCONS|# STOCKHOLM", re.IGNORECASE)
_HEAD = 10_000  # bytes, within which MSF announces its size
_OTHER_GAPS = bytes.maketrans(b".~", b"--")


def read_fasta(text: bytes) -> list[Record]:
    """The records of a FASTA file whose first character other than a blank is ``>``.

    The name is the whole header line, without blanks at its ends: two headers that differ after a blank are two
    taxa. ``.`` is not a match character here and stays in the sequence.
    """
    rows: list[Row] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        content = line.strip()
        if content.startswith(b">"):
            rows.append((decode_name(content[1:].strip()), number, []))
        elif content:
            rows[-1][2].append(remove_blanks(content))
    return join_rows(rows)


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
