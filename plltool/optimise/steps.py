"""Newton-like steps for branch lengths."""

from __future__ import annotations

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import FLAT_SLOPE, MAX_BRANCH_LENGTH, MAX_LENGTH_FACTOR, MIN_BRANCH_LENGTH


def apply_step(lengths: FloatArray, step: FloatArray) -> FloatArray:
    """Lengths after a Newton step, kept positive by the shape of a branch's likelihood.

    Near its maximum lnL(t) of a branch looks like x log t - c t (x changes seen, c expected per unit length). Its
    Newton step d at t solves for the maximum as t / (1 - d/t): equal to t + d for small steps, positive for any
    d < 0, and right in one step from lengths orders of magnitude too short. Ratios are limited to
    MAX_LENGTH_FACTOR a step.
    """
    relative = step / lengths
    ratio = 1.0 / np.maximum(1.0 - relative, 1.0 / MAX_LENGTH_FACTOR)
    return np.clip(lengths * np.maximum(ratio, 1.0 / MAX_LENGTH_FACTOR), MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)


def newton_step(lengths: FloatArray, d1: FloatArray, d2: FloatArray) -> FloatArray:
    """-d1/d2 where lnL is concave; elsewhere as far uphill as `apply_step` allows.

    Lengths without influence, such as that of a taxon without data, stay: rounding would send them away.
    """
    concave, d1 = d2 < 0, without_rounding(d1)
    return np.where(concave, -d1 / np.where(concave, d2, -1.0), np.sign(d1) * MAX_LENGTH_FACTOR * lengths)


def without_rounding(slopes: FloatArray) -> FloatArray:
    """The slopes, 0 where they are less than FLAT_SLOPE."""
    return np.where(np.abs(slopes) < FLAT_SLOPE, 0.0, slopes)


def at_bound(lengths: FloatArray, d1: FloatArray) -> BoolArray:
    """Lengths that stand at a bound and want to go beyond it."""
    return ((lengths <= MIN_BRANCH_LENGTH) & (d1 <= 0)) | ((lengths >= MAX_BRANCH_LENGTH) & (d1 >= 0))
