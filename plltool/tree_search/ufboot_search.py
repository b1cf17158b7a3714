"""The search of the ultrafast bootstrap for trees that resampled alignments favour (Minh 2013; Hoang 2018).

The search makes *excursions*. Each excursion replaces the data by a resampled alignment for a while: it either applies
all moves that gain there, or climbs there from a new start tree. Then it climbs on the original data. Every tree on the
way counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import (
    NNI_EPSILON,
    RATCHET_EPSILON,
    RATCHET_RADII,
    RELL_TIE,
    ROUND_EPSILON,
    SEARCH_EPSILON,
    STAGE_EPSILON,
    UFBOOT_CANDIDATES,
    UFBOOT_JUMPS,
    UFBOOT_RADIUS,
)
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.constraint import Constraint
from plltool.tree.topology import Tree
from plltool.tree_search.climb import climb_round
from plltool.tree_search.rell import RellPool, WeightArray
from plltool.tree_search.root_scan import move_root
from plltool.tree_search.state import Arrays, pack_tree, pack_trees, unpack_tree, unpack_trees

PLAIN = ("n_made", "n_drawn", "is_over", "target_lnl")  # numbers of a state


@dataclass(eq=False)
class UfbootState:
    """The state of the search: all that the remaining excursions depend on, apart from the data.

    Attributes
    ----------
    pool : the trees met
    optima : lnL and tree of the best local optima, the best first
    n_made : number of excursions made
    n_drawn : number of resampled alignments used
    supports : (n_inner_branches,) supports of the target tree at the last convergence test; None before
    is_over : whether the supports have converged, or the search has reached its limit
    generator : the state of the random numbers
    adopted : the optimum from which a climb has led to the target tree; None if the target is the tree that was given
    target_lnl : lnL that an optimum must exceed to be better than the target tree
    """

    pool: RellPool
    optima: list[tuple[float, Tree]] = field(default_factory=list)
    n_made: int = 0
    n_drawn: int = 0
    supports: FloatArray | None = None
    is_over: bool = False
    generator: Mapping[str, Any] | None = None
    adopted: Tree | None = None
    target_lnl: float = -math.inf

    @property
    def lnl(self) -> float:
        """The lnL of `best`."""
        return self.optima[0][0]

    @property
    def has_better(self) -> bool:
        """Whether an optimum is better than the target tree by more than a climb leaves open."""
        return self.lnl > self.target_lnl + SEARCH_EPSILON

    @property
    def best(self) -> Tree:
        """The best tree so far."""
        return self.optima[0][1]

    def copy(self, rng: np.random.Generator) -> UfbootState:
        """A copy that later excursions do not change, with the current state of `rng`."""
        generator = rng.bit_generator.state
        return replace(self, pool=self.pool.copy(), optima=self.optima.copy(), generator=generator)

    def pack(self) -> Arrays:
        """The state as arrays, for `unpack`; numbers keep every bit."""
        lnls, trees = zip(*self.optima, strict=True)
        packed = self.pool.pack() | pack_trees("optimum", trees) | {"optimum lnl": np.array(lnls)}
        packed |= {name: np.array(getattr(self, name)) for name in PLAIN}
        packed["generator"] = np.array(json.dumps(self.generator))
        if self.adopted is not None:
            packed |= pack_tree("adopted", self.adopted)
        return packed if self.supports is None else packed | {"supports": self.supports}

    @classmethod
    def unpack(
        cls, packed: Mapping[str, npt.NDArray[Any]], start: Tree, weights: WeightArray, rng: np.random.Generator
    ) -> UfbootState:
        """The state that was packed, over the taxa of `start`; `rng` is set to its state at that time."""
        generator = json.loads(packed["generator"].item())
        rng.bit_generator.state = generator
        optima = zip(packed["optimum lnl"].tolist(), unpack_trees("optimum", packed, start.names), strict=True)
        plain = {name: packed[name].item() for name in PLAIN}
        pool = RellPool.unpack(packed, start.names, weights, rng)
        state = cls(pool, list(optima), **plain, supports=packed.get("supports"), generator=generator)
        if "adopted lengths" in packed:
            state.adopted = unpack_tree("adopted", packed, start.names)
        return state


class UfbootSearch:
    """Makes excursions, one at a time.

    Every second excursion starts far away: from a new start tree for the next resampled alignment, with a rough climb
    there. The others start from one of the UFBOOT_CANDIDATES best local optima, chosen at random, and make UFBOOT_JUMPS
    jumps, each to what the next resampled alignment favours; after a single jump the climb hardly ever leads to another
    optimum. All trees obey the `constraint`.

    Parameters
    ----------
    likelihood : with the tree from which the first excursions start; later its tree may be any
    at : the state of the search, which each excursion updates
    weights : how often each pattern is drawn in each resampled alignment, see `draw_weights`
    rng : source of random numbers, the same as in the pool
    fresh : makes a start tree from the weights of all patterns (n_patterns,)
    """

    def __init__(
        self,
        likelihood: TreeLikelihood,
        at: UfbootState,
        weights: WeightArray,
        rng: np.random.Generator,
        fresh: Callable[[FloatArray], Tree],
        constraint: Constraint | None = None,
    ):
        self.at = at
        self._likelihood = likelihood
        self._weights = weights
        self._rng = rng
        self._fresh = fresh
        self._constraint = constraint
        likelihood.start_screening()
        if not at.optima:
            at.target_lnl = self._meet_optimum()

    def make(self) -> None:
        """Make the next excursion."""
        at, tree = self.at, self._likelihood.tree
        joints: IndexArray | None = None
        if at.n_made % 2 == 0:
            column = self._draw()
            tree.assign(self._fresh(column))
            self._climb_afar(column)
        else:
            tree.assign(at.optima[self._rng.integers(len(at.optima))][1])
            self._likelihood.topology_changed()
            jumps = [self._jump(self._draw()) for _ in range(UFBOOT_JUMPS)]
            joints = np.unique(np.concatenate(jumps))
        lnl = self._climb_back(joints)
        if self._likelihood.is_rooted:
            lnl = move_root(self._likelihood, lnl)
            at.pool.add(self._likelihood)
        self._keep_optimum(lnl)
        at.n_made += 1

    def adopt(self, target: Tree) -> None:
        """Make `target`, to which a climb from the best optimum has led, the tree that gets supports."""
        at = self.at
        at.adopted = at.best
        self._likelihood.tree.assign(target)
        self._likelihood.topology_changed()
        self._meet_optimum()
        at.target_lnl = at.lnl

    def _meet_optimum(self) -> float:
        """Optimise the lengths of the current tree, which is an optimum, and take it into account; return its lnL."""
        lnl = smooth(self._likelihood).lnl
        self.at.pool.add(self._likelihood)
        self._keep_optimum(lnl)
        return lnl

    def _keep_optimum(self, lnl: float) -> None:
        """Keep the current tree if it is one of the best optima and not one of those that are there."""
        optima = self.at.optima
        if all(abs(lnl - other) > RELL_TIE / 10 for other, _ in optima):
            optima.append((lnl, self._likelihood.tree.copy()))
            optima.sort(key=lambda one: -one[0])
            del optima[UFBOOT_CANDIDATES:]

    def _draw(self) -> FloatArray:
        """Pattern weights (n_patterns,) of the next resampled alignment."""
        column = self._weights[:, self.at.n_drawn % self._weights.shape[1]]
        self.at.n_drawn += 1
        return column.astype(np.float64)

    def _climb_afar(self, weights: FloatArray) -> None:
        """Climb roughly from the current tree with other weights: NNI, then SPR with a small radius."""
        likelihood = self._likelihood
        likelihood.topology_changed()
        with likelihood.reweighted(weights):
            lnl = smooth(likelihood, NNI_EPSILON).lnl
            for radius in (1, RATCHET_RADII[0]):
                lnl = self._climb(lnl, radius, NNI_EPSILON)

    def _jump(self, weights: FloatArray) -> IndexArray:
        """Make all moves that gain with other weights; return the joints to scan next."""
        likelihood = self._likelihood
        with likelihood.reweighted(weights):
            lnl = smooth(likelihood, NNI_EPSILON).lnl
            return climb_round(
                likelihood, lnl, RATCHET_RADII[0], epsilon=RATCHET_EPSILON, constraint=self._constraint
            ).joints

    def _climb_back(self, joints: IndexArray | None) -> float:
        """Climb around `joints` (None: everywhere) on the original weights; return lnL.

        The pool gets each tree on the way, with nearly optimal lengths.
        """
        lnl = smooth(self._likelihood, ROUND_EPSILON).lnl
        meet = partial(self.at.pool.add, self._likelihood)
        meet()
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
            done = climb_round(self._likelihood, lnl, radius, joints, constraint=self._constraint)
            gain, lnl, joints = done.lnl - lnl, done.lnl, done.joints
            meet()
        return lnl
