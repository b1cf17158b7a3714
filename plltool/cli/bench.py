"""``plltool bench``: how fast an engine is on this machine, and how much of the machine that uses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import click

import plltool
from plltool import Hardware
from plltool.cli.command import command, given_command
from plltool.cli.option_values import PATH, WRITTEN
from plltool.cli.options import hardware_options, option, packed, quiet_option
from plltool.cli.outputs import claim_files, named_outputs
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_results

LEAST_TAXA = 4


def _parse_shapes(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    shapes = []
    for value in values:
        found = re.fullmatch(r"(\d+)x(\d+)", value, re.ASCII)
        if found is None or int(found[1]) < LEAST_TAXA or int(found[2]) < 1:
            raise click.BadParameter(f"found {value!r}, expected TAXAxPATTERNS, {LEAST_TAXA}x1 at least")
        shapes.append((int(found[1]), int(found[2])))
    return tuple(shapes)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What to measure, and where the figures go."""

    states: int = option(min=2, default=4, help="Number of states of the model.")
    shapes: tuple[tuple[int, int], ...] = option(
        "--shape",
        multiple=True,
        callback=_parse_shapes,
        metavar="TAXAxPATTERNS",
        help="Size of the data, such as 64x10000; may be repeated.  [default: several, one or two minutes]",
    )
    quick: bool = option(help="Measure only a few small sizes, in seconds.")
    repetitions: int = option(min=1, default=5, help="Number of samples for each figure.")
    output: Path | None = option(type=WRITTEN, help="Also write the figures to FILE, as JSON.")
    redo: bool = option(help="Replace FILE if it exists.")
    compare: Path | None = option(type=PATH, help="Also print the ratios to the figures in FILE.")


@command()
@packed("task", Measurement)
@hardware_options
@quiet_option
def bench(task: Measurement, hardware: Hardware, quiet: bool) -> None:
    """Measure the throughput of an engine, and compare it with the peaks of its device.

    The data are simulated with a fixed seed. The table goes to stdout, progress to stderr.
    """
    if task.quick and task.shapes:
        raise click.UsageError("--quick and --shape cannot be used together")
    claim_files(named_outputs(), task.redo)
    old = plltool.read_benchmark(task.compare) if task.compare else None
    with Reporter(quiet):
        done = plltool.bench(hardware, task.states, task.shapes or None, task.repetitions, quick=task.quick)
    if task.output:
        plltool.write_text(task.output, done.to_json(given_command()) + "\n")
    lines = done.describe() + ([] if old is None else done.describe_ratios(old, str(task.compare)))
    print_results(lines)
