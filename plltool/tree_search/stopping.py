"""What ends a climb early: rules about what its last stage changed, and the end of a limited time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.constants import PERTURB
from plltool.optimise.likelihood import TreeLikelihood
from plltool.progress import CLOCK, Forecast
from plltool.tree.splits import rf_distance
from plltool.tree.topology import Tree

KH_QUANTILE = 1.645  # of the standard normal distribution: gains with a one-sided p-value below 5 % count
RF_SHARE = 0.01  # of the inner branches that a stage of a climb must change (RAxML's -D)

Memory = npt.NDArray[Any]


@dataclass(eq=False)
class StopRule:
    """Compares the tree after each stage with the tree of the stage before.

    "epsilon" never ends a climb before its last stage; "rf" ends it after a stage that changed at most RF_SHARE of the
    inner branches (RAxML's -D); "kh" after a stage whose gain may be due to chance, see `is_significant`. The `memory`
    of the last stage is for "rf" the ends of the branches, and for "kh" the lnL of each pattern.
    """

    rule: str
    likelihood: TreeLikelihood
    memory: Memory | None = None

    def says_enough(self) -> bool:
        """Whether the stage that has just ended should be the last one; never true after the first stage."""
        before, likelihood = self.memory, self.likelihood
        tree = likelihood.tree
        if self.rule == "rf":
            self.memory = tree.ends.copy()
            least = RF_SHARE * 2 * (tree.n_taxa - 3)
            return before is not None and rf_distance(Tree.from_edges(tree.names, before), tree) <= least
        if self.rule == "kh":
            self.memory = likelihood.site_lnl()
            return before is not None and not is_significant(before, self.memory, likelihood.engine.weights)
        return False


class Deadline(Forecast):
    """The end of a search that may take `limit` seconds, without those in which kernels are compiled, and its forecast.

    A perturbation is expected to take as long as the longest one before, a round of a climb likewise, and the polish at
    the end as long as the first stage of a climb, which also optimises lengths and model.
    """

    def __init__(self, limit: float, began: float):
        super().__init__(())
        self.limit = limit
        self._began = began - CLOCK.seconds
        self._used_before = 0.0
        self._step_ended = 0.0
        self._longest: dict[str, float] = {}  # steps of each kind
        self._step = self._polish = 0.0  # expected

    def resume(self, used: float) -> None:
        """Count what the search had used when the state was saved from which it goes on, in this process or another."""
        self._used_before = max(0.0, used - self._elapsed)
        self._step_ended = self.seconds

    def end_step(self, stage: str) -> None:
        """Note that a step of a stage has ended, and another one begins."""
        took, self._step_ended = self.seconds - self._step_ended, self.seconds
        kind = PERTURB if stage == PERTURB else ""
        self._step = self._longest[kind] = max(took, self._longest.get(kind, 0.0))
        if stage == "start":
            self._polish = max(self._polish, took)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning, including earlier processes."""
        return self._used_before + self._elapsed

    @property
    def seconds_left(self) -> float:
        """Negative if it is too late."""
        return self.limit - self.seconds

    @property
    def is_due(self) -> bool:
        """Whether another step would leave too little time for the polish."""
        return self.seconds_left <= self._step + self._polish

    def begin(self, rounds_before: int = 0) -> None:
        """Start another stage; how many there will be is not known."""

    def left(self, round_: int) -> tuple[float | None, float | None]:
        """The end of a stage cannot be foreseen; the search ends at the deadline."""
        return None, max(0.0, self.seconds_left)

    @property
    def _elapsed(self) -> float:
        return time.perf_counter() - CLOCK.seconds - self._began


def is_significant(before: FloatArray, after: FloatArray, weights: FloatArray) -> bool:
    """Whether the gain in lnL exceeds KH_QUANTILE standard errors of itself (Kishino & Hasegawa 1989).

    `before` and `after` (n_patterns,) are lnL of each pattern on the two trees; sites are treated as independent draws.
    """
    n_sites = float(weights.sum())
    difference = after - before
    gain = float(weights @ difference)
    variance = float(weights @ (difference - gain / n_sites) ** 2) / max(1.0, n_sites - 1)
    return gain > KH_QUANTILE * math.sqrt(n_sites * variance)
