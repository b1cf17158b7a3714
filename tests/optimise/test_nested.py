"""A model reaches at least the lnL of the models that it contains."""

from itertools import product

import numpy as np
import pytest
from helpers import jukes_cantor_mixture, likelihood_of, make_tree, random_ends
from oracles.likelihood import pruning

from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.optimise.polish import polish

TOLERANCE = 5.0  # lnL that the criteria of convergence leave open


@pytest.fixture(scope="module")
def even_sites():
    """All patterns of 5 taxa, each as often as expected of a million sites that evolve at one rate, and their best lnL.

    No other distribution of patterns has a higher lnL (Gibbs' inequality), so the best lnL is that of the truth.
    """
    ends, lengths = random_ends(np.random.default_rng(8), 5, 0.3)
    codes = np.array(list(product([1, 2, 4, 8], repeat=5))).T
    site_lnl = pruning(ends.tolist(), lengths, codes.T.tolist(), jukes_cantor_mixture().oracle)
    weights = 1e6 * np.exp(site_lnl)
    return ends, lengths, codes, weights, float(weights @ site_lnl)


@pytest.mark.parametrize("text", ["JC", "JC+G4", "JC+GA4", "JC+I", "JC+I+G4", "K80+R2", "GTR+FO+G4"])
def test_equal_rates_are_reached(even_sites, text):
    """With alpha at most 100 and a share of invariable sites of at least 1e-6, hundreds and 1 lnL were missing."""
    ends, lengths, codes, weights, best = even_sites
    model = Model(parse_model(text))
    likelihood = likelihood_of(make_tree(ends, 1.3 * lengths, 5), codes, weights, model)
    assert best - TOLERANCE < polish(likelihood) < best + 1e-6
