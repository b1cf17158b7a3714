"""Alignments resampled from their own columns, as weights of patterns, and the lnL of trees on them.

RELL (Kishino, Miyata & Hasegawa 1990): the lnL of a tree on a resampled alignment is approximated by the sum of its
site lnL over the resampled columns, with the same branch lengths and model. So one matrix product gives the lnL of all
trees on all replicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from plltool.alignment.resample import Urn
from plltool.arrays import FloatArray
from plltool.constants import RESAMPLED_VALUES


def resample_once(urns: Sequence[Urn], rng: np.random.Generator, scale: float = 1.0) -> FloatArray:
    """Pattern weights (n_patterns,) of one resampled alignment: columns drawn with replacement, part by part.

    Parameters
    ----------
    urns : of the parts
    scale : number of columns to draw as a multiple of those in the alignment, rounded; at least one per part
    """
    return np.concatenate([urn.draw(max(1, round(scale * urn.size)), rng) for urn in urns])


def resampled_sums(
    sites: FloatArray, parts: Sequence[FloatArray], n_replicates: int, rng: np.random.Generator, scale: float = 1.0
) -> FloatArray:
    """Sums (n_replicates, n) of site values (n, n_patterns) over resampled alignments.

    The weights of as many replicates as RESAMPLED_VALUES allows are held at a time; the draws do not depend on this.

    Parameters
    ----------
    parts : the pattern weights of each part, which are whole numbers
    scale : see `resample_once`
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
