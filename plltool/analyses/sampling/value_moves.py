"""Moves of the values of parameters; each changes one."""

from __future__ import annotations

import math

import numpy as np

from plltool.analyses.sampling.moves import ALL_NODES, Move, Proposal, draw_factor, reflect
from plltool.analyses.sampling.parameters import MIN_SHARE, Value
from plltool.analyses.sampling.priors import log_dirichlet
from plltool.analyses.sampling.state import Problem, State


class ValueMove(Move):
    """A move of parameter `number` of the problem."""

    kind = ""

    def __init__(self, problem: Problem, weight: float, number: int):
        super().__init__(problem, weight)
        self.number = number
        parameter = problem.parameters[number]
        part = f" of part {parameter.part + 1}" if len(problem.models) > 1 else ""
        self.name = f"{self.kind} of {parameter.kind}{part}"

    def _proposal(self, state: State, value: Value, log_ratio: float) -> Proposal:
        return Proposal(self.problem.revalued(state, {self.number: value}), log_ratio, ALL_NODES, True)


class NumberMultiplier(ValueMove):
    """Multiplies a positive number by m = exp(step (u - 1/2)). The Hastings ratio is m, as in `BranchMultiplier`."""

    kind = "multiplier"
    step = 2.0 * math.log(1.5)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        factor = draw_factor(step, rng)
        return self._proposal(state, state.values[self.number] * math.exp(factor), factor)


class ShareSlider(ValueMove):
    """Adds step (u - 1/2) to a number between 0 and 1, and reflects it at the bounds.

    Each path from x to x', directly or by reflections, has one back of the same length. The Hastings ratio is 1.
    """

    kind = "slider"
    step = 0.2

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        value = float(state.values[self.number]) + draw_factor(step, rng)
        return self._proposal(state, reflect(value, 0.0, 1.0), 0.0)


class SimplexSlider(ValueMove):
    """Moves some of one share, drawn uniformly, to another one: a sliding window on their sum, with reflection.

    The first of two shares, x and s - x, becomes x + step (u - 1/2), reflected at 0 and s. Their sum s and all other
    shares stay the same. As in `ShareSlider` the Hastings ratio is 1.
    """

    kind = "slider"
    step = 0.2

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        shares = np.array(state.values[self.number])
        first, second = rng.choice(len(shares), 2, replace=False)
        whole = shares[first] + shares[second]
        shares[first] = reflect(float(shares[first]) + draw_factor(step, rng), 0.0, float(whole))
        shares[second] = whole - shares[first]
        return self._proposal(state, shares, 0.0)


class SimplexDraw(ValueMove):
    """Draws all shares from a Dirichlet distribution about the present ones, D(step^-2 x).

    The Hastings ratio is the ratio of its densities: D(x; step^-2 x') / D(x'; step^-2 x).
    """

    kind = "Dirichlet draw"
    step = 0.1

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        old = np.asarray(state.values[self.number])
        concentration = step**-2
        new = rng.dirichlet(concentration * old)
        if not new.min() >= MIN_SHARE:  # nor is it a number
            return None
        there, back = log_dirichlet(new, concentration * old), log_dirichlet(old, concentration * new)
        return self._proposal(state, new, back - there)
