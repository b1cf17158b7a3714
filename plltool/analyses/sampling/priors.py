"""Prior distributions: their densities, and the text that names them.

A prior is written as in MrBayes' commands, `exponential(10)`, and `parse_prior` reads what `str` writes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from plltool.analyses.sampling.tree import Topology
from plltool.arrays import FloatArray
from plltool.constants import LEAST_IN_PRIOR, MOST_IN_PRIOR
from plltool.errors import InputError, shorten, show_name


@dataclass(frozen=True)
class Exponential:
    """Of a positive number, with density rate exp(-rate x); of several lengths, each by itself."""

    rate: float

    def log_density(self, value: float) -> float:
        return math.log(self.rate) - self.rate * value if value > 0 else -math.inf

    def slope(self) -> float:
        """That of the logarithm of the density, wherever it is not 0."""
        return -self.rate

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.exponential(1.0 / self.rate))

    def log_density_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> float:
        """Of all branch lengths (n_nodes,)."""
        return (len(lengths) - 1) * math.log(self.rate) - self.rate * math.fsum(lengths)

    def slopes_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> FloatArray:
        """(n_nodes - 1,) the slope of the logarithm of the density in the length above each node but tip 0."""
        return np.full(len(lengths) - 1, -self.rate)

    def draw_lengths(self, topology: Topology, rng: np.random.Generator) -> list[float]:
        """(n_nodes,) lengths of all branches, 0 for tip 0."""
        return [0.0, *rng.exponential(1.0 / self.rate, topology.n_nodes - 1).tolist()]

    def __str__(self) -> str:
        return f"exponential({self.rate!r})"


@dataclass(frozen=True)
class Uniform:
    """Of a number between two bounds."""

    low: float
    high: float

    def log_density(self, value: float) -> float:
        return -math.log(self.high - self.low) if self.low < value < self.high else -math.inf

    def slope(self) -> float:
        """That of the logarithm of the density, wherever it is not 0."""
        return 0.0

    def draw(self, rng: np.random.Generator) -> float:
        return float(rng.uniform(self.low, self.high))

    def __str__(self) -> str:
        return f"uniform({self.low!r},{self.high!r})"


@dataclass(frozen=True)
class Dirichlet:
    """Of shares that sum to 1; a single concentration is that of all shares."""

    concentrations: tuple[float, ...]

    def of_size(self, size: int) -> FloatArray:
        """(size,) the concentration of each share."""
        return np.broadcast_to(np.array(self.concentrations), (size,))

    def log_density(self, shares: FloatArray) -> float:
        if self.concentrations == (1.0,):  # the default, which is uniform
            return math.lgamma(len(shares))
        return log_dirichlet(shares, self.of_size(len(shares)))

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.dirichlet(self.of_size(size))

    def __str__(self) -> str:
        return f"dirichlet({','.join(map(repr, self.concentrations))})"


@dataclass(frozen=True)
class GammaDirichlet:
    """Of branch lengths: a gamma distribution of the tree's length, which a Dirichlet distribution divides.

    The length T has shape `shape` and rate `rate`. The Dirichlet distribution has the concentration a at the branches
    of tips and a c at inner branches, so c is the ratio of the mean lengths of inner branches and those of tips:
    f(b) = rate^shape / Gamma(shape) exp(-rate T) Gamma(K) / prod_i Gamma(k_i) T^(shape - K) prod_i b_i^(k_i - 1),
    where k_i is the concentration at branch i and K the sum of all (Rannala, Zhu & Yang 2012, equation 36; Zhang,
    Rannala & Yang 2012).
    """

    shape: float
    rate: float
    at_tips: float
    ratio: float

    def log_density_of_lengths(self, topology: Topology, lengths: Sequence[float]) -> float:
        """Of all branch lengths (n_nodes,)."""
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
        """(n_nodes - 1,) the slope of the logarithm of the density in the length above each node but tip 0."""
        powers, at = np.array(self._concentrations(topology)[1:]), np.array(lengths[1:])
        return (powers - 1.0) / at + (self.shape - powers.sum()) / at.sum() - self.rate

    def draw_lengths(self, topology: Topology, rng: np.random.Generator) -> list[float]:
        """(n_nodes,) lengths of all branches, 0 for tip 0."""
        shares = rng.dirichlet(self._concentrations(topology)[1:])
        return [0.0, *(rng.gamma(self.shape, 1.0 / self.rate) * shares).tolist()]

    def _concentrations(self, topology: Topology) -> list[float]:
        """(n_nodes,) that of the branch above each node."""
        n_taxa = topology.n_taxa
        values = [self.at_tips] * n_taxa + [self.at_tips * self.ratio] * (n_taxa - 2)
        values[topology.top] = self.at_tips
        return values

    def __str__(self) -> str:
        return f"gammadir({self.shape!r},{self.rate!r},{self.at_tips!r},{self.ratio!r})"


def log_dirichlet(shares: FloatArray, concentrations: FloatArray) -> float:
    """The logarithm of the density of a Dirichlet distribution over all shares but the last."""
    powers = concentrations.tolist()
    terms = [
        (power - 1.0) * math.log(share) - math.lgamma(power)
        for share, power in zip(shares.tolist(), powers, strict=True)
    ]
    return math.lgamma(math.fsum(powers)) + math.fsum(terms)


LengthPrior: TypeAlias = Exponential | GammaDirichlet
NumberPrior: TypeAlias = Exponential | Uniform
Prior: TypeAlias = Exponential | Uniform | Dirichlet | GammaDirichlet

_FORMS: dict[str, tuple[type[Prior], int | None]] = {  # by their names, with the number of values; None for any
    "exponential": (Exponential, 1),
    "uniform": (Uniform, 2),
    "dirichlet": (Dirichlet, None),
    "gammadir": (GammaDirichlet, 4),
}
_EXAMPLES = {
    "exponential": "exponential(10)",
    "uniform": "uniform(0,1)",
    "dirichlet": "dirichlet(1)",
    "gammadir": "gammadir(1,0.1,1,1)",
}


def parse_prior(text: str, what: str, allowed: Sequence[str]) -> Prior:
    """The prior that a text names.

    Parameters
    ----------
    what : what it is the prior of, for errors
    allowed : names of distributions

    Raises
    ------
    InputError
        If the text names no distribution that is `allowed`, or its values are not such as it takes.
    """
    expected = " or ".join(_EXAMPLES[name] for name in allowed)
    found = re.fullmatch(r"\s*([a-z]+)\s*\(([^()]*)\)\s*", text.lower())
    if found is None or found[1] not in allowed:
        raise InputError(f"prior of {what}: found {show_name(text)}, expected {expected}")
    name = found[1]
    form, size = _FORMS[name]
    words = [word.strip() for word in found[2].split(",")]
    shown = shorten(",".join(words))
    try:
        values = tuple(map(float, words))
    except ValueError:
        raise InputError(
            f"prior of {what}: found {show_name(text)}, expected numbers, as in {_EXAMPLES[name]}"
        ) from None
    if size is not None and len(values) != size:
        raise InputError(f"prior of {what}: found {len(values)} values of {name}, expected {size}, as in {expected}")
    if form is Uniform:
        if not 0.0 <= values[0] < values[1] <= MOST_IN_PRIOR:
            wanted = f"two ascending numbers from 0 to {MOST_IN_PRIOR:g}"
            raise InputError(f"prior of {what}: found bounds {shown}, expected {wanted}")
    elif not all(LEAST_IN_PRIOR <= value <= MOST_IN_PRIOR for value in values):
        wanted = f"positive numbers from {LEAST_IN_PRIOR:g} to {MOST_IN_PRIOR:g}"
        raise InputError(f"prior of {what}: found {shown}, expected {wanted}")
    return Dirichlet(values) if form is Dirichlet else form(*values)  # type: ignore[arg-type]
