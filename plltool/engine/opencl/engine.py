"""The OpenCL engine: CLAs never leave the device; programs go down, sums come back."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from plltool.constants import CPU_GROUPS_PER_UNIT, GPU_GROUPS_PER_UNIT
from plltool.engine.base import Counters, Engine, FloatArray, IntArray, Parts, Peak, Tables, slots_written
from plltool.engine.layout import SCALE_BYTES, Layout
from plltool.engine.opencl.clock import KernelClock
from plltool.engine.opencl.device import Device, make_context
from plltool.engine.opencl.tracks import Schedule, model_tracks, one_launch, plan_levels, plan_tracks, spread_slots
from plltool.engine.program import Request, branches_at_tips
from plltool.engine.storage import SUM_BYTES
from plltool.engine.sums import plan_sums
from plltool.errors import DeviceError, DeviceMemoryError, EngineError

NO_BAD_PATTERN = np.int32(np.iinfo(np.int32).max)
# An entry below the smallest normal number is far below the rounding of the largest one of its component. As 0 it costs
# nothing; as it is, CPUs stumble: rounds over all branches of 64 taxa took three times as long in single precision.
BUILD_OPTIONS = ["-cl-mad-enable", "-cl-denorms-are-zero"]
# Arguments of the kernels, in order: None for a buffer. pyopencl then packs plain numbers itself, in 2 microseconds a
# launch; numpy scalars without it took 70.
PMATRICES_ARGUMENTS = (*[None] * 7, *[np.int32] * 5)
TRAVERSE_ARGUMENTS = (*[None] * 17, *[np.int32] * 10, *[np.uint64] * 3)
ADD_ROWS_ARGUMENTS = (None, None, *[np.int32] * 3)
ADD_ROWS_ITEMS = 64  # values of a work-group
ENGINE_KERNELS = (
    "layout.h",
    "arithmetic.h",
    "many_states.h",
    "pmatrices.cl",
    "job.h",
    "instructions.h",
    "shared_states.h",
    "traverse.cl",
    "sums.cl",
)

_log = logging.getLogger("plltool")


def build_program(context: cl.Context, layout: Layout, names: Sequence[str] = ENGINE_KERNELS) -> cl.Program:
    """Compile kernel files, joined in this order, for one layout; pyopencl and the driver both keep the binary on disk.

    Raises DeviceError with the compiler's log.
    """
    folder = files("plltool.kernels")
    source = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    with warnings.catch_warnings(record=True) as remarks:  # a compiler's remarks are for the log, not for the user
        warnings.simplefilter("always", cl.CompilerWarning)
        try:
            program = cl.Program(context, source).build(options=BUILD_OPTIONS + layout.macros())
        except cl.Error as error:
            raise DeviceError(f"kernels do not build on {context.devices[0].name}: {error}") from error
    for remark in remarks:
        _log.debug("%s: %s", context.devices[0].name, remark.message)
    return program


@dataclass
class Chunk:
    """What one launch takes: some spans, and the storage of their CLAs, which other chunks may share."""

    first_span: int
    n_spans: int
    clas: cl.Buffer
    scales: cl.Buffer
    strides: tuple[int, int]


class GrowingBuffer:
    """A device buffer that is replaced by a larger one when an upload or result needs it."""

    def __init__(self, context: cl.Context, counters: Counters):
        self._context = context
        self._counters = counters
        self._size = 0
        self.buffer: cl.Buffer | None = None

    def reserve(self, size: int) -> cl.Buffer:
        """Exactly what the largest request takes, so that it can be foretold; that one comes early."""
        if self.buffer is None or size > self._size:
            self.release()
            self.buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
            self._counters.hold(size)
            self._size = size
        return self.buffer

    def release(self) -> None:
        if self.buffer is not None:
            self.buffer.release()
            self._counters.hold(-self._size)
            self.buffer = None
            self._size = 0


class OpenCLEngine(Engine):
    """See :class:`plltool.engine.base.Engine`.

    Parameters
    ----------
    device : from `list_devices`
    compute_units : use so many cores of a CPU device, by a sub-device; None for all
    profile : measure how long kernels run, as the counters' `device_seconds`

    Raises
    ------
    DeviceMemoryError
        If the device has not got the memory that it was thought to have.
    """

    name = "opencl"

    def __init__(
        self,
        layout: Layout,
        n_slots: int,
        codes: npt.NDArray[np.integer],
        weights: FloatArray,
        device: Device,
        compute_units: int | None = None,
        profile: bool = False,
        state_sets: npt.ArrayLike | None = None,
        memory: int | None = None,
    ):
        super().__init__(layout, n_slots, codes, weights, state_sets, memory, device.max_allocation)
        self._device = device
        self._closed = False
        units = device.compute_units if compute_units is None else compute_units
        self._wanted_groups = units * (GPU_GROUPS_PER_UNIT if layout.lane_per_item else CPU_GROUPS_PER_UNIT)
        self.counters.device_seconds = 0.0 if profile else None
        self._clock = KernelClock(self.counters)
        handle = device.handle
        if compute_units is not None and compute_units < device.compute_units:
            handle = _sub_device(handle, compute_units)
        try:
            self._context = make_context(device, handle, compute_units)
            self._queue = _make_queue(self._context, profile)
            program = build_program(self._context, layout)
            self._pmatrices = _make_kernel(program, "pmatrices", PMATRICES_ARGUMENTS)
            self._traverse = _make_kernel(program, "traverse", TRAVERSE_ARGUMENTS)
            self._add_rows = _make_kernel(program, "add_rows", ADD_ROWS_ARGUMENTS)
            self._allocate()
        except cl.Error as error:
            raise _as_device_error(device.label, error) from error

    def _allocate(self) -> None:
        layout = self.layout
        self._tips = self._upload(self._codes)
        self._state_set_table = self._upload(self._state_sets)
        self._weights = self._upload(layout.pad_weights(self.weights))
        self._tile_blocks = self._upload(layout.tile_used_blocks)
        self._bad_pattern = self._upload(np.array([NO_BAD_PATTERN]))
        self._spans = self._upload(np.concatenate(self.storage.runs))
        self._sums = plan_sums(layout)
        if self._sums.levels:
            self._sum_tree = self._upload(self._sums.made)
        self._chunks = self._make_chunks()
        self._tiles_apart = all(run[:, 2].max() == 1 for run in self.storage.runs)  # no two in the same slots
        self._planned: tuple[bytes, Schedule] | None = None  # the last program that was cut into levels
        self._made: tuple[bytes, Tables, npt.NDArray[np.uint8]] | None = None  # P matrices, see `_have_made`
        self._sent: dict[str, bytes] = {}  # what growing buffers hold
        self._sending: list[cl.Event] = []  # an event that is dropped waits for its copy
        growing = (
            "eigen",
            "model",
            "lengths",
            "at_tips",
            "program",
            "tracks",
            "matrices",
            "slopes",
            "decays",
            "responses",
            "partial",
            "site",
        )
        self._growing = {name: GrowingBuffer(self._context, self.counters) for name in growing}

    def _make_chunks(self) -> list[Chunk]:
        layout, storage = self.layout, self.storage
        try:
            self._cla_buffers = [buffer for n_tiles in storage.buffer_tiles for buffer in self._hold_tiles(n_tiles)]
        except cl.MemoryError as error:
            needed = storage.n_bytes(layout)
            raise DeviceMemoryError(f"{self._device.label}: no room for {needed} bytes of CLAs: {error}") from error
        chunks, first_span = [], 0
        for index, run in enumerate(storage.runs):
            at = 2 * index if storage.resident else 0
            clas, scales = self._cla_buffers[at : at + 2]
            strides = layout.strides(self.n_slots, int(run[:, 2].sum()))
            chunks.append(Chunk(first_span, len(run), clas, scales, strides))
            first_span += len(run)
        return chunks

    def _hold_tiles(self, n_tiles: int) -> list[cl.Buffer]:
        """CLAs and scaling counts of so many tiles."""
        layout = self.layout
        blocks = n_tiles * layout.tile_blocks * self.n_slots
        buffers = []
        for size in (blocks * layout.block_values * layout.real.itemsize, blocks * layout.block_scales * SCALE_BYTES):
            buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
            if not self._device.shares_host_memory:  # a shortage shows when memory is used, not when it is asked for
                cl.enqueue_fill_buffer(self._queue, buffer, np.zeros(1, dtype=np.uint8), 0, size)
                self._queue.finish()
            self.counters.hold(size)
            buffers.append(buffer)
        return buffers

    def _upload(self, array: npt.NDArray[Any]) -> cl.Buffer:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.counters.bytes_to_device += array.nbytes
        self.counters.hold(array.nbytes)
        return cl.Buffer(self._context, flags, hostbuf=np.ascontiguousarray(array))

    def _send_weights(self, padded: FloatArray) -> None:
        with self._driver_errors():
            cl.enqueue_copy(self._queue, self._weights, np.ascontiguousarray(padded))
        self.counters.bytes_to_device += padded.nbytes

    def _send(self, name: str, content: bytes) -> cl.Buffer:
        """Enqueue a copy, which nothing waits for, unless the buffer holds just that."""
        buffer = self._growing[name].reserve(len(content))
        if self._sent.get(name) != content:
            self._sending.append(cl.enqueue_copy(self._queue, buffer, content, is_blocking=False))
            self._sent[name] = content
            self.counters.bytes_to_device += len(content)
        return buffer

    def _receive(self, array: npt.NDArray[Any], buffer: cl.Buffer, offset: int = 0) -> npt.NDArray[Any]:
        cl.enqueue_copy(self._queue, array, buffer, src_offset=offset)
        self.counters.bytes_from_device += array.nbytes
        self._settle()
        return array

    def _settle(self) -> None:
        """Take note that all that was enqueued so far has ended."""
        self._sending.clear()
        self._clock.settle()

    @property
    def device_name(self) -> str:
        return self._device.full_name

    @property
    def driver(self) -> str:
        return f"{self._device.version}, driver {self._device.driver}"

    def peaks(self) -> dict[str, Peak]:
        from plltool.engine.opencl.peaks import make_peaks  # which compiles with the function above

        with self._driver_errors():
            return make_peaks(self._queue, self.layout)

    def set_model(self, parts: Parts) -> None:
        self._check_parts(parts)
        self._parts = parts
        with self._driver_errors():
            self._send_model(parts)

    def _send_model(self, parts: Parts) -> None:
        """One P set each."""
        eigen, model = [], []
        for part in parts:
            mass = part.masses()
            for c in range(part.n_components):
                right, left = part.right[c], part.left[c]
                eigen += [part.eigenvalues[c] * part.rates[c], right.T.ravel(), left.ravel()]
                model += [mass[c], self._table((mass[c][:, None] * right).T), self._table(left), part.rates[c : c + 1]]
        self._made = None
        self._eigen = self._send("eigen", np.concatenate(eigen).tobytes())
        self._model = self._send("model", np.concatenate(model).astype(self.layout.real).tobytes())

    def _table(self, matrix: FloatArray) -> FloatArray:
        """A matrix that multiplies CLAs as the kernels read it; see `many_states.h`."""
        if not self.layout.many_states:
            return matrix.ravel()
        return np.concatenate([matrix.T.ravel(), matrix.sum(axis=1)])

    def _launch(
        self,
        request: Request,
        lengths: FloatArray,
        tables: Tables,
        schedule: Schedule | None = None,
        site: bool = False,
    ) -> tuple[cl.Buffer, cl.Buffer]:
        """Enqueue the traversal of every chunk, and the matrices first unless the last lengths come again.

        lengths (n_psets, n_branches). Returns (partial sums, site lnL).
        """
        layout, growing = self.layout, self._growing
        if schedule is None:
            schedule = self._plan(request)
        n_psets, n_branches = lengths.shape
        matrices = n_psets * n_branches * layout.n_components
        item = layout.real.itemsize
        table = layout.matrix_values * item
        program, sent_lengths = self._send("program", schedule.program.tobytes()), lengths.tobytes()
        p_buffer = growing["matrices"].reserve(n_psets * n_branches * layout.branch_values * item)
        q_buffer = growing["slopes"].reserve(2 * matrices * table if tables.slopes else item)
        f_buffer = growing["responses"].reserve(matrices * layout.n_states**2 * item if tables.responses else item)
        d_buffer = growing["decays"].reserve(matrices * 3 * layout.n_states * item if tables.decays else item)
        partial = growing["partial"].reserve(self._sums.n_rows * max(1, request.n_values) * SUM_BYTES)
        site_buffer = growing["site"].reserve(request.n_values * layout.n_lanes * 8 if site else 8)
        at_tips = branches_at_tips(request.program, n_branches)
        if not self._have_made(sent_lengths, tables, at_tips):
            event = self._pmatrices(
                self._queue, (layout.pmatrix_items(n_psets, n_branches),), None,
                self._eigen, self._send("lengths", sent_lengths), self._send("at_tips", at_tips.tobytes()),
                p_buffer, q_buffer, d_buffer, f_buffer, n_branches, n_psets, *tables,
            )  # fmt: skip
            self._clock.watch(event)
            self._made = (sent_lengths, tables, at_tips)
            self.counters.launches += 1
        local = layout.group_items
        track_buffer = self._send("tracks", schedule.tracks.tobytes())
        self._chunks = self._chunks or self._make_chunks()
        for chunk, launch in product(self._chunks, schedule.launches):
            event = self._traverse(
                self._queue, (chunk.n_spans * local, len(launch)), (local, 1),
                chunk.clas, chunk.scales, self._tips, self._state_set_table, self._weights, self._model,
                p_buffer, q_buffer, d_buffer, f_buffer, program, track_buffer, self._spans, self._tile_blocks,
                partial, self._bad_pattern, site_buffer, site, request.sets.start, len(request.sets), request.keep,
                chunk.first_span, launch.start, request.scratch.start, request.n_values, layout.n_taxa, n_branches,
                layout.n_lanes, *chunk.strides,
            )  # fmt: skip
            self._clock.watch(event)
        self.counters.launches += len(self._chunks) * len(schedule.launches)
        return partial, site_buffer

    def _plan(self, request: Request) -> Schedule:
        """Pieces at the same time, or else levels where the rule of a GPU asks for them; no bit depends on it."""
        n_spans = len(self.storage.runs[0])
        if self.layout.lane_per_item and len(request.pieces) == 1 and (request.keep or self._tiles_apart):
            name = bytes([request.keep]) + request.program.tobytes()
            if self._planned is None or self._planned[0] != name:
                program = request.program if request.keep else spread_slots(request.program, self.n_slots)
                plan = plan_levels(program, n_spans, self._wanted_groups)
                tracks = plan_tracks(request, self.n_slots, n_spans, self._wanted_groups)
                self._planned = name, plan or one_launch(request.program, tracks)
            return self._planned[1]
        return one_launch(request.program, plan_tracks(request, self.n_slots, n_spans, self._wanted_groups))

    def _have_made(self, lengths: bytes, tables: Tables, at_tips: npt.NDArray[np.uint8]) -> bool:
        """Whether the device has P matrices of these lengths, and what a program reads of branches besides."""
        if self._made is None or self._made[0] != lengths:
            return False
        return self._made[1].cover(tables) and bool(np.all(at_tips <= self._made[2]))

    def _execute(self, request: Request, lengths: FloatArray, tables: Tables) -> FloatArray:
        with self._driver_errors():
            return self._sums_of_parts(self._launch(request, lengths, tables)[0], request.n_values)

    def _sums_of_parts(self, partial: cl.Buffer, n_values: int) -> FloatArray:
        """What a launch made, (n_parts, n_values)."""
        values = np.empty((self.n_parts, n_values))
        if n_values:
            self._add_groups(partial, n_values)
            first = (self._sums.n_rows - self.n_parts) * n_values * SUM_BYTES
            self._receive(values, partial, first)
            self._check_device(values)
        return values

    def _likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> FloatArray:
        used = slots_written(program)
        request = Request(program, len(models), keep=False, scratch=range(used))
        schedule = one_launch(program, model_tracks(len(program), len(models), used, self.n_parts))
        with self._driver_errors():
            self._send_model([part for model in models for part in model])
            try:
                partial, _ = self._launch(request, lengths.reshape(-1, lengths.shape[-1]), Tables(), schedule)
                return self._sums_of_parts(partial, len(models)).T
            finally:
                self._send_model(self._parts)

    def _add_groups(self, partial: cl.Buffer, n_values: int) -> None:
        """Enqueue the sums over the groups of each part; they become the last rows of `partial`."""
        width = -(-n_values // ADD_ROWS_ITEMS) * ADD_ROWS_ITEMS
        for level in self._sums.levels:
            event = self._add_rows(
                self._queue, (width, len(level)), (ADD_ROWS_ITEMS, 1),
                partial, self._sum_tree, self._sums.n_groups, level.start, n_values,
            )  # fmt: skip
            self._clock.watch(event)
        self.counters.launches += len(self._sums.levels)

    def _site_values(self, request: Request, lengths: FloatArray) -> FloatArray:
        with self._driver_errors():
            _, site = self._launch(request, lengths, Tables(), site=True)
            values = self._receive(np.empty((request.n_values, self.layout.n_lanes)), site)
            values = values[:, self.layout.lane_of_pattern]
            if not np.isfinite(values).all():
                self._forget_bad_pattern()
        return values

    @contextmanager
    def _driver_errors(self) -> Iterator[None]:
        """Whatever the driver complains of is a DeviceError; a closed engine is our caller's bug."""
        if self._closed:
            raise EngineError(f"the engine on {self.device_name} is closed")
        try:
            yield
        except cl.Error as error:
            raise _as_device_error(self.device_name, error) from error

    def _check_device(self, values: FloatArray) -> None:
        """Ask the device which pattern failed, only if a sum says that one did."""
        if np.all(np.isfinite(values)):
            return
        bad = int(self._receive(np.empty(1, dtype=np.int32), self._bad_pattern)[0])
        self._forget_bad_pattern()
        self._check_finite(values, None if bad == NO_BAD_PATTERN else bad)

    def _forget_bad_pattern(self) -> None:
        cl.enqueue_copy(self._queue, self._bad_pattern, np.array([NO_BAD_PATTERN]))

    def rest(self) -> None:
        with self._driver_errors():
            self._queue.finish()
            self._settle()
            self.counters.hold(-sum(buffer.size for buffer in self._cla_buffers))
            self._release_clas()

    def _release_clas(self) -> None:
        for buffer in self._cla_buffers:
            buffer.release()
        self._cla_buffers, self._chunks = [], []

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._queue.finish()
            self._settle()
        except cl.Error as error:  # a device that is lost: whatever told of that must not be masked
            _log.warning("%s: %s", self.device_name, error)
        self._release_clas()
        for growing in self._growing.values():
            growing.release()


def _as_device_error(name: str, error: cl.Error) -> DeviceError:
    """What a driver complains of, in one line."""
    return (DeviceMemoryError if isinstance(error, cl.MemoryError) else DeviceError)(f"{name}: {error}")


def _make_kernel(program: cl.Program, name: str, arguments: Sequence[type[np.integer] | None]) -> cl.Kernel:
    kernel = cl.Kernel(program, name)
    kernel.set_arg_types(arguments)
    return kernel


def _make_queue(context: cl.Context, profile: bool) -> cl.CommandQueue:
    if profile:
        return cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    return cl.CommandQueue(context)


def _sub_device(handle: Any, compute_units: int) -> Any:
    try:
        return handle.create_sub_devices([cl.device_partition_property.BY_COUNTS, compute_units])[0]
    except cl.Error as error:
        raise DeviceError(f"{handle.name} cannot be limited to {compute_units} threads: {error}") from error
