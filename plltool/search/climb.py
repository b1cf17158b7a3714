"""Hill climbing by batches of SPR and NNI moves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plltool.constants import GAIN_GRID, INSERTIONS_PER_PRUNE, MIN_MOVE_GAIN, SCORE_CUTOFF, SMOOTHING_EPSILON
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.insertions import Insertions, optimise_insertions
from plltool.search.scan import Steps, all_prunes, score_insertions, walk
from plltool.tree.moves import Undo, prune_regraft
from plltool.tree.topology import FloatArray


def best_steps(steps: Steps, scores: FloatArray, floor: float) -> npt.NDArray[np.intp]:
    """The INSERTIONS_PER_PRUNE best steps of each prune whose score is at least `floor`, in order of steps."""
    kept = np.flatnonzero(scores >= floor)
    order = kept[np.lexsort([-scores[kept], steps.prune[kept]])]
    prune = steps.prune[order]
    first = np.flatnonzero(np.diff(prune, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    return np.sort(order[rank < INSERTIONS_PER_PRUNE])


def find_moves(likelihood: TreeLikelihood, lnl: float, radius: int) -> Insertions:
    """Every promising move within `radius`, best first; `lnl` is that of the current tree, whose CLAs are in place."""
    prunes = all_prunes(likelihood)
    steps = walk(likelihood, prunes, radius)
    scores = score_insertions(likelihood, prunes, steps)
    chosen = best_steps(steps, scores, lnl - SCORE_CUTOFF)
    found = optimise_insertions(likelihood, prunes, steps, chosen)
    return found


def rank_moves(moves: Insertions, lnl: float) -> npt.NDArray[np.intp]:
    """Indices of the moves that gain at least MIN_MOVE_GAIN, best first; ties by index."""
    gain = np.round((moves.lnl - lnl) / GAIN_GRID)
    worthy = np.flatnonzero(gain * GAIN_GRID >= MIN_MOVE_GAIN)
    return worthy[np.argsort(-gain[worthy], kind="stable")]


def apply_moves(likelihood: TreeLikelihood, moves: Insertions, ranked: npt.NDArray[np.intp]) -> list[tuple[int, Undo]]:
    """Apply moves in order, leaving out those that touch what an earlier one changed.

    Returns (move, undo) of those applied.
    """
    tree = likelihood.tree
    touched: set[int] = set()
    applied = []
    for k in ranked.tolist():
        joint, column, branch = int(moves.joints[k]), int(moves.columns[k]), int(moves.branches[k])
        subtree = int(tree.neighbours[joint, column])
        nodes = {joint, *tree.neighbours[joint].tolist(), *tree.ends[branch].tolist()}
        if touched & nodes:
            continue
        toward, away, hanging = moves.lengths[k].tolist()
        first, second = (toward, away) if moves.toward_gap[k] else (away, toward)
        undo = prune_regraft(tree, joint, subtree, branch, float(moves.healed[k]), (first, second, hanging))
        if undo is not None:
            touched |= nodes
            applied.append((k, undo))
    if applied:
        likelihood.topology_changed()
    return applied


def climb_round(
    likelihood: TreeLikelihood, lnl: float, radius: int, epsilon: float = SMOOTHING_EPSILON
) -> tuple[float, int]:
    """One round: find moves, apply the compatible ones, smooth; returns (lnL, moves kept). lnL never falls."""
    moves = find_moves(likelihood, lnl, radius)
    ranked = rank_moves(moves, lnl)
    tree = likelihood.tree
    before = tree.lengths.copy()
    while len(ranked):
        applied = apply_moves(likelihood, moves, ranked)
        if not applied:
            break
        reached = smooth(likelihood, epsilon).lnl
        if reached > lnl:
            return reached, len(applied)
        for _, undo in reversed(applied):
            undo.restore(tree)
        tree.lengths[:] = before
        likelihood.topology_changed()
        ranked = ranked[: len(applied) // 2]
    likelihood.all_derivatives()
    return lnl, 0
