"""``plltool support``: supports of a tree's branches by replicate trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli.command import command
from plltool.cli.options import PATH, outgroup_option, split_outgroup
from plltool.cli.outputs import OutputFile, Outputs, file_options, print_line
from plltool.cli.reporting import Reporter
from plltool.constants import ABAYES, SH_ALRT, SUPPORT_KINDS
from plltool.errors import show_name

if TYPE_CHECKING:
    from plltool.analyses.support import Supports

MAPPED_KINDS = ("fbp", "tbe")
SEARCH_KINDS = (*MAPPED_KINDS, "ufboot", *SUPPORT_KINDS)

SUPPORT_FILES = (
    OutputFile("support.nwk", "tree with supports", "labels such as 91.3/92.4: the kinds in the order of --supports"),
    OutputFile("support.KIND.nwk", "tree with supports of one kind", kinds=SEARCH_KINDS),
    OutputFile("support.nex", "tree with supports as NEXUS", "all kinds by name, as FigTree reads them"),
    OutputFile("support.json", "supports of each branch", "JSON"),
)


def kinds_option(known: Sequence[str], default: str, text: str) -> Callable[..., Any]:
    """--supports: those of the kinds `known` that are asked for, in that order, each once."""
    return click.option(
        "--supports",
        default=default,
        show_default=bool(default),
        callback=partial(_parse_kinds, known),
        metavar="KIND[,KIND]",
        help=text,
    )


def _parse_kinds(known: Sequence[str], _ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    if not value and not param.default:
        return ()
    kinds = tuple(dict.fromkeys(kind.strip() for kind in value.split(",")))
    for kind in kinds:
        if kind not in known:
            where = "alrt" if kind in SUPPORT_KINDS else "support" if kind in MAPPED_KINDS else "search"
            hint = f"; `plltool {where}` knows it" if kind in SEARCH_KINDS else ""
            raise click.BadParameter(f"found {show_name(kind)}, expected some of: {', '.join(known)}{hint}")
    return kinds


@command(
    short_help="Supports of a tree's branches by replicate trees (by likelihood: alrt).",
    examples=("plltool support --tree run.best.nwk --replicates run.bootstraps.nwk --supports fbp,tbe --prefix run",),
)
@click.option("--tree", required=True, type=PATH, metavar="FILE", help="The tree, Newick or NEXUS.")
@click.option(
    "--replicates",
    required=True,
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="Trees of the same taxa, Newick or NEXUS, any number in a file; may be repeated.",
)
@kinds_option(
    MAPPED_KINDS,
    "fbp",
    "fbp: per cent of the replicates that have the branch (Felsenstein 1985); tbe: transfer bootstrap expectation,"
    " 0 to 1 (Lemoine et al. 2018).",
)
@outgroup_option
@file_options(SUPPORT_FILES, source="tree")
def support(
    tree: Path, replicates: tuple[Path, ...], supports: tuple[str, ...], outgroup: tuple[str, ...], outputs: Outputs
) -> None:
    """Write how well replicate trees support the branches of a tree.

    Labels belong to branches, whatever the outgroup. `plltool bootstrap` makes replicate trees; supports that need
    none, SH-aLRT and aBayes, are those of `plltool alrt`.
    """
    outputs.claim()
    import plltool
    from plltool.run.results import check_outgroup

    with Reporter(quiet=False):
        found = plltool.supports(tree, replicates, supports)
        members = split_outgroup(outgroup, found.tree.names)
        check_outgroup(members, found.tree.names, "the tree")
        lines = write_supports(found, outputs, members)
        outputs.remove_stale()
    for line in lines:
        print_line(line)


def write_supports(supports: Supports, outputs: Outputs, outgroup: Sequence[str] | None) -> list[str]:
    """Write the files; returns what to tell of them. Of an outgroup that is not one clade the first taxon is taken."""
    import json

    from plltool.analyses.support import MEANINGS, supports_to_files
    from plltool.run.results import usable_outgroup

    usable, remarks = usable_outgroup(supports.tree, outgroup)
    lines = [f"warning: {remark}" for remark in remarks]
    record = json.dumps(supports.as_record(usable), indent=1) + "\n"
    outputs.write({**supports_to_files(supports, usable), "support.json": record})
    for kind, number in supports.n_replicates.items():
        of = "" if kind == ABAYES else f" ({number} replicates)" if kind == SH_ALRT else f" ({number} trees)"
        lines.append(f"{outputs.path(f'support.{kind}.nwk')}: {MEANINGS[kind]}{of}")
    table = outputs.path("support.json")
    return [*lines, f"{outputs.path('support.nwk')}: all kinds, named", f"{table}: a table of the branches"]
