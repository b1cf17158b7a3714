"""``plltool show``: a tree as a picture."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from plltool.cli.command import command
from plltool.cli.option_values import PATH, WRITTEN
from plltool.cli.options import outgroup_option
from plltool.cli.outputs import claim_files, named_outputs
from plltool.cli.reporting import Reporter
from plltool.cli.terminal import print_line, print_results
from plltool.constants import DRAWING_WIDTH, ROOT_KINDS

SHOWN_TAXA = 40  # a search on a terminal ends with a drawing of its tree if it has at most this many taxa

root_option = click.option(
    "--root",
    type=click.Choice(ROOT_KINDS),
    help="Root: in the middle of the longest path (midpoint), where the tree is closest to a molecular clock (mad,"
    " minimal ancestor deviation, Tria et al. 2017), or beside the taxa of --outgroup.",
)


@command(
    examples=(
        "plltool show run.support.nwk --root midpoint --ladderize",
        "plltool show run.best.nwk --outgroup Lemur_catta --svg tree.svg --pdf tree.pdf",
        "plltool show run.date.nex --latest 2014.8 --svg dated.svg",
    ),
)
@click.argument("tree", type=PATH)
@root_option
@outgroup_option
@click.option("--ladderize", is_flag=True, help="Put the smaller of two clades first.")
@click.option("--supports/--no-supports", default=True, help="Draw supports of internal branches, or not.")
@click.option("--node-names", is_flag=True, help="Draw names of internal nodes, too.")
@click.option("--unrooted", is_flag=True, help="In pictures, spread the clades around a point.")
@click.option(
    "--latest",
    type=float,
    metavar="YEAR",
    help="Year of the latest tip, if branch lengths are years: pictures get an axis of years, and bars where TREE has"
    " intervals of its nodes, as PREFIX.date.nex of plltool date, and NEXUS of BEAST and MrBayes.",
)
@click.option("--output", "-o", type=WRITTEN, help="Write the picture, as the end of the name says: .svg, .pdf, .png.")
@click.option("--svg", type=WRITTEN, help="Write the picture as SVG.")
@click.option("--pdf", type=WRITTEN, help="Write the picture as PDF, which needs matplotlib.")
@click.option("--png", type=WRITTEN, help="Write the picture as PNG, which needs matplotlib, too.")
@click.option(
    "--width",
    type=click.IntRange(20, 20000),
    help=f"Width: characters, by default that of the terminal; or points of pictures, by default {DRAWING_WIDTH:.0f}.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw lines with - | + only.")
@click.option("--redo", is_flag=True, help="Replace the files if they exist.")
def show(
    tree: Path,
    root: str | None,
    outgroup: tuple[str, ...],
    ladderize: bool,
    supports: bool,
    node_names: bool,
    unrooted: bool,
    latest: float | None,
    output: Path | None,
    svg: Path | None,
    pdf: Path | None,
    png: Path | None,
    width: int | None,
    ascii_only: bool,
    redo: bool,
) -> None:
    """Draw the first tree in TREE (Newick or NEXUS) with characters, unless an option names a file for a picture.

    Branch lengths are in proportion; a tree without lengths is drawn with equal ones.
    """
    kind = output.suffix.lower().removeprefix(".") if output else ""
    named = {path: word for path, word in ((output, kind), (svg, "svg"), (pdf, "pdf"), (png, "png")) if path}
    for option, given in (("--unrooted", unrooted), ("--latest", latest is not None)):
        if given and not named:
            raise click.UsageError(f"{option} is for --output, --svg, --pdf and --png")
    if unrooted and latest is not None:
        raise click.UsageError("--latest is for a tree with a root at the left, not for --unrooted")
    claim_files(named_outputs(), redo)
    if output and kind not in ("svg", "pdf", "png"):
        raise click.UsageError(f"--output: found {output}, expected a name that ends in .svg, .pdf or .png")
    import plltool

    with Reporter(quiet=False):
        drawing = plltool.show(tree, root, outgroup or None, ladderize, latest, node_names)
        for path, word in named.items():
            write = plltool.write_text if word == "svg" else plltool.write_bytes
            write(path, getattr(drawing, word)(width or DRAWING_WIDTH, supports, unrooted))
    for path in named:
        print_results([f"picture: {path}"])
    if not named:
        columns = width or shutil.get_terminal_size().columns
        print_line(drawing.text(columns, supports, ascii_only or not prints_lines()).removesuffix("\n"))


def draw_small(tree: Path | str, n_taxa: int) -> None:
    """On a terminal draw a tree, a file or Newick text, if it has at most SHOWN_TAXA taxa."""
    import plltool

    if n_taxa <= SHOWN_TAXA and sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        print_line("\n" + plltool.show(tree).text(columns, ascii_only=not prints_lines()).removesuffix("\n"))


def prints_lines() -> bool:
    """Whether stdout can show the lines that boxes are drawn with."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
