"""Commands about data, records and this machine."""

from __future__ import annotations

import json
import shlex
import stat
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

import plltool
from plltool.cli.command import command
from plltool.cli.job import given_command
from plltool.cli.options import RESULTS
from plltool.cli.reporting import Reporter
from plltool.cli.task import Task, end
from plltool.cli.terminal import print_line, print_results
from plltool.constants import MAX_SHOWN_VALUES, SIGNIFICANCE, START_KINDS
from plltool.errors import InputError, PlltoolError, explained
from plltool.registry import FRONT_ENDS, SHARED

MEBIBYTE = 1 << 20
TABLE_WIDTH = 8  # frequencies in a row
LISTED = 5  # taxa of another composition
EXIT_DIFFERENT = 3
EXIT_FAILED = 1  # an alignment of a folder failed, and none differs
OURS = "# written by `plltool front-ends`\n"


# --- check ----------------------------------------------------------------------------------------------------


@command
def check(task: Task) -> None:
    with Reporter(quiet=True):
        facts = plltool.check(task.read_alignment(task.alignment), task.model, **task.keywords("hardware"))
    print_results(_describe_check(facts), json.dumps(facts, indent=1) if task.as_json else None)


def _describe_check(facts: dict[str, Any]) -> list[str]:
    parts = facts["parts"]
    memory = f"{facts['device_bytes'] / MEBIBYTE:.1f} MiB for each worker"
    if not facts["suffices"]:
        full = f"{facts['full_bytes'] / MEBIBYTE:.1f} MiB"
        memory += f", some patterns at a time; with {full} it would be faster"
    return [
        f"alignment: {facts['alignment']} ({facts['data']})",
        f"taxa: {facts['n_taxa']}",
        f"sites: {facts['n_sites']}",
        f"patterns: {facts['n_patterns']}",
        f"gaps: {100 * facts['gap_share']:.2f} %",
        *(line for part in parts for line in _describe_part(part)),
        f"memory of a search under {facts['model']} on {facts['device']}: {memory}",
        *(f"warning: {warning}" for warning in facts["warnings"]),
    ]


def _describe_part(part: dict[str, Any]) -> list[str]:
    if not part["name"]:
        return _describe_content(part)
    size = f"{part['n_sites']} sites, {part['n_patterns']} patterns, {100 * part['gap_share']:.2f} % gaps"
    lines = [f"  {line}" for line in _describe_content(part)]
    return [f"partition {part['name']}: {size}, {part['model']}", *lines]


def _describe_frequencies(part: dict[str, Any]) -> list[str]:
    """One line, or for many states a table below it."""
    whats = {"DNA": "base", "protein": "amino acid", "codon": "codon"}
    what = whats.get(part["data"].rstrip("0123456789"), "state")
    shares = [f"{state} {share:.4f}" for state, share in part["frequencies"].items()]
    if len(shares) <= MAX_SHOWN_VALUES:
        return [f"{what} frequencies: " + "  ".join(shares)]
    rows = ["  ".join(shares[k : k + TABLE_WIDTH]) for k in range(0, len(shares), TABLE_WIDTH)]
    return [f"{what} frequencies:", *(f"  {row}" for row in rows)]


def _describe_content(part: dict[str, Any]) -> list[str]:
    """Frequencies, and what the tests of composition and symmetry found; taxa with p-values below 5 % are listed."""
    values = part["composition"]
    failed = sorted((value, name) for name, value in values.items() if value < SIGNIFICANCE)
    listed = "  ".join(f"{name} {value:.4f}" for value, name in failed[:LISTED])
    more = f"  and {len(failed) - LISTED} more" if len(failed) > LISTED else ""
    found = f"composition: {len(failed)} of {len(values)} taxa differ from the average (p < {SIGNIFICANCE})"
    lines = [*_describe_frequencies(part), f"{found}: {listed}{more}" if failed else found]
    for name, own in (part["symmetry"] or {}).items():
        n_pairs = own["significant"] + own["others"]
        found = f"{own['significant']} of {n_pairs} pairs of sequences (p < {SIGNIFICANCE})"
        most = "" if own["p_value"] is None else f"; p = {own['p_value']:.4g} for the most divergent pair"
        if n_pairs:
            lines.append(f"{name} rejected for {found}{most}")
    if part["symmetry"] is None and len(values) > 1:
        lines.append("symmetry and saturation: not tested, these data are too large")
    if part["saturation"] is not None:
        found = f"median distance between sequences is {100 * part['saturation']:.0f} % of that between unrelated ones"
        lines.append(f"saturation: {found}")
    return lines


# --- records and other programs -------------------------------------------------------------------------------


@command
def report(task: Task) -> None:
    with Reporter(quiet=False):
        written = plltool.report(task.prefix).write()
    kinds = {f".{row.ending}": row.what for row in SHARED["reports"]}
    print_results([f"{kinds[path.suffix]}: {path}" for path in written])


@command
def schema(task: Task) -> None:
    names = [name for own in (RESULTS.values() if task.of is None else [RESULTS[task.of]]) for name in own]
    print_line(json.dumps(plltool.json_schema(*(getattr(plltool, name) for name in names)), indent=1))


@command
def front_ends(task: Task) -> None:
    folder = task.folder
    start = f"#!/bin/sh\n{OURS}exec {shlex.quote(sys.executable)} -P -m plltool.front_ends"
    names = [(folder / name, own) for own in task.programs or FRONT_ENDS for name in FRONT_ENDS[own]]
    chosen = [(path, f'{start} {program} "$@"\n') for path, program in names]
    for path, text in chosen:
        found = path.read_bytes() if path.is_file() else None
        if path.is_dir() or (found is not None and OURS.encode() not in found):
            raise InputError(f"{path}: exists already, and is not a front end of plltool")
        if found not in (None, text.encode()) and not task.redo:
            raise InputError(f"{path}: exists already, for another installation of plltool; --redo replaces it")
    with explained(f"{folder}: cannot write into the folder"):
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in chosen:
            plltool.write_text(path, text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    print_results([f"front end: {path}" for path, _ in chosen])


@command
def beagle_library(task: Task) -> None:
    with explained(f"{task.folder}: cannot write into the folder"):
        print_results([f"library: {plltool.build_beagle_library(task.folder, task.redo)}"])


# --- this machine ---------------------------------------------------------------------------------------------


@command
def devices(task: Task) -> None:
    found = plltool.devices()
    print_results(format_devices(found).splitlines(), json.dumps(found, indent=2) if task.as_json else None)


def format_devices(report: dict[str, Any]) -> str:
    blocks = [_format_device(row) for row in report["devices"]] or ["No OpenCL device found."]
    lines = [*report["environment"], *(f"failure: {line}" for line in report["failures"])]
    passed = [row["index"] for row in report["devices"] if row["problem"] is None]
    if len(passed) > 1:
        several, every = ",".join(passed), ",".join(report["all"])
        lines.append(f"--device {several} divides the patterns among these; --device all takes {every}")
    lines.append(f"--device auto uses {report['auto']['device']}: {report['auto']['reason']}")
    lines += [f"To install, {line}" for line in report["install"]]
    lines += report["advice"]
    packages = (f"{name} {found or 'not installed'}" for name, found in report["packages"].items())
    lines.append(f"packages: {', '.join(packages)}")
    return "\n\n".join([*blocks, "\n".join(lines)])


def _format_device(row: dict[str, Any]) -> str:
    memory, buffer = (row[key] / 2**30 for key in ("memory_bytes", "largest_buffer_bytes"))
    units = "cores" if row["type"] == "cpu" else "compute units"
    values = {
        "platform": f"{row['platform']}, {row['version']}",
        "driver": row["driver"],
        "type": f"{row['type'].upper()}, {row['cores']} {units}",
        "memory": f"{memory:.1f} GiB, at most {buffer:.1f} GiB in one buffer",
        "precision": "double and single" if row["double"] else "single only, with --precision single",
        "vectors": f"{row['vector_width']} alignment patterns at a time",
        "test": "passed" if row["problem"] is None else f"FAILED: {row['problem']}",
    }
    return "\n".join([f"{row['index']}  {row['name']}", *(f"     {key:11}{value}" for key, value in values.items())])


@command
def bench(task: Task) -> None:
    if task.quick and task.shapes:
        raise click.UsageError("--quick and --shape cannot be used together")
    task.claim_named()
    old = plltool.read_benchmark(task.compare) if task.compare else None
    with Reporter(task.quiet):
        done = plltool.bench(task.hardware, task.states, task.shapes or None, task.repetitions, quick=task.quick)
    if task.output:
        plltool.write_text(task.output, done.to_json(given_command()) + "\n")
    print_results([*done.describe(), *([] if old is None else done.describe_ratios(old, str(task.compare)))])


# --- compare --------------------------------------------------------------------------------------------------


@command
def compare(task: Task) -> None:
    what, a, b = task.what, task.spec_a, task.spec_b
    _check_compare(task)
    task.outputs.claim()
    if len(what) == 2 and not (a or b or task.compare_all):
        if what[0].is_dir():
            _compare_many(task, plltool.compare_record_folders(what[0], what[1], task.tolerance), print_results)
        else:
            _finish_compare(task, plltool.compare_records(what[0], what[1], task.tolerance))
        return
    if len(what) != 1 or bool(a and b) == task.compare_all or (a is None) != (b is None):
        one = "one alignment or folder with --a and --b, or with --tree and --all"
        raise click.UsageError(f"expected {one}, or two records or folders without")
    if task.compare_all and not task.tree:
        raise click.UsageError("--all needs --tree")
    with task.reporter() as reporter:
        if task.compare_all:
            hardware = plltool.every_hardware()
        else:
            specs = {"a": a, "b": b}
            hardware = {spec if a != b else name: plltool.parse_hardware(spec) for name, spec in specs.items()}
        shared = task.keywords("tolerance", "brlen") | {"listener": reporter.progress}
        if task.tree:
            data = task.read_alignment(what[0])
            how = shared | {"model": task.partitions or task.model, "fixed": task.fixed}
            _finish_compare(task, plltool.compare_likelihoods(data, task.read_tree(task.tree, data), hardware, **how))
            return
        first, second = hardware.values()
        shared |= task.keywords("model", "seed") | {"labels": (a, b), "options": task.effort}
        shared["replicates"] = task.bootstrap
        if what[0].is_dir():
            how = shared | task.keywords("names", "start")
            _compare_many(task, plltool.compare_folder(what[0], first, second, **how), reporter.print_results)
            return
        data = task.read_alignment(what[0])
        shared |= task.keywords("partitions", "constraint") | {"start": task.read_start(data)}
        _finish_compare(task, plltool.compare(data, first, second, **shared))


def _check_compare(task: Task) -> None:
    if task.fixed and not task.tree:
        raise click.UsageError("--fixed is for the tree of --tree")
    if task.tree and (task.bootstrap or task.constraint):
        raise click.UsageError("--bootstrap and --constraint are for searches, not for the tree of --tree")
    is_given = task.start not in START_KINDS or task.data_type != "auto" or task.changes_sites
    if task.what[0].is_dir() and (is_given or task.tree or task.constraint or task.partitions):
        one = "--start FILE, --tree, --constraint, --partitions, --data-type, --constant-sites and --site-weights"
        raise click.UsageError(f"{one} are for one alignment, not for a folder")


def _finish_compare(task: Task, found: plltool.Comparison | plltool.ComparedLikelihoods) -> None:
    """Write and print what was found, and exit."""
    task.outputs.finish({"compare.json": found.to_json(given_command()) + "\n"})
    task.print(found, found.describe())
    end(0 if found.agree else EXIT_DIFFERENT)


def _compare_many(
    task: Task, pairs: Iterable[tuple[str, plltool.Comparison | PlltoolError]], show: Callable[[list[str]], None]
) -> None:
    """Print a line for each comparison as soon as there is one, and exit."""
    records, counts = list[dict[str, Any]](), dict.fromkeys(("agree", "differ", "failed"), 0)
    if not task.as_json:
        heads = "alignment", "taxa", "sites", "lnL of a", "difference", "RF", "score", "s of a", "s of b", ""
        show([_row(*heads)])
    for path, found in pairs:
        name = Path(path).name
        if isinstance(found, Exception):
            outcome, record, line = "failed", {"error": str(found)}, f"{name}: failed: {found}"
        else:
            outcome = "agree" if found.agree else "differ"
            record, line = found.as_record(), _describe_briefly(name, found)
        counts[outcome] += 1
        records.append({"alignment": path, **record})
        if not task.as_json:
            show([line])
    verdict = f"{len(records)} alignments: {', '.join(f'{number} {own}' for own, number in counts.items())}"
    numbers: dict[str, Any] = {f"n_{own}": number for own, number in counts.items()}
    numbers |= {"alignments": records, "command": given_command()}
    whole = {"agree": counts["agree"] == len(records), **numbers}
    print_results([verdict], json.dumps(whole, indent=1) if task.as_json else None)
    end(EXIT_DIFFERENT if counts["differ"] else EXIT_FAILED if counts["failed"] or not records else 0)


def _describe_briefly(name: str, found: plltool.Comparison) -> str:
    a, b, record = found.a, found.b, found.a.record
    sizes = str(record["n_taxa"]), str(record["n_sites"])
    distances = f"{found.difference:z.6f}", str(found.rf), f"{found.branch_score:.6f}"
    verdict = "agree" if found.agree else "DIFFER"
    return _row(name, *sizes, f"{a.lnl:.4f}", *distances, f"{a.seconds:.1f}", f"{b.seconds:.1f}", verdict)


def _row(name: str, *cells: str) -> str:
    shown = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, (6, 7, 14, 12, 4, 10, 7, 7), strict=False))
    return f"{name:<28}{shown}  {cells[-1]}"
