"""FASTA alignments."""

from __future__ import annotations

from plltool.io.alignment_formats import Record, Row, decode_name, join_rows, remove_blanks


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
