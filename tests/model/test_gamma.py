"""The gamma distribution against scipy's."""

import math

import numpy as np
import pytest
from scipy import special

from plltool.constants import MAX_ALPHA, MIN_ALPHA
from plltool.model.gamma import LARGE_SHAPE, gamma_probability, gamma_quantile, gamma_step

SHAPES = [MIN_ALPHA, 0.05, 0.3, 0.5, 1.0, 2.7, 30.0, 99.0, 101.0]
LARGE_SHAPES = [1e3, 0.999 * LARGE_SHAPE, LARGE_SHAPE, 1e6, MAX_ALPHA]
PROBABILITIES = [1e-12, 1e-4, 1 / 128, 0.125, 0.25, 0.5, 0.75, 0.875, 127 / 128, 1 - 1e-6]


@pytest.mark.parametrize("shape", SHAPES)
def test_quantiles(shape):
    found = [gamma_quantile(shape, p) for p in PROBABILITIES]
    np.testing.assert_allclose(found, special.gammaincinv(shape, PROBABILITIES), rtol=1e-9)


@pytest.mark.parametrize("shape", LARGE_SHAPES)
def test_quantiles_of_large_shapes(shape):
    """In standard deviations from the mean; scipy's own error is a share of the whole quantile."""
    found = [gamma_quantile(shape, p) / shape - 1 for p in PROBABILITIES[2:-1]]
    expected = special.gammaincinv(shape, PROBABILITIES[2:-1]) / shape - 1
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 / math.sqrt(shape) + 1e-14)


@pytest.mark.parametrize("shape", [*SHAPES, 1e3, 1e4])
def test_steps_between_shapes(shape):
    """Against the difference of both probabilities."""
    values = shape + math.sqrt(shape) * np.array([-0.9, 0.0, 0.5, 2.0]) if shape > 1 else np.array([1e-3, 0.5, 2.0])
    expected = special.gammainc(shape, values) - special.gammainc(shape + 1, values)
    np.testing.assert_allclose([gamma_step(shape, x) for x in values.tolist()], expected, rtol=1e-12, atol=1e-14)


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
