"""Start values of scalers: far from their optimum, together with alpha, lnL may have other optima or flat valleys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import MAX_SCALER, MIN_SCALER, START_ALPHAS, START_SCALERS
from plltool.errors import EngineError
from plltool.model.model import SCALER, Model
from plltool.optimise.likelihood import TreeLikelihood


def choose_scalers(likelihood: TreeLikelihood, groups: Sequence[Sequence[str]], is_scaled: BoolArray) -> None:
    """Set free scalers, and alphas where they are free, to the best of a grid around their values.

    `groups` holds the other groups of each model that will be optimised, `is_scaled` whether its scaler is. The current
    branch lengths are used. lnL never falls.
    """
    if not is_scaled.any():
        return
    models = likelihood.models
    starts = [
        _starts(model, part) if scaled else [model]
        for model, part, scaled in zip(models, groups, is_scaled, strict=True)
    ]
    n_starts = max(map(len, starts))
    tried = [[part[min(k, len(part) - 1)] for part in starts] for k in range(n_starts)]
    lnls = _lnls(likelihood, tried)
    for model, part, values in zip(models, starts, lnls.T, strict=True):
        model.assign(part[min(int(np.argmax(values)), len(part) - 1)])
    likelihood.model_changed()


def _starts(model: Model, groups: Sequence[str]) -> list[Model]:
    """The model itself, and others with several times its scaler and, where it is free, other values of alpha."""
    alphas = (model.alpha, *START_ALPHAS) if "alpha" in groups else (model.alpha,)
    starts = []
    for factor in START_SCALERS:
        for alpha in alphas:
            start = model.copy()
            start.set_ratios(SCALER, np.clip([factor * model.scaler], MIN_SCALER, MAX_SCALER))
            if alpha != model.alpha:
                start.set_sites(replace(model.sites, alpha=alpha))
            starts.append(start)
    return starts


def _lnls(likelihood: TreeLikelihood, tried: Sequence[Sequence[Model]]) -> FloatArray:
    """lnL (n_tried, n_parts) under each of several models of all parts; -inf if some pattern cannot be represented."""
    try:
        return likelihood.likelihoods(tried)
    except EngineError:
        if len(tried) == 1:
            return np.full((1, len(tried[0])), -np.inf)
        return np.concatenate([_lnls(likelihood, [models]) for models in tried])
