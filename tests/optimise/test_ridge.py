"""Steps of models in which branch lengths follow."""

import numpy as np
import pytest
from helpers import likelihood_of, make_tree, mix, random_ends, simulate_codes

from plltool.engine.base import EngineData
from plltool.engine.layout import Layout
from plltool.engine.numpy_engine import NumpyEngine
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import optimise_model
from plltool.optimise.ridge import MAX_RIDGE_PARAMETERS, Ridge, climb_ridge

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


def parts_on(data, texts, unlinked):
    """The columns in turn to each part."""
    ends, lengths, codes = data
    models = [Model(parse_model(text)) for text in texts]
    columns = np.argsort(np.arange(codes.shape[1]) % len(models), kind="stable")
    components = models[0].components()
    layout = Layout(components.n_states, components.n_components, 7, (codes.shape[1] // len(models),) * len(models), 4)
    engine = NumpyEngine(layout, 30, EngineData(codes[:, columns], np.ones(codes.shape[1])))
    tree = make_tree(ends, lengths, 7)
    if unlinked:
        tree = tree.unlink(len(models))
        tree.lengths[:, 1] *= 1.2
    return TreeLikelihood(tree, models, engine)


@pytest.mark.parametrize(
    ("texts", "unlinked"),
    [
        (["JC+I+G4"], False),
        (["K80+R3"], False),
        (["JC+I+R2"], False),
        (["JC+I+G4", "K80+I+G4"], False),
        (["JC+I+G4", "K80+I+G4"], True),
    ],
)
def test_slopes_along_the_path(data, texts, unlinked):
    """Against differences of lnL; there, lengths follow as they do here."""
    likelihood = parts_on(data, texts, unlinked)
    ridge = Ridge(likelihood, ["alpha", "pinv", "free_rates"])
    ridge.let_lengths_follow()
    at = ridge.start + 0.01
    lnl, slopes = ridge.slopes(at)
    assert lnl == pytest.approx(likelihood.lnl(), rel=1e-12)
    assert len(slopes) == ridge.n_parameters + 1 + unlinked
    for k, found in enumerate(slopes):
        values = []
        for step in (STEP, -STEP):
            ridge.set(at + step * (np.arange(len(at)) == k))
            values.append(likelihood.lnl())
        assert found == pytest.approx((values[0] - values[1]) / (2 * STEP), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("parameter", [0, 1])
def test_lengths_follow(data, parameter):
    """After a step of alpha or pinv lnL is higher than if the lengths, which were optimised, had stayed."""
    likelihood = likelihood_on(data, "JC+I+G4")
    smooth(likelihood, 1e-8)
    ridge = Ridge(likelihood, ["alpha", "pinv"])
    moved = ridge.start + 0.1 * (np.arange(3) == parameter)
    lnls = []
    for follow in (False, True):
        if follow:
            ridge.let_lengths_follow()
        ridge.set(moved)
        lnls.append(likelihood.lnl())
    assert lnls[1] > lnls[0] + 0.001


def test_a_ridge_is_climbed(data):
    """From the best lengths and alpha for a wrong share of invariable sites, where rounds of each in turn stay."""
    likelihood, best = likelihood_on(data, "JC+I+G4"), likelihood_on(data, "JC+I+G4")
    likelihood.models[0].set_pinv(0.1)
    for _ in range(6):
        smooth(likelihood, 1e-6)
        lnl = optimise_model(likelihood, ["alpha"], 1e-6)
    for _ in range(15):
        smooth(best, 1e-6)
        expected = optimise_model(best, epsilon=1e-6, scale=True)
    assert lnl < expected - 0.1
    reached = lnl
    for _ in range(2):  # the lengths' response is found anew, as in the rounds of `polish`
        reached = climb_ridge(likelihood, ["alpha", "pinv"], reached)
    assert reached == pytest.approx(likelihood.lnl(), rel=1e-12)
    assert reached > expected - 0.02


def test_what_is_not_better_is_undone(data):
    likelihood = likelihood_on(data, "JC+I+G4")
    lnl = likelihood.lnl()
    before = likelihood.models[0].sites, likelihood.tree.lengths.copy()
    assert climb_ridge(likelihood, ["alpha", "pinv"], lnl + 1000.0) == lnl + 1000.0  # which no step can reach
    assert likelihood.models[0].sites == before[0]
    np.testing.assert_array_equal(likelihood.tree.lengths, before[1])
    assert likelihood.lnl() == pytest.approx(lnl, rel=1e-14)


@pytest.mark.parametrize("text", ["JC", f"JC+R{MAX_RIDGE_PARAMETERS}"])
def test_too_few_or_too_many_parameters(data, text):
    likelihood = likelihood_on(data, text)
    before = likelihood.tree.lengths.copy()
    assert climb_ridge(likelihood, likelihood.models[0].free_parameters, 7.0) == 7.0
    np.testing.assert_array_equal(likelihood.tree.lengths, before)
