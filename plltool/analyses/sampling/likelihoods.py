"""What chains ask: the likelihoods of all of them in one launch, and walks.

Only those CLAs are made that a proposal changes. A chain has two slots for each inner node. One holds the node's CLA in
the present state. A proposal writes into the other one, at the nodes whose CLAs it changes, and reads the present CLAs
elsewhere. If it is accepted, the two change places at these nodes; if it is rejected, nothing has to be undone. Surveys
have slots of their own, see `plltool.analyses.sampling.state`. All chains are tracks of one launch.
"""

import math
from collections.abc import Sequence

import numpy as np

from plltool.analyses.sampling.state import (
    ALL_NODES,
    Known,
    Proposal,
    Question,
    QuestionProgram,
    State,
    StateSpace,
    sampling_slots,
)
from plltool.analyses.sampling.tree import ROOT
from plltool.engine.contract import Opcode, WalkRow
from plltool.engine.program import PACKED_LENGTH, Track
from plltool.engine.requests import Holder, Walkers
from plltool.errors import EngineError
from plltool.model.model import solve_together

WALK_STEPS = 64, 16  # moves of a walk at most if there is nothing to sample but the tree, and if there are parameters
LEAST_WALK_STEPS = 4  # of fewer it is not worth to make all P matrices first
WALK_WORK = 1 << 20  # of a walk at most: moves times patterns times the multiplications of a NEWVIEW


class Likelihoods:
    """What chains ask; here the likelihoods of no data, 1 everywhere, so that chains sample the prior."""

    def begin(self, states: Sequence[State]) -> list[State]:
        """The first states of all chains, with their models and likelihoods."""
        return list(states)

    def ask(self, proposals: Sequence[Proposal | None]) -> list[State | None]:
        """The proposed state of each chain with its model, likelihood and answer; None where there is none."""
        return [own and own.state._replace(known=self._answer(own.state, own.question)) for own in proposals]

    @staticmethod
    def _answer(state: State, question: Question | None) -> Known | None:
        if question is None:
            return None
        return Known(question, question.read(np.zeros((question.n_values, len(state.models))), state))

    def accept(self, chain: int) -> None:
        """Note that a chain has gone to the state that was asked for last."""

    walk_steps = 0  # how many moves of each chain are worth a walk, see `plltool.analyses.sampling.walks`; 0: none are

    def walk(self, walkers: Walkers, states: Sequence[State]) -> None:
        """Let walkers that begin at the states of all chains make `walk_steps` moves."""
        raise AssertionError("there are no walks")


class EngineLikelihoods(Likelihoods):
    """The likelihoods of states by an engine with at least `sampling_slots`.

    The models of `space` have the shape of those in use. The engine's model is lost, see `Holder.ask_tracks`.
    """

    def __init__(self, space: StateSpace, engine: Holder, n_chains: int):
        self._space = space
        self._engine = engine
        self._n_inner = len(space.names) - 2
        self._sides = [[0] * self._n_inner for _ in range(n_chains)]  # which of two slots holds the CLA of each node
        self._asked: list[list[int]] = [[] for _ in range(n_chains)]  # the same if the proposal is accepted
        if engine.can_walk:
            components, states = space.shape
            most, work = WALK_STEPS[len(space.parameters) > 0], engine.n_patterns * components * states**2
            steps = min(most, WALK_WORK // work)
            self.walk_steps = steps if steps >= LEAST_WALK_STEPS else 0

    def begin(self, states: Sequence[State]) -> list[State]:
        self._engine.set_model([model.components() for model in self._space.models])
        answers = self.ask([Proposal(state, 0.0, ALL_NODES, True) for state in states])
        found = [answer for answer in answers if answer is not None]
        for chain, answer in enumerate(found):
            if not math.isfinite(answer.lnl):
                raise EngineError(f"chain {chain + 1} begins with lnL {answer.lnl}, expected a finite number")
            self.accept(chain)
        return found

    def ask(self, proposals: Sequence[Proposal | None]) -> list[State | None]:
        answers: list[State | None] = [None] * len(proposals)
        asked = [(chain, own) for chain, own in enumerate(proposals) if own is not None]
        if not asked:
            return answers
        states = [own.state for _, own in asked]
        changed = [number for number, (_, own) in enumerate(asked) if own.revalued]
        solve_together([model for number in changed for model in states[number].models])
        models = [[model.components() for model in states[number].models] for number in changed]
        for number, packed in zip(changed, self._engine.pack_models(models) if changed else (), strict=True):
            states[number] = states[number]._replace(packed=packed)
        pairs = zip(asked, states, strict=True)
        tracks = [self._track(chain, state, own.stale, own.question) for (chain, own), state in pairs]
        values = self._engine.ask_tracks(tracks)()
        sums, at = values.cumsum(axis=1)[:, -1].tolist(), 0  # in the order of the parts, as walks add
        for (chain, own), state, track in zip(asked, states, tracks, strict=True):
            question, end = own.question, at + track.n_values
            known = None if question is None else Known(question, question.read(values[at + 1 : end], state))
            answers[chain] = state._replace(lnl=sums[at], known=known)
            at = end
        return answers

    def accept(self, chain: int) -> None:
        self._sides[chain] = self._asked[chain]

    def walk(self, walkers: Walkers, states: Sequence[State]) -> None:
        n_taxa = len(self._space.names)
        sides = walkers.trees[:, WalkRow.SLOT_SIDE, n_taxa:]
        sides[:] = self._sides
        self._engine.walk(walkers, [state.packed for state in states], sampling_slots(n_taxa, 1), self.walk_steps)
        self._sides = sides.tolist()

    def _track(self, chain: int, state: State, stale: tuple[int, ...] | None, question: Question | None) -> Track:
        """The program that makes the CLAs of `stale` nodes and of all above them, the likelihood and the answer."""
        topology, at = state.topology, state.by_part
        left, right, n = topology.left, topology.right, topology.n_taxa
        remade = topology.postorder() if stale is ALL_NODES or not self._engine.resident else topology.upwards(stale)
        sides = self._sides[chain].copy()
        for node in remade:
            sides[node - n] ^= 1
        self._asked[chain] = sides
        begin = sampling_slots(n, 1) * chain
        first = begin - 2 * n  # the slots of node u are first + 2 u and the next one
        operands = [~tip for tip in range(n)] + [first + 2 * node + side for node, side in enumerate(sides, n)]
        rows: list[tuple[int, ...]] = []
        read: list[int] = []  # without a question only these branches get P matrices
        for node in remade:
            a, b = place_a, place_b = left[node], right[node]
            if question is None:
                place_a, place_b = len(read), len(read) + 1
                read += (a, b)
            rows.append((Opcode.NEWVIEW, operands[node], operands[a], place_a, operands[b], place_b, 0, 0))
        top = topology.top
        if question is None:
            rows.append((Opcode.EVALUATE, 0, ~ROOT, 0, operands[top], len(read), 0, 0))
            read.append(top)
            return Track(rows, [[own[node] for node in read] for own in at], state.packed)
        rows.append((Opcode.EVALUATE, 0, ~ROOT, 0, operands[top], top, 0, 0))
        lengths = [[PACKED_LENGTH, *own[1:]] for own in at]
        others = [0] * n + [first + 2 * node + 1 - side for node, side in enumerate(sides, n)]
        question.write(state, QuestionProgram(operands, others, begin + 2 * self._n_inner, rows, lengths))
        return Track(rows, lengths, state.packed, 1 + question.n_values)
