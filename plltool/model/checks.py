"""Checks of given values, their text, and corrections for ascertainment bias."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import MAX_ALPHA, MAX_PINV, MIN_ALPHA, MIN_PINV
from plltool.errors import EngineError, InputError
from plltool.model.named import RateDesign

MIN_GIVEN, MAX_GIVEN = 1e-9, 1e9  # of rates and frequencies; beyond these bounds eigenvectors lose all correct digits
SUM_TOLERANCE = 1e-3  # frequencies and weights printed with 3 digits need not sum to 1 exactly
SUM_ROUNDING = 1e-15  # tolerated, so that normalised frequencies are read back bit for bit
MEAN_ROUNDING = 1e-13  # of the mean of up to 64 rates, likewise


def check_exchangeabilities(
    values: Sequence[float], pairs: Sequence[str], least: float = MIN_GIVEN
) -> tuple[float, ...]:
    """The exchangeabilities of `pairs` relative to the last one."""
    if len(values) != len(pairs):
        names = " ".join(pairs) if len(pairs) <= 6 else f"{pairs[0]} {pairs[1]} .. {pairs[-1]}"
        raise InputError(f"expected {len(pairs)} exchangeabilities ({names}), found {len(values)}")
    rates = check_positive(values, "exchangeabilities", least)
    if rates[-1] <= 0:
        raise InputError(f"the exchangeability {pairs[-1]}, to which others are relative, must be positive, found 0")
    relative, what = [rate / rates[-1] for rate in rates], f"exchangeabilities relative to that of {pairs[-1]}"
    return check_positive(relative, what, least)


def check_rate_parameters(values: Sequence[float], design: RateDesign) -> tuple[float, ...]:
    """The parameters of exchangeabilities that have names, such as omega and kappa."""
    if len(values) != len(design.names):
        raise InputError(f"expected {len(design.names)} values ({', '.join(design.names)}), found {len(values)}")
    assert design.limits is not None
    for name, value, limits in zip(design.names, values, design.limits.tolist(), strict=True):
        _check_within(value, name, *limits)
    return tuple(values)


def check_frequencies(values: Sequence[float], symbols: Sequence[str]) -> tuple[float, ...]:
    """Frequencies of the states `symbols`, scaled to sum 1, from positive values whose sum is 1 within 1e-3."""
    what = "base frequencies" if len(symbols) == 4 else "state frequencies"
    if len(values) != len(symbols):
        raise InputError(f"expected {len(symbols)} {what} ({' '.join(symbols)}), found {len(values)}")
    return check_shares(values, what)


def check_shares(values: Sequence[float], what: str) -> tuple[float, ...]:
    """Positive values scaled to sum 1, if their sum is 1 within 1e-3; else an InputError, which calls them `what`."""
    shares = check_positive(values, what)
    total = math.fsum(shares)
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(f"{what} must sum to 1, found {total:g}")
    if abs(total - 1) > SUM_ROUNDING:
        shares = tuple(value / total for value in shares)
    return shares


def _check_within(value: float, what: str, low: float, high: float) -> float:
    if not low <= value <= high:
        raise InputError(f"{what} must lie between {low:g} and {high:g}, found {value:g}")
    return float(value)


# The shape of a gamma distribution, and a proportion of invariable sites; InputError beyond their bounds
check_alpha = partial(_check_within, what="alpha", low=MIN_ALPHA, high=MAX_ALPHA)
check_pinv = partial(_check_within, what="the proportion of invariable sites", low=MIN_PINV, high=MAX_PINV)


def check_scaler(value: float) -> float:
    """A scaler of branch lengths; raises InputError unless it lies in MIN_GIVEN .. MAX_GIVEN."""
    return check_positive([value], "scalers of branch lengths")[0]


def check_free_rates(rates: Sequence[float], weights: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Rates scaled to mean 1 and weights scaled to sum 1, from positive values; weights sum to 1 within 1e-3."""
    shares = check_shares(weights, "weights of rates")
    checked = check_positive(rates, "rates")
    mean = math.fsum(weight * rate for weight, rate in zip(shares, checked, strict=True))
    if abs(mean - 1) > MEAN_ROUNDING:
        checked = tuple(rate / mean for rate in checked)
    return checked, shares


def check_positive(values: Sequence[float], what: str, least: float = MIN_GIVEN) -> tuple[float, ...]:
    """The values, if all lie within least .. MAX_GIVEN; else an InputError, which calls them `what`."""
    for value in values:
        if not least <= value <= MAX_GIVEN:
            kind = "positive numbers" if least > 0 else "numbers"
            raise InputError(f"{what} must be {kind}, from {least:g} to {MAX_GIVEN:g}, found {value:g}")
    return tuple(values)


def format_values(values: Sequence[float]) -> str:
    """Values in braces, as RAxML-NG writes them, with all digits needed to read them back exactly."""
    return "{" + "/".join(repr(value) for value in values) + "}"


Kind = Literal["lewis", "felsenstein", "stamatakis"]
SUFFIXES: dict[Kind, str] = {"lewis": "ASC_LEWIS", "felsenstein": "ASC_FELS", "stamatakis": "ASC_STAM"}


class Correction(NamedTuple):
    """A correction at k points, see the formulas of `Ascertainment`."""

    value: FloatArray  # (k,) F
    shares: FloatArray  # (n_states, k) f p_c, the slope of F in each l_c
    squares: float  # a, the factor of sum_c f p_c l_c' l_c' in F''
    products: float  # b / f, the factor of (sum_c f p_c l_c')^2 there


@dataclass(frozen=True)
class Ascertainment:
    """A correction of lnL for ascertainment bias: invariable sites are missing because nobody looked at them.

    L_c is the likelihood of the site that has state c in all taxa, S the sum of L_c over the states, N the number of
    sites.

        lewis          -N log(1 - S)         sites are given to be variable (Lewis 2001)
        felsenstein    n log S               n unseen invariable sites of any state (Leaché et al. 2015)
        stamatakis     sum_c n_c log L_c     n_c unseen sites that have state c in all taxa (Leaché et al. 2015)

    A correction is a function F of the l_c = log L_c alone, so the chain rule gives its derivatives in anything else
    from those of the l_c. With f = N or n (stamatakis: 1) and p_c = L_c / (1 - S) or L_c / S (n_c),

        F'  = f sum_c p_c l_c'
        F'' = f (sum_c p_c (l_c'' + a l_c' l_c') + b (sum_c p_c l_c') (sum_c p_c l_c'))

    where a = 1, b = 1 for lewis, a = 1, b = -1 for felsenstein, and a = b = 0 for stamatakis. In second derivatives the
    products are outer ones.
    """

    kind: Kind
    unseen: tuple[float, ...] = ()  # numbers of unseen invariable sites: none, one, or one for each state

    def __str__(self) -> str:
        return f"+{SUFFIXES[self.kind]}" + (format_values(self.unseen) if self.unseen else "")

    def correct(self, lnl: FloatArray, n_sites: float) -> Correction:
        """The correction for lnL of each invariable site (n_states, k), and its derivatives."""
        if self.kind == "stamatakis":
            numbers = np.array(self.unseen)[:, None]
            return Correction((numbers * lnl).sum(axis=0), np.broadcast_to(numbers, lnl.shape), 0.0, 0.0)
        if self.kind == "felsenstein":
            (number,) = self.unseen
            largest = lnl.max(axis=0)
            relative = np.exp(lnl - largest)
            total = relative.sum(axis=0)
            return Correction(number * (largest + np.log(total)), number * relative / total, 1.0, -1.0 / number)
        likelihoods = np.exp(lnl)
        varying = 1.0 - likelihoods.sum(axis=0)
        if np.any(varying <= 0.0):
            raise EngineError("the tree is so short that variable sites (+ASC_LEWIS) have no positive probability")
        return Correction(-n_sites * np.log(varying), n_sites * likelihoods / varying, 1.0, 1.0 / n_sites)


def find_correction(suffix: str, unseen: Sequence[float], symbols: Sequence[str]) -> Ascertainment:
    """The correction that a part of a model string names, such as ``ASC_FELS``, with the numbers in its braces."""
    kinds: dict[str, Kind] = {"ASC": "lewis", **{name: kind for kind, name in SUFFIXES.items()}}
    if suffix not in kinds:
        raise InputError("unknown correction; accepted: +ASC or +ASC_LEWIS, +ASC_FELS{n}, +ASC_STAM{n/n/...}")
    kind = kinds[suffix]
    expected = {"lewis": 0, "felsenstein": 1, "stamatakis": len(symbols)}[kind]
    if len(unseen) != expected:
        of_states = f", one for each of the states {' '.join(symbols)}" if kind == "stamatakis" else ""
        numbers = "1 number" if expected == 1 else f"{expected or 'no'} numbers"
        raise InputError(f"expected {numbers} of unseen invariable sites{of_states}; found {len(unseen)}")
    least = MIN_GIVEN if kind == "felsenstein" else 0.0
    return Ascertainment(kind, check_positive(unseen, "numbers of unseen invariable sites", least))
