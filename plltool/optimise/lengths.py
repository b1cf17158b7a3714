"""Optimise all branch lengths at once by damped Newton steps, with the derivatives of all branches in one launch."""

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.errors import EngineError
from plltool.model.model import SCALER
from plltool.optimise.likelihood import TreeLikelihood, possible_likelihoods

MAX_LENGTH_FACTOR = 16.0  # a branch length changes at most by this factor in one step
FLAT_SLOPE = 1e-8  # lnL per unit of length; smaller slopes are rounding errors, and say nothing about the length


def apply_step(lengths: FloatArray, step: FloatArray) -> FloatArray:
    """Lengths after a Newton step, adapted to the shape of lnL so that they stay positive.

    Near its maximum, lnL(t) of a branch is close to x log t - c t, for x changes seen and c expected per unit length.
    With a Newton step d from t, the maximum of this function is at t / (1 - d/t). That is close to t + d for small
    steps, positive for any d < 0, and correct in one step from lengths that are orders of magnitude too short. The
    ratio of new to old lengths is limited to MAX_LENGTH_FACTOR.
    """
    relative = step / lengths
    ratio = 1.0 / np.maximum(1.0 - relative, 1.0 / MAX_LENGTH_FACTOR)
    return np.clip(lengths * np.maximum(ratio, 1.0 / MAX_LENGTH_FACTOR), MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)


def newton_step(lengths: FloatArray, d1: FloatArray, d2: FloatArray) -> FloatArray:
    """-d1/d2 where lnL is concave; elsewhere as far uphill as `apply_step` allows.

    Lengths without influence, such as that of a taxon without data, do not change; rounding alone would move them.
    """
    concave, d1 = d2 < 0, without_rounding(d1)
    return np.where(concave, -d1 / np.where(concave, d2, -1.0), np.sign(d1) * MAX_LENGTH_FACTOR * lengths)


def without_rounding(slopes: FloatArray) -> FloatArray:
    """The slopes, with 0 for those below FLAT_SLOPE."""
    return np.where(np.abs(slopes) < FLAT_SLOPE, 0.0, slopes)


def at_bound(lengths: FloatArray, d1: FloatArray) -> BoolArray:
    """Whether each length is at a bound and its derivative points beyond it."""
    return ((lengths <= MIN_BRANCH_LENGTH) & (d1 <= 0)) | ((lengths >= MAX_BRANCH_LENGTH) & (d1 >= 0))


MAX_SMOOTHING_ROUNDS = 100  # rounds over all branches; typical 5 to 15
SMOOTHING_EPSILON = 0.01  # branch lengths have converged when a full Newton step promises less lnL
DAMPING_GROWTH = 1.5  # growth of the damping factor of a length whose derivative kept its sign


def predicted_gains(lengths: FloatArray, d1: FloatArray, d2: FloatArray) -> FloatArray:
    """The gain in lnL that a full Newton step of each free length promises, if neighbours did not interact."""
    step = apply_step(lengths, newton_step(lengths, d1, d2)) - lengths
    concave = d2 < 0
    gain = np.where(concave, d1**2 / (2 * np.where(concave, -d2, 1.0)), d1 * step)
    return np.where(at_bound(lengths, d1), 0.0, np.minimum(gain, np.abs(d1 * step)))


def smooth(likelihood: TreeLikelihood, epsilon: float = SMOOTHING_EPSILON) -> float:
    """Optimise all branch lengths of the likelihood's tree in place; return lnL, which never falls.

    Each round computes lnL and both derivatives of every branch and changes all lengths at once. Neighbours interact,
    so each length has its own damping, which is halved when the first derivative changes its sign and grows back
    otherwise. If lnL falls, the next round tries half the step of each length. Parts with lengths of their own are
    judged by their own lnL. The lengths have converged when the predicted gain of a full step is below `epsilon`.
    """
    tree = likelihood.tree
    best = np.clip(tree.lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
    best_lnl, slopes = likelihood.known_derivatives(best)
    damping = np.ones(best.shape)
    gains = predicted_gains(best, slopes[..., 0], slopes[..., 1])
    rounds = 1
    while gains.sum() >= epsilon and rounds < MAX_SMOOTHING_ROUNDS:
        steps = damping * (apply_step(best, newton_step(best, slopes[..., 0], slopes[..., 1])) - best)
        trial = np.clip(best + steps, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)  # rounding may pass a bound
        try:
            lnl, trial_slopes = likelihood.all_derivatives(trial)
        except EngineError:  # at these lengths some pattern cannot be represented
            lnl, trial_slopes = np.full_like(best_lnl, -np.inf), slopes
        rounds += 1
        flipped = trial_slopes[..., 0] * slopes[..., 0] < 0
        better = lnl > best_lnl
        shrunk = np.where(flipped, damping / 4, damping / 2)
        grown = np.where(flipped, damping / 2, np.minimum(1.0, damping * DAMPING_GROWTH))
        damping = np.where(better, grown, shrunk)
        best, best_lnl = np.where(better, trial, best), np.where(better, lnl, best_lnl)
        slopes = np.where(better[..., None], trial_slopes, slopes)
        if not np.any(better) and np.all(damping < 1e-6):
            break
        gains = predicted_gains(best, slopes[..., 0], slopes[..., 1])
    tree.lengths[:] = best
    return float(best_lnl.sum())


SCALES = tuple(2.0**step for step in range(-4, 5) if step)  # of all lengths at once, from 1/16 to 16


def try_scales(likelihood: TreeLikelihood, lnl: float, epsilon: float) -> float:
    """Multiply all lengths by the best of SCALES as long as lnL gains `epsilon`; return lnL.

    With many taxa there is no doubt about the rate category of a site. If all lengths are wrong by about the ratio of
    two categories, most sites fit a neighbouring category almost as well, so lnL has an optimum there. The lengths are
    optimised to `epsilon` after each change; they stay as they are, with lnL `lnl`, where there is none. Without rate
    categories, and under +PSR, nothing is tried.
    """
    tree = likelihood.tree
    largest = likelihood.models[int(np.argmax(likelihood.part_sites))]
    while np.ptp(largest.mixture()[2]) > 0 and not largest.has_site_rates:
        tried = [[model.copy() for model in likelihood.models] for _ in SCALES]
        for models, factor in zip(tried, SCALES, strict=True):
            for model in models:
                model.set_ratios(SCALER, factor * model.ratios(SCALER))
        lnls = possible_likelihoods(likelihood, tried).sum(axis=1)
        best = int(np.argmax(lnls))
        if lnls[best] < lnl + epsilon:
            break
        tree.lengths[:] = np.clip(SCALES[best] * tree.lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
        lnl = smooth(likelihood, epsilon)
    return lnl
