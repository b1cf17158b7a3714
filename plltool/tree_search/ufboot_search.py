"""The search of the ultrafast bootstrap for trees that resampled alignments favour (Minh 2013; Hoang 2018).

The search makes *excursions*. Each excursion replaces the data by a resampled alignment for a while: it either applies
all moves that gain there, or climbs there from a new start tree. Then it climbs on the original data. Every tree on the
way counts.

Excursions are made in batches. All of a batch start from what was known at its beginning, so that they can be made at
the same time; what they find is taken into account in the order of their numbers.

The lnL of a tree on a resampled alignment is estimated by the sum of its site lnL with the resampled weights (RELL).
Each resampled alignment keeps the best of all trees met.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from plltool.alignment.patterns import Urn, batches, resample_once
from plltool.arrays import AnyArray, FloatArray, IndexArray, slices
from plltool.codec import saved
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.rooted import inner_branches
from plltool.tree.splits import inner_splits
from plltool.tree.topology import Tree
from plltool.tree_search.climb import ROUND_EPSILON, climb_round, move_root
from plltool.tree_search.effort import SEARCH_EPSILON
from plltool.tree_search.fusing import RATCHET_EPSILON, RATCHET_RADII
from plltool.tree_search.neighbours import interchange, neighbour_sites
from plltool.tree_search.scan import Joints
from plltool.tree_search.stages import NNI_EPSILON, STAGE_EPSILON

RELL_TIE = 0.5  # lnL within which trees are equally good (Hoang et al. 2018)
RELL_CHUNK = 4096  # patterns whose weights are converted to doubles at once

WeightArray = AnyArray  # uint16, or wider where parts have more sites

KEY_BYTES = 16  # length of a topology's digest


def draw_weights(parts: Sequence[FloatArray], n_sets: int, rng: np.random.Generator) -> WeightArray:
    """How often each pattern is drawn in each of `n_sets` resampled alignments: (n_patterns, n_sets).

    `parts` holds the pattern weights of each part, which is resampled by itself.
    """
    urns = [Urn(own) for own in parts]
    kind = np.promote_types(np.uint16, np.min_scalar_type(max(urn.size for urn in urns)))
    weights = np.empty((sum(map(len, parts)), n_sets), dtype=kind)
    for column in range(n_sets):
        weights[:, column] = resample_once(urns, rng)
    return weights


def estimate_lnls(site_lnl: FloatArray, weights: WeightArray) -> FloatArray:
    """The lnL of trees on resampled alignments, (..., n_sets), from their lnL of each pattern, (..., n_patterns)."""
    rows = site_lnl.reshape(-1, len(weights))
    lnls = np.zeros((len(rows), weights.shape[1]))
    for some in slices(len(weights), RELL_CHUNK):
        lnls += rows[:, some] @ weights[some].astype(np.float64)
    return lnls.reshape(*site_lnl.shape[:-1], -1)


@dataclass(frozen=True, eq=False)
class MetTree:
    key: bytes  # a digest of its topology
    tree: Tree  # with nearly optimal lengths
    lnls: FloatArray  # (n_sets,) its estimated lnL on each resampled alignment


class Meetings:
    """The `trees` that are met, in this order: each topology once, and none of those that are `known` by their keys."""

    def __init__(self, weights: WeightArray, known: Set[bytes] = frozenset()):
        self.trees: list[MetTree] = []
        self._weights = weights
        self._known = set(known)

    def meet(self, likelihood: TreeLikelihood) -> None:
        self._add(likelihood.tree.copy(), lambda: estimate_lnls(likelihood.site_lnl(), self._weights))

    def meet_neighbours(self, likelihood: TreeLikelihood) -> None:
        """Meet those interchanges of the current tree that a resampled alignment prefers to the others and to the tree.

        Under a process that is not time-reversible no neighbour is met.
        """
        if likelihood.is_rooted:
            return
        tree = likelihood.tree
        branches = inner_branches(tree)
        lnls = np.empty((len(branches), 2, self._weights.shape[1]))
        for some in batches(len(branches), 2 * likelihood.engine.n_patterns):
            lnls[some] = estimate_lnls(neighbour_sites(likelihood, branches[some]), self._weights)
        best = np.maximum(lnls.max(axis=(0, 1), initial=-np.inf), estimate_lnls(likelihood.site_lnl(), self._weights))
        for number, which in np.argwhere((lnls > best - RELL_TIE).any(axis=2)).tolist():
            neighbour = interchange(tree, int(branches[number]), which)
            if likelihood.admits(neighbour):
                self._add(neighbour, lnls[number, which].copy)

    def _add(self, tree: Tree, estimate: Callable[[], FloatArray]) -> None:
        key = _digest(tree)
        if key not in self._known:
            self._known.add(key)
            self.trees.append(MetTree(key, tree, estimate()))


@saved("trees", "chosen", "rng", "_best", "_equals", "_seen")
class RellPool:
    """The best of the trees met so far for each resampled alignment.

    Trees whose estimated lnL differ by less than RELL_TIE are equally good: one of them is kept at random, each with
    the same probability. Otherwise nodes without support would always be resolved as in the tree that was met first.
    """

    def __init__(self, n_sets: int, rng: np.random.Generator):
        self.trees: dict[int, Tree] = {}  # those that are kept, by their numbers
        self.chosen = np.zeros(n_sets, dtype=np.intp)  # the number for each alignment
        self.rng = rng  # chooses among equals
        self._best = np.full(n_sets, -np.inf)
        self._equals = np.zeros(n_sets)
        self._seen: set[bytes] = set()

    @property
    def n_met(self) -> int:
        """The number of topologies met; they are numbered in this order."""
        return len(self._seen)

    @property
    def keys(self) -> Set[bytes]:
        return frozenset(self._seen)

    def add(self, met: MetTree) -> None:
        """Add a tree, unless its topology has been met before."""
        if met.key in self._seen:
            return
        number = self.n_met
        self._seen.add(met.key)
        draws = self.rng.random(len(met.lnls))
        better = met.lnls > self._best + RELL_TIE
        equal = ~better & (met.lnls > self._best - RELL_TIE)
        self._equals = np.where(better, 1, self._equals + equal)
        takes = better | (equal & (draws * self._equals < 1))
        self._best = np.maximum(self._best, met.lnls)
        self.chosen = np.where(takes, number, self.chosen)
        candidates = self.trees | {number: met.tree}
        self.trees = {kept: candidates[kept] for kept in np.unique(self.chosen).tolist()}

    def copy(self) -> RellPool:
        """A copy that does not change when this pool meets more trees."""
        other = copy.copy(self)
        other.rng, other._seen = copy.deepcopy(self.rng), self._seen.copy()
        return other


def _digest(tree: Tree) -> bytes:
    """A digest that only trees of the same topology share."""
    n_bytes = 8 * -(-tree.n_taxa // 64)
    splits = b"".join(split.to_bytes(n_bytes, "little") for split in sorted(inner_splits(tree)))
    return hashlib.sha256(splits).digest()[:KEY_BYTES]


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
    another resampled alignment favours; after a single jump the climb hardly ever leads to another optimum.
    """

    likelihood: TreeLikelihood
    weights: WeightArray  # how often each pattern is drawn in each resampled alignment, see `draw_weights`
    # makes random numbers: 0 those of the `weights`, and from 1 on those of the excursions
    random: Callable[[int], np.random.Generator]
    fresh: Callable[..., Tree]  # makes a start tree from random numbers and pattern `weights` (n_patterns,)

    def __post_init__(self) -> None:
        self.likelihood.start_screening()

    def __call__(
        self, number: int | None, starts: Sequence[Tree], known: Set[bytes], report: Callable[[Any], bool] | None = None
    ) -> Excursion:
        """Make the excursion of a number, from 0, from one of the `starts`; topologies of `known` keys are not met.

        Without a number the first of `starts`, an optimum, is met, with its lengths optimised.
        """
        likelihood = self.likelihood
        if number is None:
            meetings = Meetings(self.weights)
            likelihood.set_tree(starts[0])
            lnl = smooth(likelihood)
            meetings.meet(likelihood)
            return Excursion(meetings.trees, lnl, likelihood.tree.copy())
        rng, meetings = self.random(number + 1), Meetings(self.weights, known)
        joints: IndexArray | None = None
        if number % 2 == 0:
            column = self._column(number, 0)
            likelihood.set_tree(self.fresh(rng, weights=column))
            with likelihood.reweighted(column):  # a rough climb: NNI, then SPR with a small radius
                lnl = smooth(likelihood, NNI_EPSILON)
                for radius in (1, RATCHET_RADII[0]):
                    lnl = self._climb(lnl, radius, NNI_EPSILON)
        else:
            likelihood.set_tree(starts[int(rng.integers(len(starts)))])
            jumps = []
            for jump in range(UFBOOT_JUMPS):  # all moves that gain with other weights
                with likelihood.reweighted(self._column(number, jump)):
                    lnl = smooth(likelihood, NNI_EPSILON)
                    jump_round = climb_round(likelihood, lnl, RATCHET_RADII[0], epsilon=RATCHET_EPSILON)
                jumps.append(jump_round.joints)
            joints = np.unique(np.concatenate(jumps))
        lnl = self._climb_back(joints, meetings)
        if likelihood.is_rooted:
            lnl = move_root(likelihood, lnl)
            meetings.meet(likelihood)
        return Excursion(meetings.trees, lnl, likelihood.tree.copy())

    def _column(self, number: int, jump: int) -> FloatArray:
        """Pattern weights (n_patterns,) of the resampled alignment for a jump; two excursions take 1 + UFBOOT_JUMPS."""
        before = number // 2 * (1 + UFBOOT_JUMPS) + number % 2
        return self.weights[:, (before + jump) % self.weights.shape[1]].astype(np.float64)

    def _climb_back(self, joints: IndexArray | None, meetings: Meetings) -> float:
        """Climb around `joints` (None: everywhere) on the original weights; return lnL.

        Each tree on the way is met, with nearly optimal lengths, and the neighbours of the first: those are many, and
        together they have what each resampled alignment prefers at branches on which the data do not insist.
        """
        lnl = smooth(self.likelihood, ROUND_EPSILON)
        meetings.meet(self.likelihood)
        meetings.meet_neighbours(self.likelihood)
        return self._climb(lnl, UFBOOT_RADIUS, STAGE_EPSILON / 2, joints, meetings)

    def _climb(
        self, lnl: float, radius: int, epsilon: float, joints: Joints = None, meetings: Meetings | None = None
    ) -> float:
        """Make rounds from `lnl` around `joints` until one gains less than `epsilon`; each may meet its tree."""
        gain = epsilon
        while gain >= epsilon and (joints is None or len(joints)):
            done = climb_round(self.likelihood, lnl, radius, joints)
            gain, lnl, joints = done.lnl - lnl, done.lnl, done.joints
            if meetings is not None:
                meetings.meet(self.likelihood)
        return lnl
