"""Metropolis-coupled chains (Geyer 1991; Altekar et al. 2004); the chains of all runs advance together.

A run has several chains. Chain h, counted from 0, samples the posterior to the power 1 / (1 + h temperature); chain 0,
the cold one, is what is sampled, and the others, which cross valleys more easily, bring it to other hills. In each
generation all chains of all runs make a move of the same kind, drawn at random for all of them, so that their
likelihoods are one launch of tracks of about the same length; whatever the kinds are, each keeps the posterior of each
chain. Then two chains of each run, drawn at random, may exchange their heats, as many times as there are chains, since
this costs next to nothing: with i and j for their states, the exchange is accepted with the probability
min(1, (posterior(j) / posterior(i))^(heat_i - heat_j)).

But for the kinds of moves, all choices of a run are drawn by a generator of its own, and it learns from its own chains
alone. So it does the same, bit for bit, whatever runs advance beside it.

Steps are tuned in the first generations only: after each proposal with the acceptance probability a, the logarithm of
the step changes by (a - target) / t^0.6 where t counts the proposals (Andrieu & Thoms 2008), from the beginning and
again from half of these generations on, when chains have come to where they stay. After them, kernels are fixed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plltool.analyses.sampling.joint_moves import Directions, JointMove
from plltool.analyses.sampling.likelihoods import Likelihoods
from plltool.analyses.sampling.moves import Move
from plltool.analyses.sampling.parameters import Value
from plltool.analyses.sampling.state import Proposal, State, StateSpace
from plltool.analyses.sampling.tree import Topology
from plltool.arrays import IndexArray
from plltool.codec import saved

TUNING_POWER = 0.6  # by which the changes of a step decrease
MIN_STEP, MAX_STEP = 1e-4, 20.0
LEARN_EVERY = 10  # generations between two states that directions are learnt from


@saved()
@dataclass(frozen=True, eq=False)
class RunState:
    """All that a run depends on from a generation on; by chain or heat as in `Chains`.

    `points` has the topology, lengths and values of each chain's state; `schedule` and `rng` draw moves and all else.
    """

    generation: int
    ranks: list[int]
    steps: list[list[float]]
    tried: IndexArray
    accepted: IndexArray
    swaps_tried: IndexArray
    swaps_accepted: IndexArray
    points: list[tuple[Topology, list[float], tuple[Value, ...]]]
    directions: Directions | None
    schedule: np.random.Generator
    rng: np.random.Generator


class Chains:
    """All chains of all runs; see the head of the module.

    Parameters
    ----------
    moves : of each run, the same kinds; one is drawn for each generation, by their weights
    likelihoods : asked for all chains at once
    states : where the chains begin, those of the first run first; each run has as many
    temperature : the difference of 1 / heat between neighbouring chains
    schedule : draws the kinds of moves
    rngs : of each run, for all its other choices
    tuning : the number of generations in which steps are tuned

    Attributes
    ----------
    states : the present state of each chain
    ranks : (n_runs * n_chains,) which heat of its run each chain has; 0 is cold
    generation : the number of generations made
    steps : (n_moves, n_runs * n_chains) the step of each move at each heat of each run
    tried, accepted : likewise, numbers of proposals since tuning ended, or since it began or was at its half
    swaps_tried, swaps_accepted : (n_runs, n_chains, n_chains) exchanges between heats since then, the lower one first
    """

    def __init__(
        self,
        moves: Sequence[Sequence[Move]],
        likelihoods: Likelihoods,
        states: Sequence[State],
        temperature: float,
        schedule: np.random.Generator,
        rngs: Sequence[np.random.Generator],
        tuning: int = 0,
    ):
        self.n_runs, self.n_chains = len(rngs), len(states) // len(rngs)
        self._moves = list(zip(*moves, strict=True))  # by kind and run
        self._likelihoods = likelihoods
        self._schedule, self._rngs = schedule, list(rngs)
        self._tuning = tuning
        self._bounds = np.cumsum([move.weight for move in moves[0]]).tolist()
        self._heats = [1.0 / (1.0 + temperature * rank) for rank in range(self.n_chains)]
        n = len(states)
        self.generation = 0
        self.ranks: list[int] = list(range(self.n_chains)) * self.n_runs
        self.steps = [[move.step] * n for move in moves[0]]
        self.tried: IndexArray = np.zeros((len(self.steps), n), dtype=np.intp)
        self.accepted: IndexArray = np.zeros_like(self.tried)
        shape = self.n_runs, self.n_chains, self.n_chains
        self.swaps_tried: IndexArray = np.zeros(shape, dtype=np.intp)
        self.swaps_accepted: IndexArray = np.zeros(shape, dtype=np.intp)
        self._joint = [  # of each run a move whose directions all of its joint moves share, if it has any
            next((move for move in own if isinstance(move, JointMove)), None) for own in moves
        ]
        self.states = likelihoods.begin(states)

    def save(self, run: int) -> RunState:
        """The state of a run, which does not change when its chains go on."""
        own, joint = self._chains_of(run), self._joint[run]
        return RunState(
            generation=self.generation,
            ranks=self.ranks[own],
            steps=[steps[own] for steps in self.steps],
            tried=self.tried[:, own].copy(),
            accepted=self.accepted[:, own].copy(),
            swaps_tried=self.swaps_tried[run].copy(),
            swaps_accepted=self.swaps_accepted[run].copy(),
            points=[(state.topology, state.lengths, state.values) for state in self.states[own]],
            directions=None if joint is None else replace(joint.directions),
            schedule=copy.deepcopy(self._schedule),
            rng=copy.deepcopy(self._rngs[run]),
        )

    def restore(self, runs: Sequence[RunState], space: StateSpace) -> None:
        """Go on, bit for bit, where some runs were saved, perhaps by other chains."""
        for run, saved_run in enumerate(runs):
            own, joint = self._chains_of(run), self._joint[run]
            self.ranks[own] = saved_run.ranks
            for steps, row in zip(self.steps, saved_run.steps, strict=True):
                steps[own] = row
            self.tried[:, own], self.accepted[:, own] = saved_run.tried, saved_run.accepted
            self.swaps_tried[run], self.swaps_accepted[run] = saved_run.swaps_tried, saved_run.swaps_accepted
            if joint is not None:
                vars(joint.directions).update(vars(saved_run.directions))
            self._rngs[run] = copy.deepcopy(saved_run.rng)
        self.generation = runs[0].generation
        self._schedule = copy.deepcopy(runs[0].schedule)
        self.states = self._likelihoods.begin([space.state(*point) for own in runs for point in own.points])

    def _chains_of(self, run: int) -> slice:
        return slice(run * self.n_chains, (run + 1) * self.n_chains)

    @property
    def is_tuning(self) -> bool:
        """Whether steps still change."""
        return self.generation < self._tuning

    def cold(self, run: int) -> State:
        """The state of the cold chain of a run."""
        first = run * self.n_chains
        return self.states[first + self.ranks[first : first + self.n_chains].index(0)]

    def advance(self) -> None:
        """One generation: a move of every chain, then exchanges of heats in every run."""
        if self.generation in (self._tuning // 2, self._tuning):
            for counts in (self.tried, self.accepted, self.swaps_tried, self.swaps_accepted):
                counts[:] = 0
        drawn = self._schedule.random() * self._bounds[-1]
        number = next(number for number, bound in enumerate(self._bounds) if drawn < bound)
        for _ in range(self._moves[number][0].repeats):
            self._move(number)
        self.generation += 1
        for run, joint in enumerate(self._joint):
            if joint is not None and self.is_tuning and self.generation % LEARN_EVERY == 0:
                joint.directions.learn(map(joint.point, self.states[self._chains_of(run)]))
            if joint is not None and self.generation == self._tuning // 2:
                joint.directions.forget()
        for run in range(self.n_runs):
            for _ in range(self.n_chains if self.n_chains > 1 else 0):
                self._swap(run)

    def _move(self, number: int) -> None:
        """One move of a kind by every chain.

        A proposal whose likelihood its move knows is decided first, so that the engine makes only what is accepted.
        """
        steps = self.steps[number]
        places = [chain - chain % self.n_chains + rank for chain, rank in enumerate(self.ranks)]
        self._survey(number)
        proposals = [
            move.propose(state, steps[place], rng, self._heats[rank])
            for (move, state, rng), place, rank in zip(self._movers(number), places, self.ranks, strict=True)
        ]
        proposals = [None if own is None or own.state.log_prior == -math.inf else own for own in proposals]
        foreseen = [None if own is None or own.lnl is None else own.state._replace(lnl=own.lnl) for own in proposals]
        for chain, (place, proposal, known) in enumerate(zip(places, proposals, foreseen, strict=True)):
            if known is not None and not self._accepts(number, chain, place, proposal, known):
                proposals[chain] = None
        answers = self._likelihoods.ask(proposals)
        for chain, (place, proposal, answer) in enumerate(zip(places, proposals, answers, strict=True)):
            was_decided = foreseen[chain] is not None  # of these, those that are left have been accepted
            accepted = was_decided or self._accepts(number, chain, place, proposal, answer)
            if accepted and answer is not None:
                self.states[chain] = answer
                self._likelihoods.accept(chain)

    def _movers(self, number: int) -> Iterable[tuple[Move, State, np.random.Generator]]:
        """For each chain the move of a kind, the state, and what draws the choices."""
        for chain, state in enumerate(self.states):
            run = chain // self.n_chains
            yield self._moves[number][run], state, self._rngs[run]

    def _survey(self, number: int) -> None:
        """Let all chains know what a move has to know of the surroundings of their states, in one launch."""
        asked: list[Proposal | None] = []
        for move, state, rng in self._movers(number):
            question = move.ask(state, rng)
            is_known = question is None or (state.known is not None and state.known.question == question)
            asked.append(None if is_known else Proposal(state, 0.0, (), question=question))
        if any(asked):
            answers = self._likelihoods.ask(asked)
            self.states = [answer or state for answer, state in zip(answers, self.states, strict=True)]

    def _accepts(self, number: int, chain: int, place: int, proposal: Proposal | None, answer: State | None) -> bool:
        """Whether a chain accepts what it has proposed, whose likelihood is known."""
        run = chain // self.n_chains
        move = self._moves[number][run]
        self.tried[number, place] += 1
        probability, accepted = 0.0, False
        if proposal is not None and answer is not None:
            old = self.states[chain]
            heat = self._heats[self.ranks[chain]]
            ratio = move.log_ratio(old, proposal, answer, self.steps[number][place], heat)
            probability = _acceptance(heat * (answer.log_posterior - old.log_posterior) + ratio)
            accepted = self._rngs[run].random() < probability
            self.accepted[number, place] += accepted
        steps = self.steps[number]
        if self.is_tuning and steps[place]:
            factor = math.exp((probability - move.target) / float(self.tried[number, place]) ** TUNING_POWER)
            steps[place] = min(max(steps[place] * factor, MIN_STEP), MAX_STEP)
        return accepted

    def _swap(self, run: int) -> None:
        """Let two chains of a run exchange their heats, perhaps."""
        rng = self._rngs[run]
        first = int(rng.integers(self.n_chains))
        second = int(rng.integers(self.n_chains - 1))
        second += second >= first
        i, j = run * self.n_chains + first, run * self.n_chains + second
        low, high = sorted((self.ranks[i], self.ranks[j]))
        self.swaps_tried[run, low, high] += 1
        heats = self._heats[self.ranks[i]] - self._heats[self.ranks[j]]
        gain = heats * (self.states[j].log_posterior - self.states[i].log_posterior)
        if rng.random() < _acceptance(gain):
            self.ranks[i], self.ranks[j] = self.ranks[j], self.ranks[i]
            self.swaps_accepted[run, low, high] += 1


def _acceptance(gain: float) -> float:
    """The probability min(1, exp(gain)); 0 if the gain is not a number."""
    return 0.0 if math.isnan(gain) else math.exp(min(0.0, gain))
