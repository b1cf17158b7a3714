"""``plltool show``: a tree as a picture."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import click

import plltool
from plltool.cli.command import command
from plltool.cli.option_values import PATH, WRITTEN
from plltool.cli.options import filled_by, option, outgroup_option, packed
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


@dataclass(frozen=True, kw_only=True)
class Look:
    """How the tree is drawn, and to which files."""

    root: str | None = filled_by(root_option)
    outgroup: tuple[str, ...] = filled_by(outgroup_option)
    ladderize: bool = option(help="Put the smaller of two clades first.")
    supports: bool = option(
        "--supports/--no-supports", default=True, help="Draw supports of internal branches, or not."
    )
    node_names: bool = option(help="Draw names of internal nodes, too.")
    unrooted: bool = option(help="In pictures, spread the clades around a point.")
    latest: float | None = option(
        type=float,
        metavar="YEAR",
        help="Year of the latest tip, if branch lengths are years: pictures get an axis of years, and bars where TREE"
        " has intervals of its nodes, as PREFIX.date.nex of plltool date, and NEXUS of BEAST and MrBayes.",
    )
    output: Path | None = option(
        "--output", "-o", type=WRITTEN, help="Write the picture, as the end of the name says: .svg, .pdf, .png."
    )
    svg: Path | None = option(type=WRITTEN, help="Write the picture as SVG.")
    pdf: Path | None = option(type=WRITTEN, help="Write the picture as PDF, which needs matplotlib.")
    png: Path | None = option(type=WRITTEN, help="Write the picture as PNG, which needs matplotlib, too.")
    width: int | None = option(
        min=20,
        max=20000,
        help="Width: characters, by default that of the terminal; or points of pictures, by default"
        f" {DRAWING_WIDTH:.0f}.",
    )
    ascii_only: bool = option("--ascii", help="Draw lines with - | + only.")
    redo: bool = option(help="Replace the files if they exist.")


@command()
@click.argument("tree", type=PATH)
@packed("look", Look)
def show(tree: Path, look: Look) -> None:
    """Draw the first tree in TREE (Newick or NEXUS) with characters, unless an option names a file for a picture.

    Branch lengths are in proportion; a tree without lengths is drawn with equal ones.
    """
    kind = look.output.suffix.lower().removeprefix(".") if look.output else ""
    words = {look.output: kind, look.svg: "svg", look.pdf: "pdf", look.png: "png"}
    named = {path: word for path, word in words.items() if path}
    for option_, given in (("--unrooted", look.unrooted), ("--latest", look.latest is not None)):
        if given and not named:
            raise click.UsageError(f"{option_} is for --output, --svg, --pdf and --png")
    if look.unrooted and look.latest is not None:
        raise click.UsageError("--latest is for a tree with a root at the left, not for --unrooted")
    claim_files(named_outputs(), look.redo)
    if look.output and kind not in ("svg", "pdf", "png"):
        raise click.UsageError(f"--output: found {look.output}, expected a name that ends in .svg, .pdf or .png")
    with Reporter(quiet=False):
        drawing = plltool.show(tree, look.root, look.outgroup or None, look.ladderize, look.latest, look.node_names)
        for path, word in named.items():
            write = plltool.write_text if word == "svg" else plltool.write_bytes
            write(path, getattr(drawing, word)(look.width or DRAWING_WIDTH, look.supports, look.unrooted))
    for path in named:
        print_results([f"picture: {path}"])
    if not named:
        columns = look.width or shutil.get_terminal_size().columns
        text = drawing.text(columns, look.supports, look.ascii_only or not prints_lines())
        print_line(text.removesuffix("\n"))


def draw_small(tree: Path | str, n_taxa: int) -> None:
    """On a terminal draw a tree, a file or Newick text, if it has at most SHOWN_TAXA taxa."""
    if n_taxa <= SHOWN_TAXA and sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        print_line("\n" + plltool.show(tree).text(columns, ascii_only=not prints_lines()).removesuffix("\n"))


def prints_lines() -> bool:
    """Whether stdout can show the lines that boxes are drawn with."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
