"""What an engine is measured on: random models and trees, and columns that evolved along them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.constants import MASK_STATES
from plltool.errors import InputError
from plltool.model.components import Components
from plltool.model.evolution import evolve
from plltool.model.rates import gamma_means
from plltool.model.substitution import eigensystem
from plltool.tree.random_tree import random_tree
from plltool.tree.topology import Tree

N_COMPONENTS = 4  # rate categories
ALPHA = 0.5  # of the gamma distribution of rates
MEAN_LENGTH = 0.05  # of branches, beyond SHORTEST_LENGTH; exponentially distributed
SHORTEST_LENGTH = 0.01
MAX_STATES = 128  # that the engines are tested with


class Shape(NamedTuple):
    n_taxa: int
    n_patterns: int


# The last one of each list is deep enough to rescale in double precision.
DEFAULT_SHAPES = (
    Shape(32, 1_000),
    Shape(32, 10_000),
    Shape(32, 100_000),
    Shape(8, 1_000_000),
    Shape(200, 1_000),
    Shape(2_000, 1_000),
)
QUICK_SHAPES = (Shape(32, 1_000), Shape(32, 10_000), Shape(1_000, 500))


@dataclass(frozen=True)
class FixedModel:
    """What `TreeLikelihood` asks of a model."""

    made_of: Components

    def components(self) -> Components:
        return self.made_of


def make_data(shape: Shape, n_states: int, rng: np.random.Generator) -> tuple[Components, Tree, npt.NDArray[np.int16]]:
    """A random model, a random tree, and states (n_taxa, n_patterns) of columns that evolved along it."""
    components = random_components(n_states, rng)
    tree = random_tree([f"t{k}" for k in range(shape.n_taxa)], rng)
    tree.lengths[:] = SHORTEST_LENGTH + rng.exponential(MEAN_LENGTH, tree.n_edges)
    return components, tree, evolve(tree, components, shape.n_patterns, rng)


def random_components(n_states: int, rng: np.random.Generator) -> Components:
    """A random reversible model with N_COMPONENTS gamma rates."""
    frequencies = rng.dirichlet(np.full(n_states, 5.0))
    exchangeabilities = rng.random((n_states, n_states)) + 0.1
    eigenvalues, right, left = eigensystem(exchangeabilities + exchangeabilities.T, frequencies)

    def repeat(array: FloatArray) -> FloatArray:
        return np.repeat(array[None], N_COMPONENTS, axis=0)

    weights = np.full(N_COMPONENTS, 1 / N_COMPONENTS)
    rates = gamma_means(ALPHA, N_COMPONENTS)
    return Components(repeat(eigenvalues), repeat(right), repeat(left), repeat(frequencies), rates, weights)


def encode_states(
    states: npt.NDArray[np.int16], n_states: int
) -> tuple[npt.NDArray[np.integer], npt.NDArray[np.uint8] | None]:
    """Tip codes of known states as the engines take them, and the table of state sets that goes with them, if any.

    Raises InputError if they cannot hold `n_states`.
    """
    if n_states > MAX_STATES:
        raise InputError(f"found {n_states} states, expected at most {MAX_STATES}, which is what the engines hold")
    if n_states <= MASK_STATES:
        return np.left_shift(1, states), None
    return states, np.eye(n_states, dtype=np.uint8)
