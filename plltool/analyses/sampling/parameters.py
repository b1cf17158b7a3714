"""The parameters of models that are sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from plltool.alignment.spaces import CODON, genetic_code_of
from plltool.analyses.sampling.priors import Dirichlet, NumberPrior, Uniform
from plltool.arrays import FloatArray
from plltool.constants import MIN_ALPHA
from plltool.errors import InputError
from plltool.model.model import Model

MIN_SHARE = 1e-6  # of a frequency or rate that is sampled; beyond it P matrices lose digits
MIN_SAMPLED_PINV = 1e-10  # of sites, and of those that vary
KINDS = RATES, FREQUENCIES, ALPHA, PINV = "rates", "frequencies", "alpha", "pinv"  # groups of `Model.free_parameters`
SHARES = (RATES, FREQUENCIES)  # kinds whose values sum to 1
LIMITS = {ALPHA: (MIN_ALPHA, math.inf), PINV: (MIN_SAMPLED_PINV, 1.0 - MIN_SAMPLED_PINV)}  # of the other kinds

Value: TypeAlias = FloatArray | float


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter of the model of one part.

    The rates of a model are those of its classes of equal exchangeabilities, scaled to sum 1, so that GTR has six and
    HKY two; with two, a Dirichlet prior is a beta distribution of kappa / (kappa + 1). Omega and the kappas of a codon
    model are one parameter, whose values are independent in the prior.
    """

    kind: str  # one of KINDS, which are attributes of models, but for the rates; or CODON for those of a codon model
    part: int  # number of the part
    size: int  # number of values; 1 unless they are shares or those of a codon model
    prior: Dirichlet | NumberPrior  # its distribution
    columns: tuple[str, ...]  # the names of the values that a table of samples has
    limits: FloatArray | None = None  # (size, 2) bounds of the values, unless they are shares

    @property
    def group(self) -> str:
        """The group of `Model.free_parameters` to which it belongs."""
        return RATES if self.kind == CODON else self.kind

    def value_of(self, model: Model) -> Value:
        """The value in a model."""
        if self.kind == RATES:
            rates = model.spec.named.rates.with_reference(model.ratios(RATES))
            return np.asarray(rates / rates.sum())
        if self.kind == CODON:
            return model.ratios(RATES).copy()
        found: Value = getattr(model, self.kind)
        return found

    def start_in(self, model: Model) -> Value:
        """The value in a model, or one near it whose prior density is not 0."""
        value = self.value_of(model)
        if self.log_prior(value) > -math.inf:
            return value
        if self.limits is None:
            return np.asarray((value + 1.0 / self.size) / 2.0)
        low, high = self.limits[0].tolist()
        return float(low + (high - low) / 2.0)

    def assign(self, value: Value, model: Model) -> None:
        """Give a model this value."""
        if self.kind == RATES:
            design = model.spec.named.rates
            model.set_ratios(RATES, design.relative(np.asarray(value))[design.is_free])
        elif self.kind == CODON:
            model.set_ratios(RATES, np.asarray(value))
        elif self.kind == FREQUENCIES:
            model.set_frequencies(value)
        else:
            changed: Any = {self.kind: float(value)}
            model.set_sites(replace(model.sites, **changed))

    def is_possible(self, value: Value) -> bool:
        """Whether models can have the value; other values have the prior density 0."""
        if self.limits is None:
            return bool(np.min(value) >= MIN_SHARE)
        return bool(np.all((value >= self.limits[:, 0]) & (value <= self.limits[:, 1])))

    def log_prior(self, value: Value) -> float:
        """The logarithm of the prior density; -inf where the value is impossible."""
        if self.kind == CODON and self.is_possible(value):
            return math.fsum(map(self.prior.log_density, np.asarray(value).tolist()))
        return self.prior.log_density(value) if self.is_possible(value) else -math.inf  # type: ignore[arg-type]

    def shown(self, model: Model) -> list[float]:
        """The numbers in the columns; rates are shares of all pairs of states, which sum to 1, or kappa."""
        if self.kind == RATES:
            rates = model.exchangeabilities
            return [float(rates[1] / rates[0])] if len(self.columns) == 1 else (rates / rates.sum()).tolist()
        return np.ravel(self.value_of(model)).tolist()


def find_parameters(models: Sequence[Model], priors: Mapping[str, Any]) -> list[Parameter]:
    """The free parameters of the models, part by part.

    Raises InputError if a model has free parameters of other kinds, a process that is not time-reversible, per-site
    rates or a correction for ascertainment bias, or if a prior is for another number of shares or for impossible values
    only.
    """
    found = []
    for part, model in enumerate(models):
        _refuse_others(model)
        suffix = f"{{{part + 1}}}" if len(models) > 1 else ""
        for kind in model.free_parameters:
            design = model.spec.named.rates
            size = {RATES: design.n_parameters, FREQUENCIES: len(model.spec.symbols)}.get(kind, 1)
            limits = None
            if kind == RATES and genetic_code_of(model.spec.named.data) is not None:
                assert design.limits is not None, "parameters with names have bounds"
                kind, size, limits = CODON, design.n_free, design.limits[design.is_free]
            prior = priors[kind]
            if kind in LIMITS:
                least, most = LIMITS[kind]
                low, high = (prior.low, prior.high) if isinstance(prior, Uniform) else (least, most)
                limits = np.array([[max(least, low), min(most, high)]])
                if not limits[0, 0] < limits[0, 1]:
                    expected = f"above {least:g}" if math.isinf(most) else f"between {least:g} and 1 - {least:g}"
                    raise InputError(f"prior of {kind}: found {prior}, expected values {expected}")
            if isinstance(prior, Dirichlet) and len(prior.concentrations) not in (1, size):
                wanted = f"1 or {size} for model {model.spec.shown}"
                raise InputError(f"prior of {kind}: found {len(prior.concentrations)} values, expected {wanted}")
            columns = tuple(name + suffix for name in _column_names(kind, model))
            found.append(Parameter(kind, part, size, prior, columns, limits))
    return found


def _column_names(kind: str, model: Model) -> list[str]:
    """As in the files of MrBayes."""
    if kind == CODON:
        design = model.spec.named.rates
        return [name for name, is_free in zip(design.names, design.is_free, strict=True) if is_free]
    if kind == RATES:
        if model.spec.named.rates.n_parameters == 2 and model.spec.name in ("HKY", "K80"):
            return ["kappa"]
        symbols = model.spec.symbols
        return [f"r({a}<->{b})" for i, a in enumerate(symbols) for b in symbols[i + 1 :]]
    if kind == FREQUENCIES:
        return [f"pi({symbol})" for symbol in model.spec.symbols]
    return [{ALPHA: "alpha", PINV: "pinvar"}[kind]]


def _refuse_others(model: Model) -> None:
    """Raise InputError for a model with which sampling cannot deal."""
    spec, name = model.spec, f"model {model.spec.shown}"
    expected = "expected a time-reversible one with +I or +G at most"
    others = [kind for kind in model.free_parameters if kind not in KINDS]
    if spec.is_directed or not spec.is_reversible:
        raise InputError(f"{name}: found a process that is not time-reversible, {expected}")
    if model.has_site_rates or spec.ascertainment is not None:
        what = "per-site rates (+PSR)" if model.has_site_rates else "a correction for ascertainment bias"
        raise InputError(f"{name}: found {what}, which sampling cannot use, {expected}")
    if others:
        raise InputError(f"{name}: found parameters that cannot be sampled ({', '.join(others)}), {expected}")
    if (
        RATES in model.free_parameters
        and spec.named.rates.class_of_pair is None
        and genetic_code_of(spec.named.data) is None
    ):
        wanted = "give them values in braces, or take a model with a rate for each pair of states"
        raise InputError(f"{name}: found rates that cannot be sampled; {wanted}")
