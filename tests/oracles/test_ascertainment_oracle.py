"""The oracle of corrections against sums over all columns, and against closed forms."""

import math
from itertools import product

import numpy as np
import pytest
from helpers import random_ends, random_mixture
from oracles.ascertainment import correction, invariable_lnl
from oracles.likelihood import brute_force


def test_lewis_makes_the_probabilities_of_variable_columns_sum_to_1():
    rng = np.random.default_rng(1)
    ends, lengths = random_ends(rng, 4)
    mixture = random_mixture(rng, 3, 2)
    columns = [[1 << state for state in states] for states in product(range(3), repeat=4) if len(set(states)) > 1]
    lnl = brute_force(ends.tolist(), lengths, columns, mixture.oracle)
    share = correction("lewis", (), invariable_lnl(ends.tolist(), lengths, mixture.oracle, 4).tolist(), 1.0)
    assert np.exp(lnl + share).sum() == pytest.approx(1.0, rel=1e-12)


def test_felsenstein_sums_over_the_states_of_unseen_sites():
    """Two unseen sites: all pairs of states."""
    lnl = [math.log(0.1), math.log(0.05), math.log(0.2)]
    pairs = sum(math.exp(a + b) for a in lnl for b in lnl)
    assert correction("felsenstein", (2,), lnl, 9.0) == pytest.approx(math.log(pairs), rel=1e-14)


def test_far_below_what_a_number_holds():
    lnl = [-1000.0, -1001.0]
    assert correction("felsenstein", (3,), lnl, 9.0) == pytest.approx(3 * (-1000 + math.log1p(math.exp(-1))), rel=1e-14)
    assert correction("lewis", (), lnl, 9.0) == 0.0
    assert correction("stamatakis", (2, 5), lnl, 9.0) == -7005.0
