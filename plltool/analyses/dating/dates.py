"""Dates of taxa, from a file or a dictionary."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TypeAlias

from plltool.errors import InputError, count, list_names, show_name
from plltool.io.files import source_name
from plltool.io.table_reader import SampleDate, as_date, parse_date, read_dates

DateLike: TypeAlias = float | str | tuple[float, float] | None
DatesLike: TypeAlias = str | PathLike[str] | Mapping[str, DateLike]


def match_dates(
    given: DatesLike, name_column: str | None, date_column: str | None, names: Sequence[str]
) -> tuple[dict[str, SampleDate | None], str, list[str], list[str]]:
    """The date of each taxon, None if it is unknown; where they are from; the taxa without one; and warnings.

    name_column, date_column : of a file, see `plltool.io.table_reader.read_dates`
    """
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


def _as_date(name: str, given: DateLike) -> SampleDate | None:
    try:
        if given is None:
            return None
        if isinstance(given, str):
            return parse_date(given)
        return as_date(*given) if isinstance(given, tuple) else as_date(given, given)
    except InputError as error:
        raise InputError(f"dates: taxon {show_name(name)}: {error}") from None
