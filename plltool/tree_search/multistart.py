"""Searches from several start trees: climb from each, fuse the best with the others, perturb and polish it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plltool.constants import PLATEAU_DEPTH
from plltool.engine.shards import AnyEngine
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.topology import Tree
from plltool.tree_search.effort import SearchPlan
from plltool.tree_search.progress import Forecast, Listener
from plltool.tree_search.stages import TreeSearch
from plltool.tree_search.state import ClimbStarts, ClimbState

_log = logging.getLogger("plltool")


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """The best tree with its models, one per part.

    Attributes
    ----------
    lnls : lnL of the climb from each start tree at its end, or when it was given up; for the winner, after all stages
    interrupted : whether the listener stopped the search
    """

    lnl: float
    tree: Tree
    models: list[Model]
    lnls: tuple[float, ...]
    interrupted: bool


def climb_in_turn(
    starts: ClimbStarts, engine: AnyEngine, plan: SearchPlan, forecast: Forecast, report: Listener
) -> Iterator[ClimbState]:
    """Climb from one start tree after the other, each made when needed, until a climb is interrupted."""
    rivals: list[Sequence[float]] = []
    for number in range(plan.starts):
        _log.info("start tree %d of %d", number + 1, plan.starts)
        climbed = search_on(number, starts.begin(number), starts, engine, plan, forecast, report).climb(rivals)
        if not climbed.cursor.given_up:
            rivals.append(climbed.cursor.marks)
        yield climbed
        if climbed.interrupted:
            return


def search_on(
    number: int,
    state: ClimbState,
    starts: ClimbStarts,
    engine: AnyEngine,
    plan: SearchPlan,
    forecast: Forecast,
    report: Listener,
) -> TreeSearch:
    """The search from start tree `number`, continued from `state`."""
    likelihood = TreeLikelihood(state.tree, state.models, engine)
    return TreeSearch(likelihood, plan, forecast, report, state.cursor, starts.saver(number))


def search_starts(
    climbs: Iterable[ClimbState],
    starts: ClimbStarts,
    engine: AnyEngine,
    plan: SearchPlan,
    rng: np.random.Generator,
    forecast: Forecast,
    report: Listener,
) -> SearchOutcome:
    """The best of all climbs, fused with the others, after perturbations and a polish.

    The climbs are made as they are drawn from `climbs`. `rng` is the source of the perturbations. If the best climb
    does not use all of them, the next best gets the rest. Climbs that were given up play no part. What an earlier run
    has fused, perturbed or polished is not repeated.
    """
    everyone: list[ClimbState] = []

    def go_on(number: int) -> TreeSearch:
        return search_on(number, everyone[number], starts, engine, plan, forecast, report)

    for climbed in climbs:
        everyone.append(climbed)
        if climbed.cursor.given_up:
            _log.info("start tree %d given up at lnL %.3f: too far behind", len(everyone), climbed.lnl)
    hopeful = [number for number, climbed in enumerate(everyone) if not climbed.cursor.given_up]
    leader = _leader([one.climb_lnl for one in everyone], hopeful)
    hopeful.sort(key=lambda number: (number != leader, -everyone[number].climb_lnl))
    if plan.starts > 1 and not _interrupted(everyone):
        forecast.begin(everyone[leader].cursor.fused)
        everyone[leader] = go_on(leader).fuse([everyone[number].tree for number in hopeful[1:]])
    if plan.perturbations and not _interrupted(everyone):
        forecast.begin(max(one.cursor.spent or 0 for one in everyone))
        done = 0
        for number in hopeful:
            if done < plan.perturbations and not everyone[number].cursor.settled and not _interrupted(everyone):
                everyone[number], done = go_on(number).perturb(rng, done)
        leader = _leader([one.rest_lnl for one in everyone], hopeful)
    if _interrupted(everyone):
        leader = max(hopeful, key=lambda number: everyone[number].lnl)
    else:
        everyone[leader] = go_on(leader).polish()
    best = everyone[leader]
    return SearchOutcome(best.lnl, best.tree, best.models, tuple(one.lnl for one in everyone), _interrupted(everyone))


def _leader(lnls: Sequence[float], order: Sequence[int]) -> int:
    """The first of the best in that order; differences below PLATEAU_DEPTH are left over from convergence."""
    leader = order[0]
    for number in order:
        if lnls[number] > lnls[leader] + PLATEAU_DEPTH:
            leader = number
    return leader


def _interrupted(climbs: Sequence[ClimbState]) -> bool:
    return any(climbed.interrupted for climbed in climbs)
