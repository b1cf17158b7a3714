"""Processes that are not time-reversible: their rate matrices, stationary frequencies and eigensystems."""

from __future__ import annotations

import functools

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.model.components import Components
from plltool.model.named import NamedModel, RateDesign
from plltool.model.nucleotides import BASES
from plltool.model.substitution import eigensystem

MAX_CONDITION = 1e6  # of eigenvectors; P matrices keep 10 digits
SEPARATION = 1e-10  # relative change of a rate matrix with fewer eigenvectors; P matrices keep as many digits

# Classes of equal rates, in the order of `ordered_pairs`: one character per rate, equal characters for equal rates
CLASSES = {
    "UNREST": "0123456789AB",  # Yang 1994; model 12.12 of Woodhams, Fernandez-Sanchez & Sumner 2015
    "STRSYM": "012345543210",  # of both strands: a rate is that of the complements; model WS6.6
}

SYSTEMS_KEPT = 64  # eigensystems of the last rates

RealSystem = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def named_model(name: str) -> NamedModel:
    """The model of a canonical name."""
    design = RateDesign.of_classes([int(digit, 16) for digit in CLASSES[name]])
    return NamedModel("DNA", BASES, design, is_directed=True, is_reversible=False)


def _places(n_states: int) -> tuple[IndexArray, IndexArray]:
    """Where the rates stand in a matrix."""
    rows, columns = np.nonzero(~np.eye(n_states, dtype=bool))
    return rows, columns


def rates_matrix(rates: FloatArray) -> FloatArray:
    """Rates (S (S - 1),) in the order of `ordered_pairs` as a matrix (S, S) with zeros on the diagonal."""
    n_states = round((1 + np.sqrt(1 + 4 * len(rates))) / 2)
    matrix = np.zeros((n_states, n_states))
    matrix[_places(n_states)] = rates
    return matrix


def rate_slopes(rates: FloatArray, by_matrix: FloatArray, by_mass: FloatArray) -> FloatArray:
    """Slopes of a function of the scaled matrix Q and its frequencies pi in the logarithm of each rate, (S (S - 1),).

    Where a rate changes the matrix by dR, pi changes by ``pi dR Z`` with ``Z = (inv(1 pi - Q) - 1 pi) / mu``
    (Meyer 1975), and Q = R / mu by the change of R and of ``mu = -sum pi_i R_ii``. `by_matrix` (S, S) are slopes in the
    elements of Q, taken as independent, `by_mass` (S,) in the logarithm of each frequency.
    """
    matrix = rates_matrix(rates)
    scaled, pi = scaled_matrix(matrix)
    leaving = matrix.sum(axis=1)
    mu = pi @ leaving
    shared = np.sum(by_matrix * scaled) / mu  # if the whole matrix grows
    ergodic = np.tile(pi, (len(pi), 1))
    deviation = (np.linalg.inv(ergodic - scaled) - ergodic) / mu
    moved = deviation @ (by_mass / pi - shared * leaving)
    of_rate = (by_matrix - np.diagonal(by_matrix)[:, None]) / mu
    of_rate += pi[:, None] * (moved - moved[:, None] - shared)
    return np.asarray((matrix * of_rate)[_places(len(pi))])


def stationary_frequencies(rates: FloatArray) -> FloatArray:
    """float64 (S,): pi with ``pi Q = 0`` and sum 1, of an irreducible rate matrix (S, S) whose rows sum to 0.

    States are eliminated one after another without a subtraction, so that every digit of every frequency is right
    (Grassmann, Taksar & Heyman 1985).
    """
    n = len(rates)
    flow = rates.copy()
    for last in range(n - 1, 0, -1):
        flow[:last, last] /= flow[last, :last].sum()
        flow[:last, :last] += np.outer(flow[:last, last], flow[last, :last])
    pi = np.ones(n)
    for state in range(1, n):
        pi[state] = pi[:state] @ flow[:state, state]
    return pi / pi.sum()


def frequencies_of_rates(rates: FloatArray) -> FloatArray:
    """The stationary frequencies (S,) of rates (S (S - 1),) in the order of `ordered_pairs`."""
    return stationary_frequencies(rates_matrix(rates))


def scaled_matrix(rates: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A rate matrix with one expected substitution per unit of time, and its stationary frequencies.

    `rates` is float64 (S, S); its diagonal is ignored.
    """
    matrix = rates.copy()
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    pi = stationary_frequencies(matrix)
    return matrix / -(pi @ np.diagonal(matrix)), pi


def is_balanced(rates: FloatArray) -> bool:
    """Whether a process with these rates (S (S - 1),) is time-reversible: ``pi_i r_ij = pi_j r_ji``."""
    matrix = rates_matrix(rates)
    flow = stationary_frequencies(matrix)[:, None] * matrix
    return np.allclose(flow, flow.T)


def directed_components(
    rates: FloatArray, reversible: bool, of_sites: FloatArray, weights: FloatArray, category_of: IndexArray | None
) -> Components:
    """Components with the same process, whose rates (S (S - 1),) are in the order of `ordered_pairs`.

    `of_sites`, `weights` and `category_of` are those of `Components`.
    """
    system = directed_system(tuple(rates.tolist()), reversible)
    eigenvalues, rotations, right, left, pi = (np.repeat(array[None], len(of_sites), axis=0) for array in system)
    turning = None if reversible else rotations
    return Components(eigenvalues, right, left, pi, of_sites, weights, category_of, turning)


@functools.lru_cache(maxsize=SYSTEMS_KEPT)
def directed_system(
    rates: tuple[float, ...], reversible: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """`real_eigensystem` of the scaled matrix, and its frequencies."""
    matrix, pi = scaled_matrix(rates_matrix(np.array(rates)))
    if reversible:
        eigenvalues, right, left = eigensystem(matrix / pi, pi)
        return eigenvalues, np.zeros_like(eigenvalues), right, left, pi
    return *real_eigensystem(matrix, pi), pi


def real_eigensystem(matrix: FloatArray, pi: FloatArray) -> RealSystem:
    """Eigenvalues, rotations (S,), right and left (S, S) of a rate matrix in the real form of `Components`.

    A matrix that has too few eigenvectors, or almost so, is first changed by a few of its last digits, which separates
    its eigenvalues (Davies 2007). The last eigenvalue is exactly 0, the last column of `right` 1 and the last row of
    `left` the stationary frequencies `pi` (S,).
    """
    found = _decompose(matrix, pi)
    if not np.linalg.cond(found[2]) < MAX_CONDITION:
        noise = np.random.default_rng(len(matrix)).random(matrix.shape) * pi
        np.fill_diagonal(noise, 0.0)
        changed, pi = scaled_matrix(matrix + SEPARATION * noise)
        found = _decompose(changed, pi)
    return found


def _decompose(matrix: FloatArray, pi: FloatArray) -> RealSystem:
    root = np.sqrt(pi)
    values, vectors = np.linalg.eig(matrix * np.outer(root, 1.0 / root))  # of about the same size in rows and columns
    values, vectors = values.astype(np.complex128), vectors.astype(np.complex128) / root[:, None]
    last = int(np.argmax(values.real))
    order = np.concatenate([
        np.repeat(np.flatnonzero(values.imag > 0), 2),
        np.setdiff1d(np.flatnonzero(values.imag == 0), last),
        [last],
    ])  # fmt: skip
    n_paired = 2 * int(np.count_nonzero(values.imag > 0))
    second = (np.arange(len(order)) % 2 == 1) & (np.arange(len(order)) < n_paired)
    eigenvalues, rotations = values[order].real, np.where(second, -1.0, 1.0) * values[order].imag
    right = np.where(second, vectors[:, order].imag, vectors[:, order].real)
    right[:, -1], eigenvalues[-1], rotations[-1] = 1.0, 0.0, 0.0
    left = np.linalg.inv(right)
    left[-1] = pi
    return eigenvalues, rotations, right, left
