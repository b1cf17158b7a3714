"""Information criteria: the fit of a model, less a price for its parameters."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray


def information_score(criterion: str, lnl: float, n_parameters: int, n_sites: int) -> float:
    """AIC (Akaike 1974), AICc (Hurvich & Tsai 1989) or BIC (Schwarz 1978); lower is better.

    AICc is infinite unless there are at least two sites more than parameters.
    """
    if criterion == "BIC":
        return n_parameters * math.log(n_sites) - 2 * lnl
    aic = 2 * n_parameters - 2 * lnl
    if criterion == "AIC":
        return aic
    left = n_sites - n_parameters - 1
    return aic + 2 * n_parameters * (n_parameters + 1) / left if left > 0 else math.inf


def score_weights(scores: npt.ArrayLike) -> FloatArray:
    """The weight of each model (n,), summing to 1, by its difference to the best score (Burnham & Anderson 2002).

    NaN where no score is finite.
    """
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).any():
        return np.full(len(values), np.nan)
    relative = np.exp((values.min() - values) / 2)
    return np.asarray(relative / relative.sum())
