import numpy as np
import pytest
from oracles.substitution import gamma_category_means

from plltool.constants import MAX_ALPHA, MAX_RATE_CATEGORIES, MIN_ALPHA
from plltool.model.rates import gamma_means

# rtol: the oracle's quadrature; measured 3e-14 at worst for alpha 0.1 .. 10
QUADRATURE = 1e-12


def test_yang_1994_example():
    # Yang 1994: alpha 0.5, 4 categories; printed with 4 decimals
    np.testing.assert_allclose(gamma_means(0.5, 4), [0.0334, 0.2519, 0.8203, 2.8944], atol=0.5e-4)


def test_exponential_in_closed_form():
    # alpha = 1 is the exponential distribution: mean of [a, b] times its probability is (a + 1) e^-a - (b + 1) e^-b
    limits = -np.log(1 - np.arange(4) / 4)
    upper = np.append((limits + 1) * np.exp(-limits), 0.0)
    np.testing.assert_allclose(gamma_means(1.0, 4), 4 * (upper[:-1] - upper[1:]), rtol=1e-14)


@pytest.mark.parametrize("n_categories", [2, 4, 8])
@pytest.mark.parametrize("alpha", [0.2, 0.45, 1.0, 3.0, 10.0])
def test_means_agree_with_quadrature(alpha, n_categories):
    expected = gamma_category_means(alpha, n_categories)
    np.testing.assert_allclose(gamma_means(alpha, n_categories), expected, rtol=QUADRATURE)


@pytest.mark.parametrize("alpha", [MIN_ALPHA, 0.05, 0.3, 1.0, 7.0, 50.0, MAX_ALPHA])
def test_stable_over_the_whole_range(alpha):
    for n_categories in range(1, MAX_RATE_CATEGORIES + 1):
        rates = gamma_means(alpha, n_categories)
        assert rates.shape == (n_categories,)
        assert np.isfinite(rates).all()
        assert (rates > 0).all()
        assert (np.diff(rates) >= 0).all()
        assert rates.mean() == pytest.approx(1, rel=4e-16 * n_categories)  # rounding of the sum


def test_one_category_has_rate_one():
    np.testing.assert_array_equal(gamma_means(0.3, 1), [1.0])


def test_large_alpha_approaches_equal_rates():
    # the standard deviation of the rate is 1 / sqrt(alpha) = 0.1
    rates = gamma_means(MAX_ALPHA, 4)
    assert np.abs(rates - 1).max() < 0.2
