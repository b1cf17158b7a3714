"""A model as an engine sees it: mixture components and the classes behind them, and the evolution of sites under it."""

import functools
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.model import substitution
from plltool.model.rates import SiteRates
from plltool.tree.topology import Tree

SYSTEMS_KEPT = 64  # eigensystems of the last rates of processes that are not time-reversible


@dataclass(frozen=True)
class Components:
    """C mixture components over S states; +G4 is four components with the same eigensystem.

    The rate matrix of component c is ``Q = right @ diag(eigenvalues) @ left`` with ``left = inv(right)``, scaled to
    one expected substitution per unit of branch length, and ``P(t) = right @ diag(exp(eigenvalues * rate * t)) @ left``
    (Felsenstein 2004, chapter 13).

    If a process is not time-reversible, its eigenvalues may be complex, in pairs ``a + bi`` and ``a - bi``.
    Such a pair has neighbouring places, the first of them even, and the diagonal matrix has the block
    ``[[a, b], [-b, a]]`` there, so that nothing is complex: ``rotations`` holds b and -b.
    """

    eigenvalues: FloatArray  # float64 (C, S), or their real parts
    right: FloatArray  # float64 (C, S, S), right eigenvectors in columns
    left: FloatArray  # float64 (C, S, S), the inverse of ``right``
    frequencies: FloatArray  # float64 (C, S), stationary frequencies; each row sums to 1
    rates: FloatArray  # float64 (C,), relative rates; their weighted mean is 1 in a rate mixture
    weights: FloatArray  # float64 (C,), summing to 1 over the components that a pattern has
    # (n_patterns,) the category of each pattern, which has the components of its category only: one of them (+PSR), or
    # `category_size` (+SSF), which are side by side; None for a mixture, in which each pattern has all of them
    category_of: IndexArray | None = None
    # float64 (C, S), imaginary parts of the eigenvalues, 0 where they are real; None for time-reversible processes
    rotations: FloatArray | None = None
    category_size: int = 1

    @property
    def n_components(self) -> int:
        return len(self.rates)

    @property
    def n_each(self) -> int:
        """The number of components that a pattern has."""
        return self.n_components if self.category_of is None else self.category_size

    @property
    def n_categories(self) -> int:
        """The number of categories of patterns; 1 for a mixture."""
        return self.n_components // self.n_each

    @property
    def n_states(self) -> int:
        return self.frequencies.shape[1]

    def transition_matrices(self, length: float) -> FloatArray:
        """float64 (C, S, S): P of a branch of this length; rows sum to 1 up to rounding, no entry is negative."""
        angles = None if self.rotations is None else self.rotations * self.rates[:, None] * length
        grow, turn = exponential(self.eigenvalues * self.rates[:, None] * length, angles)
        return np.maximum(combine(self.right, grow, turn, self.left) + np.eye(self.n_states), 0.0)

    @property
    def is_reversible(self) -> bool:
        """Whether all processes are time-reversible: pi_i Q_ij = pi_j Q_ji."""
        return self.rotations is None

    def rate_matrices(self) -> FloatArray:
        """float64 (C, S, S): Q of each component, without its rate."""
        return combine(self.right, self.eigenvalues, self.rotations, self.left)

    def alone(self, component: int) -> Self:
        """The same components; of those that a pattern has, one with weight 1 and all others with weight 0."""
        return replace(self, weights=np.tile(np.eye(self.n_each)[component], self.n_categories))

    def one_for_each_pattern(self, category_of: IndexArray) -> Self:
        """The same components, of which each pattern has one, with weight 1."""
        return replace(self, weights=np.ones(self.n_components), category_of=category_of)

    def category(self, number: int) -> "Components":
        """The components of one category, as the model of the patterns that have no others."""
        own = slice(number * self.n_each, (number + 1) * self.n_each)
        names = ("eigenvalues", "right", "left", "frequencies", "rates", "weights")
        return Components(**{name: getattr(self, name)[own] for name in names})

    def masses(self) -> FloatArray:
        """float64 (C, S): weight times frequency."""
        return self.weights[:, None] * self.frequencies


def partners(n_states: int) -> IndexArray:
    """(n_states,) the other place of the pair to which each place belongs if its eigenvalues are complex."""
    return np.minimum(np.arange(n_states) ^ 1, n_states - 1)


def exponential(exponents: FloatArray, angles: FloatArray | None) -> tuple[FloatArray, FloatArray | None]:
    """exp(B) - I of matrices B as in `Components`: (..., S) its diagonal, and its elements (k, partner of k) or None.

    `exponents`, `angles`: (..., S) real and imaginary parts of the eigenvalues; None if all are real.
    """
    grow = np.expm1(exponents)
    if angles is None:
        return grow, None
    return grow * np.cos(angles) - 2 * np.sin(angles / 2) ** 2, (grow + 1.0) * np.sin(angles)


def combine(right: FloatArray, diagonal: FloatArray, beside: FloatArray | None, left: FloatArray) -> FloatArray:
    """(..., S, S): ``right @ B @ left``, where B has this diagonal and these elements (k, partner of k)."""
    product: FloatArray = (right * diagonal[..., None, :]) @ left
    if beside is not None:
        product = product + (right * beside[..., None, :]) @ left[..., partners(left.shape[-1]), :]
    return product


@functools.lru_cache(maxsize=SYSTEMS_KEPT)
def directed_system(
    rates: tuple[float, ...], reversible: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """`real_eigensystem` of the scaled matrix of rates in the order of `ordered_pairs`, and its frequencies."""
    matrix, pi = substitution.scaled_matrix(substitution.rates_matrix(np.array(rates)))
    if reversible:
        eigenvalues, right, left = substitution.eigensystem(matrix / pi, pi)
        return eigenvalues, np.zeros_like(eigenvalues), right, left, pi
    return *substitution.real_eigensystem(matrix, pi), pi


# --- classes of sites -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of sites in a model, before rates vary over sites."""

    exchangeabilities: FloatArray  # (n_classes, n_pairs) in the order of `pair_names`; one row if classes share them
    frequencies: FloatArray  # (n_classes, n_states)
    rates: FloatArray  # (n_classes,) relative rates
    weights: FloatArray  # (n_classes,) summing to 1

    def processes(self) -> tuple[FloatArray, FloatArray]:
        """Exchangeabilities (n_classes, S, S) and frequencies (n_classes, S)."""
        matrices = substitution.exchangeability_matrix(self.exchangeabilities)
        return np.broadcast_to(matrices, (len(self.frequencies), *matrices.shape[1:])), self.frequencies

    def cross(self, sites: SiteRates, is_tied: bool) -> tuple[IndexArray, FloatArray, FloatArray, FloatArray]:
        """The class, frequencies, rate and weight of each component; see `Model.components` for their order."""
        rates, weights = sites.components()
        if len(self.frequencies) == 1:
            return np.zeros(len(rates), np.intp), np.repeat(self.frequencies, len(rates), axis=0), rates, weights
        first = int(sites.invariable)
        class_of = np.arange(len(self.frequencies))
        if not is_tied:
            class_rates = self.rates / (self.weights @ self.rates)
            class_of = np.repeat(class_of, len(rates) - first)
            rates = np.append(rates[:first], np.outer(class_rates, rates[first:]))
            weights = np.append(weights[:first], np.outer(self.weights, weights[first:]))
        frequencies = self.frequencies[class_of]
        if first:
            frequencies = np.vstack([self.weights @ self.frequencies, frequencies])
            class_of = np.append(0, class_of)
        return class_of, frequencies, rates, weights

    def categories(self, sites: SiteRates) -> tuple[IndexArray, FloatArray, FloatArray, FloatArray]:
        """The same where each class is a category of patterns, and its components are all rates."""
        rates, weights = sites.components()
        n = len(self.frequencies)
        class_of = np.repeat(np.arange(n), len(rates))
        return class_of, self.frequencies[class_of], np.tile(rates, n), np.tile(weights, n)


ROOT = 0  # where columns start; with a reversible model any node gives the same distribution


def evolve(tree: Tree, components: Components, n_sites: int, rng: np.random.Generator) -> npt.NDArray[np.int16]:
    """Simulate the states (n_taxa, n_sites) at the tips of a tree with one length per branch.

    Each column draws a component by its weight and a first state by its frequencies; states change by its P matrices.
    """
    component = _draw(np.cumsum(components.weights)[None], np.zeros(n_sites, dtype=np.intp), rng)
    states = np.empty((tree.n_nodes, n_sites), dtype=np.int16)
    states[ROOT] = _draw(np.cumsum(components.frequencies, axis=1), component, rng)
    for node, parent, branch in tree.directed_from(ROOT):
        rows = components.transition_matrices(tree.lengths[branch]).cumsum(axis=2).reshape(-1, components.n_states)
        states[node] = _draw(rows, component * components.n_states + states[parent], rng)
    return states[: tree.n_taxa]


def _draw(cumulated: FloatArray, rows: IndexArray, rng: np.random.Generator) -> IndexArray:
    """Draw a column of each of the `rows` of a table of cumulated probabilities; all rows are searched at once."""
    n, width = cumulated.shape
    table = cumulated / cumulated[:, -1:] + np.arange(n)[:, None]  # row k from k to k + 1
    found = np.searchsorted(table.ravel(), rows + rng.random(len(rows)), side="right")
    return np.minimum(found - rows * width, width - 1)  # rounding may lead past the end of a row


# --- covarion models --------------------------------------------------------------------------------------

SWITCH_NAMES = ("off_to_on", "on_to_off")

System = tuple[FloatArray, FloatArray, FloatArray]


def on_share(switching: FloatArray) -> float:
    """The share p of sites that are on; `switching` (2,) are s01 and s10."""
    return float(switching[0] / switching.sum())


def hidden_frequencies(frequencies: FloatArray, switching: FloatArray) -> FloatArray:
    """The frequencies (C, 2 S) of the process, from the frequencies (C, S) of the states of the data."""
    p = on_share(switching)
    return np.hstack([p * frequencies, (1.0 - p) * frequencies])


def switching_matrices(matrices: FloatArray, switching: FloatArray) -> FloatArray:
    """Q_cov (C, 2 S, 2 S) of each matrix r Q (C, S, S), where each site switches between on and off along the tree.

    A state is a pair of a state of the data and on or off; those that are on, in which alone sites change, come first.
    With the rates s01 from off to on and s10 from on to off, the share p = s01 / (s01 + s10) of the sites that are on,
    and the rate r of a category of sites,

        Q_cov = [[ r Q / p - s10 I,  s10 I ],
                 [ s01 I,           -s01 I ]]

    makes r substitutions per unit of length. The rate does not change how often a site switches (Tuffley & Steel 1998;
    Huelsenbeck 2002). Q_cov has detailed balance if Q has, with the frequencies p pi and (1 - p) pi. Each eigenvalue of
    Q gives two of Q_cov, those of a symmetric matrix of size 2, with eigenvectors that are products.
    """
    to_on, to_off = np.eye(matrices.shape[-1]) * switching[:, None, None]
    n = len(matrices)
    on = np.concatenate([matrices / on_share(switching) - to_off, np.tile(to_off, (n, 1, 1))], axis=2)
    off = np.tile(np.hstack([to_on, -to_on]), (n, 1, 1))
    return np.concatenate([on, off], axis=1)


def switching_components(
    systems: System, frequencies: FloatArray, rates: FloatArray, weights: FloatArray, switching: FloatArray
) -> Components:
    """The components of a covarion model, all of rate 1 except for invariable sites.

    systems : eigenvalues (C, S), right and left eigenvectors (C, S, S) of Q
    frequencies, rates, weights : (C, S), (C,) and (C,), of components without switching
    switching : (2,) s01 and s10
    """
    eigenvalues, right, left = systems
    (s01, s10), p = switching.tolist(), on_share(switching)
    on = rates[:, None] * eigenvalues / p - s10
    beside = np.sqrt(s01 * s10)
    half = (on + s01) / 2
    distance = np.hypot(half, beside)
    lower = (on - s01) / 2 - distance
    upper = -rates[:, None] * eigenvalues * s01 / p / lower  # their product is the determinant
    above = np.where(half > 0, distance + half, beside**2 / (distance + np.abs(half)))  # upper - (-s01), no digits lost
    cosine, sine = above / np.hypot(above, beside), beside / np.hypot(above, beside)
    roots = np.sqrt(p), np.sqrt(1.0 - p)

    def vectors(of_on: FloatArray, of_off: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Right and left eigenvectors, (C, 2 S, S) and (C, S, 2 S), from their parts (C, S) in on and off."""
        pairs = list(zip((of_on, of_off), roots, strict=True))
        columns = [right * (part / root)[:, None, :] for part, root in pairs]
        rows = [left * (part * root)[:, :, None] for part, root in pairs]
        return np.concatenate(columns, axis=1), np.concatenate(rows, axis=2)

    (right_low, left_low), (right_up, left_up) = vectors(-sine, cosine), vectors(cosine, sine)
    upper[:, -1] = 0.0
    return Components(
        np.hstack([lower, upper]),
        np.concatenate([right_low, right_up], axis=2),
        np.concatenate([left_low, left_up], axis=1),
        hidden_frequencies(frequencies, switching),
        (rates > 0).astype(np.float64),
        weights,
    )
