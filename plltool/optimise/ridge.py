"""Optimises a model together with the branch lengths, which follow its parameters.

Invariable sites, alpha and branch lengths explain the same data, and so do free rates, or rates of rare changes: lnL
has narrow ridges on which no group of them gains alone. Rounds that optimise one after the other stop far from the
optimum there, and so does an optimisation of the model that has not met the curvature of lnL along them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import (
    MAX_BRANCH_LENGTH,
    MAX_LOG_SCALE,
    MIN_BRANCH_LENGTH,
    RIDGE_STEP,
)
from plltool.errors import EngineError
from plltool.model.model import CATEGORIES, SCALER, Model
from plltool.model.parameter_slopes import parameter_slopes
from plltool.model.rates import SITE_GROUPS
from plltool.model.vector import get_bounds, get_vector, set_vector
from plltool.optimise.bounded import Curvatures, minimise
from plltool.optimise.density import Coordinates
from plltool.optimise.likelihood import Fit, TreeLikelihood
from plltool.optimise.steps import at_bound

RIDGE_GAIN, MAX_RIDGE_STEPS = 0.0005, 30  # lnL that a step gains or promises if another follows; typical 2 to 4
MAX_RIDGE_STEP = 1.0  # in parameters' logarithms, as a whole
FREE_OPTIONS = {"maxfun": 400, "ftol": 1e-13}
MAX_RIDGE_PARAMETERS = 32  # that change together with the branch lengths; each takes three launches


def site_groups(model: Model, groups: Collection[str]) -> list[str]:
    """The free groups among `groups` of what differs between sites; in mixtures of omega exchangeabilities do, too."""
    wanted = {"class_weights", "switching", *SITE_GROUPS, *(["rates"] if model.spec.is_mixture else [])}
    return [name for name in model.free_parameters if name in wanted and name in groups and name != CATEGORIES]


def has_ridges(models: Sequence[Model], groups: Collection[str]) -> bool:
    """Whether there are at least two parameters that differ between sites, which may replace each other.

    One is enough without constant sites, which would tell it from the lengths.
    """
    n_parameters = [len(get_vector(model, site_groups(model, groups))) for model in models]
    unseen = [n for n, model in zip(n_parameters, models, strict=True) if model.spec.ascertainment is not None]
    return sum(n_parameters) + sum(n > 0 for n in unseen) > 1


def _joint_groups(models: Sequence[Model], groups: Collection[str]) -> list[list[str]]:
    """The free groups of each model among `groups`, or its `site_groups` if there are too many parameters."""
    names = [[name for name in model.free_parameters if name in groups and name != CATEGORIES] for model in models]
    if sum(len(get_vector(*part)) for part in zip(models, names, strict=True)) <= MAX_RIDGE_PARAMETERS:
        return names
    return [site_groups(model, groups) for model in models]


class Ridge:
    """lnL as a function of the parameters of all parts, and of factors of the lengths, which follow the parameters.

    How the logarithm of a length responds to a parameter is known from the change of its slope, as if other lengths
    did not change. The response need not be exact, because slopes along it are.

    Attributes
    ----------
    start : (n,) elements of `get_vector` of each part, then the logarithm of a factor of all lengths, or one for each
        part if parts have lengths of their own
    bounds : (n, 2) low, high; a factor stays as it is where all parts have scalers, which can do the same
    """

    def __init__(self, likelihood: TreeLikelihood, groups: Collection[str]):
        self.likelihood = likelihood
        self._names = _joint_groups(likelihood.models, groups)
        vectors = [get_vector(*part) for part in zip(likelihood.models, self._names, strict=True)]
        self._part = np.repeat(np.arange(len(vectors)), [len(vector) for vector in vectors])
        self._lengths = likelihood.tree.lengths.reshape(likelihood.tree.n_edges, -1).copy()
        n_factors = self._lengths.shape[1]
        self._factor = self._part if n_factors > 1 else np.zeros_like(self._part)  # whose lengths a parameter moves
        self._response = np.zeros((len(self._lengths), self.n_parameters))
        self.start = np.concatenate([*vectors, np.zeros(n_factors)])
        bounds = [bound for part in zip(likelihood.models, self._names, strict=True) for bound in get_bounds(*part)]
        most = 0.0 if all(SCALER in own for own in self._names) else MAX_LOG_SCALE
        self.bounds = np.array([*bounds, *[(-most, most)] * n_factors])

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

    def slopes(self, vector: FloatArray) -> tuple[float, FloatArray]:
        """lnL at the vector, and its slope in each element."""
        self.set(vector)
        lnls, matrices, masses = self.likelihood.rate_matrix_gradient()
        parts = zip(self.likelihood.models, self._names, matrices, masses, strict=True)
        own = np.concatenate([parameter_slopes(*part) for part in parts])
        by_length = self._length_slopes()[..., 0]
        own += (self._response * by_length[:, self._factor]).sum(axis=0)
        return float(lnls.sum()), np.append(own, by_length.sum(axis=0))

    def evaluate(self, vector: FloatArray, _wanted: BoolArray) -> tuple[FloatArray, list[FloatArray]]:
        """-lnL and its slopes, as `minimise` asks for them; infinite where some pattern cannot be represented."""
        try:
            lnl, slopes = self.slopes(vector)
        except EngineError:
            return np.array([np.inf]), [np.zeros_like(vector)]
        return np.array([-lnl]), [-slopes]

    def curvature(self) -> FloatArray:
        """(n, n) the Hessian of -lnL at the start, by differences of slopes, made positive definite.

        It is damped (Levenberg 1944) until Newton's step is no longer than MAX_RIDGE_STEP.
        """
        slopes = self.slopes(self.start)[1]
        rows = [
            (slopes - self.slopes(self.start + step * (np.arange(len(slopes)) == k))[1]) / step
            for k, step in enumerate(self.steps())
        ]
        values, vectors = np.linalg.eigh((np.array(rows) + np.transpose(rows)) / 2)
        along = vectors.T @ slopes
        values = np.maximum(np.abs(values), np.finfo(float).tiny)
        while np.linalg.norm(along / values) > MAX_RIDGE_STEP:
            values = values + np.linalg.norm(along) / MAX_RIDGE_STEP / 8
        return np.asarray(vectors * values @ vectors.T)

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


def climb_freely(likelihood: TreeLikelihood, lnl: float) -> float:
    """Optimise all branch lengths and parameters by scipy's L-BFGS-B; return lnL, which never falls.

    Free rates make lnL rugged. Where Newton's steps end, its longer ones often still find a way up.
    """
    from scipy.optimize import minimize

    coordinates = Coordinates(likelihood, lengths=True, model=True)
    before = likelihood.fit()

    def loss(vector: FloatArray) -> tuple[float, FloatArray]:
        coordinates.set(vector)
        try:
            value, slopes = coordinates.slopes()
        except EngineError:  # some pattern cannot be represented
            return np.inf, np.zeros_like(vector)
        return -value, -slopes

    settings = {"method": "L-BFGS-B", "bounds": coordinates.bounds, "options": FREE_OPTIONS}
    coordinates.set(minimize(loss, coordinates.get(), jac=True, **settings).x)
    return _keep_better(likelihood, before, lnl)


def climb_ridge(likelihood: TreeLikelihood, groups: Collection[str], lnl: float) -> float:
    """Optimise branch lengths and a model together that are nearly optimised; return lnL, which never falls.

    Parameters
    ----------
    groups : groups of free model parameters that may change
    lnl : lnL as it is

    Models with more than MAX_RIDGE_PARAMETERS parameters stay as they are.
    """
    ridge, before = Ridge(likelihood, groups), likelihood.fit()
    if not 0 < ridge.n_parameters <= MAX_RIDGE_PARAMETERS:
        return lnl
    try:
        ridge.let_lengths_follow()
        curvatures = Curvatures(1)
        curvatures.matrices[0] = ridge.curvature()
        everything = [np.arange(len(ridge.start))]
        best = minimise(ridge.evaluate, ridge.start, ridge.bounds, everything, RIDGE_GAIN, MAX_RIDGE_STEPS, curvatures)
        ridge.set(best)
    except EngineError:  # some pattern cannot be represented
        likelihood.restore(before)
        return lnl
    return _keep_better(likelihood, before, lnl)


def _keep_better(likelihood: TreeLikelihood, before: Fit, lnl: float) -> float:
    """Restore what was before, with lnL `lnl`, unless lnL is higher now; return lnL."""
    try:
        reached = likelihood.lnl()
    except EngineError:  # some pattern cannot be represented
        reached = -np.inf
    if reached > lnl:
        return reached
    likelihood.restore(before)
    return lnl
