"""Simulated columns have the frequencies computed by a sum over all histories."""

import math
from itertools import product

import numpy as np
import pytest
from helpers import jukes_cantor_mixture, make_tree, mix, random_mixture
from oracles.likelihood import site_likelihood

from plltool.model.components import evolve

N = 200_000
DEVIATIONS = 5.0  # that a share of N columns may be away from its chance: 1 of 10 million shares is


def assert_share(found, expected, n=N):
    assert abs(found - expected) < DEVIATIONS * math.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize("case", ["mixture", "invariable"])
def test_every_column_is_as_frequent_as_it_is_likely(case):
    """Three taxa, all 64 columns, under components of their own matrices, frequencies and rates."""
    rng = np.random.default_rng(21)
    mixture = random_mixture(rng, 4, 3)
    if case == "invariable":
        frequencies, rates = [0.4, 0.3, 0.2, 0.1], np.ones((4, 4))
        mixture = mix([(0.3, frequencies, rates, 0.0), (0.7, frequencies, rates, 1 / 0.7)])
    ends, lengths = [(0, 3), (1, 3), (2, 3)], [0.1, 0.4, 0.9]
    states = evolve(make_tree(ends, lengths, 3), mixture.components, N, rng)
    shares = np.bincount(states.T @ [16, 4, 1], minlength=64) / N
    for column in product(range(4), repeat=3):
        likelihood = site_likelihood(ends, lengths, [1 << state for state in column], mixture.oracle)
        assert_share(shares[np.array(column) @ [16, 4, 1]], likelihood)


@pytest.mark.parametrize("n_states", [4, 20, 61])
def test_columns_change_as_often_as_jukes_and_cantor_say(n_states):
    """Two tips 0.5 apart differ with (S - 1) / S (1 - exp(-S t / (S - 1)))."""
    rng = np.random.default_rng(4)
    tree = make_tree([(0, 3), (1, 3), (2, 3)], [0.25] * 3, 3)
    states = evolve(tree, jukes_cantor_mixture(n_states).components, N, rng)
    most = (n_states - 1) / n_states
    assert_share(np.mean(states[0] != states[1]), -most * math.expm1(-0.5 / most))
    assert set(np.unique(states)) == set(range(n_states))


def test_length_0_changes_nothing():
    states = evolve(make_tree([(0, 3), (1, 3), (2, 3)], [0.0] * 3, 3), jukes_cantor_mixture().components, 100,
                    np.random.default_rng(1))  # fmt: skip
    assert (states == states[0]).all()
