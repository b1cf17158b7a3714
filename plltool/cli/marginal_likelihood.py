"""``plltool marginal-likelihood``: the probability of an alignment under a model and its priors."""

from __future__ import annotations

from dataclasses import dataclass

import plltool
from plltool import Hardware, StoneOptions
from plltool.cli import options
from plltool.cli.command import command
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.sample import SAMPLING, ChainTask, advance


@dataclass(frozen=True, kw_only=True)
class StoneTask(ChainTask):
    """The same with stepping stones, and how the work is reported."""

    settings: StoneOptions = options.filled_by(options.packed("settings", StoneOptions, SAMPLING))
    telling: options.Telling = options.filled_by(options.telling_options)
    hardware: Hardware = options.filled_by(options.hardware_options)


@command()
@options.packed("task", StoneTask)
@file_options("marginal-likelihood", source="alignment")
def marginal_likelihood(task: StoneTask, outputs: Outputs) -> None:
    """Compute the marginal likelihood of a model, over all trees and parameters, by stepping stones.

    The difference between two models is the logarithm of their Bayes factor. Parameters are sampled unless the model
    gives values for them, or counts them in the alignment (+F).

    Give the same command again to continue a run that was stopped, or with more generations to extend a finished one.
    """
    advance(task, outputs, plltool.marginal_likelihood)
