"""The gamma distribution of scale 1: probabilities and quantiles.

scipy.special has both, but its import takes as long as opening a device: a tenth of a search of 100 taxa.
"""

from __future__ import annotations

import math

PRECISION = 1e-16  # of the series, relative
LAST_STEP = 1e-9  # in log x; Newton's method squares the error, so the next step is below rounding
MAX_STEPS = 200  # typical 4 to 8


def gamma_probability(shape: float, x: float) -> float:
    """P(X <= x), the regularised lower incomplete gamma function, for shape > 0 and x >= 0, which may be infinite.

    The power series (Abramowitz & Stegun 6.5.29) has only positive terms, so tiny probabilities are exact to rounding.
    """
    if x in (0.0, math.inf):
        return float(x > 0)
    return math.exp(_log_factor(shape, math.log(x)) + math.log(_series(shape, x)))


def gamma_quantile(shape: float, probability: float) -> float:
    """The x with P(X <= x) = `probability`, for shape > 0; 0 and infinity for probabilities 0 and 1.

    Newton's method solves for log P as a function of log x. That function is concave, and the first term of the series
    gives a point at or below the quantile: from there every step moves closer and none overshoots.
    """
    if probability in (0.0, 1.0):
        return math.inf if probability else 0.0
    target = math.log(probability)
    log_x = (target + math.lgamma(shape + 1.0)) / shape
    for _ in range(MAX_STEPS):
        series = _series(shape, math.exp(log_x))
        step = (target - _log_factor(shape, log_x) - math.log(series)) * series / shape
        log_x += step
        if abs(step) < LAST_STEP:
            break
    return math.exp(log_x)


def _log_factor(shape: float, log_x: float) -> float:
    """log of x^shape exp(-x) / Gamma(shape + 1)."""
    return shape * log_x - math.exp(log_x) - math.lgamma(shape + 1.0)


def _series(shape: float, x: float) -> float:
    """1 + x / (shape + 1) + x^2 / ((shape + 1) (shape + 2)) + ..."""
    total = term = 1.0
    while term > PRECISION * total:
        shape += 1.0
        term *= x / shape
        total += term
    return total
