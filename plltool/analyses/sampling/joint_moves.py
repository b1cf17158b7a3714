"""Moves of all parameters of the models and of the tree's length at once, along directions that chains have shown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from plltool.analyses.sampling.moves import Learnt, LearntMove, divide_step
from plltool.analyses.sampling.parameters import ALPHA, FACTORS, PART_RATES, PINV, RATES, SHARES, Parameter, Value
from plltool.analyses.sampling.priors import Dirichlet
from plltool.analyses.sampling.state import ALL_NODES, Proposal, Question, QuestionProgram, State, StateSpace
from plltool.analyses.sampling.tree import ROOT
from plltool.arrays import FloatArray
from plltool.codec import saved
from plltool.constants import EVEN_DEVIATION, RARE_ODDS
from plltool.engine.contract import Opcode
from plltool.model.model import Model
from plltool.model.vector import parameter_slopes, scale_slope


def coordinates_of(parameter: Parameter, value: Value) -> FloatArray:
    """Those of a value."""
    if parameter.kind in SHARES:
        logs = np.log(np.asarray(value))
        return np.asarray(logs[:-1] - logs[-1])
    if parameter.kind in FACTORS:
        return np.log(np.asarray(value))
    number = float(value)
    return np.array([math.log(number) if parameter.kind == ALPHA else math.log(number / (1.0 - number))])


def change_value(parameter: Parameter, value: Value, change: FloatArray) -> tuple[Value, float]:
    """The value whose coordinates differ by `change`, and the logarithm of the ratio of the Jacobians."""
    if parameter.kind in SHARES:
        old = np.asarray(value)
        new = old.copy()
        new[:-1] *= np.exp(change)
        whole = float(new.sum())
        return new / whole, float(change.sum()) - len(new) * math.log(whole)
    if parameter.kind in FACTORS:
        return np.asarray(value) * np.exp(change), float(change.sum())
    number = float(value)
    if parameter.kind == ALPHA:
        return number * math.exp(change[0]), float(change[0])
    old_odds = number / (1.0 - number)
    odds = old_odds * math.exp(change[0])
    return odds / (1.0 + odds), float(change[0]) - 2.0 * (math.log1p(odds) - math.log1p(old_odds))


def density_slopes(parameter: Parameter, value: Value, heat: float) -> FloatArray:
    """The slopes of heat log prior + log |dx / dz| in the coordinates."""
    if isinstance(parameter.prior, Dirichlet):
        shares = np.asarray(value)
        powers = heat * (parameter.prior.of_size(len(shares)) - 1.0) + 1.0  # of the shares in the density
        return np.asarray(powers - shares * powers.sum())[:-1]
    high, slope = 1.0 if parameter.kind == PINV else math.inf, parameter.prior.slope
    return np.array([heat * slope(x) * x * (1.0 - x / high) + 1.0 - 2.0 * x / high for x in np.ravel(value).tolist()])


def data_slopes(kind: str, model: Model, slopes: FloatArray) -> FloatArray:
    """The slopes of lnL in the coordinates of a kind of parameter, from those in the elements of `get_vector`."""
    if kind == RATES:  # relative to the last one, and not to that which the model holds at 1
        is_free = model.spec.named.rates.is_free
        of_all = np.full(len(is_free), -slopes.sum())
        of_all[is_free] = slopes
        return of_all[:-1]
    if kind == ALPHA:
        assert model.alpha is not None, "it is free"
        deviation = model.alpha**-0.5
        return slopes * (deviation / (deviation + EVEN_DEVIATION))
    if kind == PINV:
        assert model.pinv is not None, "it is free"
        odds = model.pinv / (1.0 - model.pinv)
        return slopes * (odds / (odds + RARE_ODDS))
    return slopes


LEAST_VARIANCE = 1e-6  # in each direction, of logarithms, so that no direction is lost
LARGEST_CHANGE = 50.0  # of a logarithm; larger ones lead out of all bounds
LARGEST_DRIFT = 2.0  # in standard deviations of the random part; far from the hills, where slopes say little
FIRST_STATES = 200  # before the covariance is used; until then it is a small multiple of the identity
FIRST_DEVIATION = 0.05


@saved()
@dataclass(eq=False)
class Directions(Learnt):
    """The covariance of the coordinates of states."""

    n_states: int  # number of states learnt from
    sums: FloatArray  # (n,) of their points
    products: FloatArray  # (n, n) of the products of these
    mean: FloatArray | None  # (n,) of the points; None before enough states are known
    factor: FloatArray  # (n, n) a root of the covariance

    @classmethod
    def of_size(cls, n: int) -> Directions:
        """With which a run begins."""
        return cls(0, np.zeros(n), np.zeros((n, n)), None, FIRST_DEVIATION * np.eye(n))

    def learn(self, points: Iterable[FloatArray]) -> None:
        """Take some points (n,) into account; draw with the covariance of all so far, once they are enough."""
        for point in points:
            self.n_states += 1
            self.sums = self.sums + point
            self.products = self.products + np.outer(point, point)
        if self.n_states >= FIRST_STATES:
            self.mean = self.sums / self.n_states
            covariance = self.products / self.n_states - np.outer(self.mean, self.mean)
            found = np.linalg.cholesky(covariance + LEAST_VARIANCE * np.eye(len(self.mean)))
            self.factor = np.asarray(found, dtype=np.float64)

    def forget(self) -> None:
        """Leave out the states so far; draws go on as they are for a while."""
        self.n_states, self.sums, self.products = 0, 0.0 * self.sums, 0.0 * self.products


class JointMove(LearntMove):
    """A move of all coordinates z (`point`); the length of the tree multiplies all K branches.

    If parts have their own lengths, there is a length of the tree for each. Hastings ratios have a factor
    |dx'/dz'| / |dx/dz| of Jacobians: the product of all shares, alpha, pinv (1 - pinv) and length^K, at z' over those
    at z; relative lengths do not change.
    """

    learnt: Directions

    def point(self, state: State) -> FloatArray:
        """(n,) the coordinates of a state: its parameters', and the logarithm of the length of each part's tree."""
        pairs = zip(self.space.parameters, state.values, strict=True)
        of_trees = [math.log(sum(own)) for own in state.by_part]
        return np.concatenate([*(coordinates_of(own, value) for own, value in pairs), of_trees])

    def changed(self, state: State, change: FloatArray) -> Proposal | None:
        """The state whose coordinates differ by `change`, with the ratio of the Jacobians."""
        if not np.abs(change).max() <= LARGEST_CHANGE:  # nor if it is not a number
            return None
        log_ratio, at = 0.0, 0
        changes: dict[int, Value] = {}
        for number, parameter in enumerate(self.space.parameters):
            own = change[at : at + parameter.n_coordinates]
            changes[number], gain = change_value(parameter, state.values[number], own)
            log_ratio += gain
            at += len(own)
        lengths = [0.0]
        for own_change, own_lengths in zip(change[at:], state.by_part, strict=True):
            factor = math.exp(own_change)
            lengths += [length * factor for length in own_lengths[1:]]
            log_ratio += float(own_change) * state.topology.n_branches
        new = self.space.revalued(state, changes)
        return Proposal(self.space.moved(new, state.topology, lengths), log_ratio, ALL_NODES, True)


class JointDraw(JointMove):
    """A draw from the normal distribution that states had while steps were tuned, near the present point.

    With the mean m and the covariance L L^T of that distribution, a chain of heat h is at w = sqrt(h) L^-1 (z - m). The
    new point has w' = k w + sqrt(1 - k^2) e, e standard normal, see `divide_step` (Cotter et al. 2013). The draw is
    reversible for a standard normal w, so q(w | w') / q(w' | w) = exp((|w'|^2 - |w|^2) / 2), and the Hastings ratio is
    this and that of the Jacobians. Where the posterior is nearly normal, large steps are accepted. Until m is known,
    step L e is added to z (Haario, Saksman & Tamminen 2001), which is symmetric.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        mean, factor = self.learnt.mean, self.learnt.factor
        noise = rng.standard_normal(len(factor))
        if mean is None:
            return self.changed(state, step * (factor @ noise))
        kept, added = divide_step(step)
        old = math.sqrt(heat) * np.linalg.solve(factor, self.point(state) - mean)
        new = kept * old + added * noise
        proposal = self.changed(state, factor @ (new - old) / math.sqrt(heat))
        if proposal is None:
            return None
        return proposal._replace(log_ratio=proposal.log_ratio + float(new @ new - old @ old) / 2.0)


class JointLangevin(JointMove):
    """A step of Langevin dynamics of all coordinates, with the learnt covariance L L^T as its metric.

    A chain of heat h has the density f(z) = posterior(x(z))^h |dx/dz|. With s the slopes of log f at z, the new point
    is z' = z + a L (m(z) + e), e standard normal. The drift m(z) is (1 - k) L^T s / a, with k and a by `divide_step`,
    or the vector of the length LARGEST_DRIFT in its direction if it is longer. If f were normal with the covariance
    L L^T, this would be Langevin dynamics without an error of the step (Roberts & Stramer 2002). The way back takes the
    draw e' = -(m(z) + e) - m(z'), so the ratio of the densities of both is exp((|e|^2 - |e'|^2) / 2); the Hastings
    ratio is this and that of the Jacobians. It is exact whatever drifts are, as long as they depend on the point alone.
    """

    def ask(self, state: State, rng: np.random.Generator) -> CoordinateSlopes:
        return CoordinateSlopes(self.space)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        factor, (_, added) = self.learnt.factor, divide_step(step)
        noise = rng.standard_normal(len(factor))
        proposal = self.changed(state, added * (factor @ (self._drift(state, step, heat) + noise)))
        if proposal is None:
            return None
        there = float(noise @ noise) / 2.0
        return proposal._replace(log_ratio=proposal.log_ratio + there, question=self.ask(state, rng))

    def log_ratio(self, old: State, proposal: Proposal, new: State, step: float, heat: float) -> float:
        change = self.point(new) - self.point(old)
        noise = -np.linalg.solve(self.learnt.factor, change) / divide_step(step)[1] - self._drift(new, step, heat)
        return proposal.log_ratio - float(noise @ noise) / 2.0

    def _drift(self, state: State, step: float, heat: float) -> FloatArray:
        """(n,) the mean of the step, in standard deviations of its random part."""
        kept, added = divide_step(step)
        drift = (1.0 - kept) / added * (self.slopes(state, heat) @ self.learnt.factor)
        size = math.sqrt(drift @ drift)
        return drift if size <= LARGEST_DRIFT else drift * (LARGEST_DRIFT / size)

    def slopes(self, state: State, heat: float) -> FloatArray:
        """(n,) slopes of the logarithm of the density of coordinates, at the power `heat` of the posterior."""
        pairs = zip(self.space.parameters, state.values, strict=True)
        of_prior = [density_slopes(parameter, value, heat) for parameter, value in pairs]
        prior, topology, of_trees = self.space.length_prior, state.topology, []
        for own in state.by_part:
            slope = float(np.array(own[1:]) @ prior.slopes_of_lengths(topology, own))
            of_trees.append(heat * slope + topology.n_branches)
        return np.concatenate([*of_prior, of_trees]) + heat * state.answer.values


@dataclass(frozen=True)
class CoordinateSlopes(Question):
    """The slopes of lnL in all coordinates, (n,), by the chain rule from those in rate matrices and masses."""

    space: StateSpace

    @property
    def n_values(self) -> int:
        c, s = self.space.shape
        return c * s * (s + 1)

    def write(self, state: State, program: QuestionProgram) -> None:
        topology = state.topology
        top, n_nodes = topology.top, topology.n_nodes
        for node, above in program.descend(topology, range(1, n_nodes)):
            program.at_branch(Opcode.RATE_MATRIX_GRADIENT, 0, above, node, int(node == top))
        c, s = self.space.shape
        program.at_branch(Opcode.MASS_GRADIENT, c * s * s, ~ROOT, top)

    def read(self, values: FloatArray, state: State) -> FloatArray:
        (c, s), slopes, scales = self.space.shape, [], []
        for part, (model, own) in enumerate(zip(state.models, values.T, strict=True)):
            matrices, masses = own[: c * s * s].reshape(c, s, s), own[c * s * s :].reshape(c, s)
            parameters = [own for own in self.space.parameters if own.parts == (part,)]
            groups = list(dict.fromkeys(parameter.group for parameter in parameters))
            ends = np.cumsum([parameter.n_coordinates for parameter in parameters])
            found = np.split(parameter_slopes(model, groups, matrices, masses), ends)[:-1]
            slopes += [data_slopes(own.kind, model, values) for own, values in zip(parameters, found, strict=True)]
            scales.append(scale_slope(model, matrices))
        whole = math.fsum(scales)
        if self.space.parameters[-1].kind == PART_RATES:
            slopes.append((np.array(scales) - np.asarray(state.values[-1]) * whole)[:-1])
        return np.concatenate([*slopes, scales if len(self.space.shares) > 1 else [whole]])
