"""Metropolis-coupled chains (Geyer 1991; Altekar et al. 2004); the chains of all runs advance together.

A run has several chains. Chain h, counted from 0, samples the posterior to the power 1 / (1 + h temperature); chain 0,
the cold one, is what is sampled, and the others, which cross valleys more easily, bring it to other hills. In each
generation all chains of all runs make a move of the same kind, drawn at random for all of them, so that their
likelihoods are one launch of tracks of about the same length; whatever the kinds are, each keeps the posterior of each
chain. On a device that can, some moves of the tree come as a walk of many, see `plltool.analyses.sampling.walks`. Then
two chains of each run, drawn at random, may exchange their heats, as many times as there are chains, since this costs
next to nothing: with i and j for their states, the exchange is accepted with the probability
min(1, (posterior(j) / posterior(i))^(heat_i - heat_j)).

But for the kinds of moves, all choices of a run are drawn by a generator of its own, and it learns from its own chains
alone. So it does the same, bit for bit, whatever runs advance beside it.

Steps are tuned in the first generations only: after each proposal with the acceptance probability a, the logarithm of
the step changes by (a - target) / t^0.6 where t counts the proposals (Andrieu & Thoms 2008), after a walk by the sum of
a - target over its proposals in place of one, from the beginning and again from half of these generations on, when
chains have come to where they stay. After them, kernels are fixed. A temperature that is tuned changes likewise, by the
number of generations t, so that neighbours in heat exchange theirs with the probability SWAP_TARGET. It does not stop
to change, but ever less, and what is sampled stays the posterior (Miasojedow, Moulines & Vihola 2013).
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from plltool.analyses.sampling.likelihoods import Likelihoods
from plltool.analyses.sampling.moves import Learnt, LearntMove, Move
from plltool.analyses.sampling.state import Proposal, State
from plltool.analyses.sampling.topology_moves import Extension, SplitWeights
from plltool.analyses.sampling.walks import begin_walks, end_walk, find_steps, of_steps
from plltool.arrays import IndexArray
from plltool.codec import saved
from plltool.constants import DEFAULT_TEMPERATURE
from plltool.engine.contract import WALK_WORDS, WalkWord

TUNING_POWER = 0.6  # by which the changes of a step decrease
MIN_STEP, MAX_STEP = 1e-4, 20.0
SWAP_TARGET = 0.3  # the share of exchanges between neighbours in heat that a temperature is tuned for
LEAST_TEMPERATURE, MOST_TEMPERATURE = 1e-3, 1.0  # of one that is tuned
LEAST_GUIDE = 1e-3  # the least heat by which a move proposes: some divide by it
LEARN_EVERY = 10  # generations between two states that directions are learnt from


@saved()
@dataclass(eq=False)
class RunState:
    """All that a run depends on from a generation on."""

    generation: int  # the number of generations made
    ranks: list[int]  # (n_chains,) which heat each chain has; 0 is cold
    heats: list[float]  # (n_chains,) these heats
    steps: list[list[float]]  # (n_moves, n_chains) the step of each move at each heat
    # likewise, numbers of proposals since tuning ended, or since it began or was at its half
    tried: IndexArray
    accepted: IndexArray
    swaps_tried: IndexArray  # (n_chains, n_chains) exchanges between heats since then, the lower one first
    swaps_accepted: IndexArray
    # what each chain's state is made of, see `StateSpace.point`, as it was saved; none while the chains go on
    points: list[tuple[Any, ...]]
    learnt: list[Learnt]  # what moves of the run have learnt
    schedule: np.random.Generator  # draws the kinds of moves, for all runs
    rng: np.random.Generator  # draws all else


Turn: TypeAlias = tuple[RunState, Move, int]  # of a chain: its run, the move that it makes, and its heat


def heats_at(temperature: float, n_chains: int) -> list[float]:
    """The heat of each chain."""
    return [1.0 / (1.0 + temperature * rank) for rank in range(n_chains)]


def temperature_of(heats: Sequence[float]) -> float:
    """The temperature of chains with these heats; 0 of one chain."""
    return 1.0 / heats[1] - 1.0 if len(heats) > 1 else 0.0


class Heated:
    """What the chains of a run sample: chain h the posterior to a power, its heat; any two may exchange theirs.

    With `powers`, of stepping stones, it is the prior times a power of the likelihood; neighbours may exchange theirs.
    A temperature that is not a number is tuned.
    """

    def __init__(self, temperature: float | str, n_chains: int, powers: Sequence[float] = ()):
        self.is_powered, self.is_tuned = len(powers) > 0, isinstance(temperature, str)
        first = DEFAULT_TEMPERATURE if isinstance(temperature, str) else temperature
        self.first_heats = list(powers) or heats_at(first, n_chains)

    def tempered(self, state: State) -> float:
        """The logarithm of that which has a heat as its power."""
        return state.lnl if self.is_powered else state.log_posterior

    def powers(self, heat: float) -> tuple[float, float]:
        """Those of the likelihood and of the prior in what a chain samples."""
        return heat, 1.0 if self.is_powered else heat

    def gain(self, heat: float, old: State, new: State) -> float:
        """The change of the logarithm of what a chain samples."""
        of_lnl, of_prior = self.powers(heat)
        return of_lnl * (new.lnl - old.lnl) + of_prior * (new.log_prior - old.log_prior)

    def draw_pair(self, ranks: Sequence[int], rng: np.random.Generator) -> tuple[int, int]:
        """Two chains that may exchange their heats."""
        if self.is_powered:
            rank = int(rng.integers(len(ranks) - 1))
            return ranks.index(rank), ranks.index(rank + 1)
        i, j = int(rng.integers(len(ranks))), int(rng.integers(len(ranks) - 1))
        return i, j + (j >= i)


class Chains:
    """All chains of all runs; see the head of the module.

    `runs` has what changes from generation to generation, besides `states`, the present state of each chain.
    """

    def __init__(
        self,
        moves: Sequence[Sequence[Move]],  # of each run, the same kinds; a generation draws one by its weight
        likelihoods: Likelihoods,  # asked for all chains at once
        states: Sequence[State],  # where the chains begin, those of the first run first; each run has as many
        target: Heated,  # what the chains of a run sample
        schedule: np.random.Generator,  # draws the kinds of moves
        rngs: Sequence[np.random.Generator],  # of each run, for all its other choices
        tuning: int = 0,  # number of generations in which steps are tuned
    ):
        n = self.n_chains = len(states) // len(rngs)
        self._moves = list(zip(*moves, strict=True))  # by kind and run
        self._learners = list(map(_find_learners, moves))  # of each run, moves that share what they learn
        self._likelihoods, self._tuning = likelihoods, tuning
        self.space = moves[0][0].space
        self._steps_of_walks = find_steps(moves[0])  # by the numbers of their moves
        weights = [move.weight * (1.0 if likelihoods.walk_steps else move.alone) for move in moves[0]]
        self._bounds = np.cumsum(weights).tolist()
        self._target = target
        self.runs = [
            RunState(
                generation=0,
                ranks=list(range(n)),
                heats=list(target.first_heats),
                steps=[[move.step] * n for move in own],
                tried=np.zeros((len(own), n), dtype=np.intp),
                accepted=np.zeros((len(own), n), dtype=np.intp),
                swaps_tried=np.zeros((n, n), dtype=np.intp),
                swaps_accepted=np.zeros((n, n), dtype=np.intp),
                points=[],
                learnt=[first.learnt for first, *_ in learners],
                schedule=schedule,
                rng=rng,
            )
            for own, learners, rng in zip(moves, self._learners, rngs, strict=True)
        ]
        self.states = likelihoods.begin(states)

    def save(self, run: int) -> RunState:
        """The state of a run, which does not change when its chains go on."""
        points = list(map(self.space.point, self._states_of(run)))
        return replace(copy.deepcopy(self.runs[run]), points=points)

    def restore(self, runs: Sequence[RunState]) -> None:
        """Go on, bit for bit, where the runs were saved, perhaps by other chains."""
        schedule = copy.deepcopy(runs[0].schedule)
        self.runs = [replace(copy.deepcopy(replace(own, points=[])), schedule=schedule) for own in runs]
        for own, learners in zip(self.runs, self._learners, strict=True):
            for learnt, sharing in zip(own.learnt, learners, strict=True):
                for move in sharing:
                    move.learnt = learnt
        self.states = self._likelihoods.begin([self.space.at(point) for own in runs for point in own.points])

    def _states_of(self, run: int) -> list[State]:
        return self.states[run * self.n_chains : (run + 1) * self.n_chains]

    @property
    def generation(self) -> int:
        """The number of generations made."""
        return self.runs[0].generation

    def by_heat(self, run: int) -> list[State]:
        """The states of the chains of a run, the cold one first."""
        states, ranks = self._states_of(run), self.runs[run].ranks
        return [states[ranks.index(rank)] for rank in range(self.n_chains)]

    def cold(self, run: int) -> State:
        """The state of the cold chain of a run."""
        return self._states_of(run)[self.runs[run].ranks.index(0)]

    def advance(self) -> None:
        """One generation: a move or a walk of every chain, then exchanges of heats in every run."""
        if self.generation in (self._tuning // 2, self._tuning):
            for own in self.runs:
                for counts in (own.tried, own.accepted, own.swaps_tried, own.swaps_accepted):
                    counts[:] = 0
        drawn = self.runs[0].schedule.random() * self._bounds[-1]
        number = next(number for number, bound in enumerate(self._bounds) if drawn < bound)
        if self._likelihoods.walk_steps and number in self._steps_of_walks:
            self._walk()
        else:
            for _ in range(self._moves[number][0].repeats):
                self._move(number)
        target = self._target
        for run, own in enumerate(self.runs):
            own.generation += 1
            states = self._states_of(run)
            for learnt, (first, *_) in zip(own.learnt, self._learners[run], strict=True):
                if own.generation % LEARN_EVERY == 0 and own.generation < self._tuning:
                    learnt.learn(map(first.point, states))
                if own.generation == self._tuning // 2:
                    learnt.forget()
            for _ in range(self.n_chains if self.n_chains > 1 else 0):
                i, j = target.draw_pair(own.ranks, own.rng)
                low, high = sorted((own.ranks[i], own.ranks[j]))
                own.swaps_tried[low, high] += 1
                difference = own.heats[own.ranks[i]] - own.heats[own.ranks[j]]
                probability = _acceptance(difference * (target.tempered(states[j]) - target.tempered(states[i])))
                if own.rng.random() < probability:
                    own.ranks[i], own.ranks[j] = own.ranks[j], own.ranks[i]
                    own.swaps_accepted[low, high] += 1
                if target.is_tuned and high - low == 1:
                    t = own.generation - (self._tuning // 2 if own.generation > self._tuning // 2 else 0)
                    changed = temperature_of(own.heats) * math.exp((probability - SWAP_TARGET) / t**TUNING_POWER)
                    own.heats = heats_at(min(max(changed, LEAST_TEMPERATURE), MOST_TEMPERATURE), self.n_chains)

    def _walk(self) -> None:
        """A walk of every chain; steps are tuned after it."""
        turns = [(own, rank) for own in self.runs for rank in own.ranks]
        kinds = [(place, number) for place, number in enumerate(self._steps_of_walks) if number is not None]
        seeds = [int(own.rng.integers(1 << 64, dtype=np.uint64)) for own, _ in turns]
        numbers, weights = np.zeros((len(turns), WALK_WORDS)), np.zeros(len(self._steps_of_walks))
        for place, number in kinds:
            move = self._moves[number][0]
            weights[place] = move.weight
            of_steps(numbers, WalkWord.STEP)[:, place] = [own.steps[number][rank] for own, rank in turns]
            if isinstance(move, Extension):
                numbers[:, WalkWord.EXTENSION] = move.extension
        of_steps(numbers, WalkWord.BOUND)[:] = np.cumsum(weights)
        powers = [self._target.powers(own.heats[rank]) for own, rank in turns]
        numbers[:, [WalkWord.LNL_POWER, WalkWord.PRIOR_POWER]] = powers
        splits = [own for run in self.runs for own in run.learnt if isinstance(own, SplitWeights)]
        walkers = begin_walks(self.states, self.space.length_prior, numbers, seeds, splits)
        self._likelihoods.walk(walkers, self.states)
        self.states = [end_walk(walkers, chain, self.space, state) for chain, state in enumerate(self.states)]
        counted = WalkWord.TRIED, WalkWord.ACCEPTED, WalkWord.PROBABILITY
        counts = [of_steps(numbers, word).tolist() for word in counted]
        for (own, rank), tried, accepted, probability in zip(turns, *counts, strict=True):
            for place, number in kinds:
                own.tried[number, rank] += int(tried[place])
                own.accepted[number, rank] += int(accepted[place])
                excess = probability[place] - self._moves[number][0].target * tried[place]
                self._tune(own, number, rank, excess)

    def _tune(self, own: RunState, number: int, rank: int, excess: float) -> None:
        """Change the step of a move by the sum of acceptance probabilities above its target, the last ones."""
        steps = own.steps[number]
        if self.generation < self._tuning and steps[rank]:
            factor = math.exp(excess / float(max(1, own.tried[number, rank])) ** TUNING_POWER)
            steps[rank] = min(max(steps[rank] * factor, MIN_STEP), MAX_STEP)

    def _move(self, number: int) -> None:
        """One move of a kind by every chain.

        A proposal whose likelihood its move knows is decided first, so that the engine makes only what is accepted.
        """
        pairs = zip(self.runs, self._moves[number], strict=True)
        turns = [(own, move, rank) for own, move in pairs for rank in own.ranks]
        self._survey(turns)
        proposals = [
            move.propose(state, own.steps[number][rank], own.rng, _guide(own, rank))
            for (own, move, rank), state in zip(turns, self.states, strict=True)
        ]
        proposals = list(map(_possible, proposals))
        for _ in range(turns[0][1].legs - 1):
            reached = self._likelihoods.ask(proposals)
            proposals = [
                None if own is None or at is None else _possible(move.go_on(own, at, _guide(run, rank)))
                for (run, move, rank), own, at in zip(turns, proposals, reached, strict=True)
            ]
        foreseen = [None if own is None or own.lnl is None else own.state._replace(lnl=own.lnl) for own in proposals]
        for chain, (turn, proposal, known) in enumerate(zip(turns, proposals, foreseen, strict=True)):
            if known is not None and not self._accepts(number, turn, self.states[chain], proposal, known):
                proposals[chain] = None
        answers = self._likelihoods.ask(proposals)
        for chain, (turn, proposal, answer) in enumerate(zip(turns, proposals, answers, strict=True)):
            was_decided = foreseen[chain] is not None  # of these, those that are left have been accepted
            accepted = was_decided or self._accepts(number, turn, self.states[chain], proposal, answer)
            if accepted and answer is not None:
                self.states[chain] = answer
                self._likelihoods.accept(chain)

    def _survey(self, turns: Sequence[Turn]) -> None:
        """Let all chains know what a move has to know of the surroundings of their states, in one launch."""
        asked: list[Proposal | None] = []
        for (own, move, _), state in zip(turns, self.states, strict=True):
            question = move.ask(state, own.rng)
            is_known = question is None or (state.known is not None and state.known.question == question)
            asked.append(None if is_known else Proposal(state, 0.0, (), question=question))
        if any(asked):
            answers = self._likelihoods.ask(asked)
            self.states = [answer or state for answer, state in zip(answers, self.states, strict=True)]

    def _accepts(self, number: int, turn: Turn, old: State, proposal: Proposal | None, new: State | None) -> bool:
        """Whether a chain accepts what it has proposed, whose likelihood is known."""
        own, move, rank = turn
        own.tried[number, rank] += 1
        probability, accepted = 0.0, False
        if proposal is not None and new is not None:
            ratio = move.log_ratio(old, proposal, new, own.steps[number][rank], _guide(own, rank))
            probability = _acceptance(self._target.gain(own.heats[rank], old, new) + ratio)
            accepted = own.rng.random() < probability
            own.accepted[number, rank] += accepted
        self._tune(own, number, rank, probability - move.target)
        return accepted


def _find_learners(moves: Sequence[Move]) -> list[list[LearntMove]]:
    found: dict[int, list[LearntMove]] = {}
    for move in moves:
        if isinstance(move, LearntMove):
            found.setdefault(id(move.learnt), []).append(move)
    return list(found.values())


def _guide(run: RunState, rank: int) -> float:
    """The heat by which a move of a chain proposes."""
    return max(run.heats[rank], LEAST_GUIDE)


def _possible(proposal: Proposal | None) -> Proposal | None:
    """The proposal, unless its prior density is 0."""
    return None if proposal is None or proposal.state.log_prior == -math.inf else proposal


def _acceptance(gain: float) -> float:
    """The probability min(1, exp(gain)); 0 if the gain is not a number."""
    return 0.0 if math.isnan(gain) else math.exp(min(0.0, gain))
