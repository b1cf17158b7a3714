"""A move of the topology that knows the parsimony of all places, which costs little next to likelihoods."""

from __future__ import annotations

import numpy as np

from plltool.analyses.sampling.fitch import FitchSets
from plltool.analyses.sampling.informed_moves import Regrafts, draw_number, log_sum, prune
from plltool.analyses.sampling.moves import Move, Proposal
from plltool.analyses.sampling.state import Problem, State
from plltool.analyses.sampling.topology_moves import draw_subtree, stale_after
from plltool.analyses.sampling.tree import Topology

COST = 1.0  # of a change, in units of lnL


class ParsimonyRegraft(Move):
    """Subtree pruning and regrafting, drawn by parsimony.

    A node is drawn uniformly from those that have an inner node above, 2 n - 4 in every tree. Its subtree is cut off,
    and the two branches at the joint become one, the home, of length B_0 = a + b, of which a is above. Grafted on
    branch e of length B_e, the subtree divides it in the same ratio, r = a / B_0, and adds c_e changes to the
    parsimony of the rest. Let w_e = B_e exp(-COST c_e) and W their sum over all branches of the rest. A place e other
    than the home is drawn with the probability w_e / (W - w_0). The rest, the subtree and all w are the same for the
    way back, whose probability is w_0 / (W - w_e). The lengths (a, b, B_e) become (r B_e, (1 - r) B_e, a + b); the
    Jacobian is B_e / B_0, as in `InformedRegraft`. The Hastings ratio is
    w_0 (W - w_0) B_e / (w_e (W - w_e) B_0) = exp(COST (c_e - c_0)) (W - w_0) / (W - w_e).
    """

    name = "parsimony SPR"

    def __init__(self, problem: Problem, weight: float, sets: FitchSets):
        super().__init__(problem, weight)
        self._sets = sets

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        topology = state.topology
        node = draw_subtree(topology, rng)
        places, costs = self._places(topology, node)
        if len(costs) == 1:
            return None
        lengths, _ = places.lengths_of(state)
        logs = np.log(lengths) - COST * np.array(costs)
        number = 1 + draw_number(logs[1:], rng)
        new, changed = places.neighbour(state, number)
        log_ratio = COST * (costs[number] - costs[0]) + log_sum(logs[1:]) - log_sum(np.delete(logs, number))
        return Proposal(self.problem.moved(state, new, changed), log_ratio, stale_after(topology, node))

    def _places(self, topology: Topology, node: int) -> tuple[Regrafts, list[int]]:
        """All places of the subtree below a node, the home first, and the changes that it adds there."""
        sets = self._sets
        below = sets.below(topology)
        rest, home = prune(topology, node)
        subtree = below[node]
        for above in rest.upwards([rest.parent[home]]):
            below[above] = sets.join(below[rest.left[above]], below[rest.right[above]])
        costs = sets.insertions(rest, below, subtree)
        edges = [home, *(edge for edge in costs if edge != home)]
        return Regrafts(node, rest, edges), [costs[edge] for edge in edges]
