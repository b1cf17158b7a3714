"""The stages of a search: lengths and model, NNI and SPR rounds, perturbations, a final polish."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np

from plltool.constants import (
    ABANDON_FACTOR,
    ABANDON_MARGIN,
    NNI_EPSILON,
    NNI_SHARE,
    PERTURB,
    STAGE_EPSILON,
    STAGE_SHARE,
    START_EPSILON,
    TUNING_SHARE,
)
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.parameters import optimise_model
from plltool.optimise.polish import polish
from plltool.search.climb import BROAD, NARROW, Breadth, climb_round
from plltool.search.effort import Plan
from plltool.search.progress import Forecast, Listener, Progress
from plltool.search.ratchet import Ratchet
from plltool.search.stopping import StopRule


def planned_stages(plan: Plan) -> list[tuple[str, int]]:
    """The stages of a search, each with its number of rounds, 0 if nobody knows."""
    climb = [("start", 1), ("nni", 0)]
    for _ in plan.radii:
        climb += [("spr", 0), ("model", 1)]
    if plan.broad:
        climb.append(("broad", 0))
    perturb = [(PERTURB, plan.perturbations)] if plan.perturbations else []
    return [*(climb * plan.starts), *perturb, ("polish", 0)]


class TreeSearch:
    """One start tree on its way.

    Attributes
    ----------
    lnl : reached
    marks : lnL after each stage of the climb, to compare other climbs with
    finished : whether the climb has come to its end and was not given up
    settled : whether the plan's rule ended the climb, so that perturbations are not worth while
    """

    def __init__(self, likelihood: TreeLikelihood, plan: Plan, forecast: Forecast, report: Listener):
        self.likelihood = likelihood
        self.plan = plan
        self.lnl = -math.inf
        self.marks: list[float] = []
        self.finished = False
        self.settled = False
        self._forecast = forecast
        self._listener = report

    def climb(self, leader: TreeSearch | None = None) -> None:
        """Climb from the start tree to a local optimum, unless that is given up on the way.

        Lengths and model roughly; NNI rounds; SPR rounds at each radius, the model re-optimised after each, until a
        wider radius than the first gains nothing; if the plan says so, rounds at the last radius that look at more
        insertions. A climb is given up after a stage where it is hopelessly behind `leader`, see `is_hopeless`; it ends
        early where ``plan.stop`` says so.
        """
        stages = self._stages()
        rule, wide_enough = None, False
        for done, stage in enumerate(stages, start=1):
            name, before = stage.args[0], self.lnl
            if wide_enough and name in ("spr", "model"):
                self._forecast.skip(1)
                self.marks.append(self.lnl)
                continue
            self._forecast.begin()
            stage()
            self.marks.append(self.lnl)
            if name == "spr" and stage.args[1] > self.plan.radii[0]:
                wide_enough = self.lnl - before < max(STAGE_EPSILON, STAGE_SHARE * abs(self.lnl))
            if rule is None:
                rule = StopRule(self.plan.stop, self.likelihood)
            elif name != "model" and rule.says_enough():
                self.settled = True
                self._forecast.skip(len(stages) - done)
                self.marks += [self.lnl] * (len(stages) - done)
                break
            if leader is not None and is_hopeless(self.marks, leader.marks):
                self._forecast.skip(len(stages) - done)
                return
        self.finished = True

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

    def begin_stage(self) -> None:
        """Let the forecast know of a stage that others share: that of perturbations."""
        self._forecast.begin()

    def perturb(self, rng: np.random.Generator, done: int = 0) -> int:
        """Steps of the ratchet, until there were ``plan.perturbations`` or ``plan.nstop`` in a row failed.

        `done` of the former have been spent on other trees; returns how many have been spent now.
        """
        if self.settled or done >= self.plan.perturbations:
            return done
        self.likelihood.model_changed()  # the engine may hold another climb's
        self.lnl = smooth(self.likelihood).lnl
        ratchet = Ratchet(self.likelihood, self.lnl, self.plan.radii[-1], rng, self.plan.constraint)
        failures = 0
        try:
            while done < self.plan.perturbations and failures < self.plan.nstop:
                n_moves = ratchet.step()
                failures = 0 if ratchet.lnl - self.lnl >= self.plan.epsilon else failures + 1
                self.lnl = ratchet.lnl
                done += 1
                self._report(PERTURB, done, n_moves)
        finally:
            ratchet.finish()
        return done

    def polish(self) -> None:
        """Lengths and model in turn until neither gains."""

        def report(round_: int, lnl: float) -> None:
            self.lnl = lnl
            self._report("polish", round_)

        self._forecast.begin()
        polish(self.likelihood, groups=None if self.plan.optimise_parameters else (), report=report)

    def _report(self, stage: str, round_: int, moves: int = 0, radius: int = 0) -> None:
        forecast = self._forecast
        left = forecast.left(round_)
        self._listener(Progress(stage, round_, self.lnl, moves, radius, forecast.seconds, forecast.n_rounds, *left))

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
            done = climb_round(self.likelihood, self.lnl, radius, breadth, joints, constraint=self.plan.constraint)
            gain, self.lnl = done.lnl - self.lnl, done.lnl
            self._report(stage, round_, done.n_moves, radius)
            if gain < max(epsilon, share * abs(self.lnl)) or not done.n_moves:
                break
            joints = done.joints


def is_hopeless(marks: list[float], leader: list[float]) -> bool:
    """Whether a climb with these lnL after its first stages cannot be expected to end above the leader's.

    It would have to gain by ABANDON_MARGIN more than ABANDON_FACTOR times what the leader gained from there on.
    """
    final, then = leader[-1], leader[len(marks) - 1]
    return marks[-1] + ABANDON_FACTOR * (final - then) + ABANDON_MARGIN < final
