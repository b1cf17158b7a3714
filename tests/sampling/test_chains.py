"""What chains keep for a checkpoint."""

import numpy as np
from sampling.toys import draw_topology, make_parts, make_problem

from plltool.sampling.chains import Chains
from plltool.sampling.kernel import make_moves
from plltool.sampling.likelihoods import NoData


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
