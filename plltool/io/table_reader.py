"""Tables: of taxa by characters, with a named state in each cell, of the dates of taxa, and of values of sites."""

import calendar
import csv
import datetime
import io
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Real
from os import fspath
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from plltool.alignment.alignment import MIN_TAXA, CellTable, Sequences
from plltool.alignment.spaces import NAMED
from plltool.alignment.states import EITHER, UNKNOWN_CELL
from plltool.arrays import FloatArray
from plltool.errors import InputError, check_kind, count, errors_at, list_names, show_name
from plltool.io.bridge import split_table
from plltool.io.files import FileName, read_text, source_name

MAX_CELLS = 256  # different ones: a byte stands for each of them
_OTHER_STARTS = (b">", b"#", b"(", b"{", b"[", b";")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")


def starts_like_table(text: bytes) -> bool:
    """Whether the first line has several fields, separated by tabs, commas or semicolons."""
    first = text.lstrip(b"\n").split(b"\n", 1)[0]
    is_other = first.lstrip().startswith(_OTHER_STARTS)
    return bool(first.strip()) and not is_other and any(mark in first for mark in (b"\t", b",", b";"))


def read_table(text: bytes, source: str, least: int = MIN_TAXA) -> Sequences:
    """Read a table, see `read_fields`.

    The first line names the columns. Each other line has a taxon, then its state in each column: its name, ``a|b`` for
    either of two or more, ``?`` or nothing where it is unknown. Fields may be quoted as in CSV.
    """
    (_, header), *rows = read_fields(text, source)
    # without blanks around names
    split = [[[name.strip() for name in cell.split(EITHER)] for cell in fields[1:]] for _, fields in rows]
    filled = [[EITHER.join(names) or UNKNOWN_CELL for names in row] for row in split]
    cells = sorted({cell for row in filled for cell in row})
    if len(cells) > MAX_CELLS:
        raise InputError(f"{source}: found {len(cells)} different cells, expected at most {MAX_CELLS}")
    byte_of = {cell: byte for byte, cell in enumerate(cells)}
    taxa, lines = tuple(fields[0] for _, fields in rows), [number for number, _ in rows]
    encoded = tuple(bytes(byte_of[cell] for cell in row) for row in filled)
    table = CellTable(tuple(header[1:]), tuple(cells))
    return Sequences(taxa, encoded, source, NAMED, lines, table=table, least=least)


def read_fields(text: bytes, source: str) -> list[tuple[int, list[str]]]:
    """The number and the fields of each line of a table, first that with the names of the columns.

    Tabs separate if the first line has one, else commas or semicolons, whichever it has more of, else blanks. Between
    semicolons, as spreadsheets of many countries write them, numbers may have decimal commas.
    """
    content = text.decode("utf-8", "surrogateescape").lstrip("\n")
    skipped = len(text) - len(text.lstrip(b"\n"))
    first = content.split("\n", 1)[0]
    mark = "\t" if "\t" in first else max(",; ", key=lambda own: first.count(own) if own != " " else 0.5)
    content = re.sub(" +$", "", content, flags=re.MULTILINE) if mark == " " else content
    reader = csv.reader(io.StringIO(content), delimiter=mark, skipinitialspace=mark == " ", strict=True)
    lines: list[tuple[int, list[str]]] = []
    last = skipped
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                cells = [field.strip() for field in fields]
                if mark == ";":
                    cells = [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]
                lines.append((last + 1, cells))
            last = reader.line_num + skipped
    except csv.Error as problem:
        raise InputError(f"{source}: line {last + 1}: found {problem}, expected fields of a table") from None
    if not lines:
        raise InputError(f"{source}: found no names of columns, expected them in the first line of a table")
    n_columns = len(lines[0][1])
    for number, fields in lines:
        if len(fields) != n_columns:
            where = f"{source}: line {number}: taxon {show_name(fields[0])}"
            raise InputError(f"{where}: found {len(fields)} fields, expected {n_columns} as in the first line")
    return lines


NAME_COLUMNS = ("name", "strain", "accession")  # in any case
DATE_WORD = "date"  # in the name of the column of dates, in any case
OTHER_NAMES, OTHER_DATES = ("taxon", "taxa"), ("year",)  # of these columns, where there are none of the above
UNKNOWN_DATES = ("", "?", "NA", "N/A", "UNKNOWN", "XXXX-XX-XX")  # in any case; the last is augur's
EXPECTED = "a year such as 2011.37, a day such as 2011-05-17 or 2011-05-XX, a range such as [2011.2:2011.5], or ?"

_MONTHS = "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"
_DAY = re.compile(
    r"""(\d{4}) (?: -(\d\d?|XX)(?:-(\d\d?|XX))? | (?P<sign>[/.])(\d\d?)(?P=sign)(\d\d?) | (\d\d)(\d\d) )
        (?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?  # the time of a spreadsheet, ISO 8601""",
    re.IGNORECASE | re.VERBOSE,
)
_GENBANK = re.compile(r"(?:(\d\d?)-)?([A-Za-z]{3})-(\d{4})")
_YEAR = r"\d{4}(?:\.\d+)?"
_RANGE = re.compile(rf"\[([^:\[\]]+):([^:\[\]]+)\]|b\(([^,()]+),([^,()]+)\)|({_YEAR})-({_YEAR})")


class SampleDate(NamedTuple):
    """When a taxon was sampled: the first and the last possible date, in years; both are equal if it is known."""

    first: float
    last: float


class DateRow(NamedTuple):
    """A row of a table of dates: its line, the taxon, and the date; None if that is unknown."""

    line: int
    name: str
    date: SampleDate | None


def read_dates(path: FileName, names: str | None = None, dates: str | None = None) -> list[DateRow]:
    """Read a table of dates, see `read_fields`.

    path : the file. Its first line names the columns, unless it has a date in the second one: then all lines have a
        taxon and its date, as BEAST and LSD2 read them; the number of dates may be above them.
    names, dates : the columns of taxa and dates. By default the first one called name, strain or accession, else
        taxon or taxa, and the first one whose name has the word date in it, else one called year.
    """
    source = source_name(path)
    text = read_text(path)
    count_of_dates = re.match(rb"\s*\d+[ \t]*(?=\n)", text)
    first, *rows = read_fields(text[count_of_dates.end() :] if count_of_dates else text, source)
    header = first[1]
    with suppress(InputError):
        if names is dates is None and len(header) == 2 and parse_date(header[1]):
            header, rows = ["name", "date"], [first, *rows]
    words = [column.lower() for column in header]
    by_name = [number for number, word in enumerate(words) if word in NAME_COLUMNS]
    by_name += [number for number, word in enumerate(words) if word in OTHER_NAMES]
    by_date = [number for number, word in enumerate(words) if DATE_WORD in word]
    by_date += [number for number, word in enumerate(words) if word in OTHER_DATES]
    called = f"{', '.join(NAME_COLUMNS)} or {OTHER_NAMES[0]}"
    taxa = _find_column(header, names, by_name, f"one of taxa called {called}, or its name (--name-column)", source)
    expected = "one of dates called year, or with the word date in its name, or its name (--date-column)"
    days = _find_column(header, dates, by_date, expected, source)
    found: dict[str, DateRow] = {}
    for line, fields in rows:
        where = f"{source}: line {line}: taxon {show_name(fields[taxa])}"
        if fields[taxa] in found:
            raise InputError(f"{where}: is on line {found[fields[taxa]].line}, too; expected one date for each taxon")
        with errors_at(where):
            found[fields[taxa]] = DateRow(line, fields[taxa], parse_date(fields[days]))
    return list(found.values())


def _find_column(header: list[str], wanted: str | None, usual: list[int], expected: str, source: str) -> int:
    """The number of a column, by the name `wanted` or the `usual` ones; `expected` says which these are."""
    if wanted in header:
        return header.index(wanted)
    if wanted is None and usual:
        return usual[0]
    found = f"{source}: found columns {list_names(header)}"
    raise InputError(f"{found}, expected {expected if wanted is None else f'one called {show_name(wanted)}'}")


def parse_date(text: str) -> SampleDate | None:
    """A date as text; None if it is unknown. Raises InputError if it cannot be understood."""
    if text.upper() in UNKNOWN_DATES:
        return None
    ends = _RANGE.fullmatch(text)
    try:
        dates = [_days_of(end.strip()) for end in (filter(None, ends.groups()) if ends else (text,))]
    except ValueError:
        raise _refuse(text) from None
    return as_date(dates[0].first, dates[-1].last)


def as_date(first: float, last: float) -> SampleDate:
    """A range of dates in years; InputError if one is no number, or they are in the wrong order."""
    if not (math.isfinite(first) and math.isfinite(last)):
        raise _refuse(str(first))
    if first > last:
        raise InputError(f"found a range from {first:g} to {last:g}, expected the earlier date first")
    return SampleDate(first, last)


def decimal_year(day: datetime.date) -> float:
    """The middle of a day in years: (day of the year - 1/2) over the days of the year, after the year."""
    return day.year + (day.timetuple().tm_yday - 0.5) / (366 if calendar.isleap(day.year) else 365)


def _days_of(text: str) -> SampleDate:
    """A year, or the days that a date with an unknown day, or month and day, may mean; ValueError if it is none."""
    if found := _GENBANK.fullmatch(text):
        text = f"{found[3]}-{_MONTHS.index(found[2].upper()) + 1}-{found[1] or 'XX'}"
    found = _DAY.fullmatch(text)
    if found is None:
        return SampleDate(float(text), float(text))
    year = int(found[1])
    parts = [part for part in found.group(2, 3, 5, 6, 7, 8) if part]
    month, day = (None if part.upper() == "XX" else int(part) for part in (*parts, "XX")[:2])
    if month is None and day is not None:
        raise ValueError
    months = (1, 12) if month is None else (month, month)
    days = (1, calendar.monthrange(year, months[1])[1]) if day is None else (day, day)
    first, last = (datetime.date(year, *pair) for pair in zip(months, days, strict=True))
    return SampleDate(decimal_year(first), decimal_year(last))


def _refuse(text: str) -> InputError:
    return InputError(f"found {show_name(text)} as a date, expected {EXPECTED}")


# --- values of sites --------------------------------------------------------------------------------------

PUZZLE_ENDING = ".sitelh"


def format_sites(name: str, values: FloatArray) -> str:
    """A table of site, from 1, and a value (n_sites,) called `name`, separated by a tab."""
    rows = [f"{site}\t{value!r}" for site, value in enumerate(values.tolist(), start=1)]
    return "\n".join([f"site\t{name}", *rows]) + "\n"


def format_frequencies(frequencies: FloatArray) -> str:
    """Frequencies of states (n_sites, n_states) as IQ-TREE's file .sitefreq: a line of a site, from 1, and numbers."""
    rows = enumerate(frequencies.tolist(), start=1)
    return "".join(f"{site} {' '.join(map(repr, row))}\n" for site, row in rows)


def read_frequencies(path: FileName, n_sites: int, symbols: Sequence[str]) -> FloatArray:
    """Frequencies (n_sites, n_states) from such a file; InputError unless each site has one line of these numbers."""
    source, rows = source_name(path), dict[int, list[float]]()
    text = read_text(path).decode("utf-8", "surrogateescape")
    for number, words in enumerate(map(str.split, text.splitlines()), start=1):
        if not words:
            continue
        site, where = words[0], f"{source}: line {number}"
        if not re.fullmatch("[0-9]{1,9}", site) or not 1 <= int(site) <= n_sites:
            raise InputError(f"{where}: found {show_name(site)}, expected the number of a site, 1 to {n_sites}")
        if int(site) in rows:
            raise InputError(f"{where}: site {site} is given twice")
        try:
            rows[int(site)] = list(map(float, words[1:]))
        except ValueError as error:
            raise InputError(f"{where}: {error}") from None
        if len(words) != len(symbols) + 1:
            expected = f"{len(symbols)} frequencies ({' '.join(symbols)})"
            raise InputError(f"{where}: found {len(words) - 1} numbers, expected {expected}")
    missing = next((site for site in range(1, n_sites + 1) if site not in rows), None)
    if missing is not None:
        raise InputError(f"{source}: found no frequencies of site {missing}")
    return np.array([rows[site] for site in range(1, n_sites + 1)])


def format_puzzle(site_lnl: FloatArray) -> str:
    """lnL (n_trees, n_sites) as TREE-PUZZLE has it: sizes, then a line for each tree; sites in no part are left out."""
    known = site_lnl[:, ~np.isnan(site_lnl).any(axis=0)]
    lines = [f"{len(known)} {known.shape[1]}"]
    lines += [f"Tree{number:<6d}" + " ".join(map(repr, row)) for number, row in enumerate(known.tolist(), start=1)]
    return "\n".join(lines) + "\n"


def format_for(path: FileName, site_lnl: FloatArray) -> str:
    """lnL (n_sites,) in the format that the file's name asks for: for CONSEL if it ends in PUZZLE_ENDING."""
    is_puzzle = fspath(path).endswith(PUZZLE_ENDING)
    return format_puzzle(site_lnl[None]) if is_puzzle else format_sites("lnl", site_lnl)


def site_rows(**columns: FloatArray | None) -> list[dict[str, Any]]:
    """A row for each site, from 1, with what is known of it: (n_sites,) by the name of the column."""
    known = {name: values.tolist() for name, values in columns.items() if values is not None}
    rows = zip(*known.values(), strict=True)
    return [{"site": site, **dict(zip(known, row, strict=True))} for site, row in enumerate(rows, start=1)]


DateLike: TypeAlias = float | str | datetime.date | tuple[float, float] | None
DatesLike: TypeAlias = Any  # a file, a mapping of names to `DateLike`, or a Series or a table of pandas or polars


def match_dates(
    given: DatesLike, name_column: str | None, date_column: str | None, names: Sequence[str]
) -> tuple[dict[str, SampleDate | None], str, list[str], list[str]]:
    """The date of each taxon, None if it is unknown; where they are from; the taxa without one; and warnings.

    name_column, date_column : of a file, see `plltool.io.table_reader.read_dates`
    """
    if hasattr(given, "columns"):
        if (table := split_table(given)) is None:
            raise InputError(
                f"dates: found a table of {list_names(map(str, given.columns))}, expected two columns: names, dates"
            )
        given = dict(zip(*table, strict=True))
    given = given.to_dict() if hasattr(given, "to_dict") else given
    if isinstance(given, Mapping):
        source, found = "dates", {name: _as_date(name, date) for name, date in given.items()}
        places = dict.fromkeys(found, "")
    else:
        rows = read_dates(given, name_column, date_column)
        source, found = source_name(given), {row.name: row.date for row in rows}
        places = {row.name: f" (line {row.line})" for row in rows}
    missing = [name for name in names if name not in found]
    others = [name for name in found if name not in set(names)]
    remarks = []
    if missing:
        remarks.append(f"{source}: no date is given for {list_names(missing)}; it is taken as unknown")
    if others:
        first = show_name(others[0]) + places[others[0]]
        remarks.append(f"{source}: {count(len(others), 'date')} of taxa that are not in the alignment, first {first}")
    return {name: found.get(name) for name in names}, source, missing, remarks


def _as_date(name: str, given: Any) -> SampleDate | None:
    try:
        given = given.item() if hasattr(given, "item") else given  # of numpy
        if str(given) in ("None", "nan", "NaT", "<NA>"):  # as pandas has what is missing
            return None
        if isinstance(given, (str, datetime.date)):
            return parse_date(given if isinstance(given, str) else given.isoformat()[:10])
        check_kind("date", given, (Real, tuple), "a year, a day, or a range of years (first, last)")
        return as_date(*given) if isinstance(given, tuple) else as_date(given, given)
    except InputError as error:
        raise InputError(f"dates: taxon {show_name(name)}: {error}") from None
