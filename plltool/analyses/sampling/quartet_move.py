"""A move that draws the topology around an inner branch together with the length of the branch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from plltool.analyses.sampling.informed_moves import draw_number
from plltool.analyses.sampling.moves import Move, Proposal
from plltool.analyses.sampling.state import State
from plltool.analyses.sampling.survey import Neighbours, Survey
from plltool.analyses.sampling.topology_moves import draw_inner_branch, interchange
from plltool.analyses.sampling.tree import Topology
from plltool.arrays import FloatArray

SHORTEST, LONGEST, N_LENGTHS = 1e-5, 2.0, 13  # lengths at which likelihoods are asked for, evenly spaced logarithms
CELLS = 12  # between two of them
LENGTHS = np.geomspace(SHORTEST, LONGEST, N_LENGTHS).tolist()
SPACING = math.log(LONGEST / SHORTEST) / (N_LENGTHS - 1)
CELL = SPACING / CELLS
MIDDLES = math.log(SHORTEST) + CELL * (np.arange(CELLS * (N_LENGTHS - 1)) + 0.5)  # of cells, logarithms of lengths


@dataclass(frozen=True)
class Quartet(Neighbours):
    """The three topologies around an inner branch, that of the state first, each with all LENGTHS of the branch.

    Attributes
    ----------
    lower : the node below the branch
    """

    lower: int

    @property
    def n_values(self) -> int:
        return 3 * N_LENGTHS

    def topology(self, topology: Topology, number: int) -> Topology:
        """One of the three."""
        children = topology.left[self.lower], topology.right[self.lower]
        return interchange(topology, self.lower, children[number - 1]) if number else topology

    def neighbour(self, state: State, number: int) -> tuple[Topology, list[float]]:
        lengths = state.lengths.copy()
        lengths[self.lower] = LENGTHS[number % N_LENGTHS]
        return self.topology(state.topology, number // N_LENGTHS), lengths

    def write(self, state: State, survey: Survey) -> None:
        topology, lower = state.topology, self.lower
        operands, places, (near, far) = survey.operands, survey.places, survey.spare
        upper, beside = topology.parent[lower], topology.sibling(lower)
        *_, (_, above) = survey.descend(topology, topology.upwards([upper]))
        branch = [survey.place_length(length) for length in LENGTHS]
        left, right = topology.left[lower], topology.right[lower]
        pairs = ((left, right, beside), (beside, right, left), (left, beside, right))  # below the branch, and above it
        for number, (a, b, other) in enumerate(pairs):
            survey.newview(near, operands[a], places[a], operands[b], places[b])
            survey.newview(far, operands[other], places[other], above, places[upper])
            for k, place in enumerate(branch):
                survey.evaluate(N_LENGTHS * number + k, far, near, place)


class QuartetDraw(Move):
    """Draws one of the three topologies around an inner branch, and the length of the branch, by their likelihoods.

    The branch is drawn uniformly, one of n - 3. Four subtrees meet at it; these, their lengths and the model stay. For
    each of the three topologies j lnL is known at some lengths of the branch, and a natural cubic spline l_j(s) of the
    logarithm s of the length goes through it. In a chain of heat h, (j, s) is drawn with a density that is constant in
    small cells of s between the shortest and the longest of the lengths, there exp(h l_j(s) + s) of the middle of the
    cell: but for the prior and the error of the spline it is that of the chain. The density depends on nothing that
    the move changes. With q for that of the length t = exp(s), which is the density of s divided by t, the Hastings
    ratio is q(j, t) / q(j', t'). A length outside these bounds is never drawn, so a chain that has one stays.
    """

    name = "quartet draw"

    def ask(self, state: State, rng: np.random.Generator) -> Quartet:
        return Quartet(draw_inner_branch(state.topology, rng))

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        assert state.known is not None, "the lengths were asked for"
        question, values = state.known
        assert isinstance(question, Quartet)
        lower = question.lower
        place = math.floor((math.log(state.lengths[lower]) - math.log(SHORTEST)) / CELL)
        if not 0 <= place < len(MIDDLES):
            return None
        splines = np.reshape(values, (3, N_LENGTHS)) @ spline_weights().T
        logs = (heat * splines + MIDDLES).ravel()
        drawn = draw_number(logs, rng)
        number, cell = divmod(drawn, len(MIDDLES))
        lengths = state.lengths.copy()
        lengths[lower] = math.exp(MIDDLES[cell] + CELL * (rng.random() - 0.5))
        log_ratio = float(logs[place] - logs[drawn]) + math.log(lengths[lower] / state.lengths[lower])
        new = self.problem.moved(state, question.topology(state.topology, number), lengths)
        return Proposal(new, log_ratio, (lower if number else state.topology.parent[lower],))


@cache
def spline_weights() -> FloatArray:
    """What the natural cubic spline through values at LENGTHS is in the middle of each cell: (cells, N_LENGTHS).

    With the second derivatives m in units of the spacing, (m_{i-1} + 4 m_i + m_{i+1}) / 6 is the second difference of
    the values, and m is 0 at both ends.
    """
    n, values = N_LENGTHS, np.eye(N_LENGTHS)
    system = np.eye(n) * 4.0 + np.eye(n, k=1) + np.eye(n, k=-1)
    system[0], system[-1] = values[0], values[-1]
    curvatures = np.linalg.solve(system, 6.0 * np.pad(np.diff(values, 2, axis=0), ((1, 1), (0, 0))))
    after = np.tile((np.arange(CELLS) + 0.5) / CELLS, n - 1)[:, None]
    before = 1.0 - after
    low = np.repeat(np.arange(n - 1), CELLS)
    bend = (before**3 - before) * curvatures[low] + (after**3 - after) * curvatures[low + 1]
    return np.asarray(before * values[low] + after * values[low + 1] + bend / 6.0)
