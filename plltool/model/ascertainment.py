"""Corrections of lnL for ascertainment bias: invariable sites are missing because nobody looked at them.

L_c is the likelihood of the site that has state c in all taxa, S the sum of L_c over the states, N the number of sites.

    lewis          -N log(1 - S)         sites are given to be variable (Lewis 2001)
    felsenstein    n log S               n unseen invariable sites of any state (Leaché et al. 2015)
    stamatakis     sum_c n_c log L_c     n_c unseen sites that have state c in all taxa (Leaché et al. 2015)

A correction is a function F of the l_c = log L_c alone, so the chain rule gives its derivatives in anything else from
those of the l_c. With f = N or n (stamatakis: 1) and p_c = L_c / (1 - S) or L_c / S (n_c),

    F'  = f sum_c p_c l_c'
    F'' = f (sum_c p_c (l_c'' + a l_c' l_c') + b (sum_c p_c l_c') (sum_c p_c l_c'))

where a = 1, b = 1 for lewis, a = 1, b = -1 for felsenstein, and a = b = 0 for stamatakis. In second derivatives the
products are outer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from plltool.arrays import FloatArray
from plltool.errors import EngineError, InputError
from plltool.model.values import MIN_GIVEN, check_positive, format_values

Kind = Literal["lewis", "felsenstein", "stamatakis"]
SUFFIXES: dict[Kind, str] = {"lewis": "ASC_LEWIS", "felsenstein": "ASC_FELS", "stamatakis": "ASC_STAM"}


class Correction(NamedTuple):
    """A correction at k points, see the formulas of the module."""

    value: FloatArray  # (k,) F
    shares: FloatArray  # (n_states, k) f p_c, the slope of F in each l_c
    squares: float  # a, the factor of sum_c f p_c l_c' l_c' in F''
    products: float  # b / f, the factor of (sum_c f p_c l_c')^2 there


@dataclass(frozen=True)
class Ascertainment:
    """A correction for ascertainment bias."""

    kind: Kind  # see the module
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
