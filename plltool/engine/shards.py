"""Several engines that answer as one: parts of different shape lie in different *shards*.

An engine holds parts of one number of states and of components. Parts that differ in either are given to one engine for
each shape; every request goes to all of them, and the rows of their parts are put together in the order of the parts.
So nobody above the engines knows of shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from plltool.engine.base import Counters, Engine, FloatArray, IntArray, Parts
from plltool.engine.layout import Layout
from plltool.engine.prepared import PreparedClas, Requests
from plltool.engine.program import Request
from plltool.errors import DeviceMemoryError

Indices = npt.NDArray[np.intp]


class Shards(Requests):
    """Engines for the parts of one alignment; requests and errors are those of `Engine`.

    Parameters
    ----------
    engines : one per shape of parts
    members : of each engine the numbers of its parts, ascending; all together 0 .. n_parts - 1

    Attributes
    ----------
    engines : as given
    n_parts : of all engines
    n_slots : CLA slots that every engine has
    """

    def __init__(self, engines: Sequence[Engine], members: Sequence[Sequence[int]]):
        self.engines = list(engines)
        self._members = [np.array(parts, dtype=np.intp) for parts in members]
        self.n_parts = sum(len(parts) for parts in members)
        self.n_slots = min(engine.n_slots for engine in engines)
        sizes = np.zeros(self.n_parts, dtype=np.intp)
        for parts, engine in zip(self._members, engines, strict=True):
            sizes[parts] = engine.layout.part_patterns
        ends = np.cumsum(sizes)
        self._patterns = [  # of each engine among those of all parts
            np.concatenate([np.arange(ends[part] - sizes[part], ends[part]) for part in parts])
            for parts in self._members
        ]

    def _shards(self) -> Iterator[tuple[Engine, Indices, Indices]]:
        """Each engine, its parts and its patterns."""
        return zip(self.engines, self._members, self._patterns, strict=True)

    # --- what they are --------------------------------------------------------------------------------------

    @property
    def n_patterns(self) -> int:
        return sum(engine.n_patterns for engine in self.engines)

    @property
    def part_patterns(self) -> tuple[int, ...]:
        """Patterns of each part."""
        sizes = np.zeros(self.n_parts, dtype=np.intp)
        for engine, parts, _ in self._shards():
            sizes[parts] = engine.part_patterns
        return tuple(sizes.tolist())

    @property
    def n_groups(self) -> int:
        """Work-groups of the engine that has most; see `Engine`."""
        return max(engine.n_groups for engine in self.engines)

    @property
    def resident(self) -> bool:
        """Whether CLAs of all engines outlive the launch that makes them."""
        return all(engine.resident for engine in self.engines)

    @property
    def held_share(self) -> float:
        """See `Engine`; of the engine that holds least."""
        return min(engine.held_share for engine in self.engines)

    @property
    def cla_bytes(self) -> int:
        """Memory of the CLAs of all engines."""
        return sum(engine.cla_bytes for engine in self.engines)

    @property
    def device_name(self) -> str:
        return ", ".join(dict.fromkeys(engine.device_name for engine in self.engines))

    @property
    def driver(self) -> str:
        return ", ".join(dict.fromkeys(engine.driver for engine in self.engines))

    def describe(self) -> dict[str, object]:
        """What a result file records of the layouts."""
        shards = zip(self.engines, self._members, strict=True)
        return {"shards": [engine.describe() | {"parts": parts.tolist()} for engine, parts in shards]}

    @property
    def counters(self) -> Counters:
        """The work of all engines together."""
        total = Counters()
        for engine in self.engines:
            total.add(engine.counters)
        return total

    def add_closed(self, work: Counters) -> None:
        """Count the work of engines elsewhere, as of the first one."""
        self.engines[0].add_closed(work)

    def rest(self) -> None:
        """Give the memory of CLAs back until the next request."""
        for engine in self.engines:
            engine.rest()

    def close(self) -> None:
        """Free what the engines hold."""
        for engine in self.engines:
            engine.close()

    def __enter__(self) -> Shards:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, DeviceMemoryError):
            error.cla_bytes = self.cla_bytes
        self.close()

    # --- models and weights ---------------------------------------------------------------------------------

    def set_model(self, parts: Parts) -> None:
        """Use one model per part from now on."""
        for engine, members, _ in self._shards():
            engine.set_model([parts[part] for part in members])

    @property
    def weights(self) -> FloatArray:
        """float64 (n_weight_sets, n_patterns), in use."""
        weights = np.empty((self.engines[0].n_weight_sets, self.n_patterns))
        for engine, _, patterns in self._shards():
            weights[:, patterns] = engine.weights
        return weights

    def set_weights(self, weights: FloatArray) -> None:
        """Use other pattern weights from now on, float64 (n_weight_sets, n_patterns)."""
        for engine, _, patterns in self._shards():
            engine.set_weights(weights[:, patterns])

    def part_sites(self) -> FloatArray:
        """(n_parts,) the sum of the weights of each part's patterns; see `Engine`."""
        sites = np.empty(self.n_parts)
        for engine, parts, _ in self._shards():
            sites[parts] = engine.part_sites()
        return sites

    # --- requests -------------------------------------------------------------------------------------------

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Sums over the patterns of each part (n_parts, n_values); see `Engine.execute`."""
        values = np.empty((self.n_parts, request.n_values))
        for engine, parts, _ in self._shards():
            values[parts] = engine.execute(request, _of_parts(lengths, parts))
        return values

    def execute_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> list[FloatArray]:
        """See `Engine.execute_shaped`."""
        values = [np.empty(0)] * self.n_parts
        for engine, parts, _ in self._shards():
            for part, row in zip(parts, engine.execute_shaped(make, _of_parts(lengths, parts)), strict=True):
                values[part] = row
        return values

    def likelihoods(
        self, operations: IntArray, edge: tuple[int, int, int], lengths: FloatArray, models: Sequence[Parts]
    ) -> FloatArray:
        """lnL (n_models, n_parts) under each of several models; see `Engine.likelihoods`."""
        values = np.empty((len(models), self.n_parts))
        for engine, parts, _ in self._shards():
            own = [[model[part] for part in parts] for model in models]
            values[:, parts] = engine.likelihoods(operations, edge, _of_parts(lengths, parts), own)
        return values

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        values = np.empty((request.n_values, self.n_patterns))
        for engine, parts, patterns in self._shards():
            values[:, patterns] = engine.execute_sites(request, _of_parts(lengths, parts))
        return values

    def prepare(self, operations: IntArray, lengths: FloatArray) -> ShardedClas:
        """CLAs for later requests; see `Engine.prepare`."""
        prepared = [engine.prepare(operations, _of_parts(lengths, parts)) for engine, parts, _ in self._shards()]
        return ShardedClas(prepared, self._members, self._patterns, lengths)


class ShardedClas(Requests):
    """CLAs of all shards; see `PreparedClas`."""

    def __init__(
        self,
        prepared: Sequence[PreparedClas],
        members: Sequence[Indices],
        patterns: Sequence[Indices],
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
        extended = [clas.extend(program, _of_parts(lengths, parts)) for clas, parts in shards]
        return ShardedClas(extended, self._members, self._patterns, self.lengths)

    def execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        """Run a program that reads the CLAs, see `Shards.execute`."""
        values = np.empty((self.n_parts, request.n_values))
        for clas, parts in zip(self._prepared, self._members, strict=True):
            values[parts] = clas.execute(request, _of_parts(lengths, parts))
        return values

    def execute_sites(self, request: Request, lengths: FloatArray) -> FloatArray:
        values = np.empty((request.n_values, sum(map(len, self._patterns))))
        for clas, parts, patterns in zip(self._prepared, self._members, self._patterns, strict=True):
            values[:, patterns] = clas.execute_sites(request, _of_parts(lengths, parts))
        return values


AnyEngine: TypeAlias = Engine | Shards
AnyClas: TypeAlias = PreparedClas | ShardedClas


def _of_parts(lengths: FloatArray, parts: Indices) -> FloatArray:
    """The rows of some parts of lengths (..., n_parts, n_branches), or those (n_branches,) that all parts share."""
    lengths = np.asarray(lengths, dtype=np.float64)
    return lengths if lengths.ndim == 1 else lengths[..., parts, :]
