"""``plltool concordance``: how far gene trees and sites agree with the branches of a tree."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

import plltool
from plltool import Hardware
from plltool.cli import options
from plltool.cli.command import command, given_command
from plltool.cli.option_values import PATH
from plltool.cli.outputs import Outputs, file_options
from plltool.constants import SITE_QUARTETS

scf_option = click.option(
    "--scf",
    type=click.IntRange(min=0),
    default=SITE_QUARTETS,
    help="Number of quartets that are drawn around each branch for site concordance factors; 0 leaves these out."
    " If a branch has no more than that, all are used.",
)
scfl_option = click.option(
    "--scfl",
    is_flag=True,
    help="Also compute site concordance factors from the likelihoods of ancestral states (Mo et al. 2023); branch"
    " lengths and free parameters are optimised first.",
)


@dataclass(frozen=True, kw_only=True)
class ConcordanceTask:
    """What is compared with the tree, and how."""

    alignment: Path | None = options.option(type=PATH, help="Alignment, for site concordance factors (also --scfl).")
    gcf: tuple[Path, ...] = options.option(
        multiple=True,
        type=PATH,
        help="Gene trees, Newick or NEXUS, any number in a file; may be repeated. They may lack taxa. They may also be"
        " arguments behind the tree.",
    )
    scf: int = options.filled_by(scf_option)
    scfl: bool = options.filled_by(scfl_option)
    model: str | None = options.filled_by(options.model_option)
    brlen: str = options.filled_by(options.brlen_option)
    reading: options.Reading = options.filled_by(options.reading_options)
    fixed: bool = options.filled_by(options.fixed_option)
    seed: int = options.filled_by(options.seed_option)
    outgroup: tuple[str, ...] = options.filled_by(options.outgroup_option)
    telling: options.Telling = options.filled_by(options.telling_options)
    hardware: Hardware = options.filled_by(options.hardware_options)


def sort_files(command: Callable[..., Any]) -> Callable[..., Any]:
    """Tell by the options given what the arguments FILES are: a tree and gene trees, or beside --tree the alignment."""

    @click.argument("files", nargs=-1, type=PATH, metavar="TREE [GENE_TREES]... | [ALIGNMENT]")
    @functools.wraps(command)
    def with_sorted(files: tuple[Path, ...], tree: Path | None, **values: Any) -> Any:
        ctx, rest = click.get_current_context(), files
        if tree is None:
            if not files:
                raise click.UsageError("missing TREE, as an argument or by --tree", ctx)
            tree, rest, what = files[0], files[1:], "gcf"
        else:
            what = "alignment"
        if rest and (values[what] or (len(rest) > 1 and what == "alignment")):
            beside = f"--{what}" if values[what] else "--tree and an alignment"
            raise click.UsageError(f"found {rest[-1]} as an argument and also {beside}, expected only one", ctx)
        if rest:
            values[what] = rest[0] if what == "alignment" else rest
        ctx.params["tree"] = tree
        return command(tree=tree, **values)

    return with_sorted


@command()
@sort_files
@click.option("--tree", type=PATH, help="The tree, Newick or NEXUS. It may also be the first argument.")
@options.packed("task", ConcordanceTask)
@file_options("concordance", source="tree")
def concordance(tree: Path, task: ConcordanceTask, outputs: Outputs) -> None:
    """Compute how many gene trees and how many sites of an alignment agree with each internal branch of a tree.

    The arguments are TREE and files of GENE_TREES. Beside --tree the only argument is the ALIGNMENT.

    Gene concordance factors (gCF) and site concordance factors (sCF) are those of Minh, Hahn & Lanfear (2020). Gene
    trees also give quartet supports and internode certainty. The tree may have multifurcations.
    """
    if task.alignment is None and not task.gcf:
        raise click.UsageError("found neither gene trees nor an alignment, expected at least one")
    if task.alignment is None and task.scfl:
        raise click.UsageError("--scfl needs an alignment")
    outputs.claim()
    with task.telling.reporter(outputs) as reporter:
        data = None if task.alignment is None else options.load_alignment(task.alignment, task.reading)
        how = options.keywords(task, "model", "seed", "brlen", "fixed") | asdict(task.hardware)
        how |= {"quartets": task.scf, "likelihood": task.scfl, "outgroup": task.outgroup or None}
        found = plltool.concordance(tree, list(task.gcf) or None, data, listener=reporter.progress, **how)
        outputs.finish(found.texts(given_command()))
    task.telling.print(found, [*found.supports.describe(), *outputs.describe()])
