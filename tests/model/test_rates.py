"""Gamma distribution, against scipy's, and rates over sites: categories, weights, start values."""

import math

import numpy as np
import pytest
from oracles.substitution import gamma_category_means, gamma_category_medians
from scipy import special

from plltool.constants import EVEN_DEVIATION, MAX_ALPHA, MAX_RATE_CATEGORIES, MIN_ALPHA, MIN_PINV, START_ALPHAS
from plltool.model.rates import (
    LARGE_SHAPE,
    SITE_BOUNDS,
    STIRLING_SHAPE,
    SiteRates,
    gamma_means,
    gamma_means_of_shares,
    gamma_medians,
    gamma_probability,
    gamma_quantile,
    gamma_step,
)

# rtol: the oracle's quadrature; measured 3e-14 at worst for alpha 0.1 .. 10
QUADRATURE = 1e-12


def test_yang_1994_example():
    # Yang 1994: alpha 0.5, 4 categories; printed with 4 decimals
    np.testing.assert_allclose(gamma_means(0.5, 4), [0.0334, 0.2519, 0.8203, 2.8944], atol=0.5e-4)


@pytest.mark.parametrize("n_categories", [2, 4, 8])
@pytest.mark.parametrize("alpha", [0.2, 0.45, 1.0, 3.0, 10.0])
def test_means_agree_with_quadrature(alpha, n_categories):
    expected = gamma_category_means(alpha, n_categories)
    np.testing.assert_allclose(gamma_means(alpha, n_categories), expected, rtol=QUADRATURE)


@pytest.mark.parametrize("alpha", [MIN_ALPHA, 0.05, 0.3, 1.0, 7.0, 50.0, 1e3, LARGE_SHAPE, MAX_ALPHA])
def test_stable_over_the_whole_range(alpha):
    for n_categories in range(1, MAX_RATE_CATEGORIES + 1):
        rates = gamma_means(alpha, n_categories)
        assert rates.shape == (n_categories,)
        assert np.isfinite(rates).all()
        assert (rates > 0).all()
        assert (np.diff(rates) >= 0).all()
        assert rates.mean() == pytest.approx(1, rel=4e-16 * n_categories)  # rounding of the sum


# Means of 4 categories, minus 1: the density integrated between its quantiles with 40 digits by mpmath 1.3.0; those for
# 1e4 agree with values of its incomplete gamma function.
MPMATH_MEANS = {
    1e2: [-0.12409426099316533, -0.03526107925274907, 0.029549113846047147, 0.12980622639986725],
    1e3: [-0.039905071424747765, -0.010550570510413929, 0.009979041840172823, 0.040476600094988865],
    1e4: [-0.012682324340539133, -0.0032751452415377778, 0.003217989064847275, 0.012739480517229637],
    1e6: [-0.001270820347553899, -0.0003249485524172376, 0.0003243769870109897, 0.0012713919129601471],
    1e8: [-0.00012710777108595016, -3.2469140852988314e-05, 3.246342519856191e-05, 0.00012711348674037656],
    1e10: [-1.2711034328931647e-05, -3.2466568869040246e-06, 3.2465997303597244e-06, 1.2711091485475947e-05],
}


@pytest.mark.parametrize("alpha", MPMATH_MEANS)
def test_almost_equal_rates(alpha):
    # atol: the expansion of quantiles at 1e4, and rounding of numbers near 1
    np.testing.assert_allclose(gamma_means(alpha, 4) - 1, MPMATH_MEANS[alpha], rtol=0, atol=1e-14)


@pytest.mark.parametrize("alpha", [STIRLING_SHAPE, LARGE_SHAPE])
@pytest.mark.parametrize("categories", [gamma_means, gamma_medians])
def test_no_jump_where_the_formula_changes(alpha, categories):
    """The tolerance: quantiles just below are found by iteration, and those far from the mean expanded less exactly."""
    below, above = categories(alpha * (1 - 1e-15), MAX_RATE_CATEGORIES), categories(alpha, MAX_RATE_CATEGORIES)
    np.testing.assert_allclose(below, above, rtol=0, atol=1e-11)


@pytest.mark.parametrize("alpha", [0.2, 0.45, 1.0, 3.0, 10.0])
def test_medians_agree_with_quadrature(alpha):
    # rtol: a quantile's error is that of the quadrature over the density, raised to 1 / alpha
    np.testing.assert_allclose(gamma_medians(alpha, 5), gamma_category_medians(alpha, 5), rtol=1e-11)


@pytest.mark.parametrize("alpha", [MIN_ALPHA, 0.05, 1.0, 1e3, LARGE_SHAPE, MAX_ALPHA])
def test_medians_over_the_whole_range(alpha):
    for n_categories in (2, 4, MAX_RATE_CATEGORIES):
        rates = gamma_medians(alpha, n_categories)
        assert np.isfinite(rates).all()
        assert (np.diff(rates) >= 0).all()
        assert rates.mean() == pytest.approx(1, rel=1e-14)


def exponential_means(shares):
    """Means of categories of the exponential distribution: as in closed form above, over their probabilities."""
    limits = -np.log(1 - np.cumsum(np.append(0, shares[:-1])))
    upper = np.append((limits + 1) * np.exp(-limits), 0.0)
    return (upper[:-1] - upper[1:]) / shares


def test_categories_of_any_share():
    shares = np.array([0.5, 0.1, 0.4])
    np.testing.assert_allclose(gamma_means_of_shares(1.0, shares), exponential_means(shares), rtol=1e-14)
    equal = np.full(4, 0.25)
    np.testing.assert_allclose(gamma_means_of_shares(0.3, equal), gamma_category_means(0.3, 4), rtol=QUADRATURE)


class TestSiteRates:
    @pytest.mark.parametrize(
        ("sites", "rates", "weights"),
        [
            (SiteRates(), [1], [1]),
            (SiteRates(invariable=True, pinv=0.25), [0, 4 / 3], [0.25, 0.75]),  # the others change 4/3 times as fast
            (
                SiteRates("free", 2, invariable=True, pinv=0.5, rates=(0.5, 2.0), weights=(2 / 3, 1 / 3)),
                [0, 1, 4],
                [0.5, 1 / 3, 1 / 6],
            ),
        ],
        ids=["equal", "invariable", "free and invariable"],
    )
    def test_categories(self, sites, rates, weights):
        found = sites.categories()
        np.testing.assert_allclose(found[0], rates, rtol=1e-15)
        np.testing.assert_allclose(found[1], weights, rtol=1e-15)

    def test_invariable_sites_and_gamma(self):
        rates, weights = SiteRates("gamma", 4, invariable=True, alpha=0.5, pinv=0.2).categories()
        np.testing.assert_allclose(rates, np.append(0, gamma_category_means(0.5, 4) / 0.8), rtol=QUADRATURE)
        np.testing.assert_allclose(weights, [0.2, 0.2, 0.2, 0.2, 0.2], rtol=1e-15)

    def test_start_values(self):
        sites = SiteRates("free", 4, invariable=True).filled()
        np.testing.assert_allclose(sites.weights, [0.4, 0.3, 0.2, 0.1], rtol=1e-15)
        np.testing.assert_allclose(sites.rates, exponential_means(sites.weights), rtol=1e-14)
        assert 0 < sites.pinv < 1
        assert sites.free_parameters == ()

    def test_limits_of_the_ratios(self):
        """Equal rates and no invariable sites are at finite ratios, which the optimiser reaches."""
        sites = SiteRates("gamma", 4, invariable=True).filled()
        low, high = SITE_BOUNDS["alpha"]
        assert sites.with_ratios("alpha", np.array([low])).alpha == pytest.approx(MIN_ALPHA, rel=1e-12)
        even = sites.with_ratios("alpha", np.array([high * (1 + 1e-4)]))
        assert even.alpha == MAX_ALPHA
        assert even.ratios("alpha")[0] == pytest.approx(EVEN_DEVIATION**-2, rel=1e-3)
        none = sites.with_ratios("pinv", np.array([SITE_BOUNDS["pinv"][0] * (1 - 1e-4)]))
        assert none.pinv == MIN_PINV

    @pytest.mark.parametrize("sites", [SiteRates("gamma", 4, invariable=True), SiteRates("free", 3, invariable=True)])
    def test_ratios_come_back_and_keep_mean_one(self, sites):
        filled = sites.filled()
        for group in sites.free_parameters:
            ratios = filled.ratios(group) * 1.7
            filled = filled.with_ratios(group, ratios)
            np.testing.assert_allclose(filled.ratios(group), ratios, rtol=1e-14)
        rates, weights = filled.categories()
        assert weights.sum() == pytest.approx(1, rel=1e-15)
        assert weights @ rates == pytest.approx(1, rel=1e-15)

    def test_several_starts_where_there_are_several_optima(self):
        assert SiteRates("gamma", 4).filled().starts(["alpha"]) == []
        mixed = SiteRates("gamma", 4, invariable=True)
        starts = mixed.filled().starts(mixed.free_parameters)
        assert len({(start.alpha, start.pinv) for start in starts}) == len(starts) > 4
        fixed = SiteRates("gamma", 4, invariable=True, alpha=0.3)
        assert {start.alpha for start in fixed.filled().starts(fixed.free_parameters)} == {0.3}
        free = SiteRates("free", 4).filled()
        assert len({start.rates for start in free.starts(["free_rates"])}) == len(START_ALPHAS)


def test_a_rare_fast_rate_in_place_of_a_slow_one():
    """The mean stays 1; the two slowest rates become their mean, and the new one is 8 times the fastest."""
    sites = SiteRates("free", 3, rates=(2.6, 0.2, 0.8), weights=(0.2, 0.5, 0.3))
    (found,) = sites.elsewhere(["free_rates"])
    rates, weights = found.categories()
    assert weights == pytest.approx([0.8 * 0.99, 0.2 * 0.99, 0.01])
    assert rates / rates[0] == pytest.approx(np.array([1, 2.6 / 0.425, 8 * 2.6 / 0.425]))
    assert weights @ rates == pytest.approx(1)
    assert sites.elsewhere(["alpha"]) == []


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


def test_ends():
    assert gamma_probability(0.5, 0.0) == 0.0
    assert gamma_probability(0.5, math.inf) == 1.0
    assert gamma_quantile(0.5, 0.0) == 0.0
    assert gamma_quantile(0.5, 1.0) == math.inf
