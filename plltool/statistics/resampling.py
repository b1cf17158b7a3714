"""Alignments drawn anew from their own columns, as weights of patterns, and what trees' lnL would be on them.

RELL (Kishino, Miyata & Hasegawa 1990): the lnL of a tree on a resampled alignment is the sum of its site lnL there,
branch lengths and model staying as they are. So all trees on all replicates are one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from plltool.constants import RESAMPLED_VALUES

FloatArray = npt.NDArray[np.float64]


def draw_weights(parts: Sequence[FloatArray], rng: np.random.Generator, scale: float = 1.0) -> FloatArray:
    """Pattern weights (n_patterns,) of one resampled alignment: columns drawn with replacement, part by part.

    Parameters
    ----------
    parts : of each part the weights of its patterns, which follow one another
    scale : columns to draw as a multiple of those that there are, rounded; at least one of each part
    """
    drawn = []
    for weights in parts:
        total = weights.sum()
        drawn.append(rng.multinomial(max(1, round(scale * total)), weights / total))
    return np.concatenate(drawn).astype(np.float64)


def resampled_sums(
    sites: FloatArray, parts: Sequence[FloatArray], n_replicates: int, rng: np.random.Generator, scale: float = 1.0
) -> FloatArray:
    """Sums (n_replicates, n) of site values (n, n_patterns) over resampled alignments.

    Weights are held for as many replicates as RESAMPLED_VALUES allows at a time; no digit of them depends on it.
    Other arguments as of `draw_weights`.
    """
    sums = np.empty((n_replicates, len(sites)))
    for some in batches(n_replicates, sites.shape[1]):
        weights = np.stack([draw_weights(parts, rng, scale) for _ in range(some.start, some.stop)])
        sums[some] = weights @ sites.T
    return sums


def batches(n: int, n_values: int) -> Iterator[slice]:
    """Runs of 0 .. n - 1 of which each has at most RESAMPLED_VALUES values, if one item has `n_values`."""
    size = max(1, RESAMPLED_VALUES // max(1, n_values))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
