"""A model with its current parameter values: what an optimiser changes and an engine evaluates."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.constants import (
    DEFAULT_ALPHA,
    MAX_ALPHA,
    MAX_EXCHANGEABILITY,
    MIN_ALPHA,
    MIN_EXCHANGEABILITY,
    MIN_FREQUENCY,
)
from plltool.errors import InputError
from plltool.model.components import Components, FloatArray
from plltool.model.rates import gamma_means
from plltool.model.spec import BASES, RATE_NAMES, ModelSpec, check_alpha, check_exchangeabilities, check_frequencies
from plltool.model.substitution import eigensystem, exchangeability_matrix

GROUPS = ("rates", "frequencies", "alpha")
# bounds of the ratios that an optimiser varies: to the rate of GT, to the frequency of T, and alpha itself
RATIO_BOUNDS = {
    "rates": (MIN_EXCHANGEABILITY, MAX_EXCHANGEABILITY),
    "frequencies": (MIN_FREQUENCY, 1.0 / MIN_FREQUENCY),
    "alpha": (MIN_ALPHA, MAX_ALPHA),
}


class Model:
    """A nucleotide model: its specification and the current values of its parameters.

    Values in the braces of the specification are fixed. Other parameters begin with exchangeabilities 1, equal base
    frequencies (or the empirical ones, where the specification says so) and alpha DEFAULT_ALPHA, and form the groups of
    `free_parameters`. An optimiser sees the groups as one vector of logarithms: of the rate of each class relative to
    that of GT, of the frequencies of A, C and G relative to that of T, and of alpha.
    """

    def __init__(self, spec: ModelSpec, empirical: npt.ArrayLike | None = None):
        """
        Parameters
        ----------
        spec : what `parse_model` returns.
        empirical : (4,) base frequencies A C G T of the alignment; needed where the specification asks for them.

        Raises
        ------
        InputError
            If the empirical frequencies are not positive or do not sum to 1.
        ValueError
            If they are needed and missing.
        """
        self.spec = spec
        self._class_of_rate = np.array([int(digit) for digit in spec.symmetry])
        self._eigensystem: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self._class_rates = np.array(spec.rates or (1.0,) * spec.n_rate_classes)
        self._frequencies = _initial_frequencies(spec, empirical)
        self._alpha: float | None = None
        if spec.n_categories > 1:
            self._alpha = DEFAULT_ALPHA if spec.alpha is None else spec.alpha

    # --- current values -------------------------------------------------------------------------------------

    @property
    def exchangeabilities(self) -> FloatArray:
        """float64 (6,): AC AG AT CG CT GT, relative to GT."""
        return self._class_rates[self._class_of_rate]

    @property
    def frequencies(self) -> FloatArray:
        """float64 (4,): A C G T, summing to 1."""
        return self._frequencies.copy()

    @property
    def alpha(self) -> float | None:
        """The shape of the gamma distribution; None without +G."""
        return self._alpha

    @property
    def category_rates(self) -> FloatArray:
        """float64 (n_categories,), of mean 1."""
        return np.ones(1) if self._alpha is None else gamma_means(self._alpha, self.spec.n_categories)

    def components(self) -> Components:
        """The model as an engine sees it: one component per rate category, all of equal weight."""
        if self._eigensystem is None:
            self._eigensystem = eigensystem(exchangeability_matrix(self.exchangeabilities), self._frequencies)
        eigenvalues, right, left = self._eigensystem
        rates = self.category_rates
        n = len(rates)
        return Components(
            eigenvalues=np.tile(eigenvalues, (n, 1)),
            right=np.tile(right, (n, 1, 1)),
            left=np.tile(left, (n, 1, 1)),
            frequencies=np.tile(self._frequencies, (n, 1)),
            rates=rates,
            weights=np.full(n, 1.0 / n),
        )

    def copy(self) -> Model:
        """An independent model; arrays are replaced, never changed, so the two may share them."""
        return copy.copy(self)

    def assign(self, other: Model) -> None:
        """Take over the values of another model of the same specification, to the last bit."""
        self._class_rates, self._frequencies, self._alpha = other._class_rates, other._frequencies, other._alpha
        self._eigensystem = other._eigensystem

    # --- setting values, free or fixed ----------------------------------------------------------------------

    def set_exchangeabilities(self, values: npt.ArrayLike) -> None:
        """Set the rates AC AG AT CG CT GT, (6,); only their ratios matter.

        Raises
        ------
        InputError
            If there are not six, one is not positive or out of all proportion, or two of the same class differ.
        """
        rates = check_exchangeabilities(np.ravel(values).tolist())
        symmetry = self.spec.symmetry
        for name, digit, rate in zip(RATE_NAMES, symmetry, rates, strict=True):
            first = symmetry.index(digit)
            if rate != rates[first]:
                raise InputError(
                    f"{self.spec.name} has equal exchangeabilities {RATE_NAMES[first]} and {name},"
                    f" found {rates[first]:g} and {rate:g}"
                )
        self._set_class_rates([rates[symmetry.index(str(k))] for k in range(self.spec.n_rate_classes)])

    def set_frequencies(self, values: npt.ArrayLike) -> None:
        """Set the base frequencies A C G T, (4,).

        Raises
        ------
        InputError
            If there are not four, one is not positive, or their sum is further than 1e-3 from 1.
        """
        self._frequencies = np.array(check_frequencies(np.ravel(values).tolist()))
        self._eigensystem = None

    def set_alpha(self, value: float) -> None:
        """Set the shape of the gamma distribution.

        Raises
        ------
        InputError
            If the model has no +G, or the value is not within MIN_ALPHA .. MAX_ALPHA.
        """
        if self._alpha is None:
            raise InputError(f"model {str(self.spec)!r} has no gamma rates (+G), so alpha cannot be set")
        self._alpha = check_alpha(value)

    # --- free parameters, as an optimiser sees them ---------------------------------------------------------

    @property
    def free_parameters(self) -> tuple[str, ...]:
        """The groups that may be optimised, some of ``rates``, ``frequencies``, ``alpha``, in this order."""
        free = {
            "rates": self.spec.rates is None and self.spec.n_rate_classes > 1,
            "frequencies": self.spec.frequency_mode == "optimised",
            "alpha": self._alpha is not None and self.spec.alpha is None,
        }
        return tuple(group for group in GROUPS if free[group])

    @property
    def n_free_parameters(self) -> int:
        """The number of parameters estimated from the data, for AIC and BIC; empirical frequencies count 3."""
        return len(self.get_vector()) + (3 if self.spec.frequency_mode == "empirical" else 0)

    def get_vector(self, names: Iterable[str] | None = None) -> FloatArray:
        """The free parameters in log space.

        Parameters
        ----------
        names : groups to restrict to; those that are not free contribute nothing. None: all free groups.

        Returns
        -------
        float64 (n,), the groups in the order of `free_parameters`: rates of the classes but GT's, in the order in which
        they occur, over that of GT; frequencies of A, C and G over that of T; alpha.

        Raises
        ------
        ValueError
            For a name that is no group.
        """
        return np.log(np.concatenate([np.empty(0), *map(self._ratios, self._select(names))]))

    def bounds(self, names: Iterable[str] | None = None) -> list[tuple[float, float]]:
        """(low, high) for each element of `get_vector`; arguments as there."""
        pairs = []
        for group in self._select(names):
            low, high = np.log(RATIO_BOUNDS[group]).tolist()
            pairs += [(low, high)] * len(self._ratios(group))
        return pairs

    def set_vector(self, vector: npt.ArrayLike, names: Iterable[str] | None = None) -> None:
        """Set free parameters from log space; what lies outside `bounds` is moved to the bound.

        Values come back from `get_vector` to rounding; to undo exactly, keep a `copy`.

        Parameters
        ----------
        vector : (n,), as from `get_vector` with the same `names`.

        Raises
        ------
        ValueError
            If the length is wrong, an element is not finite, or a name is no group.
        """
        values = np.asarray(vector, dtype=np.float64)
        groups = self._select(names)
        sizes = [len(self._ratios(group)) for group in groups]
        if values.shape != (sum(sizes),) or not np.isfinite(values).all():
            raise ValueError(f"expected {sum(sizes)} finite values for {groups}, found {values}")
        start = 0
        for group, size in zip(groups, sizes, strict=True):
            low, high = RATIO_BOUNDS[group]
            part = np.clip(values[start : start + size], np.log(low), np.log(high))
            self._set_ratios(group, np.clip(np.exp(part), low, high))  # exp(log(high)) may exceed high
            start += size

    # --- output ---------------------------------------------------------------------------------------------

    def to_string(self) -> str:
        """The model with all current values in braces, which `parse_model` reads back as a model with nothing free."""
        spec = replace(self.spec, alpha=self._alpha)
        if self.spec.n_rate_classes > 1:
            spec = replace(spec, rates=tuple(self._class_rates.tolist()))
        if self.spec.frequency_mode != "equal" or (self._frequencies != 0.25).any():
            spec = replace(spec, frequency_mode="given", frequencies=tuple(self._frequencies.tolist()))
        return str(spec)

    def describe(self) -> dict[str, Any]:
        """The model for a JSON run record: strings, numbers, lists and dictionaries only."""
        return {
            "spec": str(self.spec),
            "model": self.to_string(),
            "rates": dict(zip(RATE_NAMES, self.exchangeabilities.tolist(), strict=True)),
            "frequencies": dict(zip(BASES, self._frequencies.tolist(), strict=True)),
            "alpha": self._alpha,
            "category_rates": self.category_rates.tolist(),
            "n_free_parameters": self.n_free_parameters,
        }

    # --- helpers --------------------------------------------------------------------------------------------

    def _select(self, names: Iterable[str] | None) -> tuple[str, ...]:
        """The free groups among `names`, in the order of GROUPS."""
        wanted = GROUPS if names is None else tuple(names)
        unknown = [name for name in wanted if name not in GROUPS]
        if unknown:
            raise ValueError(f"expected parameter groups {GROUPS}, found {unknown}")
        return tuple(group for group in self.free_parameters if group in wanted)

    def _is_reference_class(self) -> npt.NDArray[np.bool_]:
        """Which class of rates is that of GT."""
        return np.arange(self.spec.n_rate_classes) == self._class_of_rate[-1]

    def _ratios(self, group: str) -> FloatArray:
        """The free values of a group, positive; `get_vector` holds their logarithms."""
        if group == "rates":
            return self._class_rates[~self._is_reference_class()]
        if group == "frequencies":
            return self._frequencies[:-1] / self._frequencies[-1]
        return np.array([self._alpha], dtype=np.float64)

    def _set_ratios(self, group: str, ratios: FloatArray) -> None:
        if group == "rates":
            rates = np.ones(self.spec.n_rate_classes)
            rates[~self._is_reference_class()] = ratios
            self._set_class_rates(rates.tolist())
        elif group == "frequencies":
            self.set_frequencies(np.append(ratios, 1.0) / (ratios.sum() + 1.0))
        else:
            self.set_alpha(float(ratios[0]))

    def _set_class_rates(self, rates: list[float]) -> None:
        self._class_rates = np.array(rates) / rates[self._class_of_rate[-1]]
        self._eigensystem = None


def _initial_frequencies(spec: ModelSpec, empirical: npt.ArrayLike | None) -> FloatArray:
    """The base frequencies that a specification begins with."""
    if spec.frequencies is not None:
        return np.array(spec.frequencies)
    if spec.frequency_mode != "empirical":
        return np.full(len(BASES), 0.25)
    if empirical is None:
        raise ValueError(f"model {str(spec)!r} needs the empirical base frequencies of the alignment")
    try:
        return np.array(check_frequencies(np.ravel(empirical).tolist()))
    except InputError as problem:
        raise InputError(f"model {str(spec)!r}: empirical frequencies cannot be used: {problem}") from None
