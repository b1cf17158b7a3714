"""Leaving local optima: the ratchet (Nixon 1999; for likelihood Vos 2003), with fusing.

A climb ends when no move gains on the original weights. On randomly reweighted sites other moves gain, which many sites
support. Applied all at once, and followed by a round of climbing on the original weights, they lead to a tree that is
better in some places and worse in others. Fusing takes what is better, so that one perturbation serves the whole of a
tree of any size.
"""

from __future__ import annotations

import numpy as np

from plltool.arrays import FloatArray
from plltool.optimise.lengths import SMOOTHING_EPSILON, smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.constraint import Constraint
from plltool.tree_search.climb import ROUND_EPSILON, climb_round
from plltool.tree_search.fusing import fuse

RATCHET_SHARE = 0.25  # of the patterns, whose weights a perturbation multiplies by RATCHET_FACTOR (Nixon 1999)
RATCHET_FACTOR = 2.0
RATCHET_RADII = (5, 20)  # of the moves that a perturbation makes, and of the climb after it
LONG_BRANCH = 1.0  # substitutions per site: beyond, all places of a subtree are alike, so it is drawn nearer first
RATCHET_EPSILON = 2.0  # lnL precision of branch lengths on reweighted sites


def reweight(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The weights, each multiplied by RATCHET_FACTOR with probability RATCHET_SHARE; same shape."""
    return np.where(rng.random(weights.shape) < RATCHET_SHARE, RATCHET_FACTOR, 1.0) * weights


def resample(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The weights, each multiplied by an exponential random number of mean 1 (Rubin 1981); same shape.

    This changes more than `reweight`. With several parts, climbs end where one part prevents what another one needs.
    """
    return rng.exponential(size=weights.shape) * weights


def perturb(
    likelihood: TreeLikelihood, lnl: float, rng: np.random.Generator, constraint: Constraint | None = None
) -> tuple[float, int]:
    """Perturb the likelihood's tree, climb and fuse; return lnL and the number of places where the tree is better.

    `lnl` is that of the tree, whose lengths are optimal; it never falls. The tree obeys the `constraint`.
    """
    base = likelihood.tree.copy()
    _jump(likelihood, rng, constraint)
    donor = likelihood.tree.copy()
    likelihood.set_tree(base)
    fused, n_taken = fuse(likelihood, donor, lnl, constraint)
    if fused <= lnl:
        return lnl, 0
    return smooth(likelihood, SMOOTHING_EPSILON).lnl, n_taken


def _jump(likelihood: TreeLikelihood, rng: np.random.Generator, constraint: Constraint | None) -> None:
    """Apply all moves that gain on reweighted sites, and climb for a round on the original ones around them."""
    jump, radius = RATCHET_RADII
    np.minimum(likelihood.tree.lengths, LONG_BRANCH, out=likelihood.tree.lengths)
    draw = reweight if len(likelihood.models) == 1 else resample
    with likelihood.reweighted(draw(likelihood.engine.weights, rng)):
        lnl = likelihood.lnl()
        jumped = climb_round(likelihood, lnl, jump, epsilon=RATCHET_EPSILON, constraint=constraint)
    lnl = smooth(likelihood, ROUND_EPSILON).lnl
    if len(jumped.joints):
        climb_round(likelihood, lnl, radius, jumped.joints, constraint=constraint)
