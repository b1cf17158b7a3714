"""``plltool select-model``: the model that describes an alignment best."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import click

import plltool
from plltool import Hardware
from plltool.cli import options
from plltool.cli.command import command, given_command
from plltool.cli.option_values import PATH
from plltool.cli.options import filled_by, option, packed
from plltool.cli.outputs import Outputs, file_options
from plltool.constants import (
    CRITERIA,
    DEFAULT_CLUSTER_PERCENT,
    MAX_RATE_CATEGORIES,
    MERGE_ALGORITHMS,
    SELECTION_MAX_RATES,
)
from plltool.registry import split_words

SHOWN = 10  # models in the table on the terminal
partitions_option = click.option(
    "--partitions",
    type=PATH,
    help="Partitions of the alignment: a partition file, or NEXUS with charsets. `search` without --model uses the"
    " models in the file; where models are chosen, one for each partition, only the kind of data and +ASC in it count.",
)


@dataclass(frozen=True, kw_only=True)
class SelectionTask:
    """The data, the candidates, how they are ranked, and how that is reported."""

    alignment: Path = filled_by(options.alignment_argument)
    tree: Path | None = option(
        type=PATH, help="Topology on which models are compared, Newick or NEXUS.  [default: a parsimony tree]"
    )
    criterion: str = option(
        choices=CRITERIA,
        case_sensitive=False,
        default=CRITERIA[0],
        help="Information criterion that ranks the models.",
    )
    free_rates: bool = option(
        "--free-rates/--no-free-rates",
        default=True,
        show_default=True,
        help="Whether free rates across sites, such as +R4, are among the candidates.",
    )
    max_rates: int = option(
        min=2,
        max=MAX_RATE_CATEGORIES,
        default=SELECTION_MAX_RATES,
        help="Largest number of categories of free rates; they are tried as long as another one gains.",
    )
    ascertainment: bool = option(help="Give all candidates +ASC_LEWIS, for data whose invariable sites were left out.")
    candidates: str = option(
        metavar="NAME[,NAME]...",
        default="",
        help="Only these substitution models, such as GTR,HKY or LG,WAG, with every kind of frequencies that there is."
        "  [default: all]",
    )
    also: tuple[str, ...] = option(
        multiple=True,
        metavar="MODEL",
        help="Another candidate, such as LG+C20 or a model that a file defines, without rates across sites. May be"
        " given several times.",
    )
    partitions: Path | None = filled_by(partitions_option)
    merge: str | None = option(
        choices=MERGE_ALGORITHMS,
        case_sensitive=False,
        help="Merge partitions that may share a model: try all pairs in each round (greedy), only the pairs most"
        " similar in rate (rcluster), or these and merge several pairs in each round (rclusterf).  [default: no"
        " merging]",
    )
    cluster_percent: float = option(
        min=0,
        max=100,
        min_open=True,
        default=DEFAULT_CLUSTER_PERCENT,
        help="Share of the pairs of partitions that rcluster and rclusterf try.",
    )
    brlen: str = filled_by(options.brlen_option)
    reading: options.Reading = filled_by(options.reading_options)
    seed: int = filled_by(options.seed_option)
    telling: options.Telling = filled_by(options.telling_options)
    hardware: Hardware = filled_by(options.hardware_options)

    def check(self) -> None:
        if self.partitions is None and self.merge is not None:
            raise click.UsageError("--merge needs --partitions")
        if self.partitions is not None and self.ascertainment:
            raise click.UsageError("--ascertainment cannot be used with --partitions: write +ASC in the partition file")
        if self.partitions is not None and self.also:
            raise click.UsageError("--also goes without --partitions")


@command()
@packed("task", SelectionTask)
@file_options("select-model")
def select_model(task: SelectionTask, outputs: Outputs) -> None:
    """Choose the substitution model, and the rates across sites, that describe ALIGNMENT best.

    Candidates are all models for the kind of data, each with equal rates, +I, +G4, +I+G4, and free rates as long as
    another one gains. Branch lengths and parameters are optimised for each on the same tree. `plltool search --model
    auto` chooses in the same way, and searches under the chosen model.

    With --partitions each partition gets a model of its own; with --merge, partitions that may share one are merged.
    """
    task.check()
    outputs.claim()
    with task.telling.reporter(outputs) as reporter:
        sequences = options.load_alignment(task.alignment, task.reading)
        common = options.keywords(task, "criterion", "free_rates", "max_rates", "seed")
        common |= {"candidates": split_words(task.candidates), **asdict(task.hardware)}
        choice: plltool.ModelChoice | plltool.SchemeChoice
        if task.partitions is None:
            common |= options.keywords(task, "ascertainment", "also")
            choice = plltool.select_model(sequences, task.tree, **common)
        else:
            common |= options.keywords(task, "merge", "brlen") | {"percent": task.cluster_percent}
            choice = plltool.select_scheme(sequences, task.partitions, task.tree, **common)
        outputs.finish(choice.texts(given_command()))
        reporter.write_log(*choice.table().splitlines())
    lines = [*choice.table(SHOWN).splitlines(), choice.describe(), f"seconds: {choice.seconds:.1f}"]
    task.telling.print(choice, [*lines, *outputs.describe()])
