"""Ultrafast bootstrap by resampling estimated lnL (Minh, Nguyen & von Haeseler 2013; Hoang et al. 2018).

The lnL of a tree on a resampled alignment is estimated by the lnL of its sites, summed with the weights of the
resampled one (RELL). Of all trees met on the way each resampled alignment keeps the best. To meet trees that some of
them favour, the data are exchanged for one resampled alignment for a moment: all moves that gain there are made, or a
tree is found there from a start tree of its own; then that is climbed again on the true data. Every tree on this way
counts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from plltool.constants import (
    NNI_EPSILON,
    RATCHET_EPSILON,
    RATCHET_RADIUS,
    RELL_CHUNK,
    RELL_TIE,
    ROUND_EPSILON,
    STAGE_EPSILON,
    UFBOOT_CANDIDATES,
    UFBOOT_JUMPS,
)
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.climb import NARROW, climb_round
from plltool.statistics.resampling import resample_once
from plltool.tree.constraint import Constraint
from plltool.tree.splits import bipartitions
from plltool.tree.topology import FloatArray, Tree

IndexArray = npt.NDArray[np.intp]
WeightArray = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


def draw_weights(part_patterns: Sequence[IndexArray], n_sets: int, rng: np.random.Generator) -> WeightArray:
    """How often each pattern is drawn in so many resampled alignments: (n_patterns, n_sets).

    `part_patterns` holds of each part the pattern of each of its sites, (n_sites of the part,); patterns are counted
    from 0 in each part, and the parts' patterns follow one another in the result. Each part is resampled by itself.
    """
    ends = np.cumsum([int(patterns.max()) + 1 for patterns in part_patterns])
    columns = [patterns + first for patterns, first in zip(part_patterns, (0, *ends[:-1]), strict=True)]
    most = max(len(patterns) for patterns in part_patterns)
    weights = np.empty((ends[-1], n_sets), dtype=np.uint16 if most < 1 << 16 else np.uint32)
    for column in range(n_sets):
        weights[:, column] = resample_once(columns, len(weights), rng)
    return weights


class RellPool:
    """Of the trees met so far, the one that is best for each resampled alignment.

    Trees whose estimated lnL differ by less than RELL_TIE are as good as each other: one of them is kept at random,
    each with the same probability, lest a node without support be resolved as the tree that was met first has it.

    Attributes
    ----------
    trees : that are distinct, in the order in which they were met
    chosen : (n_sets,) the number of the tree that each resampled alignment keeps
    """

    def __init__(self, weights: WeightArray, rng: np.random.Generator):
        self.trees: list[Tree] = []
        self.chosen = np.zeros(weights.shape[1], dtype=np.intp)
        self._weights = weights
        self._best = np.full(weights.shape[1], -np.inf)
        self._equals = np.zeros(weights.shape[1])
        self._seen: set[bytes] = set()
        self._rng = rng

    def add(self, likelihood: TreeLikelihood) -> None:
        """Take the tree as it stands into account, unless its topology is known."""
        rows = bipartitions(likelihood.tree)
        key = rows[np.lexsort(rows.T)].tobytes()
        if key in self._seen:
            return
        self._seen.add(key)
        lnls = self.estimate(likelihood.site_lnl())
        draws = self._rng.random(len(lnls))
        better = lnls > self._best + RELL_TIE
        equal = ~better & (lnls > self._best - RELL_TIE)
        self._equals = np.where(better, 1, self._equals + equal)
        takes = better | (equal & (draws * self._equals < 1))
        self._best = np.maximum(self._best, lnls)
        self.chosen[takes] = len(self.trees)
        self.trees.append(likelihood.tree.copy())

    def estimate(self, site_lnl: FloatArray) -> FloatArray:
        """The lnL of a tree on each resampled alignment, (n_sets,), by its lnL of each pattern, (n_patterns,)."""
        lnls = np.zeros(self._weights.shape[1])
        for first in range(0, len(site_lnl), RELL_CHUNK):
            some = slice(first, first + RELL_CHUNK)
            lnls += site_lnl[some] @ self._weights[some].astype(np.float64)
        return lnls


def sample_trees(
    likelihood: TreeLikelihood,
    pool: RellPool,
    weights: WeightArray,
    radius: int,
    rng: np.random.Generator,
    fresh: Callable[[FloatArray], Tree],
    constraint: Constraint | None = None,
) -> Iterator[float]:
    """Meet trees without end; yields the best lnL after each excursion.

    Excursions set out in turn from afar, from the `fresh` start tree of the next resampled alignment, climbed there
    first, and from one of the UFBOOT_CANDIDATES best local optima, chosen at random, with UFBOOT_JUMPS jumps to what
    the next resampled alignments favour: from one alone the climb hardly ever leads to another optimum. All trees obey
    the `constraint`.

    Parameters
    ----------
    fresh : makes a start tree by the weights of all patterns (n_patterns,)
    """
    lnl = smooth(likelihood).lnl
    pool.add(likelihood)
    optima = [(lnl, likelihood.tree.copy())]
    known = {lnl}
    columns = (weights[:, number % weights.shape[1]].astype(np.float64) for number in itertools.count())
    for number in itertools.count():
        joints: IndexArray | None = None
        if number % 2 == 0:
            column = next(columns)
            likelihood.tree.assign(fresh(column))
            _climb_afar(likelihood, column, constraint)
        else:
            likelihood.tree.assign(optima[rng.integers(len(optima))][1])
            likelihood.topology_changed()
            jumps = [_jump(likelihood, next(columns), constraint) for _ in range(UFBOOT_JUMPS)]
            joints = np.unique(np.concatenate(jumps))
        lnl = _climb_back(likelihood, radius, joints, lambda: pool.add(likelihood), constraint)
        if all(abs(lnl - other) > RELL_TIE / 10 for other in known):
            optima.append((lnl, likelihood.tree.copy()))
            optima.sort(key=lambda one: -one[0])
            del optima[UFBOOT_CANDIDATES:]
            known = {other for other, _ in optima}
        yield optima[0][0]


def _climb_afar(likelihood: TreeLikelihood, weights: FloatArray, constraint: Constraint | None) -> None:
    """Climb from the tree as it stands with other weights, roughly: NNI, then SPR nearby."""
    likelihood.topology_changed()
    with likelihood.reweighted(weights):
        lnl = smooth(likelihood, NNI_EPSILON).lnl
        for radius in (1, RATCHET_RADIUS):
            joints = None
            while True:
                done = climb_round(likelihood, lnl, radius, NARROW, joints, constraint=constraint)
                gain, lnl, joints = done.lnl - lnl, done.lnl, done.joints
                if gain < NNI_EPSILON or not done.n_moves:
                    break


def _jump(likelihood: TreeLikelihood, weights: FloatArray, constraint: Constraint | None) -> IndexArray:
    """Make all moves that gain with other weights; returns the joints that are worth another look."""
    with likelihood.reweighted(weights):
        lnl = smooth(likelihood, NNI_EPSILON).lnl
        return climb_round(likelihood, lnl, RATCHET_RADIUS, NARROW, None, RATCHET_EPSILON, constraint).joints


def _climb_back(
    likelihood: TreeLikelihood,
    radius: int,
    joints: IndexArray | None,
    met: Callable[[], None],
    constraint: Constraint | None,
) -> float:
    """Climb around `joints` (None: everywhere) on the true weights; `met` is called at each tree, its lengths nearly
    optimal.
    """
    lnl = smooth(likelihood, ROUND_EPSILON).lnl
    met()
    while joints is None or len(joints):
        done = climb_round(likelihood, lnl, radius, NARROW, joints, constraint=constraint)
        gain, lnl, joints = done.lnl - lnl, done.lnl, done.joints
        if done.n_moves:
            met()
        if gain < STAGE_EPSILON / 2:
            break
    return lnl
