"""``plltool test``: which of some trees the data reject."""

from __future__ import annotations

from pathlib import Path

import click

import plltool
from plltool.cli.command import command
from plltool.cli.option_values import WRITTEN
from plltool.cli.options import option_or_argument, seed_option
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.tree_command import TreeTask, tree_task_options
from plltool.constants import TEST_REPLICATES


@command()
@option_or_argument("--trees", "tree", help="File of two or more trees, Newick or NEXUS. It may also be an argument.")
@click.option(
    "--replicates", type=click.IntRange(min=1), default=TEST_REPLICATES, help="Number of resampled alignments."
)
@seed_option
@click.option(
    "--site-lnl",
    type=WRITTEN,
    help="Write the lnL of each site on each tree to FILE, in TREE-PUZZLE's format, which CONSEL reads.",
)
@tree_task_options("[TREES]")
@file_options("test")
def test(tree: Path, replicates: int, seed: int, site_lnl: Path | None, task: TreeTask, outputs: Outputs) -> None:
    """Test which of several TREES the ALIGNMENT rejects: KH, SH, weighted KH, weighted SH, ELW and AU.

    Branch lengths are optimised for each tree. The model is optimised on the first tree and, if another one is better,
    on that one. A + marks a tree that a test keeps, a - one that it rejects (p < 0.05, or outside the 95 % set of ELW).
    """
    result = task.run(
        lambda data, trees, shared: plltool.topology_tests(data, trees, replicates=replicates, seed=seed, **shared),
        *(tree, outputs),
        several=True,
        named=[(site_lnl, lambda result: result.format_site_lnl())],
    )
    model_tree = [] if result.model_tree is None else [f"model optimised on: tree {result.model_tree + 1}"]
    task.telling.print(result, [*result.describe_models(), *model_tree, *result.format_table(), *outputs.describe()])
