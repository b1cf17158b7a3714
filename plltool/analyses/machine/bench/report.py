"""A run of the benchmark as text: a table, and ratios to an older run."""

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
    """A run beside an older one: ratios of pattern-nodes per second, and the rows of one run only."""

    matched: tuple[tuple[dict[str, Any], float], ...]
    only_new: tuple[dict[str, Any], ...]
    only_old: tuple[dict[str, Any], ...]


def read_benchmark(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """The rows of a file that `plltool bench` wrote; InputError if it cannot be read or is no such file."""
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
    return tuple(row[name] for name in KEY)


SHARES = ("copy_share", "multiply_add_share", "bound_share")
ABOVE_ALL = "above 100 %: the data stay in the caches of the CPU, or other work slowed the measurement of copy and peak"


def describe_rows(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The table, a block of rows for each shape."""
    lines, previous = [], None
    head = f"{'':<12}{'ms':>10}{'Mnodes/s':>10}{'GB/s':>8}{'GFLOP/s':>9}{'of copy':>9}{'of peak':>9}{'of bound':>9}"
    for row in rows:
        if (row["taxa"], row["patterns"]) != previous:
            previous = row["taxa"], row["patterns"]
            lines += ["", _describe_shape(row), head]
        lines.append(_describe_row(row))
    if any((row[name] or 0.0) > 1.0 for row in rows for name in SHARES):
        lines += ["", ABOVE_ALL]
    return lines


def _describe_shape(row: dict[str, Any]) -> str:
    title = f"{row['taxa']} taxa, {row['patterns']} patterns, {row['states']} states, {row['precision']}"
    title += f", VW {row['layout']['vw']}: "
    rescaled = f"{100 * row['rescaled_patterns'] / row['patterns']:.0f} % of the patterns rescaled"
    if row["copy_bytes_per_second"] is None:
        return title + rescaled
    peaks = f"copy {row['copy_bytes_per_second'] / 1e9:.1f} GB/s, peak {2 * row['multiply_adds_per_second'] / 1e9:.1f}"
    return f"{title}{peaks} GFLOP/s, {rescaled}"


def _describe_row(row: dict[str, Any]) -> str:
    shares = (row[name] for name in SHARES)
    percents = "".join(f"{'-':>9}" if share is None else f"{100 * share:>7.1f} %" for share in shares)
    return (
        f"{row['item']:<12}{1e3 * row['seconds']:>10.3f}{row['pattern_nodes_per_second'] / 1e6:>10.1f}"
        f"{row['bytes_per_second'] / 1e9:>8.2f}{row['flops'] / 1e9:>9.2f}{percents}"
    )


def describe_ratios(ratios: Ratios, path: str) -> list[str]:
    """New over old for every row that both runs have; the others by name."""
    lines = ["", f"pattern-nodes per second over those in {path}"]
    lines += [f"{_name(row):<60}{ratio:>8.3f}" for row, ratio in ratios.matched]
    for rows, where in ((ratios.only_new, "not in the file"), (ratios.only_old, "in the file only")):
        lines += [f"{_name(row):<60}{where}" for row in rows]
    return lines


def _name(row: dict[str, Any]) -> str:
    return (
        f"{row['item']}, {row['taxa']} taxa, {row['patterns']} patterns, {row['states']} states x {row['components']}, "
        f"{row['precision']}"
    )
