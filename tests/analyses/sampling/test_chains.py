"""What chains keep for a checkpoint, the moves of a space, CLAs that proposals leave alone, and Fitch's rule."""

import math

import numpy as np
import pytest
from helpers import make_alignment, numpy_engine, random_codes
from oracles.parsimony import fitch_score
from sampling.toys import LENGTHS, PRIORS, Shape, branches_of, draw_state, draw_topology, lnl_of, make_parts, make_space

from plltool.alignment.patterns import compress
from plltool.analyses.sampling.chains import Chains, Heated, temperature_of
from plltool.analyses.sampling.joint_moves import FIRST_DEVIATION, JointDraw, JointLangevin
from plltool.analyses.sampling.likelihoods import EngineLikelihoods, Likelihoods
from plltool.analyses.sampling.moves import BranchMultiplier, make_group
from plltool.analyses.sampling.parameters import find_parameters
from plltool.analyses.sampling.runs import make_moves
from plltool.analyses.sampling.state import Proposal, Slopes, StateSpace, sampling_slots
from plltool.analyses.sampling.topology_moves import FitchSets, Interchange, Regrafts
from plltool.analyses.sampling.tree import prune
from plltool.codec import to_arrays
from plltool.model.model import Model
from plltool.model.model_string import parse_model


def bits(value):
    """The arrays of something saved, as bytes."""
    return {name: array.tobytes() for name, array in to_arrays(value).items()}


def test_what_is_saved_are_copies():
    """A checkpoint may write them later, when the chains have gone on."""
    space, rng = make_space(), np.random.default_rng(3)
    states = [draw_state(space, rng) for _ in range(4)]
    moves = [make_moves(space, make_parts()) for _ in range(2)]
    chains = Chains(moves, Likelihoods(), states, Heated(0.1, 2), rng, np.random.default_rng(4).spawn(2), tuning=44)
    for _ in range(10):
        chains.advance()
    saved = [chains.save(run) for run in range(2)]
    before = [bits(own) for own in saved]
    for _ in range(40):
        chains.advance()
    for run, own in enumerate(saved):
        assert bits(own) == before[run]
        after = chains.save(run)
        changed = {name for name in vars(own) if bits(getattr(own, name)) != bits(getattr(after, name))}
        assert {"tried", "accepted", "swaps_tried", "steps", "rng", "schedule", "learnt"} <= changed


class Hill(Likelihoods):
    """lnL that is quadratic in the logarithms of all branch lengths."""

    def ask(self, proposals):
        asked = super().ask(proposals)
        return [own and own._replace(lnl=-2.0 * sum(math.log(x / 0.1) ** 2 for x in own.lengths[1:])) for own in asked]


def test_a_temperature_is_tuned_ever_less():
    """Neighbours exchange their heats about three times in ten, also after other steps; a given temperature stays."""
    space, rng, n = make_space("JC"), np.random.default_rng(3), 4
    moves, rngs = make_group("lengths", space)[:1], [np.random.default_rng(4)]
    for temperature in ("auto", 0.1):
        states = [draw_state(space, rng) for _ in range(n)]
        chains = Chains([moves], Hill(), states, Heated(temperature, n), rng, rngs, tuning=1000)
        temperatures = [0.1]
        for _ in range(4000):
            chains.advance()
            temperatures.append(temperature_of(chains.runs[0].heats))
        own = chains.save(0)
        assert own.heats == pytest.approx([1 / (1 + temperatures[-1] * rank) for rank in range(n)])
        if temperature == "auto":
            shares = own.swaps_accepted.diagonal(1) / own.swaps_tried.diagonal(1)
            assert shares.mean() == pytest.approx(0.3, abs=0.08)
            since = np.concatenate([np.arange(1, 501), np.arange(1, 3501)])
            assert np.all(np.abs(np.diff(np.log(temperatures))) <= n * (1 - 0.3) / since**0.6 + 1e-12)
            assert len(set(temperatures[-100:])) > 50
        else:
            assert temperatures == pytest.approx([0.1] * len(temperatures))


class NoNumbers(Likelihoods):
    """Likelihoods that are no numbers, from the first proposal on."""

    def ask(self, proposals):
        return [own and own._replace(lnl=float("nan")) for own in super().ask(proposals)]


def test_what_is_no_number_is_never_accepted():
    space, rng = make_space(), np.random.default_rng(3)
    states = [draw_state(space, rng) for _ in range(2)]
    own = [move for move in make_moves(space, make_parts()) if isinstance(move, (BranchMultiplier, Interchange))]
    chains = Chains([own], NoNumbers(), states, Heated(0.1, 2), rng, [np.random.default_rng(4)], tuning=20)
    for _ in range(50):
        chains.advance()
    assert [state.lengths for state in chains.states] == [state.lengths for state in states]
    assert not chains.runs[0].accepted.any()


def test_where_chains_do_not_walk_moves_have_weights_of_their_own():
    """A multiplier of a branch has 6 times 0.5, an NNI 8 times 1."""
    space, rng = make_space(), np.random.default_rng(3)
    own = [move for move in make_moves(space, make_parts()) if isinstance(move, (BranchMultiplier, Interchange))]
    states = [draw_state(space, rng)]
    chains = Chains([own], Likelihoods(), states, Heated(0.1, 1), rng, [np.random.default_rng(4)])
    for _ in range(2000):
        chains.advance()
    assert chains.runs[0].tried[:, 0] / 2000 == pytest.approx([3 / 11, 8 / 11], abs=0.04)  # 4 standard deviations


def test_runs_do_the_same_whatever_advances_beside_them(monkeypatch):
    """Bit for bit: three runs together, one of them alone, and one that goes on alone from where they were together."""
    monkeypatch.setattr("plltool.analyses.sampling.joint_moves.FIRST_STATES", 8)
    space, rng = make_space(), np.random.default_rng(3)
    states = [draw_state(space, rng) for _ in range(6)]

    def make(*runs):
        own = [state for run in runs for state in states[2 * run : 2 * run + 2]]
        moves = [make_moves(space, make_parts()) for _ in runs]
        rngs = [np.random.default_rng([7, run]) for run in runs]
        return Chains(moves, Likelihoods(), own, Heated(0.1, 2), np.random.default_rng(5), rngs, tuning=100)

    def go(chains, n):
        for _ in range(n):
            chains.advance()
        return [chains.save(run) for run in range(len(chains.runs))]

    together, alone, later = make(0, 1, 2), make(1), make(2)
    half, whole = go(together, 150), go(together, 50)
    later.restore(half[2:])
    for run, found in ((1, go(alone, 200)[0]), (2, go(later, 50)[0])):
        assert bits(found) == bits(whole[run])
    factors = [own.learnt[-1].factor for own in whole]
    assert len({factor.tobytes() for factor in factors}) == 3, "each has learnt from its own chains"
    assert not np.array_equal(factors[0], FIRST_DEVIATION * np.eye(len(factors[0])))


@pytest.mark.parametrize(("second", "is_made"), [("HKY+FO+G4", True), ("JC+I", False)])
def test_slopes_in_parameters_are_asked_for_where_all_parts_have_one_shape(second, is_made):
    """A launch asks all parts for as many numbers, and slopes are a matrix for each component."""
    models = tuple(Model(parse_model(text)) for text in ("GTR+FO+G4", second))
    parameters = find_parameters(models, PRIORS)
    space = StateSpace(make_space().names, models, tuple(parameters), LENGTHS)
    kinds = [type(move) for move in make_moves(space, make_parts())]
    assert JointDraw in kinds
    assert (JointLangevin in kinds) == is_made


N_TAXA, N_CHAINS = 8, 2
PROBLEM = make_space("HKY+FO", N_TAXA)


@pytest.mark.parametrize("move", make_moves(PROBLEM, make_parts(N_TAXA)), ids=lambda move: move.name)
def test_lnl_after_many_proposals_is_that_of_the_tree(move):
    rng = np.random.default_rng(1)
    codes, weights = random_codes(rng, N_TAXA, 12), np.ones(12)
    model = PROBLEM.models[0]
    engine = numpy_engine(sampling_slots(N_TAXA, N_CHAINS), codes, weights, [Shape(model.components())])
    likelihoods = EngineLikelihoods(PROBLEM, engine, N_CHAINS)
    states = likelihoods.begin([draw_state(PROBLEM, rng) for _ in range(N_CHAINS)])
    n_accepted = 0
    for _ in range(20):
        states = surveyed(likelihoods, move, states, rng)
        proposals = [move.propose(state, move.step, rng) for state in states]
        proposals = [own if own is None or own.state.log_prior > -np.inf else None for own in proposals]
        for chain, answer in enumerate(likelihoods.ask(proposals)):
            if answer is not None and rng.random() < 0.6:  # whatever its likelihood is
                likelihoods.accept(chain)
                states[chain] = answer
                n_accepted += 1
    assert n_accepted > 8
    for state in states:
        assert state.lnl == pytest.approx(lnl_of(state, codes), rel=1e-11)  # double, short sums


def test_what_is_known_of_a_state_is_forgotten_with_it():
    state = draw_state(PROBLEM, np.random.default_rng(3))
    question = Slopes(14)
    (state,) = Likelihoods().ask([Proposal(state, 0.0, (), question=question)])
    assert state.known == (question, [0.0] * 39)
    assert PROBLEM.moved(state, state.topology, state.lengths).known is None
    assert PROBLEM.revalued(state, {0: state.values[0]}).known is None


def surveyed(likelihoods, move, states, rng):
    """The states with the answers to what a move asks."""
    questions = [move.ask(state, rng) for state in states]
    if None in questions:
        return states
    asked = [Proposal(state, 0.0, (), question=own) for state, own in zip(states, questions, strict=True)]
    return likelihoods.ask(asked)


@pytest.mark.parametrize("n_taxa", [4, 9])
def test_insertions_add_the_changes_of_whole_trees(n_taxa):
    """The trees with a tip in each place differ by as much as the oracle says; those left out add a constant."""
    space, rng = make_space("JC", n_taxa=n_taxa), np.random.default_rng(4)
    parts = [*make_parts(n_taxa, 60), *make_parts(n_taxa, 25)]
    codes, weights = np.concatenate([part.masks for part in parts], axis=1), np.concatenate([p.weights for p in parts])
    sets = FitchSets(parts)
    state = draw_state(space, rng)
    tip = next(k for k in range(1, n_taxa) if state.topology.parent[k] != state.topology.top)
    rest, _ = prune(state.topology, tip)
    costs = sets.insertions(rest, sets.below(rest), sets.tips[tip])
    assert len(costs) == 2 * (n_taxa - 1) - 3
    regrafts = Regrafts.of(state.topology, tip, 2 * n_taxa)
    found = []
    for number, edge in enumerate(regrafts.edges):
        topology, _ = regrafts.neighbour(state, number) if number else (state.topology, None)
        branches, _ = branches_of(state._replace(topology=topology))
        found.append(fitch_score(branches, codes, weights) - costs[edge])
    assert set(found) == {found[0]}
    assert len(set(costs.values())) > 1


def test_sites_at_which_trees_do_not_differ_are_left_out():
    """One state alone, one that is found once, unknown ones; with R, which may be A or G, trees differ."""
    columns = ["AAAA", "AAAC", "AACG", "NNAC", "AACC", "ARCY", "AANC"]
    part = compress(make_alignment("abcd", ["".join(rows) for rows in zip(*columns, strict=True)], "toy"))
    assert FitchSets([part]).n_sites == len(["AACC", "ARCY"])


def test_changes_on_branches():
    """Columns that each change once, on a known branch: as many as are made for it are found there."""
    space, rng = make_space("JC", n_taxa=9), np.random.default_rng(6)
    topology = draw_topology(space, rng)
    made = [0, *rng.integers(0, 4, topology.n_nodes - 1).tolist()]
    columns = [
        "".join("C" if below >> taxon & 1 else "A" for taxon in range(9))
        for below, number in zip(topology.splits(), made, strict=True)
        for _ in range(number)
    ]
    rows = ["".join(row) for row in zip(*columns, "A" * 9, "ARAAAAAAN", strict=True)]
    part = compress(make_alignment(space.names, rows, "toy"))
    assert FitchSets([part], variable=True).changes(topology) == made
