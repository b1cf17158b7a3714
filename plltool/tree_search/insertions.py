"""Optimise the three branch lengths at promising insertions, hundreds at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.arrays import BoolArray, FloatArray, IndexArray, IntArray
from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine import program as prog
from plltool.engine.contract import TRIPLET_VALUES
from plltool.engine.requests import Clas
from plltool.optimise.likelihood import TreeLikelihood, add_linked
from plltool.optimise.steps import apply_step, at_bound, without_rounding
from plltool.tree_search.scan import Prunes, Steps, branch_lengths

TRIPLET_ROUNDS = 4  # evaluations of the three lengths at a candidate insertion, with Newton steps in between
MIN_PROMISE = 1e-3  # gain in lnL; the lengths at an insertion whose next step promises less are good enough


@dataclass(frozen=True)
class Insertions:
    """Moves of one neighbourhood, ready to be applied."""

    joints: IntArray  # (n,) inner node of the subtree to prune
    columns: IntArray  # (n,) its column there
    branches: IndexArray  # (n,) the branch to regraft into, as numbered before any move
    toward_gap: BoolArray  # (n,) bool, whether the first end of that branch is the one nearer to the gap
    healed: FloatArray  # (n,) length of the branch that closes the gap; (n, n_parts) if parts have lengths of their own
    # (n, 3) optimised lengths from the joint towards the gap, away from it, and to the subtree; likewise (n, n_parts,
    # 3)
    lengths: FloatArray
    lnl: FloatArray  # (n,) log-likelihood with these lengths and all other lengths unchanged

    def __len__(self) -> int:
        return len(self.lnl)


def optimise_insertions(
    likelihood: TreeLikelihood,
    prunes: Prunes,
    steps: Steps,
    chosen: IndexArray,
    floor: float,
    start: FloatArray | None = None,
) -> Insertions:
    """Optimise the three branch lengths at the insertions of the `chosen` steps by Newton's method.

    A scratch slot per insertion holds the CLA of the side with the gap, so each launch takes as many insertions as
    there are scratch slots. An insertion takes no further step if that promises less than MIN_PROMISE, or too little
    to reach the lnL `floor`; the result holds the best lengths that it met. `start` are lengths to start from, as in
    the result; by default each insertion is in the middle of its branch.
    """
    tree = likelihood.tree
    prune = steps.prune[chosen]
    joints, columns, branches = prunes.joints[prune], prunes.columns[prune], steps.branch[chosen]
    if start is None:
        half = tree.lengths[branches] / 2
        start = np.stack([half, half, tree.lengths[tree.edges[joints, columns]]], axis=-1)
    start = np.clip(start, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
    lnl, lengths = np.empty(len(chosen)), np.empty_like(start)
    for first in range(0, len(chosen), likelihood.n_scratch):
        part = slice(first, first + likelihood.n_scratch)
        lnl[part], lengths[part] = _optimise_batch(likelihood, prunes, steps, chosen[part], floor, start[part])
    beyond = steps.beyond[chosen]  # of the end away from the gap
    first_end = tree.ends[branches, 0]
    far_node = np.where(beyond < 0, ~beyond, beyond // 3 + tree.n_taxa)
    return Insertions(joints, columns, branches, first_end != far_node, prunes.healed[prune], lengths, lnl)


def _optimise_batch(
    likelihood: TreeLikelihood, prunes: Prunes, steps: Steps, chosen: IndexArray, floor: float, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    prepared, operands, up = prepare_insertions(likelihood, prunes, steps, chosen)
    best, best_lnl = start, np.full(start.shape[:-1], -np.inf)
    active, trial = np.arange(len(chosen)), best.copy()
    values = np.empty((*best_lnl.shape, TRIPLET_VALUES))
    for _ in range(TRIPLET_ROUNDS):
        answer = join(prepared, operands[active], trial, up[active])
        better = answer[..., 0] > best_lnl[active]
        best[active] = np.where(better[..., None], trial, best[active])
        values[active] = np.where(better[..., None], answer, values[active])
        best_lnl[active] = np.where(better, answer[..., 0], best_lnl[active])
        step, promise = triplet_step(best[active], values[active])
        stepped = apply_step(best[active], step)
        trial = np.where(better[..., None], stepped, (best[active] + trial) / 2)
        rise = np.sum(values[active, ..., 1:4] * (stepped - best[active]), axis=-1)
        gain = add_parts(np.minimum(promise, rise))  # where lnL is concave, a step gains less than slopes times step
        onward = (gain >= MIN_PROMISE) & (add_parts(best_lnl[active]) + gain >= floor)
        active, trial = active[onward], trial[onward]
        if not len(active):
            break
    return add_parts(best_lnl), best


def prepare_insertions(
    likelihood: TreeLikelihood, prunes: Prunes, steps: Steps, chosen: IndexArray
) -> tuple[Clas, IntArray, BoolArray]:
    """CLAs at the `chosen` steps, at most as many as there are scratch slots, and for `join` operands and `up` (n, 3).

    The operands are the side with the gap, the other one, and the subtree.
    """
    slots = likelihood.scratch + np.arange(len(chosen))
    chain = _chain_program(steps, chosen, slots)
    prepared = likelihood.directed().extend(chain, branch_lengths(likelihood, prunes).T)
    prune = steps.prune[chosen]
    moving = likelihood.view.incoming[prunes.joints[prune], prunes.columns[prune]]
    operands = np.column_stack([slots, steps.beyond[chosen], moving])
    upward = steps.upward[chosen] == 1
    up = np.column_stack([~upward, upward, np.zeros_like(upward)]) & likelihood.is_rooted
    return prepared, operands, up


def join(clas: Clas, operands: npt.NDArray[np.integer], lengths: FloatArray, up: BoolArray | None = None) -> FloatArray:
    """Values (n, [n_parts,] 10) of TRIPLETs at nodes where operands (n, 3) meet, with lengths (n, [n_parts,] 3).

    `up` (n, 3) are the operands that lie towards a root; by default none does.
    """
    branches = np.arange(operands.size).reshape(-1, 3)
    if up is not None:
        branches = np.where(up, ~branches, branches)
    joins = np.stack([operands, branches], axis=2).reshape(-1, 6)
    by_branch = flatten_lengths(lengths)
    return add_linked(clas.triplets(joins, by_branch.T), by_branch)


def flatten_lengths(lengths: FloatArray) -> FloatArray:
    """(n k, [n_parts]) from (n, [n_parts,] k): item by item, branch by branch."""
    return np.moveaxis(lengths, -1, 1).reshape(-1, *lengths.shape[1:-1])


def add_parts(lnl: FloatArray) -> FloatArray:
    """(n,) from (n,) or (n, n_parts)."""
    return lnl if lnl.ndim == 1 else lnl.sum(axis=1)


def _chain_program(steps: Steps, chosen: IndexArray, slots: IndexArray) -> IntArray:
    """The newviews along the path from the gap to each chosen step; each path has a slot."""
    rows = []
    at: IndexArray = np.asarray(chosen, dtype=np.int64)
    while len(at):  # from the insertion back to the gap
        depth = steps.depth[at]
        source = np.where(depth == 0, steps.source[at], slots)
        newviews = prog.newview(slots, source, steps.source_branch[at], steps.side[at], steps.side_branch[at])
        rows.append(np.column_stack([slots, depth, newviews]))
        onward = steps.parent[at] >= 0
        at, slots = steps.parent[at[onward]], slots[onward]
    chain = np.concatenate(rows)
    return chain[np.lexsort([chain[:, 1], chain[:, 0]]), 2:].astype(np.int32)


def triplet_step(lengths: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton step (..., 3) for the three lengths at each node, and the gain in lnL (...) that it promises.

    `values` (..., 10) are those of `program.triplet`. The Hessian is scaled by the lengths, so that lengths of
    different magnitudes have the same weight. A length at a bound that lnL pulls beyond it stays there.
    """
    gradient = without_rounding(values[..., 1:4]) * lengths
    hessian = np.empty((*lengths.shape, 3))
    for column, (i, j) in enumerate([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]):
        hessian[..., i, j] = hessian[..., j, i] = values[..., 4 + column] * lengths[..., i] * lengths[..., j]
    stays = at_bound(lengths, gradient)
    hessian[stays[..., :, None] | stays[..., None, :]] = 0.0
    relative, promise = uphill_step(np.where(stays, 0.0, gradient), hessian)
    return relative * lengths, promise


def uphill_step(gradient: FloatArray, hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton step (..., n) from gradient (..., n) and Hessian (..., n, n), and the gain (...) that it promises.

    The eigenvalues of the Hessian are made negative, so that the step leads uphill wherever it is taken.
    """
    eigenvalues, vectors = np.linalg.eigh(hessian)
    curvature = np.maximum(np.abs(eigenvalues), np.finfo(float).tiny ** 0.5)
    rotated = np.einsum("...ij,...i->...j", vectors, gradient)
    step = np.einsum("...ij,...j->...i", vectors, rotated / curvature)
    return step, np.sum(rotated**2 / (2 * curvature), axis=-1)
