"""``plltool ancestral``: the states at the inner nodes of a tree."""

from __future__ import annotations

from pathlib import Path

import plltool
from plltool.cli.command import command
from plltool.cli.options import tree_option
from plltool.cli.outputs import Outputs, file_options
from plltool.cli.tree_command import TreeTask, describe_fit, tree_task_options


@command()
@tree_option
@tree_task_options()
@file_options("ancestral", source="alignment")
def ancestral(tree: Path, task: TreeTask, outputs: Outputs) -> None:
    """Reconstruct ancestral states: the marginal probability of each state at each internal node of TREE.

    Also find the jointly most probable states of all nodes (Pupko et al. 2000) and the mutations on branches. Mutations
    lead away from the root of the tree in the file; see --outgroup.

    Branch lengths and free parameters are optimised first.
    """
    result = task.run(lambda data, given, shared: plltool.ancestral_states(data, given, **shared), tree, outputs)
    task.telling.print(result, [*describe_fit(result), *outputs.describe()])
