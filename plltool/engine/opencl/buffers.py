"""An OpenCL engine of explicit buffers: wrapper of `kernels/buffers.cl`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from plltool.arrays import FloatArray, IntArray
from plltool.engine.branch_tables import pack_matrices
from plltool.engine.buffers import RATIO_VALUES, BufferEngine, Pending
from plltool.engine.layout import PMATRICES_ITEMS
from plltool.engine.opencl.engine import Chunk, OpenCLEngine
from plltool.engine.opencl.kernels import COMMON_FILES, Kernel, build_program
from plltool.engine.program import Request
from plltool.errors import DeviceMemoryError

KERNELS = "combine_matrices", "place_matrices", "note_scales", "add_sites", "add_products"
ORDERS = 3  # P, P' and P''


class OpenCLBuffers(OpenCLEngine, BufferEngine):
    """See `NumpyBuffers`. The host keeps the codes of tips, too, and sends them before the next program."""

    def prepare_buffers(self, n_matrices: int, n_logs: int) -> None:
        if len(self._chunks) > 1 or not self.resident:
            needed = self.storage.n_bytes(self.layout)
            raise DeviceMemoryError(f"{self.device_name}: no room for {needed} bytes of partials in one piece")
        super().prepare_buffers(n_matrices, n_logs)
        with self._driver_errors():
            program = build_program(self._context, self.layout, (*COMMON_FILES, "pmatrices.cl", "buffers.cl"))
            self._own_kernels = {name: Kernel(program, name, self.layout) for name in KERNELS}
            tile_stride, slot_stride = self.layout.strides(self.n_slots, self._chunk.n_tiles)
            sizes = {"n_held_tiles": self._chunk.n_tiles, "tile_stride": tile_stride, "slot_stride": slot_stride}
            group_blocks = int(self.layout.groups[0, 1]) * self.layout.tile_blocks
            self._numbers = self._fixed | sizes | {"group_blocks": group_blocks, "n_log_rows": n_logs}
            self._numbers |= {"n_psets": 1, "want_decays": 0, "want_differences": 0}
            for name, numbers in (
                ("logs", {"n_log_rows": n_logs}),
                ("matrices", {"n_psets": 1, "n_branches": n_matrices}),
            ):
                shape = self.layout.arrays[name]
                self._arrays.keep(name, np.zeros(shape.shape(numbers), dtype=shape.dtype), numbers)
        self._codes_are_stale = False

    @property
    def _chunk(self) -> Chunk:
        self._chunks = self._chunks or self._make_chunks()
        return self._chunks[0]

    def _run(
        self, name: str, items: tuple[int, ...], group: tuple[int, ...], numbers: dict[str, Any], **other: str
    ) -> None:
        """Enqueue a kernel of `buffers.cl`; `other` names the arrays that it takes for some of its arguments."""
        self._arrays.held |= self._chunk.storage
        self._arrays.run(self._own_kernels[name], items, group, self._numbers | numbers, **other)

    def _read(self, name: str, first: int, n: int) -> FloatArray:
        """(n, n_patterns) rows of an array of lanes; waits for them."""
        values = np.empty((n, self.layout.n_lanes))
        with self._driver_errors():
            self._arrays.receive(values, name, first * values[0].nbytes)
        return values[:, self.layout.lane_of_pattern]

    # --- what goes to the device ----------------------------------------------------------------------------

    def set_codes(self, tip: int, codes: npt.NDArray[np.integer]) -> None:
        layout = self.layout
        lanes = self.to_lanes(codes, layout.padding_code)
        self._codes[:, tip] = lanes.reshape(layout.n_tiles, layout.tile_blocks, layout.vw)
        self._codes_are_stale = True

    def set_matrices(self, indices: Sequence[int], matrices: FloatArray) -> None:
        packed, of_matrix = pack_matrices(self.layout, matrices), np.array(indices, dtype=np.intp)
        with self._driver_errors():
            for run in np.split(np.arange(len(packed)), np.flatnonzero(np.diff(of_matrix) != 1) + 1):  # neighbours
                if len(run):
                    self._arrays.write("matrices", packed[run], int(of_matrix[run[0]]) * packed[0].nbytes)

    def read_matrices(self, indices: Sequence[int]) -> FloatArray:
        layout = self.layout
        packed = np.empty((len(indices), layout.branch_values), dtype=layout.real)
        with self._driver_errors():
            for row, index in zip(packed, indices, strict=True):
                self._arrays.receive(row, "matrices", index * row.nbytes)
        n, c = layout.n_states, layout.n_components
        tables = packed[:, : c * layout.matrix_values].reshape(-1, c, layout.matrix_values)[..., : n * n]
        matrices = tables.reshape(-1, c, n, n).astype(np.float64)
        return matrices.swapaxes(-1, -2) if layout.many_states else matrices

    def make_matrices(self, eigen: FloatArray, lengths: FloatArray, places: IntArray) -> None:
        n, wants_slopes = len(lengths), bool((places[1:] >= 0).any())
        numbers = {"n_branches": n, "n_made": n, "want_slopes": int(wants_slopes)}
        sizes, arrays = self._numbers | numbers, self._arrays
        kernel = self._kernels.pmatrices
        assert kernel is not None, "there is double precision"
        with self._driver_errors():
            arrays.send("eigen", eigen, sizes)
            arrays.send("lengths", lengths[None], sizes)
            arrays.send("at_tips", np.zeros(n, dtype=np.uint8), sizes)
            arrays.send("places", places, sizes)
            arrays.post()
            for name in ("made", "slopes", "decays", "divided_differences"):
                arrays.reserve(name, sizes)
            arrays.run(kernel, (self.layout.pmatrix_items(1, n),), (PMATRICES_ITEMS,), sizes, matrices="made")
            self._place(numbers)

    def _make_matrices(self, *_: object) -> None:
        """They are set, not made for a launch."""
        self._arrays.post()

    def _place(self, numbers: dict[str, Any]) -> None:
        """Enqueue copies of made matrices to their places, with tables for tips."""
        items = numbers["n_made"], ORDERS if numbers["want_slopes"] else 1, self.layout.n_components
        self._run("place_matrices", items, (1, 1, 1), numbers)

    def combine_matrices(self, combination: int, pairs: IntArray, results: Sequence[int]) -> None:
        n = len(results)
        numbers = {"n_branches": n, "n_made": n, "want_slopes": 0, "combination": combination}
        places = np.full((ORDERS, n), -1, dtype=np.int32)
        places[0] = results
        with self._driver_errors():
            for name in ("made", "slopes"):
                self._arrays.reserve(name, self._numbers | numbers)
            self._arrays.send("pairs", pairs, numbers)
            self._arrays.send("places", places, numbers)
            self._arrays.post()
            self._run("combine_matrices", (n, self.layout.n_states, self.layout.n_components), (1, 1, 1), numbers)
            self._place(numbers)

    def _put_slot(self, slot: int, cla: npt.NDArray[np.floating]) -> None:
        with self._driver_errors():
            self._copy_slot("clas", slot, cla, to_device=True)
            self._copy_slot("scales", slot, np.zeros_like(cla[:, :, 0], dtype=np.int32), to_device=True)

    def _get_slot(self, slot: int) -> tuple[npt.NDArray[np.floating], IntArray]:
        layout = self.layout
        cla = np.empty((layout.n_blocks, layout.n_components, layout.n_states, layout.vw), dtype=layout.real)
        counts = np.empty((layout.n_blocks, layout.n_components, layout.vw), dtype=np.int32)
        with self._driver_errors():
            self._copy_slot("clas", slot, cla, to_device=False)
            self._copy_slot("scales", slot, counts, to_device=False)
        return cla, counts

    def _copy_slot(self, name: str, slot: int, blocks: npt.NDArray[Any], to_device: bool) -> None:
        """Copy a slot of all tiles, which lie a tile's stride apart, from or to consecutive blocks; waits for it."""
        numbers = self._numbers
        piece = blocks[0].nbytes * self.layout.tile_blocks
        pitch = int(numbers["tile_stride"]) * blocks[0].nbytes
        row, column = divmod(slot * int(numbers["slot_stride"]) * blocks[0].nbytes, pitch)
        buffer = self._chunk.storage[name]
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
        if to_device:
            self.counters.bytes_to_device += blocks.nbytes
        else:
            self.counters.bytes_from_device += blocks.nbytes

    # --- what the device makes ------------------------------------------------------------------------------

    def make(self, program: IntArray, steps: IntArray | None = None) -> None:
        with self._driver_errors():
            if steps is not None:
                self._arrays.send("steps", steps, {"n_steps": len(steps)})
            if self._codes_are_stale:
                self._arrays.keep("tips", self._codes, {})
                self._codes_are_stale = False
            if len(program):
                self._check_slots(program)
                self.counters.count("partials", program)
                self._launch(Request(program), np.zeros((1, self.n_matrices)))
        if steps is not None:
            self.note_scales(steps)

    def note_scales(self, steps: IntArray) -> None:
        numbers = {"n_steps": len(steps)}
        with self._driver_errors():
            self._arrays.send("steps", steps, numbers)
            self._arrays.post()
            items = self.layout.vw if self.layout.lane_per_item else 1
            self._run("note_scales", (self.n_groups * items,), (items,), numbers)

    def read_logs(self, row: int) -> FloatArray:
        return self._read("logs", row, 1)[0]

    def add_sites(self, queries: IntArray, masses: FloatArray, n_products: int) -> Pending:
        numbers = {"n_products": n_products, "n_values": n_products, "n_site_rows": ORDERS}
        with self._driver_errors():
            self._arrays.reserve("site_rows", numbers)
            self._ask_queries(queries, masses, numbers)
            self._add_groups(n_products)
        return lambda: self._take_sums(n_products)

    def _ask_queries(self, queries: IntArray, masses: FloatArray, numbers: dict[str, Any], **other: str) -> None:
        """Enqueue `add_sites`; unless `numbers` say otherwise, one answer for all queries. Groups are not added up."""
        plain = {"n_queries": len(queries), "n_sets": len(queries), "of_ratios": 0, "want_site": 1, "first_value": 0}
        numbers = plain | numbers
        self._arrays.send("queries", queries, numbers)
        self._arrays.post()
        self._arrays.send("masses", masses, numbers)
        self._arrays.reserve("partial", self._numbers | numbers)
        vw = self.layout.vw
        self._run("add_sites", (self.n_groups * vw, len(queries) // numbers["n_sets"]), (vw, 1), numbers, **other)

    def _take_sums(self, n_values: int) -> FloatArray:
        """(n_values,) the sums over all groups; waits for them."""
        sums = np.empty(n_values)
        with self._driver_errors():
            self._arrays.receive(sums, "partial", (self._sums.n_rows - 1) * sums.nbytes)
        return sums

    def read_sites(self, n: int) -> FloatArray:
        return self._read("site_rows", 0, n)

    def add_ratios(self, queries: IntArray, masses: FloatArray, first: int, n_all: int, want_sites: bool) -> None:
        n_values = RATIO_VALUES * n_all
        numbers = {"n_products": 2, "n_sets": 1, "of_ratios": 1, "first_value": RATIO_VALUES * first}
        numbers |= {"n_values": n_values, "want_site": int(want_sites), "n_site_rows": n_values * want_sites}
        with self._driver_errors():
            self._arrays.reserve("site", numbers)  # the values of the last `add_sites` stay
            self._ask_queries(queries, masses, numbers, site_rows="site")

    def take_ratios(self, n_all: int, want_sites: bool) -> tuple[FloatArray, FloatArray | None]:
        with self._driver_errors():
            self._add_groups(RATIO_VALUES * n_all)
        sums = self._take_sums(RATIO_VALUES * n_all).reshape(n_all, RATIO_VALUES)
        return sums, self._read("site", 0, RATIO_VALUES * n_all)[::RATIO_VALUES] if want_sites else None

    def add_products(self, queries: IntArray, masses: FloatArray, factors: FloatArray) -> FloatArray:
        n = self.layout.n_states
        n_values = max(n * n, len(queries))  # first the lnL of each query, then the products
        numbers = {"n_products": 1, "n_sets": 1, "n_values": n_values, "n_site_rows": len(queries)}
        with self._driver_errors():
            self._arrays.reserve("site", {"n_values": len(queries), "want_site": 1} | self._fixed)
            self._ask_queries(queries, masses, numbers, site_rows="site")
            numbers["n_queries"] = len(queries)
            self._arrays.send("masses", masses * factors[..., None], numbers)
            self._run("add_products", (self.n_groups, n), (1, 1), numbers, site_rows="site")
            self._add_groups(n_values)
        return self._take_sums(n_values)[: n * n].reshape(n, n)

    def finish(self) -> None:
        with self._driver_errors():
            self._arrays.finish()
