"""``plltool compare``: one search on two devices, engines or vector widths, or two searches that are over."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli.command import given_command
from plltool.cli.options import (
    PATH,
    Effort,
    StartChoice,
    data_type_option,
    effort_options,
    json_option,
    json_progress_option,
    load_alignment,
    model_option,
    quiet_option,
    seed_option,
    start_options,
)
from plltool.cli.outputs import print_line
from plltool.cli.reporting import Reporter
from plltool.constants import COMPARE_TOLERANCE
from plltool.errors import show_name
from plltool.hardware import parse_hardware

if TYPE_CHECKING:
    from plltool.analyses.compare import Comparison
    from plltool.errors import PlltoolError
    from plltool.tree_search.progress import Move, Progress

    Results = Iterable[tuple[str, Comparison | PlltoolError]]

EXIT_DIFFERENT = 3
EXIT_FAILED = 1  # of the alignments of a folder, where none differs
NO_ROUND = "-"
SHOWN_MOVES = 5  # of either search, where they part
EPILOG = """\b
Examples:
  plltool compare data/primates.phy --a numpy:vw=2 --b opencl
  plltool compare monday.json tuesday.json --tolerance 0.1
  plltool compare data --a opencl:vw=4 --b opencl:vw=8 --effort fast
"""


@click.command(epilog=EPILOG)
@click.argument("what", type=PATH, nargs=-1, required=True, metavar="ALIGNMENT|FOLDER|RECORD RECORD")
@click.option("--a", "spec_a", metavar="SPEC", help="First: DEVICE[:vw=N][:precision=P][:threads=N][:memory=SIZE].")
@click.option("--b", "spec_b", metavar="SPEC", help="Second, such as numpy:vw=2, opencl or 0:0:vw=4.")
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
@json_progress_option
def compare(
    what: tuple[Path, ...],
    spec_a: str | None,
    spec_b: str | None,
    data_type: str,
    start: StartChoice,
    tolerance: float,
    effort: Effort,
    as_json: bool,
    quiet: bool,
    json_progress: str | None,
    **search: Any,
) -> None:
    """Search ALIGNMENT twice from one start tree, on two of device, precision and vector width.

    Of a FOLDER all alignments in it, with a line for each. Of two RECORDs, the JSON files of searches that are over,
    what these found. Tells where two searches part, and what each of them moved there.

    Exit status 0 if both end at the same topology and lnL, 3 if not; 1 if an alignment of a folder cannot be searched.
    """
    from plltool.analyses import compare as comparison

    if len(what) == 2 and not (spec_a or spec_b):
        found = comparison.compare_records(*what, tolerance)
        _finish(as_json, found.as_record(), describe(found), found.agree)
        return
    if len(what) != 1 or not (spec_a and spec_b):
        raise click.UsageError("expected one alignment or folder with --a and --b, or two records without")
    hardware = parse_hardware(spec_a), parse_hardware(spec_b)
    search |= {"tolerance": tolerance, "options": effort.options(), "labels": (spec_a, spec_b)}
    if what[0].is_dir():
        _compare_folder(what[0], hardware, start, data_type, as_json, Reporter(quiet, json_path=json_progress), search)
        return
    data = load_alignment(what[0], data_type)
    with Reporter(quiet, json_path=json_progress) as reporter:
        search |= {"start": start.load(data), "listener": reporter.progress}
        found = comparison.compare(data, *hardware, **search)
    _finish(as_json, found.as_record(), describe(found), found.agree)


def _finish(as_json: bool, record: dict[str, Any], lines: list[str], agree: bool) -> None:
    """Print what was found and exit."""
    if as_json:
        print_line(json.dumps(record | {"command": given_command()}, indent=1))
    else:
        for line in lines:
            print_line(line)
    if not agree:
        click.get_current_context().exit(EXIT_DIFFERENT)


# --- two searches -------------------------------------------------------------------------------------------


def describe(comparison: Comparison) -> list[str]:
    """The two traces side by side, and what the comparison found."""
    a, b = comparison.a, comparison.b
    lines = [f"{name}: {run.label}: {run.record['reason']}" for name, run in (("a", a), ("b", b))]
    lines += [f"note: not the same search: {', '.join(comparison.other_settings)}"] * bool(comparison.other_settings)
    if a.trace or b.trace:
        lines += ["", f"{'round':<22} {'lnL of a':>18} {'lnL of b':>18} {'difference':>12}"]
        lines += [_describe_row(comparison, *row) for row in comparison.rows()]
    first = comparison.first_difference
    where = "none" if first is None else f"row {first + 1} of the table"
    return [
        *lines,
        "",
        f"first difference in moves, or in lnL beyond {comparison.tolerance:g}: {where}",
        *_describe_parting(comparison),
        f"final lnL: {a.lnl:.6f} and {b.lnl:.6f}, difference {comparison.difference:.6f}",
        f"Robinson-Foulds distance: {comparison.rf}",
        f"branch score distance: {comparison.branch_score:.6f}",
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
    return NO_ROUND if event is None else f"{event.name} {event.round}"


def _describe_parting(comparison: Comparison) -> list[str]:
    """What each search moved, and the other did not, in the first round in which they differ."""
    if comparison.first_difference is None:
        return []
    lines = []
    for name, moves in zip("ab", comparison.own_moves(), strict=True):
        lines += [f"  only {name} moved {_describe_move(move)}" for move in moves[:SHOWN_MOVES]]
        lines += [f"  and {len(moves) - SHOWN_MOVES} more"] * (len(moves) > SHOWN_MOVES)
    return lines or ["  both moved the same subtrees there, if any"]


def _describe_move(move: Move) -> str:
    subtree = " and ".join(map(show_name, move.subtree))
    root = "" if len(move.subtree) == 1 else "the subtree rooted between "
    return f"{root}{subtree} to between {' and '.join(map(show_name, move.branch))}, promising {move.gain:.4f}"


# --- a folder -----------------------------------------------------------------------------------------------


def _compare_folder(
    folder: Path,
    hardware: tuple[Any, Any],
    start: StartChoice,
    data_type: str,
    as_json: bool,
    reporter: Reporter,
    search: dict[str, Any],
) -> None:
    """Compare on each alignment of a folder, print a line as soon as there is one, and exit."""
    from plltool.analyses.compare import compare_all
    from plltool.analyses.search import START_KINDS
    from plltool.io.alignment_reader import looks_like_alignment

    if start.start not in START_KINDS or data_type != "auto":
        raise click.UsageError("of a folder no start tree and no data type can be given")
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and looks_like_alignment(path)]
    records: list[dict[str, Any]] = []
    n_agree = n_failed = 0
    if not as_json:
        print_line(_row("alignment", "taxa", "sites", "lnL of a", "difference", "RF", "score", "s of a", "s of b", ""))
    with reporter:
        for path, found in compare_all(files, *hardware, start=start.start, listener=reporter.progress, **search):
            name = Path(path).name
            if isinstance(found, Exception):
                n_failed += 1
                record, line = {"error": str(found)}, f"{name}: failed: {found}"
            else:
                n_agree += found.agree
                record, line = found.as_record(), _describe_result(name, found)
            records.append({"alignment": path, **record})
            if not as_json:
                print_line(line)
    n_differ = len(files) - n_agree - n_failed
    counts = {"n_agree": n_agree, "n_differ": n_differ, "n_failed": n_failed}
    verdict = f"{len(files)} alignments: {n_agree} agree, {n_differ} differ, {n_failed} failed"
    _finish(as_json, {"agree": n_agree == len(files), **counts, "alignments": records}, [verdict], n_differ == 0)
    if n_failed or not files:
        click.get_current_context().exit(EXIT_FAILED)


def _describe_result(name: str, found: Comparison) -> str:
    a, b, record = found.a, found.b, found.a.record
    sizes = str(record["n_taxa"]), str(record["n_sites"])
    distances = f"{found.difference:.6f}", str(found.rf), f"{found.branch_score:.6f}"
    verdict = "agree" if found.agree else "DIFFER"
    return _row(name, *sizes, f"{a.lnl:.4f}", *distances, f"{a.seconds:.1f}", f"{b.seconds:.1f}", verdict)


def _row(name: str, *cells: str) -> str:
    widths = (6, 7, 14, 12, 4, 10, 7, 7)
    return f"{name:<28}" + " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False)) + (
        f"  {cells[-1]}"
    )
