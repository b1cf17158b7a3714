"""Models of paired columns in the stems of RNA: 16 states, the pairs of bases (Savill, Hoyle & Higgs 2001).

Names are RAxML's. S16: the general time-reversible model. S16A: five exchangeabilities, see `KINDS`. S16B: all of these
equal. In S16A and S16B pairs do not change into each other if both bases change and one of the pairs is a mismatch.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from plltool.alignment.spaces import DOUBLET, doublet_space
from plltool.constants import MAX_DOUBLET_RATE, MIN_DOUBLET_RATE, NEGLIGIBLE_EXCHANGEABILITY
from plltool.model.named import NamedModel, RateDesign

RARE_DOUBLET_RATE = 0.3  # where S16 starts for pairs that S16A keeps apart; from 1 it ends 2 lnL lower, from 0.01 0.02
GENERAL, FIVE_RATES, ONE_RATE = NAMES = ("S16", "S16A", "S16B")
STEM_PAIRS = ("AT", "TA", "CG", "GC", "GT", "TG")  # those of Watson and Crick, and wobble pairs
TRANSITION, DOUBLE_TRANSITION, TRANSVERSION = "alpha_s", "alpha_d", "beta"  # between two pairs that hold
ONE_MISMATCH, TWO_MISMATCHES = "gamma", "epsilon"  # one base changes, and one or both pairs are mismatches
KINDS = (TRANSITION, DOUBLE_TRANSITION, TRANSVERSION, ONE_MISMATCH, TWO_MISMATCHES)
_PURINES = "AG"


def kind_of_change(one: str, other: str) -> str | None:
    """Which of `KINDS` a change from one pair of bases to another is; None if it does not happen."""
    changes = [(a in _PURINES) == (b in _PURINES) for a, b in zip(one, other, strict=True) if a != b]
    holding = (one in STEM_PAIRS) + (other in STEM_PAIRS)
    if holding == 2:
        kinds = (TRANSITION, DOUBLE_TRANSITION)
        return kinds[len(changes) - 1] if all(changes) else TRANSVERSION
    if len(changes) > 1:
        return None
    return ONE_MISMATCH if holding == 1 else TWO_MISMATCHES


def named_model(name: str) -> NamedModel:
    """The model of a canonical name; its frequencies are counted, as in RAxML."""
    symbols = doublet_space().symbols
    return NamedModel(DOUBLET, symbols, _design(name, list(combinations(symbols, 2))), "empirical", between="-")


def _design(name: str, pairs: list[tuple[str, str]]) -> RateDesign:
    kinds = [kind_of_change(*pair) for pair in pairs]
    base = np.array([NEGLIGIBLE_EXCHANGEABILITY if kind is None else 1.0 for kind in kinds])
    if name == ONE_RATE:
        return RateDesign.published(base)
    limits = np.array([MIN_DOUBLET_RATE, MAX_DOUBLET_RATE])
    if name == FIVE_RATES:
        powers = np.array([[float(kind == other) for other in KINDS] for kind in kinds])
        reference = KINDS.index(ONE_MISMATCH)
        return RateDesign(base, powers, np.ones(len(KINDS)), reference, KINDS, np.tile(limits, (len(KINDS), 1)))
    n = len(pairs)
    starts = np.array([RARE_DOUBLET_RATE if kind is None else 1.0 for kind in kinds])
    return RateDesign(np.ones(n), np.eye(n), starts, n - 1, (), np.tile(limits, (n, 1)))
