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
from click.core import ParameterSource

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
OF_RECORDS = {"what", "tolerance", "as_json", "quiet", "json_progress", "report", "prefix", "redo"}  # for two of them
OF_SEARCHES = {"constraint", "bootstrap", "seed", "start", "effort", "starts", "radii", "perturbations", "nstop"}
OF_SEARCHES |= {"epsilon", "stop"}  # options that --tree does not have
OF_ALIGNMENTS = {"tree", "constraint", "partitions", "data_type", "constant_sites", "site_weights"}  # nor a folder
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
    are_records = len(task.what) == 2 and not (task.spec_a or task.spec_b or task.compare_all)
    _check_compare(task, are_records)
    task.outputs.claim()
    with task.reporter() as reporter:
        code = _compare_records(task, reporter) if are_records else _compare_devices(task, reporter)
    end(code)


def _compare_records(task: Task, reporter: Reporter) -> int:
    """Compare two records or folders of them; returns the exit status."""
    a, b = task.what
    if not a.is_dir():
        return _finish_compare(task, plltool.compare_records(a, b, task.tolerance))
    pairs = plltool.compare_record_folders(a, b, task.tolerance)
    return _compare_many(task, pairs, "records", reporter.print_results)


def _compare_devices(task: Task, reporter: Reporter) -> int:
    """Compare what devices make of a tree, an alignment or a folder of alignments; returns the exit status."""
    (what,), a, b = task.what, task.spec_a, task.spec_b
    if task.compare_all:
        hardware = plltool.every_hardware()
    else:
        specs = {"a": a, "b": b}
        hardware = {spec if a != b else name: plltool.parse_hardware(spec) for name, spec in specs.items()}
    shared = task.keywords("tolerance", "brlen") | {"listener": reporter.progress}
    if task.tree:
        data = task.read_alignment(what)
        how = shared | {"model": task.partitions or task.model, "fixed": task.fixed}
        return _finish_compare(
            task, plltool.compare_likelihoods(data, task.read_tree(task.tree, data), hardware, **how)
        )
    first, second = hardware.values()
    shared |= task.keywords("model", "seed") | {"labels": (a, b), "options": task.effort}
    shared["replicates"] = task.bootstrap
    if what.is_dir():
        pairs = plltool.compare_folder(what, first, second, **shared, **task.keywords("names", "start"))
        return _compare_many(task, pairs, "alignments", reporter.print_results)
    data = task.read_alignment(what)
    shared |= task.keywords("partitions", "constraint") | {"start": task.read_start(data)}
    return _finish_compare(task, plltool.compare(data, first, second, **shared))


def _check_compare(task: Task, are_records: bool) -> None:
    """Refuse what does not go together, and options that would have no effect."""
    what, a, b = task.what, task.spec_a, task.spec_b
    if not are_records and (len(what) != 1 or bool(a and b) == task.compare_all or (a is None) != (b is None)):
        one = "one alignment or folder with --a and --b, or with --tree and --all"
        raise click.UsageError(f"expected {one}, or two records or folders without")
    if task.compare_all and not task.tree:
        raise click.UsageError("--all needs --tree")
    if task.fixed and not task.tree:
        raise click.UsageError("--fixed is for the tree of --tree")
    if task.tree and task.model and task.partitions:
        raise click.UsageError("--model and --partitions cannot be used together with --tree")
    ctx = click.get_current_context()
    given = {str(own.name): own.opts[0] for own in ctx.command.params}
    given = {name: own for name, own in given.items() if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    of_one = OF_ALIGNMENTS | ({"start"} if task.start not in START_KINDS else set())
    for kind, is_so, unused in (
        ("two records or folders", are_records, given.keys() - OF_RECORDS),
        ("--tree", bool(task.tree), OF_SEARCHES),
        ("a folder", what[0].is_dir(), of_one),
    ):
        if is_so and not unused.isdisjoint(given):
            found = ", ".join(own for name, own in given.items() if name in unused)
            raise click.UsageError(f"{found}: cannot be used with {kind}")


def _finish_compare(task: Task, found: plltool.Comparison | plltool.ComparedLikelihoods) -> int:
    """Write and print what was found; returns the exit status."""
    task.outputs.finish({"compare.json": found.to_json(given_command()) + "\n"})
    task.print(found, found.describe())
    return 0 if found.agree else EXIT_DIFFERENT


def _compare_many(
    task: Task,
    pairs: Iterable[tuple[str, plltool.Comparison | PlltoolError]],
    what: str,
    show: Callable[[list[str]], None],
) -> int:
    """Print a line for each comparison as soon as there is one, and write the file; returns the exit status."""
    records, counts = list[dict[str, Any]](), dict.fromkeys(("agree", "differ", "failed"), 0)
    if not task.as_json:
        heads = what.removesuffix("s"), "taxa", "sites", "lnL of a", "difference", "RF", "score", "s of a", "s of b", ""
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
    verdict = f"{len(records)} {what}: {', '.join(f'{number} {own}' for own, number in counts.items())}"
    numbers: dict[str, Any] = {f"n_{own}": number for own, number in counts.items()}
    numbers |= {"alignments": records, "command": given_command()}
    text = json.dumps({"agree": counts["agree"] == len(records), **numbers}, indent=1)
    task.outputs.write({"folder.json": f"{text}\n"})
    task.outputs.remove_stale()
    print_results([verdict, *task.outputs.describe()], text if task.as_json else None)
    return EXIT_DIFFERENT if counts["differ"] else EXIT_FAILED if counts["failed"] or not records else 0


def _describe_briefly(name: str, found: plltool.Comparison) -> str:
    a, b, record = found.a, found.b, found.a.record
    sizes = str(record["n_taxa"]), str(record["n_sites"])
    distances = f"{found.difference:z.6f}", str(found.rf), f"{found.branch_score:.6f}"
    verdict = "agree" if found.agree else "DIFFER"
    return _row(name, *sizes, f"{a.lnl:.4f}", *distances, f"{a.seconds:.1f}", f"{b.seconds:.1f}", verdict)


def _row(name: str, *cells: str) -> str:
    shown = " ".join(f"{cell:>{width}}" for cell, width in zip(cells, (6, 7, 14, 12, 4, 10, 7, 7), strict=False))
    return f"{name:<28}{shown}  {cells[-1]}"
