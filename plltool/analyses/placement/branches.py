"""Further sequences on the branches of a tree that stays as it is: score every branch, optimise the best.

A *query* is a tip that the engine holds behind the taxa of the tree. It is attached to a branch of length t by a
pendant branch, x from the branch's first end and t - x from its second. Both x and the pendant length are optimised, t
is not, as in pplacer (Matsen, Kodner & Armbrust 2010) and EPA-NG (Barbera et al. 2019). So columns in which a query has
no data have the same likelihood wherever it is, and an engine may lack them. Where places are almost equally good, t
is then optimised, too, on an engine with all columns.
"""

from dataclasses import dataclass, replace

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray, IntArray, slices
from plltool.constants import MAX_BACKTRACKS, MAX_SCRATCH_SLOTS, MIN_BRANCH_LENGTH, SCAN_VALUES_PER_LAUNCH
from plltool.engine import program as prog
from plltool.engine.contract import INSTRUCTION_WORDS, TRIPLET_VALUES
from plltool.optimise.lengths import apply_step, at_bound, newton_step, without_rounding
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree_search.neighbours import join, optimise_joins, uphill_step

ELSEWHERE_FORESIGHT = 10.0  # times the gain that the next step promises: what all further steps may gain
PLACE_MARGIN = 12.0  # lnL below the best place of a query, from which places do not matter: a weight of 6e-6
PLACE_SHARES = (0.1, 0.5, 0.9)  # of a branch, from its first end: where queries are scored
PLACE_PRECISION = 1e-4  # lnL that a step must promise
PENDANT = 2  # place of the pendant length among the three at a query
AT_END = 2.0  # times the least length: a place that is no further from an end of its branch is there, but for rounding


@dataclass(frozen=True)
class Places:
    """Queries (n,), from 0, on branches, and lnL of the tree with each, over the columns of the engine.

    The lengths (n, 3) are those from the place to the first and to the second end of the branch, and the pendant one.
    """

    queries: IndexArray
    branches: IndexArray
    lengths: FloatArray
    lnl: FloatArray

    def __getitem__(self, items: IndexArray | BoolArray) -> "Places":
        return Places(self.queries[items], self.branches[items], self.lengths[items], self.lnl[items])


def score_branches(likelihood: TreeLikelihood, n_queries: int, pendant: float) -> FloatArray:
    """The highest lnL (n_queries, n_branches) of each query at a few points of each branch, at a given pendant length.

    The points are at PLACE_SHARES of the branch: on a long one, the middle alone may be far from where the query fits.
    The CLA at a point is made once for all queries, in the first scratch slot.
    """
    tree, middle = likelihood.tree, likelihood.scratch
    scores = np.full((n_queries, tree.n_edges), -np.inf)
    at_once = max(1, SCAN_VALUES_PER_LAUNCH // (likelihood.engine.n_groups * n_queries))
    for first in range(0, tree.n_edges, at_once):
        branches = np.arange(first, min(first + at_once, tree.n_edges))
        n, (near, far) = len(branches), likelihood.view.sides[branches].T
        # a piece for each branch, with a NEWVIEW and an EVALUATE for each query
        rows = np.empty((n, 1 + n_queries, INSTRUCTION_WORDS), dtype=np.int32)
        rows[:, 0] = prog.newview(middle, near, branches, far, tree.n_edges + branches)
        tips = np.tile(~(tree.n_taxa + np.arange(n_queries)), n)
        rows[:, 1:] = prog.evaluate(np.arange(len(tips)), middle, tips, 2 * tree.n_edges).reshape(n, n_queries, -1)
        request = prog.Request(
            rows.reshape(-1, INSTRUCTION_WORDS),
            len(tips),
            "placement scores",
            pieces=np.arange(n, dtype=np.int32) * (1 + n_queries),
            scratch=range(middle, middle + 1),
        )
        for share in PLACE_SHARES:
            lengths = np.concatenate([share * tree.lengths, (1.0 - share) * tree.lengths, [pendant]])
            found = likelihood.directed().execute(request, lengths).sum(axis=0).reshape(n, n_queries).T
            scores[:, branches] = np.maximum(scores[:, branches], found)
    return scores


def optimise_places(likelihood: TreeLikelihood, queries: IndexArray, branches: IndexArray, pendant: float) -> Places:
    """Optimise where each query sits on its branch, and its pendant length, by Newton steps from the middle.

    Places that do not promise to come within PLACE_MARGIN of the query's best one are given up early; the result holds
    the best lengths that they met.
    """
    half = likelihood.tree.lengths[branches] / 2
    best = np.column_stack([half, half, np.full(len(half), pendant)])
    lnl, values = np.full(len(best), -np.inf), np.empty((len(best), TRIPLET_VALUES))
    failures = np.zeros(len(best), dtype=np.int64)
    operands = _operands(likelihood, queries, branches)
    active, trial = np.arange(len(best)), best.copy()
    while len(active):
        meeting = operands[active]
        parts = slices(len(active), MAX_SCRATCH_SLOTS)
        answer = np.concatenate([join(likelihood.directed(), meeting[part], trial[part]) for part in parts])
        better = answer[:, 0] > lnl[active]
        best[active] = np.where(better[:, None], trial, best[active])
        values[active] = np.where(better[:, None], answer, values[active])
        lnl[active] = np.where(better, answer[:, 0], lnl[active])
        failures[active] = np.where(better, 0, failures[active] + 1)
        trial, promise = _slide(best[active], values[active], failures[active])
        hopeful = lnl[active] + ELSEWHERE_FORESIGHT * promise >= _leading(queries, lnl)[active] - PLACE_MARGIN
        going = hopeful & (promise >= PLACE_PRECISION) & (failures[active] <= MAX_BACKTRACKS)
        active, trial = active[going], trial[going]
    return Places(queries, branches, best, lnl)


def free_branches(likelihood: TreeLikelihood, places: Places) -> Places:
    """The places within PLACE_MARGIN of each query's best one, with the length of the branch optimised, too.

    That is what RAxML does (Berger, Krompass & Stamatakis 2011). The engine needs all columns.
    """
    near = places[places.lnl >= _leading(places.queries, places.lnl) - PLACE_MARGIN]
    operands = _operands(likelihood, near.queries, near.branches)
    parts = slices(len(operands), MAX_SCRATCH_SLOTS)
    found = [optimise_joins(likelihood.directed(), operands[part], near.lengths[part]) for part in parts]
    lnl, freed = (np.concatenate(column) for column in zip(*found, strict=True))
    return replace(near, lengths=freed, lnl=lnl)


def _leading(queries: IndexArray, lnl: FloatArray) -> FloatArray:
    """For each place (n,) the best lnL of its query."""
    best = np.full(queries.max() + 1, -np.inf)
    np.maximum.at(best, queries, lnl)
    return np.asarray(best[queries])


def _slide(lengths: FloatArray, values: FloatArray, failures: IndexArray) -> tuple[FloatArray, FloatArray]:
    """Lengths (n, 3) after a step along the branch and in the pendant length, and the gain that Newton's step promises.

    `values` (n, 10) are those of `program.triplet`. The first step is Newton's, its Hessian scaled by the length of the
    branch and the pendant length. If it fails, each of the two takes a step of its own, which is halved after every
    further failure. A place at an end of its branch that would go beyond stays there, and so does a pendant length at a
    bound.
    """
    whole, pendant = lengths[:, 0] + lengths[:, 1], lengths[:, PENDANT]
    least = np.minimum(MIN_BRANCH_LENGTH, whole / 2)
    slopes = without_rounding(np.column_stack([values[:, 1] - values[:, 2], values[:, 3]]))
    at_ends = lengths[:, :2] <= AT_END * least[:, None]
    beyond = (at_ends[:, 0] & (slopes[:, 0] <= 0)) | (at_ends[:, 1] & (slopes[:, 0] >= 0))
    scales = np.column_stack([np.where(beyond, 0.0, whole), np.where(at_bound(pendant, slopes[:, 1]), 0.0, pendant)])
    along, mixed = values[:, 4] + values[:, 5] - 2 * values[:, 7], values[:, 8] - values[:, 9]
    hessian = np.stack([along, mixed, mixed, values[:, 6]], axis=1).reshape(-1, 2, 2)
    relative, promise = uphill_step(slopes * scales, hessian * scales[:, :, None] * scales[:, None, :])
    alone = newton_step(np.column_stack([whole, pendant]), slopes, np.column_stack([along, values[:, 6]]))
    damped = np.where(scales > 0, alone, 0.0) * 0.5 ** np.maximum(failures - 1, 0)[:, None]
    step = np.where(failures[:, None] == 0, relative * scales, damped)
    first = np.clip(lengths[:, 0] + step[:, 0], least, whole - least)
    return np.column_stack([first, whole - first, apply_step(pendant, step[:, 1])]), promise


def _operands(likelihood: TreeLikelihood, queries: IndexArray, branches: IndexArray) -> IntArray:
    """(n, 3) the operands that meet at each place: both sides of the branch, and the query."""
    return np.column_stack([likelihood.view.sides[branches], ~(likelihood.tree.n_taxa + queries)])
