"""Rate matrices, their stationary frequencies and eigensystems, for any number of states, time-reversible or not."""

import math
from functools import cache

import numpy as np

from plltool.arrays import ArrayLike, FloatArray, IndexArray


def exchangeability_matrix(exchangeabilities: ArrayLike) -> FloatArray:
    """Symmetric matrices (..., S, S), 0 on the diagonal, from exchangeabilities (..., S (S - 1) / 2) by rows."""
    values = np.asarray(exchangeabilities, dtype=np.float64)
    n_states = (1 + math.isqrt(1 + 8 * values.shape[-1])) // 2
    if values.shape[-1] != n_states * (n_states - 1) // 2:
        raise ValueError(f"expected S (S - 1) / 2 exchangeabilities, found an array of shape {values.shape}")
    matrix = np.zeros((*values.shape[:-1], n_states, n_states))
    rows, columns = _upper_triangle(n_states)
    matrix[..., rows, columns] = matrix[..., columns, rows] = values
    return matrix


@cache
def _upper_triangle(n_states: int) -> tuple[IndexArray, IndexArray]:
    return np.triu_indices(n_states, k=1)


def rate_matrix(exchangeabilities: FloatArray, frequencies: FloatArray) -> FloatArray:
    """The rate matrix Q (..., S, S) of a time-reversible model, scaled to one expected substitution per unit of time.

    ``Q[i, j] = r[i, j] pi[j] / mu`` off the diagonal, rows sum to 0, and ``mu = sum_ij pi[i] r[i, j] pi[j]``
    (Tavare 1986; Felsenstein 2004, chapter 13). The exchangeabilities r (..., S, S) are symmetric and positive, their
    diagonal is ignored; the frequencies pi (..., S) are positive and sum to 1.
    """
    pi, diagonal = frequencies[..., None, :], np.arange(frequencies.shape[-1])
    flow = exchangeabilities * (frequencies[..., :, None] * pi)
    flow[..., diagonal, diagonal] = 0.0
    rates = exchangeabilities * pi / flow.sum(axis=(-2, -1), keepdims=True)
    rates[..., diagonal, diagonal] = 0.0
    rates[..., diagonal, diagonal] = -rates.sum(axis=-1)
    return np.asarray(rates)


def rate_matrix_slopes(
    exchangeabilities: FloatArray, frequencies: FloatArray, slopes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slopes of a function of rate matrices in the arguments of `rate_matrix`, by the chain rule.

    `exchangeabilities` (S, S) are symmetric, 0 on the diagonal; `frequencies` (C, S) belong to the matrices, and so do
    the function's `slopes` (C, S, S) in their elements, taken as independent. Returns slopes in the logarithm of each
    exchangeability (S (S - 1) / 2,), summed over matrices, in the order of `exchangeability_matrix`, and in each
    frequency (C, S), of which only differences have a meaning, because the sum stays 1.
    """
    flow = exchangeabilities * frequencies[:, None, :]
    mean = np.einsum("ci,cij->c", frequencies, flow)
    excess = slopes - np.diagonal(slopes, axis1=1, axis2=2)[:, :, None]  # a rate also changes the diagonal of its row
    change = np.einsum("cij,cij->c", excess, flow) / mean  # if the whole matrix grows
    shared = (excess - change[:, None, None] * frequencies[:, :, None]) / mean[:, None, None]
    by_rate = (shared * flow).sum(axis=0)
    by_frequency = (shared * exchangeabilities).sum(axis=1) - (change / mean)[:, None] * flow.sum(axis=2)
    return (by_rate + by_rate.T)[_upper_triangle(len(by_rate))], by_frequency


def eigensystem(exchangeabilities: FloatArray, frequencies: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of one or several rate matrices: ``Q = right @ diag(eigenvalues) @ left``.

    With ``D = diag(sqrt(pi))`` the matrix ``D Q inv(D)`` is symmetric, so its eigenvectors U are orthonormal,
    all values are real, and ``right = inv(D) U`` and ``left = U' D`` need no inversion (Yang 2006, chapter 2).
    Arguments are as for `rate_matrix`. Eigenvalues (..., S) ascend; the last one, of the stationary distribution, is
    exactly 0. `right` (..., S, S) has eigenvectors in columns, `left` is its inverse.
    """
    root = np.sqrt(frequencies)
    rates = rate_matrix(exchangeabilities, frequencies)
    symmetric = rates * (root[..., :, None] * (1.0 / root)[..., None, :])
    eigenvalues, vectors = np.linalg.eigh((symmetric + symmetric.swapaxes(-2, -1)) / 2)
    eigenvalues[..., -1] = 0.0
    left = np.multiply(vectors.swapaxes(-2, -1), root[..., None, :], order="C")
    return eigenvalues, vectors / root[..., :, None], left


MAX_CONDITION = 1e6  # of eigenvectors; P matrices keep 10 digits
SEPARATION = 1e-10  # relative change of a rate matrix with fewer eigenvectors; P matrices keep as many digits

RealSystem = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


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
    """A rate matrix (S, S) of one expected substitution per unit of time, from any diagonal; stationary frequencies."""
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
