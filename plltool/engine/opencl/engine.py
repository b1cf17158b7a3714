"""The OpenCL engine: CLAs stay on the device; programs go down, sums come back."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from plltool.engine.base import Engine, FloatArray, IntArray, Tables
from plltool.engine.layout import Layout
from plltool.engine.opencl.device import Device
from plltool.errors import DeviceError, EngineError
from plltool.model.components import Components

NO_BAD_PATTERN = np.int32(np.iinfo(np.int32).max)
BUILD_OPTIONS = ["-cl-mad-enable"]

_log = logging.getLogger("plltool")


def build_program(context: cl.Context, layout: Layout) -> cl.Program:
    """Compile the kernels for one layout; both pyopencl and the driver keep the binary on disk.

    Raises DeviceError with the compiler's log.
    """
    folder = files("plltool.kernels")
    names = ("layout.h", "arithmetic.h", "pmatrices.cl", "instructions.h", "traverse.cl")
    source = "\n".join((folder / name).read_text(encoding="utf-8") for name in names)
    with warnings.catch_warnings(record=True) as remarks:  # a compiler's remarks are for the log, not for the user
        warnings.simplefilter("always", cl.CompilerWarning)
        try:
            program = cl.Program(context, source).build(options=BUILD_OPTIONS + layout.macros())
        except cl.RuntimeError as error:
            raise DeviceError(f"kernels do not build on {context.devices[0].name}: {error}") from error
    for remark in remarks:
        _log.debug("%s: %s", context.devices[0].name, remark.message)
    return program


@dataclass
class Chunk:
    """CLA storage for a run of tiles: no buffer exceeds the device's largest allocation."""

    first_group: int
    n_groups: int
    clas: cl.Buffer
    scales: cl.Buffer
    strides: tuple[int, int]


class GrowingBuffer:
    """A device buffer that is replaced by a larger one when an upload or result needs it."""

    def __init__(self, context: cl.Context):
        self._context = context
        self._size = 0
        self.buffer: cl.Buffer | None = None

    def reserve(self, size: int) -> cl.Buffer:
        if self.buffer is None or size > self._size:
            self.release()
            larger = max(4096, size + size // 2)
            self.buffer = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, larger)
            self._size = larger
        return self.buffer

    def release(self) -> None:
        if self.buffer is not None:
            self.buffer.release()
            self.buffer = None
            self._size = 0


class OpenCLEngine(Engine):
    """See :class:`plltool.engine.base.Engine`.

    Parameters
    ----------
    device : from `list_devices`
    compute_units : use so many cores of a CPU device, by a sub-device; None for all
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
    ):
        super().__init__(layout, n_slots, codes, weights)
        self._device = device
        self._closed = False
        handle = device.handle
        if compute_units is not None and compute_units < device.compute_units:
            handle = _sub_device(handle, compute_units)
        try:
            self._context = cl.Context([handle])
            self._queue = cl.CommandQueue(self._context)
            program = build_program(self._context, layout)
            self._pmatrices = cl.Kernel(program, "pmatrices")
            self._traverse = cl.Kernel(program, "traverse")
            self._allocate(codes, weights)
        except cl.MemoryError as error:
            raise DeviceError(f"{device.label}: out of memory for {n_slots} CLAs: {error}") from error
        except cl.Error as error:
            raise DeviceError(f"{device.label}: {error}") from error

    def _allocate(self, codes: npt.NDArray[np.integer], weights: FloatArray) -> None:
        layout = self.layout
        self._tips = self._upload(layout.pad_codes(codes))
        self._weights = [self._upload(row) for row in layout.pad_weights(np.atleast_2d(weights))]
        self._tile_blocks = self._upload(layout.tile_used_blocks)
        self._bad_pattern = self._upload(np.array([NO_BAD_PATTERN]))
        self._chunks = [self._make_chunk(rows) for rows in self._split_groups()]
        first_tiles = np.concatenate(
            [np.full(chunk.n_groups, layout.groups[chunk.first_group, 0]) for chunk in self._chunks]
        )
        groups = np.column_stack([layout.groups, first_tiles]).astype(np.int32)
        self._groups = self._upload(groups)
        self._tables: tuple[FloatArray, Tables] | None = None  # on the device: of which lengths, and which
        growing = ("lengths", "program", "matrices", "slopes", "decays", "responses", "partial", "site")
        self._growing = {name: GrowingBuffer(self._context) for name in growing}

    def _split_groups(self) -> list[npt.NDArray[np.intp]]:
        """Runs of groups whose CLAs fit one buffer each."""
        layout = self.layout
        tile_bytes = layout.tile_blocks * layout.block_values * layout.real.itemsize * self.n_slots
        tiles_per_chunk = self._device.max_allocation // tile_bytes
        runs: list[list[int]] = [[]]
        used = 0
        for group, n_tiles in enumerate(layout.groups[:, 1].tolist()):
            if n_tiles > tiles_per_chunk:
                raise DeviceError(
                    f"{self._device.name}: {n_tiles * tile_bytes} bytes of CLAs for one group exceed the largest "
                    f"buffer of {self._device.max_allocation} bytes"
                )
            if used + n_tiles > tiles_per_chunk:
                runs.append([])
                used = 0
            runs[-1].append(group)
            used += n_tiles
        return [np.array(run) for run in runs]

    def _make_chunk(self, run: npt.NDArray[np.intp]) -> Chunk:
        layout = self.layout
        n_tiles = int(layout.groups[run, 1].sum())
        blocks = n_tiles * layout.tile_blocks * self.n_slots
        flags = cl.mem_flags.READ_WRITE
        return Chunk(
            first_group=int(run[0]),
            n_groups=len(run),
            clas=cl.Buffer(self._context, flags, blocks * layout.block_values * layout.real.itemsize),
            scales=cl.Buffer(self._context, flags, blocks * layout.vw * 4),
            strides=layout.strides(self.n_slots, n_tiles),
        )

    def _upload(self, array: npt.NDArray[Any]) -> cl.Buffer:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.counters.bytes_to_device += array.nbytes
        return cl.Buffer(self._context, flags, hostbuf=np.ascontiguousarray(array))

    def _send(self, name: str, array: npt.NDArray[Any]) -> cl.Buffer:
        buffer = self._growing[name].reserve(array.nbytes)
        cl.enqueue_copy(self._queue, buffer, array)
        self.counters.bytes_to_device += array.nbytes
        return buffer

    def _receive(self, array: npt.NDArray[Any], buffer: cl.Buffer) -> npt.NDArray[Any]:
        cl.enqueue_copy(self._queue, array, buffer)
        self.counters.bytes_from_device += array.nbytes
        return array

    @property
    def device_name(self) -> str:
        return f"{self._device.name} ({self._device.platform})"

    def set_model(self, parts: Sequence[Components]) -> None:
        self._check_parts(parts)
        with self._driver_errors():
            self._send_model(parts)

    def _send_model(self, parts: Sequence[Components]) -> None:
        eigen, model = [], []
        for part in parts:
            mass = part.masses()
            for c in range(part.n_components):
                right, left = part.right[c], part.left[c]
                eigen += [part.eigenvalues[c] * part.rates[c], right.ravel(), left.ravel()]
                model += [mass[c], (mass[c][:, None] * right).T.ravel(), left.ravel()]
        self._tables = None
        self._eigen = self._upload(np.concatenate(eigen))
        self._model = self._upload(np.concatenate(model).astype(self.layout.real))

    def _launch(
        self, program: IntArray, lengths: FloatArray, n_values: int, weight_set: int, tables: Tables, site: bool
    ) -> tuple[cl.Buffer, cl.Buffer]:
        """Enqueue the traversal of every chunk, and the matrices first unless the last lengths come again.

        Returns (partial sums, site lnL).
        """
        layout, growing = self.layout, self._growing
        n_branches = lengths.shape[1]
        matrices = layout.n_parts * n_branches * layout.n_components
        item = layout.real.itemsize
        squares = layout.n_states**2 * item
        program_buffer = self._send("program", program)
        p_buffer = growing["matrices"].reserve(matrices * squares)
        q_buffer = growing["slopes"].reserve(2 * matrices * squares if tables.slopes else item)
        f_buffer = growing["responses"].reserve(matrices * squares if tables.responses else item)
        d_buffer = growing["decays"].reserve(matrices * 3 * layout.n_states * item)
        partial = growing["partial"].reserve(len(layout.groups) * max(1, n_values) * 8)
        site_buffer = growing["site"].reserve(layout.n_lanes * 8 if site else 8)
        if self._tables is None or not (self._tables[1].cover(tables) and np.array_equal(self._tables[0], lengths)):
            self._pmatrices(
                self._queue, (matrices,), None, self._eigen, self._send("lengths", np.ascontiguousarray(lengths)),
                p_buffer, q_buffer, d_buffer, f_buffer, np.int32(n_branches), np.int32(layout.n_parts),
                np.int32(tables.slopes), np.int32(tables.responses),
            )  # fmt: skip
            self._tables = (lengths.copy(), tables)
            self.counters.launches += 1
        local = layout.vw if layout.lane_per_item else 1
        for chunk in self._chunks:
            self._traverse(
                self._queue, (chunk.n_groups * local,), (local,),
                chunk.clas, chunk.scales, self._tips, self._weights[weight_set], self._model,
                p_buffer, q_buffer, d_buffer, f_buffer, program_buffer, self._groups, self._tile_blocks,
                partial, self._bad_pattern, site_buffer, np.int32(site), np.int32(chunk.first_group),
                np.int32(len(program)), np.int32(n_values), np.int32(layout.n_taxa), np.int32(n_branches),
                np.uint64(chunk.strides[0]), np.uint64(chunk.strides[1]),
            )  # fmt: skip
        self.counters.launches += len(self._chunks)
        return partial, site_buffer

    def _execute(
        self, program: IntArray, lengths: FloatArray, n_values: int, weight_set: int, tables: Tables
    ) -> FloatArray:
        with self._driver_errors():
            partial, _ = self._launch(program, lengths, n_values, weight_set, tables, site=False)
            sums = np.empty((len(self.layout.groups), n_values))
            if n_values:
                self._receive(sums, partial)
            values = np.add.reduceat(sums, self.layout.part_first_group, axis=0)
            self._check_device(values)
        return values

    def _site_values(self, program: IntArray, lengths: FloatArray) -> FloatArray:
        with self._driver_errors():
            _, site = self._launch(program, lengths, 1, 0, Tables(), site=True)
            values = self._receive(np.empty(self.layout.n_lanes), site)[self.layout.lane_of_pattern]
            self._check_device(values)
        return values

    @contextmanager
    def _driver_errors(self) -> Iterator[None]:
        """Whatever the driver complains of is a DeviceError; a closed engine is our caller's bug."""
        if self._closed:
            raise EngineError(f"the engine on {self.device_name} is closed")
        try:
            yield
        except cl.Error as error:
            raise DeviceError(f"{self.device_name}: {error}") from error

    def _check_device(self, values: FloatArray) -> None:
        """Ask the device which pattern failed, only if a sum says that one did."""
        if np.all(np.isfinite(values)):
            return
        bad = int(self._receive(np.empty(1, dtype=np.int32), self._bad_pattern)[0])
        cl.enqueue_copy(self._queue, self._bad_pattern, np.array([NO_BAD_PATTERN]))
        self._check_finite(values, None if bad == NO_BAD_PATTERN else bad)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._queue.finish()
        for buffer in [buffer for chunk in self._chunks for buffer in (chunk.clas, chunk.scales)]:
            buffer.release()
        for growing in self._growing.values():
            growing.release()


def _sub_device(handle: Any, compute_units: int) -> Any:
    try:
        return handle.create_sub_devices([cl.device_partition_property.BY_COUNTS, compute_units])[0]
    except cl.Error as error:
        raise DeviceError(f"{handle.name} cannot be limited to {compute_units} threads: {error}") from error
