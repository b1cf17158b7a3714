"""The work that an engine has done, and the memory that it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from plltool.arrays import IntArray
from plltool.engine.contract import InstructionWord, Opcode


@dataclass
class Counters:
    """The work done so far. CLAs stay on the device, so they are never among the bytes."""

    launches: int = 0  # kernels enqueued
    instructions: int = 0  # executed; one counts once, whatever the number of patterns
    newviews: int = 0  # likewise
    bytes_to_device: int = 0  # bytes copied
    bytes_from_device: int = 0
    exchanges: int = 0  # sums over the ranks of an MPI job
    bytes_exchanged: int = 0  # that this rank sent for them
    requests: dict[str, int] = field(default_factory=dict)  # number of requests of each kind
    # instructions in all requests of each kind; divided by `requests`, the mean batch
    request_instructions: dict[str, int] = field(default_factory=dict)
    device_seconds: float | None = None  # run time of the kernels by the device's clock; None where it is not measured
    bytes_held: int = 0  # memory of all arrays on the device now
    peak_bytes: int = 0  # and at most

    def hold(self, n_bytes: int) -> None:
        """Count memory taken on the device, or given back where negative."""
        self.bytes_held += n_bytes
        self.peak_bytes = max(self.peak_bytes, self.bytes_held)

    def count(self, request: str, program: IntArray) -> None:
        """Count one request."""
        self.instructions += len(program)
        self.newviews += int(np.count_nonzero(program[:, InstructionWord.OPCODE] == Opcode.NEWVIEW))
        self.requests[request] = self.requests.get(request, 0) + 1
        self.request_instructions[request] = self.request_instructions.get(request, 0) + len(program)

    def add_earlier(self, other: Counters) -> None:
        """Add the work of an engine that was closed before this one was opened."""
        held, peak = self.bytes_held, max(self.peak_bytes, other.peak_bytes)
        self.add(other)
        self.bytes_held, self.peak_bytes = held, peak

    def add_closed(self, other: Counters) -> None:
        """Add the work of engines that are closed by now; their memory was held beside what is held now."""
        held, peak = self.bytes_held, max(self.peak_bytes, self.bytes_held + other.peak_bytes)
        self.add(other)
        self.bytes_held, self.peak_bytes = held, peak

    def add(self, other: Counters) -> None:
        """Add the work and the memory of another engine."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(value, dict):
                for kind, number in value.items():
                    mine[kind] = mine.get(kind, 0) + number
            elif value is not None:
                setattr(self, name, value if mine is None else mine + value)

    @classmethod
    def sum_of(cls, all_work: Iterable[Counters]) -> Counters:
        """The work and the memory of several engines."""
        total = cls()
        for work in all_work:
            total.add(work)
        return total

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)
