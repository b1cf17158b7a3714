"""States of time trees: the clock, the prior of the tree and its numbers, and slopes in coordinates without bounds.

The length of the branch above node i is r m_i (h_p - h_i), with the rate r of the clock and the relative rate m_i of
the branch, 1 for a strict clock. For a relaxed one log m_i is normal with the standard deviation s, the spread, and the
mean -s^2 / 2, so that the mean of m_i is 1 (uncorrelated log-normal rates: Drummond, Ho, Phillips & Rambaut 2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from plltool.analyses.sampling.priors import LengthPrior, NumberPrior
from plltool.analyses.sampling.state import Proposal, State, StateSpace
from plltool.analyses.sampling.time_tree import (
    TimePoint,
    changed_nodes,
    coordinate_slopes,
    coordinates_of_heights,
    hang,
    heights_at,
    log_jacobian,
    root_tree,
)
from plltool.analyses.sampling.tree import ROOT, Topology, to_tree
from plltool.analyses.sampling.tree_priors import Coalescent
from plltool.arrays import FloatArray
from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine.contract import DERIVATIVE_VALUES
from plltool.tree.topology import Tree

CLOCK_RATE, SPREAD, TREE_HEIGHT = "clockRate", "clockSpread", "treeHeight"  # columns
FIRST_SPREAD = 0.3
LARGEST_COORDINATE = 50.0  # beyond it numbers are of no use, and overflow


@dataclass(frozen=True)
class TimeNumber:
    """A number of the clock or of the tree's prior."""

    name: str  # of its column
    is_positive: bool  # then its coordinate is its logarithm
    prior: NumberPrior | None  # None if that of the tree has it
    of_exponential: bool = False  # whether the prior is that of exp(number)

    def log_prior(self, value: float) -> float:
        """The logarithm of its prior density."""
        if self.prior is None:
            return 0.0
        return self.prior.log_density(math.exp(value)) + value if self.of_exponential else self.prior.log_density(value)

    def slope(self, value: float) -> float:
        """The slope of the logarithm of the prior density in the coordinate."""
        if self.prior is None:
            return 0.0
        if self.of_exponential:
            return self.prior.slope(math.exp(value)) * math.exp(value) + 1.0
        return self.prior.slope(value) * (value if self.is_positive else 1.0)


@dataclass(frozen=True, eq=False)
class TimeSpace(StateSpace):
    """The space of time trees. The first number is the rate of the clock; the second the spread of a relaxed one."""

    length_prior: LengthPrior = field(init=False)  # there is none: heights have one
    tip_heights: tuple[float, ...]  # (n_taxa,) of the taxa, in years before the latest one
    latest: float  # the date of that, in years
    numbers: tuple[TimeNumber, ...]  # their number is K
    tree_prior: Coalescent  # of the last ones of the numbers
    is_relaxed: bool

    @property
    def has_rates(self) -> bool:  # type: ignore[override]
        return self.is_relaxed

    @property
    def n_tips(self) -> int:
        return len(self.names) + 1

    @property
    def columns(self) -> tuple[str, ...]:
        return (TREE_HEIGHT, *(own.name for own in self.numbers), *super().columns)

    @property
    def n_clock(self) -> int:
        """How many numbers the clock has."""
        return 1 + self.is_relaxed

    @cached_property
    def _tips(self) -> FloatArray:
        return np.array(self.tip_heights)

    @property
    def span(self) -> float:
        """The time between the first and the last tip; 1 if there is none."""
        return max(self.tip_heights) or 1.0

    @property
    def n_coordinates(self) -> int:
        """The number of coordinates of heights, numbers and rates."""
        n = len(self.names)
        return n - 1 + len(self.numbers) + (2 * n - 1 if self.is_relaxed else 0)

    # --- states -----------------------------------------------------------------------------------

    def shown(self, state: State) -> list[float]:
        time = time_of(state)
        return [time.heights[time.rooted.top], *time.numbers, *super().shown(state)]

    def sampled_tree(self, state: State) -> tuple[Topology, list[float], Sequence[float]]:
        """The rooted tree, heights, and the rate of each branch per site and year; none of a strict clock."""
        time = time_of(state)
        return time.rooted, time.heights, [time.numbers[0] * rate for rate in time.rates]

    def tree_of(self, topology: Topology, lengths: Sequence[float]) -> Tree:
        """The tree without its root, with lengths in years, from a rooted one with its heights."""
        hung = hang(topology)
        found = np.zeros(hung.topology.n_nodes)
        np.add.at(found, hung.branches, TimePoint(topology, list(lengths), (), [], []).gaps)
        return to_tree(hung.topology, found.tolist(), self.names)

    def point(self, state: State) -> tuple[Any, ...]:
        time = time_of(state)
        return time.rooted, time.heights, time.numbers, time.rates, state.values

    def at(self, point: tuple[Any, ...]) -> State:
        rooted, heights, numbers, rates, values = point
        topology, branches = hang(rooted)
        time = TimePoint(rooted, heights, tuple(numbers), rates, branches)
        state = self.state_of(topology, self.lengths_of(time), values, self.log_density(time))
        return state._replace(time=time)

    def start(self, topology: Topology, lengths: list[float]) -> State:
        """A time tree near a tree in substitutions: its root where a clock fits best, heights by the lengths."""
        rooted, along, rate = root_tree(topology, lengths, [-height for height in self.tip_heights])
        depth = sum(along) / len(self.names)
        rate = rate or max(depth, MIN_BRANCH_LENGTH) / self.span
        numbers = [own.prior.near(rate if k == 0 else FIRST_SPREAD) for k, own in enumerate(self._clock_numbers)]
        heights, least = [0.0, *self.tip_heights, *(0.0 for _ in self.names[1:])], self.span / 1e3
        for node in rooted.postorder():
            below = rooted.left[node], rooted.right[node]
            heights[node] = max(heights[child] + max(least, along[child] / numbers[0] / 2.0) for child in below)
        first = {"popSize": heights[rooted.top], "precision": 1.0, "growthRate": 0.0}
        for own in self.numbers[self.n_clock :]:
            value = first.get(own.name, math.log(heights[rooted.top]))
            numbers.append(value if own.prior is None or own.of_exponential else own.prior.near(value))
        values = [own.start_in(self.models[own.part]) for own in self.parameters]
        rates = [1.0] * rooted.n_nodes if self.is_relaxed else []
        return self.at((rooted, heights, tuple(numbers), rates, values))

    @property
    def _clock_numbers(self) -> tuple[Any, ...]:
        return self.numbers[: self.n_clock]

    def lengths_of(self, time: TimePoint) -> list[float]:
        """(n_nodes,) lengths of the branches of the tree without its root, within the bounds of lengths."""
        found = np.zeros(time.rooted.n_nodes - 2)
        np.add.at(found, time.branches, self._rates(time) * time.gaps)
        found = np.clip(found, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
        return [0.0, *found[1:].tolist()]

    def _rates(self, time: TimePoint) -> FloatArray | float:
        """The rates of all branches, in substitutions per site and year."""
        return time.numbers[0] * np.array(time.rates) if self.is_relaxed else time.numbers[0]

    def propose(self, state: State, time: TimePoint, log_ratio: float, **more: Any) -> Proposal:
        """A proposal of another time tree; only those CLAs are made again that change."""
        topology = state.topology
        if time.rooted is not time_of(state).rooted:
            topology, branches = hang(time.rooted)
            time = time._replace(branches=branches)
        lengths = self.lengths_of(time)
        stale = changed_nodes(state.topology, state.lengths, topology, lengths)
        prior = self.log_density(time)
        new = state._replace(topology=topology, lengths=lengths, length_prior=prior, known=None, time=time)
        return Proposal(new, log_ratio, stale, **more)

    # --- the density ------------------------------------------------------------------------------

    def log_density(self, time: TimePoint) -> float:
        """The logarithm of the prior density of heights, numbers and rates; -inf if a number is impossible."""
        of_numbers = math.fsum(own.log_prior(value) for own, value in zip(self.numbers, time.numbers, strict=True))
        if not of_numbers > -math.inf:
            return -math.inf
        own, k = time.numbers[self.n_clock :], self.n_clock
        inner = np.array(time.heights[self.n_tips :])
        total = of_numbers + self.tree_prior.density(self._tips, inner, own).value + self.tree_prior.log_prior(own)[0]
        if self.is_relaxed:
            spread, logs = time.numbers[k - 1], np.log(time.rates[1:])
            scores = (logs + spread**2 / 2.0) / spread
            total -= float(logs.sum() + scores @ scores / 2.0)
            total -= len(logs) * math.log(spread * math.sqrt(2.0 * math.pi))
        return total if math.isfinite(total) else -math.inf

    def coordinates(self, time: TimePoint) -> FloatArray:
        """(n_coordinates,) of heights, numbers and rates."""
        numbers = [
            math.log(value) if own.is_positive else value for own, value in zip(self.numbers, time.numbers, strict=True)
        ]
        rates = np.log(time.rates[1:]) if self.is_relaxed else ()
        return np.concatenate([coordinates_of_heights(time.rooted, time.heights), numbers, rates])

    def moved_to(self, time: TimePoint, coordinates: FloatArray) -> TimePoint | None:
        """The same tree with other coordinates; None if they are out of all bounds."""
        if not np.abs(coordinates).max() < LARGEST_COORDINATE:  # nor if one is not a number
            return None
        n, k = len(self.names) - 1, len(self.numbers)
        heights = heights_at(time.rooted, time.heights, coordinates[:n].tolist())
        if heights is None:
            return None
        pairs = zip(self.numbers, coordinates[n : n + k].tolist(), strict=True)
        numbers = tuple(math.exp(value) if own.is_positive else value for own, value in pairs)
        rates = [1.0, *np.exp(coordinates[n + k :]).tolist()] if self.is_relaxed else []
        return time._replace(heights=heights, numbers=numbers, rates=rates)

    def log_jacobian(self, time: TimePoint) -> float:
        """log |dy / dz| of heights, numbers and rates in the coordinates."""
        numbers = (math.log(value) for own, value in zip(self.numbers, time.numbers, strict=True) if own.is_positive)
        rates = float(np.log(time.rates[1:]).sum()) if self.is_relaxed else 0.0
        return log_jacobian(time.rooted, time.heights) + math.fsum(numbers) + rates

    def slopes(self, state: State, heat: float) -> FloatArray:
        """(n_coordinates,) slopes of heat (lnL + log prior) + log |dy / dz|, with those in lengths in `State.known`."""
        assert state.known is not None, "the surroundings were asked for"
        time, k = time_of(state), self.n_clock
        top, numbers = time.rooted.top, time.numbers
        of_data = np.reshape(state.known.values, (-1, DERIVATIVE_VALUES))[:, 1]
        by_gap = np.append(0.0, of_data)[time.branches] * self._rates(time)
        by_gap[[ROOT, top]] = 0.0
        by_rate = by_gap * time.gaps  # slopes in the logarithms of rates
        of_heights = -by_gap
        np.add.at(of_heights, time.rooted.parent, by_gap)
        tree = self.tree_prior.density(self._tips, np.array(time.heights[self.n_tips :]), numbers[k:])
        of_heights[self.n_tips :] += tree.of_heights
        of_numbers = np.array([own.slope(value) for own, value in zip(self.numbers, numbers, strict=True)])
        of_numbers[k:] += tree.of_numbers + self.tree_prior.log_prior(numbers[k:])[1]
        of_numbers[0] += by_rate.sum()
        of_rates = np.zeros(0)
        if self.is_relaxed:
            spread = numbers[1]
            deviations = np.log(time.rates[1:]) + spread**2 / 2.0
            of_rates = heat * (by_rate[1:] - deviations / spread**2 - 1.0) + 1.0
            of_numbers[1] += float((deviations**2 / spread**2 - deviations - 1.0).sum())
        gain = np.array([own.is_positive for own in self.numbers], dtype=float)
        at_heights = coordinate_slopes(time.rooted, time.heights, heat * of_heights)
        return np.concatenate([at_heights, heat * of_numbers + gain, of_rates])


def time_of(state: State) -> TimePoint:
    """The time tree of a state that has one."""
    assert state.time is not None, "states of a clock have one"
    return state.time
