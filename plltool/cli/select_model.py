"""``plltool select-model``: the model that describes an alignment best."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool import Hardware
from plltool.cli import options
from plltool.cli.command import command, given_command
from plltool.cli.option_values import PATH
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_line, print_results
from plltool.constants import CRITERIA, DEFAULT_CLUSTER_PERCENT, MERGE_ALGORITHMS

if TYPE_CHECKING:
    from plltool import ModelChoice, SchemeChoice

SHOWN = 10  # models in the table on the terminal
partitions_option = click.option(
    "--partitions",
    type=PATH,
    help="Partitions of the alignment: a partition file, or NEXUS with charsets. `search` without --model uses the"
    " models in the file; where models are chosen, one for each partition, only the kind of data and +ASC in it count.",
)


@command(
    examples=(
        "plltool select-model data/primates.phy --prefix primates",
        "plltool select-model proteins.fasta --criterion AICc --no-free-rates",
        "plltool select-model data/primates.phy --partitions data/primates.part --merge greedy --prefix parts",
    ),
)
@options.alignment_argument
@click.option(
    "--tree", type=PATH, help="Topology on which models are compared, Newick or NEXUS.  [default: a parsimony tree]"
)
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA, case_sensitive=False),
    default=CRITERIA[0],
    help="Information criterion that ranks the models.",
)
@click.option(
    "--free-rates/--no-free-rates",
    default=True,
    show_default=True,
    help="Whether free rates across sites, +R2 to +R10, are among the candidates.",
)
@click.option(
    "--ascertainment",
    is_flag=True,
    help="Give all candidates +ASC_LEWIS, for data whose invariable sites were left out.",
)
@click.option(
    "--also",
    multiple=True,
    metavar="MODEL",
    help="Another candidate, such as LG+C20 or a model that a file defines, without rates across sites. May be given"
    " several times.",
)
@partitions_option
@click.option(
    "--merge",
    type=click.Choice(MERGE_ALGORITHMS, case_sensitive=False),
    help="Merge partitions that may share a model: try all pairs in each round (greedy), only the pairs most similar in"
    " rate (rcluster), or these and merge several pairs in each round (rclusterf).  [default: no merging]",
)
@click.option(
    "--cluster-percent",
    type=click.FloatRange(0, 100, min_open=True),
    default=DEFAULT_CLUSTER_PERCENT,
    help="Share of the pairs of partitions that rcluster and rclusterf try.",
)
@options.brlen_option
@options.reading_options
@options.seed_option
@options.json_option
@options.quiet_option
@options.json_progress_option
@options.hardware_options
@file_options("select-model")
def select_model(
    alignment: Path,
    tree: Path | None,
    criterion: str,
    free_rates: bool,
    ascertainment: bool,
    also: tuple[str, ...],
    partitions: Path | None,
    merge: str | None,
    cluster_percent: float,
    brlen: str,
    reading: options.Reading,
    seed: int,
    as_json: bool,
    quiet: bool,
    json_progress: str | None,
    hardware: Hardware,
    outputs: Outputs,
) -> None:
    """Choose the substitution model, and the rates across sites, that describe ALIGNMENT best.

    Candidates are all models for the kind of data, each with equal rates, +I, +G4, +I+G4, and free rates as long as
    another one gains. Branch lengths and parameters are optimised for each on the same tree. `plltool search --model
    auto` chooses in the same way, and searches under the chosen model.

    With --partitions each partition gets a model of its own; with --merge, partitions that may share one are merged.
    """
    if partitions is None and merge is not None:
        raise click.UsageError("--merge needs --partitions")
    if partitions is not None and ascertainment:
        raise click.UsageError("--ascertainment cannot be used with --partitions: write +ASC in the partition file")
    if partitions is not None and also:
        raise click.UsageError("--also goes without --partitions")
    outputs.claim()
    import plltool

    with Reporter(quiet, outputs.log, json_progress) as reporter:
        sequences = options.load_alignment(alignment, reading)
        common: dict[str, Any] = {"criterion": criterion, "free_rates": free_rates, "seed": seed, **asdict(hardware)}
        choice: ModelChoice | SchemeChoice
        if partitions is None:
            choice = plltool.select_model(sequences, tree, ascertainment=ascertainment, also=also, **common)
        else:
            choice = plltool.select_scheme(
                sequences, partitions, tree, merge=merge, percent=cluster_percent, brlen=brlen, **common
            )
        outputs.write(choice.texts(given_command()))
        outputs.remove_stale()
        outputs.write_report()
        for line in choice.table().splitlines():
            reporter.write_log(line)
    if as_json:
        print_line(choice.to_json(given_command()))
        return
    lines = [*choice.table(SHOWN).splitlines(), choice.describe(), f"seconds: {choice.seconds:.1f}"]
    print_results([*lines, *outputs.describe()])
