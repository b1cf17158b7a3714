"""A move of all parameters of the models and of the tree's length at once, along directions that chains have shown."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray
from plltool.sampling.moves import ALL_NODES, Move, Proposal
from plltool.sampling.parameters import ALPHA, SHARES, Parameter, Value
from plltool.sampling.state import Problem, State

LEAST_VARIANCE = 1e-6  # in each direction, of logarithms, so that no direction is lost
LARGEST_CHANGE = 50.0  # of a logarithm; larger ones lead out of all bounds
FIRST_STATES = 200  # before the covariance is used; until then it is a small multiple of the identity
FIRST_DEVIATION = 0.05


class JointDraw(Move):
    """A normal draw about the present point, with the covariance that states had while steps were tuned.

    Coordinates z are log(x_i / x_K) of shares, log x of alpha, log(x / (1 - x)) of pinv, and the logarithm of the
    tree's length, which multiplies all K branches (Haario, Saksman & Tamminen 2001). z' - z is normal with mean 0, so
    the draw is symmetric in z. The Hastings ratio is that of the Jacobians |dx / dz|: the product of all shares,
    x, x (1 - x) and length^K, at z' over those at z; relative lengths do not change.

    All chains learn one covariance, only while steps are tuned.

    Attributes
    ----------
    n_states, sums, products : number of states learnt from, sums (n,) of their points and of products (n, n) of these
    factor : (n, n) a root of the covariance
    """

    name = "joint draw of parameters and length"
    step = 0.5

    def __init__(self, problem: Problem, weight: float):
        super().__init__(problem, weight)
        size = sum(own.size - (own.kind in SHARES) for own in problem.parameters) + 1
        self.n_states = 0
        self.sums: FloatArray = np.zeros(size)
        self.products: FloatArray = np.zeros((size, size))
        self.factor: FloatArray = FIRST_DEVIATION * np.eye(size)

    def learn(self, states: Sequence[State]) -> None:
        """Take the points of some states into account; draw with the covariance of all so far, once they are enough."""
        for state in states:
            point = self._point(state)
            self.n_states += 1
            self.sums = self.sums + point
            self.products = self.products + np.outer(point, point)
        if self.n_states >= FIRST_STATES:
            mean = self.sums / self.n_states
            covariance = self.products / self.n_states - np.outer(mean, mean)
            found = np.linalg.cholesky(covariance + LEAST_VARIANCE * np.eye(len(mean)))
            self.factor = np.asarray(found, dtype=np.float64)

    def forget(self) -> None:
        """Leave out the states so far, on the way from where chains began; draws go on as they are for a while."""
        self.n_states, self.sums, self.products = 0, 0.0 * self.sums, 0.0 * self.products

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        change = step * (self.factor @ rng.standard_normal(len(self.sums)))
        if np.abs(change).max() > LARGEST_CHANGE:
            return None
        log_ratio, at = 0.0, 0
        changes: dict[int, Value] = {}
        for number, parameter in enumerate(self.problem.parameters):
            size = parameter.size - (parameter.kind in SHARES)
            changes[number], gain = _move_value(parameter, state.values[number], change[at : at + size])
            log_ratio += gain
            at += size
        lengths = [length * math.exp(change[-1]) for length in state.lengths]
        log_ratio += float(change[-1]) * (len(lengths) - 1)
        new = self.problem.revalued(state, changes)
        return Proposal(self.problem.moved(new, state.topology, lengths), log_ratio, ALL_NODES, True)

    def _point(self, state: State) -> FloatArray:
        """The coordinates of a state."""
        pairs = zip(self.problem.parameters, state.values, strict=True)
        return np.concatenate([*(_coordinates(own, value) for own, value in pairs), [math.log(sum(state.lengths))]])


def _coordinates(parameter: Parameter, value: Value) -> FloatArray:
    """The logarithms of ratios that stand for a value."""
    if parameter.kind in SHARES:
        logs = np.log(np.asarray(value))
        return np.asarray(logs[:-1] - logs[-1])
    number = float(value)
    return np.array([math.log(number) if parameter.kind == ALPHA else math.log(number / (1.0 - number))])


def _move_value(parameter: Parameter, value: Value, change: FloatArray) -> tuple[Value, float]:
    """The value whose coordinates differ by `change`, and the logarithm of the ratio of the Jacobians."""
    if parameter.kind in SHARES:
        old = np.asarray(value)
        new = old.copy()
        new[:-1] *= np.exp(change)
        whole = float(new.sum())
        return new / whole, float(change.sum()) - len(new) * math.log(whole)
    number = float(value)
    if parameter.kind == ALPHA:
        return number * math.exp(change[0]), float(change[0])
    old_odds = number / (1.0 - number)
    odds = old_odds * math.exp(change[0])
    return odds / (1.0 + odds), float(change[0]) - 2.0 * (math.log1p(odds) - math.log1p(old_odds))
