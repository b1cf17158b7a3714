"""Resampled alignments: sites drawn with replacement, as many as there are (Felsenstein 1985)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import FloatArray, IndexArray

LISTED_SITES = 1 << 24


def draw_sites(n_sites: Sequence[int], rng: np.random.Generator) -> list[IndexArray]:
    """The sites of a replicate, drawn within each part; `n_sites` (n_parts,) are the sizes of the parts.

    Returns (n_sites of the part,) for each part, in the order in which they were drawn.
    """
    return [rng.integers(0, size, size) for size in n_sites]


class Urn:
    """The sites of a part, from which patterns are drawn with replacement.

    Patterns are in the order of the sorted columns, so that site k has the pattern that `draw_sites` means by k. Up to
    LISTED_SITES sites are listed; of more, whole counts of patterns are drawn.
    """

    def __init__(self, weights: FloatArray):
        self._weights = weights
        self.size = int(weights.sum())
        self._patterns: IndexArray | None = None
        if self.size <= LISTED_SITES:
            self._patterns = np.repeat(np.arange(len(weights)), weights.astype(np.intp))

    def draw(self, number: int, rng: np.random.Generator) -> FloatArray:
        """How often each pattern is among a number of sites (n_patterns,)."""
        if self._patterns is None:
            return rng.multinomial(number, self._weights / self.size).astype(np.float64)
        drawn = self._patterns[rng.integers(0, self.size, number)]
        return np.bincount(drawn, minlength=len(self._weights)).astype(np.float64)


def take_patterns(part: Patterns, weights: FloatArray) -> Patterns:
    """The patterns of a part with other weights (n_patterns,), those with 0 left out; each is one column."""
    kept = np.flatnonzero(weights)
    return Patterns(np.ascontiguousarray(part.codes[:, kept]), weights[kept], np.arange(len(kept)), part.states)
