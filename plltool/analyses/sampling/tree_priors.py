"""Priors of time trees: coalescents with a constant, an exponentially growing and a piecewise constant population.

Going back in time, each of the k (k - 1) / 2 pairs of the k lineages that are there meets with the rate 1 / N(t), where
N is the effective population size times the length of a generation, in years (Kingman 1982); lineages of tips begin at
their heights (Rodrigo & Felsenstein 1999). With L(t) for the integral of 1 / N from 0 to t, the density of a tree is
prod_i 1 / N(h_i) exp(-sum_e w_e L(t_e)), i over inner nodes and e over all nodes. If k lineages are there above node
e, w_e = -(k - 1) of a tip and k of an inner node: the change of k (k - 1) / 2 there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plltool.arrays import FloatArray


class Demography(NamedTuple):
    """A population at some heights (n,), and the slopes in the coordinates of its K numbers."""

    log_sizes: FloatArray  # (n,) log N
    integrals: FloatArray  # (n,) L
    growth: FloatArray  # (n,) d log N / dt
    log_size_slopes: FloatArray  # (K, n)
    integral_slopes: FloatArray  # (K, n)


class TreeDensity(NamedTuple):
    """The logarithm of the density of a tree, and its slopes."""

    value: float
    of_heights: FloatArray  # (n_inner,) in the heights of inner nodes
    of_numbers: FloatArray  # (K,) in the coordinates of numbers: the logarithm of a positive one, else the number


class Coalescent(ABC):
    """A coalescent; `numbers` are its parameters, as `names` has them."""

    names: tuple[str, ...]
    positive: tuple[bool, ...]  # which of them are

    @abstractmethod
    def population(self, times: FloatArray, numbers: Sequence[float]) -> Demography:
        """The population at some heights."""

    def density(self, tips: FloatArray, inner: FloatArray, numbers: Sequence[float]) -> TreeDensity:
        """The density of a tree with tips and inner nodes at these heights."""
        times, n = np.concatenate([tips, inner]), len(tips)
        steps = np.where(np.arange(len(times)) < n, 1.0, -1.0)
        order = np.argsort(times, kind="stable")  # tips are the first of equal ones
        lineages = np.cumsum(steps[order])
        weights = np.empty_like(times)
        weights[order] = np.where(steps[order] > 0, 1.0 - lineages, lineages)
        own = self.population(times, numbers)
        value = -own.log_sizes[n:].sum() - weights @ own.integrals
        of_heights = -own.growth[n:] - weights[n:] * np.exp(-own.log_sizes[n:])
        of_numbers = -own.log_size_slopes[:, n:].sum(axis=1) - own.integral_slopes @ weights
        return TreeDensity(float(value), of_heights, of_numbers)

    def log_prior(self, numbers: Sequence[float]) -> tuple[float, FloatArray]:
        """The logarithm of the density of the numbers without another prior, with its slopes (K,)."""
        return 0.0, np.zeros(len(numbers))


class ConstantPopulation(Coalescent):
    """N(t) = N."""

    names = ("popSize",)
    positive = (True,)

    def population(self, times: FloatArray, numbers: Sequence[float]) -> Demography:
        (size,) = numbers
        integrals, ones = times / size, np.ones_like(times)
        return Demography(math.log(size) * ones, integrals, 0.0 * times, ones[None], -integrals[None])


LEAST_GROWTH = 1e-6  # times the height; below it the exponential is a parabola


class ExponentialGrowth(Coalescent):
    """N(t) = N exp(-g t), so L(t) = (exp(g t) - 1) / (g N); a negative g is a population that has shrunk."""

    names = ("popSize", "growthRate")
    positive = (True, False)

    def population(self, times: FloatArray, numbers: Sequence[float]) -> Demography:
        size, rate = numbers
        exponents = rate * times
        with np.errstate(all="ignore"):  # of numbers that are not chosen, or that lead out of all bounds
            is_small = np.abs(exponents) < LEAST_GROWTH
            means = np.where(is_small, 1.0 + exponents / 2.0, np.expm1(exponents) / exponents)
            slopes = np.where(is_small, 0.5 + exponents / 3.0, (np.exp(exponents) - means) / exponents)
            integrals, by_rate = times * means / size, times**2 * slopes / size
        ones = np.ones_like(times)
        return Demography(
            math.log(size) - exponents,
            integrals,
            -rate * ones,
            np.array([ones, -times]),
            np.array([-integrals, by_rate]),
        )


@dataclass(frozen=True)
class Skygrid(Coalescent):
    """log N is constant between points that divide the time up to a cutoff evenly, and beyond it (Gill et al. 2013).

    The first value has the prior of a population size; the differences between neighbours are normal with mean 0 and
    the precision as another number.
    """

    n_sizes: int
    cutoff: float

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*(f"logPopSize{k + 1}" for k in range(self.n_sizes)), "precision")

    @property
    def positive(self) -> tuple[bool, ...]:  # type: ignore[override]
        return (*(False for _ in range(self.n_sizes)), True)

    def population(self, times: FloatArray, numbers: Sequence[float]) -> Demography:
        k, logs = self.n_sizes, np.array(numbers[:-1])
        width = self.cutoff / (k - 1)
        begins = width * np.arange(k)[:, None]
        within = np.clip(times[None] - begins, 0.0, np.where(np.arange(k)[:, None] < k - 1, width, np.inf))
        here = np.minimum(times / width, k - 1).astype(int)
        parts = within * np.exp(-logs)[:, None]
        is_here = (here[None] == np.arange(k)[:, None]).astype(float)
        none = np.zeros((1, len(times)))
        slopes = np.concatenate([is_here, none]), np.concatenate([-parts, none])
        return Demography(logs[here], parts.sum(axis=0), 0.0 * times, *slopes)

    def log_prior(self, numbers: Sequence[float]) -> tuple[float, FloatArray]:
        steps, precision, slopes = np.diff(numbers[:-1]), numbers[-1], np.zeros(len(numbers))
        squares = float(steps @ steps)
        value = len(steps) / 2.0 * math.log(precision / (2.0 * math.pi)) - precision / 2.0 * squares
        slopes[:-2] += precision * steps
        slopes[1:-1] -= precision * steps
        slopes[-1] = len(steps) / 2.0 - precision / 2.0 * squares
        return value, slopes
