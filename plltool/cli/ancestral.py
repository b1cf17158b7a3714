"""``plltool ancestral``: the states at the inner nodes of a tree."""

from __future__ import annotations

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
    tree_option,
)
from plltool.cli.outputs import describe_models, name_files
from plltool.cli.tree_command import ask_of_tree, one_tree, print_answer
from plltool.hardware import Hardware


@click.command()
@alignment_argument
@tree_option
@question_options
@outgroup_option
@hardware_options
@output_options
def ancestral(
    alignment: Path,
    tree: Path,
    question: Question,
    outgroup: tuple[str, ...],
    hardware: Hardware,
    output: OutputChoice,
) -> None:
    """Ancestral states: the marginal probability of each state at each inner node, lengths and parameters optimised.

    PREFIX.state is a table of node, site, most probable state and probabilities, as of IQ-TREE's; PREFIX.state.nwk
    the tree with the nodes' names; PREFIX.json has the most probable sequences. Without --prefix it is
    ALIGNMENT.plltool.

    \b
    Example: plltool ancestral data/primates.phy --tree primates.best.nwk --model GTR+F+G4 --prefix primates
    """
    import plltool
    from plltool.analyses.ancestral import format_states

    prefix = output.prefix or alignment.with_name(alignment.name + ".plltool")
    texts = {"state": format_states, "state.nwk": lambda result: result.labelled + "\n"}
    chosen = OutputChoice(prefix, output.redo)
    result = ask_of_tree(
        plltool.ancestral_states, alignment, one_tree(tree, question), question, outgroup, hardware, chosen, texts
    )
    lines = [f"lnL: {result.lnl:.6f}", *describe_models(result), f"tree: {result.labelled}"]
    lines.append(f"states: {name_files(prefix, ['state'])['state']}")
    print_answer(result, question.as_json, lines)
