"""Tests of topologies: against the papers, replicate by replicate, and against closed forms."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from plltool.analyses.topology_tests import statistics
from plltool.analyses.topology_tests.statistics import (
    TopologyTests,
    compare_with_best,
    difference_errors,
    fit_multiscale,
    run_tests,
    smallest_set,
    win_shares,
)
from plltool.arrays import likelihood_weights
from plltool.constants import TEST_LEVEL

N_REPLICATES = 400


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(9)
    gains = np.array([0.0, -1.5, -0.7, -4.0])
    noise = rng.normal(0, 2, (N_REPLICATES, 4))
    return gains, gains + noise


def test_kh_and_sh_replicate_by_replicate(drawn):
    """Kishino & Hasegawa 1989 with the bootstrap's centring; Shimodaira & Hasegawa 1999, steps 1 to 6."""
    gains, sums = drawn
    errors = np.full((4, 4), 3.0) + np.arange(4) + np.arange(4)[:, None]
    found = compare_with_best(gains, sums, errors)
    for tree in range(4):
        others = [k for k in range(4) if k != tree]
        best = max(others, key=lambda k: gains[k])
        weighted = max(others, key=lambda k: (gains[k] - gains[tree]) / errors[tree, k])
        counts = np.zeros(4)
        for row in sums:
            c = row - gains
            counts[0] += c[best] - c[tree] >= gains[best] - gains[tree]
            counts[1] += max(c) - c[tree] >= max(gains) - gains[tree]
            counts[2] += c[weighted] - c[tree] >= gains[weighted] - gains[tree]
            largest = max((c[k] - c[tree]) / errors[tree, k] for k in others)
            counts[3] += largest >= (gains[weighted] - gains[tree]) / errors[tree, weighted]
        assert [row[tree] for row in found] == pytest.approx((counts / N_REPLICATES).tolist(), abs=1e-12)
    assert found[1][0] == 1.0


def test_likelihood_weights_replicate_by_replicate(drawn):
    _, sums = drawn
    expected = np.mean([[math.exp(x) / sum(math.exp(y) for y in row) for x in row] for row in sums.tolist()], axis=0)
    np.testing.assert_allclose(likelihood_weights(sums).mean(axis=0), expected, rtol=1e-12)
    assert likelihood_weights(sums - 5000).sum(axis=1) == pytest.approx(1.0, rel=1e-12)


def test_the_set_of_the_largest_weights():
    weights = np.array([0.04, 0.6, 0.01, 0.35])
    assert smallest_set(weights, 0.95).tolist() == [False, True, False, True]
    assert smallest_set(weights, 0.951).tolist() == [True, True, False, True]


def test_ties_are_shared():
    assert win_shares(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])).tolist() == [0.25, 0.75, 0.0]


@pytest.mark.parametrize(("d", "c"), [(1.0, 0.3), (0.2, -0.1), (-1.5, 0.2), (1.8, 0.0)])
def test_au_is_found_from_shares_that_follow_its_law(d, c):
    """Shimodaira 2002: the share at scale r is 1 - Phi(d sqrt(r) + c / sqrt(r)), the p-value 1 - Phi(d - c)."""
    scales = np.linspace(0.5, 1.4, 10)
    shares = norm.sf(d * np.sqrt(scales) + c / np.sqrt(scales))[:, None]
    fit = fit_multiscale(shares, scales, 10_000)
    assert fit[:3, 0].tolist() == pytest.approx([norm.sf(d - c), d, c], rel=1e-8, abs=1e-10)


def test_au_where_counts_say_little():
    """Trees that win never, always, once with most columns drawn, and always but once."""
    counts = np.repeat([[0, 10_000, 0, 10_000]], 10, axis=0)
    counts[-1, 2:] = 1, 9_999
    p, distance, _, low, high = fit_multiscale(counts / 10_000, np.array(statistics.AU_SCALES), 10_000)
    assert p[:2].tolist() == [0.0, 1.0]
    assert np.isnan(distance[:2]).all()
    assert low[2] < 1e-6 < 1 - 1e-6 < high[2], "d and c could be anything"
    assert p[3] > 0.99


def deviance(fit, counts, n):
    """Minus the logarithm of the binomial likelihood (Shimodaira 2002)."""
    z = fit[0] * np.sqrt(statistics.AU_SCALES) + fit[1] / np.sqrt(statistics.AU_SCALES)
    return -np.sum(counts * norm.logsf(z) + (n - counts) * norm.logcdf(z))


@pytest.mark.parametrize(
    "counts", [[9, 5, 2, 1, 0, 0, 1, 0, 0, 0], [400, 300, 210, 150, 100, 80, 60, 40, 30, 20], [0, 1, 2, 4] + [5] * 6]
)
def test_the_fit_has_the_largest_likelihood(counts):
    """scipy's simplex, which knows no derivatives, finds the same coefficients; zeros count."""
    counts = np.array(counts)
    p, d, c = fit_multiscale(counts[:, None] / 10_000, np.array(statistics.AU_SCALES), 10_000)[:3, 0].tolist()
    start = [d + 0.5, c - 0.3]
    options = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 5000, "maxfev": 5000}
    best = minimize(deviance, start, (counts, 10_000), method="Nelder-Mead", options=options)
    assert [d, c] == pytest.approx(best.x.tolist(), abs=1e-5)
    assert p == pytest.approx(norm.sf(best.x[0] - best.x[1]), rel=1e-4)


def judge(d, c, rng, n_draws=300, n=10_000):
    """The shares of draws in which AU keeps a tree, rejects it, and cannot tell."""
    z = d * np.sqrt(statistics.AU_SCALES) + c / np.sqrt(statistics.AU_SCALES)
    counts = rng.binomial(n, norm.sf(z)[:, None], (len(statistics.AU_SCALES), n_draws))
    fit = fit_multiscale(counts / n, np.array(statistics.AU_SCALES), n)
    nothing = np.zeros(n_draws)
    tests = TopologyTests(*[nothing] * 9, *fit)
    unclear = tests.au_undetermined
    return np.mean((tests.au >= TEST_LEVEL) & ~unclear), np.mean(tests.au < TEST_LEVEL), np.mean(unclear)


@pytest.mark.parametrize("curvature", [-0.3, 0.0, 0.3, 0.6])
def test_au_of_trees_that_are_hardly_ever_the_best(curvature):
    """Trees with p of 0.001 and less are hardly ever kept; for others AU can tell, and rejects as often as it must."""
    rng = np.random.default_rng(5)
    for p in (1e-4, 3e-4, 1e-3):
        assert judge(norm.isf(p) + curvature, curvature, rng)[0] <= 0.01
    for p, least, most in ((0.01, 0.98, 1), (0.05, 0.4, 0.6), (0.1, 0, 0.02), (0.3, 0, 0.02), (0.5, 0, 0.02)):
        _, rejected, unclear = judge(norm.isf(p) + curvature, curvature, rng)
        assert unclear <= 0.02
        assert least <= rejected <= most


def test_au_keeps_a_tree_that_is_hardly_ever_worse():
    """One replicate at one scale tells nothing of d and c; the tree is the best, nevertheless."""
    counts = np.array([[9_999] + [10_000] * 9]).T
    fit = fit_multiscale(counts / 10_000, np.array(statistics.AU_SCALES), 10_000)
    tests = TopologyTests(*[np.ones(1)] * 9, *fit)
    assert (tests.au_low[0], tests.au[0], tests.au_undetermined[0]) == (0.0, 1.0, False)


def test_two_trees():
    """For two trees, KH and AU are the probability of a normal difference of this size (the boundary is flat)."""
    rng = np.random.default_rng(12)
    sites = np.stack([rng.normal(-5, 1, 800), np.empty(800)])
    sites[1] = sites[0] + rng.normal(0, 0.3, 800)
    sites[1] -= (sites[1] - sites[0]).mean() + 8 / 800  # 8 lnL worse
    weights = [np.ones(800)]
    expected = norm.sf(8 / difference_errors(sites, weights)[0, 1])
    tests = run_tests(sites, weights, 4000, np.random.default_rng(13))
    assert 0.1 < expected < 0.3
    error = 4 * math.sqrt(expected / 4000)  # of a share of 4,000 replicates, four times
    for p in (tests.kh, tests.wkh, tests.sh, tests.au, tests.bp):
        assert p[1] == pytest.approx(expected, abs=error + 0.01)  # the bootstrap is not quite normal
    assert tests.kh[0] == pytest.approx(1 - expected, abs=error + 0.01)
    assert tests.sh[0] == 1.0
    assert tests.delta.tolist() == pytest.approx([0.0, 8.0], abs=1e-9)
    assert tests.elw.sum() == pytest.approx(1.0, rel=1e-12)


def test_equal_trees():
    sites = np.repeat(np.random.default_rng(1).normal(-3, 1, (1, 50)), 3, axis=0)
    tests = run_tests(sites, [np.ones(50)], 100, np.random.default_rng(2))
    for p in (tests.kh, tests.sh, tests.wkh, tests.wsh):
        assert p.tolist() == [1.0, 1.0, 1.0]
    np.testing.assert_allclose(tests.elw, 1 / 3, rtol=1e-12)
    np.testing.assert_allclose(tests.bp, 1 / 3, rtol=1e-12)


def test_two_trees_that_differ_by_rounding_have_the_same_au():
    """A third tree is about as good; one of the first two is always better, by less than statistics.AU_TIE."""
    rng = np.random.default_rng(15)
    first = rng.normal(-5, 1, 300)
    sites = np.stack([first, first + 1e-6, first + rng.normal(0, 0.2, 300)])
    tests = run_tests(sites, [np.ones(300)], 1000, np.random.default_rng(16))
    assert tests.au[0] == pytest.approx(tests.au[1], abs=0.05)
    assert tests.bp[0] == 0.0


@pytest.mark.parametrize("spread", [1e-6, 1e-4, 1e-3, 2e-3, 3e-3, 5e-3, 7e-3, 0.012, 0.02, 0.1, 1.0])
def test_au_keeps_two_trees_that_are_equally_good(spread):
    """The boundary between two trees is flat and both lie on it: p is 0.5, or 1 for trees that are the same."""
    rng = np.random.default_rng(17)
    first, change = rng.normal(-5, 1, 400), rng.normal(size=400)
    change -= change.mean()
    sites = np.stack([first, first + change * spread / math.sqrt(np.sum(change**2))])
    au = run_tests(sites, [np.ones(400)], 2000, np.random.default_rng(18)).au
    assert au[0] == pytest.approx(au[1], abs=0.1)
    assert au[0] == pytest.approx(1.0 if spread < statistics.AU_TIE else 0.5, abs=0.05)


def test_a_third_tree_wins_against_either_of_two_that_tie():
    """Trees that tie are the best together as often as one of them alone would be: the third is their complement."""
    rng = np.random.default_rng(19)
    first, change = rng.normal(-5, 1, 300), rng.normal(size=300)
    change *= 0.003 / math.sqrt(np.sum((change - change.mean()) ** 2))
    sites = np.stack([first, first + change - change.mean(), first + rng.normal(0, 0.2, 300)])
    au = run_tests(sites, [np.ones(300)], 2000, np.random.default_rng(20)).au
    alone = run_tests(sites[[0, 2]], [np.ones(300)], 2000, np.random.default_rng(20)).au
    np.testing.assert_allclose(au, [alone[0], alone[0], alone[1]], atol=0.02)


def test_au_rejects_a_tree_that_is_worse_everywhere():
    """Such a tree never wins, however columns are drawn."""
    first = np.random.default_rng(21).normal(-5, 1, 300)
    tests = run_tests(np.stack([first, first - 1e-3]), [np.ones(300)], 100, np.random.default_rng(22))
    assert tests.au.tolist() == [1.0, 0.0]
