"""``plltool trees``: what is in files of many trees - distances and consensus - and other roots."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import click

import plltool
from plltool.cli.command import Command, Group
from plltool.cli.option_values import PATH, WRITTEN
from plltool.cli.options import Decorator, json_option, outgroup_option
from plltool.cli.outputs import claim_files, named_outputs, write_or_print
from plltool.cli.reporting import Reporter
from plltool.cli.show import root_option
from plltool.constants import MAJORITY
from plltool.registry import ANALYSES

files_argument = click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILES...")


def written(what: str) -> Decorator:
    """--output and --redo of a command that returns the text which is written or printed, and `what` it has."""

    def decorate(command: Callable[..., str]) -> Callable[..., Any]:
        @click.option("--output", type=WRITTEN, help="Write to FILE instead of stdout.")
        @click.option("--redo", is_flag=True, help="Replace FILE if it exists.")
        @functools.wraps(command)
        def with_output(output: Path | None, redo: bool, **values: Any) -> None:
            claim_files(named_outputs(), redo)
            write_or_print(command(**values), output, what)

        return with_output

    return decorate


@click.group(cls=Group, short_help=ANALYSES["trees"].summary)
def trees() -> None:
    """Compute distances and consensus of the trees in files (Newick or NEXUS, any number of trees; compressed or not),
    or root them.

    Nodes may have any degree. For distances and consensus all trees must have the same taxa, and roots are ignored.
    """


@trees.command(
    cls=Command,
    short_help="Print the distances of all pairs of trees.",
    examples=("plltool trees distances run.bootstraps.nwk run.best.nwk --kind wrf",),
)
@files_argument
@click.option(
    "--kind",
    type=click.Choice(["rf", "wrf", "branch-score"]),
    default="rf",
    help="Distance: number of splits in only one of the trees (rf, Robinson & Foulds 1981), sum of the differences of"
    " branch lengths (wrf), or root of the sum of their squares (branch-score, Kuhner & Felsenstein 1994).",
)
@click.option("--relative", is_flag=True, help="Divide RF distances by the largest possible, 2 (taxa - 3).")
@click.option("--pairs", is_flag=True, help="Write a row for each pair of trees instead of one for each tree.")
@written("distances")
@json_option
def distances(files: tuple[Path, ...], kind: str, relative: bool, pairs: bool, as_json: bool) -> str:
    """Print the distances of all pairs of trees in FILES, as a table with a row and a column for each tree.

    Tabs separate the columns. A tree is called by its file and its number there, such as run.nwk:2.
    """
    if relative and kind != "rf":
        raise click.UsageError("--relative is for --kind rf")
    with Reporter(quiet=True):
        trees = plltool.read_tree_set(files)
        matrix = plltool.tree_distances(trees, kind, relative).tolist()
    labels = trees.labels
    if as_json:
        return json.dumps({"kind": kind, "relative": relative, "trees": labels, "distances": matrix}) + "\n"
    rows = [["tree", "other", "distance"]] if pairs else [["tree", *labels]]
    if pairs:
        rows += [[labels[a], labels[b], f"{matrix[a][b]:.9g}"] for a, b in combinations(range(len(labels)), 2)]
    else:
        rows += [[label, *(f"{value:.9g}" for value in row)] for label, row in zip(labels, matrix, strict=True)]
    return "".join("\t".join(row) + "\n" for row in rows)


@trees.command(
    cls=Command,
    short_help="Print the consensus of trees.",
    examples=("plltool trees consensus run.bootstraps.nwk --rule extended --output run.consensus.nwk",),
)
@files_argument
@click.option(
    "--rule",
    type=click.Choice(["majority", "extended", "strict"]),
    default="majority",
    help="Splits to keep: those of more than --threshold of the trees (majority), also others that fit, the most"
    " frequent first (extended), or those of all trees (strict).",
)
@click.option(
    "--threshold",
    type=click.FloatRange(MAJORITY, 1, max_open=True),
    default=MAJORITY,
    help="Share of the trees that a split must exceed.",
)
@written("consensus")
def consensus(files: tuple[Path, ...], rule: str, threshold: float) -> str:
    """Print the consensus of the trees in FILES as Newick.

    Internal branches are labelled with the per cent of the trees that have them. Lengths are means over these trees.
    """
    with Reporter(quiet=True):
        return plltool.write_consensus(plltool.consensus(files, rule, threshold)) + "\n"


@trees.command(
    cls=Command,
    short_help="Print trees with another root.",
    examples=("plltool trees root run.best.nwk --root midpoint --output rooted.nwk",),
)
@files_argument
@root_option
@outgroup_option
@written("trees")
def root(files: tuple[Path, ...], root: str | None, outgroup: tuple[str, ...]) -> str:
    """Print the trees in FILES with a root of two branches, as Newick, one on a line.

    Labels of internal nodes, such as supports, stay with their branches.
    """
    if not (root or outgroup):
        raise click.UsageError("expected --root or --outgroup")
    with Reporter(quiet=False):
        rooted = [newick for path in files for newick in plltool.root_trees(path, root, outgroup or None)]
    return "".join(f"{newick}\n" for newick in rooted)
