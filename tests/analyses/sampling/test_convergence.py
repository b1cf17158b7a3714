"""Effective sample sizes of known processes; R-hat and split frequencies by their definitions."""

import math

import numpy as np
import pytest
from scipy import stats

from plltool.analyses.sampling.samples import effective_size, r_hat, split_deviation


def walk(rng, n, correlation):
    """An autoregressive process, whose effective size is n (1 - c) / (1 + c)."""
    values = [rng.normal()]
    for step in rng.normal(size=n - 1) * math.sqrt(1 - correlation**2):
        values.append(correlation * values[-1] + step)
    return values


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, -0.4])
def test_effective_size_of_an_autoregressive_process(correlation):
    rng, n = np.random.default_rng(1), 5000
    found = effective_size(np.array([walk(rng, n, correlation) for _ in range(3)]))
    # its own error: the integrated time is estimated from some hundred independent blocks
    assert found == pytest.approx(3 * n * (1 - correlation) / (1 + correlation), rel=0.15)


def test_effective_size_of_runs_that_disagree():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(2, 1000))
    assert effective_size(values) > 1500
    assert effective_size(values + np.array([[0.0], [5.0]])) < 10


def test_r_hat_is_that_of_normal_scores_of_halves():
    rng = np.random.default_rng(3)
    values = rng.gamma(1.0, size=(2, 40))
    halves = values.reshape(4, 20)

    def plain(x):
        scores = stats.norm.ppf((stats.rankdata(x).reshape(x.shape) - 0.375) / (x.size + 0.25))
        between, within = 20 * np.var(scores.mean(axis=1), ddof=1), np.var(scores, axis=1, ddof=1).mean()
        return math.sqrt((19 / 20 * within + between / 20) / within)

    expected = max(plain(halves), plain(abs(halves - np.median(halves))))
    assert r_hat(values) == pytest.approx(expected, rel=1e-9)  # quantiles by another algorithm
    assert r_hat(np.repeat(values, 2, axis=1).round(1)) > 0.99  # ties


@pytest.mark.parametrize("values", [np.zeros((2, 5)), np.ones((2, 100))])
def test_nothing_is_known_of_few_or_equal_values(values):
    assert math.isnan(effective_size(values))
    assert math.isnan(r_hat(values))


def test_split_deviation():
    shares = [{3: 1.0, 5: 0.5, 9: 0.05}, {3: 1.0, 5: 0.3, 6: 0.2}]
    # splits 3, 5 and 6 count: deviations 0, 0.2 / sqrt(2), 0.2 / sqrt(2)
    assert split_deviation(shares) == pytest.approx(0.4 / math.sqrt(2) / 3)
    assert math.isnan(split_deviation(shares[:1]))
    assert math.isnan(split_deviation([{}, {1: 0.05}])), "no split counts"
