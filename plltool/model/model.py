"""A substitution model with its current parameter values: an optimiser changes them, an engine evaluates them."""

import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, Self

import numpy as np

from plltool.arrays import ArrayLike, FloatArray, IndexArray
from plltool.codec import saved
from plltool.errors import InputError, shorten, show_name
from plltool.model import checks, components, mixtures, substitution
from plltool.model.codons import per_base_factors
from plltool.model.components import Classes, Components
from plltool.model.rates import SITE_GROUPS, SiteRates
from plltool.model.spec import (
    DEFAULT_SWITCH_RATES,
    ModelSpec,
    initial_class_weights,
    initial_frequencies,
    initial_rates,
)

SCALER = "scaler"
CATEGORIES = "categories"  # of +PSR: no numbers of a vector, see `plltool.optimise.categories`
GROUPS = ("rates", "frequencies", "class_weights", "switching", *SITE_GROUPS, SCALER, CATEGORIES)


@saved("_rates", "_frequencies", "_class_weights", "_switching", "_scaler", "_sites", "_sites_at_start")
class Model:
    """A substitution model: its specification and the current values of its parameters.

    Values in the braces of the specification are fixed. The other parameters form the groups of `free_parameters`. They
    start with exchangeabilities 1 (GTR20: those of LG); with equal frequencies, those of the matrix or the empirical
    ones, as the specification says; with classes of equal weight; and with the start values of `SiteRates`. An
    optimiser sees all groups as one vector, see `plltool.model.vector`.

    spec : the specification that the model string gave.
    """

    _exchangeabilities: FloatArray | None = None
    _systems: tuple[FloatArray, FloatArray, FloatArray] | None = None
    _matrices: FloatArray | None = None
    _mixed: tuple[tuple[Any, ...], tuple[IndexArray, FloatArray, FloatArray, FloatArray]] | None = None

    def __init__(self, spec: ModelSpec, empirical: ArrayLike | None = None, invariable: float | None = None):
        """spec : as `parse_model` returns it.
        empirical : (n_states,) state frequencies of the alignment; needed if the specification asks for them.
        invariable : the share of sites of the alignment that may be invariable; needed with +IC.
        """
        if not spec.n_states:
            found = f"model {spec.shown} has as many states as the data"
            raise InputError(f"{found}, expected their number, such as {spec.with_states(3)}")
        self.spec = spec
        self._design = spec.named.rates
        self._rates = initial_rates(spec)
        self._frequencies = initial_frequencies(spec, empirical)
        self._class_weights = initial_class_weights(spec)
        sites = spec.sites
        if sites.counted and invariable is None:
            raise ValueError(f"model {spec.shown} needs the proportion of invariable sites of the alignment")
        self._sites = (sites.with_share(invariable) if sites.counted and invariable is not None else sites).filled()
        self._switching = np.array(spec.switch_rates or DEFAULT_SWITCH_RATES)
        self._scaler = 1.0 if spec.scaler is None else spec.scaler
        self._sites_at_start = True

    @property
    def exchangeabilities(self) -> FloatArray:
        """float64 (n_pairs,) in the order of ``spec.pairs``; (n_classes, n_pairs) for a mixture. Only ratios matter."""
        if mixtures.has_matrices(self.spec.name):
            return mixtures.read_matrices(self.spec.name).exchangeabilities.copy()
        if self._exchangeabilities is None:
            self._exchangeabilities = self._design.exchangeabilities(self._rates)
            if self.spec.named.of_bases:
                self._exchangeabilities *= per_base_factors(self._frequencies, self.spec.symbols)
        return self._exchangeabilities.copy()

    @property
    def rate_parameters(self) -> dict[str, float]:
        """The parameters that exchangeabilities follow from, such as omega and kappa; empty for DNA and proteins."""
        return dict(zip(self._design.names, self._rates.tolist(), strict=False))

    @property
    def frequencies(self) -> FloatArray:
        """float64 (n_states,) in the order of ``spec.symbols``, summing to 1; for a mixture, the mean of classes."""
        classes = self.classes
        return np.asarray(classes.weights @ classes.frequencies)

    @property
    def classes(self) -> Classes:
        """The classes of sites; a single one unless the model is a mixture."""
        if mixtures.has_matrices(self.spec.name):
            weights = self._sites.varying_weights() if self.spec.is_tied else self._class_weights
            return replace(mixtures.read_matrices(self.spec.name), weights=weights)
        if self.spec.members:
            rates = np.array(self.spec.member_rates)
            return Classes(self.exchangeabilities, self._frequencies, rates, self._class_weights)
        if self._design.n_classes > 1:
            rows = self.exchangeabilities
            matrices = map(substitution.exchangeability_matrix, rows)
            rates = np.array([self._frequencies @ matrix @ self._frequencies for matrix in matrices])
            return Classes(rows, np.tile(self._frequencies, (len(rows), 1)), rates, self._class_weights)
        shared = self.exchangeabilities[None]
        if self.spec.has_site_frequencies:
            rows = np.atleast_2d(self._frequencies)
            return Classes(shared, rows, np.ones(len(rows)), self._class_weights)
        if self.spec.profiles is not None:
            (_, profiles, rates), weights = mixtures.read_profiles(self.spec.profiles), self._class_weights
            own = () if self.spec.has_frequencies_by_class else (self._frequencies,)  # of one more class, the first
            rates = rates if mixtures.is_own(self.spec.profiles) else np.ones(len(weights))
            return Classes(shared, np.vstack([*own, profiles]), rates, weights)
        return Classes(shared, self._frequencies[None], np.ones(1), np.ones(1))

    @property
    def switching(self) -> FloatArray | None:
        """(2,) the rates of switching from off to on and from on to off; None without +COV."""
        return self._switching if self.spec.switching else None

    @property
    def scaler(self) -> float:
        """The factor of all branch lengths, 1 without +B; for an engine it is a factor of all rates."""
        return self._scaler

    def under_gamma(self) -> Self:
        """A copy with gamma rates of about the same variance in place of per-site rates; alpha is free."""
        sites = self._sites.as_gamma()
        return self._with(_sites=sites, spec=replace(self.spec, sites=replace(sites, alpha=None)))

    def with_site_frequencies(self, rows: FloatArray, row_of: IndexArray, weights: FloatArray) -> Self:
        """A copy with frequencies of each pattern (+SSF), or InputError as in `ModelSpec.with_site_frequencies`.

        `rows` (n, S) are frequencies, `row_of` (n_patterns,) those of each pattern, `weights` (n_patterns,) its sites.
        """
        shares = np.bincount(row_of, weights, len(rows)) / weights.sum()
        spec, sites = self.spec.with_site_frequencies(), replace(self._sites, category_of=row_of)
        other = self._with(spec=spec, _frequencies=rows, _class_weights=shares, _sites=sites)
        other._forget()
        return other

    def of_patterns(self, kept: IndexArray) -> Self:
        """A copy for some of the patterns, given by their indices."""
        return self._with(_sites=self._sites.of_patterns(kept))

    def components(self) -> Components:
        """The model as an engine sees it.

        There is one component per class and rate category, with the categories of a class side by side; a tied mixture
        has one per class. Invariable sites are a component in front, with the mean frequencies of the classes. With
        +SSF patterns with the same frequencies have components of their own, which are side by side. With +COV the
        components have twice the states, see `plltool.model.components`.
        """
        class_of, frequencies, rates, weights = self.mixture()
        if not self._has_systems:
            reversible, category_of = self.spec.is_reversible, self._sites.category_of
            system = components.directed_system(tuple(self.exchangeabilities.tolist()), reversible)
            values, rotations, right, left, pi = (np.repeat(array[None], len(rates), axis=0) for array in system)
            turning = None if reversible else rotations
            return Components(values, right, left, pi, rates, weights, category_of, turning)
        solve_together([self])
        assert self._systems is not None, "just made"
        eigenvalues, right, left = (stack[class_of] for stack in self._systems)
        if self.switching is not None:
            systems = (eigenvalues, right, left)
            parts = components.switching_components(systems, frequencies, rates / self._scaler, weights, self.switching)
            return replace(parts, rates=self._scaler * parts.rates)
        size = len(rates) // len(self._systems[0]) if self.spec.has_site_frequencies else 1
        category_of = self._sites.category_of
        return Components(eigenvalues, right, left, frequencies, rates, weights, category_of, category_size=size)

    def rate_matrices(self) -> tuple[FloatArray, FloatArray]:
        """Rates times rate matrices of `components`, (C, S, S), and weights times frequencies, (C, S)."""
        _, frequencies, rates, weights = self.mixture()
        matrices = self.matrices_at_rate_one()
        if self.switching is None:
            return rates[:, None, None] * matrices, weights[:, None] * frequencies
        matrices = (rates / self._scaler)[:, None, None] * matrices
        switching = self._scaler * components.switching_matrices(matrices, self.switching)
        switching[rates == 0] = 0.0
        return switching, weights[:, None] * components.hidden_frequencies(frequencies, self.switching)

    def matrices_at_rate_one(self) -> FloatArray:
        """(C, S, S) the matrices of `rate_matrices` without rates over sites and switching."""
        if not self._has_systems:
            return self.components().rate_matrices()
        if self._matrices is None:
            self._matrices = substitution.rate_matrix(*self._processes())
        return np.asarray(self._matrices[self.mixture()[0]])

    def _forget(self) -> None:
        """Forget everything derived from rates and frequencies."""
        self._exchangeabilities = self._systems = self._matrices = None

    @property
    def _has_systems(self) -> bool:
        """Whether `components` has eigensystems of time-reversible processes."""
        return not self.spec.is_directed or self.switching is not None

    def _processes(self) -> tuple[FloatArray, FloatArray]:
        """Exchangeabilities (n, S, S) and frequencies (n, S) of the time-reversible processes of all classes."""
        if not self.spec.is_directed:
            return self.classes.processes()
        matrix, pi = substitution.scaled_matrix(substitution.rates_matrix(self.exchangeabilities))
        return (matrix / pi)[None], pi[None]

    def mixture(self) -> tuple[IndexArray, FloatArray, FloatArray, FloatArray]:
        """The class, frequencies (C, S), rate and weight of each component, (C,), without switching."""
        values = self._rates, self._frequencies, self._class_weights, self._sites, self._scaler
        if self._mixed is None or not all(map(is_, self._mixed[0], values)):  # all values are replaced, never changed
            if not self.spec.has_site_frequencies:
                class_of, frequencies, rates, weights = self.classes.cross(self._sites, self.spec.is_tied)
            elif self._sites.category_of is None:
                raise InputError(f"model {self.spec.shown}: found no frequencies of sites, expected --site-frequencies")
            else:
                class_of, frequencies, rates, weights = self.classes.categories(self._sites)
            self._mixed = values, (class_of, frequencies, self._scaler * rates, weights)
        return self._mixed[1]

    def copy(self) -> Self:
        """An independent model. Arrays are replaced and never changed, so the two may share them."""
        return copy.copy(self)

    def _with(self, **values: Any) -> Self:
        """A copy with other attributes."""
        other = self.copy()
        other.__dict__.update(values)
        return other

    def assign(self, other: Self) -> None:
        """Take over the values of another model of the same specification, bit for bit; a saved one has no others."""
        self._forget()
        self.__dict__.update(other.__dict__)

    @property
    def alpha(self) -> float | None:
        """The shape of the gamma distribution; None without +G."""
        return self._sites.alpha

    @property
    def pinv(self) -> float | None:
        """The share of invariable sites; None without +I."""
        return self._sites.pinv

    @property
    def sites(self) -> SiteRates:
        """How rates vary over sites, with all values filled in."""
        return self._sites

    @property
    def has_site_rates(self) -> bool:
        """Whether each site has one rate (+PSR) rather than a mixture of rates."""
        return self._sites.kind == "psr"

    def set_alpha(self, value: float) -> None:
        """Set the shape of the gamma distribution."""
        if self._sites.kind != "gamma":
            raise InputError(f"model {self.spec.shown} has no gamma rates (+G), so alpha cannot be set")
        self.set_sites(replace(self._sites, alpha=checks.check_alpha(value)))

    def set_pinv(self, value: float) -> None:
        """Set the share of invariable sites."""
        if not self._sites.invariable:
            raise InputError(f"model {self.spec.shown} has no invariable sites (+I), so their share cannot be set")
        self.set_sites(replace(self._sites, pinv=checks.check_pinv(value)))

    def set_free_rates(self, rates: ArrayLike, weights: ArrayLike) -> None:
        """Set the rates and weights of +R, both (n_categories,); rates are scaled to mean 1."""
        given = tuple(np.ravel(rates).tolist()), tuple(np.ravel(weights).tolist())
        n = self._sites.n_categories
        if self._sites.kind != "free":
            raise InputError(f"model {self.spec.shown} has no free rates (+R), so they cannot be set")
        if [len(values) for values in given] != [n, n]:
            raise InputError(f"expected {n} rates and {n} weights, found {len(given[0])} and {len(given[1])}")
        checked = checks.check_free_rates(*given)
        self.set_sites(replace(self._sites, rates=checked[0], weights=checked[1]))

    def set_sites(self, sites: SiteRates) -> None:
        """Set how rates vary over sites: of the specification's kind, with all values."""
        self._sites = sites
        self._sites_at_start = False

    def with_sites(self, sites: SiteRates) -> Self:
        """A copy with other rates over sites."""
        return self._with(_sites=sites, _sites_at_start=False)

    def site_starts(self, groups: Collection[str]) -> list[SiteRates]:
        """Rates over sites to try before free groups are optimised for the first time; empty if one start is enough."""
        return self._sites.starts(groups) if self._sites_at_start else []

    def set_exchangeabilities(self, values: ArrayLike) -> None:
        """Set the exchangeabilities, (n_pairs,) in the order of ``spec.pairs``; only their ratios matter."""
        pairs, classes = self.spec.pairs, self._design.class_of_pair
        if classes is None:
            what = f"follow from {', '.join(self._design.names)}" if self._design.names else "are published"
            what = what if self._design.rays is None else "follow from weights of rays"
            raise InputError(f"the exchangeabilities of {shorten(self.spec.name)} {what} and cannot be set")
        rates = np.array(checks.check_exchangeabilities(np.ravel(values).tolist(), pairs))
        _, first = np.unique(classes, return_index=True)
        for name, rate, k in zip(pairs, rates, first[classes], strict=True):
            if rate != rates[k]:
                found = f"equal exchangeabilities {pairs[k]} and {name}, found {rates[k]:g} and {rate:g}"
                raise InputError(f"{self.spec.name} has {found}")
        self._set_rates(self._design.relative(rates[first]))

    def set_rate_parameter(self, name: str, value: float) -> None:
        """Set one of `rate_parameters`."""
        if name not in self._design.names:
            known = ", ".join(self._design.names) or "none"
            raise InputError(f"model {self.spec.shown} has no parameter {show_name(name)}, expected one of: {known}")
        rates = self._rates.copy()
        rates[self._design.names.index(name)] = value
        self._set_rates(np.array(checks.check_rate_parameters(rates.tolist(), self._design)))

    def set_frequencies(self, values: ArrayLike) -> None:
        """Set the frequencies of the states, (n_states,) in the order of ``spec.symbols``."""
        if self.spec.is_directed:
            raise InputError(f"the frequencies of {self.spec.shown} follow from its rates and cannot be set")
        if self.spec.has_frequencies_by_class:
            raise InputError(f"the classes of {self.spec.shown} have frequencies of their own, which cannot be set")
        self._frequencies = np.array(checks.check_frequencies(np.ravel(values).tolist(), self.spec.symbols))
        self._forget()

    def set_scaler(self, value: float) -> None:
        """Set the factor of all branch lengths."""
        if not self.spec.scaled:
            raise InputError(f"model {self.spec.shown} has no scaler of branch lengths (+B), so it cannot be set")
        self._scaler = checks.check_scaler(float(value))

    @property
    def free_parameters(self) -> tuple[str, ...]:
        """The groups that may be optimised, in the order of GROUPS."""
        spec = self.spec
        free = {
            "rates": spec.rates is None and self._design.n_free > 0,
            "frequencies": bool(spec.free_rows) if spec.members else spec.frequency_mode == "optimised",
            "class_weights": spec.weighs_classes and spec.class_weights is None,
            "switching": spec.switching and spec.switch_rates is None,
            **dict.fromkeys(spec.sites.free_parameters, True),
            SCALER: spec.scaled and spec.scaler is None,
            CATEGORIES: self.has_site_rates,
        }
        return tuple(group for group in free if free[group])

    @property
    def n_free_parameters(self) -> int:
        """The number of parameters estimated from the data, for AIC and BIC, or counted in them."""
        n_optimised = sum(len(self.ratios(group)) for group in self.free_parameters)
        counted = {"empirical": len(self.spec.symbols) - 1, "f1x4": 3, "f3x4": 9}
        modes = {own.frequency_mode for own in self.spec.members or (self.spec,)}  # of classes with the same counts
        return n_optimised + sum(counted.get(mode, 0) for mode in modes) + self.spec.sites.counted

    def ratios(self, group: str) -> FloatArray:
        """The free values of a group as positive ratios, see `plltool.model.vector`; none for CATEGORIES."""
        if group == "rates":
            return self._rates[self._design.is_free]
        if group == "frequencies":
            rows = self._frequencies[self.spec.free_rows] if self.spec.members else self._frequencies[None]
            return np.ravel(rows[:, :-1] / rows[:, -1:])
        if group == "class_weights":
            return self._class_weights[:-1] / self._class_weights[-1]
        if group == "switching":
            return self._switching
        if group == SCALER:
            return np.array([self._scaler])
        if group == CATEGORIES:
            return np.empty(0)
        return self._sites.ratios(group)

    def set_ratios(self, group: str, ratios: FloatArray) -> None:
        """Set the free values of a group from ratios, which are not checked."""
        if group == "rates":
            self._set_rates(self._design.with_reference(ratios))
        elif group == "frequencies" and self.spec.members:
            free = np.insert(ratios.reshape(len(self.spec.free_rows), -1), len(self.spec.symbols) - 1, 1.0, axis=1)
            self._frequencies = self._frequencies.copy()
            self._frequencies[self.spec.free_rows] = free / free.sum(axis=1, keepdims=True)
            self._forget()
        elif group == "frequencies":
            self.set_frequencies(np.append(ratios, 1.0) / (ratios.sum() + 1.0))
        elif group == "class_weights":
            self._class_weights = np.append(ratios, 1.0) / (ratios.sum() + 1.0)
        elif group == "switching":
            self._switching = ratios.copy()
        elif group == SCALER:
            self._scaler = float(ratios[0])
        else:
            self.set_sites(self._sites.with_ratios(group, ratios))

    def to_string(self) -> str:
        """The model with all current values in braces; `parse_model` reads it back with no free parameters."""
        spec = replace(self.spec, sites=self._sites)
        if spec.members:
            values = self.exchangeabilities.tolist(), self._frequencies.tolist(), spec.member_rates
            spec = replace(spec, name=mixtures.name_matrices(*values), members=(), member_rates=())
        elif self._design.n_free:
            spec = replace(spec, rates=tuple(self._rates.tolist()))
        if spec.weighs_classes:
            spec = replace(spec, class_weights=tuple(self._class_weights.tolist()))
        if spec.switching:
            spec = replace(spec, switch_rates=tuple(self._switching.tolist()))
        if spec.scaled:
            spec = replace(spec, scaler=self._scaler)
        if not (spec.is_directed or spec.has_frequencies_by_class) and (
            spec.frequency_mode not in ("equal", "model") or (self._frequencies != initial_frequencies(self.spec)).any()
        ):
            spec = replace(spec, frequency_mode="given", frequencies=tuple(self._frequencies.tolist()))
        return str(spec)

    def _set_rates(self, rates: FloatArray) -> None:
        self._rates = rates
        self._forget()
        if self.spec.is_directed:
            self._frequencies = substitution.frequencies_of_rates(self.exchangeabilities)


def solve_together(models: Sequence[Model]) -> None:
    """Make the eigensystems of models that have none yet: several models cost little more than one."""
    waiting: dict[int, list[Model]] = {}  # by the number of states
    for model in models:
        if model._systems is None and model._has_systems:
            waiting.setdefault(len(model.spec.symbols), []).append(model)
    for alike in waiting.values():
        processes = [model._processes() for model in alike]
        systems = substitution.eigensystem(*(np.concatenate(stack) for stack in zip(*processes, strict=True)))
        ends = np.cumsum([len(frequencies) for _, frequencies in processes])
        stacks = (np.split(stack, ends[:-1]) for stack in systems)
        for model, values, right, left in zip(alike, *stacks, strict=True):
            model._systems = values, right, left
