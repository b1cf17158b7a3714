"""Metropolis-coupled chains (Geyer 1991; Altekar et al. 2004): those of all runs advance together.

A run has several chains. Chain h, counted from 0, samples the posterior to the power 1 / (1 + h temperature); chain 0,
the cold one, is what is sampled, and the others, which cross valleys more easily, bring it to other hills. In each
generation all chains of all runs make a move of the same kind, drawn at random for all of them, so that their
likelihoods are one launch of tracks of about the same length; whatever the kinds are, each keeps the posterior of each
chain. Then two chains of each run, drawn at random, may exchange their heats: with i and j for their states,
the exchange is accepted with the probability min(1, (posterior(j) / posterior(i))^(heat_i - heat_j)).

Steps are tuned in the first generations only: after each proposal with the acceptance probability a, the logarithm of
the step changes by (a - target) / t^0.6 where t counts the proposals (Andrieu & Thoms 2008). From then on kernels are
fixed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.arrays import IndexArray
from plltool.sampling.joint_moves import Directions, JointMove
from plltool.sampling.likelihoods import Likelihoods
from plltool.sampling.moves import Move, Proposal
from plltool.sampling.samples import pack_topologies, unpack_topologies
from plltool.sampling.state import Problem, State

TUNING_POWER = 0.6  # by which the changes of a step decrease
MIN_STEP, MAX_STEP = 1e-4, 20.0
LEARNT = "n_states", "sums", "products", "factor"  # of directions
LEARN_EVERY = 10  # generations between two states that directions are learnt from


class Chains:
    """All chains of all runs; see the head of the module.

    Parameters
    ----------
    moves : one is drawn for each generation, by their weights
    likelihoods : asked for all chains at once
    states : where the chains begin, those of the first run first; each run has as many
    n_runs : number of runs
    temperature : the difference of 1 / heat between neighbouring chains
    rng : of all choices
    tuning : the number of generations in which steps are tuned

    Attributes
    ----------
    states : the present state of each chain
    ranks : (n_runs * n_chains,) which heat of its run each chain has; 0 is cold
    generation : the number of generations made
    steps : (n_moves, n_runs * n_chains) the step of each move at each heat of each run
    tried, accepted : likewise, numbers of proposals since tuning ended
    swaps_tried, swaps_accepted : (n_runs, n_chains, n_chains) exchanges between heats since then, the lower one first
    """

    def __init__(
        self,
        moves: Sequence[Move],
        likelihoods: Likelihoods,
        states: Sequence[State],
        n_runs: int,
        temperature: float,
        rng: np.random.Generator,
        tuning: int = 0,
    ):
        self.moves = list(moves)
        self.n_runs, self.n_chains = n_runs, len(states) // n_runs
        self._likelihoods = likelihoods
        self._rng = rng
        self._tuning = tuning
        self._bounds = np.cumsum([move.weight for move in moves]).tolist()
        self._heats = [1.0 / (1.0 + temperature * rank) for rank in range(self.n_chains)]
        n = len(states)
        self.generation = 0
        self.ranks: list[int] = list(range(self.n_chains)) * n_runs
        self.steps = [[move.step] * n for move in self.moves]
        self.tried: IndexArray = np.zeros((len(self.moves), n), dtype=np.intp)
        self.accepted: IndexArray = np.zeros_like(self.tried)
        shape = n_runs, self.n_chains, self.n_chains
        self.swaps_tried: IndexArray = np.zeros(shape, dtype=np.intp)
        self.swaps_accepted: IndexArray = np.zeros(shape, dtype=np.intp)
        own = [move.directions for move in moves if isinstance(move, JointMove)]
        self._directions: list[Directions] = list(dict.fromkeys(own))  # one that they share, if any
        self.states = likelihoods.begin(states)

    def pack(self) -> dict[str, npt.NDArray[Any]]:
        """All that the chains depend on from here, for `unpack`."""
        values = [np.concatenate([np.ravel(value) for value in (0.0, *state.values)]) for state in self.states]
        return {
            "generation": np.array(self.generation),
            "ranks": np.array(self.ranks),
            "steps": np.array(self.steps),
            "tried": self.tried.copy(),
            "accepted": self.accepted.copy(),
            "swaps_tried": self.swaps_tried.copy(),
            "swaps_accepted": self.swaps_accepted.copy(),
            "state_topologies": pack_topologies([state.topology for state in self.states]),
            "state_lengths": np.array([state.lengths for state in self.states]),
            "state_values": np.array(values)[:, 1:],
            **{f"joint_{name}": getattr(own, name) for own in self._directions for name in LEARNT},
            "random": np.frombuffer(json.dumps(self._rng.bit_generator.state).encode(), dtype=np.uint8),
        }

    def unpack(self, packed: Mapping[str, npt.NDArray[Any]], problem: Problem) -> None:
        """Go on, bit for bit, where `pack` was called."""
        self.generation = int(packed["generation"])
        self.ranks, self.steps = packed["ranks"].tolist(), packed["steps"].tolist()
        self.tried, self.accepted = packed["tried"], packed["accepted"]
        self.swaps_tried, self.swaps_accepted = packed["swaps_tried"], packed["swaps_accepted"]
        for own in self._directions:
            own.n_states = int(packed["joint_n_states"])
            own.sums, own.products = packed["joint_sums"], packed["joint_products"]
            own.factor = packed["joint_factor"]
        self._rng.bit_generator.state = json.loads(packed["random"].tobytes())
        ends = np.cumsum([own.size for own in problem.parameters])[:-1]
        states = []
        rows = zip(packed["state_lengths"].tolist(), packed["state_values"], strict=True)
        for topology, (lengths, row) in zip(unpack_topologies(packed["state_topologies"]), rows, strict=True):
            values = [own if len(own) > 1 else float(own[0]) for own in np.split(row, ends)] if len(row) else []
            states.append(problem.state(topology, lengths, values))
        self.states = self._likelihoods.begin(states)

    @property
    def is_tuning(self) -> bool:
        """Whether steps still change."""
        return self.generation < self._tuning

    def cold(self, run: int) -> State:
        """The state of the cold chain of a run."""
        first = run * self.n_chains
        return self.states[first + self.ranks[first : first + self.n_chains].index(0)]

    def advance(self) -> None:
        """One generation: a move of every chain, then an exchange of heats in every run."""
        if self.generation == self._tuning:
            for counts in (self.tried, self.accepted, self.swaps_tried, self.swaps_accepted):
                counts[:] = 0
        number = self._draw_move()
        for _ in range(self.moves[number].repeats):
            self._move(number)
        self.generation += 1
        if self.is_tuning and self.generation % LEARN_EVERY == 0:
            for own in self._directions:
                own.learn(self.states)
        if self.generation == self._tuning // 2:
            for own in self._directions:
                own.forget()
        if self.n_chains > 1:
            for run in range(self.n_runs):
                self._swap(run)

    def _draw_move(self) -> int:
        drawn = self._rng.random() * self._bounds[-1]
        return next(number for number, bound in enumerate(self._bounds) if drawn < bound)

    def _move(self, number: int) -> None:
        """One move of a kind by every chain."""
        move, steps = self.moves[number], self.steps[number]
        places = [chain - chain % self.n_chains + rank for chain, rank in enumerate(self.ranks)]
        self._survey(move)
        proposals = [
            self._possible(move.propose(state, steps[place], self._rng, self._heats[rank]))
            for state, place, rank in zip(self.states, places, self.ranks, strict=True)
        ]
        answers = self._likelihoods.ask(proposals)
        for chain, (place, proposal, answer) in enumerate(zip(places, proposals, answers, strict=True)):
            self._decide(number, chain, place, proposal, answer)

    def _survey(self, move: Move) -> None:
        """Let all chains know what a move has to know of the surroundings of their states, in one launch."""
        asked: list[Proposal | None] = []
        for state in self.states:
            question = move.ask(state, self._rng)
            is_known = question is None or (state.known is not None and state.known.question == question)
            asked.append(None if is_known else Proposal(state, 0.0, (), question=question))
        if any(asked):
            answers = self._likelihoods.ask(asked)
            self.states = [answer or state for answer, state in zip(answers, self.states, strict=True)]

    def _possible(self, proposal: Proposal | None) -> Proposal | None:
        """The proposal, unless its prior density is 0."""
        return None if proposal is None or proposal.state.log_prior == -math.inf else proposal

    def _decide(self, number: int, chain: int, place: int, proposal: Proposal | None, answer: State | None) -> None:
        """Accept or reject what a chain has proposed."""
        self.tried[number, place] += 1
        probability = 0.0
        if proposal is not None and answer is not None:
            old = self.states[chain]
            heat = self._heats[self.ranks[chain]]
            ratio = self.moves[number].log_ratio(old, proposal, answer, self.steps[number][place], heat)
            gain = heat * (answer.log_posterior - old.log_posterior) + ratio
            probability = math.exp(min(0.0, gain))
            if self._rng.random() < probability:
                self.states[chain] = answer
                self._likelihoods.accept(chain)
                self.accepted[number, place] += 1
        steps = self.steps[number]
        if self.is_tuning and steps[place]:
            target = self.moves[number].target
            factor = math.exp((probability - target) / float(self.tried[number, place]) ** TUNING_POWER)
            steps[place] = min(max(steps[place] * factor, MIN_STEP), MAX_STEP)

    def _swap(self, run: int) -> None:
        """Let two chains of a run exchange their heats, perhaps."""
        first = int(self._rng.integers(self.n_chains))
        second = int(self._rng.integers(self.n_chains - 1))
        second += second >= first
        i, j = run * self.n_chains + first, run * self.n_chains + second
        low, high = sorted((self.ranks[i], self.ranks[j]))
        self.swaps_tried[run, low, high] += 1
        heats = self._heats[self.ranks[i]] - self._heats[self.ranks[j]]
        gain = heats * (self.states[j].log_posterior - self.states[i].log_posterior)
        if self._rng.random() < math.exp(min(0.0, gain)):
            self.ranks[i], self.ranks[j] = self.ranks[j], self.ranks[i]
            self.swaps_accepted[run, low, high] += 1
