"""Are there enough bootstrap replicates? Tests on random halves of them (Pattengale et al. 2010).

The replicates are cut into random halves BOOTSTOP_CUTS times. If nearly all pairs of halves agree, more replicates
would hardly change the supports.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import (
    BOOTSTOP_AGREEMENT,
    BOOTSTOP_CORRELATION,
    BOOTSTOP_CUTS,
    BOOTSTOP_WRF,
    MAJORITY,
)
from plltool.tree.consensus import extend
from plltool.tree.tree_set import TreeSet

CRITERIA = MRE, FC = "autoMRE", "autoFC"


@dataclass(frozen=True)
class Convergence:
    """The result of a test.

    Attributes
    ----------
    n_trees : number of replicates tested
    criterion : "autoMRE" or "autoFC"
    mean : mean over the cuts; for autoMRE of the weighted RF distance between the extended majority-rule trees of the
        two halves, from 0 to 1; for autoFC of the correlation between the split frequencies of the two halves
    agreeing : share of the cuts whose halves agree by the criterion
    converged : whether this share is large enough
    """

    n_trees: int
    criterion: str
    mean: float
    agreeing: float

    @property
    def converged(self) -> bool:
        return self.agreeing >= BOOTSTOP_AGREEMENT

    def __str__(self) -> str:
        what = "weighted RF distance" if self.criterion == MRE else "correlation"
        verdict = "enough" if self.converged else "not enough"
        agreeing = f"{100 * self.agreeing:.0f} % of the halvings agree"
        return f"{self.criterion}: {self.n_trees} replicates: mean {what} {self.mean:.4f}, {agreeing}: {verdict}"


def check_convergence(trees: TreeSet, criterion: str, rng: np.random.Generator) -> Convergence:
    """Cut the trees into halves BOOTSTOP_CUTS times and compare them.

    By "autoMRE" halves agree if the weighted RF distance of their extended majority-rule trees, with branches weighted
    by their frequencies, is at most BOOTSTOP_WRF of the largest possible. By "autoFC" they agree if the frequencies of
    all splits have a correlation of at least BOOTSTOP_CORRELATION.
    """
    half = trees.n_trees // 2
    present = trees.counts > 0
    values = np.empty(BOOTSTOP_CUTS)
    for cut in range(BOOTSTOP_CUTS):
        order = rng.permutation(trees.n_trees)
        first, second = (count_splits(trees, some) for some in (order[:half], order[half : 2 * half]))
        if criterion == FC:
            values[cut] = correlate(first[present].astype(np.float64), second[present].astype(np.float64))
        else:
            values[cut] = _weighted_distance(trees, first, second, half)
    agree = values >= BOOTSTOP_CORRELATION if criterion == FC else values <= BOOTSTOP_WRF
    return Convergence(trees.n_trees, criterion, float(values.mean()), float(agree.mean()))


def count_splits(trees: TreeSet, numbers: IndexArray) -> IndexArray:
    """The number of the trees `numbers` that have each split: (n_splits,)."""
    chosen = np.zeros(trees.n_trees, dtype=bool)
    chosen[numbers] = True
    return np.bincount(trees.members[np.repeat(chosen, np.diff(trees.starts))], minlength=len(trees.splits))


def correlate(a: FloatArray, b: FloatArray) -> float:
    """Pearson's correlation of two arrays (n,); if one of them is constant, 1 for equal arrays and 0 for others."""
    first, second = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread else float(np.array_equal(a, b))


def _weighted_distance(trees: TreeSet, first: IndexArray, second: IndexArray, half: int) -> float:
    shares = [_consensus_shares(trees, counts, half) for counts in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum()) / (2 * max(1, len(trees.names) - 3))


def _consensus_shares(trees: TreeSet, counts: IndexArray, n_trees: int) -> FloatArray:
    """The frequencies of the splits in the extended majority-rule tree of some trees, 0 elsewhere: (n_splits,)."""
    chosen = extend(trees, counts, np.flatnonzero(counts > MAJORITY * n_trees))
    shares = np.zeros(len(counts))
    shares[chosen] = counts[chosen] / n_trees
    return shares
