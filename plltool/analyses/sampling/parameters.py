"""The parameters of models that are sampled."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from plltool.alignment.spaces import CODON, genetic_code_of
from plltool.analyses.sampling.priors import Dirichlet, NumberPrior, Uniform
from plltool.arrays import FloatArray
from plltool.constants import MIN_ALPHA
from plltool.errors import InputError
from plltool.model.model import SCALER, Model
from plltool.model.vector import ratio_limits

MIN_SHARE = 1e-6  # of a frequency or rate that is sampled; beyond it P matrices lose digits
MIN_SAMPLED_PINV = 1e-10  # of sites, and of those that vary
# kinds of parameters, by the names of their priors
RATES, FREQUENCIES, ALPHA, PINV, WEIGHTS, FREE_RATES = "rates", "frequencies", "alpha", "pinv", "weights", "free_rates"
RATIOS, SWITCHING, PART_RATES = "ratios", "switching", "part_rates"
SHARES = (RATES, FREQUENCIES, WEIGHTS, FREE_RATES, PART_RATES)  # their values sum to 1
FACTORS = (CODON, RATIOS, SWITCHING)  # their values are positive numbers, which are independent in the prior
LIMITS = {ALPHA: (MIN_ALPHA, math.inf), PINV: (MIN_SAMPLED_PINV, 1.0 - MIN_SAMPLED_PINV)}

Value: TypeAlias = FloatArray | float


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter of the model of one part.

    The rates of a model are those of its classes of equal exchangeabilities, scaled to sum 1, so that GTR has six and
    HKY two; with two, a Dirichlet prior is a beta distribution of kappa / (kappa + 1). Likewise free rates are scaled
    to sum 1; they increase, unless each has a matrix of its own. Omega and the kappas of a codon model are one
    parameter, and so are other rates that are no classes.
    """

    kind: str  # the name of its prior; one of SHARES or FACTORS, ALPHA or PINV
    group: str  # the group of `Model.free_parameters` to which it belongs
    first: int  # the place of its first number in `Model.ratios(group)`
    part: int  # number of the part
    name: str  # for people
    columns: tuple[str, ...]  # the names of the values that a table of samples has
    size: int  # number of values; 1 for ALPHA and PINV
    prior: Dirichlet | NumberPrior  # its distribution
    limits: FloatArray | None = None  # (size, 2) bounds of the values, unless they are shares
    is_ordered: bool = False  # whether the values increase, because the likelihood is the same in any order

    @property
    def n_coordinates(self) -> int:
        """The number of free values."""
        return self.size - (self.kind in SHARES)

    @property
    def parts(self) -> Sequence[int]:
        """The parts whose models have it."""
        return (self.part,)

    def value_of(self, models: Sequence[Model]) -> Value:
        """The value in the models of all parts."""
        model = models[self.part]
        if self.kind == RATES:
            rates = model.spec.named.rates.with_reference(model.ratios(RATES))
            return np.asarray(rates / rates.sum())
        if self.kind in LIMITS or (self.kind == FREQUENCIES and not model.spec.members):
            found: Value = getattr(model, self.kind)
            return found
        ratios = model.ratios(self.group)[self.first : self.first + self.n_coordinates]
        if self.kind in FACTORS:
            return ratios.copy()
        shares = np.append(ratios, 1.0)
        return np.asarray(shares / shares.sum())

    def start_in(self, models: Sequence[Model]) -> Value:
        """The value in the models, or one near it whose prior density is not 0."""
        value = self.value_of(models)
        if self.log_prior(value) > -math.inf:
            return value
        if self.limits is None:
            return np.asarray((value + 1.0 / self.size) / 2.0)
        middle = self.limits[:, 0] + (self.limits[:, 1] - self.limits[:, 0]) / 2.0
        return middle if self.kind in FACTORS else float(middle[0])

    def assign(self, value: Value, models: Sequence[Model]) -> None:
        """Give the models this value."""
        model = models[self.part]
        if self.kind == RATES:
            design = model.spec.named.rates
            model.set_ratios(RATES, design.relative(np.asarray(value))[design.is_free])
        elif self.kind in LIMITS:
            changed: Any = {self.kind: float(value)}
            model.set_sites(replace(model.sites, **changed))
        elif self.kind == FREQUENCIES and not model.spec.members:
            model.set_frequencies(value)
        else:
            values, ratios = np.asarray(value), model.ratios(self.group).copy()
            own = values if self.kind in FACTORS else values[:-1] / values[-1]
            ratios[self.first : self.first + self.n_coordinates] = own
            model.set_ratios(self.group, ratios)

    def is_possible(self, value: Value) -> bool:
        """Whether models can have the value; other values have the prior density 0."""
        if self.limits is None:
            return bool(np.min(value) >= MIN_SHARE) and not (self.is_ordered and np.any(np.diff(value) <= 0.0))
        return bool(np.all((value >= self.limits[:, 0]) & (value <= self.limits[:, 1])))

    def log_prior(self, value: Value) -> float:
        """The logarithm of the prior density; -inf where the value is impossible."""
        if self.kind in FACTORS and self.is_possible(value):
            return math.fsum(map(self.prior.log_density, np.asarray(value).tolist()))
        if not self.is_possible(value):
            return -math.inf
        orders = math.lgamma(self.size + 1.0) if self.is_ordered else 0.0  # of which one is taken
        return self.prior.log_density(value) + orders  # type: ignore[arg-type]

    def shown(self, models: Sequence[Model]) -> list[float]:
        """The numbers in the columns: shares of all pairs of states, which sum to 1, or kappa; free rates of mean 1."""
        model = models[self.part]
        if self.kind == RATES:
            rates = model.exchangeabilities
            return [float(rates[1] / rates[0])] if len(self.columns) == 1 else (rates / rates.sum()).tolist()
        if self.kind == FREE_RATES:
            return list(model.sites.rates or ())
        return np.ravel(self.value_of(models)).tolist()


@dataclass(frozen=True, eq=False)
class PartRates(Parameter):
    """The rates of all parts, whose mean over sites is 1: for each part its share of all substitutions."""

    sites: FloatArray = field(default_factory=lambda: np.empty(0))  # (size,) each part's share of the sites

    @property
    def parts(self) -> Sequence[int]:
        return range(self.size)

    def value_of(self, models: Sequence[Model]) -> Value:
        products = self.sites * self.shown(models)
        return np.asarray(products / products.sum())

    def assign(self, value: Value, models: Sequence[Model]) -> None:
        for model, rate in zip(models, np.asarray(value) / self.sites, strict=True):
            model.set_ratios(SCALER, np.array([rate]))

    def shown(self, models: Sequence[Model]) -> list[float]:
        return [model.scaler for model in models]


def find_parameters(
    models: Sequence[Model], priors: Mapping[str, Any], n_sites: Sequence[float] = ()
) -> list[Parameter]:
    """The free parameters of the models, part by part, and the rates of parts if lengths are scaled.

    `n_sites` has the number of sites of each part, for scaled lengths. Raises InputError if a model has a process that
    is not time-reversible, per-site rates, a scaler that others lack or a correction for ascertainment bias, or if a
    prior is for another number of shares or for impossible values only.
    """
    found = []
    is_scaled = len(models) > 1 and all(SCALER in model.free_parameters for model in models)
    for part, model in enumerate(models):
        _refuse_others(model, is_scaled)
        suffix = f"{{{part + 1}}}" if len(models) > 1 else ""
        for group in (group for group in model.free_parameters if group != SCALER):
            first = 0
            for kind, name, columns in _forms_of(group, model):
                size = model.spec.named.rates.n_parameters if kind == RATES else len(columns)
                shown = tuple(column + suffix for column in columns)
                is_ordered = kind == FREE_RATES and not model.spec.is_tied
                own = Parameter(kind, group, first, part, name, shown, size, priors[kind], None, is_ordered)
                found.append(_with_limits(own, model))
                first += own.n_coordinates
    if is_scaled:
        names, shares = tuple(f"m{{{part + 1}}}" for part in range(len(models))), np.array(n_sites) / sum(n_sites)
        more = priors[PART_RATES], None, False, shares
        own = PartRates(PART_RATES, SCALER, 0, 0, "rates of partitions", names, len(models), *more)
        found.append(_with_limits(own, models[0]))
    return found


def _with_limits(own: Parameter, model: Model) -> Parameter:
    """The parameter with the bounds of its values, which a uniform prior may narrow; errors as in `find_parameters`."""
    prior = own.prior
    if isinstance(prior, Dirichlet):
        if len(prior.concentrations) not in (1, own.size):
            wanted = f"1 or {own.size} for model {model.spec.shown}"
            raise InputError(f"prior of {own.kind}: found {len(prior.concentrations)} values, expected {wanted}")
        return own
    limits = np.array([LIMITS[own.kind]]) if own.kind in LIMITS else ratio_limits(model, own.group)
    low, high = limits.T
    if isinstance(prior, Uniform):
        low, high = np.maximum(low, prior.low), np.minimum(high, prior.high)
    if not np.all(low < high):
        least, most = limits[np.argmax(low >= high)].tolist()
        expected = f"above {least:g}" if math.isinf(most) else f"from {least:g} to {most:g}"
        raise InputError(f"prior of {own.kind}: found {prior}, expected values {expected}")
    return replace(own, limits=np.column_stack([low, high]))


def _forms_of(group: str, model: Model) -> list[tuple[str, str, list[str]]]:
    """Kind, name and columns of each parameter of a group, in the order of `Model.ratios`.

    Columns are named as in the files of MrBayes where it has them.
    """
    design, symbols = model.spec.named.rates, model.spec.symbols
    if group == RATES and design.class_of_pair is not None:
        columns = [f"r({a}<->{b})" for i, a in enumerate(symbols) for b in symbols[i + 1 :]]
        is_kappa = design.n_parameters == 2 and model.spec.name in ("HKY", "K80")
        return [(RATES, RATES, ["kappa"] if is_kappa else columns)]
    if group == RATES:
        names = design.names or _numbered("ratio", design.n_parameters)
        kind = RATIOS if genetic_code_of(model.spec.named.data) is None else CODON
        return [(kind, kind, [name for name, is_free in zip(names, design.is_free, strict=True) if is_free])]
    if group == FREQUENCIES and model.spec.members:
        rows = [row + 1 for row in model.spec.free_rows]
        return [(FREQUENCIES, f"frequencies of class {n}", [f"pi{n}({symbol})" for symbol in symbols]) for n in rows]
    if group == FREQUENCIES:
        return [(FREQUENCIES, FREQUENCIES, [f"pi({symbol})" for symbol in symbols])]
    if group == SWITCHING:
        return [(SWITCHING, "switching rates", ["s(off->on)", "s(on->off)"])]
    if group in LIMITS:
        return [(group, group, ["pinvar" if group == PINV else group])]
    if group == FREE_RATES:
        n = model.sites.n_categories
        return [(FREE_RATES, "free rates", _numbered("rate", n)), (WEIGHTS, "weights of rates", _numbered("weight", n))]
    return [(WEIGHTS, "weights of classes", _numbered("class", len(model.ratios(group)) + 1))]


def _numbered(name: str, n: int) -> list[str]:
    return [f"{name}({number})" for number in range(1, n + 1)]


def _refuse_others(model: Model, is_scaled: bool) -> None:
    """Raise InputError for a model with which sampling cannot deal."""
    spec = model.spec
    found = {
        "a process that is not time-reversible": spec.is_directed or not spec.is_reversible,
        "per-site rates (+PSR)": model.has_site_rates,
        "a correction for ascertainment bias": spec.ascertainment is not None,
        "a scaler of branch lengths": SCALER in model.free_parameters and not is_scaled,
    }
    for what, is_there in found.items():
        if is_there:
            wanted = "which sampling cannot use, expected a time-reversible model without it"
            raise InputError(f"model {spec.shown}: found {what}, {wanted}")
