"""The oracles against each other, sums over all columns, and closed forms."""

import math
from itertools import product

import numpy as np
import pytest
from helpers import as_masks, random_codes, random_ends, random_mixture, random_tips
from oracles.ascertainment import correction, invariable_lnl
from oracles.likelihood import brute_force, pruning


@pytest.mark.parametrize("n_taxa", [4, 5, 6])
@pytest.mark.parametrize("rates", [(1.0,), (5e-13, 1e-6, 5e-3, 4.0)], ids=["one rate", "rates far apart"])
def test_log_space_and_brute_force(n_taxa, rates):
    """rtol 1e-12: both double, short sums."""
    rng = np.random.default_rng([n_taxa, len(rates)])
    ends, lengths = random_ends(rng, n_taxa)
    mixture = random_mixture(rng, 4, len(rates), rates)
    columns = random_codes(rng, n_taxa, 6, unclear=0.2).T.tolist()
    args = ends.tolist(), lengths, columns, mixture.oracle
    np.testing.assert_allclose(pruning(*args), brute_force(*args), rtol=1e-12)


def test_likelihoods_of_tips():
    """A tip that allows two states with likelihoods x and y is x times one column and y times the other."""
    rng = np.random.default_rng(1)
    ends, lengths = random_ends(rng, 4)
    mixture = random_mixture(rng, 4, 2)
    args = ends.tolist(), lengths
    columns = np.swapaxes(as_masks(*random_tips(rng, 4, 6, 4, graded=True)), 0, 1).tolist()
    found = pruning(*args, columns, mixture.oracle)
    np.testing.assert_allclose(found, brute_force(*args, columns, mixture.oracle), rtol=1e-12)
    sets = np.exp(brute_force(*args, [[1, 2, 4, 1], [1, 2, 4, 8]], mixture.oracle))
    own = [[[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 0], [0.3, 0, 0, 0.002]]]
    assert np.exp(pruning(*args, own, mixture.oracle)[0]) == pytest.approx([0.3, 0.002] @ sets, rel=1e-12)


def test_impossible_states_are_minus_infinity():
    """Without change along its branches a tree has only columns of one state, whose likelihood is its frequency."""
    ends = [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)]
    frequencies = [0.1, 0.2, 0.3, 0.4]
    with np.errstate(divide="ignore"):
        expected = np.log([0.2, 0.0, 0.7])
    columns = [[2, 2, 2, 2], [2, 2, 1, 2], [12, 15, 12, 12]]
    found = pruning(ends, np.zeros(5), columns, [(1.0, frequencies, np.ones((4, 4)))])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


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
