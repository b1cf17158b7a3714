"""Rate categories of sites: their choice against enumeration, lnL and slopes against the oracle."""

from itertools import combinations

import numpy as np
import pytest
from helpers import make_tree, mix, plain_engine, random_ends, simulate_codes
from oracles.likelihood import pruning
from oracles.substitution import q_matrix
from slopes import assert_slopes, disturb

from plltool.engine.base import EngineData
from plltool.engine.categories import CategoryEngine
from plltool.engine.layout import Layout
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.vector import scale_slope
from plltool.optimise.categories import best_rates, choose_categories, lnl_at_rates, rate_grid
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import optimise_model

N_TAXA = 6
STEP = 1e-4


@pytest.fixture(scope="module")
def data():
    """Columns of three rates on a random tree."""
    rng = np.random.default_rng(3)
    ends, lengths = random_ends(rng, N_TAXA, 0.3)
    codes = []
    for rate in (0.05, 1.0, 4.0):
        mixture = mix([(1.0, [0.4, 0.3, 0.2, 0.1], np.full((4, 4), 1.0), rate)])
        codes.append(simulate_codes(rng, ends, lengths, N_TAXA, 25, mixture))
    return ends, lengths, np.concatenate(codes, axis=1), rng.integers(1, 5, 75).astype(float)


def likelihood_of(data, text):
    ends, lengths, codes, weights = data
    model = Model(parse_model(text), np.array([0.4, 0.3, 0.2, 0.1]))

    def make(own, parts):
        return plain_engine(Layout(4, 1, N_TAXA, parts, 4), 3 * N_TAXA, own)

    engine = CategoryEngine(make, EngineData(codes, weights), (len(weights),))
    return TreeLikelihood(make_tree(ends, lengths, N_TAXA), [model], engine)


def oracle_lnl(data, model, lengths, rate_of):
    """lnL of each pattern at a rate of its own."""
    ends, _, codes, _ = data
    q = q_matrix(model.exchangeabilities, model.frequencies)
    lnl = np.empty(codes.shape[1])
    for rate in np.unique(rate_of):
        own = rate_of == rate
        lnl[own] = pruning(ends.tolist(), lengths, codes[:, own].T.tolist(), [(1.0, model.frequencies, q * rate)])
    return lnl


def rates_of(model):
    return model.sites.categories()[0][model.sites.category_of]


def test_best_rates_are_those_of_all_combinations():
    """Curves with one peak each; patterns that say nothing are flat."""
    rng = np.random.default_rng(8)
    grid = np.arange(7.0)
    for k in (1, 2, 3, 5, 7, 9):
        peaks, depths = rng.uniform(-2, 9, 40), rng.exponential(1.0, 40)
        depths[:3] = 0.0
        lnl = -depths * np.abs(grid[:, None] - peaks) ** rng.uniform(0.5, 3.0, 40) - 1.0
        weights = rng.integers(1, 5, 40).astype(float)
        found = best_rates(lnl, weights, k)
        totals = {some: lnl[list(some)].max(axis=0) @ weights for some in combinations(range(7), min(k, 7))}
        assert list(found) == sorted(set(found.tolist()))
        assert totals[tuple(found.tolist())] == pytest.approx(max(totals.values()), rel=1e-12)


def test_patterns_whose_best_rate_is_chosen_count():
    assert best_rates(np.array([[-1.0, -9.0], [-3.0, -8.0]]), np.ones(2), 1).tolist() == [0]


def test_an_impossible_rate_is_not_chosen():
    lnl = np.array([[-np.inf, -np.inf], [-3.0, -1.0], [-2.0, -4.0]])
    assert best_rates(lnl, np.ones(2), 1).tolist() == [1]
    assert best_rates(lnl, np.ones(2), 2).tolist() == [1, 2]


def test_lnl_at_each_rate(data):
    likelihood = likelihood_of(data, "HKY{1/3}+F+PSR")
    model = likelihood.models[0]
    found = lnl_at_rates(likelihood, {0: np.array([0.1, 1.0, 5.0])})[0]
    for rate, row in zip((0.1, 1.0, 5.0), found, strict=True):
        assert row == pytest.approx(oracle_lnl(data, model, data[1], np.full(75, rate)), rel=1e-11)


def test_the_grid_has_the_mean():
    assert 1.0 in rate_grid()
    assert (np.diff(rate_grid()) > 0).all()


def test_each_pattern_gets_the_best_rate(data):
    _, lengths, _, weights = data
    likelihood = likelihood_of(data, "HKY{1/3}+F+PSR3")
    model = likelihood.models[0]
    before = likelihood.lnl()
    assert before == pytest.approx(oracle_lnl(data, model, lengths, np.ones(75)) @ weights, rel=1e-11)
    choose_categories(likelihood)
    rates, shares = model.sites.categories()
    own = rates_of(model)
    assert len(rates) == 3
    assert shares == pytest.approx([weights[own == rate].sum() / weights.sum() for rate in rates])
    assert weights @ own / weights.sum() == pytest.approx(1.0)  # the mean rate of sites
    factor = likelihood.tree.lengths / lengths
    assert factor == pytest.approx(np.full(len(lengths), factor[0]))
    everywhere = [oracle_lnl(data, model, likelihood.tree.lengths, np.full(75, rate)) for rate in rates]
    assert likelihood.site_lnl() == pytest.approx(np.max(everywhere, axis=0), rel=1e-11)
    assert likelihood.lnl() > before + 10
    again = [oracle_lnl(data, model, lengths, np.full(75, rate)) for rate in rate_grid()]
    best = max(np.max([again[k] for k in some], axis=0) @ weights for some in combinations(range(8, len(again), 4), 3))
    assert likelihood.lnl() >= best - 1e-9  # of a coarser grid


def test_given_rates_stay(data):
    likelihood = likelihood_of(data, "HKY{1/3}+F+PSR4{3/0.2/1/31}")
    model = likelihood.models[0]
    choose_categories(likelihood)
    assert np.array_equal(likelihood.tree.lengths, data[1])
    everywhere = [oracle_lnl(data, model, data[1], np.full(75, rate)) for rate in (0.2, 1.0, 3.0, 31.0)]
    assert likelihood.site_lnl() == pytest.approx(np.max(everywhere, axis=0), rel=1e-11)
    assert rates_of(model).tolist() == [(0.2, 1.0, 3.0, 31.0)[k] for k in np.argmax(everywhere, axis=0)]
    assert parse_model(model.to_string()).sites.rates == (0.2, 1.0, 3.0, 31.0)


def test_rates_stay_where_little_is_gained(data):
    likelihood = likelihood_of(data, "HKY{1/3}+F+PSR6")
    choose_categories(likelihood)
    values, lengths = likelihood.models[0].to_string(), likelihood.tree.lengths.copy()
    choose_categories(likelihood)
    assert likelihood.models[0].to_string() == values
    assert np.array_equal(likelihood.tree.lengths, lengths)


@pytest.mark.parametrize("text", ["GTR+FO+PSR5", "HKY+FO+PSR2+B"])
def test_slopes(data, text):
    """Of exchangeabilities, frequencies and a factor of the lengths, summed over the categories."""
    weights = data[3]
    likelihood = likelihood_of(data, text)
    model = likelihood.models[0]
    choose_categories(likelihood)
    disturb(likelihood, 0.3, 2)
    lengths = likelihood.tree.lengths

    def oracle(moved, factor=1.0):
        rate_of = moved.scaler * factor * rates_of(moved)
        return oracle_lnl(data, moved, lengths, rate_of) @ weights

    tolerance = {"rel": 1e-5, "abs": 1e-6 * weights.sum()}
    matrices = assert_slopes(likelihood, oracle, STEP, **tolerance)
    expected = (oracle(model, np.exp(STEP)) - oracle(model, np.exp(-STEP))) / (2 * STEP)
    assert scale_slope(model, matrices) == pytest.approx(expected, **tolerance)


def test_optimise_model_chooses_categories_and_never_falls(data):
    likelihood = likelihood_of(data, "JC+PSR4")
    before = likelihood.lnl()
    reached = optimise_model(likelihood)
    assert reached == likelihood.lnl() > before
    assert likelihood.models[0].sites.category_of is not None
    assert optimise_model(likelihood) >= reached
    assert optimise_model(likelihood_of(data, "JC+PSR4"), ("rates",)) == before  # only what was asked for
