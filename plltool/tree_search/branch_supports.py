"""Supports of branches by the likelihood of their nearest neighbours: SH-aLRT and aBayes.

Each inner branch is compared with its two interchanges, whose five branch lengths are optimised, by their site lnL.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import ALRT_MARGIN
from plltool.optimise.likelihood import TreeLikelihood
from plltool.statistics.resampling import batches, resampled_sums
from plltool.tree_search.neighbours import neighbour_sites


@dataclass(frozen=True, eq=False)
class BranchSupports:
    """Supports of inner branches.

    Attributes
    ----------
    branches : (n,) inner branches, as the tree numbers them
    lnl : (n, 3) of the tree and its two interchanges at each branch
    sh_alrt : (n,) share of replicates, 0 to 1, that the branch's likelihood ratio exceeds; None if not asked for
    abayes : (n,) posterior probability, 0 to 1, of the branch among the three
    """

    branches: IndexArray
    lnl: FloatArray
    sh_alrt: FloatArray | None
    abayes: FloatArray


def support_branches(likelihood: TreeLikelihood, n_replicates: int, rng: np.random.Generator) -> BranchSupports:
    """Supports of all inner branches of a tree whose lengths and model are optimised.

    The tree stays as it is. The engine needs two scratch slots at least behind the directed CLAs.

    Parameters
    ----------
    n_replicates : of the resampling that SH-aLRT is made of; 0 leaves it out. All branches see the same replicates
    rng : source of the replicates
    """
    branches = np.flatnonzero(likelihood.tree.is_inner_branch)
    weights = likelihood.engine.weights
    own = likelihood.site_lnl()
    gains = np.empty((len(branches), 2))
    alrt = np.empty(len(branches)) if n_replicates else None
    for some in batches(len(branches), 2 * len(own)):
        differences = neighbour_sites(likelihood, branches[some]) - own
        gains[some] = differences @ weights
        if alrt is not None:
            parts = likelihood.split_patterns(weights)
            drawn = resampled_sums(differences.reshape(-1, len(own)), parts, n_replicates, copy.deepcopy(rng))
            alrt[some] = sh_alrt(gains[some], drawn.reshape(n_replicates, -1, 2))
    lnl = float(own @ weights) + np.column_stack([np.zeros(len(branches)), gains])
    return BranchSupports(branches, lnl, alrt, abayes(gains))


def sh_alrt(gains: FloatArray, drawn: FloatArray) -> FloatArray:
    """SH-like approximate likelihood ratio tests (Guindon et al. 2010, p. 310).

    The statistic of a branch is what its lnL has over that of the better interchange. A replicate's is what the best of
    the three has over the second best, each less its lnL on the data (Shimodaira and Hasegawa's centring).

    Parameters
    ----------
    gains : (n, 2) lnL of the interchanges less that of the tree
    drawn : (n_replicates, n, 2) the same of resampled alignments

    Returns
    -------
    (n,) the share of replicates whose statistic is smaller, by ALRT_MARGIN at least.
    """
    centred = np.concatenate([np.zeros((*drawn.shape[:2], 1)), drawn - gains], axis=2)
    centred.sort(axis=2)
    statistic = -gains.max(axis=1)
    return np.mean(statistic > centred[..., 2] - centred[..., 1] + ALRT_MARGIN, axis=0)


def abayes(gains: FloatArray) -> FloatArray:
    """Posterior probability (n,) of each branch among it and its interchanges, equal before (Anisimova et al. 2011).

    `gains` as of `sh_alrt`.
    """
    relative = np.concatenate([np.zeros((len(gains), 1)), gains], axis=1)
    relative -= relative.max(axis=1, keepdims=True)
    return np.exp(relative[:, 0]) / np.exp(relative).sum(axis=1)
