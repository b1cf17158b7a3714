"""The state of a chain: a tree and the values of all parameters, with their prior density and likelihood."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from plltool.analyses.sampling.parameters import SHARES, Parameter, Value
from plltool.analyses.sampling.priors import LengthPrior
from plltool.analyses.sampling.survey import Question
from plltool.analyses.sampling.tree import Topology
from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.model.model import Model


class Known(NamedTuple):
    """The answer to a question, as `Question.read` gives it."""

    question: Question
    values: Any


class State(NamedTuple):
    """A point of the space that chains walk through; nothing in it is changed in place.

    Attributes
    ----------
    topology : which node is above which
    lengths : (n_nodes,) length of the branch above each node, 0 for tip 0; expected substitutions per site
    values : the value of each parameter
    value_priors : the logarithm of the prior density of each
    length_prior : that of the lengths; -inf if one is out of bounds
    models : of the parts, with these values
    packed : what `Engine.pack_models` made of them; None before an engine has seen them
    lnl : log-likelihood
    known : what was asked of the surroundings; None if nothing was
    """

    topology: Topology
    lengths: list[float]
    values: tuple[Value, ...]
    value_priors: tuple[float, ...]
    length_prior: float
    models: tuple[Model, ...]
    packed: Any = None
    lnl: float = 0.0
    known: Known | None = None

    @property
    def log_prior(self) -> float:
        """The logarithm of the prior density, but for that of the topology, which is the same for all."""
        return self.length_prior + math.fsum(self.value_priors)

    @property
    def log_posterior(self) -> float:
        """Up to a constant."""
        return self.lnl + self.log_prior


@dataclass(frozen=True, eq=False)
class Problem:
    """What is sampled: the space of states, and the prior.

    Attributes
    ----------
    names : the taxa
    models : of the parts, with the values of what is not sampled
    parameters : what is sampled of them
    length_prior : of branch lengths
    """

    names: tuple[str, ...]
    models: tuple[Model, ...]
    parameters: tuple[Parameter, ...]
    length_prior: LengthPrior

    @property
    def n_coordinates(self) -> int:
        """The number of free values of all parameters, and 1 for the tree's length."""
        return sum(own.size - (own.kind in SHARES) for own in self.parameters) + 1

    def state(self, topology: Topology, lengths: list[float], values: Sequence[Value]) -> State:
        """A state with its models and prior density, without its likelihood."""
        priors = tuple(own.log_prior(value) for own, value in zip(self.parameters, values, strict=True))
        models = tuple(model.copy() for model in self.models)
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.assign(value, models[parameter.part])
        return State(topology, lengths, tuple(values), priors, self.log_prior_of(topology, lengths), models)

    def start(self, topology: Topology, lengths: list[float]) -> State:
        """A state with the lengths and the values that the models have, or some near them that are possible."""
        inside = [0.0, *(min(max(length, MIN_BRANCH_LENGTH), MAX_BRANCH_LENGTH) for length in lengths[1:])]
        return self.state(topology, inside, [own.start_in(self.models[own.part]) for own in self.parameters])

    def draw(self, topology: Topology, rng: np.random.Generator) -> State:
        """A state from the prior, but for the topology."""
        while True:
            lengths = self.length_prior.draw_lengths(topology, rng)
            if are_possible(lengths):
                return self.state(topology, lengths, [own.draw(rng) for own in self.parameters])

    def log_prior_of(self, topology: Topology, lengths: list[float]) -> float:
        """The logarithm of the prior density of branch lengths; -inf if one is out of bounds."""
        if not are_possible(lengths):
            return -math.inf
        return self.length_prior.log_density_of_lengths(topology, lengths)

    def moved(self, state: State, topology: Topology, lengths: list[float]) -> State:
        """The state with another topology or other lengths."""
        prior = self.log_prior_of(topology, lengths)
        return state._replace(topology=topology, lengths=lengths, length_prior=prior, known=None)

    def revalued(self, state: State, changes: Mapping[int, Value]) -> State:
        """The state with other values of some parameters; its models are those of before, if a value is impossible."""
        values, priors, models = list(state.values), list(state.value_priors), list(state.models)
        for number, value in changes.items():
            values[number], priors[number] = value, self.parameters[number].log_prior(value)
        if all(priors[number] > -math.inf for number in changes):
            for part in {self.parameters[number].part for number in changes}:
                models[part] = models[part].copy()
            for number, value in changes.items():
                parameter = self.parameters[number]
                parameter.assign(value, models[parameter.part])
        return state._replace(values=tuple(values), value_priors=tuple(priors), models=tuple(models), known=None)


def are_possible(lengths: list[float]) -> bool:
    """Whether all branch lengths (n_nodes,), of which the first is none, are within the bounds."""
    return min(lengths[1:]) >= MIN_BRANCH_LENGTH and max(lengths) <= MAX_BRANCH_LENGTH
