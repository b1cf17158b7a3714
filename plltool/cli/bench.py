"""``plltool bench``: how fast an engine is on this machine, and how much of the machine that uses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli.command import given_command
from plltool.cli.options import PATH, hardware_options, quiet_option
from plltool.cli.outputs import claim_files, print_line
from plltool.cli.reporting import Reporter
from plltool.hardware import Hardware

if TYPE_CHECKING:
    from plltool.analyses.bench.compare import Ratios
    from plltool.analyses.bench.run import Benchmark

LEAST_TAXA = 4


def _parse_shapes(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    shapes = []
    for value in values:
        found = re.fullmatch(r"(\d+)x(\d+)", value, re.ASCII)
        if found is None or int(found[1]) < LEAST_TAXA or int(found[2]) < 1:
            raise click.BadParameter(f"found {value!r}, expected TAXAxPATTERNS, {LEAST_TAXA}x1 at least")
        shapes.append((int(found[1]), int(found[2])))
    return tuple(shapes)

EPILOG = """\b
Examples:
  plltool bench --quick
  plltool bench --shape 64x10000 --threads 1 --output new.json --compare old.json
"""


@click.command(epilog=EPILOG)
@click.option("--states", type=click.IntRange(min=2), default=4, show_default=True, help="States of the model.")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    callback=_parse_shapes,
    metavar="TAXAxPATTERNS",
    help="Size of the data, such as 64x10000; may be repeated. By default several, in one or two minutes.",
)
@click.option("--quick", is_flag=True, help="Few small shapes, in seconds.")
@click.option("--repetitions", type=click.IntRange(min=1), default=5, show_default=True, help="Samples of each figure.")
@click.option("--output", type=PATH, metavar="FILE", help="Also write the figures to FILE, as JSON.")
@click.option("--redo", is_flag=True, help="Replace FILE.")
@click.option("--compare", type=PATH, metavar="FILE", help="Also print new over old for the figures in FILE.")
@hardware_options
@quiet_option
def bench(
    states: int,
    shapes: tuple[tuple[int, int], ...],
    quick: bool,
    repetitions: int,
    output: Path | None,
    redo: bool,
    compare: Path | None,
    hardware: Hardware,
    quiet: bool,
) -> None:
    """Measure the throughput of an engine beside what its device can do at most.

    Simulated data of a fixed seed. The table goes to stdout, progress to stderr.
    """
    if quick and shapes:
        raise click.UsageError("--quick and --shape exclude each other")
    if output:
        claim_files([output], redo)
    import plltool
    from plltool.analyses.bench.compare import compare_rows, read_benchmark
    from plltool.analyses.bench.data import QUICK_SHAPES, Shape
    from plltool.io.record import write_text

    old = read_benchmark(compare) if compare else None
    with Reporter(quiet):
        chosen = QUICK_SHAPES if quick else tuple(Shape(*shape) for shape in shapes) or None
        done = plltool.bench(hardware, states, chosen, repetitions)
    if output:
        write_text(output, json.dumps(done.as_record(given_command()), indent=1, allow_nan=False) + "\n")
    for line in describe(done):
        print_line(line)
    if old is not None:
        for line in describe_ratios(compare_rows(done.rows, old), str(compare)):
            print_line(line)


def describe(benchmark: Benchmark) -> list[str]:
    """The table, a block of rows for each shape."""
    lines = [f"device: {benchmark.device}", f"driver: {benchmark.driver}"]
    head = f"{'':<12}{'ms':>10}{'Mnodes/s':>10}{'GB/s':>8}{'GFLOP/s':>9}{'of copy':>9}{'of peak':>9}{'of bound':>9}"
    previous = None
    for row in benchmark.rows:
        if (row["taxa"], row["patterns"]) != previous:
            previous = row["taxa"], row["patterns"]
            lines += ["", _describe_shape(row), head]
        lines.append(_describe_row(row))
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
    shares = (row[name] for name in ("copy_share", "multiply_add_share", "bound_share"))
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
