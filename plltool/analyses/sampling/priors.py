"""Prior distributions of numbers, with the text that names each, and of trees in time: coalescents.

A prior is written as in MrBayes' commands, `exponential(10)`, and `parse_prior` reads what `str` writes.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from plltool.analyses.sampling.tree import Topology
from plltool.arrays import FloatArray
from plltool.errors import InputError, shorten, show_name

LEAST_IN_PRIOR, MOST_IN_PRIOR = 1e-10, 1e10  # numbers of a distribution; densities of others overflow


class Prior:
    """A distribution; a subclass has its values as fields."""

    example: ClassVar[str]  # how users write it

    @classmethod
    def form(cls) -> str:
        """Its name."""
        return cls.example.partition("(")[0]

    def near(self, value: float) -> float:
        """A number near a possible value, positive where all are, whose density is not 0."""
        return value

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

    def log_density_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> float:
        """The value for all branch lengths (n_nodes,)."""
        return (len(lengths) - 1) * math.log(self.rate) - self.rate * math.fsum(lengths)

    def slopes_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> FloatArray:
        """(n_nodes - 1,) the slope of the logarithm of the density in the length above each node but tip 0."""
        return np.full(len(lengths) - 1, -self.rate)


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
        density = self.shape * math.log(self.rate) - math.lgamma(self.shape) - self.rate * length
        density = density + math.lgamma(whole) - n_tips * math.lgamma(self.at_tips) - n_inner * math.lgamma(inner)
        density += (self.shape - whole) * math.log(length)
        if self.at_tips != 1.0 or inner != 1.0:
            powers = self._concentrations(topology)
            density += math.fsum((powers[node] - 1.0) * math.log(lengths[node]) for node in range(1, len(lengths)))
        return density

    def slopes_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> FloatArray:
        powers, at = np.array(self._concentrations(topology)[1:]), np.array(lengths[1:])
        return (powers - 1.0) / at + (self.shape - powers.sum()) / at.sum() - self.rate

    def _concentrations(self, topology: Topology) -> list[float]:
        """(n_nodes,) the value for the branch above each node."""
        n_taxa = topology.n_taxa
        values = [self.at_tips] * n_taxa + [self.at_tips * self.ratio] * (n_taxa - 2)
        values[topology.top] = self.at_tips
        return values


def log_dirichlet(shares: FloatArray, concentrations: FloatArray) -> float:
    """The logarithm of the density of a Dirichlet distribution over all shares but the last."""
    powers = concentrations.tolist()
    pairs = zip(shares.tolist(), powers, strict=True)
    terms = [(power - 1.0) * math.log(share) - math.lgamma(power) for share, power in pairs]
    return math.lgamma(math.fsum(powers)) + math.fsum(terms)


LengthPrior: TypeAlias = Exponential | GammaDirichlet
NumberPrior: TypeAlias = Exponential | Uniform | LogNormal | Gamma | Normal

FORMS: dict[str, type[Any]] = {own.form(): own for own in Prior.__subclasses__()}


def parse_prior(text: str, what: str, allowed: Sequence[str]) -> Prior:
    """The prior that a text names, one of the distributions `allowed`; errors say of `what` it is.

    Raises InputError if the text names no such distribution, or its values are not such as it takes.
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


# log N, L and d log N / dt at some heights (n,), and slopes of the first two in the coordinates of K numbers, (K, n)
Population: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


class TreeDensity(NamedTuple):
    """The logarithm of the density of a tree, and its slopes."""

    value: float
    of_heights: FloatArray  # (n_inner,) in the heights of inner nodes
    of_numbers: FloatArray  # (K,) in the coordinates of numbers: the logarithm of a positive one, else the number


POP_SIZE = "popSize", True, "population"


class Coalescent(ABC):
    """A coalescent, whose population has the parameters `numbers`.

    Going back in time, each of the k (k - 1) / 2 pairs of the k lineages that are there meets with the rate 1 / N(t),
    where N is the effective population size times the length of a generation, in years (Kingman 1982); lineages of tips
    begin at their heights (Rodrigo & Felsenstein 1999). With L(t) for the integral of 1 / N from 0 to t, the density of
    a tree is prod_i 1 / N(h_i) exp(-sum_e w_e L(t_e)), i over inner nodes and e over all nodes. If k lineages are there
    above node e, w_e = -(k - 1) of a tip and k of an inner node: the change of k (k - 1) / 2 there.
    """

    # of each number: its column, whether it is positive, and its field of `ClockPriors`; "" if `log_prior` has it
    numbers: Sequence[tuple[str, bool, str]]

    @abstractmethod
    def population(self, times: FloatArray, numbers: Sequence[float]) -> Population:
        """The population at some heights (n,)."""

    def density(self, tips: FloatArray, inner: FloatArray, numbers: Sequence[float]) -> TreeDensity:
        """The density of a tree with tips and inner nodes at these heights."""
        times, n = np.concatenate([tips, inner]), len(tips)
        steps = np.where(np.arange(len(times)) < n, 1.0, -1.0)
        order = np.argsort(times, kind="stable")  # tips are the first of equal ones
        lineages = np.cumsum(steps[order])
        weights = np.empty_like(times)
        weights[order] = np.where(steps[order] > 0, 1.0 - lineages, lineages)
        log_sizes, integrals, growth, size_slopes, integral_slopes = self.population(times, numbers)
        value = -log_sizes[n:].sum() - weights @ integrals
        of_heights = -growth[n:] - weights[n:] * np.exp(-log_sizes[n:])
        of_numbers = -size_slopes[:, n:].sum(axis=1) - integral_slopes @ weights
        return TreeDensity(float(value), of_heights, of_numbers)

    def log_prior(self, numbers: Sequence[float]) -> tuple[float, FloatArray]:
        """The logarithm of the density of the numbers without another prior, with its slopes (K,)."""
        return 0.0, np.zeros(len(numbers))


class ConstantPopulation(Coalescent):
    """N(t) = N."""

    numbers = (POP_SIZE,)

    def population(self, times: FloatArray, numbers: Sequence[float]) -> Population:
        (size,) = numbers
        integrals, ones = times / size, np.ones_like(times)
        return (math.log(size) * ones, integrals, 0.0 * times, ones[None], -integrals[None])


LEAST_GROWTH = 1e-6  # times the height; below it the exponential is a parabola


class ExponentialGrowth(Coalescent):
    """N(t) = N exp(-g t), so L(t) = (exp(g t) - 1) / (g N); a negative g is a population that has shrunk."""

    numbers = (POP_SIZE, ("growthRate", False, "growth"))

    def population(self, times: FloatArray, numbers: Sequence[float]) -> Population:
        size, rate = numbers
        exponents = rate * times
        with np.errstate(all="ignore"):  # of numbers that are not chosen, or that lead out of all bounds
            is_small = np.abs(exponents) < LEAST_GROWTH
            means = np.where(is_small, 1.0 + exponents / 2.0, np.expm1(exponents) / exponents)
            slopes = np.where(is_small, 0.5 + exponents / 3.0, (np.exp(exponents) - means) / exponents)
            integrals, by_rate = times * means / size, times**2 * slopes / size
        ones = np.ones_like(times)
        of_numbers = np.array([ones, -times]), np.array([-integrals, by_rate])
        return (math.log(size) - exponents, integrals, -rate * ones, *of_numbers)


@dataclass(frozen=True)
class Skygrid(Coalescent):
    """log N is constant between points that divide the time up to a cutoff evenly, and beyond it (Gill et al. 2013).

    The first value has the prior of a population size; the differences between neighbours are normal with mean 0 and
    the precision as another number.
    """

    n_sizes: int
    cutoff: float

    @property
    def numbers(self) -> Sequence[tuple[str, bool, str]]:  # type: ignore[override]
        sizes = [(f"logPopSize{k + 1}", False, "" if k else "population") for k in range(self.n_sizes)]
        return [*sizes, ("precision", True, "grid_precision")]

    def population(self, times: FloatArray, numbers: Sequence[float]) -> Population:
        k, logs = self.n_sizes, np.array(numbers[:-1])
        width = self.cutoff / (k - 1)
        begins = width * np.arange(k)[:, None]
        within = np.clip(times[None] - begins, 0.0, np.where(np.arange(k)[:, None] < k - 1, width, np.inf))
        here = np.minimum(times / width, k - 1).astype(int)
        parts = within * np.exp(-logs)[:, None]
        is_here = (here[None] == np.arange(k)[:, None]).astype(float)
        none = np.zeros((1, len(times)))
        slopes = np.concatenate([is_here, none]), np.concatenate([-parts, none])
        return (logs[here], parts.sum(axis=0), 0.0 * times, *slopes)

    def log_prior(self, numbers: Sequence[float]) -> tuple[float, FloatArray]:
        steps, precision, slopes = np.diff(numbers[:-1]), numbers[-1], np.zeros(len(numbers))
        squares = float(steps @ steps)
        value = len(steps) / 2.0 * math.log(precision / (2.0 * math.pi)) - precision / 2.0 * squares
        slopes[:-2] += precision * steps
        slopes[1:-1] -= precision * steps
        slopes[-1] = len(steps) / 2.0 - precision / 2.0 * squares
        return value, slopes
