"""A model with its current parameter values: what an optimiser changes and an engine evaluates."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.arrays import BoolArray, FloatArray, IndexArray
from plltool.constants import (
    MAX_EXCHANGEABILITY,
    MAX_FREE_RATIO,
    MAX_SCALER,
    MIN_EXCHANGEABILITY,
    MIN_FREE_RATIO,
    MIN_FREQUENCY,
    MIN_SCALER,
)
from plltool.errors import InputError
from plltool.model import proteins
from plltool.model.components import Components
from plltool.model.initial import initial_class_weights, initial_frequencies, initial_rates
from plltool.model.proteins import Classes
from plltool.model.rates import SITE_BOUNDS, SITE_GROUPS, SiteRates
from plltool.model.spec import ModelSpec
from plltool.model.substitution import eigensystem, exchangeability_matrix, rate_matrix
from plltool.model.values import (
    check_alpha,
    check_exchangeabilities,
    check_free_rates,
    check_frequencies,
    check_pinv,
    check_scaler,
)

SCALER = "scaler"
GROUPS = ("rates", "frequencies", "class_weights", *SITE_GROUPS, SCALER)
# bounds of the ratios that an optimiser varies: to the last rate, frequency or weight; those of sites are `SiteRates`'
RATIO_BOUNDS = {
    "rates": (MIN_EXCHANGEABILITY, MAX_EXCHANGEABILITY),
    "frequencies": (MIN_FREQUENCY, 1.0 / MIN_FREQUENCY),
    "class_weights": (MIN_FREE_RATIO, MAX_FREE_RATIO),
    **SITE_BOUNDS,
    SCALER: (MIN_SCALER, MAX_SCALER),
}
SITE_VALUES = ("alpha", "pinv", "rates", "weights")  # of SiteRates


class Model:
    """A substitution model: its specification and the current values of its parameters.

    Values in the braces of the specification are fixed. Other parameters begin with exchangeabilities 1 (GTR20: those
    of LG), equal base frequencies or those of the matrix (or the empirical ones, where the specification says so),
    classes of equal weight and the start values of `SiteRates`, and form the groups of `free_parameters`. An optimiser
    sees the groups as one vector of logarithms of ratios: of rates of classes relative to that of the last pair, of
    frequencies and weights of classes relative to the last one, of what `SiteRates.ratios` has, and of the scaler.

    Attributes
    ----------
    spec : what the model string said.
    """

    def __init__(self, spec: ModelSpec, empirical: npt.ArrayLike | None = None):
        """
        Parameters
        ----------
        spec : what `parse_model` returns.
        empirical : (n_states,) state frequencies of the alignment; needed where the specification asks for them.

        Raises
        ------
        InputError
            If the empirical frequencies are not positive or do not sum to 1.
        ValueError
            If they are needed and missing.
        """
        self.spec = spec
        self._class_of_rate = np.array(spec.rate_classes, dtype=np.intp)
        self._systems: list[tuple[FloatArray, FloatArray, FloatArray]] | None = None
        self._matrices: FloatArray | None = None
        self._class_rates = initial_rates(spec)
        self._frequencies = initial_frequencies(spec, empirical)
        self._class_weights = initial_class_weights(spec)
        self._sites = spec.sites.filled()
        self._scaler = 1.0 if spec.scaler is None else spec.scaler
        self._sites_at_start = True

    # --- current values -------------------------------------------------------------------------------------

    @property
    def exchangeabilities(self) -> FloatArray:
        """float64 (n_pairs,) in the order of ``spec.pairs``; (n_classes, n_pairs) of a mixture. Only ratios matter."""
        if self.spec.rate_classes:
            return self._class_rates[self._class_of_rate]
        if self.spec.is_mixture:
            return proteins.read_mixture(self.spec.name).exchangeabilities.copy()
        return proteins.read_matrix(self.spec.name)[0].copy()

    @property
    def frequencies(self) -> FloatArray:
        """float64 (n_states,) in the order of ``spec.symbols``, summing to 1; of a mixture the mean over classes."""
        classes = self.classes
        return np.asarray(classes.weights @ classes.frequencies)

    @property
    def classes(self) -> Classes:
        """The classes of sites; one unless the model is a mixture."""
        if self.spec.is_mixture:
            weights = self._sites.varying_weights() if self.spec.is_tied else self._class_weights
            return replace(proteins.read_mixture(self.spec.name), weights=weights)
        shared = self.exchangeabilities[None]
        if self.spec.profiles is not None:
            weights, frequencies = proteins.read_profiles(self.spec.profiles)
            return Classes(shared, frequencies, np.ones(len(weights)), weights)
        return Classes(shared, self._frequencies[None], np.ones(1), np.ones(1))

    @property
    def alpha(self) -> float | None:
        """The shape of the gamma distribution; None without +G."""
        return self._sites.alpha

    @property
    def pinv(self) -> float | None:
        """The share of invariable sites; None without +I."""
        return self._sites.pinv

    @property
    def scaler(self) -> float:
        """What branch lengths are multiplied by, 1 without +B; to an engine it is a factor of all rates."""
        return self._scaler

    @property
    def sites(self) -> SiteRates:
        """How rates vary over sites, with all values."""
        return self._sites

    @property
    def _has_classes(self) -> bool:
        return self.spec.is_mixture or self.spec.profiles is not None

    def components(self) -> Components:
        """The model as an engine sees it.

        One component per class and category of rates, the categories of a class side by side; of a tied mixture one per
        class. Invariable sites are one component in front, with the mean frequencies of the classes.
        """
        class_of, frequencies, rates, weights = self._mixture()
        if self._systems is None:
            self._systems = [eigensystem(*pair) for pair in self._processes()]
        stacks = [np.stack([system[k] for system in self._systems])[class_of] for k in range(3)]
        eigenvalues, right, left = map(np.ascontiguousarray, stacks)
        return Components(eigenvalues, right, left, frequencies, rates, weights)

    def rate_matrices(self) -> tuple[FloatArray, FloatArray]:
        """What the eigensystems of `components` are made of, without them.

        Returns
        -------
        matrices : float64 (C, S, S), the rate matrix of each component times its rate
        masses : float64 (C, S), weight times frequency
        """
        class_of, frequencies, rates, weights = self._mixture()
        if self._matrices is None:
            self._matrices = np.stack([rate_matrix(*pair) for pair in self._processes()])
        return rates[:, None, None] * self._matrices[class_of], weights[:, None] * frequencies

    def _processes(self) -> list[tuple[FloatArray, FloatArray]]:
        """Exchangeabilities (S, S) and frequencies (S,) of each class."""
        classes = self.classes
        matrices = [exchangeability_matrix(row) for row in classes.exchangeabilities]
        matrices *= len(classes.frequencies) // len(matrices)
        return list(zip(matrices, classes.frequencies, strict=True))

    def _mixture(self) -> tuple[IndexArray, FloatArray, FloatArray, FloatArray]:
        """Of each component: its class, frequencies, rate and weight."""
        classes = self.classes
        rates, weights = self._sites.categories()
        first = int(self._sites.invariable)
        class_of = np.arange(len(classes.frequencies))
        if not self.spec.is_tied:
            class_rates = classes.rates / (classes.weights @ classes.rates)
            class_of = np.repeat(class_of, len(rates) - first)
            rates = np.append(rates[:first], np.outer(class_rates, rates[first:]))
            weights = np.append(weights[:first], np.outer(classes.weights, weights[first:]))
        frequencies = classes.frequencies[class_of]
        if first:
            frequencies = np.vstack([classes.weights @ classes.frequencies, frequencies])
            class_of = np.append(0, class_of)
        return class_of, frequencies, self._scaler * rates, weights

    def copy(self) -> Model:
        """An independent model; arrays are replaced, never changed, so the two may share them."""
        return copy.copy(self)

    def assign(self, other: Model) -> None:
        """Take over the values of another model of the same specification, to the last bit."""
        self.__dict__.update(other.__dict__)

    def pack(self) -> dict[str, FloatArray]:
        """Every value as doubles, for `unpack`."""
        sites = {name: getattr(self._sites, name) for name in SITE_VALUES}
        return {
            "exchangeabilities": self._class_rates,
            "frequencies": self._frequencies,
            "class_weights": self._class_weights,
            "scaler": np.array(self._scaler),
            "sites_at_start": np.array(float(self._sites_at_start)),
            **{name: np.array(value) for name, value in sites.items() if value is not None},
        }

    def unpack(self, values: Mapping[str, FloatArray]) -> None:
        """Take over, to the last bit, what `pack` said of a model of the same specification."""
        self._class_rates, self._frequencies = values["exchangeabilities"], values["frequencies"]
        self._class_weights, self._scaler = values["class_weights"], float(values["scaler"])
        sites: dict[str, Any] = {name: values[name].tolist() for name in SITE_VALUES if name in values}
        for name in ("rates", "weights"):
            if name in sites:
                sites[name] = tuple(sites[name])
        self._sites = replace(self._sites, **sites)
        self._sites_at_start = bool(values["sites_at_start"])
        self._systems = self._matrices = None

    # --- setting values, free or fixed ----------------------------------------------------------------------

    def set_exchangeabilities(self, values: npt.ArrayLike) -> None:
        """Set the exchangeabilities, (n_pairs,) in the order of ``spec.pairs``; only their ratios matter.

        Raises
        ------
        InputError
            If there are not as many as pairs, one is not positive or out of all proportion, two of the same class
            differ, or the model's are published.
        """
        pairs, classes = self.spec.pairs, self.spec.rate_classes
        if not classes:
            raise InputError(f"the exchangeabilities of {self.spec.name} are published and cannot be set")
        rates = check_exchangeabilities(np.ravel(values).tolist(), pairs)
        for name, number, rate in zip(pairs, classes, rates, strict=True):
            first = classes.index(number)
            if rate != rates[first]:
                raise InputError(
                    f"{self.spec.name} has equal exchangeabilities {pairs[first]} and {name},"
                    f" found {rates[first]:g} and {rate:g}"
                )
        self._set_class_rates(np.array([rates[classes.index(k)] for k in range(self.spec.n_rate_classes)]))

    def set_frequencies(self, values: npt.ArrayLike) -> None:
        """Set the frequencies of the states, (n_states,) in the order of ``spec.symbols``.

        Raises
        ------
        InputError
            If there are not as many as states, one is not positive, their sum is further than 1e-3 from 1, or the model
            is a mixture, whose classes have their own.
        """
        if self._has_classes:
            raise InputError(f"the classes of {str(self.spec)!r} have frequencies of their own, which cannot be set")
        self._frequencies = np.array(check_frequencies(np.ravel(values).tolist(), self.spec.symbols))
        self._systems = self._matrices = None

    def set_alpha(self, value: float) -> None:
        """Set the shape of the gamma distribution.

        Raises
        ------
        InputError
            If the model has no +G, or the value is not within MIN_ALPHA .. MAX_ALPHA.
        """
        if self._sites.kind != "gamma":
            raise InputError(f"model {str(self.spec)!r} has no gamma rates (+G), so alpha cannot be set")
        self.set_sites(replace(self._sites, alpha=check_alpha(value)))

    def set_pinv(self, value: float) -> None:
        """Set the share of invariable sites.

        Raises
        ------
        InputError
            If the model has no +I, or the value is not within MIN_PINV .. MAX_PINV.
        """
        if not self._sites.invariable:
            raise InputError(f"model {str(self.spec)!r} has no invariable sites (+I), so their share cannot be set")
        self.set_sites(replace(self._sites, pinv=check_pinv(value)))

    def set_free_rates(self, rates: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Set the rates and weights of +R, both (n_categories,); rates are brought to mean 1.

        Raises
        ------
        InputError
            If the model has no +R, a number is wrong, a value is not positive, or the weights do not sum to 1.
        """
        given = tuple(np.ravel(rates).tolist()), tuple(np.ravel(weights).tolist())
        n = self._sites.n_categories
        if self._sites.kind != "free":
            raise InputError(f"model {str(self.spec)!r} has no free rates (+R), so they cannot be set")
        if [len(values) for values in given] != [n, n]:
            raise InputError(f"expected {n} rates and {n} weights, found {len(given[0])} and {len(given[1])}")
        checked = check_free_rates(*given)
        self.set_sites(replace(self._sites, rates=checked[0], weights=checked[1]))

    def set_scaler(self, value: float) -> None:
        """Set what branch lengths are multiplied by.

        Raises
        ------
        InputError
            If the model has no +B, or the value is not positive or out of all proportion.
        """
        if not self.spec.scaled:
            raise InputError(f"model {str(self.spec)!r} has no scaler of branch lengths (+B), so it cannot be set")
        self._scaler = check_scaler(float(value))

    def set_sites(self, sites: SiteRates) -> None:
        """Set how rates vary over sites: the specification's kind, with all values."""
        self._sites = sites
        self._sites_at_start = False

    # --- free parameters, as an optimiser sees them ---------------------------------------------------------

    @property
    def free_parameters(self) -> tuple[str, ...]:
        """The groups that may be optimised, some of GROUPS, in their order."""
        spec = self.spec
        free = {
            "rates": spec.rates is None and spec.n_rate_classes > 1,
            "frequencies": spec.frequency_mode == "optimised",
            "class_weights": spec.is_mixture and not spec.is_tied and spec.class_weights is None,
        }
        scaler = (SCALER,) if spec.scaled and spec.scaler is None else ()
        return (*(group for group in free if free[group]), *spec.sites.free_parameters, *scaler)

    @property
    def n_free_parameters(self) -> int:
        """The number of parameters estimated from the data, for AIC and BIC; empirical frequencies are, but for one."""
        return len(self.get_vector()) + (len(self.spec.symbols) - 1) * (self.spec.frequency_mode == "empirical")

    def get_vector(self, names: Iterable[str] | None = None) -> FloatArray:
        """The free parameters in log space.

        Parameters
        ----------
        names : groups to restrict to; those that are not free contribute nothing. None: all free groups.

        Returns
        -------
        float64 (n,), the groups in the order of `free_parameters`, each as the class's docstring says; rates of classes
        stand in the order in which they occur.

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

    def site_starts(self, names: Iterable[str] | None = None) -> list[SiteRates]:
        """Rates over sites worth trying before they are optimised the first time; none where one start serves."""
        return self._sites.starts(self._select(names)) if self._sites_at_start else []

    # --- output ---------------------------------------------------------------------------------------------

    def to_string(self) -> str:
        """The model with all current values in braces, which `parse_model` reads back as a model with nothing free."""
        spec = replace(self.spec, sites=self._sites)
        if spec.n_rate_classes > 1:
            spec = replace(spec, rates=tuple(self._class_rates.tolist()))
        if spec.is_mixture and not spec.is_tied:
            spec = replace(spec, class_weights=tuple(self._class_weights.tolist()))
        if spec.scaled:
            spec = replace(spec, scaler=self._scaler)
        if not self._has_classes and (
            spec.frequency_mode not in ("equal", "model")
            or (self._frequencies != initial_frequencies(self.spec)).any()
        ):
            spec = replace(spec, frequency_mode="given", frequencies=tuple(self._frequencies.tolist()))
        return str(spec)

    def describe(self) -> dict[str, Any]:
        """The model for a JSON run record: strings, numbers, lists and dictionaries only."""
        rates, weights = self._sites.categories()
        described = {
            "spec": str(self.spec),
            "model": self.to_string(),
            "data": self.spec.data,
            "frequencies": dict(zip(self.spec.symbols, self.frequencies.tolist(), strict=True)),
            "alpha": self.alpha,
            "pinv": self.pinv,
            "category_rates": rates.tolist(),
            "category_weights": weights.tolist(),
            "n_free_parameters": self.n_free_parameters,
        }
        if self.spec.scaled:
            described["scaler"] = self.scaler
        if self.spec.rate_classes:
            described["rates"] = dict(zip(self.spec.pairs, self.exchangeabilities.tolist(), strict=True))
        if self._has_classes and not self.spec.is_tied:
            described["class_rates"] = self.classes.rates.tolist()
            described["class_weights"] = self.classes.weights.tolist()
        return described

    # --- helpers --------------------------------------------------------------------------------------------

    def _select(self, names: Iterable[str] | None) -> tuple[str, ...]:
        """The free groups among `names`, in the order of GROUPS."""
        wanted = GROUPS if names is None else tuple(names)
        unknown = [name for name in wanted if name not in GROUPS]
        if unknown:
            raise ValueError(f"expected parameter groups {GROUPS}, found {unknown}")
        return tuple(group for group in self.free_parameters if group in wanted)

    def _is_reference_class(self) -> BoolArray:
        """Which class of rates is that of the last pair."""
        return np.arange(self.spec.n_rate_classes) == self._class_of_rate[-1]

    def _ratios(self, group: str) -> FloatArray:
        """The free values of a group, positive; `get_vector` holds their logarithms."""
        if group == "rates":
            return self._class_rates[~self._is_reference_class()]
        if group == "frequencies":
            return self._frequencies[:-1] / self._frequencies[-1]
        if group == "class_weights":
            return self._class_weights[:-1] / self._class_weights[-1]
        if group == SCALER:
            return np.array([self._scaler])
        return self._sites.ratios(group)

    def _set_ratios(self, group: str, ratios: FloatArray) -> None:
        if group == "rates":
            rates = np.ones(self.spec.n_rate_classes)
            rates[~self._is_reference_class()] = ratios
            self._set_class_rates(rates)
        elif group == "frequencies":
            self.set_frequencies(np.append(ratios, 1.0) / (ratios.sum() + 1.0))
        elif group == "class_weights":
            self._class_weights = np.append(ratios, 1.0) / (ratios.sum() + 1.0)
        elif group == SCALER:
            self._scaler = float(ratios[0])
        else:
            self.set_sites(self._sites.with_ratios(group, ratios))

    def _set_class_rates(self, rates: FloatArray) -> None:
        self._class_rates = rates / rates[self._class_of_rate[-1]]
        self._systems = self._matrices = None
