"""What informed moves ask of the surroundings of states, against the oracle."""

from functools import partial

import numpy as np
import pytest
from analyses.sampling.toys import Shape, draw_state, lnl_of, make_space, neighbour
from helpers import random_codes

from plltool.analyses.sampling.informed_moves import InformedInterchange, InformedRegraft, QuartetDraw
from plltool.analyses.sampling.joint_moves import Directions, JointLangevin
from plltool.analyses.sampling.likelihoods import EngineLikelihoods
from plltool.analyses.sampling.moves import LengthLangevin
from plltool.analyses.sampling.state import Proposal, sampling_slots
from plltool.analyses.sampling.topology_moves import Extension

N_TAXA, N_CHAINS = 8, 2
PROBLEM = make_space("HKY+FO+G4", N_TAXA)


@pytest.mark.parametrize("kind", [InformedInterchange, partial(InformedRegraft, radius=1), QuartetDraw, LengthLangevin])
def test_surroundings_are_those_of_the_oracle(few_kind, make_engine, kind):
    """Before and behind a proposal that is accepted: lnL of all neighbours, and slopes of lnL; numpy streams, too."""
    codes, weights = random_codes(np.random.default_rng(2), N_TAXA, 12), np.ones(12)
    shapes = [Shape(PROBLEM.models[0].components())]
    open_one = partial(make_engine, few_kind, sampling_slots(N_TAXA, N_CHAINS), codes, weights, shapes)
    engine = open_one()
    assert_walks(engine, kind, codes)
    if few_kind.kind == "numpy":
        assert_walks(open_one(memory=-(-engine.cla_bytes // engine.layout.n_tiles)), kind, codes)


def assert_walks(engine, kind, codes):
    rng = np.random.default_rng(3)
    likelihoods = EngineLikelihoods(PROBLEM, engine, N_CHAINS)
    move, change = kind(PROBLEM, 1.0), Extension(PROBLEM, 1.0)
    states = likelihoods.begin([draw_state(PROBLEM, rng) for _ in range(N_CHAINS)])
    for _ in range(2):
        for _ in range(2):  # the first program changes no CLA of the tree
            questions = [move.ask(state, rng) for state in states]
            pairs = zip(states, questions, strict=True)
            states = likelihoods.ask([Proposal(state, 0.0, (), question=own) for state, own in pairs])
            for state in states:
                assert_known(state, codes)
        proposals = [move.propose(state, move.step, rng) or change.propose(state, 0.0, rng) for state in states]
        answers = likelihoods.ask(proposals)
        for chain, answer in enumerate(answers):
            if answer is not None:
                likelihoods.accept(chain)
                states[chain] = answer
                assert answer.known is None or answer.known.question == proposals[chain].question
                assert_known(answer, codes)


def assert_known(state, codes):
    assert state.lnl == pytest.approx(lnl_of(state, codes), rel=1e-9)  # the oracle's integration of the categories
    if state.known is None:
        return
    question, values = state.known
    if neighbour(question, state, 0) is not None:
        trees = [neighbour(question, state, number) for number in range(question.n_values)]
        expected = [lnl_of(state._replace(topology=tree, lengths=at), codes) for tree, at in trees]
        assert question.n_values == 1 or len({round(value, 6) for value in expected}) > 2
        assert values == pytest.approx(expected, rel=1e-9)  # the oracle's integration of the categories
        return
    for node in range(1, len(state.lengths)):
        nearby, step = [], 1e-3 * state.lengths[node]
        for turn in (-1, 0, 1):
            at = state.lengths.copy()
            at[node] += turn * step
            nearby.append(lnl_of(state._replace(lengths=at), codes))
        lnl, first, second = values[3 * (node - 1) : 3 * node]
        assert lnl == pytest.approx(nearby[1] if node == state.topology.top else 0.0, rel=1e-9)
        # differences: of the third order in a relative step of 1e-3, and rounding of lnL over the square of the step
        assert first * step == pytest.approx((nearby[2] - nearby[0]) / 2, rel=1e-4, abs=1e-9)
        assert second * step**2 == pytest.approx(nearby[2] - 2 * nearby[1] + nearby[0], rel=1e-3, abs=1e-10)


@pytest.mark.parametrize("heat", [1.0, 0.4])
@pytest.mark.parametrize("model", ["HKY+FO+G4", "TN+FO+I+G4"])
def test_slopes_in_coordinates_are_differences(few_kind, make_engine, model, heat):
    """Those of the density of coordinates, by the oracle."""
    rng, space = np.random.default_rng(3), make_space(model, N_TAXA)
    codes = random_codes(rng, N_TAXA, 12)
    engine = make_engine(few_kind, sampling_slots(N_TAXA, 1), codes, np.ones(12), [Shape(space.models[0].components())])
    likelihoods, move = (
        EngineLikelihoods(space, engine, 1),
        JointLangevin(space, 1.0, Directions.of_size(space.n_coordinates)),
    )
    (state,) = likelihoods.begin([draw_state(space, rng)])
    (state,) = likelihoods.ask([Proposal(state, 0.0, (), question=move.ask(state, rng))])
    slopes, step = move.slopes(state, heat), 1e-3
    for coordinate in range(len(slopes)):
        ends = []
        for turn in (-step, step):
            change = np.zeros(len(slopes))
            change[coordinate] = turn
            proposal = move.changed(state, change)
            ends.append(heat * (lnl_of(proposal.state, codes) + proposal.state.log_prior) + proposal.log_ratio)
        # differences: of the third order in the step
        assert slopes[coordinate] == pytest.approx((ends[1] - ends[0]) / (2 * step), rel=1e-4, abs=1e-4)
