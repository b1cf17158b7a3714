"""Alignments of resampled columns, as weights of patterns, and the lnL of trees on them.

Sites are drawn with replacement, as many as there are (Felsenstein 1985). RELL (Kishino, Miyata & Hasegawa 1990): the
lnL of a tree on a resampled alignment is approximated by the sum of its site lnL over the resampled columns, with the
same branch lengths and model. So one matrix product gives the lnL of all trees on all replicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import FloatArray, IndexArray

RESAMPLED_VALUES = 16_000_000  # site lnL, and as many weights, that the host holds at once (128 MB each)
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


# --- resampled sums ---------------------------------------------------------------------------------------


def resample_once(urns: Sequence[Urn], rng: np.random.Generator, scale: float = 1.0) -> FloatArray:
    """Pattern weights (n_patterns,) of one resampled alignment: columns drawn with replacement, part by part.

    urns : of the parts
    scale : number of columns to draw as a multiple of those in the alignment, rounded; at least one per part
    """
    return np.concatenate([urn.draw(max(1, round(scale * urn.size)), rng) for urn in urns])


def resampled_sums(
    sites: FloatArray, parts: Sequence[FloatArray], n_replicates: int, rng: np.random.Generator, scale: float = 1.0
) -> FloatArray:
    """Sums (n_replicates, n) of site values (n, n_patterns) over resampled alignments.

    The weights of as many replicates as RESAMPLED_VALUES allows are held at a time; the draws do not depend on this.

    `parts`: the pattern weights of each part, which are whole numbers; `scale`: see `resample_once`.
    """
    sums = np.empty((n_replicates, len(sites)))
    urns = [Urn(own) for own in parts]
    for some in batches(n_replicates, sites.shape[1]):
        weights = np.stack([resample_once(urns, rng, scale) for _ in range(some.start, some.stop)])
        sums[some] = weights @ sites.T
    return sums


def batches(n: int, n_values: int) -> Iterator[slice]:
    """Slices of 0 .. n - 1 with at most RESAMPLED_VALUES values each, if an item has `n_values` values."""
    size = max(1, RESAMPLED_VALUES // max(1, n_values))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
