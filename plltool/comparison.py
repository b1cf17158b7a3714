"""The same search twice, on two of device, precision and vector width, and where the two part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from plltool.alignment.patterns import compress
from plltool.api import SearchOptions, SearchResult, search
from plltool.constants import COMPARE_TOLERANCE, DEFAULT_SEED
from plltool.hardware import Hardware
from plltool.search.progress import Listener, Progress, ignore
from plltool.session import AlignmentLike, ModelLike, TreeLike, plan_memory, pose
from plltool.tree.splits import rf_distance


@dataclass(frozen=True, eq=False)
class Run:
    """One of the two searches.

    Attributes
    ----------
    result : what it found
    trace : every round, in order
    """

    result: SearchResult
    trace: tuple[Progress, ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two searches from one start tree.

    Attributes
    ----------
    a, b : the two
    tolerance : lnL by which they may differ
    """

    a: Run
    b: Run
    tolerance: float

    @property
    def rf(self) -> int:
        """Robinson-Foulds distance of the final trees."""
        return rf_distance(self.a.result.tree, self.b.result.tree)

    @property
    def difference(self) -> float:
        """Final lnL of b less that of a."""
        return self.b.result.lnl - self.a.result.lnl

    @property
    def agree(self) -> bool:
        """Whether topologies are the same and the final lnL differs by no more than the tolerance."""
        return self.rf == 0 and abs(self.difference) <= self.tolerance

    def rows(self) -> Iterator[tuple[Progress | None, Progress | None]]:
        """The rounds of both side by side; None where one search has ended."""
        return zip_longest(self.a.trace, self.b.trace)

    def rounds_differ(self, a: Progress | None, b: Progress | None) -> bool:
        """Whether two rounds are not the same one, or their lnL differs by more than the tolerance."""
        if a is None or b is None:
            return True
        return (a.stage, a.round, a.radius) != (b.stage, b.round, b.radius) or abs(a.lnl - b.lnl) > self.tolerance

    @property
    def first_difference(self) -> int | None:
        """The index of the first row in which the two differ; None if there is none."""
        return next((index for index, row in enumerate(self.rows()) if self.rounds_differ(*row)), None)

    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The comparison as strings, numbers, lists and dictionaries; `a` and `b` as `Result.as_record`."""
        return {
            "agree": self.agree,
            "rf": self.rf,
            "difference": self.difference,
            "tolerance": self.tolerance,
            "first_difference": self.first_difference,
            "a": self.a.result.as_record(command),
            "b": self.b.result.as_record(command),
            "trace_a": [asdict(event) for event in self.a.trace],
            "trace_b": [asdict(event) for event in self.b.trace],
        }


def compare(
    alignment: AlignmentLike,
    a: Hardware,
    b: Hardware,
    *,
    model: ModelLike | None = None,
    start: TreeLike = "parsimony",
    seed: int = DEFAULT_SEED,
    tolerance: float = COMPARE_TOLERANCE,
    options: SearchOptions | None = None,
    listener: Listener = ignore,
) -> Comparison:
    """Run one search on two machines or engines; parameters and errors as in `plltool.api.search`."""
    data, models = pose(alignment, model)
    patterns = [compress(part) for part in data.alignments]
    for hardware in (a, b):  # a device that is not there is refused before anything runs
        plan_memory(patterns, models, hardware)
    runs = []
    for hardware in (a, b):
        trace: list[Progress] = []

        def listen(event: Progress, trace: list[Progress] = trace) -> None:
            trace.append(event)
            listener(event)

        result = search(data, models, seed=seed, start=start, options=options, listener=listen, **asdict(hardware))
        runs.append(Run(result, tuple(trace)))
    return Comparison(runs[0], runs[1], tolerance)
