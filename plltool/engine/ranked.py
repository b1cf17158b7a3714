"""The patterns that one rank of an MPI job holds, as an engine that answers for the patterns of all ranks.

Every request is asked of the engine of the rank's own patterns, and the answers are added up over the ranks, see
`plltool.processes.ranks`. Values of patterns are exchanged in the same way: each rank adds 0 for the patterns of the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple
from zlib import crc32

import numpy as np

from plltool.arrays import FloatArray, IntArray
from plltool.constants import VERSION
from plltool.engine.base import Engine, EngineData
from plltool.engine.layout import Layout
from plltool.engine.program import Request
from plltool.engine.requests import Answer, Parts, Requests, ShapedAnswer
from plltool.engine.several import cut_patterns, parts_within
from plltool.engine.shards import Shard, Shards
from plltool.engine.tracks import Track
from plltool.errors import EngineError, InputError, PlltoolError
from plltool.hardware import Hardware, available_cores, format_share
from plltool.processes.ranks import HEADER, Ranks


def of_rank(ranks: Ranks, hardware: Hardware) -> Hardware:
    """The share of a rank: of several devices one, in turn on each machine, and of its cores an equal number.

    Raises
    ------
    InputError
        If shares are given: ranks have equal ones.
    """
    if hardware.share is not None:
        raise InputError(f"share: found {format_share(hardware.share)}, expected none: ranks have equal shares")
    threads = hardware.threads or max(1, available_cores() // ranks.n_local)
    return replace(hardware, device=hardware.words[ranks.local % len(hardware.words)], threads=threads)


def rank_memory(ranks: Ranks, hardware: Hardware) -> float:
    """The share of its device's memory that a rank may use, where other ranks of the machine use it, too."""
    return 1.0 if hardware.memory is not None else 1 / ranks.n_local


class Facts(NamedTuple):
    """What the ranks must know of each other's engine."""

    digest: int
    n_slots: int
    n_groups: int
    resident: bool
    device_name: str
    driver: str
    layout: dict[str, object]


def open_on_ranks(
    ranks: Ranks, data: EngineData, part_patterns: Sequence[int], make: Callable[[EngineData, tuple[int, ...]], Engine]
) -> RankShards:
    """An engine for the patterns of all ranks, of which each holds an equal share.

    Parameters
    ----------
    make : makes the engine of this rank from data and the number of patterns of each part
    """
    own = cut_patterns(part_patterns, [1 / ranks.size] * ranks.size)[ranks.number]
    sizes = parts_within(part_patterns, own)
    shards = [Shard(np.array(list(sizes), dtype=np.intp), np.arange(own.start, own.stop))] if sizes else []
    held = slice(own.start, own.stop) if sizes else slice(0, 1)  # without patterns it holds one, and is never asked
    codes = np.ascontiguousarray(data.codes[:, held])
    digest = crc32(np.ascontiguousarray(data.codes).tobytes(), crc32(data.weights.tobytes(), crc32(VERSION.encode())))
    failure: PlltoolError | None = None
    try:
        engine = make(EngineData(codes, data.weights[held], data.state_sets), tuple(sizes.values()) or (1,))
    except PlltoolError as error:
        failure = error
    ranks.add_up(np.zeros(0), len(part_patterns), failure)
    return RankShards(ranks, engine, shards, data.weights, part_patterns, digest)


class RankShards(Shards):
    """The shards of all ranks; requests and errors are those of `Engine`.

    Parameters
    ----------
    engine, shards : of this rank; no shard if it has no patterns
    weights, part_patterns : of the patterns of all ranks
    digest : of the data of all ranks, as this rank has read them

    Raises
    ------
    InputError
        If the ranks have read different data, or run different versions of plltool.
    """

    def __init__(
        self,
        ranks: Ranks,
        engine: Engine,
        shards: Sequence[Shard],
        weights: FloatArray,
        part_patterns: Sequence[int],
        digest: int,
    ):
        super().__init__([engine], shards, weights, part_patterns)
        self._ranks = ranks
        own = (engine.n_slots, engine.n_groups, engine.resident, engine.device_name, engine.driver, engine.describe())
        self._facts = ranks.gather(Facts(digest, *own))
        for number, facts in enumerate(self._facts):
            if facts.digest != self._facts[0].digest:
                raise InputError(f"rank {number} has another alignment, or another version of plltool, than rank 0")

    # --- what they are: the same on all ranks, since searches depend on it ----------------------------------

    @property
    def n_slots(self) -> int:
        return min(facts.n_slots for facts in self._facts)

    @property
    def n_groups(self) -> int:
        """Work-groups of the rank that has the most; see `Engine`."""
        return max(facts.n_groups for facts in self._facts)

    @property
    def resident(self) -> bool:
        """Whether CLAs of all ranks outlive the launch that makes them."""
        return all(facts.resident for facts in self._facts)

    @property
    def device_name(self) -> str:
        """See `Engine`; each name once."""
        return ", ".join(dict.fromkeys(facts.device_name for facts in self._facts))

    @property
    def driver(self) -> str:
        """See `Engine`; each driver once."""
        return ", ".join(dict.fromkeys(facts.driver for facts in self._facts))

    def describe(self) -> dict[str, object]:
        """What a result file records of the layouts."""
        return {"ranks": [facts.layout for facts in self._facts]}

    # --- requests -------------------------------------------------------------------------------------------

    def ask_for_sums(self, target: Callable[[int], Requests], request: Request, lengths: FloatArray) -> Answer:
        answer = super().ask_for_sums(target, request, lengths)
        return self._over_ranks(answer, (self.n_parts, request.n_values), request.program, lengths)

    def ask_for_sites(self, target: Callable[[int], Requests], request: Request, lengths: FloatArray) -> Answer:
        answer = super().ask_for_sites(target, request, lengths)
        return self._over_ranks(answer, (request.n_values, self.n_patterns), request.program, lengths)

    def ask_shaped(self, make: Callable[[Layout], Request], lengths: FloatArray) -> ShapedAnswer:
        answer, request = super().ask_shaped(make, lengths), make(self.layout)

        def own() -> FloatArray:
            none = np.zeros(request.n_values)
            return np.array([row if row.size else none for row in answer()])

        whole = self._over_ranks(own, (self.n_parts, request.n_values), request.program, lengths)
        return lambda: list(whole())

    def ask_likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> Answer:
        answer = super().ask_likelihoods(program, lengths, models)
        return self._over_ranks(answer, (len(models), self.n_parts), program, lengths)

    def ask_tracks(self, tracks: Sequence[Track]) -> Answer:
        raise EngineError("the ranks of an MPI job cannot run tracks")

    def _over_ranks(self, own: Answer, shape: tuple[int, int], program: IntArray, lengths: FloatArray) -> Answer:
        """The sum of the answers of all ranks, each of this shape."""
        mark = crc32(np.ascontiguousarray(lengths).tobytes(), crc32(program.tobytes(), sum(shape)))

        def get() -> FloatArray:
            failure: PlltoolError | None = None
            try:
                values = own()
            except PlltoolError as error:
                failure, values = error, np.zeros(shape)
            counters = self.engines[0].counters
            counters.exchanges += 1
            counters.bytes_exchanged += values.nbytes + HEADER * values.itemsize
            return self._ranks.add_up(values, mark, failure)

        return get
