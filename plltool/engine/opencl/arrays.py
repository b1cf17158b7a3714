"""The arrays of an engine on its device, by their names in the contract, and the kernels that are run on them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from plltool.engine.layout import Layout
from plltool.engine.requests import Counters
from plltool.errors import EngineError

PARCEL = "spans", "at_tips", "places", "steps", "tracks", "queries", "program", "lengths"  # often changed ones last
NANOSECOND = 1e-9


def make_buffer(context: cl.Context, n_bytes: int) -> cl.Buffer:
    """An array that kernels fill."""
    return cl.Buffer(context, cl.mem_flags.READ_WRITE, n_bytes)


class DeviceArrays:
    """The arrays on the device by name (`held`); type and shape of each are checked against the contract.

    Most requests bring some small arrays, and each copy costs about as much as a launch. So those of `PARCEL` are
    regions of one buffer, and go to the device in one copy. Some arrays stay, others grow (see `reserve`).
    """

    def __init__(self, queue: cl.CommandQueue, layout: Layout, counters: Counters):
        self._queue = queue
        self._shapes = layout.arrays
        self._counters = counters
        self._running: list[cl.Event] = []  # kernels, where their run times are measured
        self._growing: set[str] = set()
        self._sent: dict[str, bytes] = {}  # what growing arrays hold
        self._sending: list[cl.Event] = []  # an event that is dropped waits for its copy
        self._waiting: set[str] = set()  # arrays of the parcel that the device does not have yet
        self._places: dict[str, int] = {}  # where they begin in the parcel
        self._parcel: cl.Buffer | None = None
        self.held: dict[str, cl.Buffer] = {}

    def keep(self, name: str, array: npt.NDArray[Any], sizes: Mapping[str, int]) -> None:
        """Make an array that stays, or give it another content."""
        self._check(name, array, sizes)
        if name in self.held:
            cl.enqueue_copy(self._queue, self.held[name], np.ascontiguousarray(array))
        else:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            self.held[name] = cl.Buffer(self._queue.context, flags, hostbuf=np.ascontiguousarray(array))
            self._counters.hold(array.nbytes)
        self._counters.bytes_to_device += array.nbytes

    def send(self, name: str, array: npt.NDArray[Any], sizes: Mapping[str, int]) -> None:
        """Enqueue a copy to an array that grows, unless it holds just that; arrays of `PARCEL` wait for `post`."""
        self._check(name, array, sizes)
        content = array.tobytes()
        if name not in PARCEL:
            self._grow(name, len(content))
        if self._sent.get(name) != content:
            self._sent[name] = content
            if name in PARCEL:
                self._waiting.add(name)
            else:
                self._enqueue(self.held[name], content)

    def post(self) -> None:
        """Enqueue a copy of what was put into the parcel; nothing waits for the copy."""
        if not self._waiting:
            return
        if any(name not in self.held or len(self._sent[name]) > self.held[name].size for name in self._waiting):
            self._divide_parcel()
        assert self._parcel is not None, "divided"
        waiting = sorted(self._waiting, key=self._places.__getitem__)
        first, last = self._places[waiting[0]], waiting[-1]
        content = bytearray(self._places[last] + len(self._sent[last]) - first)
        for name, place in self._places.items():
            if first <= place < first + len(content):
                content[place - first : place - first + len(self._sent[name])] = self._sent[name]
        self._enqueue(self._parcel, content, first)
        self._waiting.clear()

    def _divide_parcel(self) -> None:
        """A parcel with room for all arrays; each has to be sent again."""
        step, end = self._queue.device.mem_base_addr_align // 8, 0
        sizes: dict[str, int] = {}
        for name in PARCEL:
            if name in self._sent:
                before = self.held[name].size if name in self.held else 0
                sizes[name] = max(before, -(-len(self._sent[name]) // step) * step)
                self._places[name], end = end, end + sizes[name]
        self._release_parcel()
        self._parcel = make_buffer(self._queue.context, end)
        self._counters.hold(end)
        for name, size in sizes.items():
            self.held[name] = self._parcel.get_sub_region(self._places[name], size)
            self._waiting.add(name)

    def _release_parcel(self) -> None:
        for name in PARCEL:
            if name in self.held:
                self.held.pop(name).release()
        if self._parcel is not None:
            self._counters.hold(-self._parcel.size)
            self._parcel.release()
            self._parcel = None

    def write(self, name: str, array: npt.NDArray[Any], offset: int) -> None:
        """Enqueue a copy to byte `offset` of an array that kernels fill otherwise; nothing waits for the copy."""
        self._enqueue(self.held[name], array.tobytes(), offset)

    def _enqueue(self, buffer: cl.Buffer, content: bytes | bytearray, offset: int = 0) -> None:
        self._sending.append(cl.enqueue_copy(self._queue, buffer, content, dst_offset=offset, is_blocking=False))
        self._counters.bytes_to_device += len(content)

    def reserve(self, name: str, sizes: Mapping[str, int]) -> None:
        """Make sure that an array which grows is large enough for a launch of these sizes; kernels fill it."""
        shape = self._shapes[name]
        self._grow(name, max(shape.n_bytes(sizes), shape.dtype.itemsize))

    def receive(self, array: npt.NDArray[Any], name: str, offset: int = 0) -> npt.NDArray[Any]:
        """Fill a host array with what an array on the device holds from byte `offset` on; waits for the queue."""
        cl.enqueue_copy(self._queue, array, self.held[name], src_offset=offset)
        self._counters.bytes_from_device += array.nbytes
        if name not in PARCEL:
            self._sent.pop(name, None)  # a kernel has written to it
        self._settle()
        return array

    def finish(self) -> None:
        """Wait for the queue."""
        self._queue.finish()
        self._settle()

    def run(
        self,
        kernel: Callable[..., cl.Event],
        n_items: tuple[int, ...],
        group_items: tuple[int, ...],
        numbers: Mapping[str, Any],
        **other: str,
    ) -> None:
        """Enqueue a `Kernel`; `other` names the arrays that it takes for some arguments. Nothing waits for it."""
        held = self.held | {name: self.held[own] for name, own in other.items()} if other else self.held
        event = kernel(self._queue, n_items, group_items, held, numbers)
        self._counters.launches += 1
        if self._counters.device_seconds is not None:
            self._running.append(event)

    def _settle(self) -> None:
        """Note that everything enqueued so far has ended, and count the run times of kernels."""
        self._sending.clear()
        if self._counters.device_seconds is not None:
            ticks = sum(event.profile.end - event.profile.start for event in self._running)
            self._counters.device_seconds += ticks * NANOSECOND
            self._running.clear()

    def release(self) -> None:
        """Give back the memory of the arrays that grow."""
        for name in self._growing & self.held.keys():
            self._release(name)
        self._release_parcel()

    def _grow(self, name: str, n_bytes: int) -> cl.Buffer:
        """An array just as large as the largest request so far needs; the largest of all comes early."""
        array = self.held.get(name)
        if array is None or n_bytes > array.size:
            if array is not None:
                self._release(name)
            array = make_buffer(self._queue.context, n_bytes)
            self.held[name] = array
            self._growing.add(name)
            self._counters.hold(n_bytes)
        return array

    def _release(self, name: str) -> None:
        array = self.held.pop(name)
        self._counters.hold(-array.size)
        array.release()
        self._sent.pop(name, None)

    def _check(self, name: str, array: npt.NDArray[Any], sizes: Mapping[str, int]) -> None:
        """Raise EngineError unless the contract has this type and shape."""
        declared = self._shapes[name]
        if array.dtype != declared.dtype or array.shape != declared.shape(sizes):
            found = f"{array.dtype} {array.shape}"
            raise EngineError(f"argument {name} is {found}, expected {declared.describe(sizes)}")
