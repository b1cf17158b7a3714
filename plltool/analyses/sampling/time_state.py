"""States of time trees: the clock, the prior of the tree and its numbers, and slopes in coordinates without bounds.

The length of the branch above node i is r m_i (h_p - h_i), with the rate r of the clock and the relative rate m_i of
the branch, 1 for a strict clock. For a relaxed one log m_i is normal with the standard deviation s, the spread, and the
mean -s^2 / 2, so that the mean of m_i is 1 (uncorrelated log-normal rates: Drummond, Ho, Phillips & Rambaut 2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plltool.analyses.dating.dates import DatesLike, match_dates
from plltool.analyses.sampling.parameters import Parameter
from plltool.analyses.sampling.priors import LengthPrior, NumberPrior
from plltool.analyses.sampling.settings import SHARES, ClockPriors
from plltool.analyses.sampling.state import COLUMNS, Proposal, Sample, State, StateSpace
from plltool.analyses.sampling.tree import (
    ROOT,
    TimePoint,
    Topology,
    changed_nodes,
    coordinate_slopes,
    coordinates_of_heights,
    hang,
    heights_at,
    log_jacobian,
    root_tree,
    to_tree,
)
from plltool.analyses.sampling.tree_priors import TreePrior, parse_tree_prior
from plltool.arrays import FloatArray
from plltool.constants import CLOCKS, MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH, RELAXED
from plltool.engine.contract import DERIVATIVE_VALUES
from plltool.errors import InputError, check_one_of, list_names, show_name
from plltool.model.model import Model
from plltool.tree.topology import Tree

CLOCK_RATE, SPREAD, TREE_HEIGHT = "clockRate", "clockSpread", "treeHeight"  # columns
FIRST_SPREAD = 0.3
LARGEST_COORDINATE = 50.0  # beyond it numbers are of no use, and overflow


@dataclass(frozen=True)
class TimeNumber:
    """A number of the clock or of the tree's prior."""

    name: str  # of its column
    is_positive: bool  # then its coordinate is log(x / (1 - x / high)), the logarithm if there is no bound
    prior: NumberPrior | None  # None if that of the tree has it
    of_exponential: bool = False  # whether the prior is that of exp(number)
    high: float = math.inf  # bound of a positive one

    def log_prior(self, value: float) -> float:
        """The logarithm of its prior density."""
        if self.prior is None:
            return 0.0
        return self.prior.log_density(math.exp(value)) + value if self.of_exponential else self.prior.log_density(value)

    def near(self, value: float) -> float:
        """A number near a value that is possible."""
        return value if self.prior is None or self.of_exponential else self.prior.near(value)

    def slope(self, value: float) -> float:
        """The slope of the logarithm of the prior density in the coordinate."""
        if self.prior is None:
            return 0.0
        if self.of_exponential:
            return self.prior.slope(math.exp(value)) * math.exp(value) + 1.0
        return self.prior.slope(value) * (value * (1.0 - value / self.high) if self.is_positive else 1.0)

    def coordinate(self, value: float) -> float:
        """The coordinate, which has no bounds."""
        return math.log(value) - math.log1p(-value / self.high) if self.is_positive else value

    def at(self, coordinate: float) -> float:
        """The number with a coordinate."""
        if not self.is_positive:
            return coordinate
        return math.exp(coordinate) if math.isinf(self.high) else self.high / (1.0 + math.exp(-coordinate))

    def log_jacobian(self, value: float) -> float:
        """log |dx / dz| in the coordinate z."""
        return math.log(value) + math.log1p(-value / self.high) if self.is_positive else 0.0

    def shifted(self, value: float, change: float) -> tuple[float, float]:
        """The number with another coordinate, and the logarithm of the ratio of the Jacobians."""
        if self.is_positive and math.isinf(self.high):
            return value * math.exp(change), change
        new = self.at(self.coordinate(value) + change)
        return new, self.log_jacobian(new) - self.log_jacobian(value)


@dataclass(frozen=True, eq=False)
class TimeSpace(StateSpace):
    """The space of time trees. The first number is the rate of the clock; the second the spread of a relaxed one."""

    length_prior: LengthPrior = field(init=False)  # there is none: heights have one
    tip_heights: tuple[float, ...]  # (n_taxa,) of the taxa, in years before the latest one
    latest: float  # the date of that, in years
    numbers: tuple[TimeNumber, ...]  # their number is K
    tree_prior: TreePrior  # of the last ones of the numbers
    is_relaxed: bool
    root_prior: NumberPrior | None = None  # of its height, in years

    @property
    def n_tips(self) -> int:
        return len(self.names) + 1

    @property
    def columns(self) -> tuple[str, ...]:
        columns, n = super().columns, len(COLUMNS)
        return (*columns[:n], TREE_HEIGHT, *(own.name for own in self.numbers), *columns[n:])

    @property
    def n_clock(self) -> int:
        """How many numbers the clock has."""
        return 1 + self.is_relaxed

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

    def sample(self, state: State) -> Sample:
        time, (numbers, *_) = time_of(state), super().sample(state)
        numbers[len(COLUMNS) : len(COLUMNS)] = [time.heights[time.rooted.top], *time.numbers]
        return Sample(numbers, time.rooted, time.heights, [time.numbers[0] * rate for rate in time.rates])

    def tree_of(self, topology: Topology, lengths: Sequence[float]) -> Tree:
        """The tree without its root, with lengths in years, from a rooted one with its heights."""
        hung, branches = hang(topology)
        found = np.zeros(hung.n_nodes)
        np.add.at(found, branches, TimePoint(topology, list(lengths), (), [], []).gaps)
        return to_tree(hung, found.tolist(), self.names)

    def point(self, state: State) -> tuple[Any, ...]:
        time = time_of(state)
        return time.rooted, time.heights, time.numbers, time.rates, state.values

    def at(self, point: tuple[Any, ...]) -> State:
        rooted, heights, numbers, rates, values = point
        topology, branches = hang(rooted)
        time = TimePoint(rooted, heights, tuple(numbers), rates, branches)
        state = self.state(topology, self.lengths_of(time), values, self.log_density(time))
        return state._replace(time=time)

    def start(self, topology: Topology, lengths: list[float]) -> State:
        """A time tree near a tree in substitutions: its root where a clock fits best, heights by the lengths."""
        rooted, along, rate = root_tree(topology, lengths, [-height for height in self.tip_heights])
        depth = sum(along) / len(self.names)
        rate = rate or max(depth, MIN_BRANCH_LENGTH) / self.span
        first = {CLOCK_RATE: rate, SPREAD: FIRST_SPREAD}
        numbers = [own.near(first[own.name]) for own in self.numbers[: self.n_clock]]
        heights, least = [0.0, *self.tip_heights, *(0.0 for _ in self.names[1:])], self.span / 1e3
        for node in rooted.postorder():
            below = rooted.left[node], rooted.right[node]
            heights[node] = max(heights[child] + max(least, along[child] / numbers[0] / 2.0) for child in below)
        top = heights[rooted.top]
        if self.root_prior is not None:
            top = heights[rooted.top] = max(top, self.root_prior.near(top))
        first |= {"popSize": top, "precision": 1.0, "growthRate": 0.0, "relativeDeathRate": 0.5}
        first |= dict.fromkeys(("birthRate", "diversificationRate", "samplingRate"), math.log(len(self.names)) / top)
        others = self.numbers[self.n_clock :]
        numbers += [own.near(first.get(own.name, math.log(top))) for own in others]
        values = [own.start_in(self.models) for own in self.parameters]
        rates = [1.0] * rooted.n_nodes if self.is_relaxed else []
        return self.at((rooted, heights, tuple(numbers), rates, values))

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
        of_tree = self.tree_prior.density(np.array(self.tip_heights), inner, own).value
        total = of_numbers + of_tree + self.tree_prior.log_prior(own)[0]
        total += self.root_prior.log_density(time.heights[time.rooted.top]) if self.root_prior else 0.0
        if self.is_relaxed:
            spread, logs = time.numbers[k - 1], np.log(time.rates[1:])
            scores = (logs + spread**2 / 2.0) / spread
            total -= float(logs.sum() + scores @ scores / 2.0)
            total -= len(logs) * math.log(spread * math.sqrt(2.0 * math.pi))
        return total if math.isfinite(total) else -math.inf

    def coordinates(self, time: TimePoint) -> FloatArray:
        """(n_coordinates,) of heights, numbers and rates."""
        numbers = [own.coordinate(value) for own, value in zip(self.numbers, time.numbers, strict=True)]
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
        numbers = tuple(own.at(value) for own, value in pairs)
        rates = [1.0, *np.exp(coordinates[n + k :]).tolist()] if self.is_relaxed else []
        return time._replace(heights=heights, numbers=numbers, rates=rates)

    def log_jacobian(self, time: TimePoint) -> float:
        """log |dy / dz| of heights, numbers and rates in the coordinates."""
        numbers = (own.log_jacobian(value) for own, value in zip(self.numbers, time.numbers, strict=True))
        rates = float(np.log(time.rates[1:]).sum()) if self.is_relaxed else 0.0
        return log_jacobian(time.rooted, time.heights) + math.fsum(numbers) + rates

    def slopes(self, state: State, heat: float) -> FloatArray:
        """(n_coordinates,) slopes of heat (lnL + log prior) + log |dy / dz|, with those in lengths in `State.known`."""
        time, k = time_of(state), self.n_clock
        top, numbers = time.rooted.top, time.numbers
        of_data = np.reshape(state.answer.values, (-1, DERIVATIVE_VALUES))[:, 1]
        by_gap = np.append(0.0, of_data)[time.branches] * self._rates(time)
        by_gap[[ROOT, top]] = 0.0
        by_rate = by_gap * time.gaps  # slopes in the logarithms of rates
        of_heights = -by_gap
        np.add.at(of_heights, time.rooted.parent, by_gap)
        tree = self.tree_prior.density(np.array(self.tip_heights), np.array(time.heights[self.n_tips :]), numbers[k:])
        of_heights[self.n_tips :] += tree.of_heights
        of_heights[top] += self.root_prior.slope(time.heights[top]) if self.root_prior else 0.0
        of_numbers = np.array([own.slope(value) for own, value in zip(self.numbers, numbers, strict=True)])
        bounded = np.array([value / own.high for own, value in zip(self.numbers, numbers, strict=True)])
        of_numbers[k:] += tree.of_numbers * (1.0 - bounded[k:]) + self.tree_prior.log_prior(numbers[k:])[1]
        of_numbers[0] += by_rate.sum()
        of_rates = np.zeros(0)
        if self.is_relaxed:
            spread = numbers[1]
            deviations = np.log(time.rates[1:]) + spread**2 / 2.0
            of_rates = heat * (by_rate[1:] - deviations / spread**2 - 1.0) + 1.0
            of_numbers[1] += float((deviations**2 / spread**2 - deviations - 1.0).sum())
        gain = np.array([own.is_positive for own in self.numbers]) * (1.0 - 2.0 * bounded)
        at_heights = coordinate_slopes(time.rooted, time.heights, heat * of_heights)
        return np.concatenate([at_heights, heat * of_numbers + gain, of_rates])


def time_of(state: State) -> TimePoint:
    """The time tree of a state that has one."""
    assert state.time is not None, "states of a clock have one"
    return state.time


@dataclass(frozen=True)
class ClockChoice:
    """The clock, and what is known of time."""

    clock: str
    dates: DatesLike
    tree_prior: str
    priors: ClockPriors

    def make_space(self, names: tuple[str, ...], models: Sequence[Model], parameters: Sequence[Parameter]) -> TimeSpace:
        """The space of time trees; InputError if a taxon has no exact date, or a prior cannot be used."""
        years = exact_dates(self.dates, names)
        latest = max(years)
        heights = tuple(latest - year for year in years)
        distributions, is_relaxed = self.priors.parsed(), self.clock == RELAXED
        tree_prior = parse_tree_prior(self.tree_prior, max(heights))
        numbers = [TimeNumber(CLOCK_RATE, True, distributions["rate"])]
        if is_relaxed:
            numbers.append(TimeNumber(SPREAD, True, distributions["spread"]))
        for name, is_positive, kind in tree_prior.numbers:
            is_log_size = kind == "population" and not is_positive
            high = 1.0 if kind in SHARES else math.inf
            numbers.append(TimeNumber(name, is_positive, distributions.get(kind), is_log_size, high))
        of_models = names, tuple(models), tuple(parameters)
        root = distributions["root"] if tree_prior.needs_root else None
        return TimeSpace(*of_models, heights, latest, tuple(numbers), tree_prior, is_relaxed, root)

    def used(self, space: TimeSpace) -> dict[str, str]:
        """The priors in use, by what they are of."""
        kinds = ["rate", *(["spread"] if space.is_relaxed else [])]
        kinds += [kind for _, _, kind in space.tree_prior.numbers if kind]
        kinds += ["root"] if space.root_prior else []
        shown = {"rate": "clock rate", "spread": "clock spread", "grid_precision": "precision"}
        return {"tree": self.tree_prior} | {shown.get(kind, kind): getattr(self.priors, kind) for kind in kinds}


def choose_clock(
    clock: str | None, dates: DatesLike | None, tree_prior: str, priors: ClockPriors | None, outgroup: object
) -> ClockChoice | None:
    """The clock, if there is one; InputError for a clock without dates, and for what only a clock has."""
    if clock is None:
        if dates is not None:
            raise InputError(f"dates: found them without a clock, expected --clock {' or '.join(CLOCKS)}")
        return None
    check_one_of("clock", clock, CLOCKS)
    if dates is None:
        raise InputError(f"clock {clock}: found no dates of the taxa, expected a table of them (--dates)")
    if outgroup is not None:
        raise InputError(f"clock {clock}: found an outgroup, expected none: a clock finds the root")
    return ClockChoice(clock, dates, tree_prior, (priors or ClockPriors()).canonical())


def exact_dates(dates: DatesLike, names: Sequence[str]) -> list[float]:
    """(n_taxa,) the date of each taxon, in years; InputError if one is not known exactly."""
    found, source, _ = match_dates(dates, None, None, names)
    known = {name: date for name, date in found.items() if date is not None}
    missing = [name for name in names if name not in known]
    if missing:
        wanted = "expected one of each taxon of the alignment"
        raise InputError(f"{source}: found no date of {list_names(missing)}, {wanted}")
    for name in names:
        if known[name].first != known[name].last:
            between = f"found a date between {known[name].first:.4f} and {known[name].last:.4f}"
            raise InputError(f"{source}: taxon {show_name(name)}: {between}, expected an exact one")
    return [known[name].first for name in names]
