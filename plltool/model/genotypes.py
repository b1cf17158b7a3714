"""GT10 and GT16, models of diploid genotypes without and with phase (Kozlov, Alves, Stamatakis & Posada 2022)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from plltool.alignment.states import ALLELES, GENOTYPES, PHASED_ALLELES, PHASED_GENOTYPES
from plltool.constants import NEGLIGIBLE_EXCHANGEABILITY
from plltool.model import nucleotides
from plltool.model.named import NamedModel, RateDesign

UNPHASED, WITH_PHASE = NAMES = ("GT10", "GT16")


def exchanged_bases(one: str, other: str, has_phase: bool = False) -> str | None:
    """The two bases of which one replaces the other between genotypes; None if they differ in both alleles.

    With phase, an allele keeps its place.
    """
    places = ((0, 0), (1, 1)) if has_phase else ((0, 0), (0, 1), (1, 0), (1, 1))
    for a, b in places:
        if one[a] == other[b]:
            return "".join(sorted(one[1 - a] + other[1 - b]))
    return None


def named_model(name: str) -> NamedModel:
    """Where one allele changes, the exchangeability of its bases in GTR; where both do, none."""
    has_phase = name == WITH_PHASE
    space, alleles = (PHASED_GENOTYPES, PHASED_ALLELES) if has_phase else (GENOTYPES, ALLELES)
    exchanged = [exchanged_bases(*pair, has_phase) for pair in combinations(alleles, 2)]
    base = np.array([NEGLIGIBLE_EXCHANGEABILITY if bases is None else 1.0 for bases in exchanged])
    powers = np.array([[float(bases == pair) for pair in nucleotides.PAIRS] for bases in exchanged])
    rates = RateDesign(base, powers, np.ones(len(nucleotides.PAIRS)), len(nucleotides.PAIRS) - 1)
    return NamedModel(space.name, space.symbols, rates, "optimised")
