"""Steps of rates over sites in which branch lengths follow."""

import numpy as np
import pytest
from helpers import likelihood_of, make_tree, mix, random_ends, simulate_codes

from plltool.constants import MAX_RIDGE_PARAMETERS
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.optimise.lengths import smooth
from plltool.optimise.parameters import optimise_model
from plltool.optimise.ridge import Ridge, climb_ridge

STEP = 1e-5


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    ends, lengths = random_ends(rng, 7, 0.3)
    rates = mix([(0.25, [0.25] * 4, np.ones((4, 4)), rate) for rate in (0.1, 0.5, 1.0, 2.4)])
    return ends, lengths, simulate_codes(rng, ends, lengths, 7, 200, rates)


def likelihood_on(data, text):
    ends, lengths, codes = data
    return likelihood_of(make_tree(ends, lengths, 7), codes, np.ones(codes.shape[1]), Model(parse_model(text)))


@pytest.mark.parametrize("text", ["JC+I+G4", "K80+R3", "JC+I+R2"])
def test_slopes_along_the_path(data, text):
    """Against differences of lnL; there, lengths follow as they do here."""
    likelihood = likelihood_on(data, text)
    ridge = Ridge(likelihood, likelihood.models[0].free_parameters)
    ridge.let_lengths_follow()
    at = ridge.start + 0.01
    slopes = ridge.slopes(at)
    assert len(slopes) == ridge.n_parameters + 1
    for k, found in enumerate(slopes):
        values = []
        for step in (STEP, -STEP):
            ridge.set(at + step * (np.arange(len(at)) == k))
            values.append(likelihood.lnl())
        assert found == pytest.approx((values[0] - values[1]) / (2 * STEP), rel=1e-5, abs=1e-4)


def test_lengths_follow(data):
    """After a step of alpha, lnL loses less, and the slopes of lengths stay smaller, than if the lengths stay."""
    likelihood = likelihood_on(data, "JC+I+G4")
    smooth(likelihood, 1e-6)
    ridge = Ridge(likelihood, ["alpha", "pinv"])
    moved = ridge.start + [0.3, 0.3, 0.0]
    left = []
    for follow in (False, True):
        if follow:
            ridge.let_lengths_follow()
        ridge.set(moved)
        lnl, slopes = likelihood.all_derivatives()
        left.append((-lnl, np.abs(slopes[:, 0] * likelihood.tree.lengths).sum()))
    assert left[1][0] < left[0][0]
    assert left[1][1] < 0.5 * left[0][1]


@pytest.mark.parametrize("pinv", [0.02, 0.3])
def test_a_ridge_is_climbed(data, pinv):
    """From the best lengths and alpha for a wrong share of invariable sites; rounds of each in turn would stay near it."""
    likelihood = likelihood_on(data, "JC+I+G4")
    model = likelihood.models[0]
    model.set_pinv(pinv)
    for _ in range(4):
        smooth(likelihood, 1e-5)
        lnl = optimise_model(likelihood, ["alpha"], 1e-5)
    best = likelihood_on(data, "JC+I+G4")
    for _ in range(20):
        smooth(best, 1e-5)
        expected = optimise_model(best, epsilon=1e-5, scale=True)
    assert lnl < expected - 0.05
    reached = climb_ridge(likelihood, ["alpha", "pinv"], lnl)
    assert reached == pytest.approx(likelihood.lnl(), rel=1e-12)
    assert reached > expected - 0.02


def test_what_is_not_better_is_undone(data):
    likelihood = likelihood_on(data, "JC+I+G4")
    for _ in range(20):
        smooth(likelihood, 1e-5)
        lnl = optimise_model(likelihood, epsilon=1e-5, scale=True)
    before = likelihood.models[0].sites, likelihood.tree.lengths.copy()
    assert climb_ridge(likelihood, ["alpha", "pinv"], lnl + 1.0) == lnl + 1.0
    assert likelihood.models[0].sites == before[0]
    np.testing.assert_array_equal(likelihood.tree.lengths, before[1])
    assert likelihood.lnl() == pytest.approx(lnl, rel=1e-14)


@pytest.mark.parametrize("text", ["JC+G4", "JC+I", f"JC+R{MAX_RIDGE_PARAMETERS}"])
def test_too_few_or_too_many_parameters(data, text):
    likelihood = likelihood_on(data, text)
    before = likelihood.tree.lengths.copy()
    assert climb_ridge(likelihood, likelihood.models[0].free_parameters, 7.0) == 7.0
    np.testing.assert_array_equal(likelihood.tree.lengths, before)
