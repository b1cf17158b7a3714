"""What chains keep for a checkpoint, and the moves that a problem has."""

import numpy as np
import pytest
from sampling.toys import LENGTHS, PRIORS, draw_topology, make_parts, make_problem

from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.sampling.chains import Chains
from plltool.sampling.joint_moves import JointDraw, JointLangevin
from plltool.sampling.kernel import make_moves
from plltool.sampling.likelihoods import NoData
from plltool.sampling.parameters import find_parameters
from plltool.sampling.state import Problem


def test_what_is_packed_are_copies():
    """A checkpoint may write them later, when the chains have gone on."""
    problem, rng = make_problem(), np.random.default_rng(3)
    states = [problem.draw(draw_topology(problem, rng), rng) for _ in range(4)]
    chains = Chains(make_moves(problem, make_parts()), NoData(), states, 2, 0.1, rng, tuning=20)
    for _ in range(10):
        chains.advance()
    packed = chains.pack()
    before = {name: np.array(array) for name, array in packed.items()}
    for _ in range(40):
        chains.advance()
    assert all(np.array_equal(packed[name], array) for name, array in before.items())
    after = chains.pack()
    assert {"tried", "accepted", "swaps_tried", "steps"} <= {
        name for name, array in before.items() if not np.array_equal(after[name], array)
    }


@pytest.mark.parametrize(("second", "is_made"), [("HKY+FO+G4", True), ("JC+I", False)])
def test_slopes_in_parameters_are_asked_for_where_all_parts_have_one_shape(second, is_made):
    """A launch asks all parts for as many numbers, and slopes are a matrix for each component."""
    models = tuple(Model(parse_model(text)) for text in ("GTR+FO+G4", second))
    parameters = find_parameters(models, PRIORS)
    problem = Problem(make_problem().names, models, tuple(parameters), LENGTHS)
    kinds = [type(move) for move in make_moves(problem, make_parts())]
    assert JointDraw in kinds
    assert (JointLangevin in kinds) == is_made
