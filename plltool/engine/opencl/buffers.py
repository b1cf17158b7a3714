"""An OpenCL engine of explicit buffers: wrapper of `kernels/buffers.cl`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from plltool.arrays import ByteArray, FloatArray, IntArray
from plltool.engine.base import Tables
from plltool.engine.branch_tables import pack_matrices
from plltool.engine.buffers import BufferEngine, Pending
from plltool.engine.contract import ARRAYS
from plltool.engine.layout import ArrayShape
from plltool.engine.opencl.arrays import DeviceArray
from plltool.engine.opencl.engine import Chunk, OpenCLEngine
from plltool.engine.opencl.kernels import Kernel, build_program
from plltool.engine.program import Request
from plltool.errors import DeviceMemoryError

CPU_GROUP_BLOCKS = 32  # 4,000 patterns of 31 slots: 500 groups cost less than the work


class OpenCLBuffers(OpenCLEngine, BufferEngine):
    """See `BufferEngine`; the host keeps matrices and codes, too, and sends them before the next program."""

    def prepare_buffers(self, n_matrices: int) -> None:
        if len(self._chunks) > 1 or not self.resident:
            needed = self.storage.n_bytes(self.layout)
            raise DeviceMemoryError(f"{self.device_name}: no room for {needed} bytes of partials in one piece")
        super().prepare_buffers(n_matrices)
        with self._driver_errors():
            program = build_program(self._context, self.layout, ("layout.h", "buffers.cl"))
            self._log_maxima = Kernel(program, "log_maxima", self.layout)
            self._dot_clas = Kernel(program, "dot_clas", self.layout)
        self._packed = np.zeros((n_matrices, self.layout.branch_values), dtype=self.layout.real)
        self._stale: set[int] = set()
        self._codes_are_stale = False

    @property
    def _chunk(self) -> Chunk:
        self._chunks = self._chunks or self._make_chunks()
        return self._chunks[0]

    def _numbers(self) -> dict[str, Any]:
        tile_stride, slot_stride = self.layout.strides(self.n_slots, self._chunk.n_tiles)
        sizes = {"n_held_tiles": self._chunk.n_tiles, "tile_stride": tile_stride, "slot_stride": slot_stride}
        return self._fixed | sizes | {"group_blocks": self._group_blocks}

    @property
    def _group_blocks(self) -> int:
        """Blocks that a work-group takes: one on a GPU, enough on a CPU."""
        return 1 if self.layout.lane_per_item else CPU_GROUP_BLOCKS

    @property
    def _n_items(self) -> int:
        return -(-self.layout.n_blocks // self._group_blocks) * self.layout.vw

    # --- what goes to the device ----------------------------------------------------------------------------

    def set_codes(self, tip: int, codes: npt.NDArray[np.integer]) -> None:
        layout = self.layout
        lanes = self.to_lanes(codes, layout.padding_code)
        self._codes[:, tip] = lanes.reshape(layout.n_tiles, layout.tile_blocks, layout.vw)
        self._codes_are_stale = True

    def set_matrices(self, indices: Sequence[int], matrices: FloatArray) -> None:
        self._packed[list(indices)] = pack_matrices(self.layout, matrices)
        self._stale.update(indices)

    def _make_matrices(self, lengths: FloatArray, tables: Tables, at_tips: ByteArray, numbers: dict[str, Any]) -> None:
        """Send what the launch needs, and enqueue copies of the matrices that have changed, neighbours together."""
        self._arrays.post()
        stale = np.array(sorted(self._stale), dtype=np.intp)
        for run in np.split(stale, np.flatnonzero(np.diff(stale) > 1) + 1):
            if len(run):
                self._arrays.write("matrices", self._packed[run[0] : run[-1] + 1], int(run[0]) * self._packed[0].nbytes)
        self._stale.clear()

    def write_slot(self, slot: int, values: FloatArray) -> None:
        blocks = np.ascontiguousarray(self.to_lanes(values, 1.0).transpose(0, 2, 3, 1), dtype=self.layout.real)
        with self._driver_errors():
            self._copy_slot("clas", slot, blocks, to_device=True)
            counts = np.zeros((self.layout.n_blocks, self.layout.n_components, self.layout.vw), dtype=np.int32)
            self._copy_slot("scales", slot, counts, to_device=True)

    def read_slot(self, slot: int) -> tuple[FloatArray, IntArray]:
        layout = self.layout
        cla = np.empty((layout.n_blocks, layout.n_components, layout.n_states, layout.vw), dtype=layout.real)
        counts = np.empty((layout.n_blocks, layout.n_components, layout.vw), dtype=np.int32)
        with self._driver_errors():
            self._copy_slot("clas", slot, cla, to_device=False)
            self._copy_slot("scales", slot, counts, to_device=False)
            self._settle()
        lanes = layout.lane_of_pattern
        values = cla.transpose(0, 3, 1, 2).reshape(layout.n_lanes, layout.n_components, layout.n_states)[lanes]
        return values.astype(np.float64), counts.transpose(0, 2, 1).reshape(layout.n_lanes, -1)[lanes]

    def _copy_slot(self, name: str, slot: int, blocks: npt.NDArray[Any], to_device: bool) -> None:
        """Copy a slot of all tiles, which lie a tile's stride apart, from or to consecutive blocks; waits for it."""
        numbers = self._numbers()
        piece = blocks[0].nbytes * self.layout.tile_blocks
        pitch = int(numbers["tile_stride"]) * blocks[0].nbytes
        row, column = divmod(slot * int(numbers["slot_stride"]) * blocks[0].nbytes, pitch)
        buffer = self._chunk.storage[name].buffer
        ends: tuple[Any, Any] = (buffer, blocks) if to_device else (blocks, buffer)
        copy: Any = cl.enqueue_copy
        copy(
            self._queue,
            *ends,
            buffer_origin=(column, row, 0),
            host_origin=(0, 0, 0),
            region=(piece, self._chunk.n_tiles, 1),
            buffer_pitches=(pitch, 0),
            host_pitches=(piece, 0),
            is_blocking=True,
        )

    # --- what the device makes ------------------------------------------------------------------------------

    def make(self, program: IntArray) -> None:
        self._check_slots(program)
        self.counters.count("partials", program)
        with self._driver_errors():
            if self._codes_are_stale:
                self._arrays.overwrite("tips", self._codes)
                self._codes_are_stale = False
            self._launch(Request(program), np.zeros((1, self.n_matrices)), Tables())

    def log_maxima(self, slots: Sequence[int]) -> Pending:
        numbers = self._numbers() | {"n_listed": len(slots)}
        listed = np.array(slots, dtype=np.int32)
        return self._compute(self._log_maxima, (len(slots),), {"slot_list": listed}, "maxima", numbers)

    def dot_clas(self, a: int, first_b: int, n: int, masses: FloatArray) -> Pending:
        numbers = self._numbers() | {"slot_a": a, "first_b": first_b, "n_products": n, "n_product_rows": n + 1}
        return self._compute(self._dot_clas, (), {"masses": masses}, "products", numbers)

    def _compute(
        self, kernel: Kernel, more_items: tuple[int, ...], sent: dict[str, Any], made: str, numbers: dict[str, Any]
    ) -> Pending:
        """Enqueue a kernel that makes rows (n, n_lanes) in a new array, which are read later."""
        layout, shape = self.layout, ArrayShape(ARRAYS[made], self.layout)
        with self._driver_errors():
            for name, array in sent.items():
                self._arrays.send(name, array, numbers)
            size = shape.n_bytes(numbers)
            out = DeviceArray(size, cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size))
            held = self._arrays.held | self._chunk.storage | {made: out}
            items, group = (self._n_items, *more_items), (layout.vw, *(1 for _ in more_items))
            self._clock.watch(kernel(self._queue, items, group, held, numbers))

        def read() -> FloatArray:
            values = np.empty(shape.shape(numbers))
            with self._driver_errors():
                cl.enqueue_copy(self._queue, values, out.buffer)
                self._settle()
            out.buffer.release()
            self.counters.bytes_from_device += values.nbytes
            return values[:, layout.lane_of_pattern]

        return read

    def finish(self) -> None:
        with self._driver_errors():
            self._queue.finish()
            self._settle()
