"""Omega and kappas of codon models: prior, slopes, and the posterior by quadrature with the lnL of the oracle."""

import numpy as np
import pytest
from optimise.five_taxa import TREE, columns_of, lnl_of, rows_of
from sampling.toys import PRIORS, draw_value
from scipy import stats

from plltool.alignment.patterns import compress
from plltool.analyses.sampling.chains import Chains, EngineLikelihoods, Heated, Likelihoods, sampling_slots
from plltool.analyses.sampling.joint_moves import (
    CoordinateSlopes,
    Directions,
    JointDraw,
    change_value,
    coordinates_of,
    density_slopes,
)
from plltool.analyses.sampling.moves import CodonMultiplier
from plltool.analyses.sampling.parameters import find_parameters
from plltool.analyses.sampling.priors import Exponential, Gamma, LogNormal
from plltool.analyses.sampling.state import ALL_NODES, Proposal, StateSpace
from plltool.analyses.sampling.tree import from_tree
from plltool.constants import LINKED
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.io.newick import parse_newick
from plltool.run.engines import open_engine
from plltool.run.inputs import resolve_inputs

PRIOR = LogNormal(-0.5, 0.7)
LEAST_P = 1e-6  # as in test_sampling_moves.py


def make_case(model="GY+FE", prior=PRIOR):
    """The patterns of five taxa, a state on their tree, its space, and the columns for the oracle."""
    rows, tips = rows_of(61, 12)
    data, models = resolve_inputs(rows, model, LINKED)
    parameters = tuple(find_parameters(models, PRIORS | {"codon": prior}))
    space = StateSpace(data.names, tuple(models), parameters, Exponential(9.0))
    state = space.start(*from_tree(parse_newick(TREE, "the test", data.names)))
    return [compress(part.alignment) for part in data.parts], space, state, columns_of(tips)


def likelihoods_of(parts, space, n_chains=1):
    slots = Slots(sampling_slots(len(space.names), n_chains))
    engine, _ = open_engine(parts, space.models, slots, Hardware(device="numpy"))
    return EngineLikelihoods(space, engine, n_chains)


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        ("GY+FE", ("omega", "kappa")),
        ("MG+FE", ("omega",)),
        ("GY2K+FE", ("omega", "kappa_transition")),
        ("M2a{0.1/3.0/2.5}{0.5/0.3/0.2}+FE", ()),
    ],
)
def test_each_has_a_column(model, columns):
    _, space, state, _ = make_case(model)
    assert tuple(name for own in space.parameters for name in own.columns) == columns
    assert [len(value) for value in state.values] == [len(columns)] * bool(columns)


@pytest.mark.parametrize("prior", [PRIOR, Gamma(2.0, 1.5), Exponential(0.8)])
@pytest.mark.parametrize("move", [CodonMultiplier, JointDraw])
def test_moves_keep_the_prior(move, prior):
    _, space, state, _ = make_case(prior=prior)
    rng = np.random.default_rng(3)
    values = [[draw_value(own, rng) for own in space.parameters] for _ in range(400)]
    states = [space.state(state.topology, state.lengths, own) for own in values]
    if move is JointDraw:
        directions = Directions.of_size(space.n_coordinates)
        made = JointDraw(space, 1.0, directions)
        directions.learn(map(made.point, states))
    else:
        made = CodonMultiplier(space, 1.0, 0)
    chains = Chains([[made]] * 400, Likelihoods(), states, Heated(0.1, 1), rng, [rng] * 400)
    for _ in range(20):
        chains.advance()
    expected = np.array([draw_value(space.parameters[0], rng) for _ in range(4000)])
    found = np.array([own.values[0] for own in chains.states])
    assert not np.array_equal(found, [own.values[0] for own in states])
    for column in range(2):
        assert stats.ks_2samp(found[:, column], expected[:, column]).pvalue > LEAST_P


@pytest.mark.parametrize("heat", [1.0, 0.4])
def test_slopes_are_those_of_the_oracle(heat):
    """abs 1e-5: central differences of the oracle's lnL and of the density of the coordinates."""
    parts, space, state, columns = make_case()
    (parameter,), value, step = space.parameters, np.array([0.6, 2.3]), 1e-4
    state = space.revalued(state, {0: value})
    likelihoods = likelihoods_of(parts, space)
    (begun,) = likelihoods.begin([state])
    (asked,) = likelihoods.ask([Proposal(begun, 0.0, ALL_NODES, question=CoordinateSlopes(space))])

    def density(change):
        moved, log_ratio = change_value(parameter, value, change)
        model = space.revalued(state, {0: moved}).models[0]
        return heat * (lnl_of(model, columns) + parameter.log_prior(moved)) + log_ratio

    assert lnl_of(state.models[0], columns) == pytest.approx(begun.lnl, rel=1e-12)
    expected = [(density(step * e) - density(-step * e)) / (2 * step) for e in np.eye(2)]
    found = heat * asked.known.values[:2] + density_slopes(parameter, value, heat)
    assert found == pytest.approx(np.array(expected), abs=1e-5)
    np.testing.assert_allclose(coordinates_of(parameter, value), np.log(value))


def test_posterior_by_quadrature():
    """Means and deviations of log omega and log kappa, the tree and its lengths being given."""
    parts, space, state, columns = make_case()
    omegas, kappas = np.linspace(-3.5, 2.5, 25), np.linspace(-2.5, 3.0, 23)
    logs = np.empty((len(omegas), len(kappas)))
    for i, a in enumerate(omegas):
        for k, b in enumerate(kappas):
            value = np.exp([a, b])
            model = space.revalued(state, {0: value}).models[0]
            logs[i, k] = lnl_of(model, columns) + space.parameters[0].log_prior(value) + a + b  # in the logarithms
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    rng = np.random.default_rng(5)
    n = 40
    chains = Chains(
        [[CodonMultiplier(space, 1.0, 0)]] * n,
        likelihoods_of(parts, space, n),
        [state] * n,
        Heated(0.1, 1),
        rng,
        [rng] * n,
    )
    samples = []
    for generation in range(160):
        chains.advance()
        if generation >= 40:
            samples.append([np.log(own.values[0]) for own in chains.states])
    samples = np.array(samples)  # (generations, chains, 2)
    for column, (axis, marginal) in enumerate(((omegas, weights.sum(axis=1)), (kappas, weights.sum(axis=0)))):
        mean = float(axis @ marginal)
        deviation = float(np.sqrt((axis - mean) ** 2 @ marginal))
        of_chains = samples[:, :, column].mean(axis=0)
        error = of_chains.std(ddof=1) / np.sqrt(n)
        assert of_chains.mean() == pytest.approx(mean, abs=4.5 * error)
        assert samples[:, :, column].std() == pytest.approx(deviation, rel=0.1)
