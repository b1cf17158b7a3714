"""Rates that vary over sites: the discrete gamma distribution."""

from __future__ import annotations

import numpy as np
from scipy import special

from plltool.model.components import FloatArray


def gamma_means(alpha: float, n_categories: int) -> FloatArray:
    """Mean rates of equally probable categories of the gamma distribution of mean 1 and shape alpha.

    With ``b[i]`` the quantile i / k of the gamma distribution of shape alpha and scale 1, and I the regularised lower
    incomplete gamma function, category i has the rate ``k (I(alpha + 1, b[i + 1]) - I(alpha + 1, b[i]))``
    (Yang 1994, equation 10). The rates are then divided by their mean, which is 1 but for rounding.

    Parameters
    ----------
    alpha : shape, from MIN_ALPHA to MAX_ALPHA.
    n_categories : k, from 1 to MAX_RATE_CATEGORIES.

    Returns
    -------
    float64 (n_categories,), positive, not decreasing, of mean 1.
    """
    bounds = special.gammaincinv(alpha, np.arange(n_categories + 1) / n_categories)
    means = np.diff(special.gammainc(alpha + 1.0, bounds))
    return np.asarray(means / means.mean(), dtype=np.float64)
