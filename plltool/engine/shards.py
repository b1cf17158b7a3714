"""Several engines that answer as one: the *shards* of an alignment.

All parts of an engine have the same number of states and of components. Parts that differ in either go to different
engines, one for each shape. And the patterns of a shape may be divided over several devices. Both are the same sum:
every shard holds patterns of some parts, all shards are asked before any is waited for, and their answers are added up
in the order of the shards. So callers need not know about shapes and devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine.base import Engine
from plltool.engine.group import EngineGroup
from plltool.engine.layout import Layout
from plltool.engine.prepared import PreparedClas
from plltool.engine.program import Request
from plltool.engine.requests import Answer, Parts, Requests, ShapedAnswer, of_parts
from plltool.engine.tracks import Track
from plltool.errors import DeviceError, DeviceMemoryError, PlltoolError

T = TypeVar("T")
Move: TypeAlias = Callable[[int, DeviceError], Engine]  # opens a shard elsewhere, after its device has failed


@dataclass(frozen=True, eq=False)
class Shard:
    """What one of several engines holds.

    Attributes
    ----------
    parts : numbers of its parts among those of all shards, ascending
    patterns : numbers of its patterns among those of all shards, in the order of the engine
    """

    parts: IndexArray
    patterns: IndexArray


class Shards(EngineGroup[Any]):
    """Engines for the patterns of one alignment; requests and errors are those of `Engine`.

    Parameters
    ----------
    engines, shards : the engines, and what each holds; all together every pattern once
    weights : float64 (n_patterns,) of all patterns
    part_patterns : patterns of each part
    move : what opens the shard of a device that has failed on another one; None if the run ends then

    Attributes
    ----------
    n_parts : parts of all engines
    """

    def __init__(
        self,
        engines: Sequence[Engine | EngineGroup[Any]],
        shards: Sequence[Shard],
        weights: FloatArray,
        part_patterns: Sequence[int],
        move: Move | None = None,
    ):
        super().__init__(engines)
        self.shards = tuple(shards)
        self.weights = np.array(weights, dtype=np.float64)
        self.part_patterns = tuple(part_patterns)
        self.n_parts = len(self.part_patterns)
        self._move = move
        self._models: Parts | None = None

    @classmethod
    def of_whole_parts(cls, engines: Sequence[Engine | EngineGroup[Any]], members: Sequence[Sequence[int]]) -> Shards:
        """Engines each of which holds all patterns of its parts, which are ascending numbers among those of all."""
        held = list(zip(cast("Sequence[Engine]", engines), members, strict=True))
        sizes = {part: size for engine, own in held for part, size in zip(own, engine.part_patterns, strict=True)}
        part_patterns = [sizes[part] for part in range(len(sizes))]
        starts = np.cumsum((0, *part_patterns))
        shards, weights = [], np.empty(starts[-1])
        for engine, own in held:
            patterns = np.concatenate([np.arange(starts[part], starts[part + 1]) for part in own])
            shards.append(Shard(np.array(own, dtype=np.intp), patterns))
            weights[patterns] = engine.weights
        return cls(engines, shards, weights, part_patterns)

    # --- what they are --------------------------------------------------------------------------------------

    @property
    def n_patterns(self) -> int:
        """Patterns of all parts."""
        return sum(self.part_patterns)

    def describe(self) -> dict[str, object]:
        """What a result file records of the layouts."""
        described = []
        for engine, shard in zip(self.engines, self.shards, strict=True):
            held = {"parts": shard.parts.tolist(), "patterns": len(shard.patterns), "device": engine.device_name}
            described.append(engine.describe() | held)
        return {"shards": described}

    # --- models and weights ---------------------------------------------------------------------------------

    def set_model(self, parts: Parts) -> None:
        """Use one model per part from now on."""
        self._models = parts
        self._on_each(lambda engine, shard: engine.set_model([parts[part] for part in shard.parts]))

    def set_weights(self, weights: FloatArray) -> None:
        """Use other pattern weights from now on, float64 (n_patterns,)."""
        self.weights = np.array(weights, dtype=np.float64)
        self._on_each(lambda engine, shard: engine.set_weights(weights[shard.patterns]))

    # --- requests -------------------------------------------------------------------------------------------

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        """Sums over the patterns of each part (n_parts, n_values); see `Requests.execute`."""
        return self.ask_for_sums(lambda number: self.engines[number], request, lengths)

    def ask_sites(self, request: Request, lengths: FloatArray) -> Answer:
        """Values of all patterns (n_values, n_patterns); see `Requests.execute_sites`."""
        return self.ask_for_sites(lambda number: self.engines[number], request, lengths)

    def ask_for_sums(self, target: Callable[[int], Requests], request: Request, lengths: FloatArray) -> Answer:
        """As `ask`, of the engine of each shard or of its CLAs."""

        def ask(number: int, shard: Shard) -> Answer:
            return target(number).ask(request.of_parts(shard.parts), of_parts(lengths, shard.parts))

        answers = self._ask_all(ask)
        return lambda: self._add_up(answers(), request.n_values)

    def ask_for_sites(self, target: Callable[[int], Requests], request: Request, lengths: FloatArray) -> Answer:
        """As `ask_sites`, of the engine of each shard or of its CLAs."""

        def ask(number: int, shard: Shard) -> Answer:
            return target(number).ask_sites(request.of_parts(shard.parts), of_parts(lengths, shard.parts))

        answers = self._ask_all(ask)
        return lambda: self._side_by_side(answers(), request.n_values)

    def ask_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> ShapedAnswer:
        """See `Holder.execute_shaped`."""

        def ask(number: int, shard: Shard) -> ShapedAnswer:
            own: ShapedAnswer = self.engines[number].ask_shaped(
                partial(_make_for, make, shard.parts), of_parts(lengths, shard.parts)
            )
            return own

        answers = self._ask_all(ask)
        return lambda: self._add_rows(answers())

    def ask_likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> Answer:
        """lnL (n_models, n_parts) under each of several models; see `Holder.likelihoods`."""

        def ask(number: int, shard: Shard) -> Answer:
            own = [[model[part] for part in shard.parts] for model in models]
            engine = self.engines[number]
            answer: Answer = engine.ask_likelihoods(program, of_parts(lengths, shard.parts), own)
            return lambda: answer().T

        answers = self._ask_all(ask)
        return lambda: self._add_up(answers(), len(models)).T

    def pack_models(self, models: Sequence[Parts]) -> list[Any]:
        """See `Engine.pack_models`; for each those of all shards."""
        held = zip(self.engines, self.shards, strict=True)
        packed = [engine.pack_models([[own[part] for part in shard.parts] for own in models]) for engine, shard in held]
        return list(zip(*packed, strict=True))

    def ask_tracks(self, tracks: Sequence[Track]) -> Answer:
        """See `Engine.ask_tracks`. A device that fails ends the run, since the CLAs of tracks are lost with it."""
        answers, n_values = [], sum(track.n_values for track in tracks)
        for number, engine in enumerate(self.engines):
            answers.append(engine.ask_tracks([replace(track, model=track.model[number]) for track in tracks]))
        return lambda: self._add_up([answer().T for answer in answers], n_values).T

    def prepare(self, operations: IntArray, lengths: FloatArray) -> ShardedClas:
        """CLAs for later requests; see `Engine.prepare`."""
        return ShardedClas(self, [(operations, np.array(lengths, dtype=np.float64))])

    def prepare_shard(self, number: int, steps: Sequence[tuple[IntArray, FloatArray]]) -> Any:
        """CLAs of one shard: those of the first step, extended by the others."""

        def make(engine: Any, shard: Shard) -> Any:
            operations, lengths = steps[0]
            clas = engine.prepare(operations, of_parts(lengths, shard.parts))
            for operations, lengths in steps[1:]:
                clas = clas.extend(operations, of_parts(lengths, shard.parts))
            return clas

        return self._on_shard(number, make)

    # --- sums -----------------------------------------------------------------------------------------------

    def _add_up(self, answers: Sequence[FloatArray], n_values: int) -> FloatArray:
        """The sum of the shards' answers (n_parts, n_values)."""
        values = np.zeros((self.n_parts, n_values))
        for shard, own in zip(self.shards, answers, strict=True):
            values[shard.parts] += own
        return values

    def _add_rows(self, answers: Sequence[list[FloatArray]]) -> list[FloatArray]:
        """The same where parts have different numbers of values."""
        values: dict[int, FloatArray] = {}
        for shard, rows in zip(self.shards, answers, strict=True):
            for part, row in zip(shard.parts.tolist(), rows, strict=True):
                values[part] = values[part] + row if part in values else row
        return [values.get(part, np.empty(0)) for part in range(self.n_parts)]

    def _side_by_side(self, answers: Sequence[FloatArray], n_values: int) -> FloatArray:
        """The values of all patterns (n_values, n_patterns)."""
        values = np.zeros((n_values, self.n_patterns))
        for shard, own in zip(self.shards, answers, strict=True):
            values[:, shard.patterns] = own
        return values

    # --- asking, and what to do if a device fails -----------------------------------------------------------

    def _ask_all(self, ask: Callable[[int, Shard], Callable[[], T]]) -> Callable[[], list[T]]:
        """Ask all shards; what is returned waits for all answers.

        A shard that cannot answer does not keep the others from it: no engine is left with an answer that nobody
        fetches. Then the first error is raised.
        """
        asked = [self._begin(ask, number) for number in range(len(self.shards))]

        def get() -> list[T]:
            answers: list[T] = []
            errors: list[PlltoolError] = []
            for number, answer in enumerate(asked):
                try:
                    answers.append(self._fetch(ask, number, answer))
                except PlltoolError as error:
                    errors.append(error)
            if errors:
                raise errors[0]
            return answers

        return get

    def _begin(self, ask: Callable[[int, Shard], Callable[[], T]], number: int) -> Callable[[], T] | PlltoolError:
        try:
            return ask(number, self.shards[number])
        except PlltoolError as error:
            return error

    def _fetch(
        self, ask: Callable[[int, Shard], Callable[[], T]], number: int, answer: Callable[[], T] | PlltoolError
    ) -> T:
        """The answer of a shard; if its device has failed, that of another device."""
        while True:
            try:
                if isinstance(answer, PlltoolError):
                    raise answer
                return answer()
            except DeviceMemoryError:
                raise
            except DeviceError as error:
                self._open_elsewhere(number, error)
            answer = self._begin(ask, number)

    def _on_shard(self, number: int, act: Callable[[Any, Shard], T]) -> T:
        """What `act` does with a shard and its engine; on another device if this one fails."""

        def ask(number: int, shard: Shard) -> Callable[[], T]:
            return partial(act, self.engines[number], shard)

        return self._fetch(ask, number, ask(number, self.shards[number]))

    def _on_each(self, act: Callable[[Any, Shard], None]) -> None:
        for number in range(len(self.shards)):
            self._on_shard(number, act)

    def _open_elsewhere(self, number: int, error: DeviceError) -> None:
        """Replace the engine of a shard by one on another device, with the same patterns, weights and models."""
        if self._move is None:
            raise error
        failed, shard = self.engines[number], self.shards[number]
        failed.close()
        engine = self._move(number, error)
        self.engines[number] = engine
        engine.add_earlier(failed.counters)
        engine.set_weights(self.weights[shard.patterns])
        if self._models is not None:
            engine.set_model([self._models[part] for part in shard.parts])


class ShardedClas(Requests):
    """CLAs of all shards; see `PreparedClas`.

    Parameters
    ----------
    engine : holds the shards
    steps : programs and their lengths, of which each makes CLAs from those of the ones before; for a shard that moves
        to another device
    prepared : the CLAs of each shard, and its engine; made here if they are not given
    """

    def __init__(
        self,
        engine: Shards,
        steps: Sequence[tuple[IntArray, FloatArray]],
        prepared: Sequence[tuple[Any, Any]] | None = None,
    ):
        self._engine = engine
        self._steps = list(steps)
        self.lengths = self._steps[0][1]
        self.n_parts = engine.n_parts
        self._prepared: list[tuple[Any, Any]] = list(prepared or [(None, None)] * len(engine.shards))
        for number in range(len(engine.shards)):
            self._clas(number)

    def _clas(self, number: int) -> Any:
        """The CLAs of a shard; made again if it has moved."""
        clas, made_by = self._prepared[number]
        if made_by is not self._engine.engines[number]:
            clas = self._engine.prepare_shard(number, self._steps)
            self._prepared[number] = clas, self._engine.engines[number]
        return clas

    def extend(self, program: IntArray, lengths: FloatArray) -> ShardedClas:
        """See `PreparedClas.extend`."""
        extended: list[tuple[Any, Any]] = []
        for number, shard in enumerate(self._engine.shards):
            clas, engine = self._clas(number), self._engine.engines[number]
            try:
                extended.append((clas.extend(program, of_parts(lengths, shard.parts)), engine))
            except DeviceMemoryError:
                raise
            except DeviceError:  # all steps are then taken again
                extended.append((None, None))
        step = program, np.array(lengths, dtype=np.float64)
        return ShardedClas(self._engine, [*self._steps, step], extended)

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        """Begin a program that reads the CLAs; see `Requests.execute`."""
        return self._engine.ask_for_sums(self._clas, request, lengths)

    def ask_sites(self, request: Request, lengths: FloatArray) -> Answer:
        return self._engine.ask_for_sites(self._clas, request, lengths)


PatternEngine: TypeAlias = Engine | Shards  # of parts of one shape
ClasOfPatterns: TypeAlias = PreparedClas | ShardedClas


def _make_for(make: Callable[[Layout], Request], parts: IndexArray, layout: Layout) -> Request:
    """The request for an engine that holds only some parts."""
    return make(layout).of_parts(parts)
