"""Marginal probabilities of the states at inner nodes.

The joint likelihood of the data and a state at a node is computed with the engine's usual instructions: a tip with this
state in every pattern is joined to the node by a branch of length 0. The engine holds such a tip for each state, after
the taxa of the tree (`with_state_tips`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import FloatArray, IndexArray
from plltool.engine import program as prog
from plltool.engine.contract import INSTRUCTION_WORDS
from plltool.optimise.likelihood import TreeLikelihood
from plltool.statistics.resampling import batches


def with_state_tips(parts: Sequence[Patterns]) -> list[Patterns]:
    """The patterns of parts with a row for each state after the taxa; rows of gaps for states of other parts only."""
    n_rows = max(part.states.n_states for part in parts)
    extended = []
    for part in parts:
        states = part.states
        rows = np.full(n_rows, states.all_states_code, dtype=part.codes.dtype)
        rows[: states.n_states] = states.state_codes
        codes = np.vstack([part.codes, np.repeat(rows[:, None], part.n_patterns, axis=1)])
        extended.append(replace(part, codes=np.ascontiguousarray(codes)))
    return extended


def node_states(likelihood: TreeLikelihood, n_states: Sequence[int]) -> list[FloatArray]:
    """Marginal posterior probability of each state at each inner node (Yang, Kumar & Nei 1995, eq. 4).

    Parameters
    ----------
    likelihood : on an engine with the tips of `with_state_tips`, all directed CLAs and a scratch slot
    n_states : number of states of each part

    Returns
    -------
    for each part float64 (n_taxa - 2, n_patterns, n_states), in the order of the inner nodes; each row sums to 1.
    """
    tree, n = likelihood.tree, max(n_states)
    nodes = np.arange(tree.n_taxa, tree.n_nodes)
    sizes = zip(likelihood.engine.part_patterns, n_states, strict=True)
    probabilities = [np.empty((len(nodes), size, k)) for size, k in sizes]
    for some in batches(len(nodes), n * likelihood.engine.n_patterns):
        lnl = _with_each_state(likelihood, nodes[some], n)
        for part, own in zip(probabilities, likelihood.split_patterns(lnl), strict=True):
            relative = own[:, : part.shape[2]]
            shares = np.exp(relative - relative.max(axis=1, keepdims=True))
            part[some] = (shares / shares.sum(axis=1, keepdims=True)).swapaxes(1, 2)
    return probabilities


def _with_each_state(likelihood: TreeLikelihood, nodes: IndexArray, n_states: int) -> FloatArray:
    """(n_nodes, n_states, n_patterns) joint lnL of the data and each state at each node; -inf where impossible."""
    tree, view, scratch = likelihood.tree, likelihood.view, likelihood.scratch
    node, state = np.repeat(nodes, n_states), np.tile(np.arange(n_states), len(nodes))
    nothing = tree.n_edges  # the branch of length 0
    rows = np.stack([
        prog.newview(scratch, view.outgoing[node, 0], nothing, ~(tree.n_taxa + state), nothing),
        prog.evaluate(np.arange(len(node)), scratch, view.incoming[node, 0], tree.edges[node, 0]),
    ], axis=1)  # fmt: skip
    lengths = np.concatenate([tree.lengths, np.zeros((1, *tree.lengths.shape[1:]))])
    request = prog.Request(
        rows.reshape(-1, INSTRUCTION_WORDS),
        len(node),
        "node states",
        pieces=2 * np.arange(len(node), dtype=np.int32),
        scratch=range(scratch, scratch + 1),
        impossible=True,
    )
    return likelihood.directed().execute_sites(request, lengths.T).reshape(len(nodes), n_states, -1)
