"""Prior distributions of numbers, with the text that names each.

A prior is written as in MrBayes' commands, `exponential(10)`, and `parse_prior` reads what `str` writes.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from plltool.analyses.sampling.tree import Topology
from plltool.arrays import FloatArray
from plltool.errors import InputError, shorten, show_name

FARTHEST = 25.0  # below the middle, of the logarithm of a density at which chains begin
LEAST_IN_PRIOR, MOST_IN_PRIOR = 1e-10, 1e10  # numbers of a distribution; densities of others overflow


def near(prior: Any, value: float) -> float:
    """A value, or a likely one if its density is very small; of a number, or of what else has these methods."""
    return value if prior.log_density(value) > prior.log_density(prior.middle) - FARTHEST else float(prior.middle)


class Prior:
    """A distribution; a subclass has its values as fields."""

    example: ClassVar[str]  # how users write it

    @classmethod
    def form(cls) -> str:
        """Its name."""
        return cls.example.partition("(")[0]

    middle: ClassVar[Any] = None  # of a number, a likely one

    def __str__(self) -> str:
        values = np.hstack(list(vars(self).values())).tolist()
        return f"{self.form()}({','.join(map(repr, values))})"


@dataclass(frozen=True)
class Exponential(Prior):
    """A positive number with density rate exp(-rate x), or several independent lengths."""

    example = "exponential(10)"
    rate: float
    middle = property(lambda self: 1.0 / self.rate)

    def log_density(self, value: float) -> float:
        return math.log(self.rate) - self.rate * value if value > 0 else -math.inf

    def slope(self, value: float) -> float:
        """That of the logarithm of the density, wherever it is not 0."""
        return -self.rate

    def log_density_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> float:
        """The value for all branch lengths (n_nodes,)."""
        return (len(lengths) - 1) * math.log(self.rate) - self.rate * math.fsum(lengths)

    def powers_of_lengths(self, n_taxa: int) -> tuple[float, float, float]:
        """The powers in the density of the lengths of tips' branches and of inner ones, and of the tree's length."""
        return 0.0, 0.0, 0.0

    def slopes_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> FloatArray:
        """(n_nodes - 1,) the slope of the logarithm of the density in the length above each node but tip 0."""
        return np.full(len(lengths) - 1, -self.rate)


@dataclass(frozen=True)
class Uniform(Prior):
    """A number between two bounds."""

    example = "uniform(0,1)"
    low: float
    high: float
    middle = property(lambda self: (self.low + self.high) / 2.0)

    def log_density(self, value: float) -> float:
        return -math.log(self.high - self.low) if self.low < value < self.high else -math.inf

    def slope(self, value: float) -> float:
        return 0.0


@dataclass(frozen=True)
class LogNormal(Prior):
    """A positive number whose logarithm is normal with this mean and standard deviation."""

    example = "lognormal(-7,3)"
    mean: float
    deviation: float
    middle = property(lambda self: math.exp(self.mean))

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
    middle = property(lambda self: self.shape / self.rate)

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
    middle = property(lambda self: self.mean)

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

    def powers_of_lengths(self, n_taxa: int) -> tuple[float, float, float]:
        inner = self.at_tips * self.ratio
        return self.at_tips - 1.0, inner - 1.0, self.shape - n_taxa * self.at_tips - (n_taxa - 3) * inner

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
