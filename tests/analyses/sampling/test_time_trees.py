"""Trees in time: their coordinates, priors and moves against closed forms, differences and exact draws."""

import math
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from oracles.coalescents import log_density, simulate_three
from sampling.time_toys import (
    DATED,
    RATE,
    SIZE,
    SPREAD,
    THREE_DATES,
    THREE_TIPS,
    assert_three_are_sampled,
    draw_state,
    draw_tree,
    make_time_space,
    rank_key,
    rooted_key,
    three_lnls,
)
from sampling.toys import draw_topology, make_parts
from scipy import integrate, stats

import plltool
from plltool.analyses.sampling.chains import Chains, Heated
from plltool.analyses.sampling.likelihoods import EngineLikelihoods, Likelihoods
from plltool.analyses.sampling.moves import LearntMove
from plltool.analyses.sampling.priors import Gamma, LogNormal, Normal
from plltool.analyses.sampling.runs import make_time_moves
from plltool.analyses.sampling.state import ALL_NODES, COLUMNS, Proposal, Slopes, sampling_slots
from plltool.analyses.sampling.time_mass import OF_TIMES, UsualTimes
from plltool.analyses.sampling.time_moves import HeightDraw, NarrowExchange, RootHeight, SubtreeSlide, WideRegraft
from plltool.analyses.sampling.time_state import Calibration, TimeNumber
from plltool.analyses.sampling.tree import (
    Topology,
    changed_nodes,
    coordinates_of_heights,
    hang,
    heights_at,
    is_legal,
    log_jacobian,
    root_tree,
)
from plltool.analyses.sampling.tree_priors import BirthDeath, ConstantPopulation, ExponentialGrowth, Skygrid
from plltool.engine.storage import Slots
from plltool.hardware import Hardware
from plltool.run.engines import open_engine

LEAST_P = 1e-6  # as in test_sampling_moves.py
GROWTH = [TimeNumber("popSize", True, SIZE), TimeNumber("growthRate", False, Normal(0.2, 0.5))]
SKYGRID = [
    TimeNumber("logPopSize1", False, SIZE, True),
    *(TimeNumber(f"logPopSize{k}", False, None) for k in (2, 3, 4)),
]
SKYGRID.append(TimeNumber("precision", True, Gamma(2.0, 3.0)))
BIRTHS = [TimeNumber("diversificationRate", True, SIZE), TimeNumber("relativeDeathRate", True, SIZE, high=1.0)]
BIRTHS.append(TimeNumber("samplingRate", True, SIZE))
PRIORS = [
    (ConstantPopulation(), (), [1.2]),
    (ExponentialGrowth(), GROWTH, [1.2, 0.3]),
    (Skygrid(4, 1.8), SKYGRID, [0.2, 0.5, -0.1, 0.3, 2.0]),
    (BirthDeath(True, True, 0.3), (BIRTHS[0], BIRTHS[2]), [1.2, 0.3]),
    (BirthDeath(False, True, 0.0), BIRTHS, [0.4, 0.6, 0.7]),
]


def distances(parent, lengths, tips):
    """Between all pairs of tips, by walking up."""

    def path(node):
        found = {}
        total = 0.0
        while node >= 0:
            found[node] = total
            total += lengths[node]
            node = parent[node]
        return found

    paths = [path(tip) for tip in tips]
    return [[min(a[node] + b[node] for node in a.keys() & b.keys()) for b in paths] for a in paths]


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_without_its_root_has_the_same_distances(seed):
    """rel 1e-12: sums of a few lengths in another order."""
    rng = np.random.default_rng(seed)
    space = make_time_space((0.0, 0.7, 0.2, 1.5, 0.0, 0.3, 2.0), relaxed=True)
    state = draw_state(space, rng)
    time = state.time
    rates = time.numbers[0] * np.array(time.rates)
    expected = distances(time.rooted.parent, (rates * time.gaps).tolist(), range(1, 8))
    found = distances(state.topology.parent, state.lengths, range(7))
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-12)
    children = {node for node in (*state.topology.left, *state.topology.right) if node >= 0}
    assert children == set(range(1, state.topology.n_nodes))


def test_clas_that_are_kept_are_those_of_the_new_tree():
    """Walks of all moves on an engine, with the likelihoods of all nodes made again; rel 1e-12, the same sums."""
    rng = np.random.default_rng(4)
    space = make_time_space(relaxed=True)
    parts = make_parts(5)
    engine, _ = open_engine(parts, space.models, Slots(sampling_slots(5, 2)), Hardware(device="numpy"))
    likelihoods = EngineLikelihoods(space, engine, 2)
    state = likelihoods.begin([draw_state(space, rng)] * 2)[0]
    some = 0
    for _ in range(30):
        for move in make_time_moves(space)[:-1]:
            proposal = move.propose(state, 0.3, rng)
            if proposal is None or not math.isfinite(proposal.state.log_prior):
                continue
            some += len(proposal.stale) < 3
            whole = Proposal(proposal.state, 0.0, ALL_NODES)
            new, again = likelihoods.ask([proposal, whole])
            assert new.lnl == pytest.approx(again.lnl, rel=1e-12)
            likelihoods.accept(0)
            likelihoods.accept(1)
            state = new
    assert some > 10


def test_changed_nodes_are_none_for_the_same_tree():
    state = draw_state(make_time_space(), np.random.default_rng(1))
    again, _ = hang(state.time.rooted)
    assert changed_nodes(state.topology, state.lengths, again, state.lengths) == ()


@pytest.mark.parametrize("seed", range(5))
def test_coordinates_of_heights_and_their_jacobian(seed):
    """abs 1e-6: central differences."""
    rng = np.random.default_rng(seed)
    rooted, heights = draw_tree((0.0, 0.7, 0.2, 1.5, 0.0, 0.3), 1.0, rng)
    z = coordinates_of_heights(rooted, heights)
    assert heights_at(rooted, heights, z.tolist()) == pytest.approx(heights, rel=1e-12)
    step = 1e-5

    def at(change):
        return np.array(heights_at(rooted, heights, (z + change).tolist())[rooted.n_taxa :])

    matrix = [(at(step * e) - at(-step * e)) / (2 * step) for e in np.eye(len(z))]
    assert log_jacobian(rooted, heights) == pytest.approx(np.linalg.slogdet(np.array(matrix))[1], abs=1e-6)
    bold = heights_at(rooted, heights, (z + rng.normal(0, 3, len(z))).tolist())
    inner = range(rooted.n_taxa, rooted.n_nodes)
    assert all(bold[node] > max(bold[rooted.left[node]], bold[rooted.right[node]]) for node in inner)


@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize(
    ("prior", "more", "numbers"), PRIORS, ids=["constant", "exponential", "skygrid", "yule", "births"]
)
def test_slopes_and_jacobian_of_all_coordinates(prior, more, numbers, relaxed):
    """abs 1e-6: central differences of lnL, prior and Jacobian together, on an engine; their values are about 8."""
    rng = np.random.default_rng(1)
    model = "HKY{2}+F{0.3/0.2/0.2/0.3}+G4{0.7}"
    rooted, heights = draw_tree(DATED, 1.2, rng)
    clade = next(split for split in rooted.splits()[7:] if split != 62)
    known = Calibration("", 62, SIZE), Calibration("clade", clade, SIZE, offset=-0.5)
    space = make_time_space(relaxed=relaxed, tree_prior=prior, more=more, model=model, calibrations=known)
    engine, _ = open_engine(make_parts(5), space.models, Slots(sampling_slots(5, 1)), Hardware(device="numpy"))
    likelihoods = EngineLikelihoods(space, engine, 1)
    rates = rng.lognormal(0, 0.4, rooted.n_nodes).tolist() if relaxed else []
    (state,) = likelihoods.begin([space.at((rooted, heights, (0.3, *[0.4] * relaxed, *numbers), rates, []))])
    z, heat, step = space.coordinates(state.time), 0.7, 1e-5

    def ask(coordinates, question=None):
        time = space.moved_to(state.time, coordinates)
        return likelihoods.ask([space.propose(state, time, 0.0, question=question)])[0]

    def value(coordinates):
        found = ask(coordinates)
        return heat * (found.lnl + found.length_prior) + space.log_jacobian(found.time)

    def numbers_at(coordinates):
        time = space.moved_to(state.time, coordinates)
        return np.array([*time.heights[space.n_tips :], *time.numbers, *time.rates[1:]])

    slopes = space.slopes(ask(z, Slopes(state.topology.n_nodes)), heat)
    expected = [(value(z + step * e) - value(z - step * e)) / (2 * step) for e in np.eye(len(z))]
    assert slopes == pytest.approx(np.array(expected), abs=1e-6)
    matrix = [(numbers_at(z + step * e) - numbers_at(z - step * e)) / (2 * step) for e in np.eye(len(z))]
    assert space.log_jacobian(state.time) == pytest.approx(np.linalg.slogdet(np.array(matrix))[1], abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tips", [DATED, (3.0,) * 5], ids=["dated", "of one age"])
def test_start_trees_get_a_root_and_legal_heights(tips, seed):
    space, rng = make_time_space(tips, relaxed=True), np.random.default_rng(seed)
    topology = draw_topology(space, rng)
    state = space.start(topology, [0.0, *rng.exponential(0.1, 7)])
    assert set(state.topology.splits()) == set(topology.splits())
    assert is_legal(state.time.rooted, state.time.heights)
    assert math.isfinite(state.log_prior)
    assert state.time.heights[1:6] == list(tips)


def test_the_root_of_a_start_tree_is_where_a_clock_fits():
    """Two cherries of one age, equally far from the middle of the branch between them; then tips with dates."""
    topology = Topology(4, [-1, 4, 5, 5, 0, 4], [4, -1, -1, -1, 1, 2], [-1, -1, -1, -1, 5, 3])
    rooted, lengths, rate = root_tree(topology, [0.0, 0.2, 0.1, 0.1, 0.2, 0.4], [0.0] * 4)
    assert rate == 0.0
    assert {1 << 1 | 1 << 2, 1 << 3 | 1 << 4} < set(rooted.splits())
    assert distances(rooted.parent, lengths, [0])[0][0] == 0.0
    assert [min(d for d in row if d) for row in distances(rooted.parent, lengths, range(1, 5))] == pytest.approx(
        [0.4, 0.4, 0.2, 0.2]
    )
    dated = root_tree(topology, [0.0, 0.3, 0.1, 0.2, 0.2, 0.4], [0.0, 1.0, -1.0, 0.0])
    assert dated[2] == pytest.approx(0.1)  # two tips are a tenth further from the root for each year


# --- priors ---------------------------------------------------------------------------------------------


def grid(numbers, cutoff):
    """The population of a skygrid."""
    logs = numbers[:-1]
    return lambda t: math.exp(logs[min(int(t / (cutoff / (len(logs) - 1))), len(logs) - 1)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("prior", "numbers", "size"),
    [
        (ConstantPopulation(), [1.3], lambda t: 1.3),
        (ExponentialGrowth(), [1.3, 0.4], lambda t: 1.3 * math.exp(-0.4 * t)),
        (ExponentialGrowth(), [1.3, -0.4], lambda t: 1.3 * math.exp(0.4 * t)),
        (ExponentialGrowth(), [1.3, 1e-9], lambda t: 1.3),
        (Skygrid(4, 1.8), PRIORS[2][2], grid(PRIORS[2][2], 1.8)),
    ],
    ids=["constant", "growing", "shrinking", "nearly constant", "skygrid"],
)
def test_coalescents_are_those_of_the_oracle(prior, numbers, size, seed):
    """rel 1e-6: the oracle integrates numerically, over steps as well."""
    rooted, heights = draw_tree(DATED, 1.0, np.random.default_rng(seed))
    inner = np.array(heights[rooted.n_taxa :])
    found = prior.density(np.array(DATED), inner, numbers).value
    assert found == pytest.approx(log_density(DATED, inner, size), rel=1e-6)


@pytest.mark.parametrize("tips", [(0.0, 0.0, 0.0), (0.0, 0.0, 0.8), (0.0, 0.5, 0.9)])
def test_coalescents_of_three_taxa_integrate_to_one(tips):
    """Over both heights of the three topologies; abs 1e-5: the quadrature."""
    prior, total = ConstantPopulation(), 0.0

    def density(root, cherry):
        return math.exp(prior.density(np.array(tips), np.array([cherry, root]), [0.7]).value)

    for outside in range(3):
        inside = [tips[k] for k in range(3) if k != outside]
        points = sorted({max(inside), *[t for t in tips if t > max(inside)], 30.0})
        for low, high in pairwise(points):
            bounds = (lambda cherry, least=tips[outside]: max(cherry, least), 30.0)
            total += integrate.dblquad(density, low, high, *bounds, epsabs=1e-8)[0]
    assert total == pytest.approx(1.0, abs=1e-5)


def test_the_prior_of_a_skygrid_is_a_walk():
    """rel 1e-12: the sum of normal densities of the steps."""
    numbers = PRIORS[2][2]
    steps = np.diff(numbers[:-1])
    expected = stats.norm(0, numbers[-1] ** -0.5).logpdf(steps).sum()
    assert Skygrid(4, 1.8).log_prior(numbers)[0] == pytest.approx(expected, rel=1e-12)


def test_densities_of_numbers_and_rates():
    """rel 1e-12: a few terms in double."""
    assert LogNormal(-1.0, 0.5).log_density(0.3) == pytest.approx(stats.lognorm(0.5, scale=math.exp(-1)).logpdf(0.3))
    assert Gamma(2.0, 3.0).log_density(0.3) == pytest.approx(stats.gamma(2, scale=1 / 3).logpdf(0.3), rel=1e-12)
    assert Normal(0.2, 0.5).log_density(0.3) == pytest.approx(stats.norm(0.2, 0.5).logpdf(0.3), rel=1e-12)
    space = make_time_space(relaxed=True)
    time = draw_state(space, np.random.default_rng(2)).time
    rate, spread, size = time.numbers
    expected = RATE.log_density(rate) + SPREAD.log_density(spread) + SIZE.log_density(size)
    expected += log_density(DATED, time.heights[6:], lambda t: size)
    scale = math.exp(-(spread**2) / 2)
    expected += stats.lognorm(spread, scale=scale).logpdf(time.rates[1:]).sum()
    assert stats.lognorm(spread, scale=scale).mean() == pytest.approx(1.0)
    assert space.log_density(time) == pytest.approx(expected, rel=1e-9)  # the oracle's quadrature


# --- moves ----------------------------------------------------------------------------------------------


def numbers_of(space, states):
    """Columns of numbers that tell where states are."""
    samples = [space.sample(state).numbers for state in states]
    found = {name: [own[k] for own in samples] for k, name in enumerate(space.columns) if name not in COLUMNS}
    found["tree length"] = [sum(state.lengths) for state in states]
    found["heights"] = [sum(state.time.heights) for state in states]
    found["lowest"] = [min(state.time.heights[space.n_tips :]) for state in states]
    found["cherries"] = [
        len(rooted_key(state.time) & {2**a + 2**b for a in range(7) for b in range(a)}) for state in states
    ]
    if space.is_relaxed:
        found["a rate"] = [state.time.rates[3] for state in states]
    return found


LOOSE = (0.0, (0.3, 4.0), 0.2, 1.5, (0.0, 5.0))  # the ranges of two tips, often above where others meet


@cache
def prior_draws(relaxed, tips):
    space = make_time_space(tips, relaxed=relaxed)
    states = [draw_state(space, np.random.default_rng([0, k])) for k in range(2000)]
    return numbers_of(space, states), Counter(rank_key(state.time) for state in states)


NAMES = [move.name for move in make_time_moves(make_time_space(LOOSE, relaxed=True))]


@pytest.mark.parametrize("name", NAMES)
def test_moves_keep_the_prior(name):
    """Exact draws, moved; with another two-sample test for the commonest histories."""
    relaxed = any(word in name for word in ("rate", "pread"))
    tips = LOOSE if "tip" in name else DATED
    space, rng = make_time_space(tips, relaxed=relaxed), np.random.default_rng(2)
    move = next(move for move in make_time_moves(space) if move.name == name)
    states = [draw_state(space, rng) for _ in range(300)]
    if isinstance(move, LearntMove):
        move.learnt.learn(map(move.point, states))
    move.step *= 2
    chains = Chains([[move]] * 300, Likelihoods(), states, Heated(0.1, 1), rng, [rng] * 300)
    for _ in range(25 // move.legs):
        chains.advance()
    assert sum(own.accepted.sum() for own in chains.runs) > 0.1 * sum(own.tried.sum() for own in chains.runs)
    expected, histories = prior_draws(relaxed, tips)
    for column, values in numbers_of(space, chains.states).items():
        p = stats.ks_2samp(values, expected[column]).pvalue
        assert p > LEAST_P, f"{column}: {np.mean(values):.4g}, expected {np.mean(expected[column]):.4g}, p = {p:.2g}"
    found = Counter(rank_key(state.time) for state in chains.states)
    common = [key for key, count in histories.items() if count > 40]
    rows = [[own[key] for key in common] for own in (found, histories)]
    table = [[*row, n - sum(row)] for row, n in zip(rows, (300, 2000), strict=True)]
    assert stats.chi2_contingency(table).pvalue > LEAST_P


class Given:
    """Random numbers of a trajectory: its momentum, and a step of the tuned length."""

    def __init__(self, momentum):
        self.momentum = momentum

    def standard_normal(self, size):
        assert size == len(self.momentum)
        return self.momentum

    def uniform(self, low, high):
        return (low + high) / 2


def follow(move, likelihoods, state, momentum, heat):
    """The state at the end of a trajectory, its momentum there, and the logarithm of the Hastings ratio."""
    state = likelihoods.ask([Proposal(state, 0.0, ALL_NODES, question=move.ask(state, None))])[0]
    proposal = move.propose(state, move.step, Given(momentum), heat)
    for _ in range(move.legs - 1):
        proposal = move.go_on(proposal, likelihoods.ask([proposal])[0], heat)
    end = likelihoods.ask([proposal])[0]
    momentum, _, factor = proposal.trajectory
    last = momentum + move.step / 2 * factor.T @ move.space.slopes(end, heat)
    return end, last, move.log_ratio(state, proposal, end, move.step, heat)


@pytest.mark.parametrize("heat", [1.0, 0.6])
@pytest.mark.parametrize("relaxed", [False, True])
def test_trajectories_lead_back(relaxed, heat):
    """With the opposite momentum a trajectory ends where it began, with the inverse ratio.

    The error of its energy falls at least with the square of the step.
    """
    space, rng = make_time_space(relaxed=relaxed), np.random.default_rng(4)
    move = next(move for move in make_time_moves(space) if "trajectory" in move.name)
    move.step = 0.2
    move.learnt.learn(move.point(draw_state(space, rng)) for _ in range(20))
    begin, momentum = draw_state(space, rng), rng.standard_normal(space.n_coordinates)
    end, last, ratio = follow(move, Likelihoods(), begin, momentum, heat)
    back, first, inverse = follow(move, Likelihoods(), end, -last, heat)
    ends = [space.coordinates(state.time) for state in (begin, end, back)]
    assert np.abs(ends[1] - ends[0]).max() > 0.05, "else nothing is tested"
    np.testing.assert_allclose(ends[2], ends[0], atol=1e-9)
    np.testing.assert_allclose(first, -momentum, atol=1e-9)
    assert inverse == pytest.approx(-ratio, abs=1e-9)
    errors = []
    for move.step in (0.02, 0.01):
        end, _, ratio = follow(move, Likelihoods(), begin, momentum, heat)
        errors.append(heat * (end.log_posterior - begin.log_posterior) + ratio)
    assert abs(errors[1]) < abs(errors[0]) / 4 < 0.01


@pytest.mark.parametrize("relaxed", [False, True])
def test_masses_are_what_data_and_priors_know(relaxed):
    """The inverse of the covariance, with slopes of all log-lengths by differences; rel 1e-6 of the largest element."""
    rng = np.random.default_rng(3)
    space, learnt = make_time_space(relaxed=relaxed), UsualTimes(200.0)
    move = next(move for move in make_time_moves(space) if "trajectory" in move.name)
    state = draw_state(space, rng)
    learnt.learn([move.point(state)] * 3)
    time = learnt.usual(space, state.time)
    time = time._replace(rates=[math.exp(-(time.numbers[1] ** 2) / 2)] * 10 if relaxed else [])  # scores of 0
    z, step, n = space.coordinates(time), 1e-6, len(space.names) - 1
    below = [node for node in range(1, 10) if time.gaps[node] > 0]

    def logs(at):
        moved = space.moved_to(time, at)
        gaps = np.log(moved.gaps[below])
        return gaps, gaps + math.log(moved.numbers[0]) + (np.log(moved.rates)[below] if relaxed else 0.0)

    pairs = [(logs(z + step * e), logs(z - step * e)) for e in np.eye(len(z))]
    of_gaps, of_lengths = ([(high[k] - low[k]) / (2 * step) for high, low in pairs] for k in range(2))
    lengths = time.numbers[0] * time.gaps[below]
    known = 200.0 * lengths / (1.0 + lengths) ** 2
    expected = np.array(of_lengths) * known @ np.transpose(of_lengths) + OF_TIMES * np.array(of_gaps) @ np.transpose(
        of_gaps
    )
    own = np.concatenate([[0.5] * n, [1 / RATE.deviation**2], [1.0] * (len(z) - n - 1)])
    expected += np.diag(own)
    factor = learnt.factor(space, state.time)
    found = np.linalg.inv(factor @ factor.T)
    numbers = range(n + 1, n + len(space.numbers))  # whose precisions are differences of their own
    others = np.setdiff1d(np.arange(len(z)), numbers)
    pick = np.ix_(others, others)
    assert found[pick] == pytest.approx(expected[pick], abs=1e-6 * expected.max())
    if relaxed:
        assert found[n + 1, others] == pytest.approx(expected[n + 1, others], abs=1e-6 * expected.max())


def test_clades_that_are_not_known_have_usual_heights():
    """Trees of other topologies, with means of states far from them."""
    rng = np.random.default_rng(7)
    space = make_time_space((0.0, 0.7, 0.2, 1.5, 0.0, 0.3, 2.0))
    move = next(move for move in make_time_moves(space) if "trajectory" in move.name)
    move.learnt.learn(move.point(draw_state(space, rng)) for _ in range(3))
    seen = 0
    for _ in range(20):
        time = draw_state(space, rng).time
        usual = move.learnt.usual(space, time)
        assert is_legal(time.rooted, usual.heights)
        assert usual.heights[:8] == time.heights[:8]
        splits, heights, tree = time.rooted.splits(), usual.heights, time.rooted
        known = [node < 8 or splits[node] in move.learnt.heights for node in range(tree.n_nodes)]
        for node in range(8, tree.n_nodes):
            below = tree.left[node], tree.right[node]
            if not known[node] and all(known[child] for child in below):
                middle = (max(heights[child] for child in below) + heights[tree.parent[node]]) / 2
                assert heights[node] == pytest.approx(middle, rel=1e-12)
                seen += 1
    assert seen > 5


def test_trajectories_make_all_clas_again():
    """Two points of a trajectory may share a length at its bound that the first point does not have."""
    space = make_time_space()
    move = next(move for move in make_time_moves(space) if "trajectory" in move.name)
    state = draw_state(space, np.random.default_rng(5))
    state = Likelihoods().ask([Proposal(state, 0.0, ALL_NODES, question=move.ask(state, None))])[0]
    first = move.propose(state, 0.1, Given(np.ones(space.n_coordinates)))
    assert first.stale is ALL_NODES
    assert move.go_on(first, Likelihoods().ask([first])[0], 1.0).stale is ALL_NODES


def places_at(time, joint, subtree, height):
    """How many branches below a joint, but for those of the subtree, exist at a height."""
    splits, parent = time.rooted.splits(), time.rooted.parent
    beside = time.rooted.sibling(subtree)
    below = [node for node, split in enumerate(splits) if split and split & splits[beside] == split]
    tops = {node: math.inf if node == beside else time.heights[parent[node]] for node in below}
    return sum(time.heights[node] < height <= tops[node] for node in below)


def test_slides_count_the_places_of_the_way_back():
    """rel 1e-12: a logarithm of a small number; the joint is the one node whose height changes."""
    rng = np.random.default_rng(6)
    space = make_time_space((0.0, 0.7, 0.2, 0.5, 0.0, 0.3, 0.1))
    move, seen = SubtreeSlide(space, 1.0), set()
    for _ in range(300):
        state = draw_state(space, rng)
        proposal = move.propose(state, 2.0, rng)
        if proposal is None:
            continue
        old, new = state.time, proposal.state.time
        (joint,) = (node for node in range(8, 14) if old.heights[node] != new.heights[node])
        children = [{time.rooted.left[joint], time.rooted.right[joint]} for time in (old, new)]
        kept = children[0] & children[1]
        expected = 0.0
        if len(kept) == 1:
            high, low = (old, new) if old.heights[joint] > new.heights[joint] else (new, old)
            number = places_at(high, joint, *kept, low.heights[joint])
            expected = math.log(number) * (1 if high is old else -1)
            seen.add((number, high is old))
        assert proposal.log_ratio == pytest.approx(expected, rel=1e-12)
    assert {(2, True), (2, False), (3, False)} <= seen


def test_all_ranked_histories_are_equally_likely():
    """Four taxa of one age have 18 labelled histories: 12 of caterpillars, and 3 balanced trees in two orders each."""
    space, rng = make_time_space((0.0,) * 4), np.random.default_rng(3)
    moves = [kind(space, 1.0) for kind in (NarrowExchange, WideRegraft, RootHeight, HeightDraw)]
    moves[2].step = 3.0
    start = draw_state(space, rng)
    chains = Chains([moves] * 300, Likelihoods(), [start] * 300, Heated(0.0, 1), rng, [rng] * 300)
    for _ in range(100):
        chains.advance()
    counts = Counter(rank_key(state.time) for state in chains.states)
    assert len(counts) == 18
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3
    root = [state.time.heights[state.time.rooted.top] for state in chains.states]
    size = start.time.numbers[-1]  # which no move has changed
    expected = [sum(rng.exponential(size / (k * (k - 1) / 2)) for k in (2, 3, 4)) for _ in range(4000)]
    assert stats.ks_2samp(root, expected).pvalue > 1e-3


# --- the sampler ----------------------------------------------------------------------------------------


def test_three_dated_taxa_have_their_exact_posterior():
    """Draws from the prior, weighted by the likelihood, are the oracle."""
    rng, n = np.random.default_rng(5), 300_000
    priors = plltool.ClockPriors(rate="lognormal(-2,0.7)", population="lognormal(0.3,0.5)")
    rate, size = rng.lognormal(-2, 0.7, n), rng.lognormal(0.3, 0.5, n)
    cherry, root, outside = simulate_three(THREE_TIPS, size, rng, n)
    lnls = three_lnls(cherry, root, outside, rate)
    weights = np.exp(lnls - lnls.max())
    expected = {"treeHeight": root, "clockRate": rate, "popSize": size, "LnL": lnls}
    asked = {"dates": THREE_DATES, "clock_priors": priors}
    assert_three_are_sampled(weights / weights.sum(), outside, expected, **asked)


def test_three_taxa_with_ranges_of_dates():
    """As above, with tips that are drawn from their ranges: one is given, one between the first and the last date."""
    rng, n = np.random.default_rng(5), 300_000
    priors = plltool.ClockPriors(rate="lognormal(-2,0.7)", population="lognormal(0.3,0.5)")
    rate, size = rng.lognormal(-2, 0.7, n), rng.lognormal(0.3, 0.5, n)
    tips = np.zeros(n), rng.uniform(0.5, 1.1, n), rng.uniform(0.0, 1.1, n)
    cherry, root, outside = simulate_three(tips, size, rng, n)
    lnls = three_lnls(cherry, root, outside, rate, tips)
    weights = np.exp(lnls - lnls.max())
    expected = {"treeHeight": root, "clockRate": rate, "popSize": size, "height(b)": tips[1], "height(c)": tips[2]}
    asked = {"dates": {"a": 2000.0, "b": "[1998.9:1999.5]", "c": "?"}, "clock_priors": priors}
    assert_three_are_sampled(weights / weights.sum(), outside, expected, **asked)
