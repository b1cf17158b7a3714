import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.substitution import felsenstein81, jukes_cantor, kimura80, q_matrix, transition_matrix

from plltool.model.substitution import eigensystem, exchangeability_matrix, rate_matrix, rate_matrix_slopes

GTR = (1.2, 3.4, 0.8, 1.1, 4.1, 1.0)
SKEWED = (0.28, 0.21, 0.24, 0.27)
EQUAL = (0.25,) * 4
TIMES = (0.0, 1e-6, 0.01, 0.3, 2.0, 50.0)

exchangeabilities_lists = st.lists(st.floats(1e-2, 1e2), min_size=6, max_size=6)
frequency_lists = st.lists(st.floats(0.02, 1.0), min_size=4, max_size=4).map(lambda f: (np.array(f) / sum(f)).tolist())


def p_matrix(exchangeabilities, frequencies, t):
    eigenvalues, right, left = eigensystem(exchangeability_matrix(exchangeabilities), np.array(frequencies))
    return right @ np.diag(np.exp(eigenvalues * t)) @ left


def test_exchangeability_matrix_of_bases():
    expected = [[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]]
    np.testing.assert_array_equal(exchangeability_matrix([1, 2, 3, 4, 5, 6]), expected)


@pytest.mark.parametrize("size", [2, 5, 7])
def test_exchangeability_matrix_refuses_other_lengths(size):
    with pytest.raises(ValueError, match="exchangeabilities"):
        exchangeability_matrix(np.ones(size))


@pytest.mark.parametrize("t", TIMES)
def test_closed_forms(t):
    # atol: rounding of probabilities near 0 that are differences of numbers near 1
    np.testing.assert_allclose(p_matrix((1,) * 6, EQUAL, t), jukes_cantor(t), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(p_matrix((1, 2.5, 1, 1, 2.5, 1), EQUAL, t), kimura80(2.5, t), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(p_matrix((1,) * 6, SKEWED, t), felsenstein81(SKEWED, t), rtol=1e-13, atol=1e-15)


@given(exchangeabilities_lists, frequency_lists, st.floats(0, 10))
def test_agrees_with_matrix_exponential(exchangeabilities, frequencies, t):
    expected = transition_matrix(exchangeabilities, frequencies, t)
    # atol: frequencies of 0.006 and more scale rounding by 1 / sqrt(0.006) < 13, expm rounds as it squares
    np.testing.assert_allclose(p_matrix(exchangeabilities, frequencies, t), expected, atol=1e-13)


@given(exchangeabilities_lists, frequency_lists)
def test_rate_matrix(exchangeabilities, frequencies):
    pi = np.array(frequencies)
    rates = rate_matrix(exchangeability_matrix(exchangeabilities), pi)
    np.testing.assert_allclose(rates, q_matrix(exchangeabilities, frequencies), rtol=1e-13)
    np.testing.assert_allclose(rates.sum(axis=1), 0, atol=1e-13)
    assert -(pi * np.diag(rates)).sum() == pytest.approx(1, rel=1e-14)  # one substitution per unit of time


@given(exchangeabilities_lists, frequency_lists)
def test_eigensystem(exchangeabilities, frequencies):
    eigenvalues, right, left = eigensystem(exchangeability_matrix(exchangeabilities), np.array(frequencies))
    assert eigenvalues[-1] == 0.0
    assert (eigenvalues[:-1] < 0).all()
    np.testing.assert_allclose(right @ left, np.eye(4), atol=1e-13)
    q = q_matrix(exchangeabilities, frequencies)
    np.testing.assert_allclose(right @ np.diag(eigenvalues) @ left, q, atol=1e-13 * np.abs(q).max())


def test_twenty_states():
    # equal rates of S states: P(t)[i, i] = 1 / S + (1 - 1 / S) exp(-S t / (S - 1)) (Yang 2006, chapter 2)
    n_states, t = 20, 0.7
    eigenvalues, right, left = eigensystem(exchangeability_matrix(np.ones(190)), np.full(n_states, 1 / n_states))
    diagonal = np.diag(right @ np.diag(np.exp(eigenvalues * t)) @ left)
    np.testing.assert_allclose(diagonal, 1 / 20 + 19 / 20 * np.exp(-20 * t / 19), rtol=1e-13)


def test_diagonal_of_exchangeabilities_is_ignored():
    matrix = exchangeability_matrix(GTR)
    np.testing.assert_array_equal(
        rate_matrix(matrix + 7 * np.eye(4), np.array(SKEWED)), rate_matrix(matrix, np.array(SKEWED))
    )


@given(exchangeabilities_lists, frequency_lists, frequency_lists)
def test_slopes_of_rate_matrices(exchangeabilities, first, second):
    """Against differences of the oracle, of two matrices that share exchangeabilities."""
    slopes = np.random.default_rng(7).normal(size=(2, 4, 4))
    frequencies = np.array([first, second])

    def value(log_rates, shares):
        matrices = [q_matrix(np.exp(log_rates), (row / row.sum()).tolist()) for row in shares]
        return float(np.sum(slopes * matrices))

    by_pair, by_frequency = rate_matrix_slopes(exchangeability_matrix(exchangeabilities), frequencies, slopes)
    by_frequency -= (by_frequency * frequencies).sum(axis=1, keepdims=True)  # as the oracle is asked: brought to sum 1
    log_rates, step = np.log(exchangeabilities), 1e-5
    tolerance = {"rel": 1e-5, "abs": 1e-6 * max(np.abs(q_matrix(exchangeabilities, row)).max() for row in frequencies)}
    for pair in range(6):
        moved = step * (np.arange(6) == pair)
        expected = (value(log_rates + moved, frequencies) - value(log_rates - moved, frequencies)) / (2 * step)
        assert by_pair[pair] == pytest.approx(expected, **tolerance)
    for place in np.ndindex(2, 4):
        moved = np.zeros((2, 4))
        moved[place] = step * frequencies[place]
        expected = (value(log_rates, frequencies + moved) - value(log_rates, frequencies - moved)) / (2 * step)
        assert by_frequency[place] * frequencies[place] == pytest.approx(expected, **tolerance)
