"""Excursions of the ultrafast bootstrap, on which it meets trees (after Minh et al. 2013 and Hoang et al. 2018).

To meet trees that some resampled alignments favour, the data are exchanged for one of them for a moment: all moves that
gain there are made, or a tree is found there from a start tree of its own; then that is climbed again on the true data.
Every tree on this way counts.
"""

from __future__ import annotations

import json
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
    RATCHET_RADIUS,
    RELL_TIE,
    ROUND_EPSILON,
    STAGE_EPSILON,
    UFBOOT_CANDIDATES,
    UFBOOT_JUMPS,
    UFBOOT_RADIUS,
)
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.constraint import Constraint
from plltool.tree.topology import Tree
from plltool.tree_search.climb import NARROW, climb_round
from plltool.tree_search.rell import RellPool, WeightArray
from plltool.tree_search.state import Arrays, pack_trees, unpack_trees


@dataclass(eq=False)
class UfbootState:
    """Where the excursions stand: all that the rest of them depends on, apart from the data.

    Attributes
    ----------
    pool : of the trees met
    optima : lnL and tree of the best local optima, the best first
    n_made : excursions
    n_drawn : resampled alignments that have had their turn
    supports : (n_inner_branches,) of the tree that they are made for, at the last test; None before
    is_over : whether the supports have settled, or it has been given up to wait for that
    generator : the state of the source of random numbers
    """

    pool: RellPool
    optima: list[tuple[float, Tree]] = field(default_factory=list)
    n_made: int = 0
    n_drawn: int = 0
    supports: FloatArray | None = None
    is_over: bool = False
    generator: Mapping[str, Any] | None = None

    @property
    def lnl(self) -> float:
        """Of `best`."""
        return self.optima[0][0]

    @property
    def best(self) -> Tree:
        """The best tree so far."""
        return self.optima[0][1]

    def copy(self, rng: np.random.Generator) -> UfbootState:
        """What later excursions leave as it is, with the state that `rng` has now."""
        generator = rng.bit_generator.state
        return replace(self, pool=self.pool.copy(), optima=self.optima.copy(), generator=generator)

    def pack(self) -> Arrays:
        """The same as arrays, which `unpack` reads; numbers keep every bit."""
        lnls, trees = zip(*self.optima, strict=True)
        packed = self.pool.pack() | pack_trees("optimum", trees) | {"optimum lnl": np.array(lnls)}
        packed |= {name: np.array(getattr(self, name)) for name in ("n_made", "n_drawn", "is_over")}
        packed["generator"] = np.array(json.dumps(self.generator))
        return packed if self.supports is None else packed | {"supports": self.supports}

    @classmethod
    def unpack(
        cls, packed: Mapping[str, npt.NDArray[Any]], start: Tree, weights: WeightArray, rng: np.random.Generator
    ) -> UfbootState:
        """What was packed, over the taxa of `start`; `rng` takes the state that it had."""
        generator = json.loads(packed["generator"].item())
        rng.bit_generator.state = generator
        optima = zip(packed["optimum lnl"].tolist(), unpack_trees("optimum", packed, start.names), strict=True)
        plain = {name: packed[name].item() for name in ("n_made", "n_drawn", "is_over")}
        pool = RellPool.unpack(packed, start.names, weights, rng)
        return cls(pool, list(optima), **plain, supports=packed.get("supports"), generator=generator)


class UfbootSearch:
    """Meets trees without end.

    Excursions set out in turn from afar, from the `fresh` start tree of the next resampled alignment, climbed there
    first, and from one of the UFBOOT_CANDIDATES best local optima, chosen at random, with UFBOOT_JUMPS jumps to what
    the next resampled alignments favour: from one alone the climb hardly ever leads to another optimum. All trees obey
    the `constraint`.

    Parameters
    ----------
    likelihood : of the tree that the first excursions set out from; later its tree is any
    at : where the excursions stand, which each of them brings forward
    weights : how often each pattern is drawn in each resampled alignment, see `draw_weights`
    rng : source of random numbers, that of the pool as well
    fresh : makes a start tree by the weights of all patterns (n_patterns,)
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
        if not at.optima:
            at.optima.append((smooth(likelihood).lnl, likelihood.tree.copy()))
            at.pool.add(likelihood)

    def make(self) -> None:
        """Make one more excursion."""
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
        if all(abs(lnl - other) > RELL_TIE / 10 for other, _ in at.optima):
            at.optima.append((lnl, tree.copy()))
            at.optima.sort(key=lambda one: -one[0])
            del at.optima[UFBOOT_CANDIDATES:]
        at.n_made += 1

    def _draw(self) -> FloatArray:
        """Pattern weights (n_patterns,) of the next resampled alignment."""
        column = self._weights[:, self.at.n_drawn % self._weights.shape[1]]
        self.at.n_drawn += 1
        return column.astype(np.float64)

    def _climb_afar(self, weights: FloatArray) -> None:
        """Climb from the tree as it stands with other weights, roughly: NNI, then SPR nearby."""
        likelihood = self._likelihood
        likelihood.topology_changed()
        with likelihood.reweighted(weights):
            lnl = smooth(likelihood, NNI_EPSILON).lnl
            for radius in (1, RATCHET_RADIUS):
                lnl = self._climb(lnl, radius, NNI_EPSILON)

    def _jump(self, weights: FloatArray) -> IndexArray:
        """Make all moves that gain with other weights; returns the joints that are worth another look."""
        likelihood = self._likelihood
        with likelihood.reweighted(weights):
            lnl = smooth(likelihood, NNI_EPSILON).lnl
            return climb_round(
                likelihood, lnl, RATCHET_RADIUS, NARROW, None, RATCHET_EPSILON, self._constraint
            ).joints

    def _climb_back(self, joints: IndexArray | None) -> float:
        """Climb around `joints` (None: everywhere) on the true weights; the pool takes each tree on the way, its
        lengths nearly optimal. Returns lnL.
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
        """Rounds around `joints` until one gains less than `epsilon`, `meet` called after each; from lnL to lnL."""
        gain = epsilon
        while gain >= epsilon and (joints is None or len(joints)):
            done = climb_round(self._likelihood, lnl, radius, NARROW, joints, constraint=self._constraint)
            gain, lnl, joints = done.lnl - lnl, done.lnl, done.joints
            meet()
        return lnl
