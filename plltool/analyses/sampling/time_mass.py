"""The mass of Hamiltonian trajectories, by what data and priors say of the coordinates of a time tree.

The coordinates are u, of heights and numbers, and scores x_i of the rates of a relaxed clock with the spread s. Branch
i lasts for the time t_i. With its length b_i = r m_i t_i, d log b_i = a_i du + s dx_i, where a_i is a row of slopes. N
sites know log b_i with the precision k_i = N b_i / (1 + b_i)^2, nearly the number of their changes; a score has the
precision 1 by its prior, log t_i about `OF_TIMES`, since waiting times are nearly exponential, and a coordinate c_j of
its own. The precision of all is then
sum_i (k_i (d log b_i)^2 + OF_TIMES (d log t_i)^2 + dx_i^2) + sum_j c_j du_j^2.
Without the scores, that of u is P = sum_i w_i a_i a_i^T + ... with w_i = k_i / (1 + k_i s^2). With e standard normal
and P = L L^T, coordinates with this precision are u = L^-T e and x_i = e_i / sqrt(1 + k_i s^2) - s w_i a_i u.

Heights and numbers are here not those of a state, but usual ones for its topology, which chains learn by clades while
steps are tuned. So the mass is the same all along a trajectory, whatever the tree, and needs few states (a diagonal of
second derivatives is the idea of Ji et al. 2020).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from plltool.analyses.sampling.joint_moves import FIRST_DEVIATION
from plltool.analyses.sampling.moves import Learnt
from plltool.analyses.sampling.time_state import TimeSpace
from plltool.analyses.sampling.tree import TimePoint, height_slopes
from plltool.arrays import FloatArray
from plltool.codec import saved

OF_TIMES = 0.3  # precisions, of logarithms
OF_HEIGHTS, LEAST_OF_NUMBERS = 0.5, 0.1
NUMBER_STEP = 0.05  # in a coordinate, for differences of slopes


class LearntTimes(NamedTuple):
    """What is learnt from a state."""

    splits: list[int]  # (n_nodes,) the taxa below each node, see `plltool.tree.splits`
    heights: list[float]  # (n_nodes,) years
    numbers: FloatArray  # (K,) coordinates of the numbers


@saved()
@dataclass(eq=False)
class UsualTimes(Learnt):
    """The mean heights of clades, and mean coordinates of numbers, which the chains of a run learn together."""

    n_sites: float  # of all parts; 0 without data
    n_states: int = 0  # learnt from
    heights: dict[int, tuple[float, int]] = field(default_factory=dict)  # sum and number of those of each clade
    numbers: FloatArray = field(default_factory=lambda: np.zeros(1))  # (K,) sums, or a 0

    def learn(self, points: Iterable[LearntTimes]) -> None:
        for point in points:
            self.n_states += 1
            self.numbers = self.numbers + point.numbers
            for split, height in zip(point.splits, point.heights, strict=True):
                total, n = self.heights.get(split, (0.0, 0))
                self.heights[split] = total + height, n + 1

    def forget(self) -> None:
        self.n_states, self.heights, self.numbers = 0, {}, np.zeros(1)

    def usual(self, space: TimeSpace, time: TimePoint) -> TimePoint:
        """The same tree with usual heights and numbers; an unknown clade is halfway from those below to that above."""
        rooted, splits, found = time.rooted, time.rooted.splits(), list(time.heights)
        order, lows, (total, n) = rooted.postorder(), list(found), self.heights[splits[rooted.top]]
        least = total / n / rooted.n_taxa**2  # time between two nodes, about that of most coalescents
        for node in order:
            lows[node] = max(found[rooted.left[node]], found[rooted.right[node]])
            total, n = self.heights.get(splits[node], (0.0, 1))
            found[node] = max(total / n, lows[node] + least)
        for node in reversed(order):
            if splits[node] not in self.heights:
                found[node] = (lows[node] + found[rooted.parent[node]]) / 2.0
        means = (self.numbers / self.n_states).tolist()
        numbers = tuple(own.at(mean) for own, mean in zip(space.numbers, means, strict=True))
        return time._replace(heights=found, numbers=numbers)

    def factor(self, space: TimeSpace, time: TimePoint) -> FloatArray:
        """A root of the inverse of the mass: it takes standard normal numbers to coordinates with that precision.

        (n_coordinates, n_coordinates), in the order of `TimeSpace.coordinates`.
        """
        if not self.n_states:
            return FIRST_DEVIATION * np.eye(space.n_coordinates)
        usual, n, k = self.usual(space, time), len(space.names) - 1, len(space.numbers)
        gaps, of_heights = usual.gaps, height_slopes(usual.rooted, usual.heights)
        is_branch = gaps > 0.0
        rows, spread = np.zeros((len(gaps), n + k)), usual.numbers[1] if space.is_relaxed else 0.0
        rows[is_branch, :n] = (of_heights[usual.rooted.parent] - of_heights)[is_branch] / gaps[is_branch, None]
        precision = OF_TIMES * (rows.T @ rows)
        rows[is_branch, n] = 1.0
        if space.is_relaxed:
            rows[is_branch, n + 1] = -(spread**2)  # at the score 0
        lengths = usual.numbers[0] * gaps
        known = self.n_sites * lengths / (1.0 + lengths) ** 2
        weights = known / (1.0 + known * spread**2)
        precision += (rows.T * weights) @ rows
        precision[range(n + k), range(n + k)] += np.append(np.full(n, OF_HEIGHTS), number_precisions(space, usual))
        if space.is_relaxed:
            precision[n + 1, n + 1] += float(weights.sum()) * spread**2  # by scores as large as usual
        root = np.linalg.inv(np.linalg.cholesky(precision)).T
        if not space.is_relaxed:
            return np.asarray(root)
        factor = np.diag(np.append(np.zeros(n + k), (1.0 + known[1:] * spread**2) ** -0.5))
        factor[: n + k, : n + k] = root
        factor[n + k :, : n + k] = -spread * weights[1:, None] * (rows[1:] @ root)
        return factor


def number_precisions(space: TimeSpace, time: TimePoint) -> FloatArray:
    """(K,) how fast slopes of the prior fall in the coordinate of each number."""
    at, found = space.number_slopes(time)[0], np.empty(len(space.numbers))
    for number, own in enumerate(space.numbers):
        numbers = list(time.numbers)
        numbers[number] = own.at(own.coordinate(numbers[number]) + NUMBER_STEP)
        beyond = space.number_slopes(time._replace(numbers=tuple(numbers)))[0]
        found[number] = (at - beyond)[number] / NUMBER_STEP
    return np.where(np.isfinite(found), np.maximum(found, LEAST_OF_NUMBERS), LEAST_OF_NUMBERS)
