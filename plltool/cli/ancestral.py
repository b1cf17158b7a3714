"""``plltool ancestral``: the states at the inner nodes of a tree."""

from __future__ import annotations

from pathlib import Path

from plltool import Hardware
from plltool.cli.command import command
from plltool.cli.options import hardware_options, tree_option
from plltool.cli.outputs import REPORT_FILES, OutputFile, Outputs, file_options
from plltool.cli.tree_command import TreeTask, tree_task_options

ANCESTRAL_FILES = (
    OutputFile("state", "states", "a table of node, site, most probable state and probabilities, as IQ-TREE's"),
    OutputFile("state.nwk", "tree with the names of the nodes"),
    OutputFile("joint.fasta", "joint states", "the jointly most probable sequences of the nodes"),
    OutputFile("joint.tsv", "table of joint states", "in place of joint.fasta where states have names"),
    OutputFile("mutations.tsv", "mutations", "a table of node, parent, site and the two states"),
    OutputFile("mutations.nex", "tree with the mutations on its branches", "NEXUS, by joint states"),
    OutputFile("ancestral.json", "record", "JSON, with the most probable sequences"),
    OutputFile("ancestral.log", "log"),
    *REPORT_FILES,
)


@command(
    short_help="Reconstruct ancestral states.",
    examples=("plltool ancestral data/primates.phy primates.best.nwk --model GTR+F+G4 --prefix primates",),
)
@tree_option
@tree_task_options
@hardware_options
@file_options(ANCESTRAL_FILES, source="alignment")
def ancestral(tree: Path, task: TreeTask, hardware: Hardware, outputs: Outputs) -> None:
    """Reconstruct ancestral states: the marginal probability of each state at each internal node of TREE.

    Also find the jointly most probable states of all nodes (Pupko et al. 2000) and the mutations on branches. Mutations
    lead away from the root of the tree in the file; see --outgroup.

    Branch lengths and free parameters are optimised first.
    """
    outputs.claim()
    import plltool

    result = task.run(plltool.ancestral_states, task.one_tree(tree), hardware, outputs)
    task.print(result, [f"lnL: {result.lnl:.6f}", *result.describe_models(), *outputs.describe()])
