"""``plltool sample``: trees and parameters from their posterior distribution."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click

import plltool
from plltool import Hardware, Priors, SampleOptions
from plltool.cli import options
from plltool.cli.bootstrap import EXIT_INTERRUPTED
from plltool.cli.command import command, given_command
from plltool.cli.option_values import NumberOr
from plltool.cli.outputs import Outputs, file_options


@dataclass(frozen=True, kw_only=True)
class SampleTask:
    """What the chains start from, and how the work is done and reported."""

    seed: int = options.filled_by(options.seed_option)
    workers: int | None = options.filled_by(options.workers_option("runs to advance"))
    outgroup: tuple[str, ...] = options.filled_by(options.outgroup_option)
    telling: options.Telling = options.filled_by(options.telling_options)


start_options = options.packed(
    "start",
    options.StartChoice,
    start={
        "default": "random",
        "metavar": "random|parsimony|FILE",
        "help": "Where chains begin: a random or a parsimony tree of its own for each, or the tree in a file.",
    },
)


@command()
@options.alignment_argument
@options.model_option
@options.reading_options
@options.packed("settings", SampleOptions, "Sampling options", generations={"type": NumberOr("auto")})
@options.packed("priors", Priors, "Priors")
@start_options
@options.packed("task", SampleTask)
@options.hardware_options
@file_options("sample", source="alignment")
def sample(
    alignment: Path,
    model: str | None,
    reading: options.Reading,
    settings: SampleOptions,
    priors: Priors,
    start: options.StartChoice,
    task: SampleTask,
    hardware: Hardware,
    outputs: Outputs,
) -> None:
    """Sample trees, branch lengths and parameters from their posterior distribution, by Metropolis-coupled chains.

    Parameters are sampled unless the model gives values for them, or counts them in the alignment (+F). Partitions
    share the branch lengths.

    Give the same command again to continue a run that was stopped, or with more generations to extend a finished one.
    """
    advance(
        *(alignment, reading, outputs, task.telling),
        lambda sequences, checkpoint, **heard: plltool.sample(
            sequences,
            model,
            options=settings,
            priors=priors,
            start=start.load(sequences),
            seed=task.seed,
            workers=task.workers,
            outgroup=task.outgroup or None,
            taken=outputs.write,
            checkpoint=checkpoint,
            **heard,
            **asdict(hardware),
        ),
    )


def advance(
    alignment: Path,
    reading: options.Reading,
    outputs: Outputs,
    telling: options.Telling,
    work: Callable[..., plltool.SampleResult | plltool.MarginalLikelihood],
) -> None:
    """Let chains go on from their checkpoint, and write and print what they found.

    `work` is called with the alignment, the folder of the checkpoint, and a `listener`.
    """
    outputs.claim()
    reporter = telling.reporter(outputs)
    with reporter, reporter.interrupts_wait(), ExitStack() as stack:
        sequences = options.load_alignment(alignment, reading)
        stack.enter_context(outputs.checkpointed())
        found = outputs.go_on_or_start_over(lambda: work(sequences, outputs.checkpoints[0], listener=reporter.progress))
        outputs.finish(found.texts(given_command()))
        if not found.interrupted:
            outputs.finish_checkpoint()
        lines = [*found.describe(), f"seconds: {found.seconds:.1f}"]
        reporter.write_log(*lines)
    telling.print(found, [*lines, *outputs.describe()])
    if found.interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)
