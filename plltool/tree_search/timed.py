"""Searches with a limited time: climbs and perturbations as long as time is left, then a polish of the best tree."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from plltool.constants import PERTURB
from plltool.engine.shards import AnyEngine
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree_search.effort import SearchPlan
from plltool.tree_search.multistart import SearchOutcome
from plltool.tree_search.progress import Forecast, Listener, Progress, StopSearch
from plltool.tree_search.stages import TreeSearch, planned_stages
from plltool.tree_search.state import ClimbStarts, ClimbState
from plltool.tree_search.stopping import Deadline

ENDLESS = 10**9  # perturbations

_log = logging.getLogger("plltool")


class TimedSearch:
    """A search until a deadline.

    First it makes the climbs of the plan and perturbs the best tree until ``plan.nstop`` perturbations in a row have
    failed. Then it climbs from more start trees and perturbs what they lead to. Where the time left is too short for a
    climb, or there is one start tree only, it perturbs the best tree instead. It ends after a step, a round or a
    perturbation, so that the polish of the best tree fits into the time.

    Parameters
    ----------
    starts : makes any number of start trees, and has the states of an earlier run, whose time counts
    make_rng : the source of the perturbations for each number of a start tree
    single : whether there is one start tree only
    """

    def __init__(
        self,
        deadline: Deadline,
        starts: ClimbStarts,
        engine: AnyEngine,
        plan: SearchPlan,
        make_rng: Callable[[int], np.random.Generator],
        listener: Listener,
        single: bool,
    ):
        self._deadline = deadline
        self._starts = starts
        self._engine = engine
        self._plan = replace(plan, perturbations=ENDLESS)
        self._make_rng = make_rng
        self._listener = listener
        self._single = single
        self._climbs = starts.saved()
        self._stopped = False  # by the listener
        self._climb_seconds = 0.0  # of the longest climb
        deadline.resume(max((climbed.cursor.seconds for climbed in self._climbs), default=0.0))

    def run(self) -> SearchOutcome:
        """The best tree that fits into the time."""
        if not any(climbed.cursor.polished for climbed in self._climbs):
            self._improve()
        leader = self._leader()
        if not self._stopped:
            self._climbs[leader] = self._search_on(leader, _at_rest(self._climbs[leader]), [("polish", 0)]).polish()
        best = self._climbs[leader]
        n_perturbations = sum(climbed.cursor.spent or 0 for climbed in self._climbs)
        _log.info("start trees: %d, perturbations: %d", len(self._climbs), n_perturbations)
        lnls = tuple(climbed.lnl for climbed in self._climbs)
        return SearchOutcome(best.lnl, best.best, best.models, lnls, self._stopped)

    def _improve(self) -> None:
        """Climb and perturb until the time is over or the listener stops the search."""
        for number in range(1 if self._single else self._plan.starts):
            self._climb(number)
        self._perturb(self._leader())
        number = self._plan.starts
        while not self._is_over():
            if self._single or self._deadline.left < self._climb_seconds:
                self._perturb(self._leader())
                continue
            self._climb(number)
            if not self._climbs[number].cursor.given_up:
                self._perturb(number)
            number += 1

    def _is_over(self) -> bool:
        return self._stopped or (bool(self._climbs) and self._deadline.is_due)

    def _climb(self, number: int) -> None:
        """Climb from start tree `number`, or go on with that climb."""
        if self._is_over():
            return
        if number == len(self._climbs):
            _log.info("start tree %d", number + 1)
            self._climbs.append(self._starts.begin(number))
        hopeful = (climbed.cursor for climbed in self._climbs[:number] if not climbed.cursor.given_up)
        rivals = [cursor.marks for cursor in hopeful if cursor.climbed]
        began = self._deadline.used
        stages = planned_stages(replace(self._plan, starts=1))
        climbed = self._search_on(number, self._climbs[number], stages).climb(rivals)
        self._climbs[number] = climbed
        if climbed.cursor.given_up:
            _log.info("start tree %d given up at lnL %.3f: too far behind", number + 1, climbed.lnl)
        elif not climbed.interrupted:
            self._climb_seconds = max(self._climb_seconds, self._deadline.used - began)

    def _perturb(self, number: int) -> None:
        """Perturb the tree of a climb until `nstop` perturbations in a row have failed, also if they have before."""
        if self._is_over():
            return
        cursor = self._climbs[number].cursor
        cursor.round = 0
        if cursor.rest_lnl is not None:
            cursor.rest_lnl, cursor.failures = None, 0
        search = self._search_on(number, self._climbs[number], [(PERTURB, ENDLESS)], cursor.spent or 0)
        self._climbs[number], _ = search.perturb(self._make_rng(number), cursor.spent or 0)

    def _leader(self) -> int:
        """The best climb that was not given up."""
        hopeful = [number for number, climbed in enumerate(self._climbs) if not climbed.cursor.given_up]
        return max(hopeful, key=lambda number: self._climbs[number].lnl)

    def _search_on(
        self, number: int, state: ClimbState, stages: list[tuple[str, int]], spent: int | None = None
    ) -> TreeSearch:
        """The search from a state, with some stages ahead; the first one has begun if `spent` rounds of it are told."""
        forecast = Forecast(stages)
        if spent is not None:
            forecast.begin(spent)
        save = self._starts.saver(number)

        def save_with_time(climbed: ClimbState) -> None:
            climbed.cursor.seconds = self._deadline.used
            if save is not None:
                save(climbed)

        polishes = stages[0][0] == "polish"
        report = self._tell if polishes else self._tell_until_due
        likelihood = TreeLikelihood(state.tree, state.models, self._engine)
        return TreeSearch(likelihood, self._plan, forecast, report, state.cursor, save_with_time)

    def _tell(self, event: Progress) -> None:
        """Tell the listener, with the time of the whole search."""
        deadline = self._deadline
        left = None if event.stage == "polish" else max(0.0, deadline.left)
        try:
            self._listener(replace(event, seconds=deadline.used, n_rounds=0, stage_left=None, left=left))
        except StopSearch:
            self._stopped = True
            raise

    def _tell_until_due(self, event: Progress) -> None:
        """Tell the listener, and end the climb or the perturbations when it is time."""
        self._deadline.end_step(event.stage)
        self._tell(event)
        if self._deadline.is_due:
            raise StopSearch


def _at_rest(state: ClimbState) -> ClimbState:
    """The best tree of a climb that may have ended anywhere, ready for the polish."""
    cursor = replace(state.cursor, best=None, rest_lnl=state.lnl)
    if not cursor.climbed:
        cursor.end_stage()
        cursor.climbed = True
    return ClimbState(state.best, state.models, cursor)
