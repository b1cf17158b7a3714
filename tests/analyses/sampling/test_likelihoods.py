"""CLAs that a proposal leaves alone are kept, and those that it changes are made: lnL of long chains of proposals."""

import numpy as np
import pytest
from helpers import numpy_engine, random_codes
from oracles.likelihood import pruning
from oracles.substitution import q_matrix
from sampling.toys import Shape, branches_of, draw_topology, make_parts, make_space

from plltool.analyses.sampling.likelihoods import EngineLikelihoods, Likelihoods, sampling_slots
from plltool.analyses.sampling.runs import make_moves
from plltool.analyses.sampling.state import Proposal, Slopes

N_TAXA, N_CHAINS = 8, 2
PROBLEM = make_space("HKY+FO", N_TAXA)


@pytest.mark.parametrize("move", make_moves(PROBLEM, make_parts(N_TAXA)), ids=lambda move: move.name)
def test_lnl_after_many_proposals_is_that_of_the_tree(move):
    rng = np.random.default_rng(1)
    codes, weights = random_codes(rng, N_TAXA, 12), np.ones(12)
    model = PROBLEM.models[0]
    engine = numpy_engine(sampling_slots(N_TAXA, N_CHAINS), codes, weights, [Shape(model.components())])
    likelihoods = EngineLikelihoods(PROBLEM, engine, N_CHAINS)
    states = likelihoods.begin([PROBLEM.draw(draw_topology(PROBLEM, rng), rng) for _ in range(N_CHAINS)])
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
    state = PROBLEM.draw(draw_topology(PROBLEM, np.random.default_rng(3)), np.random.default_rng(3))
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


def lnl_of(state, codes):
    (own,) = state.models
    components = [(1.0, own.frequencies.tolist(), q_matrix(own.exchangeabilities, own.frequencies))]
    branches, lengths = branches_of(state)
    return pruning(branches, lengths, codes.T.tolist(), components).sum()
