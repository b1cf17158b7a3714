"""The free parameters of a model as one vector, which is what an optimiser changes, and the slopes of lnL in them.

The vector holds logarithms of ratios, group by group: exchangeabilities of the classes relative to that of the last
pair, in the order in which the classes occur; frequencies and class weights relative to the last one; the rates of
switching; the values of `SiteRates.ratios`; and the scaler.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from plltool import constants
from plltool.arrays import ArrayLike, FloatArray
from plltool.errors import InputError, show_name
from plltool.model.components import on_share, partners
from plltool.model.model import CATEGORIES, GROUPS, SCALER, Model
from plltool.model.rates import SITE_BOUNDS, SITE_GROUPS
from plltool.model.substitution import exchangeability_matrix, rate_matrix_slopes, rate_slopes

RATIO_BOUNDS = {
    "rates": (constants.MIN_EXCHANGEABILITY, constants.MAX_EXCHANGEABILITY),  # unless their design has other limits
    "frequencies": (constants.MIN_FREQUENCY, 1.0 / constants.MIN_FREQUENCY),
    "class_weights": (constants.MIN_FREE_RATIO, constants.MAX_FREE_RATIO),
    "switching": (constants.MIN_SWITCH_RATE, constants.MAX_SWITCH_RATE),
    **SITE_BOUNDS,
    SCALER: (constants.MIN_SCALER, constants.MAX_SCALER),
}


def get_vector(model: Model, names: Iterable[str] | None = None) -> FloatArray:
    """The free parameters in log space (n,), by groups as in ``model.free_parameters``; only those in `names`."""
    return np.log(np.concatenate([np.empty(0), *map(model.ratios, _free_groups(model, names))]))


def get_bounds(model: Model, names: Iterable[str] | None = None) -> list[tuple[float, float]]:
    """(low, high) for each element of `get_vector`; arguments as there."""
    limits = [np.log(ratio_limits(model, group)).tolist() for group in _free_groups(model, names)]
    return [(low, high) for rows in limits for low, high in rows]


def set_vector(model: Model, vector: ArrayLike, names: Iterable[str] | None = None) -> None:
    """Set the free parameters of a model from `get_vector` with the same `names`; elements are moved within bounds.

    `get_vector` returns the elements again up to rounding; to undo exactly, keep a copy of the model.
    """
    values = np.asarray(vector, dtype=np.float64)
    groups = _free_groups(model, names)
    sizes = [len(model.ratios(group)) for group in groups]
    if values.shape != (sum(sizes),) or not np.isfinite(values).all():
        raise ValueError(f"expected {sum(sizes)} finite values for {groups}, found {values}")
    start = 0
    for group, size in zip(groups, sizes, strict=True):
        low, high = ratio_limits(model, group).T
        part = np.clip(values[start : start + size], np.log(low), np.log(high))
        model.set_ratios(group, np.clip(np.exp(part), low, high))  # exp(log(high)) may exceed high
        start += size


def ratio_limits(model: Model, group: str) -> FloatArray:
    """(n, 2) the bounds of each of ``model.ratios(group)``."""
    design = model.spec.named.rates
    if group == "rates" and design.limits is not None:
        return design.limits[design.is_free]
    return np.tile(RATIO_BOUNDS[group], (len(model.ratios(group)), 1))


def _free_groups(model: Model, names: Iterable[str] | None) -> tuple[str, ...]:
    """The free groups among `names` that have numbers, in the order of GROUPS."""
    wanted = GROUPS if names is None else tuple(names)
    unknown = [name for name in wanted if name not in GROUPS]
    if unknown:
        raise ValueError(f"expected parameter groups {GROUPS}, found {unknown}")
    return tuple(group for group in model.free_parameters if group in wanted and group != CATEGORIES)


DIFFERENCE_STEP = 1e-5  # in a parameter's logarithm, for the slopes of rate matrices and category rates


def parameter_slopes(model: Model, names: Sequence[str], matrices: FloatArray, masses: FloatArray) -> FloatArray:
    """d lnL / d every element of ``get_vector(model, names)``, by the chain rule through the components.

    `matrices` (C, S, S) and `masses` (C, S) are those of `TreeLikelihood.rate_matrix_gradient`. Slopes of components in
    rates over sites and in the groups of mixtures are central differences of closed forms, exact to about 1e-9, or
    one-sided differences at a bound. Others are closed forms themselves.
    """
    by_rates = _slopes_in_matrices(model, matrices)
    shared: tuple[str, ...] = ()  # the groups of parameters that change all components in the same way
    if not model.spec.is_mixture:
        shared = ("rates",) if model.spec.profiles is not None else ("rates", "frequencies")
    slopes = {name: np.array([scale_slope(model, matrices)]) for name in names if name == SCALER}
    if any(name in shared for name in names):
        slopes |= _process_slopes(model, by_rates, masses)
    for name in names:
        if name not in shared and name != SCALER:
            slopes[name] = _difference_slopes(model, name, by_rates, masses)
    return np.concatenate([np.empty(0), *(slopes[name] for name in names)])


def expected_curvature(
    model: Model, names: Sequence[str], scaled: bool, matrices: FloatArray, masses: FloatArray
) -> FloatArray:
    """The curvature of -lnL in the elements of ``get_vector(model, names)``, were all that happens on the tree seen.

    It is a sum over the elements Q_ij of the matrices of components, and over their masses at the root: how often the
    element was used, times the product of the slopes of its logarithm. Given the data, Q_ij d lnL / d Q_ij changes are
    expected (Fisher's identity), and without them, in the time that was spent in i, Q_ij d lnL / d Q_ii. The larger
    number counts: so no step along a slope, which is the difference of both, is long. What is not seen makes the
    curvature smaller. If the part is `scaled`, the last element is a factor of all rates. `matrices` and `masses` are
    as for `parameter_slopes`.
    """
    slopes, (rates, shares) = _slopes_in_matrices(model, matrices), model.rate_matrices()
    changes = rates * np.maximum(slopes, np.diagonal(slopes, axis1=1, axis2=2)[:, :, None])
    uses, here = np.append(changes, masses), np.append(rates, shares)
    used = (uses > 0) & (here > 0)
    vector, columns = get_vector(model, names), []
    for step in DIFFERENCE_STEP * np.eye(len(vector)):
        moved = model.copy()
        set_vector(moved, vector - step, names)  # a few are at their upper bounds, fewer at the lower ones
        there = np.concatenate([own.ravel() for own in moved.rate_matrices()])
        columns.append((1 - there[used] / here[used]) / DIFFERENCE_STEP)
    columns += [(np.arange(len(uses)) < changes.size)[used].astype(float)] * scaled
    return np.einsum("ki,i,li->kl", columns, uses[used], columns)


def _slopes_in_matrices(model: Model, matrices: FloatArray) -> FloatArray:
    """(C, S, S) d lnL / d (rate * Q) of each component, from slopes in the eigenbasis."""
    here = model.components()
    return np.asarray(here.left.swapaxes(1, 2) @ matrices @ here.right.swapaxes(1, 2))


def _process_slopes(model: Model, by_rates: FloatArray, masses: FloatArray) -> dict[str, FloatArray]:
    """Slopes in the groups that all components share, by name; arguments as in `_difference_slopes`."""
    design, parameters = model.spec.named.rates, model.spec.named.rates.with_reference(model.ratios("rates"))
    rates = model.mixture()[2]
    by_matrices = rates[:, None, None] * by_rates
    if model.switching is not None:
        n_states = len(model.spec.symbols)
        on = rates / on_share(model.switching)
        by_matrices = on[:, None, None] * by_rates[:, :n_states, :n_states]  # those that are on come first
        masses = masses[:, :n_states] + masses[:, n_states:]
    if model.spec.is_directed:
        by_log = rate_slopes(model.exchangeabilities, by_matrices.sum(axis=0), masses.sum(axis=0))
        return {"rates": design.free_slopes(by_log, parameters)}
    exchangeabilities = exchangeability_matrix(model.exchangeabilities)
    by_pair, by_frequency = rate_matrix_slopes(exchangeabilities, model.mixture()[1], by_matrices)
    pi = model.frequencies
    by_share = pi * by_frequency.sum(axis=0) + masses.sum(axis=0)
    return {"rates": design.free_slopes(by_pair, parameters), "frequencies": (by_share - pi * by_share.sum())[:-1]}


def _difference_slopes(model: Model, name: str, by_rates: FloatArray, masses: FloatArray) -> FloatArray:
    """Slopes in a group of parameters; `by_rates` (C, S, S) are slopes in the matrices of `Model.rate_matrices`.

    `masses` (C, S) are slopes in the logarithms of its masses. A share of invariable sites that is almost 0 changes by
    many times its value in a step, so their logarithms would not do.
    """
    values_at: Callable[[Model], tuple[FloatArray, FloatArray]] = Model.rate_matrices
    if name in SITE_GROUPS and model.switching is None:  # matrices only differ in their rates
        by_rates = np.einsum("cij,cij->c", by_rates, model.matrices_at_rate_one())
        values_at = _rates_at
    slopes = []
    by_masses = masses / model.components().masses()
    vector = get_vector(model, [name])
    for parameter, (low, high) in enumerate(get_bounds(model, [name])):
        ends = min(vector[parameter] + DIFFERENCE_STEP, high), max(vector[parameter] - DIFFERENCE_STEP, low)
        values = []
        for end in ends:
            changed, moved = model.copy(), vector.copy()
            moved[parameter] = end
            changed.set_ratios(name, np.exp(moved))
            values.append(values_at(changed))
        up, down = values
        change = np.sum(by_rates * (up[0] - down[0])) + np.sum(by_masses * (up[1] - down[1]))
        slopes.append(change / (ends[0] - ends[1]))
    return np.array(slopes)


def scale_slope(model: Model, matrices: FloatArray) -> float:
    """d lnL / d log of a factor of a part's branch lengths, or of all rates, bounds ignored.

    `matrices` (C, S, S): see `TreeLikelihood.rate_matrix_gradient`; Q is diagonal there, but for complex eigenvalues.
    """
    components = model.components()
    slope = np.einsum("ckk,ck->", matrices, components.eigenvalues * components.rates[:, None])
    if components.rotations is not None:
        places = np.arange(components.n_states)
        beside = matrices[:, places, partners(components.n_states)]
        slope += np.sum(beside * components.rotations * components.rates[:, None])
    return float(slope)


def _rates_at(model: Model) -> tuple[FloatArray, FloatArray]:
    """The rate of each component (C,), and weights times frequencies (C, S)."""
    _, frequencies, rates, weights = model.mixture()
    return rates, weights[:, None] * frequencies


def _value(name: str, kind: str, what: str) -> Any:
    """A property of `Parameters`: a value of the model, of a type `kind`, which can be set."""

    def get(parameters: Parameters) -> Any:
        return getattr(parameters._the_model(), name)

    def set_value(parameters: Parameters, value: Any) -> None:
        getattr(parameters._the_model(), f"set_{name}")(value)
        parameters._model_changed()

    get.__annotations__["return"] = kind
    return property(get, set_value, doc=what)


class Parameters(ABC):
    """Read and set the parameters of one model; subclasses say which model, and what a change makes stale.

    Once a subclass has set `_is_complete`, only attributes that it has can be set.
    """

    _is_complete = False

    def __setattr__(self, name: str, value: object) -> None:
        """InputError for an attribute that cannot be set, which may be a slip, and for a value of a wrong type."""
        if self._is_complete and name not in vars(self) and not isinstance(getattr(type(self), name, None), property):
            settable = (own for own in dir(type(self)) if getattr(getattr(type(self), own), "fset", None))
            similar = difflib.get_close_matches(name, settable, 1)
            hint = f"; did you mean {similar[0]!r}?" if similar else ""
            raise InputError(f"{type(self).__name__} has no attribute {name!r} that can be set{hint}")
        try:
            super().__setattr__(name, value)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: found {show_name(str(value))}, expected numbers") from error

    @abstractmethod
    def _the_model(self) -> Model:
        """The model itself."""

    @abstractmethod
    def _model_changed(self) -> None:
        """Note that the model has changed."""

    alpha = _value("alpha", "float | None", "The shape of the gamma distribution of rates; None without +G.")
    pinv = _value("pinv", "float | None", "The proportion of invariable sites; None without +I.")
    scaler = _value(
        "scaler", "float", "The factor of the tree's branch lengths; 1 unless the lengths of parts are scaled."
    )
    exchangeabilities = _value(
        "exchangeabilities",
        "FloatArray",
        "One per pair of states, in the order of ``model.spec.pairs`` (DNA: AC AG AT CG CT GT); only ratios matter.",
    )
    frequencies = _value(
        "frequencies", "FloatArray", "One per state, in the order of ``model.spec.symbols`` (DNA: A C G T)."
    )

    def set_free_rates(self, rates: ArrayLike, weights: ArrayLike) -> None:
        """Set the rates and weights of +R, both (n_categories,); rates are scaled to mean 1."""
        self._the_model().set_free_rates(rates, weights)
        self._model_changed()

    @property
    def model(self) -> Model:
        """A copy of the model with its current values."""
        return self._the_model().copy()
