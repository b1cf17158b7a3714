"""``plltool alrt``: supports of branches by the likelihood of their nearest neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import plltool
from plltool.cli.command import command
from plltool.cli.options import seed_option, tree_option
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.support import kinds_option
from plltool.cli.tree_command import TreeTask, describe_fit, tree_task_options
from plltool.constants import ALRT_KINDS, ALRT_REPLICATES, MOVE_KINDS


@command()
@tree_option
@kinds_option(
    MOVE_KINDS,
    ",".join(ALRT_KINDS),
    "Which supports, in the order of the labels: sh-alrt and lbp in per cent, abayes and sprta from 0 to 1.",
)
@click.option(
    "--replicates",
    type=click.IntRange(min=1),
    default=ALRT_REPLICATES,
    help="Number of resampled alignments for SH-aLRT and lbp.",
)
@seed_option
@tree_task_options()
@file_options("alrt")
def alrt(tree: Path, supports: tuple[str, ...], replicates: int, seed: int, task: TreeTask, outputs: Outputs) -> None:
    """Compute the SH-aLRT, aBayes, LBP and SPRTA supports of TREE, a tree of the taxa in ALIGNMENT.

    Branch lengths and free parameters are optimised first. Each internal branch is compared with its two
    nearest-neighbour interchanges, also for --supports lbp, the local bootstrap (Adachi & Hasegawa 1996b). --supports
    sprta compares the place of the subtree at either end of each branch with all other places (De Maio et al. 2025).
    `plltool support` computes supports by replicate trees, fbp and tbe.
    """
    own: dict[str, Any] = {"kinds": supports, "replicates": replicates, "seed": seed}
    result = task.run(lambda data, given, shared: plltool.alrt(data, given, **own, **shared), tree, outputs)
    lines = [*describe_fit(result), f"supports: {'/'.join(supports)}"]
    task.telling.print(result, [*lines, *outputs.describe(tree=result.supports.newick())])
