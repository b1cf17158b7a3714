"""Rates that an optimisation has left near 0, although lnL grows with them.

Rates, and weights of the rays of Lie Markov models, are optimised as logarithms. Where one of them is almost 0, the
slope of lnL in its logarithm is almost 0, too, whatever the slope in the rate itself is; so it stays there.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import POLISH_GAIN, REVIVAL_RAYS, REVIVAL_STEPS
from plltool.model.model import Model
from plltool.model.parameter_slopes import directed_slopes
from plltool.model.vector import get_bounds
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.site_rates import possible_likelihoods

RATES = "rates"


def revive_rates(likelihood: TreeLikelihood, groups: Collection[str], lnl: float) -> float:
    """Add the rays to the rates of directed models with which lnL gains most; return lnL, which never falls from `lnl`.

    Each part gets one ray at most. `groups` are those of parameters that are optimised. Rates and lengths are to be
    optimised afterwards.
    """
    models = likelihood.models
    is_free = [RATES in groups and RATES in model.free_parameters and model.spec.is_directed for model in models]
    if not any(is_free):
        return lnl
    _, matrices, masses = likelihood.rate_matrix_gradient(np.array(is_free))
    starts = [[model.copy()] for model in models]
    for number in np.flatnonzero(is_free):
        starts[number] += _with_more_of_rays(models[number], matrices[number], masses[number])
    n_starts = max(map(len, starts))
    if n_starts == 1:
        return lnl
    tried = [[own[min(k, len(own) - 1)] for own in starts] for k in range(n_starts)]
    lnls = possible_likelihoods(likelihood, tried)
    gains = lnls.max(axis=0) - lnls[0]
    for model, own, best, gain in zip(models, starts, lnls.argmax(axis=0).tolist(), gains, strict=True):
        if gain >= POLISH_GAIN:
            model.assign(own[best])
    likelihood.model_changed()
    return likelihood.lnl()


def _with_more_of_rays(model: Model, matrices: FloatArray, masses: FloatArray) -> list[Model]:
    """The model with REVIVAL_STEPS of each of the rays in which lnL is steepest, if it promises POLISH_GAIN at all."""
    design = model.spec.named.rates
    rays = design.directions
    rates = model.exchangeabilities
    slopes = (directed_slopes(model, matrices, masses) * rates.mean() / rates) @ rays
    low, high = np.exp(get_bounds(model, [RATES])).T
    changed = []
    for ray in np.argsort(-slopes, kind="stable")[:REVIVAL_RAYS].tolist():
        if slopes[ray] * REVIVAL_STEPS[0] < POLISH_GAIN:
            break
        for step in REVIVAL_STEPS:
            parameters = design.parameters_of(rates / rates.mean() + step * rays[:, ray])
            changed.append(model.copy())
            changed[-1].set_ratios(RATES, np.clip(parameters[design.is_free], low, high))
    return changed
