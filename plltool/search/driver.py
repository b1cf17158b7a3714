"""The stages of a search: lengths and model, NNI and SPR rounds, perturbations, a final polish."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from plltool.constants import (
    ABANDON_FACTOR,
    ABANDON_MARGIN,
    ABANDON_STAGES,
    NNI_EPSILON,
    NNI_SHARE,
    PERTURB,
    STAGE_EPSILON,
    STAGE_SHARE,
    START_EPSILON,
    TUNING_SHARE,
)
from plltool.model.model import Model
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.parameters import optimise_model
from plltool.optimise.polish import polish
from plltool.search.climb import BROAD, NARROW, Breadth, climb_round
from plltool.search.effort import Plan
from plltool.search.progress import Forecast, Listener, Move, Progress, StopSearch
from plltool.search.ratchet import Ratchet
from plltool.search.stopping import StopRule
from plltool.tree.topology import Tree


def planned_stages(plan: Plan) -> list[tuple[str, int]]:
    """The stages of a search, each with its number of rounds, 0 if nobody knows."""
    climb = [("start", 1), ("nni", 0)]
    for _ in plan.radii:
        climb += [("spr", 0), ("model", 1)]
    if plan.broad:
        climb.append(("broad", 0))
    perturb = [(PERTURB, plan.perturbations)] if plan.perturbations else []
    return [*(climb * plan.starts), *perturb, ("polish", 0)]


@dataclass(frozen=True, eq=False)
class Climbed:
    """How far the search from one start tree came, apart from any engine.

    Attributes
    ----------
    tree, models : reached
    lnl : reached
    marks : lnL after each stage of the climb, to compare other climbs with
    settled : whether the plan's rule ended the climb, so that perturbations are not worth while
    given_up : whether it fell hopelessly behind an earlier climb; lnL and marks are those of that stage
    interrupted : whether the listener stopped it
    """

    tree: Tree
    models: list[Model]
    lnl: float
    marks: list[float]
    settled: bool = False
    given_up: bool = False
    interrupted: bool = False

    def judge(self, rivals: Sequence[Sequence[float]]) -> Climbed:
        """The same, given up where it fell hopelessly behind one of `rivals`, whether or not it climbed on."""
        hopeful = stages_with_hope(self.marks, rivals)
        if hopeful == len(self.marks):
            return self
        return replace(self, lnl=self.marks[hopeful], marks=self.marks[: hopeful + 1], given_up=True)


class TreeSearch:
    """One start tree on its way.

    Attributes
    ----------
    lnl : reached
    """

    def __init__(
        self, likelihood: TreeLikelihood, plan: Plan, forecast: Forecast, report: Listener, lnl: float = -math.inf
    ):
        self.likelihood = likelihood
        self.plan = plan
        self.lnl = lnl
        self._forecast = forecast
        self._listener = report

    def climb(self, rivals: Sequence[Sequence[float]] = ()) -> Climbed:
        """Climb from the start tree to a local optimum, unless that is given up on the way.

        Lengths and model roughly; NNI rounds; SPR rounds at each radius, the model re-optimised after each, until a
        wider radius than the first gains nothing; if the plan says so, rounds at the last radius that look at more
        insertions. A climb is given up after a stage where it is hopelessly behind one of `rivals`, the marks of
        earlier climbs, see `stages_with_hope`; it ends early where ``plan.stop`` says so.
        """
        stages = self._stages()
        marks: list[float] = []
        settled = wide_enough = False
        rule = None
        for done, stage in enumerate(stages, start=1):
            name, before = stage.args[0], self.lnl
            if wide_enough and name in ("spr", "model"):
                self._forecast.skip(1)
            else:
                self._forecast.begin()
                try:
                    stage()
                except StopSearch:
                    return self._climbed(marks, interrupted=True)
                if name == "spr" and stage.args[1] > self.plan.radii[0]:
                    wide_enough = self.lnl - before < max(STAGE_EPSILON, STAGE_SHARE * abs(self.lnl))
                settled = rule is not None and name != "model" and rule.says_enough()
                rule = rule or StopRule(self.plan.stop, self.likelihood)
            marks.append(self.lnl)
            if settled or stages_with_hope(marks, rivals) < done:
                self._forecast.skip(len(stages) - done)
                marks += [self.lnl] * (len(stages) - done)
                break
        return self._climbed(marks, settled=settled).judge(rivals)

    def _climbed(self, marks: list[float], **how: bool) -> Climbed:
        return Climbed(self.likelihood.tree, self.likelihood.models, self.lnl, marks, **how)

    def _stages(self) -> list[partial[None]]:
        """The stages of a climb; the first argument of each is its name."""
        epsilon, rounds = self.plan.epsilon, self._rounds
        stages = [partial(self._tune, "start", START_EPSILON)]
        stages.append(partial(rounds, "nni", 1, NARROW, NNI_EPSILON, NNI_SHARE))
        for radius in self.plan.radii:
            stages.append(partial(rounds, "spr", radius, NARROW, STAGE_EPSILON, STAGE_SHARE))
            stages.append(partial(self._tune, "model", epsilon))
        if self.plan.broad:
            stages.append(partial(rounds, "broad", self.plan.radii[-1], BROAD, epsilon))
        return stages

    def perturb(self, rng: np.random.Generator, done: int = 0) -> tuple[Climbed, int]:
        """Steps of the ratchet, until there were ``plan.perturbations`` or ``plan.nstop`` in a row failed.

        `done` of the former have been spent on other trees; also returns how many have been spent now.
        """
        self.lnl = smooth(self.likelihood).lnl
        ratchet = Ratchet(self.likelihood, self.lnl, self.plan.radii[-1], rng)
        failures, interrupted = 0, False
        try:
            while done < self.plan.perturbations and failures < self.plan.nstop:
                moves = ratchet.step()
                failures = 0 if ratchet.lnl - self.lnl >= self.plan.epsilon else failures + 1
                self.lnl = ratchet.lnl
                done += 1
                self._report(PERTURB, done, moves)
        except StopSearch:
            interrupted = True
        ratchet.finish()
        return self._climbed([], interrupted=interrupted), done

    def polish(self) -> Climbed:
        """Lengths and model in turn until neither gains."""

        def report(round_: int, lnl: float) -> None:
            self.lnl = lnl
            self._report("polish", round_)

        self._forecast.begin()
        try:
            polish(self.likelihood, groups=None if self.plan.optimise_parameters else (), report=report)
        except StopSearch:
            return self._climbed([], interrupted=True)
        return self._climbed([])

    def _report(self, stage: str, round_: int, moves: tuple[Move, ...] = (), radius: int = 0) -> None:
        forecast = self._forecast
        left = forecast.left(round_)
        times = (forecast.seconds, forecast.n_rounds, *left)
        self._listener(Progress(stage, round_, self.lnl, len(moves), radius, *times, chosen=moves))

    def _tune(self, stage: str, epsilon: float) -> None:
        """Model parameters between two smoothings."""
        self.lnl = smooth(self.likelihood, epsilon).lnl
        if self.plan.optimise_parameters and any(model.free_parameters for model in self.likelihood.models):
            optimise_model(self.likelihood, epsilon=epsilon)
            before, self.lnl = self.lnl, smooth(self.likelihood, epsilon).lnl
            while stage == "model" and self.lnl - before > TUNING_SHARE * abs(self.lnl):
                optimise_model(self.likelihood, epsilon=epsilon)
                before, self.lnl = self.lnl, smooth(self.likelihood, epsilon).lnl
        self._report(stage, 1)

    def _rounds(self, stage: str, radius: int, breadth: Breadth, epsilon: float, share: float = 0.0) -> None:
        """Rounds at one radius, over the whole tree and then each over what the last one changed.

        The stage ends with a round that gains less than `epsilon` or `share` of lnL; the next stage looks at the whole
        tree again. After the last one nobody does: that has hardly ever gained anything.
        """
        joints = None
        for round_ in itertools.count(1):
            done = climb_round(self.likelihood, self.lnl, radius, breadth, joints)
            gain, self.lnl = done.lnl - self.lnl, done.lnl
            self._report(stage, round_, done.chosen, radius)
            if gain < max(epsilon, share * abs(self.lnl)) or not done.n_moves:
                break
            joints = done.joints


def stages_with_hope(marks: Sequence[float], rivals: Sequence[Sequence[float]]) -> int:
    """After how many stages a climb with these lnL may still be expected to end above each of its rivals.

    There is no hope if it has to gain by ABANDON_MARGIN more than ABANDON_FACTOR times what the rival gained from that
    stage on. The first ABANDON_STAGES tell nothing: what NNI leaves a climb behind with, SPR often makes up for.
    """
    for stage, lnl in enumerate(marks[ABANDON_STAGES:], start=ABANDON_STAGES):
        for rival in rivals:
            if lnl + ABANDON_FACTOR * (rival[-1] - rival[stage]) + ABANDON_MARGIN < rival[-1]:
                return stage
    return len(marks)
