"""Moves of branch lengths, which leave the topology as it is."""

from __future__ import annotations

import math

import numpy as np

from plltool.analyses.sampling.moves import ALL_NODES, Move, Proposal, draw_factor
from plltool.analyses.sampling.state import State
from plltool.analyses.sampling.tree import ROOT


class BranchMultiplier(Move):
    """Multiplies the length b of a branch, drawn uniformly, by m = exp(step (u - 1/2)).

    The density of b' = m b is q(b' | b) = 1 / (step b') within exp(+-step / 2) of b, and q(b | b') = 1 / (step b). The
    Hastings ratio is b' / b = m.
    """

    name = "multiplier of a branch"
    step = 2.0 * math.log(1.6)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        node = int(rng.integers(1, state.topology.n_nodes))
        factor = draw_factor(step, rng)
        lengths = state.lengths.copy()
        lengths[node] *= math.exp(factor)
        parent = state.topology.parent[node]
        new = self.problem.moved(state, state.topology, lengths)
        return Proposal(new, factor, () if parent == ROOT else (parent,))


class TreeMultiplier(Move):
    """Multiplies all K lengths by m = exp(step (u - 1/2)).

    With b' = m b the auxiliary variable u' = 1 - u leads back. The Jacobian of (b, u) -> (m b, 1 - u) is m^K, and u has
    the same density as u'. The Hastings ratio is m^K.
    """

    name = "multiplier of all branches"
    step = 2.0 * math.log(1.1)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        factor = draw_factor(step, rng)
        multiplier = math.exp(factor)
        lengths = [length * multiplier for length in state.lengths]
        new = self.problem.moved(state, state.topology, lengths)
        return Proposal(new, factor * (len(lengths) - 1), ALL_NODES)


class NodeSlider(Move):
    """Multiplies the sum of two lengths at a random inner node by m, and divides the product at a uniform point.

    The lengths (x, y) are M (r, 1 - r) with M = x + y. The proposal has M' = m M, whose density is 1 / (step M'), and
    r' uniform from 0 to 1. Since dx dy = M dM dr, the density of (x', y') is 1 / (step M'^2), and the Hastings ratio is
    (1 / M^2) / (1 / M'^2) = m^2.
    """

    name = "node slider"
    step = 2.0 * math.log(1.2)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        topology = state.topology
        node = int(rng.integers(topology.n_taxa, topology.n_nodes))
        around = [node, topology.left[node], topology.right[node]]
        del around[int(rng.integers(3))]
        factor = draw_factor(step, rng)
        lengths = state.lengths.copy()
        whole = (lengths[around[0]] + lengths[around[1]]) * math.exp(factor)
        share = rng.random()
        lengths[around[0]], lengths[around[1]] = share * whole, (1.0 - share) * whole
        return Proposal(self.problem.moved(state, topology, lengths), 2.0 * factor, (node,))
