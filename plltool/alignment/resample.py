"""Resampled alignments: sites drawn with replacement, as many as there are (Felsenstein 1985)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import IndexArray


def draw_sites(n_sites: Sequence[int], rng: np.random.Generator) -> list[IndexArray]:
    """The sites of a replicate, drawn within each part; `n_sites` (n_parts,) are the sizes of the parts.

    Returns (n_sites of the part,) for each part, in the order in which they were drawn.
    """
    return [rng.integers(0, size, size) for size in n_sites]


def take_sites(part: Patterns, sites: IndexArray) -> Patterns:
    """The patterns of some sites (n,) of a part, each as often as it occurs among them."""
    kept, site_pattern, counts = np.unique(part.site_pattern[sites], return_inverse=True, return_counts=True)
    codes = np.ascontiguousarray(part.codes[:, kept])
    return Patterns(codes, counts.astype(np.float64), site_pattern, part.states)
