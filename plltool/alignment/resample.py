"""Resampled alignments: as many sites as there are, drawn with replacement (Felsenstein 1985)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.arrays import IndexArray


def draw_sites(n_sites: Sequence[int], rng: np.random.Generator) -> list[IndexArray]:
    """The sites of a replicate, drawn from each part by itself, of which `n_sites` has the sizes.

    Returns (n_sites of the part,) for each part, in the order of the draw.
    """
    return [rng.integers(0, size, size) for size in n_sites]


def take_sites(part: Patterns, sites: IndexArray) -> Patterns:
    """The patterns of some sites (n,) of a part, of which any may be taken several times; others do not occur."""
    kept, site_pattern, counts = np.unique(part.site_pattern[sites], return_inverse=True, return_counts=True)
    codes = np.ascontiguousarray(part.codes[:, kept])
    return Patterns(codes, counts.astype(np.float64), site_pattern, part.states)
