"""Moves of the topology that know the likelihoods of all neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plltool.analyses.sampling.moves import Move, Proposal
from plltool.analyses.sampling.state import Problem, State
from plltool.analyses.sampling.survey import Neighbours, Survey
from plltool.analyses.sampling.topology_moves import draw_subtree, interchange, stale_after
from plltool.analyses.sampling.tree import ROOT, Topology
from plltool.arrays import FloatArray

RADIUS = 4  # branches between a subtree and where it goes


@dataclass(frozen=True)
class Interchanges(Neighbours):
    """The 2 n - 6 interchanges of a tree: number 2 k and 2 k + 1 are those of the k-th inner branch."""

    n_taxa: int

    @property
    def n_values(self) -> int:
        return 2 * (self.n_taxa - 3)

    def find(self, topology: Topology, number: int) -> tuple[int, int]:
        """The node below the inner branch, and the one below it that changes places."""
        inner, turn = divmod(number, 2)
        lower = self.n_taxa + inner
        lower += lower >= topology.top
        return lower, (topology.right if turn else topology.left)[lower]

    def number_of(self, topology: Topology, lower: int, below: int) -> int:
        """The number of an interchange."""
        return 2 * (lower - self.n_taxa - (lower > topology.top)) + (topology.right[lower] == below)

    def neighbour(self, state: State, number: int) -> tuple[Topology, list[float]]:
        return interchange(state.topology, *self.find(state.topology, number)), state.lengths

    def write(self, state: State, survey: Survey) -> None:
        topology = state.topology
        operands, places, (near, far) = survey.operands, survey.places, survey.spare
        inner = range(topology.n_taxa, topology.n_nodes)
        for upper, above in survey.descend(topology, inner):
            for lower in (topology.left[upper], topology.right[upper]):
                if lower not in inner:
                    continue
                beside, pair = topology.sibling(lower), (topology.left[lower], topology.right[lower])
                for below, stays in (pair, pair[::-1]):
                    survey.newview(near, operands[beside], places[beside], operands[stays], places[stays])
                    survey.newview(far, operands[below], places[below], above, places[upper])
                    survey.evaluate(self.number_of(topology, lower, below), far, near, places[lower])


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

    name = "informed NNI"
    repeats = 2

    def ask(self, state: State, rng: np.random.Generator) -> Interchanges:
        return Interchanges(state.topology.n_taxa)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        question = Interchanges(state.topology.n_taxa)
        logs = _log_weights(state, heat)
        number = draw_number(logs, rng)
        topology, lengths = question.neighbour(state, number)
        lower, _ = question.find(state.topology, number)
        new = self.problem.moved(state, topology, lengths)
        return Proposal(new, log_sum(logs), (lower,), question=question)

    def log_ratio(self, old: State, proposal: Proposal, new: State, step: float, heat: float) -> float:
        return proposal.log_ratio - heat * (new.lnl - old.lnl) - log_sum(_log_weights(new, heat))


def _log_weights(state: State, heat: float) -> FloatArray:
    """log g(t) of all neighbours."""
    assert state.known is not None, "the neighbours were asked for"
    return -np.logaddexp(0.0, -heat * (np.array(state.known.values) - state.lnl))


def log_sum(logs: FloatArray) -> float:
    """The logarithm of the sum of numbers whose logarithms are given."""
    return float(np.logaddexp.reduce(logs))


def draw_number(logs: FloatArray, rng: np.random.Generator) -> int:
    """A number, drawn with probabilities whose logarithms are given up to a constant."""
    sums = np.cumsum(np.exp(logs - logs.max()))
    return min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(sums) - 1)


@dataclass(frozen=True)
class Regrafts(Neighbours):
    """All places of a subtree within twice the radius of where it is.

    The subtree below `node` is cut off with the joint above it, and the two branches at the joint become one, the home.
    Branches of the rest are called after the nodes below them; the home is that of the joint's other child.

    Attributes
    ----------
    node : the subtree
    rest : the tree without it
    edges : branches of the rest, the home first
    """

    node: int
    rest: Topology
    edges: list[int]

    @classmethod
    def of(cls, topology: Topology, node: int, radius: int) -> Regrafts:
        """Those of a node whose parent is an inner node."""
        rest, home = prune(topology, node)
        return cls(node, rest, branches_around(rest, home, 2 * radius))

    @property
    def n_values(self) -> int:
        return len(self.edges)

    def lengths_of(self, state: State) -> tuple[list[float], float]:
        """The lengths of the branches above, and the share of the home that is above the joint."""
        upper = state.lengths[state.topology.parent[self.node]]
        home = upper + state.lengths[self.edges[0]]
        return [home, *(state.lengths[edge] for edge in self.edges[1:])], upper / home

    def neighbour(self, state: State, number: int) -> tuple[Topology, list[float]]:
        whole, share = self.lengths_of(state)
        joint, edge = state.topology.parent[self.node], self.edges[number]
        topology, lengths = self.rest.copy(), state.lengths.copy()
        lengths[self.edges[0]] = whole[0]
        lengths[joint], lengths[edge] = share * whole[number], (1.0 - share) * whole[number]
        topology.replace_child(topology.parent[edge], edge, joint)
        topology.replace_child(joint, self.edges[0], edge)
        return topology, lengths

    def write(self, state: State, survey: Survey) -> None:
        rest, operands = self.rest, survey.operands
        whole, share = self.lengths_of(state)
        home, subtree = self.edges[0], survey.spare[0]
        survey.places[home] = survey.place_length(whole[0])
        survey.propagate(subtree, operands[self.node], survey.places[self.node])
        for node in rest.upwards([rest.parent[home]]):
            a, b, slot = rest.left[node], rest.right[node], survey.others[node]
            survey.newview(slot, operands[a], survey.places[a], operands[b], survey.places[b])
            operands[node] = slot
        numbers = {edge: number for number, edge in enumerate(self.edges)}
        for edge, above in survey.descend(rest, set(rest.upwards(self.edges))):
            number = numbers.get(edge)
            if number is not None:
                parts = [survey.place_length(share * whole[number]), survey.place_length((1.0 - share) * whole[number])]
                survey.insert(number, above, parts[0], operands[edge], parts[1], subtree)


def prune(topology: Topology, node: int) -> tuple[Topology, int]:
    """The tree without the subtree below a node and the joint above it, and the joint's other child."""
    joint, home = topology.parent[node], topology.sibling(node)
    rest = topology.copy()
    rest.replace_child(topology.parent[joint], joint, home)
    return rest, home


def branches_around(topology: Topology, branch: int, radius: int) -> list[int]:
    """A branch and all that are at most `radius` branches away from it, by their distance."""
    found, begin = [branch], 0
    seen = {branch}
    for _ in range(radius):
        begin, reached = len(found), found[begin:]
        for near in reached:
            parent = topology.parent[near]
            around = [topology.left[near], topology.right[near]] if near >= topology.n_taxa else []
            if parent != ROOT:
                around += [parent, topology.sibling(near)]
            found += [other for other in around if other not in seen]
            seen.update(around)
    return found


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
    """

    name = "informed SPR"

    def __init__(self, problem: Problem, weight: float, radius: int = RADIUS):
        super().__init__(problem, weight)
        self._radius = radius

    def ask(self, state: State, rng: np.random.Generator) -> Regrafts:
        topology = state.topology
        return Regrafts.of(topology, draw_subtree(topology, rng), self._radius)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        assert state.known is not None, "the places were asked for"
        question, values = state.known
        assert isinstance(question, Regrafts)
        if question.n_values == 1:
            return None
        lengths, _ = question.lengths_of(state)
        logs = heat * np.array(values) + np.log(lengths)
        numbers = {edge: number for number, edge in enumerate(question.edges)}
        near = self._around(question, 0, numbers)
        number = near[draw_number(logs[near], rng)]
        back = self._around(question, number, numbers)
        topology, changed = question.neighbour(state, number)
        log_ratio = heat * (values[0] - values[number]) + log_sum(logs[near]) - log_sum(logs[back])
        stale = stale_after(state.topology, question.node)
        return Proposal(self.problem.moved(state, topology, changed), log_ratio, stale, lnl=values[number])

    def _around(self, question: Regrafts, number: int, numbers: dict[int, int]) -> list[int]:
        """The numbers of the places at most the radius away from one place, without it."""
        return [numbers[edge] for edge in branches_around(question.rest, question.edges[number], self._radius)[1:]]
