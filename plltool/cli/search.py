"""``plltool search``: from an alignment to a maximum-likelihood tree."""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli.options import (
    PATH,
    Effort,
    OutputChoice,
    StartChoice,
    alignment_argument,
    brlen_option,
    data_type_option,
    effort_options,
    hardware_options,
    load_alignment,
    model_option,
    outgroup_option,
    output_options,
    quiet_option,
    seed_option,
    split_outgroup,
    start_options,
)
from plltool.cli.output import OutputFiles, describe_models, print_line
from plltool.cli.reporting import Reporter, given_command, prepare_devices
from plltool.hardware import Hardware

if TYPE_CHECKING:
    from plltool.results import SearchResult

EXIT_INTERRUPTED = 128 + signal.SIGINT

_log = logging.getLogger("plltool")


@click.command()
@alignment_argument
@model_option
@brlen_option
@data_type_option
@start_options
@seed_option
@outgroup_option
@click.option(
    "--constraint",
    type=PATH,
    metavar="FILE",
    help="Newick file of a tree over some taxa or all, nodes of any degree, such as ((Homo,Pan),Gorilla,Pongo,Macaca); "
    "- the tree found has all its splits, taxa that are not in it go anywhere.",
)
@hardware_options
@output_options
@effort_options
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Climb from so many start trees at the same time, each in a process with its share of the threads; by default"
    " as many as there are threads, on a GPU 1.",
)
@click.option("--profile", is_flag=True, help="Measure how long the device was busy, and report it at the end.")
@quiet_option
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
    effort: Effort,
    workers: int | None,
    profile: bool,
    quiet: bool,
) -> None:
    """Find the maximum-likelihood tree of ALIGNMENT (FASTA, PHYLIP or NEXUS; DNA, RNA or proteins; gzipped or not).

    Writes the best tree, a JSON record and a log, of several parts their models, too; the prefix is ALIGNMENT.plltool
    unless told otherwise. Progress goes to stderr, a summary to stdout. Ctrl-C ends the search after the present round
    and writes the best tree so far.
    """
    files = OutputFiles.of_prefix(output.prefix or alignment.with_name(alignment.name + ".plltool"))
    files.claim(output.redo)
    from plltool import api

    data = load_alignment(alignment, data_type)
    with Reporter(quiet, files.log) as reporter, reporter.interrupts_wait():
        prepare_devices(hardware)
        result = api.search(
            data,
            model,
            seed=seed,
            start=start.load(data, brlen),
            outgroup=split_outgroup(outgroup, data.names),
            constraint=constraint,
            options=effort.options(),
            brlen=brlen,
            workers=workers,
            profile=profile,
            listener=reporter.progress,
            **asdict(hardware),
        )
        files.write(result, given_command())
        lines = summarise(result, files)
        for line in [*lines, *describe_work(result)]:
            reporter.write_log(line)
        if profile:
            for line in describe_profile(result):
                _log.info(line)
    for line in lines:
        print_line(line)
    if result.interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)


def summarise(result: SearchResult, files: OutputFiles) -> list[str]:
    """What was found and where it is."""
    lines = ["interrupted: the best tree so far"] if result.interrupted else []
    lines.append(f"lnL: {result.lnl:.6f}")
    if len(result.start_lnls) > 1:
        lines.append("lnL from each start tree: " + " ".join(f"{lnl:.6f}" for lnl in result.start_lnls))
    return [
        *lines,
        *describe_models(result),
        f"seconds: {result.seconds:.1f}",
        f"tree: {files.tree}",
        *([f"trees of parts: {files.part_trees}"] if result.parts[0].newick else []),
        *([f"models of parts: {files.models}"] if result.parts[0].name else []),
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
        f"layout: {result.layout}",
        f"launches: {counters['launches']}, instructions: {counters['instructions']}",
        f"bytes to the device: {counters['bytes_to_device']}, from it: {counters['bytes_from_device']}",
        f"requests: {describe_batches(counters)}",
    ]
