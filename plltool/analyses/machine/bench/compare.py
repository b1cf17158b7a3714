"""Two runs of the benchmark side by side, and the files they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from plltool.errors import InputError
from plltool.io.record import read_object

BENCHMARK_KEYS = ("benchmark", "version", "date", "device", "driver", "rows")
KEY = ("item", "states", "components", "precision", "taxa", "patterns")
RATE = "pattern_nodes_per_second"


@dataclass(frozen=True)
class Ratios:
    """A run beside an older one.

    Attributes
    ----------
    matched : (row, pattern-nodes per second over those of the older run)
    only_new, only_old : rows of one run only
    """

    matched: tuple[tuple[dict[str, Any], float], ...]
    only_new: tuple[dict[str, Any], ...]
    only_old: tuple[dict[str, Any], ...]


def read_benchmark(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a file that `plltool bench` wrote.

    Raises
    ------
    InputError
        If the file cannot be read or is no such file.
    """
    rows = read_object(path, BENCHMARK_KEYS, "the output of `plltool bench`")["rows"]
    if not isinstance(rows, list):
        raise InputError(f"{path}: rows: found a JSON {type(rows).__name__}, expected a list")
    for number, row in enumerate(rows, start=1):
        lacking = [key for key in (*KEY, RATE) if not isinstance(row, dict) or key not in row]
        if lacking:
            raise InputError(f"{path}: row {number} lacks {', '.join(lacking)}")
        if not (isinstance(row[RATE], (int, float)) and row[RATE] > 0):
            raise InputError(f"{path}: row {number}: found {RATE} {row[RATE]!r}, expected a number above 0")
    return rows


def compare_rows(new: Sequence[dict[str, Any]], old: Sequence[dict[str, Any]]) -> Ratios:
    """Rows of the same `KEY` side by side, in the order of `new`."""
    before = {row_key(row): row for row in old}
    after = {row_key(row) for row in new}
    return Ratios(
        tuple((row, row[RATE] / before[row_key(row)][RATE]) for row in new if row_key(row) in before),
        tuple(row for row in new if row_key(row) not in before),
        tuple(row for row in old if row_key(row) not in after),
    )


def row_key(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row measured."""
    return tuple(row[name] for name in KEY)
