"""Tests of topologies from the site lnL of some trees: KH, SH, their weighted forms, ELW and AU.

All of them resample columns (RELL). A p-value is the probability of a difference at least as large as the observed one
if the tree were as good as the others; trees with small p-values are rejected. KH, SH and AU are one-sided.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.alignment.patterns import resampled_sums
from plltool.arrays import BoolArray, FloatArray, likelihood_weights
from plltool.constants import TEST_LEVEL

AU_TIE = 0.01  # lnL; trees that differ by less are one tree to AU: the precision of the optimisation
AU_SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)  # columns drawn, over all columns (Shimodaira 2002)
AU_BOUNDS = 3.0  # standard errors
AU_UNDETERMINED = 0.01  # a p-value that may be smaller than this, and that keeps a tree, is not determined
MAX_SCORING_STEPS, SCORING_PRECISION = 100, 1e-12  # of d and c
FARTHEST_FIT, WORST_CONDITION = 50.0, 1e12  # a fit farther away, or a worse information matrix, says nothing
LARGEST_ERROR = 10.0  # of d - c; beyond it they could be anything


@dataclass(frozen=True, eq=False)
class TopologyTests:
    """p-values of trees, all (n_trees,)."""

    lnl: FloatArray  # log-likelihood
    delta: FloatArray  # its difference to that of the best tree
    bp: FloatArray  # share of replicates in which the tree is the best (bootstrap proportion, RELL)
    kh: FloatArray  # Kishino & Hasegawa 1989, against the best tree; for the best tree, against the second best
    sh: FloatArray  # Shimodaira & Hasegawa 1999, against the best of all trees
    wkh: FloatArray  # the same with differences divided by their standard errors (Shimodaira 2002)
    wsh: FloatArray  # likewise
    elw: FloatArray  # expected likelihood weight (Strimmer & Rambaut 2002); the weights sum to 1
    in_elw_set: BoolArray  # bool, whether the tree is among those with the largest weights that sum to 1 - TEST_LEVEL
    # Shimodaira 2002, approximately unbiased; trees that differ by less than AU_TIE count as one, see `find_ties`
    au: FloatArray
    distance: FloatArray  # signed distance d, from which `au` is computed; NaN without a fit
    curvature: FloatArray  # curvature c, likewise
    au_low: FloatArray  # bounds of `au`, see `fit_multiscale`; NaN without a fit
    au_high: FloatArray

    @property
    def au_undetermined(self) -> BoolArray:
        """(n_trees,) whether AU would keep the tree, but is too uncertain, because the tree is hardly ever the best."""
        return (self.au >= TEST_LEVEL) & (self.au_low < AU_UNDETERMINED) & (self.bp < 0.5)


def run_tests(
    sites: FloatArray, parts: Sequence[FloatArray], n_replicates: int, rng: np.random.Generator
) -> TopologyTests:
    """All tests of at least two trees, from lnL of each pattern (n_trees, n_patterns).

    `parts` are the pattern weights of each part, within which columns are resampled, `n_replicates` times at each of
    AU_SCALES.
    """
    weights = np.concatenate(parts)
    lnl = sites @ weights
    relative = sites - sites[int(np.argmax(lnl))]  # small numbers lose no digits when summed
    gains = relative @ weights
    drawn = [resampled_sums(relative, parts, n_replicates, rng, scale) for scale in AU_SCALES]
    once = drawn[AU_SCALES.index(1.0)]
    errors = difference_errors(relative, parts)
    kh, sh, wkh, wsh = compare_with_best(gains, once, errors)
    elw = likelihood_weights(once).mean(axis=0)
    ties = find_ties(gains, errors)
    best = [sums == sums.max(axis=1, keepdims=True) for sums in drawn]
    shares = np.array([np.mean(own @ ties, axis=0) for own in best])  # of booleans, @ is any(... and ...)
    fit = fit_multiscale(shares, np.array(AU_SCALES), n_replicates)
    bp = win_shares(once)
    chosen = smallest_set(elw, 1 - TEST_LEVEL)
    return TopologyTests(lnl, gains.max() - gains, bp, kh, sh, wkh, wsh, elw, chosen, *fit)


def win_shares(sums: FloatArray) -> FloatArray:
    """The share of replicates (n_replicates, n_trees) in which each tree is the best; ties are shared."""
    best = sums == sums.max(axis=1, keepdims=True)
    return np.mean(best / best.sum(axis=1, keepdims=True), axis=0)


def find_ties(gains: FloatArray, errors: FloatArray) -> BoolArray:
    """(n_trees, n_trees) whether two trees differ by less than AU_TIE, as root mean square over resampled alignments.

    Such trees differ by less than they are optimised to. Neither may win against the other, so that AU asks how often
    either of them is the best. The answer must not depend on the scale in another way than that for other trees:
    with a margin for ties in each replicate, two trees that are equally good could both be rejected. `gains` (n_trees,)
    are lnL up to a constant, and `errors` those of `difference_errors`.
    """
    return np.hypot(gains[:, None] - gains, errors) < AU_TIE


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


def compare_with_best(gains: FloatArray, drawn: FloatArray, errors: FloatArray) -> FloatArray:
    """(4, n_trees) p-values of KH, SH and their weighted forms, from lnL up to a constant.

    `gains` are (n_trees,), and `drawn` (n_replicates, n_trees) the same for resampled alignments.
    """
    n = len(gains)
    centred = drawn - gains  # now all trees are equally good on average (Shimodaira & Hasegawa 1999)
    values = np.empty((4, n))
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
    return values


def smallest_set(weights: FloatArray, level: float) -> BoolArray:
    """Whether each weight is needed to reach `level`, taking the largest first."""
    order = np.argsort(-weights, kind="stable")
    before = np.cumsum(weights[order]) - weights[order]
    chosen = np.zeros(len(weights), dtype=np.bool_)
    chosen[order] = before < level
    return chosen


def fit_multiscale(shares: FloatArray, scales: FloatArray, n_replicates: int) -> FloatArray:
    """The AU test from the number of replicates in which a tree is the best, at each scale.

    Shimodaira 2002, eq. 7 and 9: if r times as many columns are drawn, the tree is the best with probability
    1 - Phi(d sqrt(r) + c / sqrt(r)), and its p-value is 1 - Phi(d - c). The likelihood of d and c is binomial, so that
    scales at which the tree never is the best count, too. A tree that is so at no scale, or always, has p-value 0 or 1,
    and one whose counts leave d and c open the median share.

    `shares` (n_scales, n_trees) are those of the replicates in which each tree is the best, `scales` (n_scales,) are r.
    Returns (5, n_trees): p-values, d, c, and bounds of the p-values, AU_BOUNDS standard errors of d - c away; NaN but
    for the p-value where no scale tells anything.
    """
    from scipy.special import ndtr  # here, because importing it takes a third of a second

    design = np.stack([np.sqrt(scales), 1 / np.sqrt(scales)], axis=1)
    columns = np.full((5, shares.shape[1]), np.nan)
    for tree, share in enumerate(shares.T):
        if share.max() == 0 or share.min() == 1:
            columns[0, tree] = share[0]
            continue
        (d, c), error = _fit_probit(share * n_replicates, n_replicates, design)
        if error > LARGEST_ERROR:
            columns[:, tree] = np.median(share), d, c, 0.0, 1.0
            continue
        margin = AU_BOUNDS * error
        columns[:, tree] = ndtr(c - d), d, c, ndtr(c - d - margin), ndtr(c - d + margin)
    return columns


def _fit_probit(counts: FloatArray, n: int, design: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients of maximum likelihood, and the standard error of the first minus the second; inf if it has none.

    `counts` out of `n` have the probability 1 - Phi(design @ coefficients). Fisher scoring; the logarithm of the
    likelihood is concave, but its maximum may lie at infinity, where the iteration stops on its way.
    """
    from scipy.special import log_ndtr, ndtri

    def slopes(fit: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        z = design @ fit
        won, lost = log_ndtr(-z), log_ndtr(z)
        density = -z * z / 2 - np.log(2 * np.pi) / 2
        first = -counts * np.exp(density - won) + (n - counts) * np.exp(density - lost)
        weight = n * np.exp(2 * density - won - lost)
        return float(counts @ won + (n - counts) @ lost), design.T @ first, design.T @ (design * weight[:, None])

    fit = np.linalg.lstsq(design, -ndtri((counts + 0.5) / (n + 1)), rcond=None)[0]
    value, slope, information = slopes(fit)
    for _ in range(MAX_SCORING_STEPS):
        step = np.linalg.lstsq(information, slope, rcond=None)[0]
        step = step * min(1.0, FARTHEST_FIT / np.abs(step).max(initial=SCORING_PRECISION))
        while (there := slopes(fit + step))[0] < value and np.abs(step).max() > SCORING_PRECISION:
            step = step / 2
        if there[0] < value:
            break
        fit = fit + step
        value, slope, information = there
        if np.abs(step).max() <= SCORING_PRECISION or np.abs(fit).max() > FARTHEST_FIT:
            break
    if np.linalg.cond(information) > WORST_CONDITION:
        return fit, np.inf
    contrast = np.array([1.0, -1.0])
    return fit, float(np.sqrt(contrast @ np.linalg.solve(information, contrast)))
