"""The likelihoods of the states that chains propose: only those CLAs are made that a proposal changes.

A chain has two slots for each inner node. One holds the node's CLA in the present state. A proposal writes into the
other one, at the nodes whose CLAs it changes, and reads the present CLAs elsewhere. If it is accepted, the two change
places at these nodes; if it is rejected, nothing has to be undone. Surveys have slots of their own, see
`plltool.analyses.sampling.state`. All chains are tracks of one launch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from plltool.analyses.sampling.state import (
    ALL_NODES,
    Known,
    Proposal,
    Question,
    QuestionProgram,
    State,
    StateSpace,
    question_slots,
)
from plltool.analyses.sampling.tree import ROOT
from plltool.engine.contract import Opcode
from plltool.engine.program import PACKED_LENGTH, Track
from plltool.engine.requests import Holder
from plltool.errors import EngineError
from plltool.model.model import solve_together


def sampling_slots(n_taxa: int, n_chains: int) -> int:
    """The number of CLAs that chains need."""
    return (2 * (n_taxa - 2) + question_slots(n_taxa)) * n_chains


class Likelihoods:
    """What chains ask; here the likelihoods of no data, 1 everywhere, so that chains sample the prior."""

    def begin(self, states: Sequence[State]) -> list[State]:
        """The first states of all chains, with their models and likelihoods."""
        return list(states)

    def ask(self, proposals: Sequence[Proposal | None]) -> list[State | None]:
        """The proposed state of each chain with its model, likelihood and answer; None where there is none."""
        questions = [None if own is None else own.question for own in proposals]
        known = [None if own is None else Known(own, own.without_data()) for own in questions]
        return [own and own.state._replace(known=answer) for own, answer in zip(proposals, known, strict=True)]

    def accept(self, chain: int) -> None:
        """Note that a chain has gone to the state that was asked for last."""


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

    def begin(self, states: Sequence[State]) -> list[State]:
        self._engine.set_model([model.components() for model in self._space.models])
        answers = self.ask([Proposal(state, 0.0, ALL_NODES, True) for state in states])
        for chain, answer in enumerate(answers):
            if answer is None or not math.isfinite(answer.lnl):
                found = None if answer is None else answer.lnl
                raise EngineError(f"chain {chain + 1} begins with lnL {found}, expected a finite number")
            self.accept(chain)
        return [answer for answer in answers if answer is not None]

    def ask(self, proposals: Sequence[Proposal | None]) -> list[State | None]:
        answers: list[State | None] = [None] * len(proposals)
        asked = [(chain, own) for chain, own in enumerate(proposals) if own is not None]
        if not asked:
            return answers
        states = self._packed([own for _, own in asked])
        tracks = [
            self._track(chain, state, own.stale, own.question)
            for (chain, own), state in zip(asked, states, strict=True)
        ]
        values = self._engine.ask_tracks(tracks)()
        sums, at = values.sum(axis=1).tolist(), 0
        for (chain, own), state, track in zip(asked, states, tracks, strict=True):
            question, end = own.question, at + track.n_values
            known = None if question is None else Known(question, question.read(values[at + 1 : end], state))
            answers[chain] = state._replace(lnl=sums[at], known=known)
            at = end
        return answers

    def _packed(self, proposals: Sequence[Proposal]) -> list[State]:
        """The proposed states with their models as the engine takes them; models that change are made together."""
        states = [own.state for own in proposals]
        changed = [number for number, own in enumerate(proposals) if own.revalued]
        solve_together([model for number in changed for model in states[number].models])
        models = [[model.components() for model in states[number].models] for number in changed]
        for number, packed in zip(changed, self._engine.pack_models(models) if changed else (), strict=True):
            states[number] = states[number]._replace(packed=packed)
        return states

    def accept(self, chain: int) -> None:
        self._sides[chain] = self._asked[chain]

    def _track(self, chain: int, state: State, stale: tuple[int, ...] | None, question: Question | None) -> Track:
        """The program that makes the CLAs of `stale` nodes and of all above them, the likelihood and the answer."""
        topology, at = state.topology, state.lengths
        left, right, n = topology.left, topology.right, topology.n_taxa
        remade = topology.postorder() if stale is ALL_NODES or not self._engine.resident else topology.upwards(stale)
        sides = self._sides[chain].copy()
        for node in remade:
            sides[node - n] ^= 1
        self._asked[chain] = sides
        begin = sampling_slots(n, 1) * chain
        first = begin - 2 * n  # the slots of node u are first + 2 u and the next one
        rows: list[tuple[int, ...]] = []
        lengths: list[float] = [] if question is None else [PACKED_LENGTH, *at[1:]]
        for node in remade:
            a, b = left[node], right[node]
            operand_a = ~a if a < n else first + 2 * a + sides[a - n]
            operand_b = ~b if b < n else first + 2 * b + sides[b - n]
            place_a, place_b = a, b
            if question is None:  # only the branches that are read get P matrices
                place_a, place_b = len(lengths), len(lengths) + 1
                lengths += (at[a], at[b])
            rows.append(
                (Opcode.NEWVIEW, first + 2 * node + sides[node - n], operand_a, place_a, operand_b, place_b, 0, 0)
            )
        top = topology.top
        if question is None:
            rows.append((Opcode.EVALUATE, 0, ~ROOT, 0, first + 2 * top + sides[top - n], len(lengths), 0, 0))
            lengths.append(at[top])
            return Track(rows, lengths, state.packed)
        rows.append((Opcode.EVALUATE, 0, ~ROOT, 0, first + 2 * top + sides[top - n], top, 0, 0))
        operands = [~tip for tip in range(n)] + [first + 2 * node + side for node, side in enumerate(sides, n)]
        others = [0] * n + [first + 2 * node + 1 - side for node, side in enumerate(sides, n)]
        question.write(state, QuestionProgram(operands, others, begin + 2 * self._n_inner, rows, lengths))
        return Track(rows, lengths, state.packed, 1 + question.n_values)
