"""``plltool simulate``: alignments that evolve along a tree."""

from __future__ import annotations

from pathlib import Path

import click

import plltool
from plltool.cli.command import command
from plltool.cli.option_values import PATH, WRITTEN
from plltool.cli.options import seed_option
from plltool.cli.outputs import claim_files, named_outputs, write_or_print
from plltool.cli.reporting import Reporter


@command()
@click.option("--tree", required=True, type=PATH, help="Tree, Newick or NEXUS, with branch lengths.")
@click.option(
    "--model",
    required=True,
    metavar="MODEL|FILE",
    help="Substitution model with its values, or a file: the JSON record of a run, or a partition file.",
)
@click.option("--sites", required=True, type=click.IntRange(min=1), help="Number of columns of the alignment.")
@seed_option
@click.option(
    "--output",
    type=WRITTEN,
    help="File to write: PHYLIP if its name ends in .phy or .phylip, otherwise FASTA; a table if states have names."
    "  [default: FASTA on stdout]",
)
@click.option("--redo", is_flag=True, help="Replace FILE if it exists.")
def simulate(tree: Path, model: str, sites: int, seed: int, output: Path | None, redo: bool) -> None:
    """Simulate an alignment that evolves along a tree under a model.

    Each column draws a rate category, a class if the model is a mixture, a state at the root, and changes along the
    branches. There are no gaps. With a partition file, each partition gets its columns, and branch lengths times its
    scaler; the tree file may instead have a tree for each partition, as PREFIX.parts.nwk of a search does.
    """
    claim_files(named_outputs(), redo)
    with Reporter(quiet=False):
        made = plltool.simulate(str(tree), model, sites, seed)
    write_or_print(made.format_alignment(output or ""), output, "alignment")
