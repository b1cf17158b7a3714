"""What chains keep for a checkpoint, and the moves that a space has."""

import numpy as np
import pytest
from sampling.toys import LENGTHS, PRIORS, draw_topology, make_parts, make_space

from plltool.analyses.sampling.chains import Chains
from plltool.analyses.sampling.joint_moves import FIRST_DEVIATION, JointDraw, JointLangevin
from plltool.analyses.sampling.likelihoods import Likelihoods
from plltool.analyses.sampling.moves import BranchMultiplier
from plltool.analyses.sampling.parameters import find_parameters
from plltool.analyses.sampling.runs import make_moves
from plltool.analyses.sampling.state import StateSpace
from plltool.analyses.sampling.topology_moves import Interchange
from plltool.codec import to_arrays
from plltool.model.model import Model
from plltool.model.model_string import parse_model


def bits(value):
    """The arrays of something saved, as bytes."""
    return {name: array.tobytes() for name, array in to_arrays(value).items()}


def test_what_is_saved_are_copies():
    """A checkpoint may write them later, when the chains have gone on."""
    space, rng = make_space(), np.random.default_rng(3)
    states = [space.draw(draw_topology(space, rng), rng) for _ in range(4)]
    moves = [make_moves(space, make_parts()) for _ in range(2)]
    chains = Chains(moves, Likelihoods(), states, 0.1, rng, np.random.default_rng(4).spawn(2), tuning=44)
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
        assert {"tried", "accepted", "swaps_tried", "steps", "rng", "schedule", "directions"} <= changed


class NoNumbers(Likelihoods):
    """Likelihoods that are no numbers, from the first proposal on."""

    def ask(self, proposals):
        return [own and own._replace(lnl=float("nan")) for own in super().ask(proposals)]


def test_what_is_no_number_is_never_accepted():
    space, rng = make_space(), np.random.default_rng(3)
    states = [space.draw(draw_topology(space, rng), rng) for _ in range(2)]
    own = [move for move in make_moves(space, make_parts()) if isinstance(move, (BranchMultiplier, Interchange))]
    chains = Chains([own], NoNumbers(), states, 0.1, rng, [np.random.default_rng(4)], tuning=20)
    for _ in range(50):
        chains.advance()
    assert [state.lengths for state in chains.states] == [state.lengths for state in states]
    assert not chains.accepted.any()


def test_runs_do_the_same_whatever_advances_beside_them(monkeypatch):
    """Bit for bit: three runs together, one of them alone, and one that goes on alone from where they were together."""
    monkeypatch.setattr("plltool.analyses.sampling.joint_moves.FIRST_STATES", 8)
    space, rng = make_space(), np.random.default_rng(3)
    states = [space.draw(draw_topology(space, rng), rng) for _ in range(6)]

    def make(*runs):
        own = [state for run in runs for state in states[2 * run : 2 * run + 2]]
        moves = [make_moves(space, make_parts()) for _ in runs]
        rngs = [np.random.default_rng([7, run]) for run in runs]
        return Chains(moves, Likelihoods(), own, 0.1, np.random.default_rng(5), rngs, tuning=400)

    def go(chains, n):
        for _ in range(n):
            chains.advance()
        return [chains.save(run) for run in range(chains.n_runs)]

    together, alone, later = make(0, 1, 2), make(1), make(2)
    half, whole = go(together, 600), go(together, 100)
    later.restore(half[2:], space)
    for run, found in ((1, go(alone, 700)[0]), (2, go(later, 100)[0])):
        assert bits(found) == bits(whole[run])
    factors = [own.directions.factor for own in whole]
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
