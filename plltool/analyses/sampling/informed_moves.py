"""Moves of the topology that know the likelihoods of all neighbours."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from plltool.analyses.sampling.moves import Move
from plltool.analyses.sampling.state import Proposal, Question, QuestionProgram, State
from plltool.analyses.sampling.topology_moves import Regrafts, branches_around, draw_number, log_sum, stale_after
from plltool.analyses.sampling.tree import Topology, draw_below_top, interchange
from plltool.arrays import FloatArray

SHORTEST, LONGEST, N_LENGTHS = 1e-5, 2.0, 13  # lengths at which likelihoods are asked for, evenly spaced logarithms
CELLS = 12  # between two of them
LENGTHS = np.geomspace(SHORTEST, LONGEST, N_LENGTHS).tolist()
SPACING = math.log(LONGEST / SHORTEST) / (N_LENGTHS - 1)
CELL = SPACING / CELLS
MIDDLES = math.log(SHORTEST) + CELL * (np.arange(CELLS * (N_LENGTHS - 1)) + 0.5)  # of cells, logarithms of lengths


@dataclass(frozen=True)
class Quartet(Question):
    """The three topologies around an inner branch, the state's first, each with all LENGTHS of the branch."""

    lower: int  # the node below the branch
    is_by_part = True

    @property
    def n_values(self) -> int:
        return 3 * N_LENGTHS

    def topology(self, topology: Topology, number: int) -> Topology:
        """One of the three."""
        children = topology.left[self.lower], topology.right[self.lower]
        return interchange(topology, self.lower, children[number - 1]) if number else topology

    def write(self, state: State, program: QuestionProgram) -> None:
        topology, lower = state.topology, self.lower
        operands, places, (near, far) = program.operands, program.places, program.spare
        upper, beside = topology.parent[lower], topology.sibling(lower)
        *_, (_, above) = program.descend(topology, topology.upwards([upper]))
        branch = [program.place_length([length] * len(program.lengths)) for length in LENGTHS]
        left, right = topology.left[lower], topology.right[lower]
        pairs = ((left, right, beside), (beside, right, left), (left, beside, right))  # below the branch, and above it
        for number, (a, b, other) in enumerate(pairs):
            program.newview(near, operands[a], places[a], operands[b], places[b])
            program.newview(far, operands[other], places[other], above, places[upper])
            for k, place in enumerate(branch):
                program.evaluate(N_LENGTHS * number + k, far, near, place)


class QuartetDraw(Move):
    """Draws one of the three topologies around an inner branch, and the length of the branch, by their likelihoods.

    The branch is drawn uniformly, one of n - 3. Four subtrees meet at it; these, their lengths and the model stay. For
    each of the three topologies j lnL is known at some lengths of the branch, and a natural cubic spline l_j(s) of the
    logarithm s of the length goes through it. In a chain of heat h, (j, s) is drawn with a density that is constant in
    small cells of s between the shortest and the longest of the lengths, there exp(h l_j(s) + s) of the middle of the
    cell: but for the prior and the error of the spline it is that of the chain. The density depends on nothing that
    the move changes. With q for that of the length t = exp(s), which is the density of s divided by t, the Hastings
    ratio is q(j, t) / q(j', t'). A length outside these bounds is never drawn, so a chain that has one stays.

    If parts p have their own lengths t_p, with a spline l_jp for each, (j, s_1, s_2, ...) is drawn likewise with the
    product over p of exp(h l_jp(s_p) + s_p): the topology with the first length, by the sums over the others, and the
    others given the topology.
    """

    def ask(self, state: State, rng: np.random.Generator) -> Quartet:
        return Quartet(draw_below_top(state.topology, state.topology.n_taxa, rng))

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        question, values = state.answer
        lower, lengths, log_ratio = question.lower, state.lengths.copy(), 0.0
        places = range(lower, len(lengths), state.topology.n_branches)  # of the lengths of the branch
        old = [math.floor((math.log(lengths[place]) - math.log(SHORTEST)) / CELL) for place in places]
        if not all(0 <= cell < len(MIDDLES) for cell in old):
            return None
        splines = np.reshape(values, (-1, 3, N_LENGTHS)) @ spline_weights().T
        logs = heat * splines + MIDDLES  # (n, 3, cells), n lengths
        others = np.logaddexp.reduce(logs[1:], axis=2).sum(axis=0)
        number, first = divmod(draw_number((logs[0] + others[:, None]).ravel(), rng), len(MIDDLES))
        cells = [first, *(draw_number(own[number], rng) for own in logs[1:])]
        for place, own, was, cell in zip(places, logs, old, cells, strict=True):
            lengths[place] = math.exp(MIDDLES[cell] + CELL * (rng.random() - 0.5))
            log_ratio += float(own[0, was] - own[number, cell]) + math.log(lengths[place] / state.lengths[place])
        new = self.space.moved(state, question.topology(state.topology, number), lengths)
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


RADIUS = 4  # branches between a subtree and where it goes


@dataclass(frozen=True)
class Interchanges(Question):
    """The 2 n - 6 interchanges of a tree: numbers 2 k and 2 k + 1 are at the k-th inner branch."""

    n_taxa: int

    @property
    def n_values(self) -> int:
        return 2 * (self.n_taxa - 3)

    @staticmethod
    def of(topology: Topology) -> list[tuple[int, int]]:
        """All: the node below the inner branch, and the one below it that changes places."""
        lowers = (node for node in range(topology.n_taxa, topology.n_nodes) if node != topology.top)
        return [(lower, below) for lower in lowers for below in (topology.left[lower], topology.right[lower])]

    def write(self, state: State, program: QuestionProgram) -> None:
        topology = state.topology
        operands, places, (near, far) = program.operands, program.places, program.spare
        inner = range(topology.n_taxa, topology.n_nodes)
        numbers = {below: number for number, (_, below) in enumerate(self.of(topology))}
        for upper, above in program.descend(topology, inner):
            for lower in (topology.left[upper], topology.right[upper]):
                if lower not in inner:
                    continue
                beside, pair = topology.sibling(lower), (topology.left[lower], topology.right[lower])
                for below, stays in (pair, pair[::-1]):
                    program.newview(near, operands[beside], places[beside], operands[stays], places[stays])
                    program.newview(far, operands[below], places[below], above, places[upper])
                    program.evaluate(numbers[below], far, near, places[lower])


class InformedInterchange(Move):
    """A nearest-neighbour interchange, drawn by the likelihoods of all 2 n - 6 of them (Zanella 2020).

    In a chain of heat h let t(x, y) = (L(y) / L(x))^h. From x, the neighbour y is drawn with the probability
    q(y | x) = g(t(x, y)) / Z(x), where Z(x) is the sum of g(t(x, z)) over all neighbours z, and g(t) = t / (1 + t).
    Since g(t) = t g(1 / t) and t(y, x) = 1 / t(x, y), the Hastings ratio is
    q(x | y) / q(y | x) = Z(x) / (t(x, y) Z(y)): but for the prior, y is accepted with the probability
    min(1, Z(x) / Z(y)). There is one way from x to y, exchanging the same two subtrees again leads back, and all
    lengths stay with their branches. Z(y) takes the likelihoods of all neighbours of y, which are asked for together
    with that of y.
    """

    def ask(self, state: State, rng: np.random.Generator) -> Interchanges:
        return Interchanges(state.topology.n_taxa)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        logs = _log_weights(state, heat)
        lower, below = Interchanges.of(state.topology)[draw_number(logs, rng)]
        new = self.space.moved(state, interchange(state.topology, lower, below), state.lengths)
        return Proposal(new, log_sum(logs), (lower,), question=self.ask(state, rng))

    def log_ratio(self, old: State, proposal: Proposal, new: State, step: float, heat: float) -> float:
        return proposal.log_ratio - heat * (new.lnl - old.lnl) - log_sum(_log_weights(new, heat))


def _log_weights(state: State, heat: float) -> FloatArray:
    """log g(t) of all neighbours."""
    return -np.logaddexp(0.0, -heat * (np.array(state.answer.values) - state.lnl))


@dataclass(eq=False)
class InformedRegraft(Move):
    """Subtree pruning and regrafting, drawn by the likelihoods of all places within a radius.

    A node is drawn uniformly from those that have an inner node above, 2 n - 4 in every tree. Its subtree is cut off,
    and the two branches at the joint become one, the home, of length B_0 = a + b, of which a is above. Grafted on
    branch e of length B_e, the subtree divides it in the same ratio, r = a / B_0. Let w_e = L_e^h B_e with the
    likelihood L_e and the chain's heat h. D(e) is the set of the branches at most `radius` branches away from e,
    without e, and W(e) the sum of w over D(e). The probability of e from the home is w_e / W(0), and that of the way
    back w_0 / W(e), since the rest of the tree is the same and e is in D(0) if and only if 0 is in D(e): all numbers
    come from one batch. The lengths (a, b, B_e) become (r B_e, (1 - r) B_e, a + b). The volume da db dB_e is
    B_0 dr dB_0 dB_e, and that of the new lengths B_e dr dB_e dB_0, so the Jacobian is B_e / B_0 (Green 1995). The
    Hastings ratio is w_0 W(0) B_e / (w_e W(e) B_0) = (L_0 / L_e)^h W(0) / W(e): but for the prior, the move is
    accepted with the probability min(1, W(0) / W(e)), which is known before the new state is asked for.

    If parts have their own lengths, each has its own ratio r, and B_e stands for the product of the lengths of branch e
    in all parts.
    """

    radius: int = RADIUS

    def ask(self, state: State, rng: np.random.Generator) -> Regrafts:
        topology = state.topology
        return Regrafts.of(topology, draw_below_top(topology, 1, rng), self.radius)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        question, values = state.answer
        if question.n_values == 1:
            return None
        lengths, _ = question.lengths_of(state)
        logs = heat * np.array(values) + np.log(lengths).sum(axis=1)
        numbers = {edge: number for number, edge in enumerate(question.edges)}
        near = self._around(question, 0, numbers)
        number = near[draw_number(logs[near], rng)]
        back = self._around(question, number, numbers)
        topology, changed = question.neighbour(state, number)
        log_ratio = heat * (values[0] - values[number]) + log_sum(logs[near]) - log_sum(logs[back])
        stale = stale_after(state.topology, question.node)
        return Proposal(self.space.moved(state, topology, changed), log_ratio, stale, lnl=values[number])

    def _around(self, question: Regrafts, number: int, numbers: dict[int, int]) -> list[int]:
        """The numbers of the places at most the radius away from one place, without it."""
        return [numbers[edge] for edge in branches_around(question.rest, question.edges[number], self.radius)[1:]]
