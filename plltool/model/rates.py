"""Rate variation over sites: invariable sites, the discrete gamma distribution, free rates, per-site rates.

The module has its own probabilities and quantiles of the gamma distribution of scale 1, because the import of
scipy.special, which has both, takes as long as opening a device: a tenth of a search of 100 taxa.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, Self

import numpy as np

from plltool import constants
from plltool.arrays import FloatArray, IndexArray
from plltool.codec import saved
from plltool.model.checks import format_values

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
    """Quantile over mean, minus 1, for small deviations: Cornish-Fisher (Goldberg & Levine 1946, for chi-squared)."""
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


RateKind = Literal["equal", "gamma", "free", "psr"]

SITE_GROUPS = ("alpha", "pinv", "free_rates")
RARE_RATE, RARE_SHARE = 8.0, 0.01  # of a category that is added: times the fastest rate, and its weight


@saved()
@dataclass(frozen=True)
class SiteRates:
    """How rates vary over sites, as in a model string or with all values filled in.

    A share pinv of the sites is invariable and has rate 0. The others have one of `n_categories` rates r with weights
    w. The mean rate of all sites is 1, so the rates of the variable sites are r / (1 - pinv).
    """

    # ``equal``, ``gamma`` (equal weights), ``free`` (any rates and weights) or ``psr`` (per-site rates: each site has
    # one of the rates, and the weights are the shares of sites that have them).
    kind: RateKind = "equal"
    n_categories: int = 1  # number of rates other than 0; the most that there may be for ``psr``
    median: bool = False  # whether gamma categories are represented by their medians instead of their means
    invariable: bool = False  # whether there are invariable sites
    # whether pinv is not optimised but the share of sites of the alignment that may be invariable.
    counted: bool = False
    # shape of the gamma distribution; None without gamma, or in a specification that does not fix it.
    alpha: float | None = None
    pinv: float | None = None  # share of invariable sites; None likewise
    # (n_categories,) of free rates, with sum(w) = sum(w r) = 1; None likewise. Of per-site rates up to n_categories;
    # None before the sites have rates.
    rates: tuple[float, ...] | None = None
    weights: tuple[float, ...] | None = None  # likewise
    # (n_patterns,) of per-site rates, the index of each pattern's rate; None before patterns have rates. Until then all
    # have the rate 1. With frequencies of each site (+SSF), the index of the pattern's frequencies.
    category_of: IndexArray | None = field(default=None, compare=False, repr=False)

    @property
    def free_parameters(self) -> tuple[str, ...]:
        """The groups without values, in the order of SITE_GROUPS."""
        free = {
            "alpha": self.kind == "gamma" and self.alpha is None,
            "pinv": self.invariable and self.pinv is None and not self.counted,
            "free_rates": self.kind == "free" and self.rates is None,
        }
        return tuple(group for group in SITE_GROUPS if free[group])

    def filled(self) -> Self:
        """The same with start values where values are missing; free rates start as gamma-distributed ones."""
        if self.kind == "free" and self.rates is None:
            return self.with_gamma_like_rates(constants.DEFAULT_ALPHA).filled()
        alpha = constants.DEFAULT_ALPHA if self.kind == "gamma" and self.alpha is None else self.alpha
        pinv = constants.DEFAULT_PINV if self.invariable and self.pinv is None else self.pinv
        return replace(self, alpha=alpha, pinv=pinv)

    def with_share(self, share: float) -> Self:
        """The same with this share of invariable sites, or the bound beyond which it is."""
        return replace(self, pinv=min(max(share, constants.MIN_PINV), constants.MAX_PINV))

    def with_gamma_like_rates(self, alpha: float) -> Self:
        """Free rates that follow a gamma distribution of this shape; fast categories have less weight.

        The weights are k, k - 1, ... 1 over their sum. From equal weights the optimum was 2.3 lnL lower on 354 taxa,
        where the fastest category ends with a weight of 0.02.
        """
        weights = np.arange(self.n_categories, 0, -1.0)
        weights /= weights.sum()
        rates = gamma_means_of_shares(alpha, weights)
        return replace(self, rates=tuple(rates.tolist()), weights=tuple(weights.tolist()))

    def categories(self) -> tuple[FloatArray, FloatArray]:
        """Rates and weights, both (n_categories,); with invariable sites, which come first, (n_categories + 1,).

        Weights sum to 1, and so do weights times rates. All values must be filled in.
        """
        rates, weights = np.ones(1), self.varying_weights()
        if self.kind == "gamma":
            assert self.alpha is not None, "filled"
            rates = (gamma_medians if self.median else gamma_means)(self.alpha, self.n_categories)
        elif self.rates is not None:
            rates = np.array(self.rates)
        if not self.invariable:
            return rates, weights
        assert self.pinv is not None, "filled"
        varying = 1.0 - self.pinv
        return np.append(0.0, rates / varying), np.append(self.pinv, weights * varying)

    def components(self) -> tuple[FloatArray, FloatArray]:
        """Rates and weights of components of an engine: `categories`, but with weights 1 for per-site rates."""
        rates, weights = self.categories()
        if self.kind != "psr":
            return rates, weights
        rates = np.ones(1) if self.category_of is None else rates
        return rates, np.ones(len(rates))

    def varying_weights(self) -> FloatArray:
        """Weights of the rates of variable sites, (n_categories,), summing to 1."""
        if self.kind == "psr":
            return np.ones(1) if self.weights is None else np.array(self.weights)
        return np.array(self.weights) if self.kind == "free" else np.full(self.n_categories, 1.0 / self.n_categories)

    def starts(self, groups: Collection[str]) -> list[Self]:
        """Start values to try before these free groups are optimised: lnL has several optima."""
        if not {"pinv", "free_rates"}.intersection(groups):
            return []
        starts = [self]
        if "alpha" in groups:
            starts = [replace(start, alpha=alpha) for start in starts for alpha in constants.START_ALPHAS]
        if "free_rates" in groups:
            starts = [start.with_gamma_like_rates(alpha) for start in starts for alpha in constants.START_ALPHAS]
        if "pinv" in groups:
            starts = [replace(start, pinv=pinv) for start in starts for pinv in constants.START_PINVS]
        return starts

    def others(self, groups: Collection[str]) -> list[Self]:
        """These rates over sites, those with another alpha, and then some that may lead to another optimum of lnL.

        Few invariable sites and a small alpha explain about the same data as many and a large alpha. So where these
        groups are free, invariable sites become common if they are rare, or rare if they are common.
        """
        alphas = constants.START_ALPHAS if "alpha" in groups else ()
        return [self, *(replace(self, alpha=alpha) for alpha in alphas), *self._turned(groups)]

    def elsewhere(self, groups: Collection[str]) -> list[Self]:
        """Rates over sites from where all lengths and parameters together may lead to another optimum of lnL."""
        is_rare = "free_rates" in groups and self.n_categories > 1
        return [*self._turned(groups), *([self._with_rare_rate()] if is_rare else [])]

    def _turned(self, groups: Collection[str]) -> list[Self]:
        """Start values with common invariable sites if they are rare, or rare ones if they are common."""
        if "pinv" not in groups or self.n_categories == 1:
            return []
        return [start for start in self.starts(groups) if start._is_mostly_variable != self._is_mostly_variable]

    def _with_rare_rate(self) -> Self:
        """Free rates with a much faster category of little weight, for which the two slowest ones become one."""
        assert self.rates is not None, "filled"
        order, shares = np.argsort(self.rates), self.varying_weights()
        rates, shares = np.array(self.rates)[order], shares[order]
        slow = shares[:2].sum()
        rates = np.array([shares[:2] @ rates[:2] / slow, *rates[2:], RARE_RATE * rates[-1]])
        shares = np.array([*(1 - RARE_SHARE) * np.append(slow, shares[2:]), RARE_SHARE])
        return replace(self, rates=tuple((rates / (shares @ rates)).tolist()), weights=tuple(shares.tolist()))

    @property
    def _is_mostly_variable(self) -> bool:
        """Whether invariable sites are rare."""
        return self.pinv is None or ratio_of_pinv(self.pinv) < 2 * constants.RARE_ODDS

    def with_categories(self, rates: FloatArray, category_of: IndexArray, weights: FloatArray) -> Self:
        """The same with one of the rates (n_categories,) for each pattern.

        `category_of` (n_patterns,) is the index of each pattern's rate, `weights` (n_patterns,) how often it occurs.
        """
        shares = np.bincount(category_of, weights, len(rates)) / weights.sum()
        return replace(self, rates=tuple(rates.tolist()), weights=tuple(shares.tolist()), category_of=category_of)

    def of_patterns(self, kept: IndexArray) -> Self:
        """The same for some of the patterns, given by their indices."""
        return self if self.category_of is None else replace(self, category_of=self.category_of[kept])

    def as_gamma(self) -> "SiteRates":
        """Gamma rates, +G4, with alpha 1 over the variance of the per-site rates relative to their mean."""
        rates, shares = self.categories()
        rates = rates / (shares @ rates)
        variance = np.clip(shares @ (rates - 1.0) ** 2, 1.0 / constants.MAX_ALPHA, 1.0 / constants.MIN_ALPHA)
        return SiteRates("gamma", constants.DEFAULT_RATE_CATEGORIES, alpha=1.0 / float(variance))

    def ratios(self, group: str) -> FloatArray:
        """One for alpha; one for pinv; or rates and then weights of free rates, each divided by the last one.

        The ratios of alpha and pinv end at finite values where rates become equal and where no site is invariable, so
        that an optimiser reaches these limits. Far from them they are like alpha and pinv / (1 - pinv).
        """
        if group == "alpha":
            assert self.alpha is not None, "filled"
            return np.array([ratio_of_alpha(self.alpha)])
        if group == "pinv":
            assert self.pinv is not None, "filled"
            return np.array([ratio_of_pinv(self.pinv)])
        rates, weights = np.array(self.rates), np.array(self.weights)
        return np.append(rates[:-1] / rates[-1], weights[:-1] / weights[-1])

    def with_ratios(self, group: str, ratios: FloatArray) -> Self:
        """The same with the values that these ratios stand for."""
        if group == "alpha":
            deviation = float(ratios[0]) ** -0.5 - constants.EVEN_DEVIATION
            alpha = deviation**-2 if deviation > 0 else constants.MAX_ALPHA
            return replace(self, alpha=min(max(alpha, constants.MIN_ALPHA), constants.MAX_ALPHA))
        if group == "pinv":
            odds = float(ratios[0]) - constants.RARE_ODDS
            return self.with_share(odds / (1.0 + odds))
        rates, weights = (np.append(half, 1.0) for half in np.split(ratios, 2))
        weights /= weights.sum()
        rates /= weights @ rates
        return replace(self, rates=tuple(rates.tolist()), weights=tuple(weights.tolist()))

    def __str__(self) -> str:
        parts = []
        if self.invariable:
            free = "+IC" if self.counted else "+IO"
            parts.append(free if self.pinv is None else "+IU" + format_values((self.pinv,)))
        if self.kind == "gamma":
            parts.append(f"+G{'A' if self.median else ''}{self.n_categories}")
            if self.alpha is not None:
                parts.append(format_values((self.alpha,)))
        elif self.kind == "free":
            parts.append(f"+R{self.n_categories}")
            if self.rates is not None and self.weights is not None:
                parts += [format_values(self.rates), format_values(self.weights)]
        elif self.kind == "psr":
            parts.append(f"+PSR{self.n_categories if self.rates is None else len(self.rates)}")
            if self.rates is not None:
                parts.append(format_values(self.rates))
        return "".join(parts)


def ratio_of_alpha(alpha: float) -> float:
    """1 / (1 / sqrt(alpha) + EVEN_DEVIATION)^2; 1 / sqrt(alpha) is the standard deviation of the rates."""
    return float((alpha**-0.5 + constants.EVEN_DEVIATION) ** -2)


def ratio_of_pinv(pinv: float) -> float:
    """pinv / (1 - pinv) + RARE_ODDS."""
    return pinv / (1.0 - pinv) + constants.RARE_ODDS


# bounds of these ratios
SITE_BOUNDS = {
    "alpha": (ratio_of_alpha(constants.MIN_ALPHA), ratio_of_alpha(constants.MAX_ALPHA)),
    "pinv": (ratio_of_pinv(constants.MIN_PINV), ratio_of_pinv(constants.MAX_PINV)),
    "free_rates": (constants.MIN_FREE_RATIO, constants.MAX_FREE_RATIO),
}


@lru_cache(maxsize=256)  # derivatives in other parameters need the same rates
def gamma_means(alpha: float, n_categories: int) -> FloatArray:
    """Mean rates (n_categories,) of equally probable categories of the gamma distribution of mean 1 and shape alpha.

    With ``b[i]`` the quantile i / k of the gamma distribution of shape alpha and scale 1, and I the regularised lower
    incomplete gamma function, category i has the rate ``k (I(alpha + 1, b[i + 1]) - I(alpha + 1, b[i]))``
    (Yang 1994, equation 10). The rates are then divided by their mean, which is 1 up to rounding; they are read-only.
    """
    means = _means_between(alpha, np.arange(n_categories + 1) / n_categories)
    rates = means / means.mean()
    rates.flags.writeable = False
    return rates


def gamma_means_of_shares(alpha: float, shares: FloatArray) -> FloatArray:
    """Mean rates of categories with any probabilities, `shares` (k,), which sum to 1; their weighted mean is 1."""
    means = _means_between(alpha, np.append(np.cumsum(np.append(0.0, shares[:-1])), 1.0)) / shares
    return np.asarray(means / (shares @ means), dtype=np.float64)


def gamma_medians(alpha: float, n_categories: int) -> FloatArray:
    """Medians (2 i + 1) / (2 k) of the same categories, divided by their mean (Yang 1994, page 308)."""
    medians = np.array([gamma_quantile(alpha, (2 * i + 1) / (2 * n_categories)) for i in range(n_categories)])
    return np.asarray(medians / medians.mean(), dtype=np.float64)


def _means_between(alpha: float, probabilities: FloatArray) -> FloatArray:
    """The share of the total rate between neighbouring quantiles, given by `probabilities`.

    It is also the probability between them, less the change of `gamma_step`, which is exact for almost equal rates.
    """
    bounds = [gamma_quantile(alpha, probability) for probability in probabilities.tolist()]
    if alpha < STIRLING_SHAPE:
        return np.diff([gamma_probability(alpha + 1.0, bound) for bound in bounds])
    return np.diff(probabilities) - np.diff([gamma_step(alpha, bound) for bound in bounds])
