"""``plltool compare``: one search on two devices, engines or vector widths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plltool.cli.options import (
    Effort,
    StartChoice,
    alignment_argument,
    data_type_option,
    effort_options,
    json_option,
    load_alignment,
    model_option,
    quiet_option,
    seed_option,
    start_options,
)
from plltool.cli.output import print_line
from plltool.cli.reporting import Reporter, given_command, name_stage, prepare_devices
from plltool.constants import COMPARE_TOLERANCE
from plltool.hardware import parse_hardware

if TYPE_CHECKING:
    from plltool.comparison import Comparison
    from plltool.search.progress import Progress

EXIT_DIFFERENT = 3
NO_ROUND = "-"


@click.command()
@alignment_argument
@click.option(
    "--a", "spec_a", required=True, metavar="SPEC", help="First: DEVICE[:vw=N][:precision=P][:threads=N][:memory=SIZE]."
)
@click.option("--b", "spec_b", required=True, metavar="SPEC", help="Second, such as numpy:vw=2, opencl or 0:0:vw=4.")
@model_option
@data_type_option
@start_options
@seed_option
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=COMPARE_TOLERANCE,
    show_default=True,
    help="lnL by which the two may differ.",
)
@effort_options
@json_option
@quiet_option
def compare(
    alignment: Path,
    spec_a: str,
    spec_b: str,
    model: str | None,
    data_type: str,
    start: StartChoice,
    seed: int,
    tolerance: float,
    effort: Effort,
    as_json: bool,
    quiet: bool,
) -> None:
    """Search ALIGNMENT twice from one start tree, on two of device, precision and vector width.

    Exit status 0 if both end at the same topology and lnL, 3 if not.
    """
    hardware = parse_hardware(spec_a), parse_hardware(spec_b)
    from plltool.comparison import compare as run_both

    data = load_alignment(alignment, data_type)
    with Reporter(quiet) as reporter:
        prepare_devices(*hardware)
        comparison = run_both(
            data,
            *hardware,
            model=model,
            start=start.load(data),
            seed=seed,
            tolerance=tolerance,
            options=effort.options(),
            listener=reporter.progress,
        )
    if as_json:
        print_line(json.dumps(comparison.as_record(given_command()), indent=1))
    else:
        for line in describe(comparison, spec_a, spec_b):
            print_line(line)
    if not comparison.agree:
        click.get_current_context().exit(EXIT_DIFFERENT)


def describe(comparison: Comparison, spec_a: str, spec_b: str) -> list[str]:
    """The two traces side by side, and what the comparison found."""
    a, b = comparison.a.result, comparison.b.result
    lines = [f"a: {spec_a}: {a.reason}", f"b: {spec_b}: {b.reason}", ""]
    lines.append(f"{'round':<22} {'lnL of a':>18} {'lnL of b':>18} {'difference':>12}")
    lines += [_describe_row(comparison, *row) for row in comparison.rows()]
    first = comparison.first_difference
    where = "none" if first is None else f"row {first + 1} of the table"
    return [
        *lines,
        "",
        f"first difference beyond {comparison.tolerance:g}: {where}",
        f"final lnL: {a.lnl:.6f} and {b.lnl:.6f}, difference {comparison.difference:.6f}",
        f"Robinson-Foulds distance: {comparison.rf}",
        f"seconds: {a.seconds:.1f} and {b.seconds:.1f}",
        "the two agree" if comparison.agree else "the two DIFFER",
    ]


def _describe_row(comparison: Comparison, a: Progress | None, b: Progress | None) -> str:
    labels = list(dict.fromkeys(_describe_round(event) for event in (a, b)))
    values = [NO_ROUND if event is None else f"{event.lnl:.6f}" for event in (a, b)]
    difference = NO_ROUND if a is None or b is None else f"{b.lnl - a.lnl:.6f}"
    mark = "  <" if comparison.rounds_differ(a, b) else ""
    return f"{' / '.join(labels):<22} {values[0]:>18} {values[1]:>18} {difference:>12}{mark}"


def _describe_round(event: Progress | None) -> str:
    return NO_ROUND if event is None else f"{name_stage(event)} {event.round}"
