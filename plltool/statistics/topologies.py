"""Tests of topologies from the site lnL of some trees: KH, SH, their weighted forms, ELW and AU.

All of them resample columns (RELL). A p-value is the probability of a difference at least as large as the observed one
if the tree were as good as the others; trees with small p-values are rejected. KH, SH and AU are one-sided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import AU_SCALES, AU_TIE, TEST_LEVEL
from plltool.statistics.resampling import resampled_sums


@dataclass(frozen=True, eq=False)
class TopologyTests:
    """p-values of trees, all (n_trees,).

    Attributes
    ----------
    lnl, delta : log-likelihood, and its difference to that of the best tree
    bp : share of replicates in which the tree is the best (bootstrap proportion, RELL)
    kh : Kishino & Hasegawa 1989, against the best tree; for the best tree, against the second best
    sh : Shimodaira & Hasegawa 1999, against the best of all trees
    wkh, wsh : the same with differences divided by their standard errors (Shimodaira 2002)
    elw : expected likelihood weight (Strimmer & Rambaut 2002); the weights sum to 1
    in_elw_set : bool, whether the tree is among those with the largest weights that sum to 1 - TEST_LEVEL
    au : Shimodaira 2002, approximately unbiased; trees that differ by less than AU_TIE count as one, see `find_ties`
    distance, curvature : signed distance d and curvature c, from which `au` is computed; NaN without a fit
    """

    lnl: FloatArray
    delta: FloatArray
    bp: FloatArray
    kh: FloatArray
    sh: FloatArray
    wkh: FloatArray
    wsh: FloatArray
    elw: FloatArray
    in_elw_set: BoolArray
    au: FloatArray
    distance: FloatArray
    curvature: FloatArray


def run_tests(
    sites: FloatArray, parts: Sequence[FloatArray], n_replicates: int, rng: np.random.Generator
) -> TopologyTests:
    """All tests of some trees.

    Parameters
    ----------
    sites : (n_trees, n_patterns) lnL of each pattern; at least two trees
    parts : the pattern weights of each part; columns are resampled within parts
    n_replicates : number of resampled alignments, at each of AU_SCALES
    """
    weights = np.concatenate(parts)
    lnl = sites @ weights
    relative = sites - sites[int(np.argmax(lnl))]  # small numbers lose no digits when summed
    gains = relative @ weights
    drawn = [resampled_sums(relative, parts, n_replicates, rng, scale) for scale in AU_SCALES]
    once = drawn[AU_SCALES.index(1.0)]
    errors = difference_errors(relative, parts)
    kh, sh, wkh, wsh = compare_with_best(gains, once, errors)
    elw = likelihood_weights(once)
    ties = find_ties(gains, errors)
    shares = np.array([win_shares_with_ties(sums, ties) for sums in drawn])
    au, distance, curvature = fit_multiscale(shares, np.array(AU_SCALES), n_replicates)
    bp = win_shares(once)
    chosen = smallest_set(elw, 1 - TEST_LEVEL)
    return TopologyTests(lnl, gains.max() - gains, bp, kh, sh, wkh, wsh, elw, chosen, au, distance, curvature)


def win_shares(sums: FloatArray) -> FloatArray:
    """The share of replicates (n_replicates, n_trees) in which each tree is the best; ties are shared."""
    best = sums == sums.max(axis=1, keepdims=True)
    return np.mean(best / best.sum(axis=1, keepdims=True), axis=0)


def find_ties(gains: FloatArray, errors: FloatArray) -> BoolArray:
    """(n_trees, n_trees) whether two trees differ by less than AU_TIE, as root mean square over resampled alignments.

    Such trees differ by less than they are optimised to. Neither may win against the other, so that AU asks how often
    either of them is the best. The answer must not depend on the scale in another way than that for other trees:
    with a margin for ties in each replicate, two trees that are equally good could both be rejected.

    Parameters
    ----------
    gains : (n_trees,) lnL, up to a constant
    errors : (n_trees, n_trees) from `difference_errors`
    """
    return np.hypot(gains[:, None] - gains, errors) < AU_TIE


def win_shares_with_ties(sums: FloatArray, ties: BoolArray) -> FloatArray:
    """The share of replicates (n_replicates, n_trees) in which each tree, or one that it ties with, is the best."""
    best = sums == sums.max(axis=1, keepdims=True)
    return np.mean(best @ ties, axis=0)  # of booleans, @ is any(... and ...)


def difference_errors(sites: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """(n_trees, n_trees) standard errors of the differences of lnL when columns are resampled within parts."""
    variance = np.zeros((len(sites), len(sites)))
    first = 0
    for weights in parts:
        own = sites[:, first : first + len(weights)]
        n = weights.sum()
        centred = own - (own @ weights / n)[:, None]
        covariance = (centred * weights) @ centred.T
        spread = np.diag(covariance)
        variance += spread[:, None] + spread - 2 * covariance
        first += len(weights)
    return np.sqrt(np.maximum(variance, 0.0))


def compare_with_best(
    gains: FloatArray, drawn: FloatArray, errors: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """p-values (n_trees,) of KH, SH and their weighted forms.

    Parameters
    ----------
    gains : (n_trees,) lnL, up to a constant
    drawn : (n_replicates, n_trees) the same for resampled alignments
    errors : (n_trees, n_trees) from `difference_errors`
    """
    n = len(gains)
    centred = drawn - gains  # now all trees are equally good on average (Shimodaira & Hasegawa 1999)
    values = np.empty((4, n))  # kh, sh, wkh, wsh
    for tree in range(n):
        others = np.flatnonzero(np.arange(n) != tree)
        observed, by_chance = gains[others] - gains[tree], centred[:, others] - centred[:, [tree]]
        # equal trees have errors of 0 and differ only by rounding
        error = np.maximum(errors[tree, others], np.finfo(float).eps * max(1.0, np.abs(gains).max()))
        for row, scale in ((0, np.ones(n - 1)), (2, error)):
            differences, chances = observed / scale, by_chance / scale
            best = int(np.argmax(differences))
            values[row, tree] = np.mean(chances[:, best] >= differences[best])
            values[row + 1, tree] = np.mean(chances.max(axis=1) >= differences[best])
        if observed.max() <= 0:
            values[1, tree] = 1.0  # in SH the tree itself is among the others
    kh, sh, wkh, wsh = values
    return kh, sh, wkh, wsh


def likelihood_weights(drawn: FloatArray) -> FloatArray:
    """Each tree's share of the likelihood, (n_trees,), as mean over replicates (n_replicates, n_trees)."""
    shares = np.exp(drawn - drawn.max(axis=1, keepdims=True))
    return np.mean(shares / shares.sum(axis=1, keepdims=True), axis=0)


def smallest_set(weights: FloatArray, level: float) -> BoolArray:
    """Whether each weight is needed to reach `level`, taking the largest first."""
    order = np.argsort(-weights, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    chosen = np.zeros(len(weights), dtype=np.bool_)
    chosen[order] = before < level
    return chosen


def fit_multiscale(
    shares: FloatArray, scales: FloatArray, n_replicates: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """AU p-values, signed distances d and curvatures c (n_trees,) by weighted least squares.

    Shimodaira 2002, eq. 7 and 9: if r times as many columns are drawn, the tree is the best with probability
    1 - Phi(d sqrt(r) + c / sqrt(r)), and its p-value is 1 - Phi(d - c). The weight of a share is the inverse variance
    of its normal quantile. If fewer than two shares lie strictly between 0 and 1, the p-value is the median share.

    Parameters
    ----------
    shares : (n_scales, n_trees) of the replicates in which each tree is the best
    scales : (n_scales,) r
    n_replicates : number of replicates behind each share
    """
    from scipy.special import ndtr, ndtri  # here, because importing it takes a third of a second

    n = shares.shape[1]
    p, d, c = np.empty(n), np.full(n, np.nan), np.full(n, np.nan)
    for tree in range(n):
        usable = (shares[:, tree] > 0) & (shares[:, tree] < 1)
        if np.count_nonzero(usable) < 2:
            p[tree] = np.median(shares[:, tree])
            continue
        share, root = shares[usable, tree], np.sqrt(scales[usable])
        z = -ndtri(share)
        density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        weight = np.sqrt(n_replicates * density**2 / (share * (1 - share)))
        design = np.stack([root, 1 / root], axis=1)
        d[tree], c[tree] = np.linalg.lstsq(design * weight[:, None], z * weight, rcond=None)[0]
        p[tree] = ndtr(-(d[tree] - c[tree]))
    return p, d, c
