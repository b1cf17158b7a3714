"""``plltool simulate``: alignments that evolve along a tree."""

from __future__ import annotations

from pathlib import Path

import click

from plltool.cli.command import command
from plltool.cli.options import PATH, seed_option
from plltool.cli.outputs import claim_files, write_or_print
from plltool.cli.reporting import Reporter


@command(examples=("plltool simulate --tree primates.best.nwk --model primates.json --sites 1000 --output sim.fasta",))
@click.option("--tree", required=True, type=PATH, metavar="FILE", help="Newick or NEXUS, with branch lengths.")
@click.option(
    "--model",
    required=True,
    metavar="MODEL|FILE",
    help="Substitution model with its values, or a file: the JSON record of a run, or a partition file.",
)
@click.option("--sites", required=True, type=click.IntRange(min=1), help="Columns of the alignment.")
@seed_option
@click.option(
    "--output",
    type=PATH,
    metavar="FILE",
    help="Where it goes: PHYLIP if it ends in .phy or .phylip, else FASTA.  [default: FASTA on stdout]",
)
@click.option("--redo", is_flag=True, help="Replace an older file.")
def simulate(tree: Path, model: str, sites: int, seed: int, output: Path | None, redo: bool) -> None:
    """An alignment that evolves along a tree under a model.

    Every column draws a category of rates (and of a mixture a class), a state at the root, and changes along the
    branches. There are no gaps. Of a partition file each part gets its columns, and the tree's lengths times its
    scaler; the tree file may hold a tree for each part instead, as PREFIX.parts.nwk of a search does.
    """
    if output:
        claim_files([output], redo)
    import plltool

    with Reporter(quiet=False):
        made = plltool.simulate(str(tree), model, sites, seed)
    write_or_print(made.format_alignment(output or ""), output)
