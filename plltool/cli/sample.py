"""``plltool sample``: trees and parameters from their posterior distribution."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from plltool import Hardware, Priors, SampleOptions
from plltool.cli import options
from plltool.cli.bootstrap import EXIT_INTERRUPTED
from plltool.cli.command import command, given_command
from plltool.cli.option_values import NumberOr, completes
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_results
from plltool.constants import (
    DEFAULT_BURNIN,
    DEFAULT_CHAINS,
    DEFAULT_RUNS,
    DEFAULT_TEMPERATURE,
    ENOUGH_DEVIATION,
    ENOUGH_SIZE,
    MAX_RUNS,
    SAMPLE_EVERY,
    START_KINDS,
)


def prior_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for the prior of each kind of parameter."""
    whose = {
        "lengths": "Prior of branch lengths: exponential(RATE) of each, or gammadir(SHAPE,RATE,A,C), the compound"
        " Dirichlet distribution (Zhang, Rannala & Yang 2012).",
        "rates": "Prior of exchangeabilities, scaled to sum 1: dirichlet(A), or a value for each.",
        "frequencies": "Prior of the frequencies of states: dirichlet(A), or a value for each.",
        "alpha": "Prior of the shape of the gamma distribution of rates: exponential(RATE) or uniform(LOW,HIGH).",
        "pinv": "Prior of the proportion of invariable sites: uniform(LOW,HIGH).",
    }
    defaults = asdict(Priors())
    made = [
        click.option(f"--prior-{name}", name, metavar="PRIOR", default=defaults[name], help=text)
        for name, text in whose.items()
    ]
    return options.packed("priors", Priors, *made, title="Priors")(command)


run_options = options.packed(
    "settings",
    SampleOptions,
    click.option(
        "--generations",
        type=NumberOr("auto"),
        default="auto",
        metavar="N|auto",
        help=f"Number of generations. With auto, the chains run until ASDSF is below {ENOUGH_DEVIATION} and every"
        f" effective sample size above {ENOUGH_SIZE}.",
    ),
    click.option("--runs", type=click.IntRange(1, MAX_RUNS), default=DEFAULT_RUNS, help="Number of runs."),
    click.option(
        "--chains",
        type=click.IntRange(min=1),
        default=DEFAULT_CHAINS,
        help="Number of chains of each run, one cold and the others heated.",
    ),
    click.option(
        "--temperature",
        type=click.FloatRange(0, 10),
        default=DEFAULT_TEMPERATURE,
        help="Chain H, counted from 0, samples the posterior to the power 1 / (1 + H * temperature).",
    ),
    click.option(
        "--sample-every", type=click.IntRange(min=1), default=SAMPLE_EVERY, help="Take a sample every N generations."
    ),
    click.option(
        "--burnin",
        type=click.FloatRange(0, 1, max_open=True),
        default=DEFAULT_BURNIN,
        help="Proportion of the samples to discard as burn-in. Samples from the tuning phase are always discarded.",
    ),
    click.option("--prior-only", is_flag=True, help="Sample the prior, as if there were no data."),
    title="Sampling options",
)


start_options = options.packed(
    "start",
    options.StartChoice,
    click.option(
        "--start",
        default="random",
        metavar="random|parsimony|FILE",
        **completes(*START_KINDS),
        help="Where chains begin: a random or a parsimony tree of its own for each, or the tree in a file.",
    ),
    options.resolve_option,
)


@command(
    examples=(
        "plltool sample data/primates.phy --model GTR+FO+G4 --prefix primates",
        "plltool sample data/primates.phy --generations 200000 --prior-lengths 'exponential(10)' --prefix primates",
    ),
)
@options.alignment_argument
@options.model_option
@options.reading_options
@run_options
@prior_options
@start_options
@options.seed_option
@options.workers_option("runs to advance")
@options.outgroup_option
@options.json_option
@options.quiet_option
@options.json_progress_option
@options.hardware_options
@file_options("sample", source="alignment")
def sample(
    alignment: Path,
    model: str | None,
    reading: options.Reading,
    settings: SampleOptions,
    priors: Priors,
    start: options.StartChoice,
    seed: int,
    workers: int | None,
    outgroup: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    json_progress: str | None,
    hardware: Hardware,
    outputs: Outputs,
) -> None:
    """Sample trees, branch lengths and parameters from their posterior distribution, by Metropolis-coupled chains.

    Parameters are sampled unless the model gives values for them, or counts them in the alignment (+F). Partitions
    share the branch lengths.

    Give the same command again to continue a run that was stopped, or with more generations to extend a finished one.
    """
    outputs.claim()
    import plltool

    reporter = Reporter(quiet, outputs.log, json_progress, append=outputs.resumes)
    with reporter, reporter.interrupts_wait(), ExitStack() as stack:
        sequences = options.load_alignment(alignment, reading)
        stack.enter_context(outputs.checkpointed())
        found = outputs.go_on_or_start_over(
            lambda: plltool.sample(
                sequences,
                model,
                options=settings,
                priors=priors,
                start=start.load(sequences),
                seed=seed,
                workers=workers,
                outgroup=outgroup or None,
                listener=reporter.progress,
                taken=outputs.write,
                checkpoint=outputs.checkpoints[0],
                **asdict(hardware),
            )
        )
        outputs.write(found.texts(given_command()))
        outputs.remove_stale()
        outputs.write_report()
        if not found.interrupted:
            outputs.finish_checkpoint()
        lines = [*found.describe(), f"seconds: {found.seconds:.1f}"]
        for line in lines:
            reporter.write_log(line)
    print_results([*lines, *outputs.describe()], found.to_json(given_command()) if as_json else None)
    if found.interrupted:
        click.get_current_context().exit(EXIT_INTERRUPTED)
