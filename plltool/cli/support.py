"""``plltool support``: supports of a tree's branches by replicate trees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from plltool.cli.options import PATH, OutputChoice, outgroup_option, output_options, split_outgroup
from plltool.cli.output import claim_files, print_line
from plltool.constants import ABAYES, SH_ALRT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plltool.supports import Supports

MAPPED_KINDS = ("fbp", "tbe")


@click.command()
@click.option("--tree", required=True, type=PATH, metavar="FILE", help="The tree, Newick or NEXUS.")
@click.option(
    "--replicates",
    required=True,
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="Trees of the same taxa, Newick or NEXUS, any number in a file; may be repeated.",
)
@click.option(
    "--supports",
    "kinds",
    default="fbp",
    show_default=True,
    metavar="KIND[,KIND]",
    help="fbp: per cent of the replicates that have the branch (Felsenstein 1985); tbe: transfer bootstrap expectation,"
    " 0 to 1 (Lemoine et al. 2018).",
)
@outgroup_option
@output_options
def support(
    tree: Path, replicates: tuple[Path, ...], kinds: str, outgroup: tuple[str, ...], output: OutputChoice
) -> None:
    """Write how well replicate trees support the branches of a tree.

    PREFIX.support.KIND.nwk is the tree with supports of one kind as labels, PREFIX.support.nwk the same with all kinds
    as named comments, PREFIX.support.json a table. Labels belong to branches, whatever the outgroup.

    Example: plltool support --tree run.best.nwk --replicates run.bootstraps.nwk --supports fbp,tbe --prefix run
    """
    wanted = split_kinds(kinds)
    prefix = output.prefix or tree.with_name(tree.name + ".plltool")
    claim_supports(prefix, wanted, output.redo)
    from plltool.results import check_outgroup
    from plltool.supports import map_supports

    found = map_supports(tree, replicates, wanted)
    members = split_outgroup(outgroup, found.tree.names)
    check_outgroup(members, found.tree.names, "the tree")
    for line in write_supports(found, prefix, members):
        print_line(line)


def split_kinds(text: str) -> tuple[str, ...]:
    """Kinds of supports, each once."""
    return tuple(dict.fromkeys(kind.strip() for kind in text.split(",")))


def support_path(prefix: Path, ending: str) -> Path:
    return prefix.with_name(f"{prefix.name}.{ending}")


def claim_supports(prefix: Path, kinds: Sequence[str], redo: bool, known: Sequence[str] = MAPPED_KINDS) -> None:
    """`claim_files` of all that `write_supports` writes; raises InputError for a kind that is not `known`, too."""
    from plltool.supports import check_kinds

    check_kinds(kinds, known)
    endings = [*(f"support.{kind}.nwk" for kind in kinds), "support.nwk", "support.json"]
    claim_files([support_path(prefix, ending) for ending in endings], redo)


def write_supports(supports: Supports, prefix: Path, outgroup: Sequence[str] | None) -> list[str]:
    """Write the files; returns what to tell of them. Of an outgroup that is not one clade the first taxon is taken."""
    import json

    from plltool.io.record import write_text
    from plltool.results import usable_outgroup
    from plltool.supports import MEANINGS, supports_to_files

    usable, remarks = usable_outgroup(supports.tree, outgroup)
    lines = [f"warning: {remark}" for remark in remarks]
    texts = supports_to_files(supports, usable)
    for ending, text in texts.items():
        write_text(support_path(prefix, ending), text)
    write_text(support_path(prefix, "support.json"), json.dumps(supports.as_record(), indent=1) + "\n")
    for kind, number in supports.n_replicates.items():
        of = "" if kind == ABAYES else f" ({number} replicates)" if kind == SH_ALRT else f" ({number} trees)"
        lines.append(f"{support_path(prefix, f'support.{kind}.nwk')}: {MEANINGS[kind]}{of}")
    table = support_path(prefix, "support.json")
    return [*lines, f"{support_path(prefix, 'support.nwk')}: all kinds, named", f"{table}: a table of the branches"]
