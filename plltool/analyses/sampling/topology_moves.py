"""Moves of the topology that ask no engine: at random, or by the parsimony of all places, which costs little.

Branches keep their lengths, or a graft divides them in a ratio that is there, so no lengths are drawn.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.analyses.sampling.moves import Learnt, LearntMove, Move
from plltool.analyses.sampling.state import Proposal, Question, QuestionProgram, State
from plltool.analyses.sampling.tree import ROOT, Topology, draw_below_top, interchange, prune, regraft
from plltool.arrays import FloatArray
from plltool.codec import saved
from plltool.engine.contract import N_SPLIT_KEYS, Opcode
from plltool.tree_search.parsimony import (
    PlaneArray,
    bit_slice,
    count_common,
    informative_sites,
    join_sets,
    variable_sites,
)

EXTENSION = 0.5  # probability that a subtree moves on by another branch; MrBayes' default


LEAST_WEIGHT = 0.1  # of a split that all states have
FIRST_TOPOLOGIES = 50  # before weights differ


@saved()
@dataclass(eq=False)
class SplitWeights(Learnt):
    """Weights of splits, the smaller the more states have them, which the chains of a run learn together.

    Interchanges at splits that nearly all trees have are hardly ever accepted, so that it is better to try others
    (adaptive proposals by the frequencies of splits: Meyer 2021). A split has a key, the exclusive or of those of the
    taxa below its node, and the weight of its key. Some splits may have the same key by chance.
    """

    tips: list[int]  # (n_taxa,) the keys of the taxa
    n_states: int  # learnt from
    counts: FloatArray  # (N_SPLIT_KEYS,) the number of these with a split of each key
    weights: FloatArray  # (N_SPLIT_KEYS,)

    @classmethod
    def of_taxa(cls, n: int) -> SplitWeights:
        """With which a run begins: all splits have the same weight."""
        tips = np.random.default_rng(n).integers(N_SPLIT_KEYS, size=n)
        return cls(tips.tolist(), 0, np.zeros(N_SPLIT_KEYS), np.ones(N_SPLIT_KEYS))

    def keys(self, topology: Topology) -> list[int]:
        """(n_nodes,) the key of the taxa below each node."""
        keys = self.tips + [0] * (topology.n_taxa - 2)
        for node in topology.postorder():
            keys[node] = keys[topology.left[node]] ^ keys[topology.right[node]]
        return keys

    def learn(self, points: Iterable[Topology]) -> None:
        for topology in points:
            self.n_states += 1
            self.counts[self.keys(topology)[topology.n_taxa :]] += 1.0  # once if it has several splits of a key
        if self.n_states >= FIRST_TOPOLOGIES:
            self.weights = LEAST_WEIGHT + 1.0 - self.counts / self.n_states

    def forget(self) -> None:
        self.n_states, self.counts = 0, np.zeros(N_SPLIT_KEYS)


class Interchange(LearntMove):
    """A nearest-neighbour interchange: exchanges a subtree on one side of an inner branch with one on the other side.

    The branch, one of n - 3, is drawn with the probability w / W, the weight of its split over the sum of all, and the
    subtree below it, one of two, uniformly; the subtree changes places with the one beside the branch. No other split
    changes, and exchanging the same two again leads back. With w' and W' of the new tree, the Hastings ratio is
    (w' / W') / (w / W).
    """

    learnt: SplitWeights

    def point(self, state: State) -> Topology:
        return state.topology

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        old, weights = state.topology, self.learnt.weights
        keys = self.learnt.keys(old)
        nodes = [node for node in range(old.n_taxa, old.n_nodes) if node != old.top]
        *_, whole = sums = list(accumulate(weights[[keys[node] for node in nodes]].tolist()))
        lower = nodes[bisect_right(sums, rng.random() * whole)]
        below = old.left[lower] if rng.random() < 0.5 else old.right[lower]
        key = keys[lower] ^ keys[below] ^ keys[old.sibling(lower)]
        before, after = weights[[keys[lower], key]].tolist()
        log_ratio = math.log(after * whole / (before * (whole - before + after)))
        new = self.space.moved(state, interchange(old, lower, below), state.lengths)
        return Proposal(new, log_ratio, (lower,))


def stale_after(topology: Topology, node: int) -> tuple[int, ...]:
    """The inner nodes whose CLAs change if the subtree below a node goes elsewhere, and all nodes above them."""
    joint = topology.parent[node]
    above = topology.parent[joint]
    return (joint,) if above == ROOT else (joint, above)


@dataclass(eq=False)
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

    extension: float = EXTENSION

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        old = state.topology
        node = draw_below_top(old, 1, rng)
        joint, sibling = old.parent[node], old.sibling(node)
        above = old.parent[joint]
        may_rise, may_sink = above != ROOT, sibling >= old.n_taxa
        if not (may_rise or may_sink):
            return None
        rises = rng.random() < 0.5 if may_rise and may_sink else may_rise
        target, arrives_rising = self._walk(old, node, rises, rng)
        lengths = state.lengths.copy()
        moved, left = (joint, sibling) if rises else (sibling, joint)
        n = old.n_branches  # by which the places of the lengths of parts are apart
        near, stays, far = lengths[moved::n], lengths[left::n], lengths[target::n]
        topology = regraft(old, node, target)
        lengths[sibling::n] = stays
        lengths[target::n], lengths[joint::n] = (near, far) if arrives_rising else (far, near)
        is_open = topology.parent[joint] != ROOT if arrives_rising else target >= old.n_taxa
        was_open = may_sink if rises else may_rise
        log_ratio = math.log(2.0 * (1.0 - self.extension)) * (was_open - is_open)
        return Proposal(self.space.moved(state, topology, lengths), log_ratio, stale_after(old, node))

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
            if ends or rng.random() >= self.extension:
                return edge, rises


def log_sum(logs: FloatArray) -> float:
    """The logarithm of the sum of numbers whose logarithms are given."""
    return float(np.logaddexp.reduce(logs))


def draw_number(logs: FloatArray, rng: np.random.Generator) -> int:
    """A number, drawn with probabilities whose logarithms are given up to a constant."""
    sums = np.cumsum(np.exp(logs - logs.max()))
    return min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(sums) - 1)


@dataclass(frozen=True)
class Regrafts(Question):
    """All places of a subtree within twice the radius of where it is.

    The subtree below `node` is cut off with the joint above it, and the two branches at the joint become one, the home.
    Branches of the rest are called after the nodes below them; the home is that of the joint's other child.
    """

    node: int  # the subtree
    rest: Topology  # the tree without it
    edges: list[int]  # branches of the rest, the home first

    @classmethod
    def of(cls, topology: Topology, node: int, radius: int) -> Regrafts:
        """Those of a node whose parent is an inner node."""
        rest, home = prune(topology, node)
        return cls(node, rest, branches_around(rest, home, 2 * radius))

    @property
    def n_values(self) -> int:
        return len(self.edges)

    def lengths_of(self, state: State) -> tuple[list[list[float]], list[float]]:
        """The lengths of the branches above, and the shares of the home that are above the joint; of each part."""
        n, joint, lengths = state.topology.n_branches, state.topology.parent[self.node], state.lengths
        uppers = lengths[joint::n]
        home = [upper + lower for upper, lower in zip(uppers, lengths[self.edges[0] :: n], strict=True)]
        shares = [upper / whole for upper, whole in zip(uppers, home, strict=True)]
        return [home, *(lengths[edge::n] for edge in self.edges[1:])], shares

    def neighbour(self, state: State, number: int) -> tuple[Topology, list[float]]:
        """Topology and lengths with the subtree in one of the places."""
        whole, shares = self.lengths_of(state)
        n, joint, edge = state.topology.n_branches, state.topology.parent[self.node], self.edges[number]
        topology, lengths = regraft(state.topology, self.node, edge), state.lengths.copy()
        lengths[self.edges[0] :: n] = whole[0]
        lengths[joint::n], lengths[edge::n] = _divide(whole[number], shares)
        return topology, lengths

    def write(self, state: State, program: QuestionProgram) -> None:
        rest, operands = self.rest, program.operands
        whole, shares = self.lengths_of(state)
        home, subtree = self.edges[0], program.spare[0]
        program.places[home] = program.place_length(whole[0])
        program.write(Opcode.PROPAGATE, subtree, operands[self.node], program.places[self.node])
        for node in rest.upwards([rest.parent[home]]):
            a, b, slot = rest.left[node], rest.right[node], program.others[node]
            program.newview(slot, operands[a], program.places[a], operands[b], program.places[b])
            operands[node] = slot
        numbers = {edge: number for number, edge in enumerate(self.edges)}
        for edge, above in program.descend(rest, set(rest.upwards(self.edges))):
            number = numbers.get(edge)
            if number is not None:
                upper, lower = map(program.place_length, _divide(whole[number], shares))
                program.write(Opcode.INSERT, number, above, upper, operands[edge], lower, subtree)


def _divide(lengths: Sequence[float], shares: Sequence[float]) -> tuple[list[float], list[float]]:
    """These shares of the lengths of a branch in each part, and what is left of them."""
    pairs = list(zip(lengths, shares, strict=True))
    return [share * length for length, share in pairs], [(1.0 - share) * length for length, share in pairs]


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


class FitchSets:
    """The sets of the tips (n_taxa, n_states, words), and how the sets of other nodes follow.

    They are bit-sliced, see `plltool.tree_search.parsimony`. Sites count as often as they occur; the `n_sites` are
    those at which places of a subtree may differ in changes, or all `variable` ones.
    """

    def __init__(self, parts: Sequence[Patterns], variable: bool = False):
        choose = variable_sites if variable else informative_sites
        sites = np.concatenate([choose(part.masks, part.weights) for part in parts], axis=1)
        self.tips, self.n_sites = bit_slice(sites), sites.shape[1]

    def below(self, topology: Topology) -> PlaneArray:
        """(n_nodes, n_states, words) the sets of the subtrees below all nodes; tip 0 keeps its sets."""
        sets = np.concatenate([self.tips, np.zeros_like(self.tips[2:])])
        self.update(sets, topology, topology.postorder())
        return sets

    def update(self, sets: PlaneArray, topology: Topology, nodes: Sequence[int]) -> None:
        """Put the sets of some inner nodes, each after those below it, in their places."""
        for node in nodes:
            sets[node] = join_sets(sets[[topology.left[node]]], sets[[topology.right[node]]])[0]

    def insertions(self, rest: Topology, below: PlaneArray, subtree: PlaneArray) -> dict[int, int]:
        """The changes that a subtree adds on each branch of a tree, by the node below the branch (Goloboff 1996).

        `rest` is the tree, `below` has the sets of its subtrees, and `subtree` is what is inserted.
        """
        nodes, above = self._above(rest, below)
        shared = count_common(join_sets(above, below[nodes]), subtree[None])
        return dict(zip(nodes, (self.n_sites - shared).tolist(), strict=True))

    def changes(self, topology: Topology) -> list[int]:
        """(n_nodes,) the sites with a change on the branch above each node: its ends share no state there."""
        below = self.below(topology)
        nodes, above = self._above(topology, below)
        found = np.zeros(topology.n_nodes, dtype=np.intp)
        found[nodes] = self.n_sites - count_common(above, below[nodes])
        return found.tolist()

    @staticmethod
    def _above(tree: Topology, below: PlaneArray) -> tuple[list[int], PlaneArray]:
        """The nodes of a tree but its root, and for each the sets of all that is not below it."""
        above = np.empty_like(below)
        above[tree.top] = below[ROOT]
        nodes, stack = [], [tree.top]
        while stack:
            node = stack.pop()
            nodes.append(node)
            if node >= tree.n_taxa:
                children = tree.left[node], tree.right[node]
                above[[*children]] = join_sets(above[[node]], below[[*reversed(children)]])
                stack += children
        return nodes, above[nodes]


COST = 1.0  # of a change, in units of lnL


@dataclass(eq=False)
class ParsimonyRegraft(Move):
    """Subtree pruning and regrafting, drawn by parsimony; subtree, home, lengths and Jacobian as for `InformedRegraft`.

    On branch e the subtree adds c_e changes to the parsimony of the rest. Let w_e = B_e exp(-COST c_e) and W their sum
    over all branches of the rest. A place e other than the home is drawn with the probability w_e / (W - w_0). The
    rest, the subtree and all w are the same for the way back, whose probability is w_0 / (W - w_e). The Hastings ratio
    is w_0 (W - w_0) B_e / (w_e (W - w_e) B_0) = exp(COST (c_e - c_0)) (W - w_0) / (W - w_e).
    """

    sets: FitchSets

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        topology = state.topology
        node = draw_below_top(topology, 1, rng)
        places, costs = self._places(topology, node)
        if len(costs) == 1:
            return None
        lengths, _ = places.lengths_of(state)
        logs = np.log(lengths).sum(axis=1) - COST * np.array(costs)
        number = 1 + draw_number(logs[1:], rng)
        new, changed = places.neighbour(state, number)
        log_ratio = COST * (costs[number] - costs[0]) + log_sum(logs[1:]) - log_sum(np.delete(logs, number))
        return Proposal(self.space.moved(state, new, changed), log_ratio, stale_after(topology, node))

    def _places(self, topology: Topology, node: int) -> tuple[Regrafts, list[int]]:
        """All places of the subtree below a node, the home first, and the changes that it adds there."""
        sets = self.sets
        below = sets.below(topology)
        rest, home = prune(topology, node)
        subtree = below[node]
        sets.update(below, rest, rest.upwards([rest.parent[home]]))
        costs = sets.insertions(rest, below, subtree)
        edges = [home, *(edge for edge in costs if edge != home)]
        return Regrafts(node, rest, edges), [costs[edge] for edge in edges]
