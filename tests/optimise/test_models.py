"""Model parameters against closed forms and another optimiser on the oracle."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import likelihood_of, make_tree, mix, random_ends, simulate_codes
from oracles.likelihood import pruning
from oracles.substitution import gamma_category_means, q_matrix
from scipy.optimize import minimize, minimize_scalar

from plltool.constants import MIN_BRANCH_LENGTH
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.optimise.models import choose_site_rates, optimise_model
from plltool.optimise.polish import polish

STAR = [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize(("transitions", "transversions"), [(20, 5), (5, 20), (12, 24)])
def test_kappa_of_two_sequences(transitions, transversions):
    """Kimura 1980: of P transitions and Q transversions, kappa = 2 log(1 - 2P - Q) / log(1 - 2Q) - 1."""
    n = 200
    codes = np.array([[1, 1, 1], [1, 4, 2], [15, 15, 15]])
    weights = np.array([n - transitions - transversions, transitions, transversions], dtype=float)
    p, q = transitions / n, transversions / n
    distance = -0.5 * np.log(1 - 2 * p - q) - 0.25 * np.log(1 - 2 * q)
    kappa = 2 * np.log(1 - 2 * p - q) / np.log(1 - 2 * q) - 1
    model = Model(parse_model("K80"))
    likelihood = likelihood_of(make_tree(STAR, [distance / 2] * 3, 3), codes, weights, model)
    lnl = optimise_model(likelihood, epsilon=1e-8)
    assert model.exchangeabilities[1] == pytest.approx(kappa, rel=1e-3)
    best = weights @ np.log(np.array([1 - p - q, p, q / 2]) / 4)
    assert lnl == pytest.approx(best, abs=1e-6)
    assert likelihood.lnl() == pytest.approx(lnl, rel=1e-12)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    ends, lengths = random_ends(rng, 5, 0.3)
    uneven = [0.4, 0.3, 0.2, 0.1]
    rates = np.full((4, 4), 0.5) + 1.5 * np.eye(4)[[2, 3, 0, 1]]  # transitions
    mixture = mix([(0.25, uneven, rates, rate) for rate in (0.1, 0.5, 1.0, 2.4)])
    return ends, lengths, simulate_codes(rng, ends, lengths, 5, 100, mixture)


def oracle_lnl(data, rates, frequencies, alpha=None):
    ends, lengths, codes = data
    q = q_matrix(rates, frequencies)
    categories = [1.0] if alpha is None else gamma_category_means(alpha, 4)
    components = [(1 / len(categories), frequencies, q * rate) for rate in categories]
    return pruning(ends.tolist(), lengths, codes.T.tolist(), components).sum()


def likelihood_on(data, model):
    ends, lengths, codes = data
    return likelihood_of(make_tree(ends, lengths, 5), codes, np.ones(codes.shape[1]), model)


def test_alpha(data):
    def negative(log):
        return -oracle_lnl(data, [1] * 6, [0.25] * 4, float(np.exp(log)))

    best = minimize_scalar(negative, bounds=np.log([0.1, 10]), method="bounded")
    model = Model(parse_model("JC+G4"))
    lnl = optimise_model(likelihood_on(data, model), epsilon=1e-7)
    assert lnl == pytest.approx(-best.fun, abs=1e-4)
    assert model.alpha == pytest.approx(np.exp(best.x), rel=1e-2)


def test_rates_and_frequencies(data):
    def negative(vector):
        ratios = np.append(np.exp(vector[:3]), 1.0)
        kappa = np.exp(vector[3])
        return -oracle_lnl(data, [1, kappa, 1, 1, kappa, 1], (ratios / ratios.sum()).tolist())

    best = minimize(negative, np.zeros(4), method="L-BFGS-B", bounds=[(-3, 3)] * 4)
    lnl = optimise_model(likelihood_on(data, Model(parse_model("HKY+FO"))), epsilon=1e-7)
    assert lnl == pytest.approx(-best.fun, abs=1e-3)


def test_share_of_invariable_sites(data):
    """Against a scan over the oracle; the optimum is inside."""

    def oracle(pinv):
        ends, lengths, codes = data
        q = q_matrix([1] * 6, [0.25] * 4)
        components = [(pinv, [0.25] * 4, 0 * q), (1 - pinv, [0.25] * 4, q / (1 - pinv))]
        return pruning(ends.tolist(), lengths, codes.T.tolist(), components).sum()

    best = minimize_scalar(lambda pinv: -oracle(pinv), bounds=(0.001, 0.9), method="bounded")
    assert 0.05 < best.x < 0.8
    model = Model(parse_model("JC+I"))
    lnl = optimise_model(likelihood_on(data, model), epsilon=1e-7)
    assert lnl == pytest.approx(-best.fun, abs=1e-4)
    assert model.pinv == pytest.approx(best.x, rel=1e-2)


@pytest.mark.parametrize("start", [(0.4, 1e-10), (8.0, 0.4)])
def test_few_invariable_sites_or_many(start):
    """Sites at one rate beside invariable ones: scipy finds two optima on the oracle, the better one with no gamma."""
    rng = np.random.default_rng(2)
    ends, lengths = random_ends(rng, 7, 0.15)
    mixture = mix([(0.45, [0.25] * 4, np.ones((4, 4)), 0.0), (0.55, [0.25] * 4, np.ones((4, 4)), 1 / 0.55)])
    columns, counts = np.unique(simulate_codes(rng, ends, lengths, 7, 300, mixture), axis=1, return_counts=True)
    q = q_matrix([1] * 6, [0.25] * 4)

    def negative(vector):
        (alpha, pinv), varying = np.exp(vector), -np.expm1(vector[1])
        rates = gamma_category_means(float(alpha), 4)
        components = [(pinv, [0.25] * 4, 0 * q), *((varying / 4, [0.25] * 4, q * rate / varying) for rate in rates)]
        return -counts @ pruning(ends.tolist(), lengths, columns.T.tolist(), components)

    bounds = np.log([(0.1, 200), (1e-6, 0.9)])
    optima = [-minimize(negative, np.log(x), method="L-BFGS-B", bounds=bounds).fun for x in ((0.4, 1e-5), (8.0, 0.4))]
    assert optima[1] > optima[0] + 1
    model = Model(parse_model("JC+I+G4"))
    model.set_alpha(start[0])
    model.set_pinv(start[1])
    likelihood = likelihood_of(make_tree(ends, lengths, 7), columns, counts.astype(float), model)
    assert polish(likelihood, lengths=False) > optima[1] - 0.01


def test_free_rates_beat_what_they_contain(data):
    """+R4 contains +G4, whose rates are those of one alpha; +I+G4 contains +G4 and +I."""
    best = {}
    for text in ("JC+G4", "JC+I", "JC+R4", "JC+I+G4"):
        best[text] = optimise_model(likelihood_on(data, Model(parse_model(text))), epsilon=1e-7)
    assert best["JC+R4"] > best["JC+G4"] - 1e-4
    assert best["JC+I+G4"] > max(best["JC+G4"], best["JC+I"]) - 1e-4


def test_the_best_start_of_several(data):
    """The first call tries start values, and lnL never falls; later calls continue from the last values."""
    model = Model(parse_model("JC+I+G4"))
    likelihood = likelihood_on(data, model)
    before = likelihood.lnl()
    choose_site_rates(likelihood, [model.free_parameters])
    assert likelihood.lnl() > before
    chosen = model.sites
    choose_site_rates(likelihood, [model.free_parameters])
    assert model.sites == chosen


def test_lengths_are_scaled_with_the_model(data):
    """From lengths that are all 1.5 times too long, a common factor reaches an lnL that parameters alone cannot."""
    ends, lengths, codes = data
    reached = {}
    for scale in (False, True):
        model = Model(parse_model("JC+G4"))
        likelihood = likelihood_on((ends, 1.5 * lengths, codes), model)
        reached[scale] = optimise_model(likelihood, epsilon=1e-7, scale=scale)
        assert likelihood.lnl() == pytest.approx(reached[scale], rel=1e-12)
        factors = likelihood.tree.lengths / (1.5 * lengths)
        np.testing.assert_allclose(factors, factors[0], rtol=1e-12)
        assert (factors[0] != 1.0) == scale
    assert reached[True] > reached[False] + 0.1


def test_scaled_lengths_stay_within_their_bounds(data):
    ends, lengths, codes = data
    short = np.append(MIN_BRANCH_LENGTH, 5 * lengths[1:])
    likelihood = likelihood_on((ends, short, codes), Model(parse_model("K80")))
    before = likelihood.lnl()
    assert optimise_model(likelihood, scale=True) > before
    assert likelihood.tree.lengths[0] == MIN_BRANCH_LENGTH
    assert np.all(likelihood.tree.lengths[1:] < short[1:])


def test_only_what_is_named_changes(data):
    model = Model(parse_model("GTR+FO+G4"))
    likelihood = likelihood_on(data, model)
    before = likelihood.lnl()
    lnl = optimise_model(likelihood, ["alpha"])
    assert lnl > before
    assert model.alpha != 1.0
    assert model.exchangeabilities.tolist() == [1.0] * 6
    assert model.frequencies.tolist() == [0.25] * 4
    onward = optimise_model(likelihood, ["frequencies", "rates"])
    assert onward > lnl
    assert model.exchangeabilities.tolist() != [1.0] * 6


@pytest.mark.parametrize("text", ["JC", "GTR+FO+G4"])
def test_lnl_never_falls(data, text):
    """And stays where nothing is free."""
    likelihood = likelihood_on(data, Model(parse_model(text)))
    reached = [likelihood.lnl()]
    for _ in range(3):
        reached.append(optimise_model(likelihood))
        assert likelihood.lnl() == pytest.approx(reached[-1], rel=1e-12)
    assert all(later >= earlier for earlier, later in pairwise(reached))
    assert text != "JC" or len(set(reached)) == 1
