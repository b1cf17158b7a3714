"""Leaving local optima: the ratchet (Nixon 1999; for likelihood Vos 2003).

A climb ends when no move gains on the original weights. On randomly reweighted sites other moves gain, which many sites
support. Applied all at once they lead to a tree from which a climb on the original weights may end higher. Only the
neighbourhood of the changes is climbed.
"""

from __future__ import annotations

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import (
    PLATEAU_DEPTH,
    RATCHET_EPSILON,
    RATCHET_FACTOR,
    RATCHET_RADIUS,
    RATCHET_REGION,
    RATCHET_SHARE,
    ROUND_EPSILON,
    SMOOTHING_EPSILON,
    STAGE_EPSILON,
)
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.constraint import Constraint
from plltool.tree.topology import Tree
from plltool.tree_search.climb import NARROW, Round, climb_round, nodes_near
from plltool.tree_search.progress import Move


def reweight(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The weights, each multiplied by RATCHET_FACTOR with probability RATCHET_SHARE; same shape."""
    return np.where(rng.random(weights.shape) < RATCHET_SHARE, RATCHET_FACTOR, 1.0) * weights


class Ratchet:
    """Keeps the best tree of a likelihood and looks for a better one nearby.

    Between two steps the likelihood's tree is the one from which the next step starts. It may be up to PLATEAU_DEPTH
    lnL units below the best: among many equally good trees, a walk through them finds a better one.

    Attributes
    ----------
    lnl, best : lnL and tree of the best; at first those of the likelihood, unless another best tree is given
    radius : radius of the climb after a perturbation
    constraint : obeyed by every tree
    """

    def __init__(
        self,
        likelihood: TreeLikelihood,
        lnl: float,
        radius: int,
        rng: np.random.Generator,
        best: Tree | None = None,
        constraint: Constraint | None = None,
    ):
        self.likelihood = likelihood
        self.lnl = lnl
        self.radius = radius
        self.constraint = constraint
        self._rng = rng
        self._base = likelihood.tree.copy()
        self.best = best or self._base

    def step(self) -> tuple[Move, ...]:
        """Perturb and climb; return the moves that led to a better tree, none if there is no better tree."""
        likelihood = self.likelihood
        jump = self._jump()
        lnl, moves = self._climb(jump.joints)
        if lnl > self.lnl - ROUND_EPSILON:
            lnl = smooth(likelihood, SMOOTHING_EPSILON).lnl
        if lnl < self.lnl - PLATEAU_DEPTH:
            self._return_to(self._base)
            return ()
        self._base = likelihood.tree.copy()
        if lnl <= self.lnl:
            return ()
        self.lnl, self.best = lnl, self._base
        return jump.chosen + moves

    def finish(self) -> None:
        """Put the best tree back into the likelihood."""
        self._return_to(self.best)

    def _jump(self) -> Round:
        """Apply all moves that gain on reweighted sites in a region of the tree."""
        likelihood, joints = self.likelihood, self._region()
        with likelihood.reweighted(reweight(likelihood.engine.weights, self._rng)):
            lnl = likelihood.lnl()
            return climb_round(likelihood, lnl, RATCHET_RADIUS, NARROW, joints, RATCHET_EPSILON, self.constraint)

    def _region(self) -> IndexArray | None:
        """About RATCHET_REGION inner nodes around a random one; None (all) if the tree has no more.

        In a large tree a perturbation of all regions would gain in some and lose in others; only the sum would count.
        """
        tree = self.likelihood.tree
        if tree.n_taxa - 2 <= RATCHET_REGION:
            return None
        near = np.array([self._rng.integers(tree.n_taxa, tree.n_nodes)])
        while len(near) < RATCHET_REGION:
            mask = nodes_near(tree, near, 1)
            mask[: tree.n_taxa] = False
            near = np.flatnonzero(mask)
        return near

    def _climb(self, joints: IndexArray) -> tuple[float, tuple[Move, ...]]:
        """Make rounds on the original weights around `joints`; return lnL and the moves.

        A tree that is still behind the best after a round is given up, because further rounds hardly ever catch up.
        """
        lnl = smooth(self.likelihood, ROUND_EPSILON).lnl
        moves: tuple[Move, ...] = ()
        while len(joints):
            done = climb_round(self.likelihood, lnl, self.radius, NARROW, joints, constraint=self.constraint)
            gain, lnl, joints = done.lnl - lnl, done.lnl, done.joints
            moves += done.chosen
            if gain < STAGE_EPSILON / 2 or lnl < self.lnl - PLATEAU_DEPTH:
                break
        return lnl, moves

    def _return_to(self, tree: Tree) -> None:
        self.likelihood.tree.assign(tree)
        self.likelihood.topology_changed()
