"""Optimise model parameters by a projected quasi-Newton method; one pass over the tree gives the gradient."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import (
    DIFFERENCE_STEP,
    MAX_BRANCH_LENGTH,
    MAX_LOG_SCALE,
    MAX_MODEL_ITERATIONS,
    MIN_BRANCH_LENGTH,
    MODEL_EPSILON,
)
from plltool.errors import EngineError
from plltool.model.model import CATEGORIES, GROUPS, SCALER, Model
from plltool.model.substitution import exchangeability_matrix, rate_matrix_slopes
from plltool.model.vector import get_bounds, get_vector, set_vector
from plltool.optimise.bounded import minimise
from plltool.optimise.categories import choose_categories
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.site_rates import choose_site_rates


class Objective:
    """-lnL as a function of one vector: the parameter vectors of all parts, one after another.

    With `scale` the vector ends with the logarithm of a factor of all branch lengths, or one for each part if parts
    have lengths of their own. Without it, parameters that change the overall rate of evolution would converge slowly,
    because they and the lengths would have to change in turn.

    If all scalers are free, their mean over sites stays the same, because the data determine only their ratios.
    """

    def __init__(self, likelihood: TreeLikelihood, names: Iterable[str] | None, scale: bool):
        self.likelihood = likelihood
        models = likelihood.models
        wanted = set(GROUPS if names is None else names) - {CATEGORIES}
        self.names = [[name for name in model.free_parameters if name in wanted] for model in models]
        parts = list(zip(models, self.names, strict=True))
        self.bounds = [bound for part in parts for bound in get_bounds(*part)]
        choose_site_rates(likelihood, self.names)
        vectors = [get_vector(*part) for part in parts]
        self.start = np.concatenate(vectors)
        self.shares = likelihood.part_sites / likelihood.part_sites.sum()
        self.free_scalers = all(SCALER in part for part in self.names)
        self.mean_scaler = self._weigh_scalers() if self.free_scalers else 1.0
        self.lengths = self.best_lengths = likelihood.tree.lengths.copy()
        self.n_factors = 0
        if scale and len(self.start):
            self.n_factors = 1 if self.lengths.ndim == 1 else self.lengths.shape[1]
            self.start = np.append(self.start, np.zeros(self.n_factors))
            self.bounds += [(-MAX_LOG_SCALE, MAX_LOG_SCALE)] * self.n_factors
        self.best_lnl = likelihood.lnl()
        self.best_models = [model.copy() for model in models] if len(self.start) else []

    def _weigh_scalers(self) -> float:
        """The mean of the scalers over sites."""
        return float(self.shares @ [model.scaler for model in self.likelihood.models])

    def set(self, vector: FloatArray) -> None:
        at = 0
        for model, part in zip(self.likelihood.models, self.names, strict=True):
            size = len(get_vector(model, part))
            set_vector(model, vector[at : at + size], part)
            at += size
        if self.free_scalers:
            factor = self.mean_scaler / self._weigh_scalers()
            for model in self.likelihood.models:
                model.set_scaler(factor * model.scaler)
        if self.n_factors:
            lengths = self.lengths * np.exp(vector[at:])
            self.likelihood.tree.lengths[:] = np.clip(lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
        self.likelihood.model_changed()

    def value_and_gradient(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """-lnL and its gradient: one pass over the tree gives slopes in the components; the chain rule does the rest.

        If some pattern cannot be represented, the value is worse than all before, so that the line search turns back.
        """
        self.set(vector)
        models = self.likelihood.models
        try:
            lnl, matrices, masses = self.likelihood.rate_matrix_gradient()
        except EngineError:
            return 2 * abs(self.best_lnl) + 1.0, np.zeros(len(vector))
        if lnl > self.best_lnl:
            self.best_lnl = lnl
            self.best_models = [model.copy() for model in models]
            self.best_lengths = self.likelihood.tree.lengths.copy()
        slopes = [parameter_slopes(*part) for part in zip(models, self.names, matrices, masses, strict=True)]
        if self.free_scalers:  # scaler p is mean * exp(x_p) / sum_q share_q exp(x_q), and the last of its part
            total = sum(part[-1] for part in slopes)
            for part, share, model in zip(slopes, self.shares, models, strict=True):
                part[-1] -= share * model.scaler / self.mean_scaler * total
        if self.n_factors:
            factors = np.array([scale_slope(*part) for part in zip(models, matrices, strict=True)])
            slopes.append(factors if self.n_factors == len(factors) else factors.sum(keepdims=True))
        return -lnl, -np.concatenate(slopes)

    def keep_best(self) -> float:
        """Set the models, and with `scale` the tree, to the best values met; return their lnL."""
        for model, best in zip(self.likelihood.models, self.best_models, strict=True):
            model.assign(best)
        self.likelihood.tree.lengths[:] = self.best_lengths
        self.likelihood.model_changed()
        return self.best_lnl


def parameter_slopes(model: Model, names: Sequence[str], matrices: FloatArray, masses: FloatArray) -> FloatArray:
    """d lnL / d every element of ``get_vector(model, names)``, by the chain rule through the components.

    `matrices` (C, S, S) and `masses` (C, S) are those of `TreeLikelihood.rate_matrix_gradient`. Slopes of components in
    rates over sites and in weights of classes are central differences of closed forms, exact to about 1e-9, or
    one-sided differences at a bound. Others are closed forms themselves.
    """
    here = model.components()
    by_rates = here.left.swapaxes(1, 2) @ matrices @ here.right.swapaxes(1, 2)  # d lnL / d (rate * Q)
    slopes = [np.empty(0)]
    for name in names:
        if name == SCALER:
            slopes.append(np.array([scale_slope(model, matrices)]))
        elif name in ("rates", "frequencies"):
            slopes.append(_process_slopes(model, name, by_rates, masses))
        else:
            slopes.append(_difference_slopes(model, name, by_rates, masses))
    return np.concatenate(slopes)


def _process_slopes(model: Model, name: str, by_rates: FloatArray, masses: FloatArray) -> FloatArray:
    """Slopes in exchangeabilities or frequencies, which all components share; arguments as in `_difference_slopes`."""
    here = model.components()
    exchangeabilities = exchangeability_matrix(model.exchangeabilities)
    by_pair, by_frequency = rate_matrix_slopes(
        exchangeabilities, here.frequencies, here.rates[:, None, None] * by_rates
    )
    if name == "rates":
        classes = np.array(model.spec.rate_classes)
        return np.delete(np.bincount(classes, by_pair), classes[-1])
    frequencies = model.frequencies
    by_share = frequencies * by_frequency.sum(axis=0) + masses.sum(axis=0)
    return (by_share - frequencies * by_share.sum())[:-1]


def _difference_slopes(model: Model, name: str, by_rates: FloatArray, masses: FloatArray) -> FloatArray:
    """Slopes in a group of parameters; `by_rates` (C, S, S) and `masses` are the slopes in `Model.rate_matrices`."""
    slopes = []
    vector = get_vector(model, [name])
    for parameter, (low, high) in enumerate(get_bounds(model, [name])):
        ends = min(vector[parameter] + DIFFERENCE_STEP, high), max(vector[parameter] - DIFFERENCE_STEP, low)
        (up, up_masses), (down, down_masses) = (_matrices_at(model, name, vector, parameter, end) for end in ends)
        change = np.sum(by_rates * (up - down)) + np.sum(masses * np.log(up_masses / down_masses))
        slopes.append(change / (ends[0] - ends[1]))
    return np.array(slopes)


def scale_slope(model: Model, matrices: FloatArray) -> float:
    """d lnL / d log of a factor of a part's branch lengths, bounds ignored; it is the same as a factor of all rates.

    `matrices` (C, S, S) are those of `TreeLikelihood.rate_matrix_gradient`; in the eigenbasis Q is diagonal.
    """
    components = model.components()
    return float(np.einsum("ckk,ck->", matrices, components.eigenvalues * components.rates[:, None]))


def _matrices_at(
    model: Model, name: str, vector: FloatArray, parameter: int, value: float
) -> tuple[FloatArray, FloatArray]:
    """`Model.rate_matrices` with one element of a group's `vector` changed."""
    vector, changed = vector.copy(), model.copy()
    vector[parameter] = value
    set_vector(changed, vector, [name])
    return changed.rate_matrices()


def optimise_model(
    likelihood: TreeLikelihood,
    names: Collection[str] | None = None,
    epsilon: float = MODEL_EPSILON,
    scale: bool = False,
) -> float:
    """Optimise free model parameters in place, and with `scale` a factor of the lengths; return lnL, which never falls.

    Rate categories of sites (+PSR) are chosen first; this may also change all lengths by a common factor.

    Parameters
    ----------
    names : groups among `plltool.model.model.GROUPS`; None for all free groups
    epsilon : stop when an iteration gains less lnL
    scale : whether all branch lengths may change by a common factor, within their bounds
    """
    if names is None or CATEGORIES in names:
        choose_categories(likelihood)
    objective = Objective(likelihood, names, scale)
    if not len(objective.start):
        return objective.best_lnl
    bounds = np.array(objective.bounds)
    minimise(objective.value_and_gradient, objective.start, bounds, epsilon, MAX_MODEL_ITERATIONS)
    return objective.keep_best()
