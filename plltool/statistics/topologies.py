"""Tests of topologies from the site lnL of some trees: KH, SH, their weighted forms, ELW and AU.

All of them resample columns (RELL). A p-value is the chance of a difference as large as that seen if the tree were as
good as the others: trees with small ones are rejected. KH, SH and AU are one-sided.
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
    lnl, delta : log-likelihood, and what it lacks to that of the best tree
    bp : share of replicates in which the tree is the best (bootstrap proportion, RELL)
    kh : Kishino & Hasegawa 1989, against the best tree; of the best tree against the second
    sh : Shimodaira & Hasegawa 1999, against the best of all trees
    wkh, wsh : the same with differences over their standard errors (Shimodaira 2002)
    elw : expected likelihood weight (Strimmer & Rambaut 2002); they sum to 1
    in_elw_set : bool, whether the tree is among those of the largest weights that sum to 1 - TEST_LEVEL
    au : Shimodaira 2002, approximately unbiased; trees within AU_TIE of the best one win, too
    distance, curvature : d and c, signed distance and curvature, that `au` is made of; NaN where there is no fit
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
    sites : (n_trees, n_patterns) lnL of each pattern; two trees at least
    parts : of each part the weights of its patterns; columns are resampled within parts
    n_replicates : of the tests, and as many at each of AU_SCALES
    """
    weights = np.concatenate(parts)
    lnl = sites @ weights
    relative = sites - sites[int(np.argmax(lnl))]  # small numbers sum without loss
    gains = relative @ weights
    drawn = [resampled_sums(relative, parts, n_replicates, rng, scale) for scale in AU_SCALES]
    once = drawn[AU_SCALES.index(1.0)]
    kh, sh, wkh, wsh = compare_with_best(gains, once, difference_errors(relative, parts))
    elw = likelihood_weights(once)
    among_best = np.array([np.mean(sums >= sums.max(axis=1, keepdims=True) - AU_TIE, axis=0) for sums in drawn])
    au, distance, curvature = fit_multiscale(among_best, np.array(AU_SCALES), n_replicates)
    bp = win_shares(once)
    chosen = smallest_set(elw, 1 - TEST_LEVEL)
    return TopologyTests(lnl, gains.max() - gains, bp, kh, sh, wkh, wsh, elw, chosen, au, distance, curvature)


def win_shares(sums: FloatArray) -> FloatArray:
    """The share of replicates (n_replicates, n_trees) in which each tree is the best; ties are shared."""
    best = sums == sums.max(axis=1, keepdims=True)
    return np.mean(best / best.sum(axis=1, keepdims=True), axis=0)


def difference_errors(sites: FloatArray, parts: Sequence[FloatArray]) -> FloatArray:
    """(n_trees, n_trees) standard error of the difference of two trees' lnL when columns are resampled within parts."""
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
    drawn : (n_replicates, n_trees) the same of resampled alignments
    errors : (n_trees, n_trees) from `difference_errors`
    """
    n = len(gains)
    centred = drawn - gains  # each tree as good as it is on average, so all are equal (Shimodaira & Hasegawa 1999)
    values = np.empty((4, n))  # kh, sh, wkh, wsh
    for tree in range(n):
        others = np.flatnonzero(np.arange(n) != tree)
        observed, by_chance = gains[others] - gains[tree], centred[:, others] - centred[:, [tree]]
        # equal trees, whose errors are 0, differ by rounding only
        error = np.maximum(errors[tree, others], np.finfo(float).eps * max(1.0, np.abs(gains).max()))
        for row, scale in ((0, np.ones(n - 1)), (2, error)):
            differences, chances = observed / scale, by_chance / scale
            best = int(np.argmax(differences))
            values[row, tree] = np.mean(chances[:, best] >= differences[best])
            values[row + 1, tree] = np.mean(chances.max(axis=1) >= differences[best])
        if observed.max() <= 0:
            values[1, tree] = 1.0  # SH counts the tree itself among the others
    kh, sh, wkh, wsh = values
    return kh, sh, wkh, wsh


def likelihood_weights(drawn: FloatArray) -> FloatArray:
    """Mean over replicates (n_replicates, n_trees) of each tree's share of the likelihood."""
    shares = np.exp(drawn - drawn.max(axis=1, keepdims=True))
    return np.mean(shares / shares.sum(axis=1, keepdims=True), axis=0)


def smallest_set(weights: FloatArray, level: float) -> BoolArray:
    """Which of the weights, largest first, are needed to reach `level`."""
    order = np.argsort(-weights, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    chosen = np.zeros(len(weights), dtype=np.bool_)
    chosen[order] = before < level
    return chosen


def fit_multiscale(
    shares: FloatArray, scales: FloatArray, n_replicates: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """AU p-values, signed distances d and curvatures c (n_trees,) by weighted least squares.

    Shimodaira 2002, eq. 7 and 9: where r times as many columns are drawn, the tree wins with the chance
    1 - Phi(d sqrt(r) + c / sqrt(r)), and its p-value is 1 - Phi(d - c). A share's weight is the inverse variance of the
    quantile that it becomes. A tree that wins always or never at all scales but one has that for its p-value.

    Parameters
    ----------
    shares : (n_scales, n_trees) of the replicates in which each tree is the best
    scales : (n_scales,) r
    n_replicates : that each share comes from
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
