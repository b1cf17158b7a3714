"""``plltool marginal-likelihood``: the probability of an alignment under a model and its priors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import plltool
from plltool import Hardware, Priors, StoneOptions
from plltool.cli import options
from plltool.cli.command import command
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.sample import advance, start_options


@dataclass(frozen=True, kw_only=True)
class StoneTask:
    """What the chains start from, and how the work is reported."""

    seed: int = options.filled_by(options.seed_option)
    telling: options.Telling = options.filled_by(options.telling_options)


@command()
@options.alignment_argument
@options.model_option
@options.reading_options
@options.packed("settings", StoneOptions, "Sampling options")
@options.packed("priors", Priors, "Priors")
@start_options
@options.packed("task", StoneTask)
@options.hardware_options
@file_options("marginal-likelihood", source="alignment")
def marginal_likelihood(
    alignment: Path,
    model: str | None,
    reading: options.Reading,
    settings: StoneOptions,
    priors: Priors,
    start: options.StartChoice,
    task: StoneTask,
    hardware: Hardware,
    outputs: Outputs,
) -> None:
    """Compute the marginal likelihood of a model, over all trees and parameters, by stepping stones.

    The difference between two models is the logarithm of their Bayes factor. Parameters are sampled unless the model
    gives values for them, or counts them in the alignment (+F).

    Give the same command again to continue a run that was stopped, or with more generations to extend a finished one.
    """
    advance(
        *(alignment, reading, outputs, task.telling),
        lambda sequences, checkpoint, **heard: plltool.marginal_likelihood(
            sequences,
            model,
            options=settings,
            priors=priors,
            start=start.load(sequences),
            seed=task.seed,
            checkpoint=checkpoint,
            **heard,
            **asdict(hardware),
        ),
    )
