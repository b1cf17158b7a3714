"""Model parameters by L-BFGS-B on central differences of the likelihood (Byrd et al. 1995)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from plltool.constants import DIFFERENCE_STEP, MAX_MODEL_ITERATIONS, MODEL_EPSILON
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.topology import FloatArray


class _Objective:
    """-lnL as a function of every part's parameter vector, the parts joined one after another."""

    def __init__(self, likelihood: TreeLikelihood, names: Iterable[str] | None):
        self.likelihood = likelihood
        models = likelihood.models
        self.names = [[n for n in model.free_parameters if names is None or n in set(names)] for model in models]
        self.bounds = [bound for model, part in zip(models, self.names, strict=True) for bound in model.bounds(part)]
        self.start = self.get()

    def get(self) -> FloatArray:
        vectors = [m.get_vector(part) for m, part in zip(self.likelihood.models, self.names, strict=True)]
        return np.concatenate(vectors)

    def set(self, vector: FloatArray) -> None:
        at = 0
        for model, part in zip(self.likelihood.models, self.names, strict=True):
            size = len(model.get_vector(part))
            model.set_vector(vector[at : at + size], part)
            at += size
        self.likelihood.model_changed()

    def __call__(self, vector: FloatArray) -> float:
        self.set(vector)
        return -self.likelihood.lnl()

    def gradient(self, vector: FloatArray) -> FloatArray:
        """Central differences; one-sided where a bound is in the way."""
        low, high = np.array(self.bounds).T
        gradient = np.empty(len(vector))
        for k in range(len(vector)):
            above, below = vector.copy(), vector.copy()
            above[k] = min(vector[k] + DIFFERENCE_STEP, high[k])
            below[k] = max(vector[k] - DIFFERENCE_STEP, low[k])
            gradient[k] = (self(above) - self(below)) / (above[k] - below[k])
        return gradient


def optimise_model(
    likelihood: TreeLikelihood, names: Iterable[str] | None = None, epsilon: float = MODEL_EPSILON
) -> float:
    """Optimise free model parameters in place at fixed branch lengths; returns lnL, which never falls.

    Parameters
    ----------
    names : groups among "rates", "alpha", "frequencies"; None for all that are free
    epsilon : stop when an iteration gains less, in lnL units
    """
    from scipy.optimize import minimize

    objective = _Objective(likelihood, names)
    start_lnl = likelihood.lnl()
    if not len(objective.start):
        return start_lnl
    found = minimize(
        objective,
        objective.start,
        jac=objective.gradient,
        method="L-BFGS-B",
        bounds=objective.bounds,
        options={"ftol": epsilon / max(1.0, abs(start_lnl)), "maxiter": MAX_MODEL_ITERATIONS},
    )
    lnl = -objective(found.x)
    if lnl >= start_lnl:
        return lnl
    return -objective(objective.start)
