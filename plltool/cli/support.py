"""``plltool support``: supports of a tree's branches by replicate trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

import plltool
from plltool.cli.command import command
from plltool.cli.option_values import PATH, completes
from plltool.cli.options import json_option, option_or_argument, outgroup_option
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_results
from plltool.constants import MOVE_KINDS, REPLICATE_KINDS, SUPPORT_KINDS
from plltool.errors import show_name
from plltool.registry import split_words


def kinds_option(known: Sequence[str], default: str, text: str) -> Callable[..., Any]:
    """--supports: kinds among those `known`, in the order given, each once."""
    return click.option(
        "--supports",
        default=default,
        show_default=bool(default),
        callback=partial(_parse_kinds, known),
        metavar="KIND[,KIND]",
        **completes(*known, files=False),
        help=text,
    )


def _parse_kinds(known: Sequence[str], _ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    if not value and not param.default:
        return ()
    kinds = tuple(dict.fromkeys(split_words(value)))
    for kind in kinds or (value,):
        if kind not in known:
            where = "alrt" if kind in MOVE_KINDS else "support" if kind in REPLICATE_KINDS else "search"
            hint = f"; `plltool {where}` knows it" if kind in SUPPORT_KINDS else ""
            raise click.BadParameter(f"found {show_name(kind)}, expected some of: {', '.join(known)}{hint}")
    return kinds


@command()
@option_or_argument("--tree", help="The tree, Newick or NEXUS. It may also be the first argument.")
@option_or_argument(
    "--replicates",
    multiple=True,
    help="Trees of the same taxa, Newick or NEXUS, any number in a file; may be repeated. They may also be arguments.",
)
@click.argument("tree_argument", type=PATH, required=False, metavar="[TREE]")
@click.argument("replicates_argument", type=PATH, nargs=-1, metavar="[REPLICATES]...")
@kinds_option(
    REPLICATE_KINDS,
    "fbp",
    "fbp: per cent of the replicates that have the branch (Felsenstein 1985); tbe: transfer bootstrap expectation,"
    " 0 to 1 (Lemoine et al. 2018); rootstrap: per cent of the replicates that have their root on the branch"
    " (Naser-Khdour et al. 2022), which needs replicates with roots.",
)
@outgroup_option
@json_option
@file_options("support", source="tree")
def support(
    tree: Path,
    replicates: tuple[Path, ...],
    supports: tuple[str, ...],
    outgroup: tuple[str, ...],
    as_json: bool,
    outputs: Outputs,
) -> None:
    """Write how well replicate trees, the files REPLICATES, support the branches of TREE.

    Labels belong to branches, whatever the outgroup. `plltool bootstrap` makes replicate trees. `plltool alrt` computes
    supports that need none, SH-aLRT, aBayes, LBP and SPRTA.
    """
    outputs.claim()
    with Reporter(quiet=False):
        found = plltool.supports(tree, replicates, supports, outgroup or None)
        outputs.finish(found.texts())
    print_results([*found.describe(), *outputs.describe()], found.to_json() if as_json else None)
