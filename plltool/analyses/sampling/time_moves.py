"""Moves of time trees: of heights, numbers of clock and prior, rates and topologies; and HMC of all numbers."""

import math
from dataclasses import dataclass

import numpy as np

from plltool.analyses.sampling.moves import LearntMove, Move, draw_factor
from plltool.analyses.sampling.state import ALL_NODES, Proposal, Slopes, State
from plltool.analyses.sampling.time_mass import LearntTimes, UsualTimes
from plltool.analyses.sampling.time_state import TimeSpace, time_of
from plltool.analyses.sampling.tree import ROOT, Topology, draw_below_top, interchange, is_legal, prune, regraft
from plltool.arrays import FloatArray


class TimeMove(Move):
    """A move of time trees."""

    space: TimeSpace

    def regrafted(self, state: State, node: int, edge: int, height: float, log_ratio: float) -> Proposal | None:
        """The subtree below a node on another branch, its joint at a height; None where heights are equal."""
        time = time_of(state)
        rooted, heights = regraft(time.rooted, node, edge), time.heights.copy()
        heights[time.rooted.parent[node]] = height
        if not is_legal(rooted, heights):
            return None
        return self.space.propose(state, time._replace(rooted=rooted, heights=heights), log_ratio)


class HamiltonianStep(LearntMove):
    """Hamiltonian Monte Carlo (Neal 2011) of heights, numbers and rates in their coordinates z, on a fixed topology.

    A chain of heat h has the density f(z) = posterior(y(z))^h |dy/dz|. With the inverse L L^T of the mass, which
    depends on the topology alone (`UsualTimes`), z = L w, and momenta p are standard normal. A trajectory has `legs`
    steps of the leapfrog integrator: p += e/2 L^T s(z), z += e L p, p += e/2 L^T s(z), s the slopes of log f. Its map
    of (w, p), followed by p -> -p, is its own inverse and keeps volumes, so the Hastings ratio is
    exp((|p|^2 - |p'|^2) / 2) |dy'/dz'| / |dy/dz|. Each trajectory draws its step e uniformly from 0.8 to 1.2 times the
    tuned one, independently of the state, so that no orbit repeats for ever.
    """

    space: TimeSpace
    learnt: UsualTimes
    legs = 6

    def ask(self, state: State, rng: np.random.Generator) -> Slopes:
        return Slopes(state.topology.n_nodes)

    def point(self, state: State) -> LearntTimes:
        time = time_of(state)
        numbers = [own.coordinate(value) for own, value in zip(self.space.numbers, time.numbers, strict=True)]
        return LearntTimes(time.rooted.splits(), time.heights, np.array(numbers))

    @np.errstate(all="ignore")  # of trajectories that lead out of all bounds, which are refused
    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        size = step * float(rng.uniform(0.8, 1.2))
        momentum = rng.standard_normal(self.space.n_coordinates)
        log_ratio = float(momentum @ momentum) / 2.0 - self.space.log_jacobian(time_of(state))
        factor = self.learnt.factor(self.space, time_of(state)) / math.sqrt(heat)
        return self._go(state, momentum + size / 2.0 * self._force(state, heat, factor), size, factor, log_ratio)

    @np.errstate(all="ignore")
    def go_on(self, proposal: Proposal, reached: State, heat: float) -> Proposal | None:
        momentum, size, factor = proposal.trajectory
        momentum = momentum + size * self._force(reached, heat, factor)
        return self._go(reached, momentum, size, factor, proposal.log_ratio)

    @np.errstate(all="ignore")
    def log_ratio(self, old: State, proposal: Proposal, new: State, step: float, heat: float) -> float:
        momentum, size, factor = proposal.trajectory
        last = momentum + size / 2.0 * self._force(new, heat, factor)
        return proposal.log_ratio - float(last @ last) / 2.0 + self.space.log_jacobian(time_of(new))

    def _force(self, state: State, heat: float, factor: FloatArray) -> FloatArray:
        return np.asarray(self.space.slopes(state, heat) @ factor)

    def _go(
        self, state: State, momentum: FloatArray, size: float, factor: FloatArray, log_ratio: float
    ) -> Proposal | None:
        """The next point of a trajectory. All CLAs are made again: those that are there belong to its first point."""
        coordinates = self.space.coordinates(time_of(state)) + size * (factor @ momentum)
        time = self.space.moved_to(time_of(state), coordinates)
        if time is None:
            return None
        question = Slopes(state.topology.n_nodes)
        proposal = self.space.propose(state, time, log_ratio, question=question, trajectory=(momentum, size, factor))
        return proposal._replace(stale=ALL_NODES)


@dataclass(eq=False)
class TimeNumberMove(TimeMove):
    """Adds log m = step (u - 1/2) to the coordinate of a number; the ratio of Jacobians is the Hastings ratio."""

    number: int

    def __post_init__(self) -> None:
        self.name = f"{self.name} of {self.space.numbers[self.number].name}"

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        time, factor = time_of(state), draw_factor(step, rng)
        numbers = list(time.numbers)
        numbers[self.number], ratio = self.space.numbers[self.number].shifted(numbers[self.number], factor)
        return self.space.propose(state, time._replace(numbers=tuple(numbers)), ratio)


class HeightDraw(TimeMove):
    """Draws the height of an inner node but the root uniformly between its parent and the higher one of its children.

    The density is the same for the way back. The Hastings ratio is 1.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        time = time_of(state)
        rooted, heights = time.rooted, time.heights.copy()
        node = draw_below_top(rooted, rooted.n_taxa, rng)
        low = max(heights[rooted.left[node]], heights[rooted.right[node]])
        heights[node] = low + (heights[rooted.parent[node]] - low) * rng.random()
        return self.space.propose(state, time._replace(heights=heights), 0.0)


class TipHeight(TimeMove):
    """Draws the height of a tip without an exact date uniformly from its range, below its parent; the ratio is 1."""

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        time, tips = time_of(state), self.space.loose_tips
        tip, heights = tips[int(rng.integers(len(tips)))], time.heights.copy()
        least, most = self.space.tips[tip - 1]
        heights[tip] = least + (min(most, heights[time.rooted.parent[tip]]) - least) * rng.random()
        return self.space.propose(state, time._replace(heights=heights), 0.0)


class RootHeight(TimeMove):
    """Multiplies the time between the root and the higher one of its children by m; the Hastings ratio is m."""

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        time, factor = time_of(state), draw_factor(step, rng)
        rooted, heights = time.rooted, time.heights.copy()
        low = max(heights[rooted.left[rooted.top]], heights[rooted.right[rooted.top]])
        heights[rooted.top] = low + (heights[rooted.top] - low) * math.exp(factor)
        return self.space.propose(state, time._replace(heights=heights), factor)


class TimeStretch(TimeMove):
    """Adds log m to the coordinate of the root's height, and subtracts it from the logarithm of the clock's rate.

    All ratios of heights stay, so branches keep their lengths where tips are of one age. In the coordinates the move is
    a shift, which is symmetric; the Hastings ratio is |dy'/dz'| / |dy/dz|.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        time, factor = time_of(state), draw_factor(step, rng)
        coordinates = self.space.coordinates(time)
        coordinates[time.rooted.top - self.space.n_tips] += factor
        coordinates[len(self.space.names) - 1] -= factor
        new = self.space.moved_to(time, coordinates)
        if new is None:
            return None
        return self.space.propose(state, new, self.space.log_jacobian(new) - self.space.log_jacobian(time))


class NarrowExchange(TimeMove):
    """Exchanges a child of an inner node but the root with the sibling of that node, if the sibling is lower than it.

    The node is drawn uniformly from n - 2, and the child from two. The same two, exchanged again, lead back: the child
    is lower than the node as well. The Hastings ratio is 1 (Drummond et al. 2002).
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        time = time_of(state)
        old = time.rooted
        node = draw_below_top(old, old.n_taxa, rng)
        child = old.left[node] if rng.random() < 0.5 else old.right[node]
        if time.heights[old.sibling(node)] >= time.heights[node]:
            return None
        return self.space.propose(state, time._replace(rooted=interchange(old, node, child)), 0.0)


class SubtreeSlide(TimeMove):
    """Slides the joint above a subtree up or down the rest of the tree, by a uniform time of at most `step` spans.

    The subtree is drawn uniformly from those below the root, 2 n - 2 in every tree. The rest is the tree without the
    subtree and its joint, which is at height t on a branch of the rest. Up to t + d there is one way, also above the
    root of the rest. Down to t - d the joint goes to one of the k branches of the rest below it that exist at that
    height, drawn uniformly. The way back from below goes up and has no choice; that from above has one of k', those at
    t below the new place. The Hastings ratio is k down and 1 / k' up (Höhna, Defoin-Platel & Drummond 2008). The
    joint may not be below the subtree.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        time = time_of(state)
        rooted, heights = time.rooted, time.heights
        node = draw_below_top(rooted, 1, rng)
        begin = heights[rooted.parent[node]]
        end = begin + step * self.space.span * (2.0 * rng.random() - 1.0)
        if end <= heights[node]:
            return None
        rest, edge = prune(rooted, node)
        if end > begin:
            while rest.parent[edge] != ROOT and heights[rest.parent[edge]] < end:
                edge = rest.parent[edge]
            log_ratio = -math.log(len(branches_at(rest, heights, edge, begin)))
        else:
            edges = branches_at(rest, heights, edge, end)
            if not edges:
                return None
            edge = edges[int(rng.integers(len(edges)))]
            log_ratio = math.log(len(edges))
        return self.regrafted(state, node, edge, end, log_ratio)


def branches_at(rest: Topology, heights: list[float], edge: int, height: float) -> list[int]:
    """Those branches of a tree that exist at a height, of a branch and all below it; by the nodes below them."""
    found, stack = [], [edge]
    while stack:
        node = stack.pop()
        if heights[node] < height:
            found.append(node)
        elif node >= rest.n_taxa:
            stack += (rest.left[node], rest.right[node])
    return found


class WideRegraft(TimeMove):
    """Takes a subtree, drawn as for `SubtreeSlide`, to any place of the rest of the tree that is above the subtree.

    The new place of the joint is drawn uniformly from all points of branches of the rest above the subtree's height,
    of W years together, or with the probability m / (W + m) it lies above the root of the rest, by an exponential time
    with the mean m, half the height of that root. So the density of a point is 1 / (W + m), times exp(-x / m) at the
    time x above that root, or above the subtree if that is higher. The rest and the subtree are the
    same for the way back; the Hastings ratio is exp((x' - x) / m), where x = 0 elsewhere. It is the move of
    Wilson & Balding 1998 with a place drawn at once instead of a branch.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        time = time_of(state)
        rooted, heights = time.rooted, time.heights
        node = draw_below_top(rooted, 1, rng)
        rest, _ = prune(rooted, node)
        top, joint = rest.top, rooted.parent[node]
        if top < rest.n_taxa:
            return None
        mean, first = heights[top] / 2.0, max(heights[top], heights[node])
        edges, begins = [], []
        stack = [rest.left[top], rest.right[top]]
        while stack:
            edge = stack.pop()
            edges.append(edge)
            begins.append(max(heights[edge], heights[node]))
            if edge >= rest.n_taxa:
                stack += (rest.left[edge], rest.right[edge])
        widths = np.maximum(0.0, np.array([heights[rest.parent[edge]] for edge in edges]) - begins)
        sums = np.cumsum(widths)
        drawn = rng.random() * (sums[-1] + mean)
        if drawn < sums[-1]:
            number = int(np.searchsorted(sums, drawn, side="right"))
            edge, height, beyond = edges[number], begins[number] + float(sums[number] - drawn), 0.0
        else:
            beyond = float(rng.exponential(mean))
            edge, height = top, first + beyond
        before = heights[joint] - first if joint == rooted.top else 0.0
        return self.regrafted(state, node, edge, height, (beyond - before) / mean)


class RateMultiplier(TimeMove):
    """Multiplies the relative rate above a node, drawn uniformly, by m; the Hastings ratio is m."""

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal:
        time, factor = time_of(state), draw_factor(step, rng)
        rates = time.rates.copy()
        rates[int(rng.integers(1, len(rates)))] *= math.exp(factor)
        return self.space.propose(state, time._replace(rates=rates), factor)


class SpreadStretch(TimeMove):
    """Multiplies the spread s of rates by m, and keeps the normal scores x_i = (log m_i + s^2 / 2) / s of all rates.

    log m_i' = s' x_i - s'^2 / 2, so dm_i' / dm_i = m m_i' / m_i, and the Hastings ratio is m^(K + 1) prod m_i' / m_i,
    where K is the number of rates and m that of the multiplier.
    """

    def propose(self, state: State, step: float, rng: np.random.Generator, heat: float = 1.0) -> Proposal | None:
        time, factor = time_of(state), draw_factor(step, rng)
        old = time.numbers[1]
        new = old * math.exp(factor)
        logs = np.log(time.rates[1:])
        changed = (logs + old**2 / 2.0) * (new / old) - new**2 / 2.0
        numbers = (time.numbers[0], new, *time.numbers[2:])
        log_ratio = factor * (len(logs) + 1) + float((changed - logs).sum())
        time = time._replace(numbers=numbers, rates=[1.0, *np.exp(changed).tolist()])
        return self.space.propose(state, time, log_ratio)
