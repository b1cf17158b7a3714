"""Matrices of an instance against the matrix exponential; the library has no derivatives of complex eigensystems."""

import numpy as np
import pytest
from scipy.linalg import expm
from sequences import random_system

from plltool.beagle.model import EigenSystem


@pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("n_states", [4, 5])
def test_matrices_and_derivatives(n_states, is_complex):
    right, left, values, _ = random_system(np.random.default_rng(n_states), n_states, is_complex)
    system = EigenSystem.of(right, left, values)
    b = np.diag(values[:n_states])
    if is_complex:
        assert np.any(values[n_states:] != 0)
        for k in np.flatnonzero(values[n_states:] > 0):
            b[k, k + 1], b[k + 1, k] = values[n_states + k], -values[n_states + k]
    q = right @ b @ left
    times, rates = np.array([0.1, 1.5]), np.array([0.3, 0.0, 2.0])
    for order in range(3):
        found = system.matrices(times, rates, order)
        for t, of_time in zip(times, found, strict=True):
            for rate, matrix in zip(rates, of_time, strict=True):
                expected = np.linalg.matrix_power(q * rate, order) @ expm(q * rate * t)
                np.testing.assert_allclose(matrix, expected, rtol=1e-10, atol=1e-12)


def test_pairs_may_begin_at_any_place():
    system = EigenSystem.of(np.eye(4), np.eye(4), np.array([0.0, -1, -1, -2, 0, 3, -3, 0]))
    assert system.partner.tolist() == [0, 2, 1, 3]
