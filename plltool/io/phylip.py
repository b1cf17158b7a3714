"""PHYLIP alignments, with the dialects of RAxML (relaxed names) and PAML (options, position lines)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plltool.alignment.states import StateSpace
from plltool.errors import InputError, show_name
from plltool.io import alignment_formats as formats
from plltool.io.alignment_formats import Record

_MATCH = b"."
_STRICT_NAME_LENGTH = 10  # characters, Felsenstein's PHYLIP
_MAX_DIGITS = 18  # of a number in the header; longer ones are no sizes
_INTERLEAVED, _SEQUENTIAL = "I", "S"  # PAML's options at the end of the header


@dataclass(frozen=True)
class _Header:
    n_taxa: int
    n_sites: int
    line: int
    layout: str | None  # the option, if there is one


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

    Raises InputError if the header announces no taxa or no sites or has an unknown option, or no layout gives the
    announced sizes.
    """
    (header_line, header_text), *lines = formats.number_lines(text)
    header = _parse_header(header_text, header_line, source)
    announced = formats.AnnouncedSize(header.n_taxa, header.n_sites, f"line {header.line}")
    relaxed = _read_layouts(lines, header, formats.split_name)
    records = announced.choose_reading(relaxed, states)
    if records is None:
        records = announced.choose_reading(_read_layouts(lines, header, _split_strict), states)
    if records is None:
        raise InputError(f"{source}: {announced.explain_mismatch(relaxed)}")
    return formats.resolve_matches(records, _MATCH)


def _parse_header(text: bytes, line: int, source: str) -> _Header:
    n_taxa, n_sites, *options = text.split()
    if int(n_taxa) == 0 or int(n_sites) == 0:
        raise InputError(
            f"{source}: line {line}: found {int(n_taxa)} taxa and {int(n_sites)} sites, expected at least 1 of each"
        )
    found = formats.decode_name(b" ".join(options)).upper()
    if found not in ("", _INTERLEAVED, _SEQUENTIAL):
        raise InputError(
            f"{source}: line {line}: found {show_name(found)} after the two sizes, expected nothing, "
            f"{_INTERLEAVED} (interleaved) or {_SEQUENTIAL} (sequential)"
        )
    return _Header(int(n_taxa), int(n_sites), line, found or None)


def _read_layouts(lines: Sequence[formats.Line], header: _Header, split: formats.NameSplitter) -> list[list[Record]]:
    """A reading for each layout that the header allows."""
    readings = []
    if header.layout != _INTERLEAVED:
        readings.append(formats.read_sequential(lines, header.n_sites, split))
    if header.layout != _SEQUENTIAL:
        readings.append(_read_interleaved(lines, header, split))
    return readings


def _read_interleaved(lines: Sequence[formats.Line], header: _Header, split: formats.NameSplitter) -> list[Record]:
    """Blocks of one line per taxon; the first block holds the names.

    With PAML's option the later blocks may be preceded by a line that holds only a site number.
    """
    named, unnamed = lines[: header.n_taxa], lines[header.n_taxa :]
    if header.layout == _INTERLEAVED:
        unnamed = [(number, line) for number, line in unnamed if not line.strip().isdigit()]
    rows: list[formats.Row] = []
    for number, line in named:
        name, sequence = split(line)
        rows.append((name, number, [sequence]))
    for index, (_, line) in enumerate(unnamed):
        rows[index % header.n_taxa][2].append(formats.remove_blanks(line))
    return formats.join_rows(rows)


def _split_strict(line: bytes) -> tuple[str, bytes]:
    """A name of exactly 10 characters, blanks at its ends removed, and the sequence after it."""
    text = formats.decode_name(line)
    name, sequence = text[:_STRICT_NAME_LENGTH], text[_STRICT_NAME_LENGTH:]
    return name.strip(" \t"), formats.remove_blanks(sequence.encode("utf-8", "surrogateescape"))
