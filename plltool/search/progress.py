"""What a running search tells whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One event of a search.

    Attributes
    ----------
    stage : "start", "nni", "spr", "model", "broad" or "polish"
    round : counts from 1 within the stage and radius
    lnl : log-likelihood reached
    moves : topological moves accepted in this round
    radius : of the NNI (1) and SPR rounds; 0 elsewhere
    seconds : since the search began
    """

    stage: str
    round: int
    lnl: float
    moves: int
    radius: int
    seconds: float


Listener = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """The listener of a search that nobody watches."""
