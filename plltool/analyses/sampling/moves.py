"""Moves: what a chain proposes, with the ratio that keeps it reversible.

A move draws a new state x' from a density q(x' | x). The chain accepts it with the probability
min(1, (posterior(x') / posterior(x))^heat * q(x | x') / q(x' | x)) (Metropolis et al. 1953; Hastings 1970). The last
ratio, or what takes its place where dimensions are matched by auxiliary draws with a Jacobian (Green 1995), is the
Hastings ratio. Each class below derives its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from plltool.analyses.sampling.state import Problem, State
from plltool.analyses.sampling.survey import Question

ALL_NODES = None  # of `Proposal.stale`: every CLA has to be made again


class Proposal(NamedTuple):
    """A state that a move proposes.

    Attributes
    ----------
    state : the new state with its prior density; what an engine says of it is that of the old one
    log_ratio : the logarithm of the Hastings ratio, or of what the move knows of it before the answer
    stale : inner nodes whose CLAs, and those of all above them, change; ALL_NODES for all
    revalued : whether the value of a parameter of a model changes
    question : what to ask of the surroundings of the new state; None for nothing
    lnl : log-likelihood of the new state if the move knows it, so that an engine is asked only if it is accepted
    """

    state: State
    log_ratio: float
    stale: tuple[int, ...] | None
    revalued: bool = False
    question: Question | None = None
    lnl: float | None = None


class Move(ABC):
    """A kind of proposal.

    Attributes
    ----------
    name : for people
    weight : how often it is chosen, relative to others
    step : the size of a proposal that a chain begins with, larger for bolder ones; 0 if there is none to tune
    target : share of proposals accepted that tuning aims at
    repeats : how often it is made in a generation; what is known of a new state serves the next time
    """

    name = ""
    step = 0.0
    repeats = 1
    target = 0.3  # optima are between 0.23 for many numbers and 0.44 for one

    def __init__(self, problem: Problem, weight: float):
        self.problem = problem
        self.weight = weight

    def ask(self, state: State, rng: np.random.Generator) -> Question | None:
        """What the move has to know of the surroundings of a state before it proposes; None for nothing."""
        return None

    @abstractmethod
    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        """A proposal from a state, or None if there is none, which counts as rejected.

        Parameters
        ----------
        state : with the answer to `ask` in `State.known`
        step : the size of proposals
        rng : of all choices
        heat : the power of the posterior that the chain samples
        """

    def log_ratio(self, old: State, proposal: Proposal, new: State, step: float, heat: float) -> float:
        """The logarithm of the Hastings ratio, once the likelihood and the surroundings of the new state are known."""
        return proposal.log_ratio


def divide_step(step: float) -> tuple[float, float]:
    """What a step keeps of a deviation, k = 1 / sqrt(1 + step^2), and the deviation that it adds, sqrt(1 - k^2).

    A step from w to k w + sqrt(1 - k^2) e, e standard normal, keeps the standard normal distribution, however large.
    """
    kept = 1.0 / math.sqrt(1.0 + step * step)
    return kept, step * kept


def draw_factor(step: float, rng: np.random.Generator) -> float:
    """The logarithm of a multiplier m = exp(step (u - 1/2)), u uniform: log m is symmetric about 0."""
    return step * (rng.random() - 0.5)


def reflect(value: float, low: float, high: float) -> float:
    """A value moved into the bounds by reflection at them, however often; a symmetric proposal stays symmetric."""
    width = high - low
    beyond = math.fmod(abs(value - low), 2.0 * width)
    return low + (beyond if beyond <= width else 2.0 * width - beyond)
