"""``plltool search``: from an alignment to a maximum-likelihood tree."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli.bootstrap import EXIT_INTERRUPTED, SupportChoice, support_options, support_tree
from plltool.cli.options import (
    PATH,
    Effort,
    OutputChoice,
    StartChoice,
    Views,
    alignment_argument,
    brlen_option,
    constraint_option,
    data_type_option,
    effort_options,
    hardware_options,
    json_progress_option,
    load_alignment,
    model_option,
    outgroup_option,
    output_options,
    quiet_option,
    seed_option,
    split_outgroup,
    start_options,
    view_options,
)
from plltool.cli.outputs import OutputFiles, claim_files, describe_models, print_line
from plltool.cli.reporting import Reporter, given_command, tells_of_checkpoint
from plltool.cli.support import remove_supports
from plltool.errors import InputError
from plltool.hardware import Hardware

if TYPE_CHECKING:
    from plltool.run.results import SearchResult

_log = logging.getLogger("plltool")

EPILOG = """\b
Examples:
  plltool search data/primates.phy --model GTR+F+G4 --seed 7 --prefix primates
  plltool search proteins.fasta.gz --effort thorough --threads 8 --json-progress progress.jsonl
"""


@click.command(epilog=EPILOG)
@alignment_argument
@model_option
@brlen_option
@data_type_option
@start_options
@seed_option
@outgroup_option
@constraint_option
@hardware_options
@output_options
@view_options
@click.option("--site-lnl", type=PATH, metavar="FILE", help="Write the lnL of each site to FILE, see evaluate.")
@effort_options
@support_options
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Climb from so many start trees at the same time, each in a process with its share of the threads; by default"
    " as many as there are threads, on a GPU 1.",
)
@click.option("--profile", is_flag=True, help="Measure how long the device was busy, and report it at the end.")
@quiet_option
@json_progress_option
def search(
    alignment: Path,
    model: str | None,
    brlen: str,
    data_type: str,
    start: StartChoice,
    seed: int,
    outgroup: tuple[str, ...],
    constraint: Path | None,
    hardware: Hardware,
    output: OutputChoice,
    views: Views,
    site_lnl: Path | None,
    effort: Effort,
    choice: SupportChoice,
    workers: int | None,
    profile: bool,
    quiet: bool,
    json_progress: str | None,
) -> None:
    """Find the maximum-likelihood tree of ALIGNMENT (FASTA, PHYLIP or NEXUS; DNA, RNA or proteins; gzipped or not).

    Writes the best tree, a JSON record and a log, of several parts their models, too; the prefix is ALIGNMENT.plltool
    unless told otherwise. Progress goes to stderr, a summary to stdout. Ctrl-C ends the search after the present round
    and writes the best tree so far.

    A search that was stopped, by whatever, goes on if the same command is given again, and ends with the same tree:

        plltool search genes.phy --effort thorough

    Until it is over PREFIX.checkpoint holds where it stands, and in best.nwk the best tree so far.

    With --bootstrap or --supports, PREFIX.support.KIND.nwk is the tree with supports of one kind as labels,
    PREFIX.support.nwk the same with all kinds by name, PREFIX.support.json a table, PREFIX.bootstraps.nwk the trees.

    Example: plltool search data/primates.phy --bootstrap 100 --supports fbp,tbe,ufboot --prefix run
    """
    prefix = output.prefix or alignment.with_name(alignment.name + ".plltool")
    files = OutputFiles.of_prefix(prefix)
    choice.check()
    resumes = files.claim_resumable(output.redo)
    choice.claim(prefix, output.redo, resumes)
    if site_lnl:
        claim_files([site_lnl], output.redo or resumes)
    import plltool
    from plltool.io.checkpoint import remove_checkpoint
    from plltool.run.inputs import resolve_inputs

    sequences = load_alignment(alignment, data_type)
    members = split_outgroup(outgroup, sequences.names)
    reporter = Reporter(quiet, files.log, json_progress, append=resumes)
    with reporter, reporter.interrupts_wait(), tells_of_checkpoint(files.checkpoint):
        if output.redo:
            remove_checkpoint(files.checkpoint)
            choice.forget(prefix)
        data, models = resolve_inputs(sequences, model, brlen)
        settings: dict[str, Any] = {"seed": seed, "brlen": brlen, "constraint": constraint, "workers": workers}
        settings |= asdict(hardware)
        result = plltool.search(
            data,
            models,
            start=start.load(sequences, brlen),
            outgroup=members,
            options=effort.options(),
            profile=profile,
            site_lnl=site_lnl is not None,
            listener=reporter.progress,
            checkpoint=files.checkpoint,
            **settings,
        )
        written = write_results(result, files, views, site_lnl)
        remove_supports(prefix)
        lines, interrupted = summarise(result, files, written), result.interrupted
        if choice.kinds and not interrupted:
            told, interrupted = support_tree(
                choice, result, sequences, data, prefix, members, reporter.progress, settings
            )
            lines += told
            interrupted |= reporter.interrupted  # the ultrafast bootstrap makes do with less then
        if not interrupted:
            choice.forget(prefix)
            remove_checkpoint(files.checkpoint)
        for line in [*lines, *describe_work(result)]:
            reporter.write_log(line)
        if profile:
            for line in describe_profile(result):
                _log.info(line)
    for line in lines:
        print_line(line)
    if interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)


def write_results(result: SearchResult, files: OutputFiles, views: Views, site_lnl: Path | None) -> list[str]:
    """Write what was found; if that fails, there still is the checkpoint. Returns lines as `OutputFiles.write`."""
    from plltool.io.record import write_text
    from plltool.io.site_values import format_for

    try:
        written = files.write(result, given_command(), views)
        if site_lnl and result.site_lnl is not None:
            write_text(site_lnl, format_for(site_lnl, result.site_lnl))
            written.append(f"lnL of sites: {site_lnl}")
    except InputError as error:
        raise InputError(f"{error}; the same command tries again, from {files.checkpoint}") from error
    return written


def summarise(result: SearchResult, files: OutputFiles, written: Sequence[str]) -> list[str]:
    """What was found and where it is."""
    lines = ["interrupted: the best tree so far"] if result.interrupted else []
    lines.append(f"lnL: {result.lnl:.6f}")
    if len(result.start_lnls) > 1:
        lines.append("lnL from each start tree: " + " ".join(f"{lnl:.6f}" for lnl in result.start_lnls))
    if result.interrupted:
        lines.append(f"checkpoint: {files.checkpoint}; the same command goes on from there")
    return [
        *lines,
        *describe_models(result),
        f"seconds: {result.seconds:.1f}",
        f"tree: {files.tree}",
        *written,
        f"record: {files.record}",
        f"log: {files.log}",
    ]


def describe_profile(result: SearchResult) -> list[str]:
    """Where the time went."""
    found = result.profile
    if found is None:
        return [f"profile: nothing to measure: {result.reason}"]
    batches = ", ".join(f"{name} {size:.0f}" for name, size in found["mean_batch"].items())
    return [
        f"profile: kernels ran {found['device_seconds']:.2f} of {result.seconds:.2f} s, host share "
        f"{100 * found['host_share']:.1f} %, {found['launches_per_second']:.0f} launches per second",
        f"profile: mean instructions per request: {batches}",
    ]


def describe_batches(counters: Mapping[str, Any]) -> str:
    """How many requests of each kind, and their mean size."""
    sizes = counters["request_instructions"]
    requests = counters["requests"].items()
    return ", ".join(f"{name} {number} x {sizes[name] / number:.0f} instructions" for name, number in requests)


def describe_work(result: SearchResult) -> list[str]:
    """What the device did, for the log."""
    counters = result.counters
    return [
        f"device: {result.device}",
        f"driver: {result.driver}",
        f"layout: {result.layout}",
        f"launches: {counters['launches']}, instructions: {counters['instructions']}",
        f"bytes to the device: {counters['bytes_to_device']}, from it: {counters['bytes_from_device']}",
        f"requests: {describe_batches(counters)}",
    ]
