"""Moves of the topology. Branches keep their lengths, so no lengths are drawn and all Jacobians are 1."""

from __future__ import annotations

import math

import numpy as np

from plltool.analyses.sampling.moves import Move, Proposal
from plltool.analyses.sampling.state import Problem, State
from plltool.analyses.sampling.tree import ROOT, Topology

EXTENSION = 0.5  # probability that a subtree moves on by another branch; MrBayes' default


class Interchange(Move):
    """A nearest-neighbour interchange: exchanges a subtree on one side of an inner branch with one on the other side.

    The branch, one of n - 3, and the subtree below it, one of two, are drawn uniformly; the subtree changes places with
    the one beside the branch. Exchanging the same two again leads back, and has the same probability. The Hastings
    ratio is 1.
    """

    name = "NNI"

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        old = state.topology
        lower = draw_inner_branch(old, rng)
        below = old.left[lower] if rng.random() < 0.5 else old.right[lower]
        new = self.problem.moved(state, interchange(old, lower, below), state.lengths)
        return Proposal(new, 0.0, (lower,))


def draw_inner_branch(topology: Topology, rng: np.random.Generator) -> int:
    """The node below an inner branch, one of n - 3, drawn uniformly."""
    inner = int(rng.integers(topology.n_taxa, topology.n_nodes - 1))
    return inner + (inner >= topology.top)


def interchange(old: Topology, lower: int, below: int) -> Topology:
    """The tree in which the node `below` the inner branch above `lower` has changed places with the one beside it."""
    upper, beside = old.parent[lower], old.sibling(lower)
    topology = old.copy()
    topology.replace_child(lower, below, beside)
    topology.replace_child(upper, beside, below)
    return topology


def draw_subtree(topology: Topology, rng: np.random.Generator) -> int:
    """A node, drawn uniformly from those that have an inner node above."""
    node = int(rng.integers(1, topology.n_nodes - 1))
    return node + (node >= topology.top)


def stale_after(topology: Topology, node: int) -> tuple[int, ...]:
    """The inner nodes whose CLAs change, and those of all above them, if the subtree below a node goes elsewhere."""
    joint = topology.parent[node]
    above = topology.parent[joint]
    return (joint,) if above == ROOT else (joint, above)


class Extension(Move):
    """Extending subtree pruning and regrafting (Lakner et al. 2008): a subtree walks along the tree, branch by branch.

    A node is drawn uniformly from those that have an inner node above, 2 n - 4 in every tree. Its subtree, with the
    node above it, the joint, is cut off, and the two branches at the joint become one, e_0. From there the subtree
    walks up or down, across an inner node to a next branch e_1, e_2, ..., and stops at e_k with the probability 1 - p,
    or where the far end of e_k is a tip. At each crossing it takes one of two branches. The part of e_0 between joint
    and first crossing moves along and becomes the part of e_k on the near side, so lengths are only exchanged.

    Let d be 1 if the other end of e_0, which the walk leaves behind, is a tip, else 1/2:
    the probability of its direction. Let s be 1 if e_k ends at a tip, else 1 - p. The probability of the walk is
    d (1/2)^k p^(k-1) s. The walk back, of the same subtree from e_k to e_0, has d' = 1 if e_k ends at a tip, else 1/2,
    and s' = 1 if the other end of e_0 is a tip, else 1 - p. The Hastings ratio is d' s' / (d s) = g(e_0) / g(e_k) with
    g = 1 at a tip, else 2 (1 - p). Several walks may lead to the same tree; each is balanced by the walk back.
    """

    name = "eSPR"

    def __init__(self, problem: Problem, weight: float, extension: float = EXTENSION):
        super().__init__(problem, weight)
        self._extension = extension
        self._log_open = math.log(2.0 * (1.0 - extension))

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        old = state.topology
        node = draw_subtree(old, rng)
        joint, sibling = old.parent[node], old.sibling(node)
        above = old.parent[joint]
        may_rise, may_sink = above != ROOT, sibling >= old.n_taxa
        if not (may_rise or may_sink):
            return None
        rises = rng.random() < 0.5 if may_rise and may_sink else may_rise
        target, arrives_rising = self._walk(old, node, rises, rng)
        lengths = state.lengths.copy()
        moved, left = (joint, sibling) if rises else (sibling, joint)
        near, stays, far = lengths[moved], lengths[left], lengths[target]
        topology = old.copy()
        topology.replace_child(above, joint, sibling)
        topology.replace_child(topology.parent[target], target, joint)
        topology.replace_child(joint, sibling, target)
        lengths[sibling] = stays
        lengths[target], lengths[joint] = (near, far) if arrives_rising else (far, near)
        is_open = topology.parent[joint] != ROOT if arrives_rising else target >= old.n_taxa
        was_open = may_sink if rises else may_rise
        log_ratio = self._log_open * (was_open - is_open)
        return Proposal(self.problem.moved(state, topology, lengths), log_ratio, stale_after(old, node))

    def _walk(self, topology: Topology, node: int, rises: bool, rng: np.random.Generator) -> tuple[int, bool]:
        """The branch where a subtree stops that begins to rise or to sink, and whether it rises there.

        Branches are those of the tree without the subtree; none but the first differs from those of the tree.
        """
        joint = topology.parent[node]
        edge = joint if rises else topology.sibling(node)  # as the crossings see it
        while True:
            if rises:
                crossed = topology.parent[edge]
                rises = rng.random() < 0.5
                edge = crossed if rises else topology.sibling(edge)
            else:
                edge = topology.left[edge] if rng.random() < 0.5 else topology.right[edge]
            ends = topology.parent[edge] == ROOT if rises else edge < topology.n_taxa
            if ends or rng.random() >= self._extension:
                return edge, rises
