"""``plltool search``: from an alignment to a maximum-likelihood tree."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path

import click

import plltool
from plltool import Hardware, SearchOptions
from plltool.cli import options
from plltool.cli.bootstrap import EXIT_INTERRUPTED, SupportChoice, support_options
from plltool.cli.command import EXPERT, OUTPUT, SEARCH, command, given_command, put_under
from plltool.cli.option_values import WRITTEN, Duration
from plltool.cli.outputs import Outputs, file_options, write_named
from plltool.cli.select_model import partitions_option
from plltool.cli.show import draw_small
from plltool.constants import REPLICATE_STAGE, UFBOOT
from plltool.errors import InputError

_log = logging.getLogger("plltool")


@command()
@options.search_task_options
@partitions_option
@options.start_options
@options.effort_options
@support_options
@options.hardware_options
@file_options("search", source="alignment")
@options.view_options
@click.option("--site-lnl", type=WRITTEN, help="Write the lnL of each site to FILE, as evaluate does.")
@click.option(
    "--time",
    type=Duration(),
    metavar="TIME",
    help="Search for this long, such as 90s, 10m or 1h30m (a plain number is seconds): more start trees and"
    " perturbations as long as time is left. The tree then depends on the speed of the machine. Supports come after it"
    " and are not counted.",
)
@click.option("--profile", is_flag=True, help="Measure how long the device is busy, and report it at the end.")
@put_under(OUTPUT, "site_lnl")
@put_under(SEARCH, "time")
@put_under(EXPERT, "profile")
def search(
    task: options.SearchTask,
    partitions: Path | None,
    start: options.StartChoice,
    effort: SearchOptions,
    choice: SupportChoice,
    hardware: Hardware,
    outputs: Outputs,
    views: options.Views,
    site_lnl: Path | None,
    time: float | None,
    profile: bool,
) -> None:
    """Find the maximum-likelihood tree of ALIGNMENT: DNA, RNA, proteins or morphology.

    It may be FASTA, PHYLIP or NEXUS, compressed or not.

    --model auto chooses the model first, as `plltool select-model` does. With --partitions it chooses one for each
    partition, and --model auto+MERGE also merges partitions that may share a model.

    Progress goes to stderr, a summary to stdout. Ctrl-C ends the search after the current round and writes the best
    tree so far.

    After an interruption, the same command continues the search and ends with the same tree. --redo replaces the
    results of an earlier run and starts over, unless it continues an interrupted run of the same command line.
    """
    choice.check(task)
    outputs = choice.choose(outputs)
    outputs.claim()
    reporter = task.telling.reporter(outputs)
    with reporter, reporter.interrupts_wait(), ExitStack() as stack:
        sequences = options.load_alignment(task.alignment, task.reading)
        stack.enter_context(outputs.checkpointed())  # after the input, so that --redo loses nothing if that is wrong
        reporter.expect("supports" if choice.kinds else "")
        settings = task.settings(hardware) | {"partitions": partitions, "options": effort, "time": time}
        settings |= {"start": start.load(sequences, task.brlen), "profile": profile, "site_lnl": site_lnl is not None}
        settings |= {"listener": reporter.progress, "checkpoint": outputs.checkpoints[0]}
        result = outputs.go_on_or_start_over(lambda: plltool.search(sequences, task.model, **settings))
        write_results(result, outputs, views, site_lnl)
        best, interrupted, told = result, result.interrupted, list[str]()
        if choice.kinds and not interrupted:
            reporter.expect(REPLICATE_STAGE if choice.bootstrap is not None and UFBOOT in choice.kinds else "")
            best, told, interrupted = choice.make(result, sequences, task, hardware, outputs, reporter.progress)
        lines = []
        if best is not result:
            outputs.withdraw("tree")
            write_results(best, outputs, views, site_lnl)
            lines.append(f"lnL before the ultrafast bootstrap met a better tree: {result.lnl:.6f}")
        lines += summarise(best, outputs, views)
        if site_lnl:
            lines.append(f"lnL of sites: {site_lnl}")
        outputs.write_report()
        lines += [*told, *outputs.describe()]
        if not interrupted:
            outputs.forget_checkpoints()
        reporter.write_log(*lines, *describe_work(result))
        if profile:
            for line in describe_profile(result):
                _log.info(line)
    task.telling.print(best, lines)
    if not task.telling.as_json:
        has_supports = bool(choice.kinds) and not interrupted
        draw_small(outputs.path("support.nwk") if has_supports else best.newick, best.tree.n_taxa)
    if interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)


def write_results(result: plltool.SearchResult, outputs: Outputs, views: options.Views, site_lnl: Path | None) -> None:
    """Write what was found; if that fails, there still is the checkpoint."""

    try:
        outputs.write(result.texts(given_command(), nexus=views.nexus, collapse=views.collapse))
        outputs.remove_stale()
        if site_lnl:
            write_named(site_lnl, result.format_site_lnl(site_lnl))
    except InputError as error:
        raise InputError(f"{error}; the same command tries again, from {outputs.checkpoints[0]}") from error


def summarise(result: plltool.SearchResult, outputs: Outputs, views: options.Views) -> list[str]:
    lines = ["interrupted: the best tree so far"] if result.interrupted else []
    lines.append(f"lnL: {result.lnl:.6f}")
    if len(result.start_lnls) > 1:
        lines.append("lnL from each start tree: " + " ".join(f"{lnl:.6f}" for lnl in result.start_lnls))
    if result.interrupted:
        lines.append(f"checkpoint: {outputs.checkpoints[0]}; the same command continues from there")
    lines += [*result.describe_models(), f"seconds: {result.seconds:.1f}"]
    return [*lines, *options.describe_short_branches(result, views)]


def describe_profile(result: plltool.SearchResult) -> list[str]:
    found = result.profile
    if found is None:
        return [f"profile: nothing to measure: {result.reason}"]
    batches = ", ".join(f"{name} {size:.0f}" for name, size in found["mean_batch"].items())
    return [
        f"profile: kernels ran {found['device_seconds']:.2f} of {result.seconds:.2f} s, host share "
        f"{100 * found['host_share']:.1f} %, {found['launches_per_second']:.0f} launches per second",
        f"profile: mean instructions per request: {batches}",
    ]


def describe_work(result: plltool.SearchResult) -> list[str]:
    counters = result.counters
    sizes, requests = counters["request_instructions"], counters["requests"].items()
    sized = (f"{name} {number} x {sizes[name] / number:.0f} instructions" for name, number in requests)
    return [
        f"device: {result.device}",
        f"driver: {result.driver}",
        f"layout: {result.layout}",
        f"launches: {counters['launches']}, instructions: {counters['instructions']}",
        f"bytes to the device: {counters['bytes_to_device']}, from it: {counters['bytes_from_device']}",
        f"requests: {', '.join(sized)}",
    ]
