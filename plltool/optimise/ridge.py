"""A Newton step of the rates over sites in which the branch lengths follow.

Invariable sites, alpha and branch lengths explain the same data, and so do free rates: lnL has narrow ridges on which
no group of them gains alone. Rounds that optimise one after the other then stop far from the optimum.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import (
    MAX_BACKTRACKS,
    MAX_BRANCH_LENGTH,
    MAX_LOG_SCALE,
    MAX_RIDGE_PARAMETERS,
    MAX_RIDGE_STEP,
    MAX_RIDGE_STEPS,
    MIN_BRANCH_LENGTH,
    RIDGE_GAIN,
    RIDGE_STEP,
)
from plltool.errors import EngineError
from plltool.model.model import Model
from plltool.model.parameter_slopes import parameter_slopes
from plltool.model.rates import SITE_GROUPS
from plltool.model.vector import get_bounds, get_vector, set_vector
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.steps import at_bound


def site_mixture(model: Model) -> list[str]:
    """The free groups of what differs between or within sites; in mixtures of omega exchangeabilities do, too."""
    wanted = {"class_weights", "switching", *SITE_GROUPS, *(["rates"] if model.spec.is_mixture else [])}
    return [name for name in model.free_parameters if name in wanted]


class Ridge:
    """lnL as a function of the rates over sites of all parts, and of factors of the lengths, which follow the rates.

    How the logarithm of a length responds to a parameter is known from the change of its slope, as if other lengths
    did not change. The response need not be exact, because slopes along it are.

    Attributes
    ----------
    start : (n,) elements of `get_vector` of each part, then the logarithm of a factor of all lengths, or one for each
        part if parts have lengths of their own
    bounds : (n, 2) low, high
    """

    def __init__(self, likelihood: TreeLikelihood, groups: Collection[str]):
        self.likelihood = likelihood
        self._names = [[name for name in site_mixture(model) if name in groups] for model in likelihood.models]
        vectors = [get_vector(*part) for part in zip(likelihood.models, self._names, strict=True)]
        self._part = np.repeat(np.arange(len(vectors)), [len(vector) for vector in vectors])
        self._lengths = likelihood.tree.lengths.reshape(likelihood.tree.n_edges, -1).copy()
        n_factors = self._lengths.shape[1]
        self._factor = self._part if n_factors > 1 else np.zeros_like(self._part)  # whose lengths a parameter moves
        self._response = np.zeros((len(self._lengths), self.n_parameters))
        self.start = np.concatenate([*vectors, np.zeros(n_factors)])
        bounds = [bound for part in zip(likelihood.models, self._names, strict=True) for bound in get_bounds(*part)]
        self.bounds = np.array([*bounds, *[(-MAX_LOG_SCALE, MAX_LOG_SCALE)] * n_factors])

    @property
    def n_parameters(self) -> int:
        """The number of parameters of the models, without factors of lengths."""
        return len(self._part)

    def set(self, vector: FloatArray) -> None:
        """Set models and lengths."""
        n = self.n_parameters
        for number, (model, names) in enumerate(zip(self.likelihood.models, self._names, strict=True)):
            set_vector(model, vector[:n][self._part == number], names)
        change = self._response * (vector[:n] - self.start[:n])
        logarithms = np.stack([change[:, self._factor == f].sum(axis=1) for f in range(len(vector) - n)], axis=1)
        lengths = np.clip(self._lengths * np.exp(logarithms + vector[n:]), MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
        self.likelihood.tree.lengths[:] = lengths.reshape(self.likelihood.tree.lengths.shape)
        self.likelihood.model_changed()

    def slopes(self, vector: FloatArray) -> FloatArray:
        """d lnL / d each element of the vector."""
        self.set(vector)
        _, matrices, masses = self.likelihood.rate_matrix_gradient()
        parts = zip(self.likelihood.models, self._names, matrices, masses, strict=True)
        own = np.concatenate([parameter_slopes(*part) for part in parts])
        by_length = self._length_slopes()[..., 0]
        return np.append(own + (self._response * by_length[:, self._factor]).sum(axis=0), by_length.sum(axis=0))

    def let_lengths_follow(self) -> None:
        """Find the response of the lengths, by a step of each parameter."""
        self.set(self.start)
        here = self._length_slopes()
        free = (here[..., 1] < 0) & ~at_bound(self._lengths, here[..., 0])
        curvature = np.where(free, here[..., 1], -np.inf)
        response = np.zeros_like(self._response)
        for k, step in enumerate(self.steps()[: self.n_parameters]):
            self.set(self.start + step * (np.arange(len(self.start)) == k))
            change = self._length_slopes()[:, self._factor[k], 0] - here[:, self._factor[k], 0]
            response[:, k] = -change / step / curvature[:, self._factor[k]]
        self._response = np.clip(response, -MAX_LOG_SCALE, MAX_LOG_SCALE)

    def steps(self) -> FloatArray:
        """(n,) a step for differences in each element, away from the bound if one is near."""
        return np.where(self.start + RIDGE_STEP > self.bounds[:, 1], -RIDGE_STEP, RIDGE_STEP)

    def _length_slopes(self) -> FloatArray:
        """(n_edges, n_factors, 2) first and second derivatives of lnL in the logarithms of the lengths."""
        lengths = self.likelihood.tree.lengths.reshape(self._lengths.shape)
        slopes = self.likelihood.all_derivatives()[1].reshape(*lengths.shape, 2)
        first = slopes[..., 0] * lengths
        return np.stack([first, slopes[..., 1] * lengths**2 + first], axis=-1)


def climb_ridge(likelihood: TreeLikelihood, groups: Collection[str], lnl: float) -> float:
    """Take steps from branch lengths and a model that are nearly optimised; return lnL, which never falls.

    Parameters
    ----------
    groups : groups of free model parameters that may change; other than those of rates over sites stay
    lnl : lnL as it is

    Models with a single such parameter, or more than MAX_RIDGE_PARAMETERS, stay as they are.
    """
    n_parameters = Ridge(likelihood, groups).n_parameters
    for _ in range(MAX_RIDGE_STEPS if 1 < n_parameters <= MAX_RIDGE_PARAMETERS else 0):
        before, lnl = lnl, _step_up(likelihood, groups, lnl)
        if lnl - before < RIDGE_GAIN:
            break
    return lnl


def _step_up(likelihood: TreeLikelihood, groups: Collection[str], lnl: float) -> float:
    """One step, shortened until lnL rises; without one that does, everything stays. Returns lnL."""
    ridge, models = Ridge(likelihood, groups), [model.copy() for model in likelihood.models]
    lengths = likelihood.tree.lengths.copy()
    try:
        ridge.let_lengths_follow()
        step, promised = _newton_step(ridge, ridge.slopes(ridge.start))
        for _ in range(MAX_BACKTRACKS if promised > RIDGE_GAIN else 0):
            ridge.set(ridge.start + step)
            reached = likelihood.lnl()
            if reached > lnl:
                return reached
            step = step / 4
    except EngineError:  # some pattern cannot be represented
        pass
    for model, before in zip(likelihood.models, models, strict=True):
        model.assign(before)
    likelihood.tree.lengths[:] = lengths
    likelihood.model_changed()
    return lnl


def _newton_step(ridge: Ridge, slopes: FloatArray) -> tuple[FloatArray, float]:
    """The step (n,) to the maximum of the quadratic function with these slopes, within bounds, and what it promises.

    The Hessian is a difference of slopes. Elements whose bounds the step would pass end there, and the others go on.
    """
    start, (low, high), n = ridge.start, ridge.bounds.T, len(ridge.start)
    hessian = np.empty((n, n))
    for k, step in enumerate(ridge.steps()):
        hessian[k] = (ridge.slopes(start + step * (np.arange(n) == k)) - slopes) / step
    hessian = (hessian + hessian.T) / 2
    target = start.copy()
    free = ~(((start <= low) & (slopes <= 0)) | ((start >= high) & (slopes >= 0)))
    while free.any():
        target[free] = start[free] + _uphill(hessian, slopes, target - start, free)
        beyond = (target < low) | (target > high)
        target = np.clip(target, low, high)
        if not (beyond & free).any():
            break
        free &= ~beyond
    step = target - start
    return step, float(slopes @ step + step @ hessian @ step / 2)


def _uphill(hessian: FloatArray, slopes: FloatArray, step: FloatArray, free: BoolArray) -> FloatArray:
    """The Newton step of the free elements, given that of the others; uphill where the function is convex, too.

    It is damped (Levenberg 1944) until it is no longer than MAX_RIDGE_STEP.
    """
    values, vectors = np.linalg.eigh(-hessian[np.ix_(free, free)])
    along = vectors.T @ (slopes[free] + hessian[np.ix_(free, ~free)] @ step[~free])
    values = np.maximum(np.abs(values), np.finfo(float).tiny)
    while np.linalg.norm(along / values) > MAX_RIDGE_STEP:
        values = values + np.linalg.norm(along) / MAX_RIDGE_STEP / 8
    return np.asarray(vectors @ (along / values))
