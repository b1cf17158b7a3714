"""Several start trees: climb from each, give up hopeless ones, perturb and polish the best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from plltool.constants import PLATEAU_DEPTH
from plltool.engine.shards import AnyEngine
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.driver import Climbed, TreeSearch
from plltool.search.effort import Plan
from plltool.search.progress import Forecast, Listener
from plltool.tree.topology import Tree

_log = logging.getLogger("plltool")


@dataclass(frozen=True, eq=False)
class Found:
    """The best tree and its models, one for each part.

    Attributes
    ----------
    lnls : reached by the climb from each start tree, or by the time it was given up; the winner's after all stages
    interrupted : whether the listener stopped the search
    """

    lnl: float
    tree: Tree
    models: list[Model]
    lnls: tuple[float, ...]
    interrupted: bool


def climb_in_turn(
    start: Callable[[int], Tree],
    models: Sequence[Model],
    engine: AnyEngine,
    plan: Plan,
    forecast: Forecast,
    report: Listener,
) -> Iterator[Climbed]:
    """Climb from each start tree, made when its turn comes, with copies of `models`, until one is interrupted.

    `start` makes start tree `number`, from 0.
    """
    rivals: list[list[float]] = []
    for number in range(plan.starts):
        _log.info("start tree %d of %d", number + 1, plan.starts)
        likelihood = TreeLikelihood(start(number), [model.copy() for model in models], engine)
        climbed = TreeSearch(likelihood, plan, forecast, report).climb(rivals)
        if not climbed.given_up:
            rivals.append(climbed.marks)
        yield climbed
        if climbed.interrupted:
            return


def search_starts(
    climbs: Iterable[Climbed],
    engine: AnyEngine,
    plan: Plan,
    rng: np.random.Generator,
    forecast: Forecast,
    report: Listener,
) -> Found:
    """The best of all climbs, which are made as this asks for them, after perturbations and a polish.

    `rng` is the source of the perturbations; what is left of them when the best climb has come to rest is spent on the
    next best. Climbs that are given up have no say in who wins.
    """
    everyone: list[Climbed] = []

    def search_on(climbed: Climbed) -> TreeSearch:
        return TreeSearch(TreeLikelihood(climbed.tree, climbed.models, engine), plan, forecast, report, climbed.lnl)

    for climbed in climbs:
        everyone.append(climbed)
        if climbed.given_up:
            _log.info("start tree %d given up at lnL %.3f: too far behind", len(everyone), climbed.lnl)
    hopeful = [number for number, climbed in enumerate(everyone) if not climbed.given_up]
    leader = _leader(everyone, hopeful)
    if plan.perturbations and not _interrupted(everyone):
        hopeful.sort(key=lambda number: (number != leader, -everyone[number].lnl))
        forecast.begin()
        done = 0
        for number in hopeful:
            if done < plan.perturbations and not everyone[number].settled and not _interrupted(everyone):
                everyone[number], done = search_on(everyone[number]).perturb(rng, done)
        leader = _leader(everyone, hopeful)
    if _interrupted(everyone):
        leader = max(hopeful, key=lambda number: everyone[number].lnl)
    else:
        everyone[leader] = search_on(everyone[leader]).polish()
    best = everyone[leader]
    return Found(best.lnl, best.tree, best.models, tuple(one.lnl for one in everyone), _interrupted(everyone))


def _leader(climbs: Sequence[Climbed], order: Sequence[int]) -> int:
    """The best in that order; one that is better by less than PLATEAU_DEPTH owes it to convergence."""
    leader = order[0]
    for number in order:
        if climbs[number].lnl > climbs[leader].lnl + PLATEAU_DEPTH:
            leader = number
    return leader


def _interrupted(climbs: Sequence[Climbed]) -> bool:
    return any(climbed.interrupted for climbed in climbs)
