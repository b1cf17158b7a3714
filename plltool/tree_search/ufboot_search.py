"""The search of the ultrafast bootstrap for trees that resampled alignments favour (Minh 2013; Hoang 2018).

The search makes *excursions*. Each excursion replaces the data by a resampled alignment for a while: it either applies
all moves that gain there, or climbs there from a new start tree. Then it climbs on the original data. Every tree on the
way counts.

Excursions are made in batches. All of a batch start from what was known at its beginning, so that they can be made at
the same time; what they find is taken into account in the order of their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.codec import saved
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.constraint import Constraint
from plltool.tree.topology import Tree
from plltool.tree_search.climb import ROUND_EPSILON, climb_round
from plltool.tree_search.effort import SEARCH_EPSILON
from plltool.tree_search.ratchet import RATCHET_EPSILON, RATCHET_RADII
from plltool.tree_search.rell import RELL_TIE, Meetings, MetTree, RellPool, WeightArray
from plltool.tree_search.root_scan import move_root
from plltool.tree_search.stages import NNI_EPSILON, STAGE_EPSILON

UFBOOT_CANDIDATES = 5  # local optima from which excursions start
UFBOOT_JUMPS = 3  # jumps in a row, each to another resampled alignment, before the climb on the original data
UFBOOT_RADIUS = 10  # SPR radius of that climb


@dataclass(frozen=True, eq=False)
class Excursion:
    met: Sequence[MetTree]  # the trees on the way, without those that were known
    lnl: float  # of the tree at its end
    optimum: Tree  # the tree at its end, a local optimum


@saved()
@dataclass(eq=False)
class UfbootState:
    """The state of the search: all that the remaining excursions depend on, apart from the data."""

    pool: RellPool  # the trees met
    optima: list[tuple[float, Tree]] = field(default_factory=list)  # lnL and tree, best first
    starts: Sequence[Tree] = ()  # the optima at the beginning of the batch, from which its excursions start
    n_made: int = 0  # number of excursions made
    supports: FloatArray | None = None  # (n_inner_branches,) of the target tree at the last convergence test
    is_over: bool = False  # whether the supports have converged, or the search has reached its limit
    adopted: Tree | None = None  # the optimum from which a climb led to the target tree; None: it was given
    target_lnl: float = math.inf  # that a better optimum exceeds; infinite until the target has been met

    @property
    def lnl(self) -> float:
        return self.optima[0][0]

    @property
    def has_better(self) -> bool:
        """Whether an optimum is better than the target tree by more than a climb leaves open."""
        return self.lnl > self.target_lnl + SEARCH_EPSILON

    @property
    def best(self) -> Tree:
        return self.optima[0][1]

    def adopt(self) -> None:
        """Note that a climb from the best optimum has led to another target tree, which is to be met."""
        self.adopted, self.target_lnl, self.is_over = self.best, math.inf, False

    def take(self, found: Excursion) -> None:
        """Add the trees; keep the optimum if it is one of the best and not one of those that are there."""
        for met in found.met:
            self.pool.add(met)
        if all(abs(found.lnl - lnl) > RELL_TIE / 10 for lnl, _ in self.optima):
            self.optima.append((found.lnl, found.optimum))
            self.optima.sort(key=lambda one: -one[0])
            del self.optima[UFBOOT_CANDIDATES:]

    def copy(self) -> UfbootState:
        """A copy that later excursions do not change."""
        return replace(self, pool=self.pool.copy(), optima=self.optima.copy())


@dataclass(frozen=True, eq=False)
class UfbootSearch:
    """Makes excursions. What one finds depends on its number and on where it may start, not on those made before.

    Every second excursion starts far away: from a new start tree for a resampled alignment of its own, with a rough
    climb there. The others start from a local optimum, chosen at random, and make UFBOOT_JUMPS jumps, each to what
    another resampled alignment favours; after a single jump the climb hardly ever leads to another optimum. All trees
    obey the `constraint`.

    weights : how often each pattern is drawn in each resampled alignment, see `draw_weights`
    random : makes the source of random numbers of an excursion from its number
    fresh : makes a start tree from the weights of all patterns (n_patterns,) and a source of random numbers
    """

    likelihood: TreeLikelihood
    weights: WeightArray
    random: Callable[[int], np.random.Generator]
    fresh: Callable[[FloatArray, np.random.Generator], Tree]
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        self.likelihood.start_screening()

    def __call__(
        self, number: int | None, starts: Sequence[Tree], known: Set[bytes], report: Callable[[Any], bool] | None = None
    ) -> Excursion:
        """See `make`; without a number the first of `starts` is met, an optimum."""
        return self.meet(starts[0]) if number is None else self.make(number, starts, known)

    def make(self, number: int, starts: Sequence[Tree], known: Set[bytes]) -> Excursion:
        """Make the excursion of a number, from 0, from one of the `starts`; topologies of `known` keys are not met."""
        rng, meetings = self.random(number), Meetings(self.weights, known)
        joints: IndexArray | None = None
        if number % 2 == 0:
            column = self._column(number, 0)
            self.likelihood.set_tree(self.fresh(column, rng))
            with self.likelihood.reweighted(column):  # a rough climb: NNI, then SPR with a small radius
                lnl = smooth(self.likelihood, NNI_EPSILON).lnl
                for radius in (1, RATCHET_RADII[0]):
                    lnl = self._climb(lnl, radius, NNI_EPSILON)
        else:
            self.likelihood.set_tree(starts[int(rng.integers(len(starts)))])
            jumps = [self._jump(self._column(number, k)) for k in range(UFBOOT_JUMPS)]
            joints = np.unique(np.concatenate(jumps))
        lnl = self._climb_back(joints, meetings)
        if self.likelihood.is_rooted:
            lnl = move_root(self.likelihood, lnl)
            meetings.meet(self.likelihood)
        return Excursion(meetings.trees, lnl, self.likelihood.tree.copy())

    def meet(self, optimum: Tree) -> Excursion:
        """Meet an optimum, and optimise its lengths."""
        meetings = Meetings(self.weights)
        self.likelihood.set_tree(optimum)
        lnl = smooth(self.likelihood).lnl
        meetings.meet(self.likelihood)
        return Excursion(meetings.trees, lnl, self.likelihood.tree.copy())

    def _column(self, number: int, jump: int) -> FloatArray:
        """Pattern weights (n_patterns,) of the resampled alignment for a jump; two excursions take 1 + UFBOOT_JUMPS."""
        before = number // 2 * (1 + UFBOOT_JUMPS) + number % 2
        return self.weights[:, (before + jump) % self.weights.shape[1]].astype(np.float64)

    def _jump(self, weights: FloatArray) -> IndexArray:
        """Make all moves that gain with other weights; return the joints to scan next."""
        likelihood = self.likelihood
        with likelihood.reweighted(weights):
            lnl = smooth(likelihood, NNI_EPSILON).lnl
            return climb_round(
                likelihood, lnl, RATCHET_RADII[0], epsilon=RATCHET_EPSILON, constraint=self.constraint
            ).joints

    def _climb_back(self, joints: IndexArray | None, meetings: Meetings) -> float:
        """Climb around `joints` (None: everywhere) on the original weights; return lnL.

        Each tree on the way is met, with nearly optimal lengths, and the neighbours of the first: those are many, and
        together they have what each resampled alignment prefers at branches on which the data do not insist.
        """
        lnl = smooth(self.likelihood, ROUND_EPSILON).lnl
        meetings.meet(self.likelihood)
        meetings.meet_neighbours(self.likelihood, self.constraint)
        meet = partial(meetings.meet, self.likelihood)
        return self._climb(lnl, UFBOOT_RADIUS, STAGE_EPSILON / 2, joints, meet)

    def _climb(
        self,
        lnl: float,
        radius: int,
        epsilon: float,
        joints: IndexArray | None = None,
        meet: Callable[[], None] = lambda: None,
    ) -> float:
        """Make rounds from `lnl` around `joints` until one gains less than `epsilon`; `meet` is called after each."""
        gain = epsilon
        while gain >= epsilon and (joints is None or len(joints)):
            done = climb_round(self.likelihood, lnl, radius, joints, constraint=self.constraint)
            gain, lnl, joints = done.lnl - lnl, done.lnl, done.joints
            meet()
        return lnl
