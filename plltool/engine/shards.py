"""Several engines that answer as one: parts of different shape lie in different *shards*.

All parts of an engine have the same number of states and of components. Parts that differ in either go to different
engines, one for each shape. Every request goes to all engines, and the answers are put together in the order of the
parts, so callers need not know about shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias, cast

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine.ascertained import AscertainedClas, AscertainedEngine
from plltool.engine.base import Engine, Parts
from plltool.engine.categories import CategoryClas, CategoryEngine
from plltool.engine.counters import Counters
from plltool.engine.group import EngineGroup
from plltool.engine.layout import Layout
from plltool.engine.prepared import PreparedClas
from plltool.engine.program import Request
from plltool.engine.requests import Requests, of_parts

OneShape: TypeAlias = Engine | CategoryEngine | AscertainedEngine  # of parts
ClasOfOneShape: TypeAlias = PreparedClas | CategoryClas | AscertainedClas


class Shards(EngineGroup[OneShape]):
    """Engines for the parts of one alignment; requests and errors are those of `Engine`.

    Parameters
    ----------
    engines : one for each shape of parts
    members : for each engine the numbers of its parts, ascending; all together 0 .. n_parts - 1

    Attributes
    ----------
    n_parts : parts of all engines
    """

    def __init__(self, engines: Sequence[OneShape], members: Sequence[Sequence[int]]):
        super().__init__(engines)
        self._members = [np.array(parts, dtype=np.intp) for parts in members]
        self.n_parts = sum(len(parts) for parts in members)
        sizes = np.zeros(self.n_parts, dtype=np.intp)
        for parts, engine in zip(self._members, engines, strict=True):
            sizes[parts] = engine.part_patterns
        ends = np.cumsum(sizes)
        self._patterns = [  # the patterns of each engine, numbered among those of all parts
            np.concatenate([np.arange(ends[part] - sizes[part], ends[part]) for part in parts])
            for parts in self._members
        ]

    def _shards(self) -> Iterator[tuple[OneShape, IndexArray, IndexArray]]:
        """Each engine, its parts and its patterns."""
        return zip(self.engines, self._members, self._patterns, strict=True)

    # --- what they are --------------------------------------------------------------------------------------

    @property
    def part_patterns(self) -> tuple[int, ...]:
        """Patterns of each part."""
        sizes = np.zeros(self.n_parts, dtype=np.intp)
        for engine, parts, _ in self._shards():
            sizes[parts] = engine.part_patterns
        return tuple(sizes.tolist())

    def describe(self) -> dict[str, object]:
        """What a result file records of the layouts."""
        shards = zip(self.engines, self._members, strict=True)
        return {"shards": [engine.describe() | {"parts": parts.tolist()} for engine, parts in shards]}

    # --- models and weights ---------------------------------------------------------------------------------

    def set_model(self, parts: Parts) -> None:
        """Use one model per part from now on."""
        for engine, members, _ in self._shards():
            engine.set_model([parts[part] for part in members])

    @property
    def weights(self) -> FloatArray:
        """float64 (n_patterns,), in use."""
        weights = np.empty(self.n_patterns)
        for engine, _, patterns in self._shards():
            weights[patterns] = engine.weights
        return weights

    def set_weights(self, weights: FloatArray) -> None:
        """Use other pattern weights from now on, float64 (n_patterns,)."""
        for engine, _, patterns in self._shards():
            engine.set_weights(weights[patterns])

    # --- requests -------------------------------------------------------------------------------------------

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Sums over the patterns of each part (n_parts, n_values); see `Requests.execute`."""
        values = np.empty((self.n_parts, request.n_values))
        for engine, parts, _ in self._shards():
            values[parts] = engine.execute(request.of_parts(parts), of_parts(lengths, parts))
        return values

    def execute_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> list[FloatArray]:
        """See `Engine.execute_shaped`."""
        values = [np.empty(0)] * self.n_parts
        for engine, parts, _ in self._shards():
            make_own = partial(_make_for, make, parts)
            for part, row in zip(parts, engine.execute_shaped(make_own, of_parts(lengths, parts)), strict=True):
                values[part] = row
        return values

    def likelihoods(
        self, operations: IntArray, edge: tuple[int, int, int], lengths: FloatArray, models: Sequence[Parts]
    ) -> FloatArray:
        """lnL (n_models, n_parts) under each of several models; see `Engine.likelihoods`."""
        values = np.empty((len(models), self.n_parts))
        for engine, parts, _ in self._shards():
            own = [[model[part] for part in parts] for model in models]
            values[:, parts] = engine.likelihoods(operations, edge, of_parts(lengths, parts), own)
        return values

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        values = np.empty((request.n_values, self.n_patterns))
        for engine, parts, patterns in self._shards():
            values[:, patterns] = engine.execute_sites(request.of_parts(parts), of_parts(lengths, parts))
        return values

    def prepare(self, operations: IntArray, lengths: FloatArray) -> ShardedClas:
        """CLAs for later requests; see `Engine.prepare`."""
        prepared = [engine.prepare(operations, of_parts(lengths, parts)) for engine, parts, _ in self._shards()]
        return ShardedClas(prepared, self._members, self._patterns, lengths)


class ShardedClas(Requests):
    """CLAs of all shards; see `PreparedClas`."""

    def __init__(
        self,
        prepared: Sequence[ClasOfOneShape],
        members: Sequence[IndexArray],
        patterns: Sequence[IndexArray],
        lengths: FloatArray,
    ):
        self._prepared = list(prepared)
        self._members = members
        self._patterns = patterns
        self.lengths = np.array(lengths, dtype=np.float64)
        self.n_parts = sum(len(parts) for parts in members)

    def extend(self, program: IntArray, lengths: FloatArray) -> ShardedClas:
        """See `PreparedClas.extend`."""
        shards = zip(self._prepared, self._members, strict=True)
        extended = [clas.extend(program, of_parts(lengths, parts)) for clas, parts in shards]
        return ShardedClas(extended, self._members, self._patterns, self.lengths)

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program that reads the CLAs; see `Requests.execute`."""
        values = np.empty((self.n_parts, request.n_values))
        for clas, parts in zip(self._prepared, self._members, strict=True):
            values[parts] = clas.execute(request, of_parts(lengths, parts))
        return values

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        values = np.empty((request.n_values, sum(map(len, self._patterns))))
        for clas, parts, patterns in zip(self._prepared, self._members, self._patterns, strict=True):
            values[:, patterns] = clas.execute_sites(request, of_parts(lengths, parts))
        return values


AnyEngine: TypeAlias = OneShape | Shards
AnyClas: TypeAlias = ClasOfOneShape | ShardedClas


def work_of(engine: AnyEngine) -> Counters:
    """The work of an engine and its screen."""
    total = Counters()
    total.add(engine.counters)
    if engine.screen is not None:
        total.add(cast(AnyEngine, engine.screen).counters)
    return total


def _make_for(make: Callable[[Layout], Request], parts: IndexArray, layout: Layout) -> Request:
    """The request for an engine that holds only some parts."""
    return make(layout).of_parts(parts)
