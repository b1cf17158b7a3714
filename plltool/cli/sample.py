"""``plltool sample``: trees and parameters from their posterior distribution."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

import plltool
from plltool import ClockPriors, Hardware, Priors, SampleOptions
from plltool.cli import options
from plltool.cli.bootstrap import EXIT_INTERRUPTED
from plltool.cli.command import command, given_command
from plltool.cli.option_values import PATH, NumberOr
from plltool.cli.outputs import Outputs, file_options
from plltool.constants import CLOCKS, TREE_PRIORS

SAMPLING = "Sampling options"  # title of a section of the help
start_options = options.packed(
    "start",
    options.StartChoice,
    start={
        "default": "random",
        "metavar": "random|parsimony|FILE",
        "help": "Where chains begin: a random or a parsimony tree of its own for each, or the tree in a file.",
    },
)


@dataclass(frozen=True, kw_only=True)
class ChainTask:
    """What chains start from, and how they go on."""

    alignment: Path = options.filled_by(options.alignment_argument)
    model: str | None = options.filled_by(options.model_option)
    reading: options.Reading = options.filled_by(options.reading_options)
    settings: Any = options.filled_by(
        options.packed("settings", SampleOptions, SAMPLING, generations={"type": NumberOr("auto")})
    )
    priors: Priors = options.filled_by(options.packed("priors", Priors, "Priors"))
    start: options.StartChoice = options.filled_by(start_options)
    seed: int = options.filled_by(options.seed_option)


@dataclass(frozen=True, kw_only=True)
class ClockTask:
    """The clock and the dates of trees in time."""

    clock: str | None = options.option(
        choices=CLOCKS,
        help="Sample trees in time, with one rate for all branches (strict) or a rate for each, with a log-normal"
        " distribution (relaxed).  [default: no clock]",
    )
    dates: Path | None = options.option(
        type=PATH, help="Table of the dates of all taxa, as for plltool date; dates must be exact."
    )
    tree_prior: str = options.option(
        default=TREE_PRIORS[0],
        metavar="PRIOR",
        help=f"Coalescent prior of trees in time: {', '.join(TREE_PRIORS)}, or skygrid(SIZES,YEARS) with the number of"
        " population sizes and the height up to which they change.",
    )
    clock_priors: ClockPriors = options.filled_by(options.packed("clock_priors", ClockPriors))


@dataclass(frozen=True, kw_only=True)
class SampleTask(ChainTask):
    """The same with how the work is done and reported."""

    workers: int | None = options.filled_by(options.workers_option("runs to advance"))
    outgroup: tuple[str, ...] = options.filled_by(options.outgroup_option)
    time: ClockTask = options.filled_by(options.packed("time", ClockTask, "Trees in time"))
    telling: options.Telling = options.filled_by(options.telling_options)
    hardware: Hardware = options.filled_by(options.hardware_options)


@command()
@options.packed("task", SampleTask)
@file_options("sample", source="alignment")
def sample(task: SampleTask, outputs: Outputs) -> None:
    """Sample trees, branch lengths and parameters from their posterior distribution, by Metropolis-coupled chains.

    Parameters are sampled unless the model gives values for them, or counts them in the alignment (+F). Partitions
    share the branch lengths.

    Give the same command again to continue a run that was stopped, or with more generations to extend a finished one.
    """
    more = vars(task.time) | {"workers": task.workers, "outgroup": task.outgroup or None, "taken": outputs.write}
    advance(task, outputs, plltool.sample, more)


def advance(
    task: Any,
    outputs: Outputs,
    work: Callable[..., plltool.SampleResult | plltool.MarginalLikelihood],
    more: dict[str, Any] | None = None,
) -> None:
    """Let chains go on from their checkpoint, and write and print what they found.

    `work` is called with what a `ChainTask` has, and `more`; `task` also has its settings, and tells.
    """
    outputs.claim()
    reporter = task.telling.reporter(outputs)
    with reporter, reporter.interrupts_wait(), ExitStack() as stack:
        sequences = options.load_alignment(task.alignment, task.reading)
        stack.enter_context(outputs.checkpointed())
        how = options.keywords(task, "model", "priors", "seed") | asdict(task.hardware) | (more or {})
        how |= {"options": task.settings, "start": task.start.load(sequences)}
        how |= {"listener": reporter.progress, "checkpoint": outputs.checkpoints[0]}
        found = outputs.go_on_or_start_over(lambda: work(sequences, **how))
        outputs.finish(found.texts(given_command()))
        if not found.interrupted:
            outputs.finish_checkpoint()
        lines = [*found.describe(), f"seconds: {found.seconds:.1f}"]
        reporter.write_log(*lines)
    task.telling.print(found, [*lines, *outputs.describe()])
    if found.interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)
