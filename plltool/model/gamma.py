"""The gamma distribution of scale 1: probabilities and quantiles.

scipy.special has both, but its import takes as long as opening a device: a tenth of a search of 100 taxa.
"""

from __future__ import annotations

import math

PRECISION = 1e-16  # of the series, relative
LAST_STEP = 1e-9  # in log x; Newton's method squares the error, so the next step is below rounding
MAX_STEPS = 200  # typical 4 to 8
STIRLING_SHAPE = 100.0  # from which on Stirling's series of log Gamma(shape + 1) is exact to rounding
LARGE_SHAPE = 1e4  # from which on quantiles are expanded, to 1e-14; here the power series has 800 terms


def gamma_probability(shape: float, x: float) -> float:
    """P(X <= x), the regularised lower incomplete gamma function, for shape > 0 and x >= 0, which may be infinite.

    The power series (Abramowitz & Stegun 6.5.29) has only positive terms, so tiny probabilities are exact to rounding.
    """
    if x in (0.0, math.inf):
        return float(x > 0)
    return gamma_step(shape, x) * _series(shape, x)


def gamma_step(shape: float, x: float) -> float:
    """P(X <= x) minus the same for shape + 1: x^shape exp(-x) / Gamma(shape + 1); x may be infinite.

    Abramowitz & Stegun 6.5.21. For large shapes it is exact to rounding, where the difference of both would not be.
    """
    return 0.0 if x in (0.0, math.inf) else math.exp(_log_step(shape, math.log(x)))


def gamma_quantile(shape: float, probability: float) -> float:
    """The x with P(X <= x) = `probability`, for shape > 0; 0 and infinity for probabilities 0 and 1.

    Newton's method solves for log P as a function of log x. That function is concave, and the first term of the series
    gives a point at or below the quantile: from there every step moves closer and none overshoots. Quantiles of large
    shapes are expanded in 1 / sqrt(shape).
    """
    if probability in (0.0, 1.0):
        return math.inf if probability else 0.0
    if shape >= LARGE_SHAPE:
        return shape * (1.0 + _expand_quantile(1.0 / math.sqrt(shape), probability))
    target = math.log(probability)
    log_x = (target + math.lgamma(shape + 1.0)) / shape
    for _ in range(MAX_STEPS):
        series = _series(shape, math.exp(log_x))
        step = (target - _log_step(shape, log_x) - math.log(series)) * series / shape
        log_x += step
        if abs(step) < LAST_STEP:
            break
    return math.exp(log_x)


def _expand_quantile(deviation: float, probability: float) -> float:
    """Quantile over mean, minus 1, of a gamma distribution whose standard deviation is a small share of its mean.

    A Cornish-Fisher expansion (Goldberg & Levine 1946, for chi-squared distributions) to the fifth power.
    """
    from statistics import NormalDist  # here, because importing it takes 20 ms

    z = NormalDist().inv_cdf(probability)
    powers = (
        z,
        (z**2 - 1) / 3,
        (z**3 - 7 * z) / 36,
        -(3 * z**4 + 7 * z**2 - 16) / 810,
        (9 * z**5 + 256 * z**3 - 433 * z) / 38880,
    )
    return sum(power * deviation**k for k, power in enumerate(powers, start=1))


def _log_step(shape: float, log_x: float) -> float:
    if shape < STIRLING_SHAPE:
        return shape * log_x - math.exp(log_x) - math.lgamma(shape + 1.0)
    beyond = log_x - math.log(shape)  # terms of the order of shape, which would cancel, are left out
    stirling = 1 / (12 * shape) - 1 / (360 * shape**3) + 1 / (1260 * shape**5)
    return shape * (beyond - math.expm1(beyond)) - 0.5 * math.log(2 * math.pi * shape) - stirling


def _series(shape: float, x: float) -> float:
    """1 + x / (shape + 1) + x^2 / ((shape + 1) (shape + 2)) + ..."""
    total = term = 1.0
    while term > PRECISION * total:
        shape += 1.0
        term *= x / shape
        total += term
    return total
