"""Marginal probabilities of the states at inner nodes.

The joint likelihood of the data and a state at a node is computed with the engine's usual instructions: a tip with this
state in every pattern is joined to the node by a branch of length 0. The engine holds such a tip for each state, after
the taxa of the tree (`with_state_tips`).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plltool.alignment.patterns import Patterns, batches
from plltool.arrays import FloatArray, IndexArray, IntArray, likelihood_weights
from plltool.engine import program as prog
from plltool.engine.contract import INSTRUCTION_WORDS
from plltool.optimise.likelihood import TreeLikelihood

Beyond = tuple[IntArray, IntArray]  # what lies beyond the roots of subtrees, and the branches that lead there


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


def node_states(
    likelihood: TreeLikelihood, n_states: Sequence[int], subtrees: tuple[IndexArray, IndexArray] | None = None
) -> list[FloatArray]:
    """Marginal posterior probability of each state at each inner node (Yang, Kumar & Nei 1995, eq. 4).

    The engine of the likelihood has the tips of `with_state_tips`, all directed CLAs and a scratch slot. `subtrees`
    are, instead of all inner nodes, roots of subtrees, given the data of their own taxa only: inner nodes, and the
    column of the neighbour behind which each lies. There all states have the same prior probability, as Mo et al.
    (2023) have it; under a mixture of profiles, relative to the mean frequencies. Returns for each part float64
    (n_nodes, n_patterns, n_states).
    """
    tree, view = likelihood.tree, likelihood.view
    if subtrees is not None:
        joint = _probabilities(likelihood, view.incoming[subtrees], n_states)
        given_state = [own / model.frequencies for own, model in zip(joint, likelihood.models, strict=True)]
        return [own / own.sum(axis=2, keepdims=True) for own in given_state]
    nodes, columns = view.preorder[np.argsort(view.preorder[:, 0])].T  # the columns of their parents
    outer = (view.incoming[nodes, columns], tree.edges[nodes, columns])
    return _probabilities(likelihood, view.outgoing[nodes, columns], n_states, outer)


def _probabilities(
    likelihood: TreeLikelihood, operands: IntArray, n_states: Sequence[int], outer: Beyond | None = None
) -> list[FloatArray]:
    """Posterior probabilities (n, n_patterns, n_states) of each part; arguments as for `_with_each_state`."""
    n = max(n_states)
    sizes = zip(likelihood.engine.part_patterns, n_states, strict=True)
    probabilities = [np.empty((len(operands), size, k)) for size, k in sizes]
    for some in batches(len(operands), n * likelihood.engine.n_patterns):
        own_outer = None if outer is None else (outer[0][some], outer[1][some])
        lnl = _with_each_state(likelihood, operands[some], n, own_outer)
        for part, own in zip(probabilities, likelihood.split_patterns(lnl), strict=True):
            part[some] = likelihood_weights(own[:, : part.shape[2]], axis=1).swapaxes(1, 2)
    return probabilities


def _with_each_state(likelihood: TreeLikelihood, operands: IntArray, n_states: int, outer: Beyond | None) -> FloatArray:
    """(n, n_states, n_patterns) joint lnL of data and each state at the roots of subtrees (n,); -inf where impossible.

    `outer` : (n,) what lies beyond each root, and (n,) the branches that lead there; None for the subtrees alone.
    """
    tree, scratch = likelihood.tree, likelihood.scratch
    subtree, state = np.repeat(operands, n_states), ~(tree.n_taxa + np.tile(np.arange(n_states), len(operands)))
    nothing = tree.n_edges  # the branch of length 0
    beyond, branch = (state, nothing) if outer is None else (np.repeat(side, n_states) for side in outer)
    rows = np.stack([
        prog.newview(scratch, subtree, nothing, state, nothing),
        prog.evaluate(np.arange(len(subtree)), beyond, scratch, branch),  # first the side of the root
    ], axis=1)  # fmt: skip
    lengths = np.concatenate([tree.lengths, np.zeros((1, *tree.lengths.shape[1:]))])
    request = prog.Request(
        rows.reshape(-1, INSTRUCTION_WORDS),
        len(subtree),
        "node states",
        pieces=2 * np.arange(len(subtree), dtype=np.int32),
        scratch=range(scratch, scratch + 1),
        impossible=True,
    )
    return likelihood.directed().execute_sites(request, lengths.T).reshape(len(operands), n_states, -1)
