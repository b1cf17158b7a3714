"""``plltool support``: supports of a tree's branches by replicate trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from plltool.cli.options import PATH, OutputChoice, outgroup_option, output_options, split_outgroup
from plltool.cli.outputs import claim_files, name_files, print_line
from plltool.cli.reporting import Reporter
from plltool.constants import ABAYES, SH_ALRT, SUPPORT_KINDS
from plltool.errors import show_name

if TYPE_CHECKING:
    from plltool.analyses.support import Supports

MAPPED_KINDS = ("fbp", "tbe")
SEARCH_KINDS = (*MAPPED_KINDS, "ufboot", *SUPPORT_KINDS)


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


@click.command(short_help="Supports of a tree's branches by replicate trees (by likelihood: alrt).")
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
@output_options
def support(
    tree: Path, replicates: tuple[Path, ...], supports: tuple[str, ...], outgroup: tuple[str, ...], output: OutputChoice
) -> None:
    """Write how well replicate trees support the branches of a tree.

    PREFIX.support.KIND.nwk is the tree with supports of one kind as labels, PREFIX.support.nwk the same with all kinds
    as named comments, PREFIX.support.json a table. Labels belong to branches, whatever the outgroup. `plltool
    bootstrap` makes replicate trees; supports that need none, SH-aLRT and aBayes, are those of `plltool alrt`.

    Example: plltool support --tree run.best.nwk --replicates run.bootstraps.nwk --supports fbp,tbe --prefix run
    """
    prefix = output.prefix or tree.with_name(tree.name + ".plltool")
    claim_supports(prefix, output.redo)
    import plltool
    from plltool.run.results import check_outgroup

    with Reporter(quiet=False):
        found = plltool.supports(tree, replicates, supports)
        members = split_outgroup(outgroup, found.tree.names)
        check_outgroup(members, found.tree.names, "the tree")
        lines = write_supports(found, prefix, members)
    for line in lines:
        print_line(line)


def support_path(prefix: Path, ending: str) -> Path:
    return prefix.with_name(f"{prefix.name}.{ending}")


def support_files(prefix: Path) -> list[Path]:
    """All that `write_supports` writes, of whatever kinds."""
    endings = [*(f"support.{kind}.nwk" for kind in SEARCH_KINDS), "support.nwk", "support.json"]
    return list(name_files(prefix, endings).values())


def claim_supports(prefix: Path, redo: bool, resumed: Sequence[str] = ()) -> None:
    """`claim_files` of all support files, for none of an earlier run shall stay.

    Those of a run that is resumed, which has supports of the kinds `resumed`, may be replaced; with others beside them
    they are of another run.
    """
    others = [support_path(prefix, f"support.{kind}.nwk") for kind in SEARCH_KINDS if kind not in resumed]
    is_own = bool(resumed) and not any(path.exists() for path in others)
    claim_files(support_files(prefix), redo or is_own)


def remove_supports(prefix: Path) -> None:
    """Those of an earlier run, which were of another tree."""
    for path in support_files(prefix):
        path.unlink(missing_ok=True)


def write_supports(supports: Supports, prefix: Path, outgroup: Sequence[str] | None) -> list[str]:
    """Write the files; returns what to tell of them. Of an outgroup that is not one clade the first taxon is taken."""
    import json

    from plltool.analyses.support import MEANINGS, supports_to_files
    from plltool.io.record import write_text
    from plltool.run.results import usable_outgroup

    usable, remarks = usable_outgroup(supports.tree, outgroup)
    lines = [f"warning: {remark}" for remark in remarks]
    texts = supports_to_files(supports, usable)
    remove_supports(prefix)
    for ending, text in texts.items():
        write_text(support_path(prefix, ending), text)
    write_text(support_path(prefix, "support.json"), json.dumps(supports.as_record(usable), indent=1) + "\n")
    for kind, number in supports.n_replicates.items():
        of = "" if kind == ABAYES else f" ({number} replicates)" if kind == SH_ALRT else f" ({number} trees)"
        lines.append(f"{support_path(prefix, f'support.{kind}.nwk')}: {MEANINGS[kind]}{of}")
    table = support_path(prefix, "support.json")
    return [*lines, f"{support_path(prefix, 'support.nwk')}: all kinds, named", f"{table}: a table of the branches"]
