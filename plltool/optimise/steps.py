"""Newton-like steps for branch lengths."""

from __future__ import annotations

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH

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
