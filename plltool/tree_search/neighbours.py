"""The nearest-neighbour interchanges of inner branches, with five branch lengths optimised, many at a time.

An inner branch joins two pairs of subtrees, 0 1 | 2 3; its interchanges are 0 2 | 1 3 and 0 3 | 1 2. A sweep optimises
the three lengths at one end of each new inner branch by Newton steps, then the three lengths at the other end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IntArray
from plltool.constants import (
    MAX_BACKTRACKS,
    MAX_BRANCH_LENGTH,
    MAX_NEIGHBOUR_SWEEPS,
    MIN_BRANCH_LENGTH,
    NEIGHBOUR_EPSILON,
)
from plltool.engine import program as prog
from plltool.engine.contract import INSTRUCTION_WORDS, TRIPLET_VALUES
from plltool.engine.kinds import AnyClas
from plltool.optimise.lengths import predicted_gains
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.steps import apply_step, newton_step
from plltool.tree_search.insertions import add_parts, flatten_lengths, join, triplet_step

INTERCHANGES = ((0, 2, 1, 3), (0, 3, 1, 2))  # the four subtrees in pairs: the first two, the last two
SIDES = ((0, 1, 2, 3), (2, 3, 0, 1))  # places of the lengths at the optimised node, then at the other
INNER = 4  # place of the length of the inner branch


def neighbour_sites(likelihood: TreeLikelihood, branches: npt.NDArray[np.integer]) -> FloatArray:
    """lnL of each pattern on the two interchanges of each inner branch, with the five lengths around it optimised.

    The tree is not changed. Each launch takes half as many interchanges as there are scratch slots.

    Returns
    -------
    float64 (n_branches, 2, n_patterns), not weighted.
    """
    operands, lengths = _surroundings(likelihood, branches)
    pairings = np.array(INTERCHANGES)
    operands = operands[:, pairings].reshape(-1, 4)
    lengths = lengths[..., np.insert(pairings, INNER, INNER, axis=1)]  # (n, [n_parts,] 2, 5)
    lengths = np.moveaxis(lengths, -2, 1).reshape(-1, *lengths.shape[1:-2], 5)
    sites = np.empty((len(operands), likelihood.engine.n_patterns))
    at_once = max(1, likelihood.n_scratch // 2)
    for start in range(0, len(operands), at_once):
        some = slice(start, start + at_once)
        best = _optimise(likelihood, operands[some], lengths[some])
        sites[some] = _evaluate(likelihood, operands[some], best)
    return sites.reshape(len(branches), len(INTERCHANGES), -1)


def _surroundings(
    likelihood: TreeLikelihood, branches: npt.NDArray[np.integer]
) -> tuple[IntArray, FloatArray]:
    """The operands of the four subtrees (n, 4) and the five lengths (n, [n_parts,] 5) at each branch, its own last."""
    tree, view = likelihood.tree, likelihood.view
    operands, edges = [], []
    for end in range(2):
        node, other = tree.ends[branches, end], tree.ends[branches, 1 - end]
        column = np.argmax(tree.neighbours[node] == other[:, None], axis=1)
        for turn in (1, 2):
            operands.append(view.incoming[node, (column + turn) % 3])
            edges.append(tree.edges[node, (column + turn) % 3])
    edges.append(branches)
    return np.stack(operands, axis=1), np.moveaxis(tree.lengths[np.stack(edges, axis=1)], 1, -1)


def _optimise(likelihood: TreeLikelihood, operands: IntArray, lengths: FloatArray) -> FloatArray:
    """Optimise the lengths (n, [n_parts,] 5) from those given."""
    best = np.clip(lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
    lnl = np.full(len(operands), -np.inf)
    active = np.arange(len(operands))
    for _ in range(MAX_NEIGHBOUR_SWEEPS):
        before = lnl[active]
        for near_0, near_1, far_0, far_1 in SIDES:
            at = best[active]
            slots = likelihood.scratch + np.arange(len(active))
            beyond = 2 * np.arange(len(active))
            newviews = prog.newview(
                slots, operands[active, far_0], beyond, operands[active, far_1], beyond + 1
            )
            clas = likelihood.directed().extend(newviews, flatten_lengths(at[..., [far_0, far_1]]).T)
            joined = np.column_stack([operands[active, near_0], operands[active, near_1], slots])
            places = [near_0, near_1, INNER]
            lnl[active], at[..., places] = optimise_joins(clas, joined, at[..., places])
            best[active] = at
        active = active[lnl[active] - before >= NEIGHBOUR_EPSILON]
        if not len(active):
            break
    return best


def optimise_joins(clas: AnyClas, operands: IntArray, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Optimise the lengths (n, [n_parts,] 3) at nodes where operands (n, 3) meet; returns lnL (n,) and the lengths.

    A Newton step changes all three lengths together. If it fails, each length takes a step of its own uphill, which is
    halved after every further failure.
    """
    best = lengths.copy()
    lnl = np.full(best.shape[:-1], -np.inf)
    failures = np.zeros(best.shape[:-1], dtype=np.int64)
    values = np.empty((*lnl.shape, TRIPLET_VALUES))
    active, trial = np.arange(len(best)), best.copy()
    while len(active):
        answer = join(clas, operands[active], trial)
        better = answer[..., 0] > lnl[active]
        lnl[active] = np.where(better, answer[..., 0], lnl[active])
        best[active] = np.where(better[..., None], trial, best[active])
        values[active] = np.where(better[..., None], answer, values[active])
        failures[active] = np.where(better, 0, failures[active] + 1)
        d1, d2 = values[active][..., 1:4], values[active][..., 4:7]
        promise = predicted_gains(best[active], d1, d2).sum(axis=-1)
        going = (promise >= NEIGHBOUR_EPSILON / 4) & (failures[active] <= MAX_BACKTRACKS)
        active = active[going if going.ndim == 1 else going.any(axis=1)]
        together = triplet_step(best[active], values[active])[0]
        alone = newton_step(best[active], values[active][..., 1:4], values[active][..., 4:7])
        damped = alone * 0.5 ** np.maximum(failures[active] - 1, 0)[..., None]
        trial = apply_step(best[active], np.where(failures[active][..., None] == 0, together, damped))
    return add_parts(lnl), best


def _evaluate(likelihood: TreeLikelihood, operands: IntArray, lengths: FloatArray) -> FloatArray:
    """lnL of each pattern (n, n_patterns) on subtrees joined as 0 1 | 2 3 with these lengths."""
    n = len(operands)
    slots = likelihood.scratch + 2 * np.arange(n)
    branch = 5 * np.arange(n)
    rows = np.stack([
        prog.newview(slots, operands[:, 0], branch, operands[:, 1], branch + 1),
        prog.newview(slots + 1, operands[:, 2], branch + 2, operands[:, 3], branch + 3),
        prog.evaluate(np.arange(n), slots, slots + 1, branch + INNER),
    ], axis=1)  # fmt: skip
    pieces = 3 * np.arange(n, dtype=np.int32)
    request = prog.Request(rows.reshape(-1, INSTRUCTION_WORDS), n, "neighbours", pieces=pieces)
    return likelihood.directed().execute_sites(request, flatten_lengths(lengths).T)
