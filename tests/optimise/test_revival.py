"""Rates near 0 that would raise lnL: against the oracle, and an optimum of another program."""

import numpy as np
import pytest
from helpers import likelihood_of, make_tree, mix, random_ends, simulate_codes

import plltool
from plltool.constants import REVIVAL_STEPS
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.optimise.polish import polish
from plltool.optimise.revival import revive_rates
from plltool.tree.rooted import add_root
from tests.analyses.test_rooted import IQTREE_TREE, PRIMATES
from tests.optimise.test_parameter_gradients import oracle_with_root

PLACE, SHARE = 2, 1 / 3  # of the root in `oracle_with_root`
IQTREE_LNL = -5903.99850252  # IQ-TREE 2.0.7, -m RY6.17a+G4 -te IQTREE_TREE: lnL of the checkpoint


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(7)
    ends, lengths = random_ends(rng, 5, 0.3)
    mixture = mix([(1.0, [0.3, 0.2, 0.4, 0.1], np.ones((4, 4)), 1.0)])
    return ends, lengths, simulate_codes(rng, ends, lengths, 5, 100, mixture)


def rooted_likelihood(data, model):
    ends, lengths, codes = data
    rows = np.vstack([np.full_like(codes[:1], 15), codes])
    return likelihood_of(add_root(make_tree(ends, lengths, 5), PLACE, SHARE), rows, np.ones(codes.shape[1]), model)


def with_rates(model, rates):
    design, other = model.spec.named.rates, model.copy()
    other.set_ratios("rates", design.parameters_of(rates)[design.is_free])
    return other


@pytest.mark.parametrize("text", ["UNREST", "STRSYM+G4", "RY5.16", "WS8.17+G2"])
def test_the_ray_that_raises_lnl_most(data, text):
    """Weights of all rays but one are 1, and this one's almost 0; the oracle then knows the best step back."""
    model = Model(parse_model(text))
    ratios = model.ratios("rates")
    lost = []
    for number in range(len(ratios)):
        model.set_ratios("rates", np.where(np.arange(len(ratios)) == number, 1e-3, ratios))
        lost.append((oracle_with_root(data, model), number))
    model.set_ratios("rates", np.where(np.arange(len(ratios)) == min(lost)[1], 1e-3, ratios))
    rates = model.exchangeabilities / model.exchangeabilities.mean()
    design = model.spec.named.rates
    rays = (design.powers if design.rays is None else design.rays).T
    steps = [step * ray / ray.mean() for ray in rays for step in REVIVAL_STEPS]
    best = max(oracle_with_root(data, with_rates(model, rates + step)) for step in steps)
    likelihood = rooted_likelihood(data, model)
    before, lengths = likelihood.lnl(), likelihood.tree.lengths.copy()
    reached = revive_rates(likelihood, ["rates"], before)
    assert reached == pytest.approx(best, rel=1e-9)  # the weights of rays come from Newton steps
    assert reached > before + 1
    assert likelihood.lnl() == reached == pytest.approx(oracle_with_root(data, likelihood.models[0]), rel=1e-11)
    assert (likelihood.tree.lengths == lengths).all()


@pytest.mark.parametrize(("text", "groups"), [("UNREST", []), ("UNREST{9/1/1/1/9/1/1/1/9/9/1/0.001}", ["rates"])])
def test_rates_that_are_not_optimised_stay(data, text, groups):
    likelihood = rooted_likelihood(data, Model(parse_model(text)))
    before, lnl = likelihood.models[0].to_string(), likelihood.lnl()
    assert revive_rates(likelihood, groups, lnl) == lnl
    assert likelihood.models[0].to_string() == before


def test_an_optimum_that_another_program_finds():
    """An optimisation in logarithms alone ends 1.1 lower, with weights of rays at 0."""
    with plltool.Likelihood(PRIMATES, IQTREE_TREE, "RY6.17a+G4") as likelihood:
        assert polish(likelihood._likelihood) > IQTREE_LNL - 0.01
