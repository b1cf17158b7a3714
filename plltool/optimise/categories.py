"""Rate categories of sites (+PSR; Stamatakis 2006, Izquierdo-Carrasco et al. 2013): each site has one rate.

lnL of every pattern is computed at each rate of a grid, in one pass over the tree for a rate. Out of the grid come the
k rates that make lnL highest if every pattern gets the best of them. If lnL of a pattern has one peak, this is the
better of the two chosen rates on either side of the peak. So lnL is a sum over pairs of neighbouring chosen rates, and
dynamic programming finds the best k exactly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import MAX_BRANCH_LENGTH, MAX_SCALER, MAX_SITE_RATE, MIN_BRANCH_LENGTH, MIN_SCALER, MIN_SITE_RATE
from plltool.model.model import CATEGORIES, SCALER
from plltool.optimise.likelihood import TreeLikelihood

CATEGORY_GAIN = 1.0  # lnL for which sites get other rates; the optimum is flat, and rates and lengths creep along it
SITE_RATE_STEP = 2.0**0.25  # ratio of neighbouring rates that a site may get


def rate_grid() -> FloatArray:
    """The rates that a site may get, ascending, before their mean is set to 1."""
    first, last = (round(float(np.log(end) / np.log(SITE_RATE_STEP))) for end in (MIN_SITE_RATE, MAX_SITE_RATE))
    return np.power(SITE_RATE_STEP, np.arange(first, last + 1), dtype=np.float64)


def choose_categories(likelihood: TreeLikelihood, only_first: bool = False) -> None:
    """Give each pattern one of at most k rates, for the current tree; parts without +PSR stay as they are.

    Rates that a specification gives are kept; the mean of others becomes 1, see `_settle_means`. Once patterns have
    rates, nothing changes unless lnL gains CATEGORY_GAIN. With `only_first` only parts with given rates are due, whose
    patterns have none yet.
    """
    models = likelihood.models
    rates = {}
    for number, model in enumerate(models):
        given = model.spec.sites.rates
        is_due = not only_first or (given is not None and model.sites.category_of is None)
        if CATEGORIES in model.free_parameters and is_due:
            rates[number] = rate_grid() if given is None else np.unique(given)
    if not rates:
        return
    before, lnl = {number: models[number].copy() for number in rates}, likelihood.part_lnl()
    are_new = any(model.sites.category_of is None for model in before.values())
    weights = likelihood.split_patterns(likelihood.engine.weights)
    gain = 0.0
    for number, found in lnl_at_rates(likelihood, rates).items():
        model, own = models[number], rates[number]
        if model.spec.sites.rates is None:  # the best k rates, less those that no pattern takes
            chosen = best_rates(found, weights[number], model.sites.n_categories)
            used = chosen[np.unique(np.argmax(found[chosen], axis=0))]
            own, found = own[used], found[used]
        model.set_sites(model.sites.with_categories(own, np.argmax(found, axis=0), weights[number]))
        gain += float(found.max(axis=0) @ weights[number]) - lnl[number]
    if are_new or gain >= CATEGORY_GAIN:
        _settle_means(likelihood, [number for number in rates if models[number].spec.sites.rates is None])
    else:
        for number, old in before.items():
            models[number].assign(old)
    likelihood.model_changed()


def _settle_means(likelihood: TreeLikelihood, parts: Sequence[int]) -> None:
    """Bring the mean rate of these parts to 1: their own lengths, or else their free scalers, take over the factor.

    Parts that share their lengths get the mean 1 together, as in RAxML, if that is all parts. Beside a part with other
    rates, which decide what a length means, their rates stay as they are.
    """
    lengths, models = likelihood.tree.lengths, likelihood.models
    rates = {number: models[number].sites.categories()[0] for number in parts}
    own = {number: rates[number][models[number].sites.category_of] for number in parts}  # of each pattern
    weights = likelihood.split_patterns(likelihood.engine.weights)
    factors = {}
    if lengths.ndim > 1:
        factors = {number: weights[number] @ own[number] / weights[number].sum() for number in parts}
        for number, factor in factors.items():
            lengths[:, number] *= factor
    elif len(parts) == len(models) and not any(SCALER in model.free_parameters for model in models):
        mean = likelihood.engine.weights @ np.concatenate(list(own.values())) / likelihood.engine.weights.sum()
        factors = dict.fromkeys(parts, mean)
        lengths *= mean
    else:
        for number in parts:
            if SCALER in models[number].free_parameters:
                before, mean = models[number].scaler, weights[number] @ own[number] / weights[number].sum()
                models[number].set_ratios(SCALER, np.clip([before * mean], MIN_SCALER, MAX_SCALER))
                factors[number] = models[number].scaler / before
    np.clip(lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH, out=lengths)
    for number, factor in factors.items():
        own_rates = tuple((rates[number] / factor).tolist())
        models[number].set_sites(replace(models[number].sites, rates=own_rates))


def lnl_at_rates(likelihood: TreeLikelihood, rates: Mapping[int, FloatArray]) -> dict[int, FloatArray]:
    """lnL (n_rates, n_patterns) of each pattern of some parts at each of the part's rates.

    It is not weighted, and -inf where it cannot be represented. The engine is left with the last rates.
    """
    parts = [model.components() for model in likelihood.models]
    wanted = np.isin(np.arange(len(parts)), list(rates))
    rows: dict[int, list[FloatArray]] = {number: [] for number in rates}
    for k in range(max(map(len, rates.values()))):
        for number, own in rates.items():
            rate = own[min(k, len(own) - 1)] * likelihood.models[number].scaler
            parts[number] = replace(parts[number].category(0), rates=np.array([rate]))
        likelihood.engine.set_model(parts)
        found = likelihood.split_patterns(likelihood.site_lnl(impossible=True, parts=wanted))
        for number, own in rates.items():
            rows[number] += [found[number]] if k < len(own) else []
    return {number: np.stack(own) for number, own in rows.items()}


def best_rates(lnl: FloatArray, weights: FloatArray, most: int) -> IndexArray:
    """The indices, ascending, of the `most` rates with which lnL is highest if each pattern has the best of them.

    `lnl` (n_rates, n_patterns) is that of each pattern at each rate, ascending, with one peak for each pattern.
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
    """lnL of the patterns whose peak is below each rate, between each two rates, and at or above each rate.

    There is no product of vectors: of 20,000 patterns, the threads of numpy's BLAS made thousands take seconds.
    """
    n = len(lnl)
    peak = np.argmax(lnl, axis=0)
    order = np.argsort(peak, kind="stable")
    lnl = (lnl * weights)[:, order]
    ends = np.searchsorted(peak[order], np.arange(n + 1))
    below = np.array([lnl[b, : ends[b]].sum() for b in range(n)])
    above = np.array([lnl[a, ends[a] :].sum() for a in range(n)])
    between = np.full((n, n), -np.inf)
    for a in range(n):
        for b in range(a + 1, n):
            some = slice(ends[a], ends[b])
            between[a, b] = np.maximum(lnl[a, some], lnl[b, some]).sum()
    return below, between, above
