"""Climbs from several start trees at the same time, each in its own process with an engine and a share of threads."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from plltool.alignment.patterns import Patterns
from plltool.engine.counters import Counters
from plltool.engine.requests import work_of
from plltool.hardware import Hardware
from plltool.progress import Forecast, Listener, Progress, StopSearch
from plltool.run.engines import open_engine
from plltool.run.memory import search_slots
from plltool.run.sharing import open_workers
from plltool.tree_search.effort import SearchPlan
from plltool.tree_search.multistart import Climbing
from plltool.tree_search.stages import planned_stages, stages_of_a_climb
from plltool.tree_search.state import ClimbStarts, ClimbState


class Climber:
    """The task of a worker: the climb from start tree `number`, see `climb_at_once`."""

    def __init__(self, starts: ClimbStarts, parts: Sequence[Patterns], hardware: Hardware, plan: SearchPlan):
        self._starts, self._plan = starts, plan
        self._engine, _ = open_engine(parts, starts.models, search_slots(parts[0].n_taxa), hardware, screening=True)

    def __call__(
        self, number: int, rivals: Sequence[Sequence[float]], report: Callable[[Progress], bool]
    ) -> tuple[ClimbState, tuple[str, int], Counters]:
        """The climb, the machine and process that made it, and the work of all climbs of this process so far."""

        def listen(event: Progress) -> None:
            if not report(event):
                raise StopSearch

        starts, forecast = self._starts, Forecast([*stages_of_a_climb(self._plan), ("polish", 0)])
        climbing = Climbing(starts, self._engine, self._plan, forecast, listen)
        climbed = climbing.climb(number, starts.begin(number), rivals)
        if starts.store:
            starts.store.flush()
        return climbed, (platform.node(), os.getpid()), work_of(self._engine)


def climb_at_once(
    shares: Sequence[Hardware],
    starts: ClimbStarts,
    parts: Sequence[Patterns],
    plan: SearchPlan,
    forecast: Forecast,
    report: Listener,
    count: Callable[[Counters], None],
) -> Iterator[ClimbState]:
    """The climbs that one process would make one after the other, bit for bit on one device, from several processes.

    A climb is judged by those before it in the order of the start trees, whichever is faster. It is given up early if
    the climbs that have ended suffice for that. In the end `count` is called with the work of all processes.
    """
    rivals: list[Sequence[float]] = []
    done: dict[tuple[str, int], Counters] = {}
    interrupted = False

    def heard(number: int, event: Progress) -> None:
        nonlocal interrupted
        try:
            report(_place(event, number, plan, n_workers, forecast.seconds))
        except StopSearch:
            interrupted = True
            workers.stop()

    n_workers = len(shares)
    tasks = ((number, tuple(rivals)) for number in range(plan.starts))
    arguments = [(starts, parts, hardware, plan) for hardware in shares]
    with open_workers("start trees", Climber, arguments, shares) as workers:
        for climbed, process, work in workers.map(tasks, heard):
            done[process] = work
            if climbed.interrupted or interrupted:
                yield replace(climbed, interrupted=True)
                continue
            judged = climbed.judge(rivals)
            if not judged.cursor.given_up:
                rivals.append(judged.cursor.marks)
            yield judged
    forecast.made_elsewhere(plan.starts * len(stages_of_a_climb(plan)), n_workers)
    elsewhere = Counters()
    for work in done.values():
        elsewhere.add(work)
    count(elsewhere)


def _place(event: Progress, number: int, plan: SearchPlan, n_workers: int, seconds: float) -> Progress:
    """An event of one climb among the events of the whole search."""
    left = None
    if event.left is not None:
        climb = event.seconds + event.left
        waves = (plan.starts - 1 - number) // n_workers
        after = Forecast.cost_of(planned_stages(plan)[-2:]) / Forecast.cost_of(stages_of_a_climb(plan))
        left = event.left + climb * waves + climb * after * (plan.perturbations > 0)
    return replace(event, start=number + 1, seconds=seconds, left=left)
