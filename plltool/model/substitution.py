"""Time-reversible substitution: rate matrices and their eigensystems, for any number of states."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray


def exchangeability_matrix(exchangeabilities: npt.ArrayLike) -> FloatArray:
    """A list of exchangeabilities as a symmetric matrix, or several lists.

    `exchangeabilities`: (..., S (S - 1) / 2), the upper triangle row by row; for bases in the order AC AG AT CG CT GT.

    Returns float64 (..., S, S), symmetric, with zeros on the diagonal.
    """
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
