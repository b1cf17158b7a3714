"""Prior distributions of trees in time: coalescents, and processes of birth and death with sampling."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import TREE_PRIORS
from plltool.errors import InputError, show_name

# log N, L and d log N / dt at some heights (n,), and slopes of the first two in the coordinates of K numbers, (K, n)
Population: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


class TreeDensity(NamedTuple):
    """The logarithm of the density of a tree, and its slopes."""

    value: float
    of_heights: FloatArray  # (n_inner,) in the heights of inner nodes
    of_numbers: FloatArray  # (K,) in the coordinates of numbers: the logarithm of a positive one, else the number


POP_SIZE = "popSize", True, "population"


class TreePrior(ABC):
    """The prior density of a tree in time, which has the parameters `numbers`."""

    # of each number: its column, whether it is positive, and its field of `ClockPriors`; "" if `log_prior` has it
    numbers: Sequence[tuple[str, bool, str]]
    needs_root = False  # whether the height of the root has a prior of its own

    @abstractmethod
    def density(self, tips: FloatArray, inner: FloatArray, numbers: Sequence[float]) -> TreeDensity:
        """The density of a tree with tips and inner nodes at these heights."""

    def log_prior(self, numbers: Sequence[float]) -> tuple[float, FloatArray]:
        """The logarithm of the density of the numbers without another prior, with its slopes (K,)."""
        return 0.0, np.zeros(len(numbers))


class Coalescent(TreePrior):
    """A coalescent, whose population has the parameters `numbers`.

    Going back in time, each of the k (k - 1) / 2 pairs of the k lineages that are there meets with the rate 1 / N(t),
    where N is the effective population size times the length of a generation, in years (Kingman 1982); lineages of tips
    begin at their heights (Rodrigo & Felsenstein 1999). With L(t) for the integral of 1 / N from 0 to t, the density of
    a tree is prod_i 1 / N(h_i) exp(-sum_e w_e L(t_e)), i over inner nodes and e over all nodes. If k lineages are there
    above node e, w_e = -(k - 1) of a tip and k of an inner node: the change of k (k - 1) / 2 there.
    """

    @abstractmethod
    def population(self, times: FloatArray, numbers: Sequence[float]) -> Population:
        """The population at some heights (n,)."""

    def density(self, tips: FloatArray, inner: FloatArray, numbers: Sequence[float]) -> TreeDensity:
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


@dataclass(frozen=True)
class BirthDeath(TreePrior):
    """Lineages split with the rate b, die with the rate d, and are sampled, which ends them, with the rate s.

    Those that exist at height 0 are sampled with the probability p. The numbers are b - d, d / b (0 without it: a Yule
    process), and s (0 if all tips are at height 0). The density is that of the tree of the samples with labels in any
    order, given the height x of its root and samples on both sides of it (Stadler 2010; for s = 0 Gernhard 2008): with
    n tips, of which m are at height 0 and sampled there (none if p is 0), the others at heights y_j, and inner nodes at
    x_i, it is 2^(n-1) / n! b^(n-2) p^m s^(n-m) g(x) / (1 - e(x))^2 prod_i g(x_i) / prod_j g(y_j).
    Here e(t) is the probability that a lineage at height t has no samples, and g(t) the density that it leads to a
    given place at height 0 without other samples. With a = b - d - s, c^2 = a^2 + 4 b s, k = c - a + 2 b p and
    D = exp(-c t), they are 1 - e = (2 c p D + (p (c + a) + 2 s) (1 - D)) / S and g = 4 c^2 D / S^2, where
    S = 2 c D + k (1 - D). Slopes in t are (log g)' = a - 2 b (1 - e) and (1 - e)' = s + a (1 - e) - b (1 - e)^2.
    """

    is_yule: bool
    has_dates: bool  # whether some tips are, or may be, older than others
    share: float  # p
    needs_root = True

    @property
    def numbers(self) -> Sequence[tuple[str, bool, str]]:  # type: ignore[override]
        growth = ("birthRate" if self.is_yule else "diversificationRate", True, "diversification")
        turnover = [] if self.is_yule else [("relativeDeathRate", True, "turnover")]
        return [growth, *turnover, *([("samplingRate", True, "sampling")] if self.has_dates else [])]

    def density(self, tips: FloatArray, inner: FloatArray, numbers: Sequence[float]) -> TreeDensity:
        value, of_heights = self._at(tips, inner, np.array(numbers))
        steps = np.array(numbers) * (1.0 + 1e-20j * np.eye(len(numbers)))
        of_numbers = [self._at(tips, inner, own)[0].imag / 1e-20 for own in steps]  # Squire & Trapp 1998
        return TreeDensity(float(value), of_heights, np.array(of_numbers))

    def _at(self, tips: FloatArray, inner: FloatArray, numbers: Any) -> tuple[Any, FloatArray]:
        """The logarithm of the density and its slopes in the heights of inner nodes, of numbers that may be complex."""
        n, p, root = len(tips), self.share, int(np.argmax(inner))
        b = numbers[0] / (1.0 if self.is_yule else 1.0 - numbers[1])
        s = numbers[-1] if self.has_dates else 0.0
        a = numbers[0] - s
        c = np.sqrt(a * a + 4.0 * b * s)
        large = c + a * np.sign(a.real)
        above, below = (large, 4.0 * b * s / large) if a.real > 0 else (4.0 * b * s / large, large)  # c + a and c - a
        times = np.concatenate([inner, tips])
        decay, rest = np.exp(-c * times), -np.expm1(-c * times)
        whole = 2.0 * c * decay + (below + 2.0 * b * p) * rest
        log_g = np.log(4.0 * c * c) - c * times - 2.0 * np.log(whole)
        seen = (2.0 * c * p * decay + (p * above + 2.0 * s) * rest)[: n - 1] / whole[: n - 1]
        n_present = int((tips == 0.0).sum()) if p > 0 else 0
        value = log_g[: n - 1].sum() - log_g[n - 1 :].sum() + log_g[root] - 2.0 * np.log(seen[root])
        value += (n - 2) * np.log(b) + (n_present * math.log(p) if n_present else 0.0)
        value += ((n - n_present) * np.log(s) if self.has_dates else 0.0) + (n - 1) * math.log(2.0) - math.lgamma(n + 1)
        slopes = a - 2.0 * b * seen
        slopes[root] += slopes[root] - 2.0 * (s / seen[root] + a - b * seen[root])
        return value, slopes


GRID_SIZES, MOST_SIZES = 10, 1000  # of a skygrid
GRID_SPANS = 2.0  # its cutoff, times between the first and the last tip


def parse_tree_prior(text: str, span: float) -> TreePrior:
    """The prior that a text names; the tips are from `span` years."""
    expected = f"{', '.join(TREE_PRIORS)}, skygrid(SIZES,YEARS), yule(SHARE) or birth-death(SHARE)"
    match = re.fullmatch(r"([\w-]+)(?:\(([^()]*)\))?", text.strip())
    words = match[2].split(",") if match and match[2] is not None else []
    try:
        values = list(map(float, words))
    except ValueError:
        match = None
    name = match[1] if match else ""
    if name not in TREE_PRIORS or len(words) not in (0, {"skygrid": 2, "yule": 1, "birth-death": 1}.get(name)):
        raise InputError(f"tree prior: found {show_name(text)}, expected {expected}")
    if name in ("constant", "exponential"):
        return ConstantPopulation() if name == "constant" else ExponentialGrowth()
    if name == "skygrid":
        size, cutoff = values or (GRID_SIZES, GRID_SPANS * span)
        if not (2 <= size <= MOST_SIZES and size == int(size) and 0.0 < cutoff < 1e12):
            wanted = f"2 to {MOST_SIZES} sizes and a positive number of years, as in skygrid(20,50)"
            raise InputError(f"tree prior: found {size:g} sizes in {cutoff:g} years, expected {wanted}")
        return Skygrid(int(size), cutoff)
    (share,) = values or ([0.0] if span > 0 else [1.0])
    if not (0.0 < share <= 1.0 or (share == 0.0 and span > 0)):
        wanted = "the share of the lineages at the end that are sampled, above 0 and at most 1"
        raise InputError(f"tree prior: found {show_name(text)}, expected {wanted}")
    return BirthDeath(name == "yule", span > 0, share)
