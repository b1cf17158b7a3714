"""A run of the benchmark as text: a table, and ratios to an older run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plltool.analyses.machine.bench.compare import Ratios

SHARES = ("copy_share", "multiply_add_share", "bound_share")
ABOVE_ALL = "above 100 %: the data stay in the caches of the CPU, or other work slowed the measurement of copy and peak"


def describe_rows(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The table, a block of rows for each shape."""
    lines = []
    head = f"{'':<12}{'ms':>10}{'Mnodes/s':>10}{'GB/s':>8}{'GFLOP/s':>9}{'of copy':>9}{'of peak':>9}{'of bound':>9}"
    previous = None
    for row in rows:
        if (row["taxa"], row["patterns"]) != previous:
            previous = row["taxa"], row["patterns"]
            lines += ["", _describe_shape(row), head]
        lines.append(_describe_row(row))
    if any((row[name] or 0.0) > 1.0 for row in rows for name in SHARES):
        lines += ["", ABOVE_ALL]
    return lines


def _describe_shape(row: dict[str, Any]) -> str:
    title = (
        f"{row['taxa']} taxa, {row['patterns']} patterns, {row['states']} states, {row['precision']}, VW "
        f"{row['layout']['vw']}: "
    )
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
