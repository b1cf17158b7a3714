"""Site patterns: the distinct columns of an alignment, how often each occurs, and how often if it is resampled.

Sites are drawn with replacement, as many as there are (Felsenstein 1985). RELL (Kishino, Miyata & Hasegawa 1990): the
lnL of a tree on a resampled alignment is approximated by the sum of its site lnL over the resampled columns, with the
same branch lengths and model. So one matrix product gives the lnL of all trees on all replicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.alignment.alignment import Alignment, sort_columns
from plltool.alignment.states import CodeArray, StateSpace
from plltool.arrays import FloatArray, IndexArray

# A frequency of 0 breaks the eigensystem, whose symmetric form divides by its square root. lnL with the bound is within
# 1e-5 of its limit for 0, which RAxML-NG and IQ-TREE give.
MIN_EMPIRICAL_FREQUENCY = 1e-8


@dataclass(frozen=True, eq=False)
class Patterns:
    """Distinct columns in lexicographic order, the first taxon first."""

    codes: CodeArray  # uint8 array (n_taxa, n_patterns), C-contiguous
    weights: FloatArray  # float64 array (n_patterns,), the number of sites with each pattern
    # intp array (n_sites,), the pattern of each column; ``codes[:, site_pattern]`` is the alignment.
    site_pattern: IndexArray
    states: StateSpace  # what the codes mean

    @property
    def masks(self) -> npt.NDArray[Any]:
        """The codes as bit masks of states (n_taxa, n_patterns)."""
        return self.states.masks[self.codes]

    @property
    def n_taxa(self) -> int:
        return self.codes.shape[0]

    @property
    def n_patterns(self) -> int:
        return self.codes.shape[1]


def compress(alignment: Alignment) -> Patterns:
    """The site patterns of an alignment, in an order that does not depend on the order of its columns."""
    codes, labels = alignment.codes, alignment.labels
    first = np.arange(alignment.n_sites) if labels is None else np.argsort(labels, kind="stable")
    order = sort_columns(codes) if labels is None else first[sort_columns(codes[:, first])]
    is_new = np.zeros(alignment.n_sites, dtype=bool)
    is_new[0] = True
    for row in codes if labels is None else (*codes, labels):
        cells = row[order]
        is_new[1:] |= cells[1:] != cells[:-1]
    site_pattern = np.empty(alignment.n_sites, dtype=np.intp)
    site_pattern[order] = np.cumsum(is_new) - 1
    weights = np.bincount(site_pattern, alignment.weights).astype(np.float64)
    return Patterns(np.take(alignment.codes, order[is_new], axis=1), weights, site_pattern, alignment.states)


def invariable_columns(part: Patterns) -> CodeArray:
    """A column for each state that all taxa have (n_taxa, n_states); taxa without data in the part are left without."""
    undetermined = part.states.all_states_code
    has_data = (part.codes != undetermined).any(axis=1)
    return np.where(has_data[:, None], part.states.state_codes, undetermined).astype(part.codes.dtype)


def empirical_frequencies(data: Alignment | Patterns, states: StateSpace) -> FloatArray:
    """State frequencies counted in the data, as RAxML-NG counts them (its +FC).

    Undetermined cells are left out. Any other cell adds the weight of its pattern, divided by the number of states that
    it allows, to each of these states; of likelihoods of states the most likely ones count. Frequencies below
    `MIN_EMPIRICAL_FREQUENCY` are raised to it. If no cell counts, all states are equally frequent.

    Returns float64 array (n_states,); sums to 1, every entry positive.
    """
    if isinstance(data, Alignment):
        data, states = data.called, data.called.states
        totals = data.code_counts.sum(axis=0).astype(np.float64)
    else:
        rows = (np.bincount(row, weights=data.weights, minlength=data.states.n_codes) for row in data.codes)
        totals = sum(rows, np.zeros(data.states.n_codes))
    set_sizes = states.state_sets.sum(axis=1)
    counted = (set_sizes > 0) & (set_sizes < states.n_states)
    totals = (totals[counted] / set_sizes[counted]) @ states.state_sets[counted]
    if totals.sum() == 0:
        return np.full(states.n_states, 1 / states.n_states)
    frequencies = np.maximum(totals / totals.sum(), MIN_EMPIRICAL_FREQUENCY)
    return frequencies / frequencies.sum()


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
