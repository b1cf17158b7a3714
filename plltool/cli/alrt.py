"""``plltool alrt``: supports of branches by the likelihood of their nearest neighbours."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from plltool.cli.options import (
    OutputChoice,
    Question,
    alignment_argument,
    hardware_options,
    outgroup_option,
    output_options,
    question_options,
    seed_option,
    tree_option,
)
from plltool.cli.outputs import describe_models
from plltool.cli.support import kinds_option
from plltool.cli.tree_command import ask_of_tree, one_tree, print_answer
from plltool.constants import ALRT_REPLICATES, SUPPORT_KINDS
from plltool.hardware import Hardware


@click.command(short_help="Supports of a tree's branches by likelihood (by replicate trees: support).")
@alignment_argument
@tree_option
@kinds_option(
    SUPPORT_KINDS,
    ",".join(SUPPORT_KINDS),
    "Which supports, in the order of the labels: sh-alrt in per cent, abayes from 0 to 1.",
)
@click.option(
    "--replicates", type=click.IntRange(min=1), default=ALRT_REPLICATES, show_default=True, help="Of SH-aLRT."
)
@seed_option
@question_options
@outgroup_option
@hardware_options
@output_options
def alrt(
    alignment: Path,
    tree: Path,
    supports: tuple[str, ...],
    replicates: int,
    seed: int,
    question: Question,
    outgroup: tuple[str, ...],
    hardware: Hardware,
    output: OutputChoice,
) -> None:
    """SH-aLRT and aBayes supports of the branches of a tree, lengths and free parameters optimised.

    Each inner branch is compared with its two nearest-neighbour interchanges. With --prefix the tree with its supports
    is PREFIX.support.nwk; PREFIX.json tells them branch by branch. Supports by replicate trees, fbp and tbe, are those
    of `plltool support`.

    \b
    Example: plltool alrt data/primates.phy --tree primates.best.nwk --model GTR+F+G4 --prefix primates.alrt
    """
    import plltool

    ask = partial(plltool.alrt, kinds=supports, n_replicates=replicates, seed=seed)
    texts = {"support.nwk": lambda result: result.labelled + "\n"}
    trees = one_tree(tree, question)
    result = ask_of_tree(ask, alignment, trees, question, outgroup, hardware, output, texts)
    lines = [
        f"lnL: {result.lnl:.6f}",
        *describe_models(result),
        f"supports: {'/'.join(supports)}",
        f"tree: {result.labelled}",
    ]
    print_answer(result, question.as_json, lines)
