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
    """The rate matrix Q of a time-reversible model, scaled to one expected substitution per unit of time.

    ``Q[i, j] = r[i, j] pi[j] / mu`` off the diagonal, rows sum to 0, and ``mu = sum_ij pi[i] r[i, j] pi[j]``
    (Tavare 1986; Felsenstein 2004, chapter 13).

    exchangeabilities : float64 (..., S, S), r, symmetric and positive; its diagonal is ignored.
    frequencies : float64 (..., S), pi, positive, summing to 1.

    Returns float64 (..., S, S).
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

    Parameters
    ----------
    exchangeabilities : float64 (S, S), symmetric, 0 on the diagonal
    frequencies : float64 (C, S), those of each matrix
    slopes : float64 (C, S, S), the function's slope in each element of each matrix, elements taken as independent

    Returns
    -------
    by_pair : float64 (S (S - 1) / 2,), slope in the logarithm of each exchangeability, summed over matrices, in the
        order of `exchangeability_matrix`
    by_frequency : float64 (C, S), slope in each frequency; only differences have a meaning, because the sum stays 1
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

    Parameters
    ----------
    exchangeabilities : float64 (..., S, S), symmetric and positive; its diagonal is ignored.
    frequencies : float64 (..., S), positive, summing to 1.

    Returns
    -------
    eigenvalues : float64 (..., S), ascending; the last one, of the stationary distribution, is exactly 0.
    right : float64 (..., S, S), right eigenvectors in columns.
    left : float64 (..., S, S), the inverse of ``right``.
    """
    root = np.sqrt(frequencies)
    rates = rate_matrix(exchangeabilities, frequencies)
    symmetric = rates * (root[..., :, None] * (1.0 / root)[..., None, :])
    eigenvalues, vectors = np.linalg.eigh((symmetric + symmetric.swapaxes(-2, -1)) / 2)
    eigenvalues[..., -1] = 0.0
    left = np.multiply(vectors.swapaxes(-2, -1), root[..., None, :], order="C")
    return eigenvalues, vectors / root[..., :, None], left
