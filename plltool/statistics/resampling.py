"""Alignments drawn anew from their own columns, as weights of patterns, and what trees' lnL would be on them.

RELL (Kishino, Miyata & Hasegawa 1990): the lnL of a tree on a resampled alignment is the sum of its site lnL there,
branch lengths and model staying as they are. So all trees on all replicates are one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import RESAMPLED_VALUES


def list_columns(parts: Sequence[FloatArray]) -> list[IndexArray]:
    """Of each part the pattern of every column, patterns counted from the first part on.

    `parts` are the weights of each part's patterns, whole numbers; the patterns follow one another.
    """
    columns, first = [], 0
    for weights in parts:
        columns.append(np.repeat(np.arange(first, first + len(weights)), weights.astype(np.intp)))
        first += len(weights)
    return columns


def resample_once(
    columns: Sequence[IndexArray], n_patterns: int, rng: np.random.Generator, scale: float = 1.0
) -> FloatArray:
    """Pattern weights (n_patterns,) of one resampled alignment: columns drawn with replacement, part by part.

    Parameters
    ----------
    columns : from `list_columns`
    scale : columns to draw as a multiple of those that there are, rounded; at least one of each part
    """
    drawn = [own[rng.integers(0, len(own), max(1, round(scale * len(own))))] for own in columns]
    return np.bincount(np.concatenate(drawn), minlength=n_patterns).astype(np.float64)


def resampled_sums(
    sites: FloatArray, parts: Sequence[FloatArray], n_replicates: int, rng: np.random.Generator, scale: float = 1.0
) -> FloatArray:
    """Sums (n_replicates, n) of site values (n, n_patterns) over resampled alignments.

    Weights are held for as many replicates as RESAMPLED_VALUES allows at a time; the draws do not depend on it.

    Parameters
    ----------
    parts : of each part the weights of its patterns, see `list_columns`
    scale : see `resample_once`
    """
    sums = np.empty((n_replicates, len(sites)))
    columns = list_columns(parts)
    for some in batches(n_replicates, sites.shape[1]):
        weights = np.stack([resample_once(columns, sites.shape[1], rng, scale) for _ in range(some.start, some.stop)])
        sums[some] = weights @ sites.T
    return sums


def batches(n: int, n_values: int) -> Iterator[slice]:
    """Runs of 0 .. n - 1 of which each has at most RESAMPLED_VALUES values, if one item has `n_values`."""
    size = max(1, RESAMPLED_VALUES // max(1, n_values))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
