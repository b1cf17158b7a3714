"""Supports of branches by the likelihood of their nearest neighbours: SH-aLRT, aBayes and LBP.

Each inner branch is compared with its two interchanges by their site lnL; the lengths of the five branches around it
are optimised on each, see `plltool.tree_search.neighbours` also for roots.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from plltool.alignment.resampling import batches, resampled_sums
from plltool.arrays import FloatArray
from plltool.constants import ABAYES, LBP, SH_ALRT
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.rooted import drop_root, inner_branches, spread_over_branches, unrooted_branches
from plltool.tree_search.neighbours import neighbour_sites

ALRT_MARGIN = 0.05  # lnL by which a branch must exceed a replicate: the precision of the optimisation (IQ-TREE's)


def support_branches(
    likelihood: TreeLikelihood, kinds: Sequence[str], n_replicates: int, rng: np.random.Generator
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Supports, of some NEIGHBOUR_KINDS, of all inner branches of a tree whose lengths and model are optimised.

    The tree stays as it is. The engine needs at least two scratch slots behind the directed CLAs. All branches see the
    same `n_replicates` resampled alignments. Returns

    values : (n_edges,) for each kind, "sh-alrt" and "lbp" in per cent, "abayes" from 0 to 1; NaN at branches of tips.
        Both branches at a root have the values of the one that it divides
    lnl : (n_edges, 3) lnL of the tree and of its two interchanges at each branch; likewise
    """
    tree = likelihood.tree
    branches = inner_branches(tree)
    weights = likelihood.engine.weights
    own = likelihood.site_lnl()
    gains = np.empty((len(branches), 2))
    shares = np.empty((2, len(branches)))
    for some in batches(len(branches), 2 * len(own)):
        differences = neighbour_sites(likelihood, branches[some]) - own
        gains[some] = differences @ weights
        if {SH_ALRT, LBP} & set(kinds):
            parts = likelihood.split_patterns(weights)
            drawn = resampled_sums(differences.reshape(-1, len(own)), parts, n_replicates, copy.deepcopy(rng))
            drawn = drawn.reshape(n_replicates, -1, 2)
            shares[:, some] = sh_alrt(gains[some], drawn), local_bootstrap(drawn)
    found = {SH_ALRT: 100 * shares[0], ABAYES: abayes(gains), LBP: 100 * shares[1]}
    lnl = float(own @ weights) + np.column_stack([np.zeros(len(branches)), gains])

    def spread(values: FloatArray) -> FloatArray:
        of_unrooted = np.full((drop_root(tree).n_edges, *values.shape[1:]), np.nan)
        of_unrooted[unrooted_branches(tree)[branches]] = values
        return spread_over_branches(tree, of_unrooted)

    return {kind: spread(found[kind]) for kind in kinds}, spread(lnl)


def sh_alrt(gains: FloatArray, drawn: FloatArray) -> FloatArray:
    """SH-like approximate likelihood ratio tests (Guindon et al. 2010, p. 310).

    The statistic of a branch is the difference of its lnL to that of the better interchange. The statistic of a
    replicate is the difference between the best and the second best of the three, after the lnL on the data has been
    subtracted from each (Shimodaira and Hasegawa's centring). Returns (n,) the share of replicates whose statistic is
    smaller by at least ALRT_MARGIN. `gains` (n, 2) are lnL of the interchanges minus lnL of the tree, and `drawn`
    (n_replicates, n, 2) the same for resampled alignments.
    """
    centred = np.concatenate([np.zeros((*drawn.shape[:2], 1)), drawn - gains], axis=2)
    centred.sort(axis=2)
    statistic = -gains.max(axis=1)
    return np.mean(statistic > centred[..., 2] - centred[..., 1] + ALRT_MARGIN, axis=0)


def local_bootstrap(drawn: FloatArray) -> FloatArray:
    """Local bootstrap probabilities (n,) (Adachi & Hasegawa 1996): how often the tree is better than both interchanges.

    `drawn` is that of `sh_alrt`.
    """
    return np.mean(drawn.max(axis=2) < 0, axis=0)


def abayes(gains: FloatArray) -> FloatArray:
    """Posterior probability (n,) of each branch against its two interchanges (Anisimova et al. 2011).

    The three have equal prior probabilities; `gains` is that of `sh_alrt`.
    """
    relative = np.concatenate([np.zeros((len(gains), 1)), gains], axis=1)
    relative -= relative.max(axis=1, keepdims=True)
    return np.exp(relative[:, 0]) / np.exp(relative).sum(axis=1)
