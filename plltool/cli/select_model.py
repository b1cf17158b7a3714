"""``plltool select-model``: the model that describes an alignment best."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from plltool import Hardware
from plltool.cli.command import command, given_command
from plltool.cli.options import (
    PATH,
    alignment_argument,
    data_type_option,
    hardware_options,
    json_option,
    json_progress_option,
    load_alignment,
    quiet_option,
    seed_option,
)
from plltool.cli.outputs import OutputFile, Outputs, file_options, print_line
from plltool.cli.reporting import Reporter
from plltool.constants import CRITERIA

SELECT_MODEL_FILES = (
    OutputFile("select-model.model", "the chosen model", "without values; a file for --model"),
    OutputFile("select-model.json", "record", "JSON, with all models that were fitted"),
    OutputFile("select-model.log", "log"),
)
SHOWN = 10  # models in the table on the terminal


@command(
    short_help="Choose the substitution model of an alignment.",
    examples=(
        "plltool select-model data/primates.phy --prefix primates",
        "plltool select-model proteins.fasta --criterion AICc --no-free-rates",
    ),
)
@alignment_argument
@click.option(
    "--tree",
    type=PATH,
    metavar="FILE",
    help="Topology on which models are compared, Newick or NEXUS.  [default: a parsimony tree]",
)
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA, case_sensitive=False),
    default=CRITERIA[0],
    show_default=True,
    help="What the best model is best by.",
)
@click.option(
    "--free-rates/--no-free-rates",
    default=True,
    show_default=True,
    help="Whether free rates over sites, +R2 to +R10, are among the candidates.",
)
@click.option(
    "--ascertainment",
    is_flag=True,
    help="Give all candidates +ASC_LEWIS, for data whose invariable sites were left out.",
)
@data_type_option
@seed_option
@json_option
@quiet_option
@json_progress_option
@hardware_options
@file_options(SELECT_MODEL_FILES)
def select_model(
    alignment: Path,
    tree: Path | None,
    criterion: str,
    free_rates: bool,
    ascertainment: bool,
    data_type: str,
    seed: int,
    as_json: bool,
    quiet: bool,
    json_progress: str | None,
    hardware: Hardware,
    outputs: Outputs,
) -> None:
    """Choose the substitution model, and the rates over sites, that describe ALIGNMENT best.

    Candidates are all models for the kind of data, each with equal rates, +I, +G4, +I+G4, and free rates as long as
    another one gains. Branch lengths and parameters are optimised for each on the same tree. `plltool search --model
    auto` chooses in the same way, and searches under the chosen model.
    """
    outputs.claim()
    import plltool

    with Reporter(quiet, outputs.log, json_progress) as reporter:
        choice = plltool.select_model(
            load_alignment(alignment, data_type),
            tree,
            criterion=criterion,
            free_rates=free_rates,
            ascertainment=ascertainment,
            seed=seed,
            **asdict(hardware),
        )
        outputs.write(choice.texts(given_command()))
        outputs.remove_stale()
        for line in choice.table().splitlines():
            reporter.write_log(line)
    if as_json:
        print_line(choice.to_json(given_command()))
        return
    lines = [*choice.table(SHOWN).splitlines(), choice.describe(), f"seconds: {choice.seconds:.1f}"]
    for line in [*lines, *outputs.describe()]:
        print_line(line)
