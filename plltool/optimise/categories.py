"""Rate categories of sites (+PSR; Stamatakis 2006, Izquierdo-Carrasco et al. 2013): each site has one rate.

lnL of every pattern is computed at each rate of a grid, in one pass over the tree for a rate. Out of the grid come the
k rates that make lnL highest if every pattern gets the best of them. If lnL of a pattern has one peak, this is the
better of the two chosen rates on either side of the peak. So lnL is a sum over pairs of neighbouring chosen rates, and
dynamic programming finds the best k exactly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import (
    CATEGORY_GAIN,
    MAX_BRANCH_LENGTH,
    MAX_SITE_RATE,
    MIN_BRANCH_LENGTH,
    MIN_SITE_RATE,
    SITE_RATE_STEP,
)
from plltool.model.model import CATEGORIES
from plltool.optimise.likelihood import TreeLikelihood


def rate_grid() -> FloatArray:
    """The rates that a site may get, ascending, before their mean is set to 1."""
    first, last = (round(float(np.log(end) / np.log(SITE_RATE_STEP))) for end in (MIN_SITE_RATE, MAX_SITE_RATE))
    return np.power(SITE_RATE_STEP, np.arange(first, last + 1), dtype=np.float64)


def choose_categories(likelihood: TreeLikelihood) -> None:
    """Give each pattern one of at most k rates, for the current tree; models without +PSR stay as they are.

    The mean rate of all sites is set to 1, and the branch lengths change by the same factor. Rates that the
    specification gives are kept. Once they have rates, nothing changes unless lnL gains CATEGORY_GAIN.
    """
    model = likelihood.models[0]
    if CATEGORIES not in model.free_parameters:
        return
    tree, spec, weights = likelihood.tree, model.spec.sites, likelihood.engine.weights
    before, lengths, lnl = model.copy(), tree.lengths.copy(), likelihood.lnl()
    rates = rate_grid() if spec.rates is None else np.unique(spec.rates)
    found = lnl_at_rates(likelihood, rates)
    if spec.rates is None:
        chosen = best_rates(found, weights, spec.n_categories)
        rates, found = rates[chosen], found[chosen]
    used, category_of = np.unique(np.argmax(found, axis=0), return_inverse=True)
    if spec.rates is None:
        rates = rates[used]
        mean = weights @ rates[category_of] / weights.sum()
        rates = rates / mean
        tree.lengths[:] = np.clip(lengths * mean, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
    else:
        category_of = used[category_of]
    model.set_sites(model.sites.with_categories(rates, category_of, weights))
    likelihood.model_changed()
    if before.sites.category_of is not None and likelihood.lnl() < lnl + CATEGORY_GAIN:
        model.assign(before)
        tree.lengths[:] = lengths
        likelihood.model_changed()


def lnl_at_rates(likelihood: TreeLikelihood, rates: FloatArray) -> FloatArray:
    """lnL (n_rates, n_patterns) of each pattern at each rate, not weighted; -inf where it cannot be represented."""
    shared = likelihood.models[0].components().category(0)
    try:
        rows = []
        for rate in rates.tolist():
            likelihood.engine.set_model([replace(shared, rates=np.array([rate * likelihood.models[0].scaler]))])
            rows.append(likelihood.site_lnl(impossible=True))
    finally:
        likelihood.model_changed()
    return np.stack(rows)


def best_rates(lnl: FloatArray, weights: FloatArray, most: int) -> IndexArray:
    """The indices of the `most` rates with which lnL is highest if each pattern has the best of them.

    Parameters
    ----------
    lnl : (n_rates, n_patterns), of each pattern at each rate, ascending; each pattern has one peak
    weights : (n_patterns,)

    Returns
    -------
    ascending; fewer if there are fewer rates.
    """
    n = len(lnl)
    most = min(most, n)
    below, between, above = _gains(lnl, weights)
    score = below.copy()  # of the best choices that end with each rate
    links = []
    for _ in range(most - 1):
        sums = score[:, None] + between
        links.append(np.argmax(sums, axis=0))
        score = sums[links[-1], np.arange(n)]
    path = [int(np.argmax(score + above))]
    for link in reversed(links):
        path.append(int(link[path[-1]]))
    return np.array(path[::-1], dtype=np.intp)


def _gains(lnl: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """lnL of the patterns whose peak is below each rate, between each two rates, and at or above each rate."""
    n = len(lnl)
    peak = np.argmax(lnl, axis=0)
    order = np.argsort(peak, kind="stable")
    lnl, weights = lnl[:, order], weights[order]
    ends = np.searchsorted(peak[order], np.arange(n + 1))
    below = np.array([lnl[b, : ends[b]] @ weights[: ends[b]] for b in range(n)])
    above = np.array([lnl[a, ends[a] :] @ weights[ends[a] :] for a in range(n)])
    between = np.full((n, n), -np.inf)
    for a in range(n):
        for b in range(a + 1, n):
            some = slice(ends[a], ends[b])
            between[a, b] = np.maximum(lnl[a, some], lnl[b, some]) @ weights[some]
    return below, between, above
