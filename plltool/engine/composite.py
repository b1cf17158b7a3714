"""Several engines that answer as one: the *shards* of an alignment.

Every engine holds some patterns of some parts, and its `Shard` says which. From the outside there are the parts and the
patterns of the whole. This serves wherever one engine cannot hold everything:

- kinds of parts: all parts of an engine have the same number of states and of components; others go elsewhere
- devices and the ranks of an MPI job, which divide the patterns of a kind (`several.py`)
- categories: patterns with one of the components, or few of them, sorted (`categories.py`)
- ascertainment: further parts of invariable sites (`categories.py`)

All shards are asked before any is waited for. Sums of parts are added up in the order of the shards, and values of
patterns are put in their places. An engine within may be a composite itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine import program as prog
from plltool.engine.layout import Layout
from plltool.engine.program import Request, Step, Track, rows_of
from plltool.engine.requests import Answer, Counters, Holder, Parts, ShapedAnswer
from plltool.errors import DeviceError, DeviceMemoryError, EngineError, PlltoolError
from plltool.model.components import Components

T = TypeVar("T")
Move: TypeAlias = Callable[[int, DeviceError], Holder]  # opens a shard elsewhere, after its device has failed


def _each_once(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


TOGETHER: dict[str, Callable[[list[Any]], Any]] = {  # what an attribute of several engines is, from that of each
    "layout": lambda layouts: layouts[0],
    "n_slots": min,
    "n_groups": max,
    "has_double": all,
    "resident": all,
    "launch_share": min,
    "cla_bytes": sum,
    "device_name": _each_once,
    "driver": _each_once,
    "counters": Counters.sum_of,
}


@dataclass(eq=False)
class Shard:
    """What one of several engines holds."""

    parts: IndexArray  # for each part of the engine the part of the whole that it belongs to; ascending
    patterns: IndexArray  # for each pattern of the engine that of the whole; the engine may have more behind them
    categories: IndexArray | None = None  # of each part of the engine the only one that it has; None for all

    def __post_init__(self) -> None:
        self.first = np.flatnonzero(np.diff(self.parts, prepend=-1))  # part of the engine in each part of the whole

    @classmethod
    def of(
        cls, part_patterns: Sequence[int], patterns: IndexArray, category_of: IndexArray | None = None
    ) -> tuple[Shard, tuple[int, ...]]:
        """What an engine for some patterns of the whole holds, and the number of patterns of each of its parts.

        `category_of` (n_patterns,) are categories by which the patterns of a part are sorted; otherwise they keep their
        order.
        """
        part_of = np.repeat(np.arange(len(part_patterns)), part_patterns)[patterns]
        own = np.zeros(len(patterns), dtype=np.intp) if category_of is None else category_of[patterns]
        n = int(own.max(initial=0)) + 1
        sizes = np.bincount(part_of * n + own)
        groups, order = np.flatnonzero(sizes), np.lexsort([own, part_of])
        categories = None if category_of is None else groups % n
        return cls(groups // n, patterns[order], categories), tuple(sizes[groups].tolist())

    def models(self, parts: Parts) -> list[Components]:
        """The model of each part of the engine, from the models of the whole."""
        models = [parts[part] for part in self.parts]
        if self.categories is None:
            return models
        return [model.category(own) for model, own in zip(models, self.categories.tolist(), strict=True)]

    def weights(self, weights: FloatArray, engine: Holder) -> FloatArray:
        """The weights of the engine's patterns; the patterns behind keep their weights."""
        return np.append(weights[self.patterns], engine.weights[len(self.patterns) :])


class Composite(Holder):
    """Engines for the patterns of one alignment; requests and errors as for `Engine`.

    engines, shards : the engines, and what each holds; all together every pattern once
    weights, part_patterns : (n_patterns,) of all patterns, and the number of patterns of each part
    move : what opens the shard of a device that has failed on another one; None if the run ends then
    only_adds : whether nothing but these engines contributes to the sums of parts; if not, all have one shape
    """

    only_adds = True

    def __init__(
        self,
        engines: Sequence[Holder],
        shards: Sequence[Shard],
        weights: FloatArray,
        part_patterns: Sequence[int],
        move: Move | None = None,
    ):
        self.engines = list(engines)
        self.shards = list(shards)
        self.weights = np.array(weights, dtype=np.float64)
        self.part_patterns = tuple(part_patterns)
        self.n_parts = len(self.part_patterns)
        self._move = move
        self._models: Parts = ()

    @classmethod
    def of_whole_parts(cls, engines: Sequence[Holder], members: Sequence[Sequence[int]]) -> Composite:
        """Engines each of which holds all patterns of its parts, which are ascending numbers of parts."""
        held = list(zip(engines, members, strict=True))
        sizes = {part: size for engine, own in held for part, size in zip(own, engine.part_patterns, strict=True)}
        part_patterns = [sizes[part] for part in range(len(sizes))]
        part_of = np.repeat(np.arange(len(sizes)), part_patterns)
        shards = [Shard.of(part_patterns, np.flatnonzero(np.isin(part_of, own)))[0] for own in members]
        weights = np.empty(len(part_of))
        for engine, shard in zip(engines, shards, strict=True):
            weights[shard.patterns] = engine.weights
        return cls(engines, shards, weights, part_patterns)

    # --- what they are --------------------------------------------------------------------------------------

    def _of_all(self, name: str) -> list[Any]:
        return [getattr(engine, name) for engine in self.engines]

    if not TYPE_CHECKING:  # `Holder` says of which types they are

        def __getattr__(self, name):
            if name in TOGETHER:
                return TOGETHER[name](self._of_all(name))
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def own_counters(self) -> Counters:
        return self.engines[0].own_counters

    def describe(self) -> dict[str, object]:
        described = []
        for engine, shard in zip(self.engines, self.shards, strict=True):
            held = {"parts": shard.parts.tolist(), "patterns": len(shard.patterns), "device": engine.device_name}
            described.append(engine.describe() | held)
        return {"shards": described}

    def _release_clas(self) -> None:
        for engine in self.engines:
            engine.release_clas()

    def _close(self) -> None:
        for engine in self.engines:
            engine.close()

    # --- models and weights ---------------------------------------------------------------------------------

    def set_model(self, parts: Parts) -> None:
        self._models = parts
        self.ask_all(lambda engine, shard: partial(engine.set_model, shard.models(parts)))()

    def set_weights(self, weights: FloatArray) -> None:
        self.weights = np.array(weights, dtype=np.float64)
        self.ask_all(lambda engine, shard: partial(engine.set_weights, shard.weights(weights, engine)))()

    # --- requests -------------------------------------------------------------------------------------------

    def ask(self, request: Request, lengths: FloatArray) -> Answer:
        answers = self.ask_all(lambda engine, own: engine.ask(request.of_parts(own.parts), rows_of(lengths, own.parts)))
        gather = self._side_by_side if request.of_sites else self._sums
        shape = request.answer_shape(self.n_parts, self.n_patterns)
        return self._completed(lambda: gather(answers(), request), shape, request.program, lengths)

    def make_clas(self, steps: Sequence[Step]) -> None:
        self.ask_all(lambda engine, own: partial(engine.make_clas, [step.of_parts(own.parts) for step in steps]))()

    def ask_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> ShapedAnswer:
        if not self.only_adds:
            return super().ask_shaped(make, lengths)

        def ask(engine: Holder, shard: Shard) -> ShapedAnswer:
            return engine.ask_shaped(lambda layout: make(layout).of_parts(shard.parts), rows_of(lengths, shard.parts))

        answers = self.ask_all(ask)
        return lambda: self._add_rows(answers())

    def ask_likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> Answer:
        def ask(engine: Holder, shard: Shard) -> Answer:
            return engine.ask_likelihoods(
                program, rows_of(lengths, shard.parts), [shard.models(parts) for parts in models]
            )

        answers, shape = self.ask_all(ask), (len(models), self.n_parts)
        one_each = Request(prog.evaluate(np.arange(len(models)), 0, 0, 0), len(models))
        return self._completed(lambda: self._sums([own.T for own in answers()], one_each).T, shape, program, lengths)

    def pack_models(self, models: Sequence[Parts]) -> list[Any]:
        """An item has the packed models of all shards."""
        held = zip(self.engines, self.shards, strict=True)
        packed = [engine.pack_models([shard.models(own) for own in models]) for engine, shard in held]
        return list(zip(*packed, strict=True))

    def ask_tracks(self, tracks: Sequence[Track]) -> Answer:
        """A device that fails ends the run, since the CLAs of tracks are lost with it."""
        if not self.only_adds:
            raise EngineError("neither ranks of an MPI job nor models that correct for ascertainment can run tracks")
        answers, n_values = [], sum(track.n_values for track in tracks)
        for number, (engine, shard) in enumerate(zip(self.engines, self.shards, strict=True)):
            answers.append(engine.ask_tracks([track.of_shard(number, shard.parts) for track in tracks]))
        return lambda: self._add_up([answer().T for answer in answers], n_values).T

    # --- how answers come back ------------------------------------------------------------------------------

    def _completed(self, own: Answer, shape: tuple[int, int], program: IntArray, lengths: FloatArray) -> Answer:
        """The whole answer, of this shape, to a program; `own` is what the engines here contribute."""
        return own

    def _sums(self, answers: Sequence[FloatArray], request: Request) -> FloatArray:
        """The sums of parts (n_parts, n_values) from what the engines answer."""
        return self._add_up(answers, request.n_values)

    def _add_up(self, answers: Sequence[FloatArray], n_values: int) -> FloatArray:
        """The sum of the engines' answers (n_parts, n_values)."""
        values = np.zeros((self.n_parts, n_values))
        for shard, own in zip(self.shards, answers, strict=True):
            values[shard.parts[shard.first]] += np.add.reduceat(own, shard.first, axis=0)
        return values

    def _add_rows(self, answers: Sequence[list[FloatArray]]) -> list[FloatArray]:
        """The same where parts have different numbers of values."""
        values: dict[int, FloatArray] = {}
        for shard, rows in zip(self.shards, answers, strict=True):
            for part, row in zip(shard.parts.tolist(), rows, strict=True):
                values[part] = values[part] + row if part in values else row
        return [values[part] for part in range(self.n_parts)]

    def _side_by_side(self, answers: Sequence[FloatArray], request: Request) -> FloatArray:
        """The values of all patterns (n_values, n_patterns)."""
        values = np.zeros((request.n_values, self.n_patterns))
        for shard, own in zip(self.shards, answers, strict=True):
            values[:, shard.patterns] = own
        return values

    # --- asking, and what to do if a device fails -----------------------------------------------------------

    def ask_all(self, ask: Callable[[Holder, Shard], Callable[[], T]]) -> Callable[[], list[T]]:
        """Ask the engine of each shard; what is returned waits for all answers.

        A shard that cannot answer does not keep the others from it: no engine is left with an answer that nobody
        fetches. Then the first error is raised. If a device has failed, its shard moves, and is asked again.
        """

        def begin(number: int) -> Callable[[], T] | PlltoolError:
            try:
                return ask(self.engines[number], self.shards[number])
            except PlltoolError as error:
                return error

        def fetch(number: int, answer: Callable[[], T] | PlltoolError) -> T:
            while True:
                try:
                    if isinstance(answer, PlltoolError):
                        raise answer
                    return answer()
                except DeviceMemoryError:
                    raise
                except DeviceError as error:
                    self._open_elsewhere(number, error)
                answer = begin(number)

        asked = [begin(number) for number in range(len(self.shards))]

        def get() -> list[T]:
            answers: list[T] = []
            errors: list[PlltoolError] = []
            for number, answer in enumerate(asked):
                try:
                    answers.append(fetch(number, answer))
                except PlltoolError as error:
                    errors.append(error)
            if errors:
                raise errors[0]
            return answers

        return get

    def _open_elsewhere(self, number: int, error: DeviceError) -> None:
        """Replace the engine of a shard by one on another device, with the same patterns, weights and models."""
        if self._move is None:
            raise error
        failed, shard = self.engines[number], self.shards[number]
        failed.close()
        engine = self._move(number, error)
        self.engines[number] = engine
        engine.own_counters.add_closed(failed.counters)
        engine.set_weights(shard.weights(self.weights, engine))
        if self._models:
            engine.set_model(shard.models(self._models))
