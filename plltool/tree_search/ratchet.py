"""Leaving local optima: the ratchet (Nixon 1999; for likelihood Vos 2003), with fusing.

A climb ends when no move gains on the original weights. On randomly reweighted sites other moves gain, which many sites
support. Applied all at once, and followed by a round of climbing on the original weights, they lead to a tree that is
better in some places and worse in others. Fusing takes what is better, so that one perturbation serves the whole of a
tree of any size.
"""

from __future__ import annotations

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import (
    PLATEAU_DEPTH,
    RATCHET_EPSILON,
    RATCHET_FACTOR,
    RATCHET_RADII,
    RATCHET_SHARE,
    ROUND_EPSILON,
    SMOOTHING_EPSILON,
)
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.constraint import Constraint
from plltool.tree.topology import Tree
from plltool.tree_search.climb import climb_round
from plltool.tree_search.fusing import fuse


def reweight(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The weights, each multiplied by RATCHET_FACTOR with probability RATCHET_SHARE; same shape."""
    return np.where(rng.random(weights.shape) < RATCHET_SHARE, RATCHET_FACTOR, 1.0) * weights


def resample(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The weights, each multiplied by an exponential random number of mean 1 (Rubin 1981); same shape.

    This changes more than `reweight`. With several parts, climbs end where one part prevents what another one needs.
    """
    return rng.exponential(size=weights.shape) * weights


class Ratchet:
    """Keeps the best tree of a likelihood and looks for a better one nearby.

    Between two steps the likelihood's tree is the one from which the next step starts. It may be up to PLATEAU_DEPTH
    lnL units below the best: among many equally good trees, a walk through them finds a better one.

    Attributes
    ----------
    lnl, best : lnL and tree of the best; at first those of the likelihood, unless another best tree is given
    constraint : obeyed by every tree
    """

    def __init__(
        self,
        likelihood: TreeLikelihood,
        lnl: float,
        rng: np.random.Generator,
        best: Tree | None = None,
        constraint: Constraint | None = None,
    ):
        self.likelihood = likelihood
        self.lnl = lnl
        self.constraint = constraint
        self._rng = rng
        self._base, self._base_lnl = likelihood.tree.copy(), likelihood.lnl()
        self.best = best or self._base

    def step(self) -> int:
        """Perturb, climb and fuse; return the number of places where the best tree changed, 0 if it did not."""
        likelihood, base = self.likelihood, self._base
        self._perturb()
        donor = likelihood.tree.copy()
        self._return_to(base)
        lnl, n_taken = fuse(likelihood, donor, self._base_lnl, self.constraint)
        if lnl > self.lnl - ROUND_EPSILON:
            lnl = smooth(likelihood, SMOOTHING_EPSILON).lnl
        if lnl < self.lnl - PLATEAU_DEPTH:
            self._return_to(base)
            return 0
        self._base, self._base_lnl = likelihood.tree.copy(), lnl
        if lnl <= self.lnl:
            return 0
        self.lnl, self.best = lnl, self._base
        return n_taken

    def finish(self) -> None:
        """Put the best tree back into the likelihood."""
        self._return_to(self.best)

    def _perturb(self) -> None:
        """Apply all moves that gain on reweighted sites, and climb for a round on the original ones around them."""
        likelihood, (jump, radius) = self.likelihood, RATCHET_RADII
        draw = reweight if len(likelihood.models) == 1 else resample
        with likelihood.reweighted(draw(likelihood.engine.weights, self._rng)):
            lnl = likelihood.lnl()
            jumped = climb_round(likelihood, lnl, jump, epsilon=RATCHET_EPSILON, constraint=self.constraint)
        lnl = smooth(likelihood, ROUND_EPSILON).lnl
        if len(jumped.joints):
            climb_round(likelihood, lnl, radius, jumped.joints, constraint=self.constraint, patient=True)

    def _return_to(self, tree: Tree) -> None:
        self.likelihood.tree.assign(tree)
        self.likelihood.topology_changed()
