"""Several start trees: climb from each, give up hopeless ones, perturb and polish the best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plltool.constants import PLATEAU_DEPTH
from plltool.engine.base import Engine
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.driver import TreeSearch, planned_stages
from plltool.search.effort import Plan
from plltool.search.progress import Forecast, Listener, StopSearch
from plltool.tree.topology import Tree

_log = logging.getLogger("plltool")


@dataclass(frozen=True, eq=False)
class Found:
    """The best tree and its model.

    Attributes
    ----------
    lnls : reached by the climb from each start tree, or by the time it was given up; the winner's after all stages
    interrupted : whether the listener stopped the search
    """

    lnl: float
    tree: Tree
    model: Model
    lnls: tuple[float, ...]
    interrupted: bool


def search_starts(
    starts: Sequence[Callable[[], Tree]],
    model: Model,
    engine: Engine,
    plan: Plan,
    rng: np.random.Generator,
    report: Listener,
) -> Found:
    """Search from each start tree, made when its turn comes, with a copy of `model`.

    The first of the best climbs is perturbed, `rng` being the source of that, and polished. Which one wins does not
    depend on those that are given up.
    """
    forecast = Forecast(planned_stages(plan))
    climbs: list[TreeSearch] = []
    leader: TreeSearch | None = None
    interrupted = False
    try:
        for number, make_tree in enumerate(starts, start=1):
            _log.info("start tree %d of %d", number, len(starts))
            likelihood = TreeLikelihood(make_tree(), [model.copy()], engine)
            climbs.append(TreeSearch(likelihood, plan, forecast, report))
            if not climbs[-1].climb(leader):
                _log.info("start tree %d given up at lnL %.3f: too far behind", number, climbs[-1].lnl)
            elif leader is None or climbs[-1].lnl > leader.lnl + PLATEAU_DEPTH:  # less is a matter of convergence
                leader = climbs[-1]
        assert leader is not None, "the first climb is never given up"
        leader.likelihood.model_changed()  # the engine holds the last climb's
        leader.perturb(rng)
        leader.polish()
    except StopSearch:
        interrupted = True
        leader = max(climbs, key=lambda climb: climb.lnl)
    lnls = tuple(climb.lnl for climb in climbs)
    return Found(leader.lnl, leader.likelihood.tree, leader.likelihood.models[0], lnls, interrupted)
