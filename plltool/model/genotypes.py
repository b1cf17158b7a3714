"""GT10, the model of unphased diploid genotypes (Kozlov, Alves, Stamatakis & Posada 2022)."""

from __future__ import annotations

import functools
from itertools import combinations

import numpy as np

from plltool.alignment.spaces import GENOTYPES
from plltool.constants import NEGLIGIBLE_EXCHANGEABILITY
from plltool.model import nucleotides
from plltool.model.named import NamedModel, RateDesign, pair_names

GT10 = "GT10"
ALLELES = ("AA", "CC", "GG", "TT", "AC", "AG", "AT", "CG", "CT", "GT")  # of each state, in the order of GENOTYPES


def exchanged_bases(one: str, other: str) -> str | None:
    """The two bases of which one replaces the other between genotypes; None if they differ in both alleles."""
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        if one[a] == other[b]:
            return "".join(sorted(one[1 - a] + other[1 - b]))
    return None


@functools.cache
def named_model() -> NamedModel:
    """The model GT10: where one allele changes, the exchangeability of its bases, those of GTR; where both do, none."""
    exchanged = [exchanged_bases(*pair) for pair in combinations(ALLELES, 2)]
    base = np.array([NEGLIGIBLE_EXCHANGEABILITY if bases is None else 1.0 for bases in exchanged])
    powers = np.array([[float(bases == pair) for pair in nucleotides.PAIRS] for bases in exchanged])
    rates = RateDesign(base, powers, np.ones(len(nucleotides.PAIRS)), len(nucleotides.PAIRS) - 1)
    symbols = tuple(GENOTYPES.symbols)
    return NamedModel(GENOTYPES.name, symbols, pair_names(symbols), rates, "optimised", np.full(len(symbols), 0.1))
