"""States of time trees: the clock, the prior of the tree and its numbers, and slopes in coordinates without bounds.

The length of the branch above node i is r m_i (h_p - h_i), with the rate r of the clock and the relative rate m_i of
the branch, 1 for a strict clock. For a relaxed one log m_i is normal with the standard deviation s, the spread, and the
mean -s^2 / 2, so that the mean of m_i is 1 (uncorrelated log-normal rates: Drummond, Ho, Phillips & Rambaut 2006).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from plltool.analyses.sampling.priors import LengthPrior, NumberPrior, near
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
    regraft,
    root_tree,
    to_tree,
)
from plltool.analyses.sampling.tree_priors import TreeDensity, TreePrior
from plltool.arrays import FloatArray
from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH, NO_NODE
from plltool.engine.contract import DERIVATIVE_VALUES
from plltool.tree.topology import Tree

CLOCK_RATE, SPREAD, TREE_HEIGHT = "clockRate", "clockSpread", "treeHeight"  # columns
FIRST_SPREAD = 0.3
NEAREST = 36.0  # coordinate of a number so near its bound that the next one is the bound
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
        return value if self.prior is None or self.of_exponential else near(self.prior, value)

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
        if math.isfinite(self.high):
            return self.high / (1.0 + math.exp(-min(coordinate, NEAREST)))
        return math.exp(coordinate) if self.is_positive else coordinate

    def log_jacobian(self, value: float) -> float:
        """log |dx / dz| in the coordinate z."""
        return math.log(value) + math.log1p(-value / self.high) if self.is_positive else 0.0

    def shifted(self, value: float, change: float) -> tuple[float, float]:
        """The number with another coordinate, and the logarithm of the ratio of the Jacobians."""
        if self.is_positive and math.isinf(self.high):
            return value * math.exp(change), change
        new = self.at(self.coordinate(value) + change)
        return new, self.log_jacobian(new) - self.log_jacobian(value)


MOST_OF_ROOM = 0.999  # below the node above, for heights at which chains begin


@dataclass(frozen=True)
class Calibration:
    """What is known of the height of a clade, in years: bounds, and the prior of the height less an offset."""

    name: str  # nothing for the prior of the root under births and deaths
    split: int  # the clade, as `Topology.splits` has it
    prior: NumberPrior | None  # None for the same density between the bounds
    low: float = 0.0  # bounds, no wider than those of the prior
    high: float = math.inf
    offset: float = 0.0

    def log_density(self, height: float) -> float:
        """The logarithm of the density, which bounds cut without making up for it."""
        if not self.low < height < self.high:
            return -math.inf
        if self.prior is None:
            return -math.log(self.high - self.low) if math.isfinite(self.high) else 0.0
        return self.prior.log_density(height - self.offset)

    def slope(self, height: float) -> float:
        """That of the logarithm of the density, between the bounds."""
        return 0.0 if self.prior is None else self.prior.slope(height - self.offset)

    @property
    def middle(self) -> float:
        """A likely height."""
        found = math.inf if self.prior is None else self.offset + self.prior.middle
        if self.low < found < self.high:
            return found
        return (self.low + self.high) / 2.0 if math.isfinite(self.high) else 1.1 * self.low

    def __str__(self) -> str:
        shown = "uniform" if self.prior is None else f"{self.prior}{f' + {self.offset!r}' if self.offset else ''}"
        return f"{shown} from {self.low!r} to {self.high!r}"


def gather(rooted: Topology, calibrations: Sequence[Calibration]) -> Topology:
    """The tree with all clades: what has taxa of one alone comes together, in the smallest ones first."""
    for clade in sorted((own.split for own in calibrations), key=int.bit_count):
        while True:
            splits, parent = rooted.splits(), rooted.parent
            is_within = [bool(split) and split & clade == split for split in splits]
            tops = [node for node in range(1, len(splits)) if is_within[node] and not is_within[parent[node]]]
            if len(tops) == 1:
                break
            rooted = regraft(rooted, tops[1], tops[0])
    return rooted


def fit_heights(calibrations: Sequence[Calibration], rooted: Topology, heights: Sequence[float]) -> list[float]:
    """Heights (n_nodes,) near some that are legal, within all bounds; the calibrated clades are there."""
    own_of = {own.split: own for own in calibrations}
    splits, least, found, order = rooted.splits(), list(heights), list(heights), rooted.postorder()
    for node in order:
        below = rooted.left[node], rooted.right[node]
        own = own_of.get(splits[node])
        least[node] = max(own.low if own else 0.0, *(least[child] for child in below))
    for node in reversed(order):
        own = own_of.get(splits[node])
        room = found[rooted.parent[node]] if rooted.parent[node] != ROOT else math.inf
        if own is not None:
            room, found[node] = min(room, own.high), near(own, found[node])
        low = least[node]
        if math.isinf(room):
            found[node] = max(found[node], 1.1 * low)
        elif not low < found[node] < low + MOST_OF_ROOM * (room - low):
            found[node] = low + (room - low) * (1.0 - 1.0 / splits[node].bit_count())  # some room for those below
    return found


@dataclass(frozen=True, eq=False)
class TimeSpace(StateSpace):
    """The space of time trees. The first number is the rate of the clock; the second the spread of a relaxed one."""

    length_prior: LengthPrior = field(init=False)  # there is none: heights have one
    tips: tuple[tuple[float, float], ...]  # (n_taxa,) the least and the largest height of each taxon, in years
    latest: float  # the date of height 0, in years
    numbers: tuple[TimeNumber, ...]  # their number is K
    tree_prior: TreePrior  # of the last ones of the numbers
    is_relaxed: bool
    calibrations: tuple[Calibration, ...] = ()

    @property
    def n_tips(self) -> int:
        return len(self.names) + 1

    @property
    def columns(self) -> tuple[str, ...]:
        columns, n = super().columns, len(COLUMNS)
        names = [own.name for own in self.calibrations if own.name] + [self.names[tip - 1] for tip in self.loose_tips]
        of_time = TREE_HEIGHT, *(own.name for own in self.numbers), *(f"height({name})" for name in names)
        return (*columns[:n], *of_time, *columns[n:])

    @cached_property
    def loose_tips(self) -> tuple[int, ...]:
        """The nodes of taxa without an exact date."""
        return tuple(tip for tip, (least, most) in enumerate(self.tips, start=1) if least < most)

    @property
    def n_clock(self) -> int:
        """How many numbers the clock has."""
        return 1 + self.is_relaxed

    @property
    def span(self) -> float:
        """The time between the first and the last tip; else the largest likely height of a calibration, or 1."""
        return max(most for _, most in self.tips) or max((own.middle for own in self.calibrations), default=1.0)

    @property
    def n_coordinates(self) -> int:
        """The number of coordinates of heights, numbers and rates."""
        n = len(self.names)
        return n - 1 + len(self.numbers) + (2 * n - 1 if self.is_relaxed else 0)

    # --- states -----------------------------------------------------------------------------------

    def sample(self, state: State) -> Sample:
        time, (numbers, *_) = time_of(state), super().sample(state)
        nodes = self._calibrated(time.rooted) or []
        named = [node for own, node in zip(self.calibrations, nodes, strict=True) if own.name]
        heights = [time.heights[node] for node in (*named, *self.loose_tips)]
        numbers[len(COLUMNS) : len(COLUMNS)] = [time.heights[time.rooted.top], *time.numbers, *heights]
        return Sample(numbers, time.rooted, time.heights, [time.numbers[0] * rate for rate in time.rates])

    def _calibrated(self, rooted: Topology) -> list[int] | None:
        """The nodes of calibrated clades; None if the tree lacks one."""
        if not self.calibrations:
            return []
        node_of = {split: node for node, split in enumerate(rooted.splits())}
        found = [node_of.get(own.split, NO_NODE) for own in self.calibrations]
        return None if NO_NODE in found else found

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

    def start(self, topology: Topology, lengths: list[float], root: int | None = None) -> State:
        """A time tree near one in substitutions; its root is above the node `root`, or where a clock fits best."""
        tips = [(least + most) / 2.0 for least, most in self.tips]
        rooted, along, rate = root_tree(topology, lengths, [-height for height in tips], root)
        rooted = gather(rooted, self.calibrations)
        depth = sum(along) / len(self.names)
        rate = rate or max(depth, MIN_BRANCH_LENGTH) / self.span
        first = {CLOCK_RATE: rate, SPREAD: FIRST_SPREAD}
        numbers = [own.near(first[own.name]) for own in self.numbers[: self.n_clock]]
        heights, least = [0.0, *tips, *(0.0 for _ in self.names[1:])], self.span / 1e3
        for node in rooted.postorder():
            below = rooted.left[node], rooted.right[node]
            heights[node] = max(heights[child] + max(least, along[child] / numbers[0] / 2.0) for child in below)
        if self.calibrations:
            heights = fit_heights(self.calibrations, rooted, heights)
        top = heights[rooted.top]
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
        nodes = self._calibrated(time.rooted)
        if nodes is None:
            return -math.inf
        tree = self._tree_density(time)
        total = of_numbers + tree.value + self.tree_prior.log_prior(own)[0]
        pairs = zip(self.calibrations, nodes, strict=True)
        total += math.fsum(clade.log_density(time.heights[node]) for clade, node in pairs)
        if self.is_relaxed:
            spread, logs = time.numbers[k - 1], np.log(time.rates[1:])
            scores = self.scores(time)
            total -= float(logs.sum() + scores @ scores / 2.0)
            total -= len(logs) * math.log(spread * math.sqrt(2.0 * math.pi))
        return total if math.isfinite(total) else -math.inf

    def _tree_density(self, time: TimePoint) -> TreeDensity:
        tips, inner = np.array(time.heights[1 : self.n_tips]), np.array(time.heights[self.n_tips :])
        return self.tree_prior.density(tips, inner, time.numbers[self.n_clock :])

    def coordinates(self, time: TimePoint) -> FloatArray:
        """(n_coordinates,) of heights, numbers and rates."""
        numbers = [own.coordinate(value) for own, value in zip(self.numbers, time.numbers, strict=True)]
        return np.concatenate([coordinates_of_heights(time.rooted, time.heights), numbers, self.scores(time)])

    def scores(self, time: TimePoint) -> FloatArray:
        """(n_nodes - 1,) the coordinates x of rates, which are standard normal: log m = s x - s^2 / 2."""
        if not self.is_relaxed:
            return np.zeros(0)
        spread = time.numbers[1]
        return np.asarray(np.log(time.rates[1:]) / spread + spread / 2.0)

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
        spread = numbers[1] if self.is_relaxed else 0.0
        rates = [1.0, *np.exp(spread * coordinates[n + k :] - spread**2 / 2.0).tolist()] if self.is_relaxed else []
        return time._replace(heights=heights, numbers=numbers, rates=rates)

    def log_jacobian(self, time: TimePoint) -> float:
        """log |dy / dz| of heights, numbers and rates in the coordinates."""
        numbers = (own.log_jacobian(value) for own, value in zip(self.numbers, time.numbers, strict=True))
        rates = float(np.log(time.numbers[1] * np.array(time.rates[1:])).sum()) if self.is_relaxed else 0.0
        return log_jacobian(time.rooted, time.heights) + math.fsum(numbers) + rates

    def number_slopes(self, time: TimePoint) -> tuple[FloatArray, TreeDensity]:
        """(K,) slopes of log prior in the coordinates of numbers, without those by rates; and the tree's density."""
        k, tree, numbers = self.n_clock, self._tree_density(time), time.numbers
        found = np.array([own.slope(value) for own, value in zip(self.numbers, numbers, strict=True)])
        bounded = np.array([value / own.high for own, value in zip(self.numbers, numbers, strict=True)])
        found[k:] += tree.of_numbers * (1.0 - bounded[k:]) + self.tree_prior.log_prior(numbers[k:])[1]
        return found, tree

    def slopes(self, state: State, heat: float) -> FloatArray:
        """(n_coordinates,) slopes of heat (lnL + log prior) + log |dy / dz|, with those in lengths in `State.known`."""
        time = time_of(state)
        top, numbers = time.rooted.top, time.numbers
        of_data = np.reshape(state.answer.values, (-1, DERIVATIVE_VALUES))[:, 1]
        by_gap = np.append(0.0, of_data)[time.branches] * self._rates(time)
        by_gap[[ROOT, top]] = 0.0
        by_rate = by_gap * time.gaps  # slopes in the logarithms of rates
        of_heights = -by_gap
        np.add.at(of_heights, time.rooted.parent, by_gap)
        of_numbers, tree = self.number_slopes(time)
        of_heights[self.n_tips :] += tree.of_heights
        for clade, node in zip(self.calibrations, self._calibrated(time.rooted) or (), strict=True):
            of_heights[node] += clade.slope(time.heights[node])
        of_numbers[0] += by_rate.sum()
        of_rates = np.zeros(0)
        if self.is_relaxed:
            spread, scores = numbers[1], self.scores(time)
            turns = spread * (scores - spread)  # slopes of the logarithms of rates in the coordinate of the spread
            of_rates = spread * (heat * by_rate[1:] + 1.0 - heat) - heat * scores
            of_numbers[1] += float(by_rate[1:] @ turns + (1.0 / heat - 1.0) * (1.0 + turns).sum())
        pairs = zip(self.numbers, numbers, strict=True)
        gain = np.array([own.is_positive * (1.0 - 2.0 * value / own.high) for own, value in pairs])
        at_heights = coordinate_slopes(time.rooted, time.heights, heat * of_heights)
        return np.concatenate([at_heights, heat * of_numbers + gain, of_rates])


def time_of(state: State) -> TimePoint:
    """The time tree of a state that has one."""
    assert state.time is not None, "states of a clock have one"
    return state.time
