"""Every move keeps the distribution that it should: checked with exact draws, not with long chains.

A parameter vector from the prior, and data simulated with it, are a draw from their joint distribution. Moves that keep
the posterior given the data keep that joint distribution, so that the parameters after some moves are again a draw from
the prior (Geweke 2004). Replicates are independent, so Kolmogorov-Smirnov tests apply as they stand.
"""

from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from oracles.parsimony import fitch_score
from oracles.posteriors import all_topologies, log_likelihood, number_of_trees, simulate, splits_of
from sampling.toys import (
    LENGTHS,
    OracleLikelihoods,
    TableLikelihoods,
    branches_of,
    draw_state,
    draw_topology,
    make_parts,
    make_space,
    model_of,
    neighbour,
    numbers_of,
    topology_key,
    uneven_weights,
)
from scipy import interpolate, special, stats

from plltool.analyses.sampling.chains import Chains, Heated
from plltool.analyses.sampling.informed_moves import LENGTHS as QUARTET_LENGTHS
from plltool.analyses.sampling.informed_moves import (
    LONGEST,
    MIDDLES,
    InformedInterchange,
    InformedRegraft,
    QuartetDraw,
    spline_weights,
)
from plltool.analyses.sampling.joint_moves import Directions, JointDraw, JointLangevin, JointMove
from plltool.analyses.sampling.likelihoods import Likelihoods
from plltool.analyses.sampling.moves import LengthLangevin, NodeSlider
from plltool.analyses.sampling.priors import Exponential, GammaDirichlet
from plltool.analyses.sampling.runs import make_moves
from plltool.analyses.sampling.state import Proposal
from plltool.analyses.sampling.topology_moves import (
    COST,
    Extension,
    FitchSets,
    Interchange,
    ParsimonyRegraft,
    Regrafts,
    SplitWeights,
)
from plltool.analyses.sampling.tree import ROOT

# The largest of some 20 differences in 12 tests would be called significant once in 4,000 such suites; seeds are fixed.
LEAST_P = 1e-6
# those that know the prior of lengths, or bring lengths from inner branches to tips
LENGTH_MOVES = ["Langevin step of all branches", "Langevin step of parameters and length", "eSPR"]
NAMES = [move.name for move in make_moves(make_space(), make_parts())]
MODEL, TWO_MODELS = "GTR+FO+I+G4", ("K80+I+G4", "JC+I+G4")  # each of two parts has its own lengths
TWO_PARTS = make_moves(make_space(TWO_MODELS), make_parts() * 2)
NAMES_OF_TWO = [move.name for move in TWO_PARTS if "of part" not in move.name]
ONE_AND_TWO = [(MODEL, name) for name in NAMES] + [(TWO_MODELS, name) for name in NAMES_OF_TWO]


def draws(space, n, rng):
    """Exact draws from the prior."""
    return [draw_state(space, rng) for _ in range(n)]


@cache
def prior_numbers(model, lengths):
    """Columns of numbers of exact draws from the prior."""
    space = make_space(model, lengths=lengths)
    return columns_of(draws(space, 2500, np.random.default_rng(0)))


def columns_of(states):
    rows = [numbers_of(state) for state in states]
    return {name: [row[name] for row in rows] for name in rows[0]}


def assert_prior(found, model, lengths=LENGTHS):
    """Kolmogorov-Smirnov tests of all numbers of states, and a chi-squared test of topologies."""
    expected = prior_numbers(model, lengths)
    for name, values in columns_of(found).items():
        p = stats.ks_2samp(values, expected[name]).pvalue
        assert p > LEAST_P, f"{name}: {np.mean(values):.4g}, expected {np.mean(expected[name]):.4g}, p = {p:.2g}"
    counts = Counter(map(topology_key, found))
    assert stats.chisquare([counts[key] for key in counts]).pvalue > LEAST_P
    assert len(counts) == number_of_trees(5)


def make_bold(move, states):
    """Larger steps, so that a wrong ratio shows."""
    move.step *= 4
    if isinstance(move, JointMove):
        move.learnt.learn(map(move.point, states))
        move.step = 0.5
    if isinstance(move, Interchange):
        move.learnt = uneven_weights()
    if isinstance(move, LengthLangevin):
        move.step = 1.2


@pytest.mark.parametrize(("model", "name"), ONE_AND_TWO, ids=str)
def test_moves_keep_the_joint_distribution_of_parameters_and_data(model, name):
    space, rng = make_space(model), np.random.default_rng(1)
    move = next(move for move in make_moves(space, make_parts()) if move.name == name)
    states = draws(space, 200, rng)
    make_bold(move, states)
    chains = Chains(
        [[move]] * len(states), OracleLikelihoods(space, rng), states, Heated(0.1, 1), rng, [rng] * len(states)
    )
    for _ in range(-(-3 // move.repeats)):
        chains.advance()
    assert sum(own.accepted.sum() for own in chains.runs) > 0.02 * sum(own.tried.sum() for own in chains.runs)
    assert_prior(chains.states, model)


UNEVEN = GammaDirichlet(3.0, 0.5, 0.7, 2.0)
PRIOR_CASES = [(*own, UNEVEN if own[1] in LENGTH_MOVES else LENGTHS) for own in ONE_AND_TWO]


@pytest.mark.parametrize(("model", "name", "lengths"), PRIOR_CASES, ids=str)
def test_moves_keep_the_prior(model, name, lengths):
    """Many moves, which cost little without data."""
    space, rng = make_space(model, lengths=lengths), np.random.default_rng(2)
    move = next(move for move in make_moves(space, make_parts()) if move.name == name)
    states = draws(space, 300, rng)
    make_bold(move, states)
    chains = Chains([[move]] * len(states), Likelihoods(), states, Heated(0.1, 1), rng, [rng] * len(states))
    for _ in range(25 // move.repeats):
        chains.advance()
    assert_prior(chains.states, model, lengths)


def make_table(start, rng):
    """lnL of all topologies of five taxa with fixed lengths and model, of some simulated columns."""
    model = model_of(start)
    trees = all_topologies(5)
    data = simulate(rng, trees[4], [0.3] * 7, 5, model, 12)
    return {
        frozenset(sum(1 << tip for tip in split) for split in splits_of(tree, 5)): log_likelihood(
            tree, [0.3] * 7, data, model
        )
        for tree in trees
    }


@pytest.mark.parametrize(
    ("move", "n_chains", "generations"),
    [
        (partial(Interchange, learnt=uneven_weights()), 1, 40),
        (partial(Interchange, learnt=uneven_weights()), 3, 40),
        (partial(Extension, extension=0.8), 3, 30),  # of which the ratio is not always 1
        (InformedInterchange, 2, 10),
        (partial(InformedRegraft, radius=1), 2, 20),
        (partial(ParsimonyRegraft, sets=FitchSets(make_parts())), 1, 30),
    ],
    ids=["NNI", "NNI of three chains", "eSPR", "informed NNI", "informed SPR", "parsimony SPR"],
)
def test_topologies_are_sampled_from_their_posterior(move, n_chains, generations):
    """Of five taxa with fixed lengths and model all 15 posterior probabilities are known."""
    space, rng = make_space(), np.random.default_rng(3)
    start = space.start(draw_topology(space, rng), [0.0, *[0.3] * 7])
    table = make_table(start, rng)
    expected = np.exp(np.array(list(table.values())) - max(table.values()))
    expected /= expected.sum()
    assert np.sort(expected)[-1] < 0.9  # else there is little to see
    n = 300
    moves = [move(space, 1.0)]
    if isinstance(moves[0], (InformedRegraft, ParsimonyRegraft)):  # which prefer long branches, and have them at random
        moves.append(NodeSlider(space, 1.0))
    chains = Chains([moves] * n, TableLikelihoods(table), [start] * n * n_chains, Heated(4.0, n_chains), rng, [rng] * n)
    for _ in range(generations):
        chains.advance()
    counts = Counter(topology_key(chains.cold(run)) for run in range(n))
    assert stats.chisquare([counts[key] for key in table], n * expected).pvalue > 1e-3


def test_weights_of_splits_are_by_the_share_of_states_that_have_them():
    """After enough states; what was learnt stays in use when states are left out. By sets of taxa."""
    space, rng = make_space(n_taxa=9), np.random.default_rng(4)
    trees = [draw_topology(space, rng) for _ in range(60)]
    learnt = SplitWeights.of_taxa(9)
    learnt.learn(trees[:49])
    assert set(learnt.weights) == {1.0}
    learnt.learn(trees[49:])
    learnt.forget()
    sets = [{frozenset(tip for tip in range(9) if split >> tip & 1) for split in own.splits()[9:]} for own in trees]
    keys = {split: int(np.bitwise_xor.reduce([learnt.tips[tip] for tip in split])) for own in sets for split in own}
    assert len(set(keys.values())) > 0.9 * len(keys) > 50
    for split in sets[0]:
        share = np.mean([keys[split] in {keys[other] for other in own} for own in sets])
        assert learnt.weights[keys[split]] == pytest.approx(1.1 - share)
    assert sorted(learnt.keys(trees[0])[9:]) == sorted(keys[split] for split in sets[0])
    learnt.learn(trees[:1])
    assert learnt.n_states == 1


@pytest.mark.parametrize("heat", [1.0, 0.4])
def test_informed_interchanges_are_in_detailed_balance(heat):
    """posterior(x)^heat q(y | x) min(1, r) is symmetric in all 15 topologies of five taxa; q as in Zanella 2020."""
    space, rng = make_space(), np.random.default_rng(3)
    start = space.start(draw_topology(space, rng), [0.0, *[0.3] * 7])
    table = make_table(start, rng)
    likelihoods, move = TableLikelihoods(table), InformedInterchange(space, 1.0)

    def program(state):
        return likelihoods.ask([Proposal(state, 0.0, (), question=move.ask(state, rng))])[0]

    states, flows = {topology_key(start): program(start)}, {}
    for key in (found := [topology_key(start)]):
        state = states[key]
        around = [topology_key(state._replace(topology=neighbour(move.ask(state, rng), state, k)[0])) for k in range(4)]
        weights = {other: 1.0 / (1.0 + np.exp(heat * (table[key] - table[other]))) for other in around}
        while {other for x, other in flows if x == key} != set(around):
            proposal = move.propose(state, 0.0, rng, heat)
            other, new = topology_key(proposal.state), program(proposal.state)
            ratio = move.log_ratio(state, proposal, new, 0.0, heat)
            gain = min(0.0, heat * (table[other] - table[key]) + ratio)
            flows[key, other] = heat * table[key] + np.log(weights[other] / sum(weights.values())) + gain
            if other not in states:
                states[other] = new
                found.append(other)
    assert len(states) == 15
    assert len(flows) == 60
    for (x, y), flow in flows.items():
        assert flow == pytest.approx(flows[y, x], abs=1e-9)  # a few additions of numbers near 100


def assert_ratios(move, likelihoods, old, step, heat, log_density, tolerance):
    """The ratio of each proposal is that of the densities of the way back and there."""
    rng = np.random.default_rng(10)
    for _ in range(3):
        proposal = move.propose(old, step, rng, heat)
        (new,) = likelihoods.ask([proposal])
        expected = log_density(old, new) - log_density(new, old)
        assert move.log_ratio(old, proposal, new, step, heat) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("heat", [1.0, 0.4])
def test_langevin_ratios_are_those_of_the_densities_of_steps(heat):
    """The densities of lengths there and back by scipy, from the slopes and curvatures that the move was told."""
    prior, step = Exponential(10.0), 1.1
    kept = (1.0 + step**2) ** -0.5
    space, rng = make_space(lengths=prior), np.random.default_rng(7)
    move, likelihoods = LengthLangevin(space, 1.0), OracleLikelihoods(space, rng, n_sites=300)
    (old,) = likelihoods.begin(draws(space, 1, rng))
    (old,) = likelihoods.ask([Proposal(old, 0.0, (), question=move.ask(old, rng))])

    def log_density(new, state):
        """Of the lengths of one state, as a proposal from the other."""
        b, told = np.array(state.lengths[1:]), np.reshape(state.known.values, (-1, 3))
        slopes = heat * b * (told[:, 1] - 10.0) + 1.0
        curvatures = 1.0 + heat * np.maximum(0.0, -(b**2) * told[:, 2])
        assert curvatures.max() > 1.1
        centre = np.log(b) + np.clip((1.0 - kept) * slopes / curvatures, -1.0, 1.0)
        logs = np.log(new.lengths[1:])
        return stats.norm(centre, step * kept / np.sqrt(curvatures)).logpdf(logs).sum() - logs.sum()

    assert_ratios(move, likelihoods, old, step, heat, log_density, 1e-9)  # sums of few terms


@pytest.mark.parametrize("heat", [1.0, 0.4])
def test_joint_langevin_ratios_are_those_of_the_densities_of_steps(heat):
    """The densities of values and lengths there and back by scipy and a determinant, from the slopes that are told."""
    space, rng, step = make_space(), np.random.default_rng(8), 0.9
    kept = (1.0 + step**2) ** -0.5
    move = JointLangevin(space, 1.0, Directions.of_size(space.n_coordinates))
    likelihoods = OracleLikelihoods(space, rng)
    move.learnt.learn(map(move.point, draws(space, 400, rng)))
    root, (old,) = move.learnt.factor, likelihoods.begin(draws(space, 1, rng))
    (old,) = likelihoods.ask([Proposal(old, 0.0, (), question=move.ask(old, rng))])

    def log_density(new, state):
        """Of the point of one state, as a proposal from the other, in shares, numbers and lengths."""
        added = step * kept
        drift = (1.0 - kept) / added * root.T @ move.slopes(state, heat)
        drift *= min(1.0, 2.0 / np.linalg.norm(drift))
        z = stats.multivariate_normal(move.point(state) + added * root @ drift, added**2 * root @ root.T)
        return z.logpdf(move.point(new)) - log_jacobian(new)

    # solving with a root of the covariance, of condition 1e3
    assert_ratios(move, likelihoods, old, step, heat, log_density, 1e-7)


@pytest.mark.parametrize("heat", [1.0, 0.4])
def test_joint_draws_have_the_ratio_of_their_densities(heat):
    """The densities there and back by scipy, before and after a mean is known."""
    space, rng, step = make_space(), np.random.default_rng(9), 1.3
    kept = (1.0 + step**2) ** -0.5
    move, states = JointDraw(space, 1.0, Directions.of_size(space.n_coordinates)), draws(space, 400, rng)
    for mean in (None, np.mean([move.point(state) for state in states], axis=0)):
        if mean is not None:
            move.learnt.learn(map(move.point, states))
        covariance = move.learnt.factor @ move.learnt.factor.T

        def log_density(new, state, mean=mean, covariance=covariance):
            """Of the point of one state, as a proposal from the other, in shares, numbers and lengths."""
            old, told = move.point(state), move.point(new)
            if mean is None:
                return stats.multivariate_normal(old, step**2 * covariance).logpdf(told) - log_jacobian(new)
            centre = mean + kept * (old - mean)
            spread = (step * kept) ** 2 / heat * covariance
            return stats.multivariate_normal(centre, spread).logpdf(told) - log_jacobian(new)

        # solving with a root of the covariance, of condition 1e3
        assert_ratios(move, Likelihoods(), states[0], step, heat, log_density, 1e-7)


def log_jacobian(state):
    """The logarithm of the determinant of (shares, numbers, lengths) by their coordinates."""
    rates, frequencies, alpha, pinv = state.values
    return np.log([*rates, *frequencies, alpha, pinv, 1.0 - pinv, *state.lengths[1:]]).sum()


@pytest.mark.parametrize(("kind", "heat"), [("parsimony", 1.0), ("informed", 1.0), ("informed", 0.4)])
@pytest.mark.parametrize("model", ["JC+I+G4", ("JC+I+G4", "JC+I+G4")], ids=["one part", "lengths of each part"])
def test_regrafts_have_the_ratio_of_their_proposals(model, kind, heat, monkeypatch):
    """q by changes or lnL of the oracle and lengths, for all places of a subtree, and the shares of proposals."""
    rng, n = np.random.default_rng(9), 1500
    space, (part,) = make_space(model, n_taxa=6), make_parts(6, 30)
    likelihoods = OracleLikelihoods(space, rng, n_sites=3)
    lengths = 0.1 * 2.0 ** (np.outer([1, 4], np.arange(9)) % 9) / 50
    chosen = lengths[: len(space.models)].ravel().tolist()
    start = space.start(draw_topology(space, rng), [0.0, *chosen])
    node = next(k for k in range(1, 6) if start.topology.parent[start.topology.parent[k]] != ROOT)
    regrafts = Regrafts.of(start.topology, node, 9)
    likelihoods.begin([start])
    (start,) = likelihoods.ask([Proposal(start, 0.0, (), question=regrafts)])
    states = []
    for number in range(regrafts.n_values):
        topology, lengths = regrafts.neighbour(start, number) if number else (start.topology, start.lengths)
        states.append(start._replace(topology=topology, lengths=lengths))
    if kind == "parsimony":
        monkeypatch.setattr("plltool.analyses.sampling.topology_moves.draw_below_top", lambda *_: node)
        move = ParsimonyRegraft(space, 1.0, FitchSets([part]))
        logs = [-COST * fitch_score(branches_of(state)[0], part.masks, part.weights) for state in states]
    else:
        move = InformedRegraft(space, 1.0, radius=9)
        logs = [heat * likelihoods.ask([Proposal(state, 0.0, ())])[0].lnl for state in states]
    wholes = np.log([sum_at_joint(state, node) for state in states])
    logs += wholes

    keys = [point(state) for state in states]
    assert len(set(keys)) == 7  # a rest of five taxa has as many branches

    proposals = [move.propose(start, 0.0, rng, heat) for _ in range(n)]
    found = Counter(point(own.state) for own in proposals)
    ratios = {point(own.state): own.log_ratio for own in proposals}
    expected = np.exp(logs[1:] - logs[1:].max())
    expected /= expected.sum()
    assert stats.chisquare([found[key] for key in keys[1:]], n * expected).pvalue > 1e-4
    for number, key in enumerate(keys[1:], 1):
        if key in ratios:
            back = logs[0] - np.logaddexp.reduce(np.delete(logs, number))
            there = logs[number] - np.logaddexp.reduce(logs[1:])
            jacobian = wholes[number] - wholes[0]
            assert ratios[key] == pytest.approx(back - there + jacobian, abs=1e-9)  # sums of few terms
    assert len(ratios) > 3


def test_splines_are_those_of_scipy():
    values = np.random.default_rng(1).normal(size=len(QUARTET_LENGTHS))
    expected = interpolate.CubicSpline(np.log(QUARTET_LENGTHS), values, bc_type="natural")(MIDDLES)
    assert spline_weights() @ values == pytest.approx(expected, abs=1e-12)


def quartet_density(state, number, length, heat):
    """The logarithm of that of a topology around the branch, drawn with a length, as the head of the move says."""
    values = state.known.values
    knots, width = np.log(QUARTET_LENGTHS), MIDDLES[1] - MIDDLES[0]
    logs = [
        heat * interpolate.CubicSpline(knots, own, bc_type="natural")(MIDDLES) + MIDDLES
        for own in np.reshape(values, (3, -1))
    ]
    cell = np.argmin(np.abs(MIDDLES - np.log(length)))
    return logs[number][cell] - special.logsumexp(logs) - np.log(width) - np.log(length)


@pytest.mark.parametrize("heat", [1.0, 0.4])
def test_quartet_draws_have_the_ratio_of_their_densities(heat):
    """The densities there and back by scipy, that of the way back from the surroundings of the new state."""
    space, rng = make_space("JC+I+G4", n_taxa=7), np.random.default_rng(4)
    likelihoods, move, accepted = OracleLikelihoods(space, rng, n_sites=8), QuartetDraw(space, 1.0), []
    states, changed = likelihoods.begin(draws(space, 1, rng)), 0
    for _ in range(30):
        question = move.ask(states[0], rng)
        (old,) = likelihoods.ask([Proposal(states[0], 0.0, (), question=question)])
        proposal = move.propose(old, 0.0, rng, heat)
        (new,) = likelihoods.ask([proposal._replace(question=question)])
        length = new.lengths[question.lower]
        topologies = [question.topology(old.topology, number).splits() for number in range(3)]
        number = topologies.index(new.topology.splits())
        there = quartet_density(old, number, length, heat)
        back = quartet_density(old, 0, old.lengths[question.lower], heat)
        assert proposal.log_ratio == pytest.approx(back - there, abs=1e-9)
        assert quartet_density(new, 0, length, heat) == pytest.approx(there, abs=1e-6)  # lnL of the oracle
        changed += number > 0
        accepted.append(heat * (new.lnl - old.lnl) + proposal.log_ratio)
        states = [new]
    assert 3 < changed < 27
    assert np.exp(np.minimum(accepted, 0.0)).mean() > 0.95  # but for the prior


@pytest.mark.parametrize("heat", [1.0, 0.4])
def test_quartet_draws_take_topologies_by_the_lengths_of_all_parts(heat):
    """A topology has the product of the sums over the lengths of each part, by the splines of scipy."""
    space, rng, n = make_space(TWO_MODELS, n_taxa=5), np.random.default_rng(4), 1000
    likelihoods, move = OracleLikelihoods(space, rng, n_sites=4), QuartetDraw(space, 1.0)
    (state,) = likelihoods.begin(draws(space, 1, rng))
    (state,) = likelihoods.ask([Proposal(state, 0.0, (), question=move.ask(state, rng))])
    knots, values = np.log(QUARTET_LENGTHS), np.reshape(state.known.values, (2, 3, -1))
    splines = interpolate.CubicSpline(knots, values, axis=2, bc_type="natural")(MIDDLES)
    logs = special.logsumexp(heat * splines + MIDDLES, axis=2)
    expected, alone = special.softmax(logs.sum(axis=0)), special.softmax(logs[0])
    assert np.abs(expected - alone).max() > 0.1
    keys = [topology_key(state._replace(topology=state.known.question.topology(state.topology, k))) for k in range(3)]
    found = Counter(topology_key(move.propose(state, 0.0, rng, heat).state) for _ in range(n))
    assert stats.chisquare([found[key] for key in keys], n * expected).pvalue > 1e-4


def test_a_branch_that_quartets_do_not_draw_stays():
    space, rng = make_space("JC", n_taxa=4), np.random.default_rng(4)
    state, move = space.start(draw_topology(space, rng), [0.0, *[1.01 * LONGEST] * 5]), QuartetDraw(space, 1.0)
    (state,) = Likelihoods().ask([Proposal(state, 0.0, (), question=move.ask(state, rng))])
    assert move.propose(state, 0.0, rng) is None


def point(state):
    """What tells trees with lengths apart."""
    lengths = zip(*state.by_part, strict=True)
    return frozenset(
        (split, np.round(x, 9).tobytes()) for split, x in zip(state.topology.splits(), lengths, strict=True)
    )


def sum_at_joint(state, node):
    """The length of the branch that the subtree divides; the product of those of all parts."""
    joint, sibling = state.topology.parent[node], state.topology.sibling(node)
    return np.prod([own[joint] + own[sibling] for own in state.by_part])


def test_hastings_ratios_of_extensions_are_those_of_the_proposals_that_are_made():
    """From x to y and from y to x, on six taxa: the shares of proposals have the ratio that the move states.

    A move may have several ways from x to y. Those with equal ratios are counted together, and so are their ways back.
    """
    space, rng = make_space(n_taxa=6), np.random.default_rng(4)
    move, n = Extension(space, 1.0, extension=0.8), 5000
    topology = draw_topology(space, rng)
    start = space.start(topology, [0.0, *(0.1 * 2.0 ** np.arange(9) / 50).tolist()])

    def propose(state):
        found, examples = Counter(), {}
        for _ in range(n):
            proposal = move.propose(state, 0.0, rng)
            if proposal is not None:
                way = point(proposal.state), round(proposal.log_ratio, 9)
                found[way] += 1
                examples[way] = proposal
        return found, examples

    there, examples = propose(start)
    compared = 0
    for (target, ratio), count in there.most_common(8):
        back = propose(examples[target, ratio].state)[0][point(start), -ratio]
        assert np.log(back / count) == pytest.approx(ratio, abs=4.5 * np.sqrt(1 / count + 1 / back))
        compared += ratio != 0
    assert compared
