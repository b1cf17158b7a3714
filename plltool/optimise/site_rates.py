"""Start values of rates over sites: with invariable sites or free rates lnL has more than one optimum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray
from plltool.errors import EngineError
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood


def choose_site_rates(likelihood: TreeLikelihood, names: Sequence[Sequence[str]]) -> None:
    """Set the rates over sites to the best start values, in each model in which they have never been optimised.

    The current branch lengths are used, and all values are tried at once. `names` holds the groups of each model that
    will be optimised. lnL never falls.
    """
    models = likelihood.models
    starts = [_starts(model, part) for model, part in zip(models, names, strict=True)]
    n_starts = max(map(len, starts))
    if n_starts == 1:
        return
    tried = [[part[min(k, len(part) - 1)] for part in starts] for k in range(n_starts)]
    for model, part, lnls in zip(models, starts, possible_likelihoods(likelihood, tried).T, strict=True):
        model.assign(part[min(int(np.argmax(lnls)), len(part) - 1)])
    likelihood.model_changed()


def possible_likelihoods(likelihood: TreeLikelihood, tried: Sequence[Sequence[Model]]) -> FloatArray:
    """`TreeLikelihood.likelihoods`, (n_tried, n_parts); -inf where some pattern cannot be represented."""
    try:
        return likelihood.likelihoods(tried)
    except EngineError:
        if len(tried) == 1:
            return np.full((1, len(tried[0])), -np.inf)
        return np.concatenate([possible_likelihoods(likelihood, [models]) for models in tried])


def _starts(model: Model, names: Sequence[str]) -> list[Model]:
    """The model itself, and others with the start values of its rates over sites."""
    starts = [model]
    for sites in model.site_starts(names):
        starts.append(model.copy())
        starts[-1].set_sites(sites)
    return starts
