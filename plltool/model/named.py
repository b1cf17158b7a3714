"""What the name of a substitution model stands for, and published figures, which are in ``figures/``."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import combinations, permutations
from typing import Literal, Self

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray
from plltool.constants import MAX_RAY_WEIGHT, MIN_RAY_WEIGHT, RAY_DIGITS

MAX_RAY_STEPS = 100  # of Newton's method; 12 at weights of 0.9
RAY_PRECISION = 1e-12  # of a last step in the logarithms of parameters, after which the error is its square
FrequencyMode = Literal["equal", "empirical", "f1x4", "f3x4", "optimised", "given", "sites", "model"]
COUNTED_MODES: tuple[FrequencyMode, ...] = ("empirical", "f1x4", "f3x4")  # in the alignment; of codons perhaps as bases


@dataclass(frozen=True, eq=False)
class RateDesign:
    """How exchangeabilities follow from positive parameters: ``r[p] = base[p] * prod_k parameter[k] ** powers[p, k]``.

    With `rays` the products are those of rays, ``t[j]``, and ``r[p] = sum_j rays[p, j] t[j]``.
    """

    base: FloatArray  # float64 (n_pairs,), or (n_rays,)
    # float64 (n_pairs, n_parameters); 0 and 1 in most models, one 1 in each row if pairs form classes of equal
    # exchangeabilities. (n_classes, n_pairs, n_parameters) where sites form classes, whose rates then differ, too.
    # (n_rays, n_parameters) with rays
    powers: FloatArray
    starts: FloatArray  # float64 (n_parameters,) values that an optimisation starts from
    # the parameter that is 1 unless given, because only ratios matter; None if all are free
    reference: int | None = None
    names: tuple[str, ...] = ()  # of the parameters; empty where they are exchangeabilities themselves
    # float64 (n_parameters, 2), the bounds within which they are optimised; None for those of exchangeabilities
    limits: FloatArray | None = None
    # (n_classes,) weights of the classes of sites that an optimisation starts from
    class_weights: tuple[float, ...] = (1.0,)
    # float64 (n_pairs, n_rays), not negative; None where exchangeabilities are products themselves
    rays: FloatArray | None = None

    @classmethod
    def of_classes(cls, class_of_pair: Sequence[int], starts: FloatArray | None = None) -> Self:
        """A parameter for each class of pairs, numbered from 0; the class of the last pair has 1. All start with 1."""
        classes = np.asarray(class_of_pair, dtype=np.intp)
        powers = np.eye(classes.max() + 1)[classes]
        ones = np.ones(powers.shape[1])
        return cls(np.ones(len(classes)), powers, ones if starts is None else starts, int(classes[-1]))

    @classmethod
    def published(cls, exchangeabilities: FloatArray) -> Self:
        """Exchangeabilities without parameters."""
        return cls(exchangeabilities, np.empty((len(exchangeabilities), 0)), np.empty(0))

    @classmethod
    def of_rays(cls, rays: FloatArray) -> Self:
        """Sums of `rays` (n_pairs, n_rays) that have the same sum of rates; there may be more rays than dimensions.

        Parameters are the weights of as many independent rays as there are dimensions; that of the last one is 1. Any
        other ray is a sum of these; its weight is the product of theirs, to the powers that the sum has as factors.
        Each sum of rays with positive weights then has one set of parameters (Birch's theorem; Pachter & Sturmfels
        2005, Algebraic Statistics for Computational Biology, chapter 1).
        """
        independent: list[int] = []
        left = rays
        for _ in range(np.linalg.matrix_rank(rays)):
            sizes = np.linalg.norm(left, axis=0).round(RAY_DIGITS)  # the first of equal ones on every machine
            independent.append(int(np.argmax(sizes)))
            direction = left[:, independent[-1]] / np.linalg.norm(left[:, independent[-1]])
            left = left - np.outer(direction, direction @ left)
        powers = np.asarray(np.linalg.lstsq(rays[:, independent], rays, rcond=None)[0].T, dtype=np.float64)
        n_rays, n_parameters = powers.shape
        limits = np.tile(np.array([MIN_RAY_WEIGHT, MAX_RAY_WEIGHT]), (n_parameters, 1))
        return cls(np.ones(n_rays), powers, np.ones(n_parameters), n_parameters - 1, limits=limits, rays=rays)

    @property
    def n_parameters(self) -> int:
        """The number of parameters, the reference included."""
        return self.powers.shape[-1]

    @property
    def n_classes(self) -> int:
        """The number of classes of sites with different exchangeabilities."""
        return len(self.powers) if self.powers.ndim == 3 else 1

    @property
    def n_free(self) -> int:
        """The number of parameters that may vary."""
        return self.n_parameters - (self.reference is not None)

    @cached_property
    def is_free(self) -> BoolArray:
        """(n_parameters,) whether a parameter may vary."""
        return np.array([k != self.reference for k in range(self.n_parameters)], dtype=bool)

    @property
    def class_of_pair(self) -> IndexArray | None:
        """(n_pairs,) the parameter that is the exchangeability of each pair; None where it is more than that."""
        if self.names or self.rays is not None or self.powers.ndim == 3:
            return None
        one_each = (self.powers.sum(axis=1) == 1) & (self.powers.max(axis=1, initial=0) == 1) & (self.base == 1)
        return self.powers.argmax(axis=1) if one_each.all() else None

    def places_in(self, other: Self) -> list[int | None]:
        """For each parameter the one of another design that multiplies the same exchangeabilities, or None."""
        theirs, mine = (np.moveaxis(design.powers, -1, 0) for design in (other, self))
        return [next((k for k, column in enumerate(theirs) if np.all(column == own)), None) for own in mine]

    def exchangeabilities(self, parameters: FloatArray) -> FloatArray:
        """float64 (n_pairs,) or (n_classes, n_pairs) from (n_parameters,)."""
        products = self._products(parameters)
        return products if self.rays is None else self.rays @ products

    def _products(self, parameters: FloatArray) -> FloatArray:
        return np.asarray(self.base * np.prod(parameters**self.powers, axis=-1))

    def parameters_of(self, exchangeabilities: FloatArray) -> FloatArray:
        """(n_parameters,) the parameters of exchangeabilities (n_pairs,) that follow the design, for rays or classes.

        With rays, sum_j powers[j, k] t[j] are the weights of the independent rays in the exchangeabilities. They are
        the slopes of the convex function sum_j t[j] in the logarithms of the parameters, so Newton steps find these.
        """
        if self.rays is None:
            assert self.class_of_pair is not None
            return self.relative(exchangeabilities[np.unique(self.class_of_pair, return_index=True)[1]])
        wanted = self.powers.T @ np.linalg.lstsq(self.rays, exchangeabilities, rcond=None)[0]
        logs = np.zeros(self.n_parameters)
        for _ in range(MAX_RAY_STEPS):
            products = self._products(np.exp(logs))
            step = np.linalg.solve((self.powers.T * products) @ self.powers, wanted - self.powers.T @ products)
            logs += step / max(1.0, np.abs(step).max())
            if np.abs(step).max() < RAY_PRECISION:
                break
        return self.relative(np.exp(logs))

    def relative(self, parameters: FloatArray) -> FloatArray:
        """The parameters divided by the reference, if there is one."""
        return parameters if self.reference is None else parameters / parameters[self.reference]

    def with_reference(self, free: FloatArray) -> FloatArray:
        """(n_parameters,) from the free ones."""
        parameters = np.ones(self.n_parameters)
        parameters[self.is_free] = free
        return parameters

    def free_slopes(self, by_pair: FloatArray, parameters: FloatArray) -> FloatArray:
        """Slopes in the logarithms of free parameters from those (n_pairs,) in logarithms of exchangeabilities."""
        if self.rays is not None:
            products = self._products(parameters)
            by_pair = (by_pair / (self.rays @ products)) @ self.rays * products
        return (by_pair @ self.powers)[self.is_free]


@dataclass(frozen=True, eq=False)
class NamedModel:
    """What the name of a substitution model stands for."""

    data: str  # the kind of data, as in `StateSpace.name`
    symbols: tuple[str, ...]  # the name of each state, in the order of frequencies
    rates: RateDesign  # how exchangeabilities follow from parameters
    frequency_mode: FrequencyMode = "model"  # the frequencies that the name implies
    # float64 (n_states,), published ones, or those that an optimisation starts from; None for equal ones
    frequencies: FloatArray | None = None
    between: str = ""  # the symbols of two states in the name of their pair
    # whether each change has a rate of its own, so that `pairs` are ordered, from and to, and frequencies follow from
    # rates; so in all processes that are not time-reversible
    is_directed: bool = False
    is_reversible: bool = True  # whether processes are time-reversible; if not, trees have a root
    # whether rates between codons are proportional to the frequency of the new base, not of the new codon
    of_bases: bool = False

    @cached_property
    def pairs(self) -> tuple[str, ...]:
        """Names of the pairs of states, in the order of exchangeabilities."""
        return (ordered_pairs if self.is_directed else pair_names)(self.symbols, self.between)


def pair_names(symbols: Sequence[str], between: str = "") -> tuple[str, ...]:
    """The pairs of states in the order of exchangeabilities: the upper triangle row by row."""
    return tuple(map(between.join, combinations(symbols, 2)))


def ordered_pairs(symbols: Sequence[str], between: str = "") -> tuple[str, ...]:
    """The ordered pairs of states, from and to, in the order of rates: AC AG AT CA CG CT GA GC GT TA TC TG."""
    return tuple(map(between.join, permutations(symbols, 2)))


@functools.cache
def published_figures(file: str) -> dict[str, str]:
    """The figures of each model in a file, as text."""
    text = (files("plltool.model") / "figures" / file).read_text(encoding="utf-8")
    sections = (section.split("\n", 1) for section in text.split("\n[")[1:])
    return {header.split("]", 1)[0]: figures for header, figures in sections}


def read_words(file: str, name: str) -> dict[str, str]:
    """A table of words in a file: what stands behind the first word of each line, by that word."""
    lines = published_figures(file)[name].strip().split("\n")
    return {word: rest for word, _, rest in (line.partition(" ") for line in lines)}


def read_figures(file: str, name: str) -> FloatArray:
    """The figures of a model as numbers."""
    return np.array([float(word) for word in published_figures(file)[name].split()])


def unpack_triangle(numbers: FloatArray, n_states: int) -> FloatArray:
    """Exchangeabilities (n, n), symmetric, from the lower triangle row by row, with which `numbers` begin."""
    lower = np.tril_indices(n_states, -1)
    square = np.zeros((n_states, n_states))
    square[lower] = numbers[: len(lower[0])]
    return square + square.T


def unpack_matrix(numbers: FloatArray, n_states: int) -> tuple[FloatArray, FloatArray]:
    """Exchangeabilities (n, n) and frequencies (n,) from PAML's numbers: the lower triangle by rows, frequencies."""
    frequencies = numbers[-n_states:]
    return unpack_triangle(numbers, n_states), frequencies / frequencies.sum()
