"""Searches from one or more start trees: climb from each, fuse and perturb the trees, and polish the best one."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

from plltool.engine.requests import Holder
from plltool.errors import InputError
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.polish import Other
from plltool.progress import Forecast, Listener, Progress, StopHere, StopSearch, log
from plltool.tree.splits import rf_distance
from plltool.tree.topology import Tree
from plltool.tree_search.effort import SearchPlan
from plltool.tree_search.stages import TreeSearch
from plltool.tree_search.state import ClimbStarts, ClimbState, Deadline

CLIMB_TIE = 0.01  # lnL by which a climb must be better to take the lead: the rest is left over from convergence
POOL_SIZE = 3  # of the best trees, with which a search with a limited time fuses each further climb


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """The best tree with its models, one per part."""

    lnl: float
    tree: Tree
    models: list[Model]
    # lnL of the climb from each start tree at its end, or when it was given up; for the winner, after all stages
    lnls: tuple[float, ...]
    best: int  # number of the climb that it is from, from 0
    trees: tuple[Tree, ...]  # of the climbs
    distances: tuple[tuple[int, ...], ...]  # Robinson-Foulds distances between these trees, a row for each
    interrupted: bool  # whether the listener stopped the search
    other: Other  # another optimum of the lengths that the polish found


@dataclass(frozen=True, eq=False)
class Climbing:
    """What all climbs of a search in one process share; see `TreeSearch`."""

    starts: ClimbStarts
    engine: Holder
    plan: SearchPlan
    forecast: Forecast
    report: Listener

    def search_on(self, number: int, state: ClimbState) -> TreeSearch:
        """The search from start tree `number`, continued from `state`."""
        likelihood = TreeLikelihood(state.tree, state.models, self.engine, self.plan.constraint)
        save = partial(self.starts.save, number) if self.starts.store else None
        return TreeSearch(likelihood, self.plan, self.forecast, self.report, state.cursor, save)

    def climb(self, number: int, state: ClimbState, rivals: Sequence[Sequence[float]]) -> ClimbState:
        """Climb from start tree `number`, or go on with that climb, and make its first perturbations."""
        search, first = self.search_on(number, state), self.plan.first_perturbations
        climbed = search.climb(rivals)
        if first and (climbed.cursor.given_up or climbed.cursor.settled or climbed.cursor.fusions):
            self.forecast.skip(1)
        elif first and not climbed.interrupted:
            self.forecast.begin(climbed.cursor.spent)
            climbed = search.perturb(self.starts.make_rng(number), 0, first)
        return climbed


@dataclass(eq=False)
class Watch:
    """Keeps what a listener hears, notes when that stops the search, and stops it itself in time for the polish."""

    listener: Listener
    deadline: Deadline | None = None
    stopped: bool = False
    stays: bool = False  # whether it has asked for the climb that it stopped, see `StopHere`
    heard: list[Progress] = field(default_factory=list)

    def __call__(self, event: Progress) -> None:
        self.heard.append(event)
        if self.deadline is not None:
            self.deadline.end_step(event.stage)
        try:
            self.listener(event)
        except StopSearch as asked:
            self.stopped, self.stays = True, isinstance(asked, StopHere)
            raise
        if self.is_over and event.stage != "polish":
            raise StopSearch

    @property
    def is_over(self) -> bool:
        """Whether there is no time for another step."""
        return self.stopped or (self.deadline is not None and self.deadline.is_due)

    @property
    def trace(self) -> tuple[Progress, ...]:
        """What was heard, by climb if climbs ran at the same time, then the events that belong to no climb."""
        return tuple(sorted(self.heard, key=lambda event: event.start or math.inf))


class Pool:
    """The climbs of a search.

    Without a deadline, every step is a function of the plan and the data, and what an earlier run has climbed, fused,
    perturbed or polished is not repeated.
    """

    def __init__(self, climbing: Climbing, watch: Watch):
        self._climbing = climbing
        self._watch = watch
        self._climbs: list[ClimbState] = []
        self._climb_seconds = 0.0  # of the longest climb
        if watch.deadline is not None:
            self._climbs = climbing.starts.saved()
            watch.deadline.resume(max((one.cursor.seconds for one in self._climbs), default=0.0))

    def search(self, elsewhere: Iterable[ClimbState] | None = None) -> SearchOutcome:
        """The best of all climbs, fused with the others, after perturbations and a polish.

        The climbs of the plan are made one after the other, or `elsewhere`. If the best one does not use all
        perturbations, the next best gets the rest. Climbs that were given up play no part. If there is a deadline, more
        start trees and perturbations follow until it is time for the polish; InputError if it comes before a round of
        moves.
        """
        deadline = self._watch.deadline
        if deadline is None or not any(one.cursor.polished for one in self._climbs):
            self._climb_and_improve(elsewhere)
            while deadline is not None and not self._watch.is_over:
                self._go_on(deadline)
            has_moved = any(one.cursor.has_moved for one in self._climbs)
            if deadline is not None and not (has_moved or self._watch.stopped):
                found = f"time: {deadline.limit:g} s ran out before the first round of moves ended"
                hint = "with a longer time the same search resumes from its checkpoint, if it has one"
                raise InputError(f"{found}, so there is no result; {hint}")
        n_perturbations = sum(one.cursor.spent for one in self._climbs)
        log.info("done: start trees: %d, perturbations: %d", len(self._climbs), n_perturbations)
        here = [number for number, one in enumerate(self._climbs) if one.interrupted and self._watch.stays]
        leader = (here or self._in_order())[0]
        if not self._watch.stopped:
            if deadline is not None:
                self._climbs[leader].cursor.come_to_rest()
            starts = self._climbing.starts
            given = starts.make_tree(leader) if starts.single else None
            self._climbs[leader] = self._search_on(leader).polish(given)
        best, lnls = self._climbs[leader], tuple(one.lnl for one in self._climbs)
        trees = tuple(one.tree for one in self._climbs)
        polished = best.cursor.polish
        other = Other() if polished is None else polished.other
        stopped, distances = self._watch.stopped, _distances(trees)
        return SearchOutcome(best.lnl, best.tree, best.models, lnls, leader, trees, distances, stopped, other)

    def _climb_and_improve(self, elsewhere: Iterable[ClimbState] | None) -> None:
        """Make the climbs of the plan, fuse the best one with the others, perturb, and fuse it once more."""
        plan = self._climbing.plan
        if elsewhere is None:
            for number in range(plan.starts):
                self._climb(number)
        else:
            for climbed in elsewhere:
                self._climbs.append(climbed)
                self._tell_if_given_up(len(self._climbs) - 1)
        ready = [number for number in self._in_order() if self._climbs[number].cursor.climbed]
        if len(self._climbs) > 1 and ready:
            self._fuse(ready[0], ready[1:])
        if plan.perturbations and ready:
            self._perturb([number for number in ready if not self._climbs[number].cursor.settled])
            if len(self._climbs) > 1:
                best, *others = [number for number in self._in_order() if number in ready]
                self._fuse(best, others, 1)

    def _go_on(self, deadline: Deadline) -> None:
        """Climb from one more start tree, fuse the climb with the best ones, and perturb it.

        If the time left is too short for a climb, or there is one start tree only, perturb the best tree again instead.
        """
        ranked = sorted(self._in_order(), key=lambda number: -self._climbs[number].lnl)
        if self._climbing.starts.single or deadline.seconds_left < self._climb_seconds:
            self._climbs[ranked[0]].cursor.leave_rest()
            self._perturb(ranked[:1])
            return
        last = self._climbs[-1].cursor
        number = len(self._climbs) - (last.rest_lnl is None and not last.given_up)  # an earlier run may have left it
        self._climb(number)
        if not self._climbs[number].cursor.given_up:
            self._fuse(number, [other for other in ranked if other != number][:POOL_SIZE])
            self._perturb([number])

    def _climb(self, number: int) -> None:
        """Climb from start tree `number`, or go on with that climb; the first one makes a step at least."""
        if self._climbs and self._watch.is_over:
            return
        if number == len(self._climbs):
            of = "" if self._watch.deadline else f" of {self._climbing.plan.starts}"
            log.info("start tree %d%s", number + 1, of)
            self._climbs.append(self._climbing.starts.begin(number))
        earlier = [one.cursor for one in self._climbs[:number]]
        began = time.perf_counter()
        rivals = [one.marks for one in earlier if one.climbed and not one.given_up]
        self._climbs[number] = climbed = self._climbing.climb(number, self._climbs[number], rivals)
        self._tell_if_given_up(number)
        if not climbed.interrupted and not climbed.cursor.given_up:
            self._climb_seconds = max(self._climb_seconds, time.perf_counter() - began)

    def _tell_if_given_up(self, number: int) -> None:
        climbed = self._climbs[number]
        if climbed.cursor.given_up:
            log.info("start tree %d given up at lnL %.3f: too far behind", number + 1, climbed.lnl)

    def _fuse(self, number: int, donors: Sequence[int], earlier: int = 0) -> None:
        """Fuse a climb with others, after `earlier` such fusions."""
        if not self._watch.is_over:
            self._climbing.forecast.begin(self._climbs[number].cursor.fused)
            trees = [self._climbs[other].tree for other in donors]
            self._climbs[number] = self._search_on(number).fuse(trees, earlier)

    def _perturb(self, numbers: Sequence[int]) -> None:
        """Perturb climbs, one after the other, until the plan's perturbations are spent."""
        plan = self._climbing.plan
        self._climbing.forecast.begin(sum(one.cursor.spent for one in self._climbs))
        for number in numbers:
            spent = sum(one.cursor.spent for one in self._climbs)
            if spent < plan.perturbations and not self._watch.is_over:
                if plan.starts > 1:
                    self._climbs[number] = self._search_on(number).fuse(())  # it is not at rest any more
                rng, elsewhere = self._climbing.starts.make_rng(number), spent - self._climbs[number].cursor.spent
                self._climbs[number] = self._search_on(number).perturb(rng, elsewhere)

    def _search_on(self, number: int) -> TreeSearch:
        return self._climbing.search_on(number, self._climbs[number])

    def _in_order(self) -> list[int]:
        """The climbs that were not given up, by lnL, behind the leader: the first one of the best, see CLIMB_TIE."""
        hopeful = [number for number, one in enumerate(self._climbs) if not one.cursor.given_up]
        leader = hopeful[0]
        for number in hopeful:
            if self._climbs[number].lnl > self._climbs[leader].lnl + CLIMB_TIE:
                leader = number
        return sorted(hopeful, key=lambda number: (number != leader, -self._climbs[number].lnl))


def _distances(trees: Sequence[Tree]) -> tuple[tuple[int, ...], ...]:
    pairs = {(i, j): rf_distance(trees[i], trees[j]) for i, j in combinations(range(len(trees)), 2)}
    return tuple(tuple(pairs.get((min(i, j), max(i, j)), 0) for j in range(len(trees))) for i in range(len(trees)))
