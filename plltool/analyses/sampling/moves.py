"""Moves: what a chain proposes, with the ratio that keeps it reversible; here for lengths and for one parameter.

A move draws a new state x' from a density q(x' | x). The chain accepts it with the probability
min(1, (posterior(x') / posterior(x))^heat * q(x | x') / q(x' | x)) (Metropolis et al. 1953; Hastings 1970). The last
ratio, or what takes its place where dimensions are matched by auxiliary draws with a Jacobian (Green 1995), is the
Hastings ratio. Each class below derives its own.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from plltool.analyses.sampling.parameters import MIN_SHARE, Value
from plltool.analyses.sampling.priors import log_dirichlet
from plltool.analyses.sampling.state import ALL_NODES, Proposal, Question, Slopes, State, StateSpace
from plltool.analyses.sampling.tree import ROOT
from plltool.arrays import FloatArray
from plltool.engine.contract import DERIVATIVE_VALUES


def _read_step(text: str) -> float:
    factor, _, ratio = text.partition(" log ")
    return float(factor) * (math.log(float(ratio)) if ratio else 1.0)


def _read_table() -> dict[str, dict[str, Any]]:
    """The settings of all moves, by their classes."""
    columns: dict[str, Callable[[str], Any]]
    columns = {"group": str, "weight": float, "alone": float, "step": _read_step, "target": float}
    columns |= {"repeats": int, "name": str}
    lines = Path(__file__).with_name("moves.txt").read_text(encoding="utf-8").splitlines()
    rows = [list(map(str.strip, line.split("|"))) for line in lines if not line.startswith("#")]
    return {kind: {name: columns[name](text) for name, text in zip(columns, own, strict=True)} for kind, *own in rows}


TABLE = _read_table()


@dataclass(eq=False)
class Move(ABC):
    """A kind of proposal, with the settings that `moves.txt` has for its class."""

    space: StateSpace
    weight: float  # by which it is drawn where chains walk; elsewhere this is multiplied by `alone`

    name, alone, step, target, repeats = "", 1.0, 0.0, 0.0, 1
    legs = 1  # how many states it goes through, the proposed one being the last

    def __init_subclass__(cls) -> None:
        for name, value in TABLE.get(f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}", {}).items():
            if hasattr(cls, name):
                setattr(cls, name, value)

    def ask(self, state: State, rng: np.random.Generator) -> Question | None:
        """What the move has to know of the surroundings of a state before it proposes; None for nothing."""
        return None

    @abstractmethod
    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        """A proposal from a state, or None if there is none, which counts as rejected.

        `state` has the answer to `ask` in `State.known`; `heat` is the power of the posterior that is sampled.
        """

    def go_on(self, proposal: Proposal, reached: State, heat: float) -> Proposal | None:
        """The next state of a move with several legs, from the one reached, with the answer for it."""
        raise AssertionError(f"{self.name} has one leg")

    def log_ratio(self, old: State, proposal: Proposal, new: State, step: float, heat: float) -> float:
        """The logarithm of the Hastings ratio, once the likelihood and the surroundings of the new state are known."""
        return proposal.log_ratio


class Learnt(ABC):
    """What the chains of a run learn together while steps are tuned."""

    @abstractmethod
    def learn(self, points: Iterable[Any]) -> None:
        """Take some points into account."""

    @abstractmethod
    def forget(self) -> None:
        """Leave out the states so far, on the way from where chains began."""


@dataclass(eq=False)
class LearntMove(Move):
    """A move by what states have shown."""

    learnt: Learnt

    @abstractmethod
    def point(self, state: State) -> Any:
        """What is learnt from a state."""


def make_group(group: str, space: StateSpace, *more: Any, factor: float = 1.0) -> list[Move]:
    """The moves of a group; `factor` multiplies their weights, and `more` is what their classes take besides."""
    made = []
    for kind, row in TABLE.items():
        if row["group"] == group:
            module, name = kind.split(".")
            made.append(getattr(import_module(f"{__package__}.{module}"), name)(space, factor * row["weight"], *more))
    return made


def divide_step(step: float) -> tuple[float, float]:
    """What a step keeps of a deviation, k = 1 / sqrt(1 + step^2), and the deviation that it adds, sqrt(1 - k^2).

    A step from w to k w + sqrt(1 - k^2) e, e standard normal, keeps the standard normal distribution, however large.
    """
    kept = 1.0 / math.sqrt(1.0 + step * step)
    return kept, step * kept


def draw_factor(step: float, rng: np.random.Generator) -> float:
    """The logarithm of a multiplier m = exp(step (u - 1/2)), u uniform: log m is symmetric about 0."""
    return step * (rng.random() - 0.5)


def reflect(value: float, high: float) -> float:
    """A value moved between 0 and a bound by reflection, however often; a symmetric proposal stays symmetric."""
    beyond = math.fmod(abs(value), 2.0 * high)
    return beyond if beyond <= high else 2.0 * high - beyond


LARGEST_DRIFT = 1.0  # of the logarithm of a length; far from the hills, where slopes say little
LARGEST_LOG = 50.0  # of the change of a length; larger ones lead out of all bounds


class LengthLangevin(Move):
    """A step of Langevin dynamics of the logarithms of all K lengths, each with a scale from the second derivative.

    A chain of heat h has the density f(u) = posterior(exp(u))^h prod_i exp(u_i) of u_i = log b_i. With its slopes
    s_i = h b_i d(lnL + log prior) / db_i + 1 and the curvatures c_i = 1 + h max(0, -b_i^2 d2 lnL / db_i^2), all at u,
    the new point is u'_i = u_i + m_i(u) + a z_i / sqrt(c_i(u)), z_i standard normal. The drift m_i is (1 - k) s_i / c_i
    within LARGEST_DRIFT, with k and a by `divide_step`: if f were normal with these curvatures, this would be Langevin
    dynamics without an error of the step (Roberts & Stramer 2002; the metric of each point is that of Girolami &
    Calderhead 2011, but diagonal). The density of u' is
    q(u' | u) = prod_i sqrt(c_i(u) / 2 pi) / a exp(-c_i(u) (u'_i - u_i - m_i(u))^2 / (2 a^2)),
    that of b' is q / prod_i b'_i, and the Hastings ratio is q(u | u') prod_i b'_i / (q(u' | u) prod_i b_i). It is exact
    whatever drifts and curvatures are, as long as they depend on the point alone.
    """

    def ask(self, state: State, rng: np.random.Generator) -> Slopes:
        return Slopes(state.topology.n_nodes)

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        drift, curvature = self._force(state, step, heat)
        added = divide_step(step)[1]
        change = drift + added * rng.standard_normal(len(drift)) / np.sqrt(curvature)
        if not np.abs(change).max() <= LARGEST_LOG:  # nor if it is not a number
            return None
        lengths = [0.0, *(np.array(state.lengths[1:]) * np.exp(change)).tolist()]
        new = self.space.moved(state, state.topology, lengths)
        there = _log_density(change - drift, curvature, added)
        return Proposal(new, float(change.sum()) - there, ALL_NODES, question=Slopes(state.topology.n_nodes))

    def log_ratio(self, old: State, proposal: Proposal, new: State, step: float, heat: float) -> float:
        drift, curvature = self._force(new, step, heat)
        change = np.log(np.array(old.lengths[1:]) / np.array(new.lengths[1:]))
        return proposal.log_ratio + _log_density(change - drift, curvature, divide_step(step)[1])

    def _force(self, state: State, step: float, heat: float) -> tuple[FloatArray, FloatArray]:
        """The drift and the curvature (K,) at a state."""
        lengths = np.array(state.lengths[1:])
        of_data = np.reshape(state.answer.values, (-1, DERIVATIVE_VALUES))
        prior, topology = self.space.length_prior, state.topology
        of_prior = np.concatenate([prior.slopes_of_lengths(topology, own) for own in state.by_part])
        slope = heat * lengths * (of_data[:, 1] + of_prior) + 1.0
        curvature = 1.0 + heat * np.maximum(0.0, -(lengths**2) * of_data[:, 2])
        kept, _ = divide_step(step)
        return np.clip((1.0 - kept) * slope / curvature, -LARGEST_DRIFT, LARGEST_DRIFT), curvature


def _log_density(deviation: FloatArray, curvature: FloatArray, scale: float) -> float:
    """The log-density of normal deviations with the variances scale^2 / curvature, up to a constant."""
    return float(np.log(curvature).sum() / 2.0 - (curvature * deviation**2).sum() / (2.0 * scale**2))


class BranchMultiplier(Move):
    """Multiplies the length b of a branch, drawn uniformly, of one of the parts that have their own, by a factor.

    The factor is m = exp(step (u - 1/2)).

    The density of b' = m b is q(b' | b) = 1 / (step b') within exp(+-step / 2) of b, and q(b | b') = 1 / (step b). The
    Hastings ratio is b' / b = m.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        place = int(rng.integers(1, len(state.lengths)))
        factor = draw_factor(step, rng)
        lengths = state.lengths.copy()
        lengths[place] *= math.exp(factor)
        parent = state.topology.parent[(place - 1) % state.topology.n_branches + 1]
        new = self.space.moved(state, state.topology, lengths)
        return Proposal(new, factor, () if parent == ROOT else (parent,))


class TreeMultiplier(Move):
    """Multiplies all K lengths by m = exp(step (u - 1/2)); if parts have their own, the K lengths of a part at random.

    With b' = m b the auxiliary variable u' = 1 - u leads back. The Jacobian of (b, u) -> (m b, 1 - u) is m^K, and u has
    the same density as u'. The Hastings ratio is m^K.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        n = state.topology.n_branches
        begin = 1 + n * int(rng.integers(len(self.space.shares)))
        factor = draw_factor(step, rng)
        multiplier = math.exp(factor)
        lengths = state.lengths.copy()
        lengths[begin : begin + n] = [length * multiplier for length in lengths[begin : begin + n]]
        return Proposal(self.space.moved(state, state.topology, lengths), factor * n, ALL_NODES)


class NodeSlider(Move):
    """Multiplies the sum of two lengths at a random inner node by m, and divides the product at a uniform point.

    If parts have their own lengths, both are of the same part, drawn uniformly.
    The lengths (x, y) are M (r, 1 - r) with M = x + y. The proposal has M' = m M, whose density is 1 / (step M'), and
    r' uniform from 0 to 1. Since dx dy = M dM dr, the density of (x', y') is 1 / (step M'^2), and the Hastings ratio is
    (1 / M^2) / (1 / M'^2) = m^2.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        topology = state.topology
        n_inner = topology.n_taxa - 2
        part, inner = divmod(int(rng.integers(len(self.space.shares) * n_inner)), n_inner)
        node = topology.n_taxa + inner
        around = [part * topology.n_branches + own for own in (node, topology.left[node], topology.right[node])]
        del around[int(rng.integers(3))]
        factor = draw_factor(step, rng)
        lengths = state.lengths.copy()
        whole = (lengths[around[0]] + lengths[around[1]]) * math.exp(factor)
        share = rng.random()
        lengths[around[0]], lengths[around[1]] = share * whole, (1.0 - share) * whole
        return Proposal(self.space.moved(state, topology, lengths), 2.0 * factor, (node,))


@dataclass(eq=False)
class ValueMove(Move):
    """A move of parameter `number`."""

    number: int

    def __post_init__(self) -> None:
        parameter = self.space.parameters[self.number]
        part = f" of part {parameter.part + 1}" if len(self.space.models) > len(parameter.parts) else ""
        self.name = f"{self.name} of {parameter.name}{part}"

    def _proposal(self, state: State, value: Value, log_ratio: float) -> Proposal:
        return Proposal(self.space.revalued(state, {self.number: value}), log_ratio, ALL_NODES, True)


class NumberMultiplier(ValueMove):
    """Multiplies a positive number by m = exp(step (u - 1/2)). The Hastings ratio is m, as in `BranchMultiplier`."""

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        factor = draw_factor(step, rng)
        return self._proposal(state, state.values[self.number] * math.exp(factor), factor)


class FactorMultiplier(NumberMultiplier):
    """Multiplies one of several positive numbers, drawn uniformly, by m; the Hastings ratio is m."""

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        values, factor = np.array(state.values[self.number]), draw_factor(step, rng)
        values[int(rng.integers(len(values)))] *= math.exp(factor)
        return self._proposal(state, values, factor)


class ShareSlider(ValueMove):
    """Adds step (u - 1/2) to a number between 0 and 1, and reflects it at the bounds.

    Each path from x to x', directly or by reflections, has one back of the same length. The Hastings ratio is 1.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        value = float(state.values[self.number]) + draw_factor(step, rng)
        return self._proposal(state, reflect(value, 1.0), 0.0)


class SimplexSlider(ValueMove):
    """Moves some of one share, drawn uniformly, to another one: a sliding window on their sum, with reflection.

    The first of two shares, x and s - x, becomes x + step (u - 1/2), reflected at 0 and s. Their sum s and all other
    shares stay the same. As in `ShareSlider` the Hastings ratio is 1.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        shares = np.array(state.values[self.number])
        first, second = rng.choice(len(shares), 2, replace=False)
        whole = shares[first] + shares[second]
        shares[first] = reflect(float(shares[first]) + draw_factor(step, rng), float(whole))
        shares[second] = whole - shares[first]
        return self._proposal(state, shares, 0.0)


class SimplexDraw(ValueMove):
    """Draws all shares from a Dirichlet distribution about the present ones, D(step^-2 x).

    The Hastings ratio is the ratio of its densities: D(x; step^-2 x') / D(x'; step^-2 x).
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        old = np.asarray(state.values[self.number])
        concentration = step**-2
        new = rng.dirichlet(concentration * old)
        if not new.min() >= MIN_SHARE:  # nor is it a number
            return None
        there, back = log_dirichlet(new, concentration * old), log_dirichlet(old, concentration * new)
        return self._proposal(state, new, back - there)
