"""What a running search tells whoever listens, and how it foretells its end."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plltool.constants import PERTURB, STAGE_COSTS

ACTIVITY = "activity"  # attribute of log records, see `announce`

_log = logging.getLogger("plltool")


@dataclass(frozen=True)
class Move:
    """A subtree that was moved.

    Attributes
    ----------
    subtree : one taxon, or two whose paths meet at its root
    branch : where it went: a taxon on either side of the branch
    gain : lnL that the move promised
    nodes : (4,) the inner node that moved along, the subtree's root, and the ends of the branch
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
    stage : "start", "nni", "spr", "model", "broad", "perturb" or "polish"; "bootstrap" and "ufboot", whose rounds are
        replicates and excursions
    round : counts from 1 within the stage and radius
    lnl : log-likelihood reached
    moves : topological moves accepted in this round
    radius : of the NNI (1) and SPR rounds; 0 elsewhere
    seconds : since the search began
    n_rounds : that the stage has at most; 0 where nobody knows
    start : number of the start tree, from 1, where several are climbed at the same time; 0 elsewhere
    chosen : those moves
    stage_left, left : about how many seconds the stage and the whole search still take; None where nobody knows
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
        return f"{self.stage} radius {self.radius}" if self.radius > 1 else self.stage


Listener = Callable[[Progress], None]


def announce(activity: str) -> None:
    """Log what is about to be done: a handler may want to know what takes so long before the next event."""
    _log.debug("now: %s", activity, extra={ACTIVITY: activity})


def ignore(_: Progress) -> None:
    """The listener of a search that nobody watches."""


class Trace:
    """Keeps what a listener hears."""

    def __init__(self, listener: Listener = ignore):
        self._listener = listener
        self._heard: list[Progress] = []

    def hear(self, event: Progress) -> None:
        """The listener that is to be given to the search."""
        self._heard.append(event)
        self._listener(event)

    def in_order(self) -> tuple[Progress, ...]:
        """The events of climbs that went on at the same time one after another, then those that the climbs share."""
        return tuple(sorted(self._heard, key=lambda event: event.start or math.inf))


class StopSearch(Exception):  # noqa: N818 - a request, as StopIteration is
    """Raised by a listener: the search ends, and its best tree so far is the result."""


class Forecast:
    """Foretells how long a search takes, from what its stages cost one another (STAGE_COSTS) and the time spent so far.

    Nothing but reports depends on it. Stages whose number of rounds is known are timed by the round.

    Parameters
    ----------
    stages : all that are planned, in order, each with its number of rounds, 0 if nobody knows
    """

    def __init__(self, stages: Sequence[tuple[str, int]]):
        self._ahead = list(stages)
        self._now: tuple[str, int] = ("", 0)
        self._rounds_before = 0
        self._cost_done = 0.0
        self._began = self._stage_began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the forecast was made."""
        return time.perf_counter() - self._began

    @property
    def n_rounds(self) -> int:
        """Of the present stage."""
        return self._now[1]

    def begin(self, rounds_before: int = 0) -> None:
        """The next stage begins, or goes on after rounds that were made before."""
        self._cost_done += self._cost(self._now)
        self._rounds_before = rounds_before
        self._now = self._ahead.pop(0)
        self._stage_began = time.perf_counter()

    def skip(self, n_stages: int) -> None:
        """So many stages will not be made."""
        del self._ahead[:n_stages]

    def made_elsewhere(self, n_stages: int, at_once: int) -> None:
        """The next so many stages have been made, several at a time, by others."""
        self._cost_done += self.cost_of(self._ahead[:n_stages]) / at_once
        self.skip(n_stages)

    def left(self, round_: int) -> tuple[float | None, float | None]:
        """Seconds that the present stage, after that round, and the whole search still take."""
        now = time.perf_counter()
        spent = now - self._stage_began
        if self._now[1]:
            a_round = spent / (round_ - self._rounds_before)
            stage_left = a_round * (self._now[1] - round_)
            price = a_round * self._now[1] / self._cost(self._now)
        elif self._cost_done:
            price = (self._stage_began - self._began) / self._cost_done
            stage_left = max(0.0, price * self._cost(self._now) - spent)
        else:  # the first stage reports when it is over
            price, stage_left = spent / self._cost(self._now), 0.0
        return stage_left, stage_left + price * self.cost_of(self._ahead)

    @classmethod
    def cost_of(cls, stages: Sequence[tuple[str, int]]) -> float:
        """What stages cost together, in units of STAGE_COSTS."""
        return sum(map(cls._cost, stages))

    @staticmethod
    def _cost(stage: tuple[str, int]) -> float:
        name, n_rounds = stage
        return STAGE_COSTS.get(name, 0.0) * (n_rounds if name == PERTURB else 1)
