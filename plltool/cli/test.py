"""``plltool test``: which of some trees the data reject."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plltool.cli.options import (
    PATH,
    OutputChoice,
    Question,
    alignment_argument,
    hardware_options,
    outgroup_option,
    output_options,
    question_options,
    seed_option,
)
from plltool.cli.outputs import claim_files, describe_models
from plltool.cli.tree_command import ask_of_tree, print_answer
from plltool.constants import TEST_LEVEL, TEST_REPLICATES
from plltool.hardware import Hardware

if TYPE_CHECKING:
    from plltool.analyses.topology_tests import TopologyTestResult

P_VALUES = ("kh", "sh", "wkh", "wsh", "au")  # of which small ones reject


@click.command()
@alignment_argument
@click.option("--trees", required=True, type=PATH, metavar="FILE", help="Two trees or more, Newick or NEXUS.")
@click.option(
    "--replicates", type=click.IntRange(min=1), default=TEST_REPLICATES, show_default=True, help="Resampled alignments."
)
@seed_option
@click.option(
    "--site-lnl",
    type=PATH,
    metavar="FILE",
    help="Write the lnL of each site on each tree to FILE, in TREE-PUZZLE's format, which CONSEL reads.",
)
@question_options
@outgroup_option
@hardware_options
@output_options
def test(
    alignment: Path,
    trees: Path,
    replicates: int,
    seed: int,
    site_lnl: Path | None,
    question: Question,
    outgroup: tuple[str, ...],
    hardware: Hardware,
    output: OutputChoice,
) -> None:
    """Tests of topologies: lnL of each tree, KH, SH, weighted KH and SH, ELW and AU from resampled sites.

    Lengths are optimised for each tree, the model for the first one and, if another is better, for that one. A + marks
    a tree that the test leaves standing, a - one that it rejects (below 0.05; not in the 95 % set of ELW).
    PREFIX.trees.nwk has the trees with their lengths, PREFIX.json all numbers.

    \b
    Example: plltool test data/primates.phy --trees candidates.nwk --model GTR+F+G4
    """
    if site_lnl:
        claim_files([site_lnl], output.redo)
    import plltool
    from plltool.io.record import write_text
    from plltool.io.site_values import format_puzzle
    from plltool.io.tree_files import read_trees

    ask = partial(plltool.topology_tests, n_replicates=replicates, seed=seed)
    texts = {"trees.nwk": lambda result: "\n".join(result.newicks) + "\n"}
    result = ask_of_tree(
        ask,
        alignment,
        lambda data: read_trees(trees, data.names, question.resolve),
        question,
        outgroup,
        hardware,
        output,
        texts,
    )
    if site_lnl:
        write_text(site_lnl, format_puzzle(result.tree_site_lnl))
    print_answer(result, question.as_json, [*describe_models(result), *_describe_origin(result), *format_table(result)])


def _describe_origin(result: TopologyTestResult) -> list[str]:
    """Which tree the model comes from."""
    return [] if result.model_tree is None else [f"model optimised on: tree {result.model_tree + 1}"]


def format_table(result: TopologyTestResult) -> list[str]:
    """One line for each tree."""
    tests = result.tests
    lines = [f"{'tree':>5} {'lnL':>16} {'delta':>10}" + "".join(f"{name:>10}" for name in ("bp", *P_VALUES, "elw"))]
    for row, (lnl, delta) in enumerate(zip(tests.lnl.tolist(), tests.delta.tolist(), strict=True)):
        cells = [f"{tests.bp[row]:8.4f}  "]
        for name in P_VALUES:
            p = float(getattr(tests, name)[row])
            cells.append(f"{p:8.4f} {'-' if p < TEST_LEVEL else '+'}")
        cells.append(f"{tests.elw[row]:8.4f} {'+' if tests.in_elw_set[row] else '-'}")
        lines.append(f"{row + 1:>5} {lnl:16.6f} {delta:10.4f}" + "".join(cells))
    return lines
