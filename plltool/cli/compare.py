"""``plltool compare``: one search on two devices, engines or vector widths, or two searches that are over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli import options
from plltool.cli.command import command, given_command
from plltool.cli.option_values import PATH
from plltool.cli.outputs import claim_files, named_outputs
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_line, print_results
from plltool.constants import COMPARE_TOLERANCE, START_KINDS

if TYPE_CHECKING:
    from plltool import Comparison, SearchOptions

EXIT_DIFFERENT = 3
EXIT_FAILED = 1  # an alignment of a folder failed, and none differs


@dataclass(frozen=True, kw_only=True)
class CompareTask:
    """What is searched on either hardware, and how that is reported."""

    model: str | None = options.filled_by(options.model_option)
    reading: options.Reading = options.filled_by(options.reading_options)
    seed: int = options.filled_by(options.seed_option)
    tolerance: float = options.option(
        min=0, default=COMPARE_TOLERANCE, help="Largest difference in lnL at which two searches count as equal."
    )
    as_json: bool = options.filled_by(options.json_option)
    quiet: bool = options.filled_by(options.quiet_option)
    json_progress: str | None = options.filled_by(options.json_progress_option)


@command(
    examples=(
        "plltool compare data/primates.phy --a numpy:vw=2 --b opencl",
        "plltool compare monday.json tuesday.json --tolerance 0.1",
        "plltool compare data --a opencl:vw=4 --b opencl:vw=8 --effort fast",
    ),
)
@click.argument("what", type=PATH, nargs=-1, required=True, metavar="ALIGNMENT|FOLDER|RECORD RECORD")
@click.option(
    "--a",
    "spec_a",
    metavar="SPEC",
    help="First device, DEVICE[:SETTING=VALUE]...; settings are vw, precision, threads and memory.",
)
@click.option(
    "--b",
    "spec_b",
    metavar="SPEC",
    help="Second device, such as numpy:vw=2, opencl or 0:0:vw=4; several, such as 0:0,1:0, divide the patterns.",
)
@options.packed("task", CompareTask)
@options.start_options
@options.effort_options
def compare(
    what: tuple[Path, ...],
    spec_a: str | None,
    spec_b: str | None,
    task: CompareTask,
    start: options.StartChoice,
    effort: SearchOptions,
) -> None:
    """Search ALIGNMENT twice from one start tree, on two devices or with two precisions or vector widths.

    With a FOLDER, do so for each alignment in it and print a line for each. With two RECORDs, compare the searches that
    wrote these JSON files. The output shows where two searches diverge, and which subtrees each of them moved there.

    The exit status is 0 if both end at the same topology and lnL, 3 if not, and 1 if an alignment of a folder cannot be
    searched.
    """
    import plltool

    if len(what) == 2 and not (spec_a or spec_b):
        _finish(task, plltool.compare_records(*what, task.tolerance))
        return
    if len(what) != 1 or not (spec_a and spec_b):
        raise click.UsageError("expected one alignment or folder with --a and --b, or two records without")
    settings: dict[str, Any] = {
        "a": plltool.parse_hardware(spec_a),
        "b": plltool.parse_hardware(spec_b),
        "labels": (spec_a, spec_b),
        "model": task.model,
        "seed": task.seed,
        "tolerance": task.tolerance,
        "options": effort,
    }
    claim_files(named_outputs())
    if what[0].is_dir():
        _compare_folder(what[0], task, start, settings)
        return
    with Reporter(task.quiet, json_path=task.json_progress) as reporter:
        data = options.load_alignment(what[0], task.reading)
        found = plltool.compare(data, start=start.load(data), listener=reporter.progress, **settings)
    _finish(task, found)


def _finish(task: CompareTask, found: Comparison) -> None:
    """Print what was found and exit."""
    _print(task, found.as_record(), found.describe())
    if not found.agree:
        click.get_current_context().exit(EXIT_DIFFERENT)


def _print(task: CompareTask, record: dict[str, Any], lines: list[str]) -> None:
    """The record as JSON, or lines for people."""
    if task.as_json:
        print_line(json.dumps(record | {"command": given_command()}, indent=1))
    else:
        print_results(lines)


def _compare_folder(folder: Path, task: CompareTask, start: options.StartChoice, settings: dict[str, Any]) -> None:
    """Compare on each alignment of a folder, print a line as soon as there is one, and exit."""
    import plltool

    reading = task.reading
    if start.start not in START_KINDS or reading.data_type != "auto" or reading.constant_sites is not None:
        raise click.UsageError("--start FILE, --data-type and --constant-sites are for one alignment, not for a folder")
    records: list[dict[str, Any]] = []
    n_agree = n_differ = n_failed = 0
    if not task.as_json:
        heads = "alignment", "taxa", "sites", "lnL of a", "difference", "RF", "score", "s of a", "s of b", ""
        print_results([_row(*heads)])
    with Reporter(task.quiet, json_path=task.json_progress) as reporter:
        pairs = plltool.compare_folder(
            folder, names=reading.names, start=start.start, listener=reporter.progress, **settings
        )
        for path, found in pairs:
            name = Path(path).name
            if isinstance(found, Exception):
                n_failed += 1
                record, line = {"error": str(found)}, f"{name}: failed: {found}"
            else:
                n_agree += found.agree
                n_differ += not found.agree
                record, line = found.as_record(), _describe_briefly(name, found)
            records.append({"alignment": path, **record})
            if not task.as_json:
                reporter.print_results([line])
    counts = {"n_agree": n_agree, "n_differ": n_differ, "n_failed": n_failed}
    verdict = f"{len(records)} alignments: {n_agree} agree, {n_differ} differ, {n_failed} failed"
    _print(task, {"agree": n_agree == len(records), **counts, "alignments": records}, [verdict])
    if n_differ:
        click.get_current_context().exit(EXIT_DIFFERENT)
    if n_failed or not records:
        click.get_current_context().exit(EXIT_FAILED)


def _describe_briefly(name: str, found: Comparison) -> str:
    a, b, record = found.a, found.b, found.a.record
    sizes = str(record["n_taxa"]), str(record["n_sites"])
    distances = f"{found.difference:.6f}", str(found.rf), f"{found.branch_score:.6f}"
    verdict = "agree" if found.agree else "DIFFER"
    return _row(name, *sizes, f"{a.lnl:.4f}", *distances, f"{a.seconds:.1f}", f"{b.seconds:.1f}", verdict)


def _row(name: str, *cells: str) -> str:
    widths = (6, 7, 14, 12, 4, 10, 7, 7)
    return (
        f"{name:<28}"
        + " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False))
        + (f"  {cells[-1]}")
    )
