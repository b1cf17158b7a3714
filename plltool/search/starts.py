"""Several start trees: climb from each, give up hopeless ones, perturb and polish the best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from plltool.constants import PLATEAU_DEPTH
from plltool.engine.shards import AnyEngine
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.driver import TreeSearch, planned_stages
from plltool.search.effort import Plan
from plltool.search.progress import Forecast, Listener, StopSearch
from plltool.search.state import State, Store
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


def search_starts(
    starts: Sequence[Callable[[], Tree]],
    models: Sequence[Model],
    engine: AnyEngine,
    plan: Plan,
    rng: np.random.Generator,
    report: Listener,
    store: Store | None = None,
) -> Found:
    """Search from each start tree, made when its turn comes, with copies of `models`.

    The best climb is perturbed, `rng` being the source of that; what is left of the perturbations when it has come to
    rest is spent on the next best. The winner is polished. Climbs that are given up have no say in who wins.

    What `store` has of a search of the same data with the same plan, it goes on with; it is told of every state.
    """
    forecast = Forecast(planned_stages(plan))
    climbs: list[TreeSearch] = []
    leader: TreeSearch | None = None
    interrupted = False
    try:
        for number, make_tree in enumerate(starts, start=1):
            _log.info("start tree %d of %d", number, len(starts))
            name = f"climb-{number}"
            saved = store.load(name) if store else None
            state = State.unpack(saved, models) if saved else State(make_tree(), [model.copy() for model in models])
            save = partial(store.save, name) if store else None
            likelihood = TreeLikelihood(state.tree, state.models, engine)
            climbs.append(TreeSearch(likelihood, plan, forecast, report, state.cursor, save))
            climbs[-1].climb(leader)
            if not climbs[-1].finished:
                _log.info("start tree %d given up at lnL %.3f: too far behind", number, climbs[-1].lnl)
            elif leader is None or climbs[-1].marks[-1] > leader.marks[-1] + PLATEAU_DEPTH:  # less is chance
                leader = climbs[-1]
        assert leader is not None, "the first climb is never given up"
        leader = _perturb(plan, [climb for climb in climbs if climb.finished], leader, rng)
        leader.likelihood.model_changed()  # the engine may hold another climb's
        leader.polish()
    except StopSearch:
        interrupted = True
        leader = max(climbs, key=lambda climb: climb.lnl)
    lnls = tuple(climb.lnl for climb in climbs)
    return Found(leader.lnl, leader.likelihood.tree, leader.likelihood.models, lnls, interrupted)


def _perturb(plan: Plan, climbs: list[TreeSearch], leader: TreeSearch, rng: np.random.Generator) -> TreeSearch:
    """Perturb the leader and then other climbs, best first, as long as perturbations last; returns the new leader."""
    if not plan.perturbations:
        return leader
    leader.begin_perturbations()
    done = 0
    others = [climb for climb in climbs if climb is not leader]
    for climb in [leader, *sorted(others, key=lambda climb: -climb.marks[-1])]:
        done = climb.perturb(rng, done)
        if climb.rest_lnl > leader.rest_lnl + PLATEAU_DEPTH:
            leader = climb
    return leader
