"""Minima of smooth functions within bounds.

Projected L-BFGS: the curvature pairs of Liu and Nocedal (1989) on the variables that are free to move, and steps that
are projected onto the bounds (Bertsekas 1982). scipy has L-BFGS-B, but its import takes a quarter of a second, a third
of a search of 50 taxa.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import CURVATURE_PAIRS, MAX_BACKTRACKS, SUFFICIENT_DECREASE

Pairs = deque[tuple[FloatArray, FloatArray]]


def minimise(
    function: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    bounds: FloatArray,
    epsilon: float,
    max_iterations: int,
) -> FloatArray:
    """Find a minimum of `function` within `bounds` from `start`.

    Parameters
    ----------
    function : returns value and gradient (n,) at a vector (n,)
    start : (n,), moved to the bounds if it lies beyond them
    bounds : (n, 2) low, high
    epsilon : stop if an iteration decreases the value by less, unless the iteration had no curvature information
    max_iterations : the most iterations

    Returns
    -------
    float64 (n,), the best point met.
    """
    low, high = bounds.T
    x = np.clip(start, low, high)
    value, gradient = function(x)
    pairs: Pairs = deque(maxlen=CURVATURE_PAIRS)
    for _ in range(max_iterations):
        free = ~(((x <= low) & (gradient >= 0)) | ((x >= high) & (gradient <= 0)))
        direction = _quasi_newton(np.where(free, gradient, 0.0), free, pairs)
        blind = not pairs  # no curvature: the length of the step is a guess
        scale = min(1.0, 1.0 / max(np.abs(gradient[free]).sum(), np.finfo(float).tiny)) if blind else 1.0
        found = _search_line(function, x, value, gradient, scale * direction, low, high)
        if found is None:
            if blind:
                break
            pairs.clear()  # try steepest descent
            continue
        new_x, new_value, new_gradient = found
        change, turn = new_x - x, new_gradient - gradient
        if change @ turn > np.finfo(float).eps * (turn @ turn):
            pairs.append((change, turn))
        gain = value - new_value
        x, value, gradient = new_x, new_value, new_gradient
        if gain < epsilon and not blind:
            break
    return x


def _quasi_newton(gradient: FloatArray, free: FloatArray, pairs: Pairs) -> FloatArray:
    """Minus the inverse Hessian, approximated from `pairs` for the free variables, times their gradient."""
    direction = -gradient
    curved = [(s, y) for s, y in ((np.where(free, s, 0.0), np.where(free, y, 0.0)) for s, y in pairs) if s @ y > 0]
    if not curved:
        return direction
    weights = []
    for s, y in reversed(curved):
        weights.append((s @ direction) / (s @ y))
        direction = direction - weights[-1] * y
    s, y = curved[-1]
    direction = direction * ((s @ y) / (y @ y))
    for (s, y), weight in zip(curved, reversed(weights), strict=True):
        direction = direction + (weight - (y @ direction) / (s @ y)) * s
    return direction


def _search_line(
    function: Callable[[FloatArray], tuple[float, FloatArray]],
    x: FloatArray,
    value: float,
    gradient: FloatArray,
    step: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, float, FloatArray] | None:
    """Backtrack from x + step to the first point that is low enough: point, value, gradient; None without one."""
    share = 1.0
    for _ in range(MAX_BACKTRACKS):
        trial = np.clip(x + share * step, low, high)
        promised = float(gradient @ (trial - x))
        if not promised < 0:
            return None
        reached, slopes = function(trial)
        if reached <= value + SUFFICIENT_DECREASE * promised:
            return trial, reached, slopes
        parabola = -promised / (2 * (reached - value - promised))  # its minimum, from value, slope and new value
        share *= min(0.5, max(0.1, parabola))
    return None
