"""Progress reports of a run, the time in which it compiles kernels, and forecasts of how long it takes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

from plltool.constants import FUSE, GENE_STAGE, PERTURB, REPLICATE_STAGE, SAMPLE_STAGE, ULTRAFAST_STAGE

STAGE_COSTS = {  # CPU time on four alignments of 150 to 500 taxa, per cent of a default climb; only for forecasts
    "start": 10.0, "nni": 14.0, "spr": 17.0, "model": 3.0, FUSE: 2.0, PERTURB: 6.0, "polish": 6.0,
}  # fmt: skip
ACTIVITY = "activity"  # an attribute of log records: what starts now; empty if what was before goes on
ROUND_WORDS = {  # what the rounds of a stage are
    REPLICATE_STAGE: "replicate",
    ULTRAFAST_STAGE: "excursion",
    SAMPLE_STAGE: "generation",
    GENE_STAGE: "gene",
}
NOTICEABLE = 1.0  # seconds of compilation from which on a line tells of them

log = logging.getLogger("plltool")  # of every module


@dataclass(frozen=True)
class Move:
    """A subtree that was moved.

    Attributes
    ----------
    subtree : one taxon, or two taxa whose paths meet at the root of the subtree
    branch : the branch that it moved into: one taxon on each side
    gain : gain in lnL that the move promised
    nodes : (4,) the inner node that moved with the subtree, the root of the subtree, and the ends of the branch
    """

    subtree: tuple[str, ...]
    branch: tuple[str, str]
    gain: float
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Progress:
    """One event of a search.

    Attributes
    ----------
    stage : "start", "nni", "spr", "model", "fuse", "perturb" or "polish"; or "bootstrap", whose rounds are replicates,
        "ufboot", whose rounds are excursions, or "sample", whose rounds are generations
    round : counts from 1 within the stage and radius
    lnl : log-likelihood reached
    moves : number of topological moves accepted in this round, or of places that fusing or a perturbation changed
    radius : radius of NNI (1) and SPR rounds; 0 in other stages
    seconds : since the search started
    n_rounds : the most rounds of the stage; 0 if it is not known
    start : number of the start tree, from 1, if several climbs run at the same time; 0 otherwise
    chosen : the accepted moves of NNI and SPR rounds
    stage_left, left : estimated seconds until the stage and the whole search end; None if they cannot be estimated
    """

    stage: str
    round: int
    lnl: float
    moves: int
    radius: int
    seconds: float
    n_rounds: int = 0
    stage_left: float | None = None
    left: float | None = None
    start: int = 0
    chosen: tuple[Move, ...] = ()

    @property
    def name(self) -> str:
        """The stage and, where it tells anything, its radius."""
        return name_stage(self.stage, self.radius)

    @property
    def count(self) -> str:
        """The round and, where it is known, how many there may be: ``replicate 3/100``."""
        word = ROUND_WORDS.get(self.stage, "round")
        return f"{word} {self.round}/{self.n_rounds}" if self.n_rounds > 1 else f"{word} {self.round}"


def name_stage(stage: str, radius: int) -> str:
    """A stage and, where it tells anything, its radius."""
    return f"{stage} radius {radius}" if radius > 1 else stage


Listener = Callable[[Progress], None]


def announce(activity: str) -> None:
    """Log what starts now, so that a handler can show what is running until the next event."""
    log.debug("now: %s", activity, extra={ACTIVITY: activity})


CLOCK = SimpleNamespace(seconds=0.0, told=False)  # in which this process has compiled; whether a line has told of it


@contextmanager
def compiling() -> Iterator[None]:
    """Kernels are compiled in its block, or taken from a cache; this time does not count towards a limit of time."""
    announce("compiling kernels")
    began = time.perf_counter()
    try:
        yield
    finally:
        CLOCK.seconds += time.perf_counter() - began
        log.debug("now: as before", extra={ACTIVITY: ""})
    if CLOCK.seconds >= NOTICEABLE and not CLOCK.told:
        CLOCK.told = True
        log.info("kernels are compiled for this kind of data; later runs take them from a cache")


def ignore(_: Progress) -> None:
    """A listener that does nothing."""


class StopSearch(Exception):  # noqa: N818 - a request, as StopIteration is
    """A listener may raise this: the search then ends, and its best tree so far is the result."""


class StopHere(StopSearch):
    """The same, but the result is the tree of the climb that is stopped, even if an earlier climb has a better one."""


class Forecast:
    """Estimates how long a search takes, from the relative costs of its stages (STAGE_COSTS) and the time so far.

    Only reports depend on it. Stages with a known number of rounds are timed by the round.

    Parameters
    ----------
    stages : the planned stages in order, each with its number of rounds, 0 if it is not known
    """

    def __init__(self, stages: Sequence[tuple[str, int]]):
        self._ahead = list(stages)
        self._now: tuple[str, int] = ("", 0)
        self._rounds_before = 0
        self._cost_done = 0.0
        self._began = self._stage_began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the forecast was made."""
        return time.perf_counter() - self._began

    @property
    def n_rounds(self) -> int:
        """The number of rounds of the current stage, 0 if it is not known."""
        return self._now[1]

    def begin(self, rounds_before: int = 0) -> None:
        """Start the next stage, of which `rounds_before` rounds were made in an earlier run."""
        self._cost_done += self.cost_of([self._now])
        self._rounds_before = rounds_before
        self._now = self._ahead.pop(0)
        self._stage_began = time.perf_counter()

    def skip(self, n_stages: int) -> None:
        """Leave out the next `n_stages` stages."""
        del self._ahead[:n_stages]

    def made_elsewhere(self, n_stages: int, at_once: int) -> None:
        """Count the next `n_stages` stages as done by other processes, `at_once` at a time."""
        self._cost_done += self.cost_of(self._ahead[:n_stages]) / at_once
        self.skip(n_stages)

    def left(self, round_: int) -> tuple[float | None, float | None]:
        """Estimated seconds until the current stage, after this round, and the whole search end."""
        now = time.perf_counter()
        spent = now - self._stage_began
        if self._now[1]:
            a_round = spent / (round_ - self._rounds_before)
            stage_left = a_round * (self._now[1] - round_)
            price = a_round * self._now[1] / self.cost_of([self._now])
        elif self._cost_done:
            price = (self._stage_began - self._began) / self._cost_done
            stage_left = max(0.0, price * self.cost_of([self._now]) - spent)
        else:  # the first stage reports only when it is over
            price, stage_left = spent / self.cost_of([self._now]), 0.0
        return stage_left, stage_left + price * self.cost_of(self._ahead)

    @staticmethod
    def cost_of(stages: Sequence[tuple[str, int]]) -> float:
        """The total cost of stages, in units of STAGE_COSTS."""
        return sum(STAGE_COSTS.get(name, 0.0) * (n_rounds if name == PERTURB else 1) for name, n_rounds in stages)
