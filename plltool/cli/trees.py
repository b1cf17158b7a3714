"""``plltool trees``: what is in files of many trees - distances and consensus."""

from __future__ import annotations

import json
from pathlib import Path

import click

from plltool.cli.command import Command
from plltool.cli.options import PATH, json_option
from plltool.cli.outputs import claim_files, write_or_print
from plltool.cli.reporting import Reporter
from plltool.constants import MAJORITY

files_argument = click.argument("files", nargs=-1, required=True, type=PATH)
output_option = click.option("--output", type=PATH, metavar="FILE", help="Write to FILE, not to stdout.")
redo_option = click.option("--redo", is_flag=True, help="Replace FILE if it exists.")


@click.group()
def trees() -> None:
    """Distances and consensus of the trees in files (Newick, any number of trees, or NEXUS; gzipped or not).

    All trees must have the same taxa; nodes may have any number of branches. Rooted trees count as unrooted ones.
    """


@trees.command(cls=Command, examples=("plltool trees distances run.bootstraps.nwk run.best.nwk --kind wrf",))
@files_argument
@click.option(
    "--kind",
    type=click.Choice(["rf", "wrf", "branch-score"]),
    default="rf",
    show_default=True,
    help="rf: splits in one tree only (Robinson & Foulds); wrf: summed differences of branch lengths; branch-score: the"
    " root of their summed squares (Kuhner & Felsenstein).",
)
@click.option("--relative", is_flag=True, help="RF distances divided by the most possible, 2 (taxa - 3).")
@output_option
@redo_option
@json_option
def distances(
    files: tuple[Path, ...], kind: str, relative: bool, output: Path | None, redo: bool, as_json: bool
) -> None:
    """The distances of all pairs of trees in FILES, as a table with a row for each tree, separated by tabs.
    """
    if relative and kind != "rf":
        raise click.UsageError("--relative is for --kind rf")
    claim_files([output] if output else [], redo)
    import plltool

    with Reporter(quiet=True):
        matrix = plltool.tree_distances(files, kind, relative)
    if as_json:
        text = json.dumps({"kind": kind, "relative": relative, "distances": matrix.tolist()})
    else:
        text = "\n".join("\t".join(f"{value:.9g}" for value in row) for row in matrix.tolist())
    write_or_print(text + "\n", output)


@trees.command(
    cls=Command,
    examples=("plltool trees consensus run.bootstraps.nwk --rule extended --output run.consensus.nwk",),
)
@files_argument
@click.option(
    "--rule",
    type=click.Choice(["majority", "extended", "strict"]),
    default="majority",
    show_default=True,
    help="majority: splits of more than --threshold of the trees; extended: others that fit besides, the most frequent"
    " first; strict: those of all trees.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(MAJORITY, 1, max_open=True),
    default=MAJORITY,
    show_default=True,
    help="Share of the trees that a majority is more than.",
)
@output_option
@redo_option
def consensus(files: tuple[Path, ...], rule: str, threshold: float, output: Path | None, redo: bool) -> None:
    """The consensus of the trees in FILES as Newick.

    Labels of inner branches are the per cent of the trees that have them, lengths the means over these trees.
    """
    claim_files([output] if output else [], redo)
    import plltool

    with Reporter(quiet=True):
        found = plltool.consensus(files, rule, threshold)
    write_or_print(plltool.write_consensus(found) + "\n", output)
