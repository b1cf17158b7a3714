"""The gamma distribution against scipy's."""

import math

import numpy as np
import pytest
from scipy import special

from plltool.constants import MAX_ALPHA, MIN_ALPHA
from plltool.model.gamma import gamma_probability, gamma_quantile

SHAPES = [MIN_ALPHA, 0.05, 0.3, 0.5, 1.0, 2.7, 30.0, MAX_ALPHA, MAX_ALPHA + 1.0]
PROBABILITIES = [1e-12, 1e-4, 1 / 128, 0.125, 0.25, 0.5, 0.75, 0.875, 127 / 128, 1 - 1e-6]


@pytest.mark.parametrize("shape", SHAPES)
def test_quantiles(shape):
    found = [gamma_quantile(shape, p) for p in PROBABILITIES]
    np.testing.assert_allclose(found, special.gammaincinv(shape, PROBABILITIES), rtol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_probabilities(shape):
    values = np.append(np.geomspace(1e-30, 200.0, 40), shape)
    found = [gamma_probability(shape, x) for x in values.tolist()]
    np.testing.assert_allclose(found, special.gammainc(shape, values), rtol=1e-12, atol=1e-300)


def test_exponential_distribution():
    """Shape 1: P = 1 - exp(-x)."""
    for x in (1e-9, 0.1, 1.0, 10.0):
        assert gamma_probability(1.0, x) == pytest.approx(-math.expm1(-x), rel=1e-14)
        assert gamma_quantile(1.0, -math.expm1(-x)) == pytest.approx(x, rel=1e-11)


def test_ends():
    assert gamma_probability(0.5, 0.0) == 0.0
    assert gamma_probability(0.5, math.inf) == 1.0
    assert gamma_quantile(0.5, 0.0) == 0.0
    assert gamma_quantile(0.5, 1.0) == math.inf
