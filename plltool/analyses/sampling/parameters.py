"""The parameters of models that are sampled, with their prior distributions and the text that names these.

A prior is written as in MrBayes' commands, `exponential(10)`, and `parse_prior` reads what `str` writes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from plltool.alignment.spaces import CODON, genetic_code_of
from plltool.analyses.sampling.tree import Topology
from plltool.arrays import FloatArray
from plltool.constants import MIN_ALPHA
from plltool.errors import InputError, shorten, show_name
from plltool.model.model import Model

LEAST_IN_PRIOR, MOST_IN_PRIOR = 1e-10, 1e10  # numbers of a distribution; densities of others overflow


class Prior:
    """A distribution; a subclass has its values as fields."""

    example: ClassVar[str]  # how users write it

    @classmethod
    def form(cls) -> str:
        """Its name."""
        return cls.example.partition("(")[0]

    def __str__(self) -> str:
        values = np.hstack(list(vars(self).values())).tolist()
        return f"{self.form()}({','.join(map(repr, values))})"


@dataclass(frozen=True)
class Exponential(Prior):
    """A positive number with density rate exp(-rate x), or several independent lengths."""

    example = "exponential(10)"
    rate: float

    def log_density(self, value: float) -> float:
        return math.log(self.rate) - self.rate * value if value > 0 else -math.inf

    def slope(self, value: float) -> float:
        """That of the logarithm of the density, wherever it is not 0."""
        return -self.rate

    def near(self, value: float) -> float:
        """A number near a value whose density is not 0."""
        return value if value > 0 else 1.0 / self.rate

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.exponential(1.0 / self.rate))

    def log_density_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> float:
        """The value for all branch lengths (n_nodes,)."""
        return (len(lengths) - 1) * math.log(self.rate) - self.rate * math.fsum(lengths)

    def slopes_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> FloatArray:
        """(n_nodes - 1,) the slope of the logarithm of the density in the length above each node but tip 0."""
        return np.full(len(lengths) - 1, -self.rate)

    def draw_lengths(self, topology: Topology, rng: np.random.Generator) -> list[float]:
        """(n_nodes,) lengths of all branches, 0 for tip 0."""
        return [0.0, *rng.exponential(1.0 / self.rate, topology.n_nodes - 1).tolist()]


@dataclass(frozen=True)
class Uniform(Prior):
    """A number between two bounds."""

    example = "uniform(0,1)"
    low: float
    high: float

    def log_density(self, value: float) -> float:
        return -math.log(self.high - self.low) if self.low < value < self.high else -math.inf

    def slope(self, value: float) -> float:
        return 0.0

    def near(self, value: float) -> float:
        return value if self.low < value < self.high else (self.low + self.high) / 2.0

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.uniform(self.low, self.high))


@dataclass(frozen=True)
class LogNormal(Prior):
    """A positive number whose logarithm is normal with this mean and standard deviation."""

    example = "lognormal(-7,3)"
    mean: float
    deviation: float

    def log_density(self, value: float) -> float:
        if value <= 0:
            return -math.inf
        score = (math.log(value) - self.mean) / self.deviation
        return -score * score / 2.0 - math.log(value * self.deviation * math.sqrt(2.0 * math.pi))

    def slope(self, value: float) -> float:
        return -((math.log(value) - self.mean) / self.deviation**2 + 1.0) / value

    def near(self, value: float) -> float:
        return value if value > 0 else math.exp(self.mean)

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.lognormal(self.mean, self.deviation))


@dataclass(frozen=True)
class Gamma(Prior):
    """A positive number with this shape and rate, so that its mean is shape / rate."""

    example = "gamma(1,0.1)"
    shape: float
    rate: float

    def log_density(self, value: float) -> float:
        if value <= 0:
            return -math.inf
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + (self.shape - 1.0) * math.log(value) - self.rate * value

    def slope(self, value: float) -> float:
        return (self.shape - 1.0) / value - self.rate

    def near(self, value: float) -> float:
        return value if value > 0 else self.shape / self.rate

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.gamma(self.shape, 1.0 / self.rate))


@dataclass(frozen=True)
class Normal(Prior):
    """A number with this mean and standard deviation."""

    example = "normal(0,1)"
    mean: float
    deviation: float

    def log_density(self, value: float) -> float:
        score = (value - self.mean) / self.deviation
        return -score * score / 2.0 - math.log(self.deviation * math.sqrt(2.0 * math.pi))

    def slope(self, value: float) -> float:
        return -(value - self.mean) / self.deviation**2

    def near(self, value: float) -> float:
        return value

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.normal(self.mean, self.deviation))


@dataclass(frozen=True)
class Dirichlet(Prior):
    """Shares that sum to 1; a single concentration holds for all shares."""

    example = "dirichlet(1)"
    concentrations: tuple[float, ...]

    def of_size(self, size: int) -> FloatArray:
        """(size,) the concentration of each share."""
        return np.full(size, self.concentrations)

    def log_density(self, shares: FloatArray) -> float:
        if self.concentrations == (1.0,):  # the default, which is uniform
            return math.lgamma(len(shares))
        return log_dirichlet(shares, self.of_size(len(shares)))

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.dirichlet(self.of_size(size))


@dataclass(frozen=True)
class GammaDirichlet(Prior):
    """Branch lengths: a gamma distribution of the tree's length, which a Dirichlet distribution divides.

    The length T has shape `shape` and rate `rate`. The Dirichlet distribution has the concentration a at the branches
    of tips and a c at inner branches, so c is the ratio of the mean lengths of inner branches and those of tips:
    f(b) = rate^shape / Gamma(shape) exp(-rate T) Gamma(K) / prod_i Gamma(k_i) T^(shape - K) prod_i b_i^(k_i - 1),
    where k_i is the concentration at branch i and K the sum of all (Rannala, Zhu & Yang 2012, equation 36; Zhang,
    Rannala & Yang 2012).
    """

    example = "gammadir(1,0.1,1,1)"
    shape: float
    rate: float
    at_tips: float
    ratio: float

    def log_density_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> float:
        n_tips, n_inner = topology.n_taxa, topology.n_taxa - 3
        inner = self.at_tips * self.ratio
        whole = n_tips * self.at_tips + n_inner * inner
        length = math.fsum(lengths)
        density = (
            self.shape * math.log(self.rate)
            - math.lgamma(self.shape)
            - self.rate * length
            + math.lgamma(whole)
            - n_tips * math.lgamma(self.at_tips)
            - n_inner * math.lgamma(inner)
            + (self.shape - whole) * math.log(length)
        )
        if self.at_tips != 1.0 or inner != 1.0:
            powers = self._concentrations(topology)
            density += math.fsum((powers[node] - 1.0) * math.log(lengths[node]) for node in range(1, len(lengths)))
        return density

    def slopes_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> FloatArray:
        powers, at = np.array(self._concentrations(topology)[1:]), np.array(lengths[1:])
        return (powers - 1.0) / at + (self.shape - powers.sum()) / at.sum() - self.rate

    def draw_lengths(self, topology: Topology, rng: np.random.Generator) -> list[float]:
        shares = rng.dirichlet(self._concentrations(topology)[1:])
        return [0.0, *(rng.gamma(self.shape, 1.0 / self.rate) * shares).tolist()]

    def _concentrations(self, topology: Topology) -> list[float]:
        """(n_nodes,) the value for the branch above each node."""
        n_taxa = topology.n_taxa
        values = [self.at_tips] * n_taxa + [self.at_tips * self.ratio] * (n_taxa - 2)
        values[topology.top] = self.at_tips
        return values


def log_dirichlet(shares: FloatArray, concentrations: FloatArray) -> float:
    """The logarithm of the density of a Dirichlet distribution over all shares but the last."""
    powers = concentrations.tolist()
    terms = [
        (power - 1.0) * math.log(share) - math.lgamma(power)
        for share, power in zip(shares.tolist(), powers, strict=True)
    ]
    return math.lgamma(math.fsum(powers)) + math.fsum(terms)


LengthPrior: TypeAlias = Exponential | GammaDirichlet
NumberPrior: TypeAlias = Exponential | Uniform | LogNormal | Gamma | Normal

_ALL = Exponential, Uniform, LogNormal, Gamma, Normal, Dirichlet, GammaDirichlet
FORMS: dict[str, type[Any]] = {own.form(): own for own in _ALL}


def parse_prior(text: str, what: str, allowed: Sequence[str]) -> Prior:
    """The prior that a text names.

    Raises InputError if the text names no distribution that is `allowed`, or its values are not such as it takes.

    what : what it is the prior of, for errors
    allowed : names of distributions
    """
    expected = " or ".join(FORMS[name].example for name in allowed)
    found = re.fullmatch(r"\s*([a-z]+)\s*\(([^()]*)\)\s*", text.lower())
    if found is None or found[1] not in allowed:
        raise InputError(f"prior of {what}: found {show_name(text)}, expected {expected}")
    form = FORMS[found[1]]
    words = [word.strip() for word in found[2].split(",")]
    shown = shorten(",".join(words))
    try:
        values = tuple(map(float, words))
    except ValueError:
        raise InputError(f"prior of {what}: found {show_name(text)}, expected numbers, as in {form.example}") from None
    size = form.example.count(",") + 1
    if form is not Dirichlet and len(values) != size:
        found_values = f"found {len(values)} values of {form.form()}"
        raise InputError(f"prior of {what}: {found_values}, expected {size}, as in {expected}")
    if form is Uniform:
        if not 0.0 <= values[0] < values[1] <= MOST_IN_PRIOR:
            wanted = f"two ascending numbers from 0 to {MOST_IN_PRIOR:g}"
            raise InputError(f"prior of {what}: found bounds {shown}, expected {wanted}")
    elif form in (LogNormal, Normal):
        if not (abs(values[0]) <= MOST_IN_PRIOR and LEAST_IN_PRIOR <= values[1] <= MOST_IN_PRIOR):
            raise InputError(f"prior of {what}: found {shown}, expected a mean and a positive standard deviation")
    elif not all(LEAST_IN_PRIOR <= value <= MOST_IN_PRIOR for value in values):
        wanted = f"positive numbers from {LEAST_IN_PRIOR:g} to {MOST_IN_PRIOR:g}"
        raise InputError(f"prior of {what}: found {shown}, expected {wanted}")
    return Dirichlet(values) if form is Dirichlet else form(*values)


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
    limits: FloatArray | None = None  # (size, 2) bounds of the values of a codon model

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
        if self.kind in SHARES:
            return np.asarray((value + 1.0 / self.size) / 2.0)
        low, high = self.bounds
        return low + (high - low) / 2.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which a number is possible and has a prior density; descending if none has."""
        low, high = LIMITS[self.kind]
        if isinstance(self.prior, Uniform):
            return max(low, self.prior.low), min(high, self.prior.high)
        return low, high

    def check_prior(self) -> None:
        """Raise InputError if the prior only has impossible values."""
        if self.kind not in LIMITS or self.bounds[0] < self.bounds[1]:
            return
        least, most = LIMITS[self.kind]
        expected = f"above {least:g}" if math.isinf(most) else f"between {least:g} and 1 - {least:g}"
        raise InputError(f"prior of {self.kind}: found {self.prior}, expected values {expected}")

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
        if self.kind in SHARES:
            return bool(np.min(value) >= MIN_SHARE)
        if self.limits is not None:
            return bool(np.all((value >= self.limits[:, 0]) & (value <= self.limits[:, 1])))
        low, high = LIMITS[self.kind]
        return bool(low <= value <= high)

    def log_prior(self, value: Value) -> float:
        """The logarithm of the prior density; -inf where the value is impossible."""
        if self.kind == CODON and self.is_possible(value):
            return math.fsum(map(self.prior.log_density, np.asarray(value).tolist()))
        return self.prior.log_density(value) if self.is_possible(value) else -math.inf  # type: ignore[arg-type]

    def draw(self, rng: np.random.Generator) -> Value:
        """A value from the prior."""
        while True:
            if isinstance(self.prior, Dirichlet):
                value: Value = self.prior.draw(rng, self.size)
            elif self.kind == CODON:
                value = np.array([self.prior.draw(rng) for _ in range(self.size)])
            else:
                value = self.prior.draw(rng)
            if self.is_possible(value):
                return value

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
            if isinstance(prior, Dirichlet) and len(prior.concentrations) not in (1, size):
                wanted = f"1 or {size} for model {model.spec.shown}"
                raise InputError(f"prior of {kind}: found {len(prior.concentrations)} values, expected {wanted}")
            columns = tuple(name + suffix for name in _column_names(kind, model))
            found.append(Parameter(kind, part, size, prior, columns, limits))
            found[-1].check_prior()
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
