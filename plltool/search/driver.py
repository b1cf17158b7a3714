"""The stages of a search: lengths and model, NNI rounds, SPR rounds of growing radius, a final polish."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass

from plltool.constants import (
    NNI_EPSILON,
    SEARCH_RADII,
    STAGE_EPSILON,
    START_EPSILON,
)
from plltool.errors import InputError
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.parameters import optimise_model
from plltool.optimise.polish import polish
from plltool.search.climb import BROAD, NARROW, Breadth, climb_round
from plltool.search.progress import Listener, Progress, ignore
from plltool.search.scan import MAX_RADIUS


@dataclass(frozen=True)
class SearchOptions:
    """How hard to search.

    Attributes
    ----------
    radii : SPR radii, one stage each
    epsilon : lnL gained by a round over the whole tree below which the search ends
    optimise_parameters : whether free model parameters are optimised
    """

    radii: tuple[int, ...] = SEARCH_RADII
    epsilon: float = 0.1
    optimise_parameters: bool = True

    def __post_init__(self) -> None:
        if not self.radii or not all(1 <= radius <= MAX_RADIUS for radius in self.radii):
            raise InputError(f"radii: found {self.radii}, expected at least one, each 1 to {MAX_RADIUS}")
        if not self.epsilon > 0:
            raise InputError(f"epsilon: found {self.epsilon}, expected a positive lnL")


def search_tree(
    likelihood: TreeLikelihood, options: SearchOptions | None = None, report: Listener = ignore
) -> float:
    """Improve the likelihood's tree, branch lengths and models in place.

    Stages: lengths and model roughly; NNI rounds; SPR rounds at each radius, the model re-optimised after each; rounds
    at the last radius that look at more insertions, until one over the whole tree gains less than
    ``options.epsilon``; polish of lengths and model. `report` hears of every round. Returns the final lnL, which
    never falls on the way.
    """
    return _Search(likelihood, options or SearchOptions(), report).run()


class _Search:
    """State of one search: the likelihood, the lnL reached and the clock that only reports read."""

    def __init__(self, likelihood: TreeLikelihood, options: SearchOptions, report: Listener):
        self.likelihood = likelihood
        self.options = options
        self.listener = report
        self.started = time.perf_counter()
        self.lnl = -math.inf

    def run(self) -> float:
        self.tune("start", START_EPSILON)
        self.climb("nni", 1, NARROW, NNI_EPSILON)
        for radius in self.options.radii:
            self.climb("spr", radius, NARROW, STAGE_EPSILON)
            self.tune("model", self.options.epsilon)
        self.climb("broad", self.options.radii[-1], BROAD, self.options.epsilon, to_the_end=True)
        self.polish()
        return self.lnl

    def report(self, stage: str, round_: int, moves: int = 0, radius: int = 0) -> None:
        seconds = time.perf_counter() - self.started
        self.listener(Progress(stage, round_, self.lnl, moves, radius, seconds))

    def tune(self, stage: str, epsilon: float) -> None:
        """Model parameters between two smoothings."""
        self.lnl = smooth(self.likelihood, epsilon).lnl
        if self.options.optimise_parameters and any(model.free_parameters for model in self.likelihood.models):
            optimise_model(self.likelihood, epsilon=epsilon)
            self.lnl = smooth(self.likelihood, epsilon).lnl
        self.report(stage, 1)

    def climb(self, stage: str, radius: int, breadth: Breadth, epsilon: float, to_the_end: bool = False) -> None:
        """Rounds at one radius, each over what the last one changed, until one gains less than `epsilon`.

        Then the next stage looks at the whole tree; the last one does so itself, until that gains too little.
        """
        joints = None
        for round_ in itertools.count(1):
            done = climb_round(self.likelihood, self.lnl, radius, breadth, joints)
            gain, self.lnl = done.lnl - self.lnl, done.lnl
            self.report(stage, round_, done.n_moves, radius)
            if gain >= epsilon:
                joints = done.joints
            elif joints is None or not to_the_end:
                break
            else:
                joints = None

    def polish(self) -> None:
        """Lengths and model in turn until neither gains."""

        def report(round_: int, lnl: float) -> None:
            self.lnl = lnl
            self.report("polish", round_)

        polish(self.likelihood, groups=None if self.options.optimise_parameters else (), report=report)
