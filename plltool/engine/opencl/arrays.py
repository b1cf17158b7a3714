"""The arrays of an engine on its device, by their names in the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from plltool.engine.contract import ARRAYS
from plltool.engine.counters import Counters
from plltool.engine.layout import Layout
from plltool.errors import EngineError


@dataclass
class DeviceArray:
    """A buffer and its size in bytes."""

    n_bytes: int
    buffer: cl.Buffer


class DeviceArrays:
    """Every array goes through this class, which checks its type and shape against the contract.

    Attributes
    ----------
    held : the arrays by name; some stay as they are, others grow with the requests (see `reserve`)
    """

    def __init__(self, queue: cl.CommandQueue, layout: Layout, counters: Counters):
        self._queue = queue
        self._layout = layout
        self._counters = counters
        self._growing: set[str] = set()
        self._sent: dict[str, bytes] = {}  # what growing arrays hold
        self._sending: list[cl.Event] = []  # an event that is dropped waits for its copy
        self.held: dict[str, DeviceArray] = {}

    def upload(self, name: str, array: npt.NDArray[Any], sizes: Mapping[str, int]) -> None:
        """Make an array that stays, with this content."""
        self._check(name, array, sizes)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self._counters.bytes_to_device += array.nbytes
        self._counters.hold(array.nbytes)
        buffer = cl.Buffer(self._queue.context, flags, hostbuf=np.ascontiguousarray(array))
        self.held[name] = DeviceArray(array.nbytes, buffer)

    def overwrite(self, name: str, array: npt.NDArray[Any]) -> None:
        """Give an array that stays another content."""
        self._check(name, array, {})
        cl.enqueue_copy(self._queue, self.held[name].buffer, np.ascontiguousarray(array))
        self._counters.bytes_to_device += array.nbytes

    def send(self, name: str, array: npt.NDArray[Any], sizes: Mapping[str, int]) -> None:
        """Enqueue a copy to an array that grows, unless it holds just that; nothing waits for the copy."""
        self._check(name, array, sizes)
        content = array.tobytes()
        buffer = self._grow(name, len(content))
        if self._sent.get(name) != content:
            self._sending.append(cl.enqueue_copy(self._queue, buffer, content, is_blocking=False))
            self._sent[name] = content
            self._counters.bytes_to_device += len(content)

    def reserve(self, name: str, sizes: Mapping[str, int]) -> None:
        """Make sure that an array which grows is large enough for a launch of these sizes; kernels fill it."""
        argument = ARRAYS[name]
        self._grow(name, max(self._layout.array_bytes(argument, sizes), self._layout.dtype(argument).itemsize))

    def receive(self, array: npt.NDArray[Any], name: str, offset: int = 0) -> npt.NDArray[Any]:
        """Fill a host array with what an array on the device holds from byte `offset` on; waits for the queue."""
        cl.enqueue_copy(self._queue, array, self.held[name].buffer, src_offset=offset)
        self._counters.bytes_from_device += array.nbytes
        return array

    def settle(self) -> None:
        """Note that everything enqueued so far has ended."""
        self._sending.clear()

    def release(self) -> None:
        """Give back the memory of the arrays that grow."""
        for name in self._growing & self.held.keys():
            self._release(name)

    def _grow(self, name: str, n_bytes: int) -> cl.Buffer:
        """Exactly what the largest request takes, which can be told beforehand; that request comes early."""
        if name not in self.held or n_bytes > self.held[name].n_bytes:
            if name in self.held:
                self._release(name)
            self.held[name] = DeviceArray(n_bytes, cl.Buffer(self._queue.context, cl.mem_flags.READ_WRITE, n_bytes))
            self._growing.add(name)
            self._counters.hold(n_bytes)
        return self.held[name].buffer

    def _release(self, name: str) -> None:
        array = self.held.pop(name)
        array.buffer.release()
        self._counters.hold(-array.n_bytes)
        self._sent.pop(name, None)

    def _check(self, name: str, array: npt.NDArray[Any], sizes: Mapping[str, int]) -> None:
        """Raise EngineError unless type and shape are those of the contract."""
        argument = ARRAYS[name]
        shape, dtype = self._layout.array_shape(argument, sizes), self._layout.dtype(argument)
        if array.dtype != dtype or array.shape != shape:
            expected = f"{dtype} {shape}, which is {argument.ctype} ({', '.join(map(str, argument.shape or ()))})"
            raise EngineError(f"argument {name} is {array.dtype} {array.shape}, expected {expected}")
