"""Writing alignments as FASTA, PHYLIP or tables."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from plltool.errors import InputError

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
