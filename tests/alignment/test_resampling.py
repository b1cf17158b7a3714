"""Resampled columns: counts stay within parts, and sums have the expected moments."""

import numpy as np
import pytest

from plltool.alignment import resampling
from plltool.alignment.resample import Urn
from plltool.alignment.resampling import resample_once, resampled_sums
from plltool.analyses.topology_tests.statistics import difference_errors

PARTS = [np.array([3.0, 1.0, 4.0]), np.array([2.0, 5.0])]


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.4])
def test_every_part_keeps_its_columns(scale):
    rng = np.random.default_rng(1)
    urns = [Urn(own) for own in PARTS]
    for _ in range(20):
        weights = resample_once(urns, rng, scale)
        assert weights[:3].sum() == round(8 * scale)
        assert weights[3:].sum() == round(7 * scale)


def test_draws_do_not_depend_on_batches(monkeypatch):
    sites = np.random.default_rng(2).normal(size=(3, 5))
    whole = resampled_sums(sites, PARTS, 50, np.random.default_rng(3))
    monkeypatch.setattr(resampling, "RESAMPLED_VALUES", 35)
    np.testing.assert_allclose(resampled_sums(sites, PARTS, 50, np.random.default_rng(3)), whole, rtol=1e-12)


def test_moments():
    """Mean and variance of a sum of columns drawn with replacement, from the definition."""
    sites = np.random.default_rng(4).normal(size=(2, 5))
    drawn = resampled_sums(sites, PARTS, 20_000, np.random.default_rng(5))
    np.testing.assert_allclose(drawn.mean(axis=0), sites @ np.concatenate(PARTS), atol=4 * 5 / np.sqrt(20_000))
    variance = 0.0
    for patterns, weights in (([0, 1, 2], PARTS[0]), ([3, 4], PARTS[1])):
        values = np.repeat((sites[0] - sites[1])[patterns], weights.astype(int))
        variance += len(values) * np.mean((values - values.mean()) ** 2)
    assert difference_errors(sites, PARTS)[0, 1] == pytest.approx(np.sqrt(variance), rel=1e-12)
    assert np.std(drawn[:, 0] - drawn[:, 1]) == pytest.approx(np.sqrt(variance), rel=0.03)  # its own error is 0.005
