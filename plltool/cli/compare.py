"""``plltool compare``: searches or likelihoods on two devices, engines or vector widths, or searches that are over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import plltool
from plltool.cli import options
from plltool.cli.command import command, given_command
from plltool.cli.option_values import PATH
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.select_model import partitions_option
from plltool.cli.terminal import print_results
from plltool.constants import COMPARE_TOLERANCE, START_KINDS
from plltool.errors import PlltoolError

EXIT_DIFFERENT = 3
EXIT_FAILED = 1  # an alignment of a folder failed, and none differs


@dataclass(frozen=True, kw_only=True)
class CompareTask:
    """What is computed on either hardware, and how that is reported."""

    model: str | None = options.filled_by(options.model_option)
    partitions: Path | None = options.filled_by(partitions_option)
    brlen: str = options.filled_by(options.brlen_option)
    reading: options.Reading = options.filled_by(options.reading_options)
    tree: Path | None = options.option(
        type=PATH, help="Compare the likelihood of the tree in FILE, and its derivatives, in place of two searches."
    )
    fixed: bool = options.filled_by(options.fixed_option)
    constraint: Path | None = options.filled_by(options.constraint_option)
    bootstrap: int = options.option(
        min=0, default=0, help="Number of bootstrap replicates whose trees are compared after the search."
    )
    seed: int = options.filled_by(options.seed_option)
    tolerance: float = options.option(
        min=0,
        default=COMPARE_TOLERANCE,
        help="Largest difference in lnL that counts as agreement.",
    )
    telling: options.Telling = options.filled_by(options.telling_options)

    def check(self, is_folder: bool, start: options.StartChoice) -> None:
        if self.fixed and not self.tree:
            raise click.UsageError("--fixed is for the tree of --tree")
        if self.tree and (self.bootstrap or self.constraint):
            raise click.UsageError("--bootstrap and --constraint are for searches, not for the tree of --tree")
        reading = self.reading
        is_given = start.start not in START_KINDS or reading.data_type != "auto" or reading.changes_sites
        if is_folder and (is_given or self.tree or self.constraint or self.partitions):
            one = "--start FILE, --tree, --constraint, --partitions, --data-type, --constant-sites and --site-weights"
            raise click.UsageError(f"{one} are for one alignment, not for a folder")


@command()
@click.argument("what", type=PATH, nargs=-1, required=True, metavar="ALIGNMENT|FOLDER|RECORD RECORD|FOLDER FOLDER")
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
@click.option(
    "--all", "compare_all", is_flag=True, help="Compare all devices and precisions of this machine; needs --tree."
)
@options.packed("task", CompareTask)
@options.start_options
@options.effort_options
@file_options("compare")
def compare(
    what: tuple[Path, ...],
    spec_a: str | None,
    spec_b: str | None,
    compare_all: bool,
    task: CompareTask,
    start: options.StartChoice,
    effort: plltool.SearchOptions,
    outputs: Outputs,
) -> None:
    """Search ALIGNMENT twice from one start tree, on two devices or with two precisions or vector widths.

    With --tree, compute the likelihood of one tree on both, its lnL by site, and its derivatives by branch lengths and
    model parameters, after optimising these on the first device. With a FOLDER, search each alignment in it and print a
    line for each. With two RECORDs, compare the searches that wrote these JSON files; with two FOLDERs, the records of
    the same name. The output shows where two searches diverge, and which subtrees each of them moved there.

    The exit status is 0 if all agree, 3 if not, and 1 if an alignment of a folder cannot be searched.
    """
    task.check(what[0].is_dir(), start)
    outputs.claim()
    has_devices = bool(spec_a and spec_b)
    if len(what) == 2 and not (spec_a or spec_b or compare_all):
        if what[0].is_dir():
            _compare_many(task, plltool.compare_record_folders(*what, task.tolerance), print_results)
        else:
            _finish(task, plltool.compare_records(*what, task.tolerance), outputs)
        return
    if len(what) != 1 or has_devices == compare_all or (spec_a is None) != (spec_b is None):
        one = "one alignment or folder with --a and --b, or with --tree and --all"
        raise click.UsageError(f"expected {one}, or two records or folders without")
    if compare_all and not task.tree:
        raise click.UsageError("--all needs --tree")
    with task.telling.reporter(outputs) as reporter:
        if compare_all:
            hardware = plltool.every_hardware()
        else:
            specs = {"a": str(spec_a), "b": str(spec_b)}
            hardware = {
                spec if spec_a != spec_b else name: plltool.parse_hardware(spec) for name, spec in specs.items()
            }
        shared: dict[str, Any] = {"tolerance": task.tolerance, "brlen": task.brlen, "listener": reporter.progress}
        if task.tree:
            data = options.load_alignment(what[0], task.reading)
            tree, model = options.load_tree(task.tree, data, task.brlen, start.resolve), task.partitions or task.model
            found = plltool.compare_likelihoods(data, tree, hardware, model=model, fixed=task.fixed, **shared)
            _finish(task, found, outputs)
            return
        first, second = hardware.values()
        shared |= {"labels": (spec_a, spec_b), "model": task.model, "seed": task.seed, "options": effort}
        shared["replicates"] = task.bootstrap
        if what[0].is_dir():
            names = task.reading.names
            pairs = plltool.compare_folder(what[0], first, second, names=names, start=start.start, **shared)
            _compare_many(task, pairs, reporter.print_results)
            return
        data = options.load_alignment(what[0], task.reading)
        shared |= {"partitions": task.partitions, "constraint": task.constraint}
        _finish(task, plltool.compare(data, first, second, start=start.load(data), **shared), outputs)


def _finish(task: CompareTask, found: plltool.Comparison | plltool.ComparedLikelihoods, outputs: Outputs) -> None:
    """Write and print what was found, and exit."""
    record = found.to_json(given_command())
    outputs.finish({"compare.json": record + "\n"})
    lines = [*found.describe(), *outputs.describe()]
    print_results(lines, record if task.telling.as_json else None)
    if not found.agree:
        click.get_current_context().exit(EXIT_DIFFERENT)


def _compare_many(
    task: CompareTask,
    pairs: Iterable[tuple[str, plltool.Comparison | PlltoolError]],
    show: Callable[[list[str]], None],
) -> None:
    """Print a line for each comparison as soon as there is one, and exit."""
    records: list[dict[str, Any]] = []
    n_agree = n_differ = n_failed = 0
    if not task.telling.as_json:
        heads = "alignment", "taxa", "sites", "lnL of a", "difference", "RF", "score", "s of a", "s of b", ""
        show([_row(*heads)])
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
        if not task.telling.as_json:
            show([line])
    counts = {"n_agree": n_agree, "n_differ": n_differ, "n_failed": n_failed}
    verdict = f"{len(records)} alignments: {n_agree} agree, {n_differ} differ, {n_failed} failed"
    whole = {"agree": n_agree == len(records), **counts, "alignments": records, "command": given_command()}
    print_results([verdict], json.dumps(whole, indent=1) if task.telling.as_json else None)
    if n_differ:
        click.get_current_context().exit(EXIT_DIFFERENT)
    if n_failed or not records:
        click.get_current_context().exit(EXIT_FAILED)


def _describe_briefly(name: str, found: plltool.Comparison) -> str:
    a, b, record = found.a, found.b, found.a.record
    sizes = str(record["n_taxa"]), str(record["n_sites"])
    distances = f"{found.difference:z.6f}", str(found.rf), f"{found.branch_score:.6f}"
    verdict = "agree" if found.agree else "DIFFER"
    return _row(name, *sizes, f"{a.lnl:.4f}", *distances, f"{a.seconds:.1f}", f"{b.seconds:.1f}", verdict)


def _row(name: str, *cells: str) -> str:
    shown = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, (6, 7, 14, 12, 4, 10, 7, 7), strict=False))
    return f"{name:<28}{shown}  {cells[-1]}"
