"""Tables of taxa by characters, with a named state in each cell."""

from __future__ import annotations

import csv
import io

from plltool.alignment.alignment import MIN_TAXA, CellTable, Sequences
from plltool.alignment.spaces import NAMED
from plltool.alignment.states import EITHER, UNKNOWN_CELL
from plltool.errors import InputError, show_name

MAX_CELLS = 256  # different ones: a byte stands for each of them
_OTHER_STARTS = (b">", b"#", b"(", b"{", b"[")


def starts_like_table(text: bytes) -> bool:
    """Whether the first line has several fields, separated by tabs or commas."""
    first = text.lstrip(b"\n").split(b"\n", 1)[0]
    is_other = first.lstrip().startswith(_OTHER_STARTS)
    return bool(first.strip()) and not is_other and (b"\t" in first or b"," in first)


def read_table(text: bytes, source: str, least: int = MIN_TAXA) -> Sequences:
    """Read a table, separated by tabs if the first line has one, else by commas.

    The first line names the columns. Each other line has a taxon, then its state in each column: its name, ``a|b`` for
    either of two or more, ``?`` or nothing where it is unknown. Fields may be quoted as in CSV.
    """
    header, rows = read_fields(text, source)
    filled = [[_tidy(cell) for cell in fields[1:]] for _, fields in rows]
    cells = sorted({cell for row in filled for cell in row})
    if len(cells) > MAX_CELLS:
        raise InputError(f"{source}: found {len(cells)} different cells, expected at most {MAX_CELLS}")
    byte_of = {cell: byte for byte, cell in enumerate(cells)}
    return Sequences(
        tuple(fields[0] for _, fields in rows),
        tuple(bytes(byte_of[cell] for cell in row) for row in filled),
        source,
        NAMED,
        [number for number, _ in rows],
        table=CellTable(tuple(header[1:]), tuple(cells)),
        least=least,
    )


def read_fields(text: bytes, source: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The fields of the first line of a table, and the number and the fields of each other line.

    The separator is a tab if the first line has one, else a comma. Empty lines are skipped.
    """
    content = text.decode("utf-8", "surrogateescape").lstrip("\n")
    skipped = len(text) - len(text.lstrip(b"\n"))
    reader = csv.reader(io.StringIO(content), delimiter="\t" if "\t" in content.split("\n", 1)[0] else ",", strict=True)
    lines: list[tuple[int, list[str]]] = []
    last = skipped
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                lines.append((last + 1, [field.strip() for field in fields]))
            last = reader.line_num + skipped
    except csv.Error as problem:
        raise InputError(f"{source}: line {last + 1}: found {problem}, expected fields of a table") from None
    if not lines:
        raise InputError(f"{source}: found no names of columns, expected them in the first line of a table")
    (_, header), rows = lines[0], lines[1:]
    for number, fields in rows:
        if len(fields) != len(header):
            where = f"{source}: line {number}: taxon {show_name(fields[0])}"
            raise InputError(f"{where}: found {len(fields)} fields, expected {len(header)} as in the first line")
    return header, rows


def _tidy(cell: str) -> str:
    """A cell without blanks around names, `UNKNOWN_CELL` where it is empty."""
    return EITHER.join(name.strip() for name in cell.split(EITHER)) or UNKNOWN_CELL
