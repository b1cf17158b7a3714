"""Ratios, weights and free rates of models: priors, slopes, and posteriors by quadrature with the oracle."""

from itertools import product

import numpy as np
import pytest
from optimise.five_taxa import ENDS, LENGTHS, STEMS, TREE, columns_of, lnl_of, rows_of
from oracles.covarion import covarion_lnl
from oracles.models import processes_of
from sampling.toys import PRIORS, draw_value
from scipy import stats

from plltool.alignment.patterns import compress
from plltool.analyses.sampling.chains import Chains, Heated
from plltool.analyses.sampling.joint_moves import (
    CoordinateSlopes,
    Directions,
    JointDraw,
    change_value,
    coordinates_of,
    density_slopes,
)
from plltool.analyses.sampling.likelihoods import EngineLikelihoods, Likelihoods
from plltool.analyses.sampling.moves import make_group
from plltool.analyses.sampling.parameters import FACTORS, SHARES, find_parameters
from plltool.analyses.sampling.priors import Dirichlet, Exponential, Gamma, LogNormal, Uniform
from plltool.analyses.sampling.runs import make_moves
from plltool.analyses.sampling.state import ALL_NODES, Proposal, StateSpace, sampling_slots
from plltool.analyses.sampling.tree import from_tree
from plltool.constants import LINKED, SCALED
from plltool.engine.storage import Slots
from plltool.errors import InputError
from plltool.hardware import Hardware
from plltool.io.newick import parse_newick
from plltool.run.engines import open_engine
from plltool.run.inputs import resolve_inputs

PRIOR = LogNormal(-0.5, 0.7)
LEAST_P = 1e-6  # as in test_sampling_moves.py
RATES = ["m{1}", "m{2}"]
BASES = [f"pi1({base})" for base in "ACGT"]
KIND_OF = {"GY": 61, "MG": 61, "M1": 61, "M2": 61, "S1": "doublets", "GT": "GT10", "LG": 20, "MU": 5}  # else bases


TWO_PARTS = "HKY{2}+FE+R2, a = 1-9\nK80+G2, b = 10-12\n"


def make_case(model="GY+FE", prior=PRIOR, **priors):
    """The patterns of five taxa, a state on their tree, its space, and the states of the tips for the oracle."""
    rows, tips = rows_of(KIND_OF.get(model[:2], 4), 12)
    brlen = SCALED if model == TWO_PARTS else LINKED
    data, models = resolve_inputs(rows, f"{model}, {STEMS}" if model.startswith("S1") else model, brlen)
    ones = dict.fromkeys(("weights", "free_rates", "part_rates"), Dirichlet((1.0,)))
    own = dict.fromkeys(("codon", "ratios", "switching"), prior)
    parameters = tuple(find_parameters(models, PRIORS | ones | own | priors, [part.n_sites for part in data.parts]))
    space = StateSpace(data.names, tuple(models), parameters, Exponential(9.0))
    state = space.start(*from_tree(parse_newick(TREE, "the test", data.names)))
    return [compress(part.alignment) for part in data.parts], space, state, tips


def oracle_lnl(models, tips):
    if len(models) > 1:
        columns, (first, second) = columns_of(tips), models
        of_first = lnl_of(first, columns[:9], LENGTHS * first.scaler)
        return of_first + lnl_of(second, columns[9:], LENGTHS * second.scaler)
    (model,) = models
    if model.switching is not None:
        return covarion_lnl(ENDS, LENGTHS, tips, processes_of(model), *model.switching)
    return lnl_of(model, columns_of(tips))


def moves_of_values(space):
    kinds = [own.kind for own in space.parameters]
    groups = ["factors" if kind in FACTORS else "shares" if kind in SHARES else kind for kind in kinds]
    return [move for number, group in enumerate(groups) for move in make_group(group, space, number)]


def likelihoods_of(parts, space, n_chains=1):
    slots = Slots(sampling_slots(len(space.names), n_chains))
    engine, _ = open_engine(parts, space.models, slots, Hardware(device="numpy"))
    return EngineLikelihoods(space, engine, n_chains)


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        ("GY+FE", ["omega", "kappa"]),
        ("MG+FE", ["omega"]),
        ("GY2K+FE", ["omega", "kappa_transition"]),
        ("M2a{0.1/3.0/2.5}{0.5/0.3/0.2}+FE", []),
        ("M2a+FE", ["omega0", "omega2", "kappa", "class(1)", "class(2)", "class(3)"]),
        ("JC+R2", ["rate(1)", "rate(2)", "weight(1)", "weight(2)"]),
        ("JC+COV", ["s(off->on)", "s(on->off)"]),
        ("MIX{K80{2}+FO,JC}", [*BASES, "class(1)", "class(2)"]),
        ("MIX{K80,JC}", ["ratio(1)", "class(1)", "class(2)"]),
        (TWO_PARTS, ["rate(1){1}", "rate(2){1}", "weight(1){1}", "weight(2){1}", "kappa{2}", "alpha{2}", *RATES]),
        ("LG4X", ["rate(1)", "rate(2)", "rate(3)", "rate(4)", "weight(1)", "weight(2)", "weight(3)", "weight(4)"]),
    ],
)
def test_each_has_a_column_and_moves(model, columns):
    parts, space, state, _ = make_case(model)
    assert [name for own in space.parameters for name in own.columns] == columns
    assert len(space.sample(state).numbers) == len(space.columns)
    names = [move.name for move in make_moves(space, parts)]
    assert len(names) == len(set(names))
    assert all(any(f" of {own.name}" in name for name in names) for own in space.parameters)


def test_rates_of_parts_have_the_mean_1():
    _, space, state, _ = make_case(TWO_PARTS)
    state = space.revalued(state, {len(space.parameters) - 1: np.array([0.3, 0.7])})
    assert [model.scaler for model in state.models] == pytest.approx([0.3 / 0.75, 0.7 / 0.25])
    assert space.sample(state).numbers[-2:] == pytest.approx([0.4, 2.8])


def test_free_rates_increase():
    """But not those of LG4X, each of which has a matrix of its own; the density is that of all orders together."""
    low, high = np.array([0.1, 0.3, 0.6]), np.array([0.6, 0.3, 0.1])
    _, space, state, _ = make_case("JC+R3")
    rates, _ = space.parameters
    assert rates.log_prior(high) == -np.inf
    assert rates.log_prior(low) == pytest.approx(np.log(2.0 * 6.0))
    moved = space.revalued(state, {0: low, 1: np.array([0.5, 0.3, 0.2])})
    expected = low / (0.5 * 0.1 + 0.3 * 0.3 + 0.2 * 0.6)  # their weighted mean is 1
    assert space.sample(moved).numbers[3:] == pytest.approx([*expected, 0.5, 0.3, 0.2])
    rates, _ = make_case("LG4X")[1].parameters
    assert rates.log_prior(np.array([0.4, 0.3, 0.2, 0.1])) == pytest.approx(np.log(6.0))


@pytest.mark.parametrize(
    ("model", "prior"),
    [
        *(("GY+FE", prior) for prior in (PRIOR, Gamma(2.0, 1.5), Exponential(0.8))),
        *(("JC+COV", prior) for prior in (Exponential(1.0), Uniform(0.5, 4.0))),
        *((model, PRIOR) for model in ("JC+R2", "MIX{K80+FO,JC}", TWO_PARTS)),
    ],
)
@pytest.mark.parametrize("is_joint", [False, True])
def test_moves_keep_the_prior(model, prior, is_joint):
    _, space, state, _ = make_case(model, prior)
    rng = np.random.default_rng(3)
    values = [[draw_value(own, rng) for own in space.parameters] for _ in range(400)]
    states = [space.state(state.topology, state.lengths, own) for own in values]
    if is_joint:
        directions = Directions.of_size(space.n_coordinates)
        made = [JointDraw(space, 1.0, directions)]
        directions.learn(map(made[0].point, states))
    else:
        made = moves_of_values(space)
    chains = Chains([made] * 400, Likelihoods(), states, Heated(0.1, 1), rng, [rng] * 400)
    for _ in range(20 * len(made)):
        chains.advance()
    for number, parameter in enumerate(space.parameters):
        expected = np.array([draw_value(parameter, rng) for _ in range(4000)])
        found = np.array([own.values[number] for own in chains.states])
        assert not np.array_equal(found, [own.values[number] for own in states])
        for column in range(parameter.size):
            of_chains, drawn = (np.reshape(values, (len(values), -1))[:, column] for values in (found, expected))
            assert stats.ks_2samp(of_chains, drawn).pvalue > LEAST_P


@pytest.mark.parametrize("heat", [1.0, 0.4])
@pytest.mark.parametrize(
    "model",
    ["GY+FE", "HKY+FO+R3", "K80+I+R2+COV", "MIX{HKY+FO,K80+FO}", "M2a+FE", "S16A+FE", "GT10", "LG4X", TWO_PARTS],
)
def test_slopes_are_those_of_the_oracle(model, heat):
    """abs 1e-5: central differences of the oracle's lnL and of the density of the coordinates."""
    parts, space, state, tips = make_case(model)
    rng, step = np.random.default_rng(7), 1e-4
    values = [draw_value(own, rng) for own in space.parameters]
    state = space.revalued(state, dict(enumerate(values)))
    likelihoods = likelihoods_of(parts, space)
    (begun,) = likelihoods.begin([state])
    (asked,) = likelihoods.ask([Proposal(begun, 0.0, ALL_NODES, question=CoordinateSlopes(space))])
    assert oracle_lnl(state.models, tips) == pytest.approx(begun.lnl, rel=1e-12)

    first = 0
    for number, (parameter, value) in enumerate(zip(space.parameters, values, strict=True)):

        def density(change, number=number, parameter=parameter, value=value):
            moved, log_ratio = change_value(parameter, value, change)
            changed = space.revalued(state, {number: moved}).models
            return heat * (oracle_lnl(changed, tips) + parameter.log_prior(moved)) + log_ratio

        chosen = range(min(parameter.n_coordinates, 4))
        ends = [step * np.eye(parameter.n_coordinates)[k] for k in chosen]
        expected = [(density(end) - density(-end)) / (2 * step) for end in ends]
        own = slice(first, first + parameter.n_coordinates)
        found = heat * asked.known.values[own] + density_slopes(parameter, value, heat)
        assert found[: len(ends)] == pytest.approx(np.array(expected), abs=1e-5)
        first = own.stop


GRIDS = [  # of the coordinates; what is compared, so that it has no long tails
    ("GY+FE", (np.linspace(-3.5, 2.5, 25), np.linspace(-2.5, 3.0, 23)), np.log),
    ("JC+R2", (np.linspace(-9.0, 0.0, 61), np.linspace(-9.0, 9.0, 61)), np.asarray),
]


@pytest.mark.parametrize(("model", "axes", "form"), GRIDS)
def test_posterior_by_quadrature(model, axes, form):
    """Means and deviations of the columns, the tree and its lengths being given."""
    parts, space, state, tips = make_case(model)
    starts = [coordinates_of(*pair) for pair in zip(space.parameters, state.values, strict=True)]
    sizes = np.cumsum([own.n_coordinates for own in space.parameters])[:-1]
    logs, shown = [], []
    for point in product(*axes):
        moved = list(map(change_value, space.parameters, state.values, np.split(point, sizes) - np.array(starts)))
        at = space.revalued(state, {number: value for number, (value, _) in enumerate(moved)})
        logs.append(oracle_lnl(at.models, tips) + sum(at.value_priors) + sum(ratio for _, ratio in moved))
        shown.append(form(space.sample(at).numbers[3:]))
    weights, shown = np.exp(np.array(logs) - max(logs)), np.array(shown)
    weights /= weights.sum()
    rng = np.random.default_rng(5)
    n = 40
    moves = moves_of_values(space)
    chains = Chains([moves] * n, likelihoods_of(parts, space, n), [state] * n, Heated(0.1, 1), rng, [rng] * n)
    samples = []
    for generation in range(160 * len(moves)):
        chains.advance()
        if generation >= 40:
            samples.append([form(space.sample(own).numbers[3:]) for own in chains.states])
    samples = np.array(samples)  # (generations, chains, columns)
    for column, values in enumerate(shown.T):
        mean = float(values @ weights)
        deviation = float(np.sqrt((values - mean) ** 2 @ weights))
        of_chains = samples[:, :, column].mean(axis=0)
        error = of_chains.std(ddof=1) / np.sqrt(n)
        assert of_chains.mean() == pytest.approx(mean, abs=4.5 * error)
        assert samples[:, :, column].std() == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize(
    ("model", "priors", "message"),
    [
        ("JC+R3", {"weights": Dirichlet((1.0, 2.0))}, "prior of weights: found 2 values, expected 1 or 3"),
        ("JC+COV", {"switching": Uniform(1e9, 1e10)}, "prior of switching: found uniform.*, expected values from"),
    ],
)
def test_impossible_priors(model, priors, message):
    with pytest.raises(InputError, match=message):
        make_case(model, **priors)
