"""The patterns that one rank of an MPI job holds, as an engine that answers for the patterns of all ranks.

Every request is asked of the engine of the rank's own patterns, and the answers are added up over the ranks, see
`plltool.processes.ranks`. Values of patterns are exchanged in the same way: each rank adds 0 for the patterns of the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from plltool.arrays import FloatArray, IntArray
from plltool.constants import VERSION
from plltool.engine.base import Engine, EngineData
from plltool.engine.composite import Composite
from plltool.engine.requests import Answer
from plltool.engine.several import cut_patterns, take_patterns
from plltool.errors import InputError, PlltoolError
from plltool.hardware import Hardware, available_cores, format_share
from plltool.processes.ranks import HEADER, Ranks


def of_rank(ranks: Ranks, hardware: Hardware) -> Hardware:
    """The share of a rank: one of several devices, in turn on each machine, and an equal number of cores.

    Raises InputError if shares are given: ranks have equal ones.
    """
    if hardware.share is not None:
        raise InputError(f"share: found {format_share(hardware.share)}, expected none: ranks have equal shares")
    threads = hardware.threads or max(1, available_cores() // ranks.n_local)
    return replace(hardware, device=hardware.words[ranks.local % len(hardware.words)], threads=threads)


def rank_memory(ranks: Ranks, hardware: Hardware) -> float:
    """The share of its device's memory that a rank may use, where other ranks of the machine use it, too."""
    return 1.0 if hardware.memory is not None else 1 / ranks.n_local


# what ranks know of each other's engine
SHARED = ("n_slots", "n_groups", "has_double", "resident", "device_name", "driver")


class RankShards(Composite):
    """The patterns of all ranks, of which each holds an equal share; requests and errors as for `Engine`.

    `make` makes the engine of this rank from data and the number of patterns of each part. Raises InputError if the
    ranks have read different data, or run different versions of plltool.
    """

    only_adds = False

    def __init__(
        self,
        ranks: Ranks,
        data: EngineData,
        part_patterns: Sequence[int],
        make: Callable[[EngineData, tuple[int, ...]], Engine],
    ):
        own = cut_patterns(part_patterns, [1 / ranks.size] * ranks.size)[ranks.number]
        shard, held, sizes = take_patterns(data, part_patterns, own or range(1))  # without patterns it is never asked
        tables = b"" if data.state_sets is None else np.asarray(data.state_sets).tobytes()
        digest = crc32(data.codes.tobytes(), crc32(data.weights.tobytes(), crc32(tables + VERSION.encode())))
        failure: PlltoolError | None = None
        try:
            engine = make(held, sizes)
        except PlltoolError as error:
            failure = error
        ranks.add_up(np.zeros(0), len(part_patterns), failure)
        super().__init__([engine], [shard] if own else [], data.weights, part_patterns)
        self._ranks = ranks
        known = {"digest": digest, "layout": engine.describe()} | {name: getattr(engine, name) for name in SHARED}
        self._known = ranks.gather(known)
        for number, known in enumerate(self._known):
            if known["digest"] != self._known[0]["digest"]:
                raise InputError(f"rank {number} has another alignment, or another version of plltool, than rank 0")

    def _of_all(self, name: str) -> list[Any]:
        """An attribute on all ranks if they share it, because searches depend on it; otherwise on this rank."""
        return [known[name] for known in self._known] if name in SHARED else super()._of_all(name)

    def describe(self) -> dict[str, object]:
        return {"ranks": [known["layout"] for known in self._known]}

    def _completed(self, own: Answer, shape: tuple[int, int], program: IntArray, lengths: FloatArray) -> Answer:
        """The sum of the answers of all ranks."""
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
