"""The OpenCL engine: CLAs never leave the device; programs go down, sums come back."""

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from operator import is_
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from plltool.arrays import BoolArray, ByteArray, FloatArray, IntArray
from plltool.constants import MASK_STATES
from plltool.engine.base import Engine, EngineData, Peak
from plltool.engine.branch_tables import Spectra, pack_matrices, pack_tables
from plltool.engine.contract import SpanWord, WalkWord
from plltool.engine.layout import PMATRICES_ITEMS, Layout, count_work_groups
from plltool.engine.opencl.arrays import DeviceArrays, make_buffer
from plltool.engine.opencl.device import Device, forget_contexts, make_context
from plltool.engine.opencl.kernels import EngineKernels, forget_programs
from plltool.engine.opencl.peaks import make_peaks
from plltool.engine.opencl.schedule import Schedule, cut_launches, plan_levels, plan_tracks, spread_slots, spread_sums
from plltool.engine.program import Request, branches_at_tips
from plltool.engine.requests import Answer, Parts, Walkers
from plltool.engine.storage import Storage
from plltool.engine.sums import plan_sums
from plltool.errors import DeviceError, DeviceLostError, DeviceMemoryError, EngineError
from plltool.progress import log

CPU_GROUPS_PER_UNIT = 2  # work-groups per compute unit over which a launch with few patterns is spread
GPU_GROUPS_PER_UNIT = 16  # the same: enough to hide the latency of memory; 4 and 8 are as fast on an H200 with 4 states
# Instructions times patterns of a launch on a GPU, for 4 states and 4 components: 3 to 6 ms on an H200 and less than a
# second on an integrated GPU (reckoned); watchdogs end what keeps a display waiting for 2 s.
GPU_LAUNCH_WORK = 1 << 26
NO_BAD_PATTERN = np.int32(np.iinfo(np.int32).max)
KEPT_PLANS = 8  # of programs cut into levels: a topology has one for each request
ADD_ROWS_ITEMS = 64  # values of a work-group

PackedModel: TypeAlias = tuple[FloatArray, npt.NDArray[np.floating]]  # see `OpenCLEngine.pack_models`


@dataclass
class Chunk:
    """The spans of one launch, and the buffers of their CLAs, which other chunks may use, too; `n_tiles` fit."""

    spans: IntArray
    n_tiles: int
    storage: dict[str, cl.Buffer]  # clas and scales


class OpenCLEngine(Engine):
    """The engine on a `device`; DeviceMemoryError if that has less memory than it claims.

    `compute_units` cores of a CPU device are used, by a sub-device; None for all. With `profile` the counters measure
    how long kernels run (`device_seconds`).
    """

    name = "opencl"

    def __init__(
        self,
        layout: Layout,
        storage: Storage,
        data: EngineData,
        device: Device,
        compute_units: int | None = None,
        profile: bool = False,
    ):
        super().__init__(layout, storage, data)
        units = device.compute_units if compute_units is None else min(compute_units, device.compute_units)
        self._work_groups = count_work_groups(layout, units)  # of a launch at most
        self._device = device
        self.device_name, self.driver = device.full_name, f"{device.version}, driver {device.driver}"
        self._closed = False
        self._wanted_groups = units * (GPU_GROUPS_PER_UNIT if layout.lane_per_item else CPU_GROUPS_PER_UNIT)
        self._one_thread = units == 1 and not layout.lane_per_item
        self.counters.device_seconds = 0.0 if profile else None
        try:
            self._context, used = make_context(device, compute_units)
            measured = [cl.command_queue_properties.PROFILING_ENABLE] if profile else []
            self._queue = cl.CommandQueue(self._context, used, *measured)
            self._kernels = EngineKernels(self._context, layout)
            self._allocate()
        except cl.Error as error:
            raise _as_device_error(device.label, error) from error

    def _allocate(self) -> None:
        layout = self.layout
        self._sums = plan_sums(layout)
        self._fixed = {  # numbers that kernels take, and sizes of arrays, that are the same in every launch
            "n_slots": self.n_slots,
            "n_taxa": layout.n_taxa,
            "tile_blocks": layout.tile_blocks,
            "n_lanes": layout.n_lanes,
            "n_state_sets": len(self._state_sets),
            "n_made_rows": len(self._sums.made),
            "n_sum_rows": self._sums.n_rows,
            "n_groups": self._sums.n_groups,
        }
        self._arrays = DeviceArrays(self._queue, layout, self.counters)
        stay = {
            "tips": self._codes,
            "state_sets": self._state_sets,
            "weights": layout.pad_weights(self.weights),
            "used_blocks": layout.tile_used_blocks,
            "bad_pattern": np.array([NO_BAD_PATTERN]),
        }
        if self._sums.levels:
            stay["sum_tree"] = self._sums.made
        for name, array in stay.items():
            self._arrays.keep(name, array, self._fixed)
        self._chunks = self._make_chunks()
        self.can_walk = not layout.lane_per_item and layout.double_sums and self.resident and len(self._chunks) == 1
        self._tiles_apart = all(run[:, SpanWord.N_TILES].max() == 1 for run in self.storage.runs)  # no shared slots
        self._planned: dict[bytes, Schedule] = {}  # the last programs that were to be cut into levels
        self._made: tuple[bytes, Set[str], ByteArray] | None = None  # lengths, and what has been made at them
        self._used: tuple[PackedModel, ...] = ()  # whose P sets the device has

    def _make_chunks(self) -> list[Chunk]:
        layout, storage = self.layout, self.storage
        try:
            self._held = [self._hold_tiles(n_tiles) for n_tiles in storage.buffer_tiles]
        except cl.MemoryError as error:
            needed = storage.n_bytes(layout)
            raise DeviceMemoryError(f"{self._device.label}: no room for {needed} bytes of CLAs: {error}") from error
        held = zip(storage.buffer_tiles, self._held, strict=True)
        places = held if storage.resident else list(held) * len(storage.runs)
        return [Chunk(run, *place) for run, place in zip(storage.runs, places, strict=True)]

    def _hold_tiles(self, n_tiles: int) -> dict[str, cl.Buffer]:
        """CLAs and scaling counts of a number of tiles."""
        sizes = {"n_held_tiles": n_tiles, "n_slots": self.n_slots}
        held = {}
        for name in ("clas", "scales"):
            size = self.layout.arrays[name].n_bytes(sizes)
            held[name] = make_buffer(self._context, size)
            if not self._device.shares_host_memory:  # such devices allocate what is used; NVIDIA's cannot fill GiB
                cl.enqueue_fill_buffer(self._queue, held[name], np.zeros(1, dtype=np.uint8), 0, 1)
                self._queue.finish()
            self.counters.hold(size)
        return held

    def _send_weights(self, padded: FloatArray) -> None:
        with self._driver_errors():
            self._arrays.keep("weights", padded, {})

    def peaks(self) -> dict[str, Peak]:
        with self._driver_errors():
            return make_peaks(self._queue, self.layout)

    def set_model(self, parts: Parts) -> None:
        self._check_parts(parts)
        self._own_model = self.pack_models([parts])
        with self._driver_errors():
            self._use_models(self._own_model)

    def pack_models(self, models: Sequence[Parts]) -> list[PackedModel]:
        """The rows of the arrays `eigen` and `model` of a P set for each part of each model."""
        parts = [part for own in models for part in own]
        spectra, mass = Spectra.of(parts), np.array([part.masses() for part in parts])
        flat = (*mass.shape[:2], -1)
        weighted = (mass[..., None] * spectra.right).swapaxes(2, 3)
        tables = [pack_tables(self.layout, matrices).reshape(flat) for matrices in (weighted, spectra.left)]
        rates = np.array([part.rates for part in parts])[..., None]
        model = np.concatenate([mass, *tables, rates], axis=2, dtype=self.layout.real)
        shape = len(models), self.n_parts, mass.shape[1], -1
        return list(zip(spectra.pack().reshape(shape), model.reshape(shape), strict=True))

    def _use_models(self, models: Sequence[PackedModel]) -> None:
        """Make the P sets of these models, one model after another, those that the next launch uses."""
        if len(models) == len(self._used) and all(map(is_, models, self._used)):
            return
        self._used, self._made = tuple(models), None
        eigen, model = (np.concatenate(rows) for rows in zip(*models, strict=True))
        sizes = {"n_psets": len(eigen)}
        if self.layout.has_double:
            self._arrays.send("eigen", eigen, sizes)
        else:
            self._spectra = Spectra.unpack(eigen, self.layout.n_states)
        self._arrays.send("model", model, sizes)

    def _launch(self, request: Request, lengths: FloatArray, schedule: Schedule | None = None) -> None:
        """Enqueue the traversal of every chunk; P matrices first, unless the last lengths come again."""
        arrays, tables = self._arrays, self._tables(request.program)
        self._chunks = self._chunks or self._make_chunks()
        spans = [self._spans_of(chunk, request.parts) for chunk in self._chunks]
        schedule, most_spans = self._bound_launches(schedule or self._plan(request), spans)
        (n_psets, n_branches), tracks = lengths.shape, np.concatenate(schedule.launches)
        first_tracks = np.cumsum([0, *map(len, schedule.launches)]).tolist()
        numbers: dict[str, Any] = self._fixed | {
            "n_psets": n_psets,
            "n_branches": n_branches,
            "n_instructions": len(schedule.program),
            "n_tracks": len(tracks),
            "n_values": request.n_values,
            "want_decays": "decays" in tables,
            "want_slopes": "slopes" in tables,
            "want_differences": "divided_differences" in tables,
            "want_site": request.of_sites,
            "keep": request.keep,
            "first_shifted": request.scratch.start,
        }
        arrays.send("program", schedule.program, numbers)
        arrays.send("tracks", tracks, numbers)
        for name in ("matrices", "slopes", "decays", "divided_differences", "partial", "site"):
            arrays.reserve(name, numbers)
        group, traverse = self.layout.group_items, self._kernels.traverse(schedule.program)
        numbers["n_spans"], n_before = sum(map(len, spans)), 0
        arrays.send("spans", spans[0] if len(spans) == 1 else np.concatenate(spans), numbers)
        self._make_matrices(lengths, tables, branches_at_tips(request.program, n_branches), numbers)
        for chunk, own in zip(self._chunks, spans, strict=True):
            tile_stride, slot_stride = self.layout.strides(self.n_slots, chunk.n_tiles)
            numbers |= {"n_held_tiles": chunk.n_tiles, "tile_stride": tile_stride, "slot_stride": slot_stride}
            arrays.held |= chunk.storage
            for (first_track, end), first in product(pairwise(first_tracks), range(0, len(own), most_spans)):
                n = min(most_spans, len(own) - first)
                numbers |= {"first_track": first_track, "launch_tracks": end - first_track}
                numbers |= {"first_span": n_before + first, "launch_spans": n}
                items = (min(n, self._work_groups) * group, 1 if self._one_thread else end - first_track)
                arrays.run(traverse, items, (group, 1), numbers)
            n_before += len(own)

    def _bound_launches(self, schedule: Schedule, spans: Sequence[IntArray]) -> tuple[Schedule, int]:
        """The schedule cut so that a launch on a GPU ends soon, and the most spans of a launch; no bit depends on it.

        Where tiles of a span use the same slots, a launch takes fewer spans, though as many as keep the device busy.
        """
        layout, n_spans = self.layout, max(map(len, spans))
        n_tiles = max(int(own[:, SpanWord.N_TILES].sum()) for own in spans)
        if not layout.lane_per_item or not n_tiles:
            return schedule, max(1, n_spans)
        values = layout.n_components * layout.n_states**2 * layout.tile_blocks * layout.vw  # of a tile
        most = 64 * GPU_LAUNCH_WORK // (values * n_tiles)  # instructions
        if self._tiles_apart:
            return cut_launches(schedule, most), n_spans
        return schedule, max(1, self._wanted_groups, n_spans * most // max(1, len(schedule.program)))

    def _spans_of(self, chunk: Chunk, parts: BoolArray | None) -> IntArray:
        """The spans of a chunk that belong to some parts, None for all; a work-group takes every n-th of them."""
        spans = chunk.spans if parts is None else chunk.spans[parts[chunk.spans[:, SpanWord.PART]]]
        if not self.storage.shared:
            return spans
        spans = spans.copy()
        spans[:, SpanWord.PLACE] = np.arange(len(spans)) % self._work_groups
        return spans

    def _make_matrices(
        self, lengths: FloatArray, tables: Set[str], at_tips: ByteArray, numbers: dict[str, Any]
    ) -> None:
        """Send what the launch needs, and enqueue the kernel that makes P matrices and tables unless they are there."""
        sent, kernel, made = lengths.tobytes(), self._kernels.pmatrices, self._made
        is_made = made is not None and made[0] == sent and made[1] >= tables and bool(np.all(at_tips <= made[2]))
        if kernel is not None and not is_made:
            self._arrays.send("lengths", lengths, numbers)
            self._arrays.send("at_tips", at_tips, numbers)
        self._arrays.post()
        if is_made:
            return
        if kernel is None:
            self._send_matrices(lengths, tables, numbers)
        else:
            items = PMATRICES_ITEMS if self._one_thread else self.layout.pmatrix_items(*lengths.shape)
            self._arrays.run(kernel, (items,), (PMATRICES_ITEMS,), numbers)
        self._made = (sent, tables, at_tips)

    def _send_matrices(self, lengths: FloatArray, wanted: Set[str], numbers: dict[str, Any]) -> None:
        """Make on the host what `pmatrices` makes, in double precision, and send it."""
        for name, table in self._spectra.tables(lengths, wanted, self.layout.real).items():
            packed = pack_tables(self.layout, table) if name == "slopes" else table
            packed = pack_matrices(self.layout, table) if name == "matrices" else packed[None]
            self._arrays.send(name, packed, numbers)

    def _plan(self, request: Request) -> Schedule:
        """Pieces at the same time, or levels where the rule for GPUs asks for them; no bit depends on it."""
        n_spans = len(self.storage.runs[0])
        if self.layout.lane_per_item and len(request.pieces) == 1 and (request.keep or self._tiles_apart):
            name = bytes([request.keep]) + request.program.tobytes()
            if name not in self._planned:
                program = request.program if request.keep else spread_slots(request.program, self.n_slots)
                plan = plan_levels(program, n_spans, self._wanted_groups, self.layout.n_states > MASK_STATES)
                tracks = plan_tracks(request, self.n_slots, n_spans, self._wanted_groups)
                for oldest in list(self._planned)[: 1 - KEPT_PLANS]:
                    del self._planned[oldest]
                self._planned[name] = plan or Schedule(request.program, (tracks,))
            return self._planned[name]
        return Schedule(request.program, (plan_tracks(request, self.n_slots, n_spans, self._wanted_groups),))

    def _ask(self, request: Request, lengths: FloatArray) -> Answer:
        spread, sums = spread_sums(request, self.layout)
        sums_of_parts = self._ask_tracks(spread, lengths, self._own_model)
        if request.of_sites:
            return partial(self._site_values, request)

        def answer() -> FloatArray:
            values = sums_of_parts()
            if len(sums):
                values[:, sums[0]] = values[:, sums].sum(axis=1)
            return values[:, : request.n_values]

        return answer

    def _sums_of_parts(self, n_values: int, wanted: BoolArray | None = None) -> FloatArray:
        """What a launch made, (n_parts, n_values); 0 for parts that are not wanted."""
        if not n_values:
            return np.empty((self.n_parts, 0))
        with self._driver_errors():
            sums = np.empty((self.n_parts, n_values), dtype=self.layout.wide_sum)
            first = (self._sums.n_rows - self.n_parts) * n_values * sums.itemsize
            self._arrays.receive(sums, "partial", first)
            values = sums if self.has_double else sums.real.astype(np.float64) + sums.imag
            if wanted is not None:
                values[~wanted] = 0.0
            if not np.isfinite(values).all():
                bad = int(self._arrays.receive(np.empty(1, dtype=np.int32), "bad_pattern")[0])
                self._forget_bad_pattern()
                self._check_finite(values, None if bad == NO_BAD_PATTERN else bad)
        return values

    def _ask_tracks(
        self, request: Request, lengths: FloatArray, models: Sequence[PackedModel], tracks: IntArray | None = None
    ) -> Answer:
        with self._driver_errors():
            self._use_models(models)
            self._launch(request, lengths, None if tracks is None else Schedule(request.program, (tracks,)))
            self._add_groups(0 if request.of_sites else request.n_values)
        return partial(self._sums_of_parts, request.n_values, request.parts)

    def walk(self, walkers: Walkers, models: Sequence[PackedModel], n_slots: int, n_steps: int) -> None:
        layout, arrays, (chunk,) = self.layout, self._arrays, self._chunks
        n_walkers, _, n_nodes = walkers.trees.shape
        tile_stride, slot_stride = layout.strides(self.n_slots, chunk.n_tiles)
        numbers: dict[str, Any] = self._fixed | {
            "n_psets": n_walkers * self.n_parts,
            "n_branches": 2 * n_nodes,
            "n_places": 2 * n_nodes,
            "n_tree_nodes": n_nodes,
            "n_walkers": n_walkers,
            "n_split_tables": len(walkers.split_weights),
            "n_length_sets": walkers.lengths.shape[1],
            "n_walk_instructions": n_walkers * (layout.n_taxa - 1),
            "n_steps_walked": n_steps,
            "n_values": n_walkers,
            "n_parts": self.n_parts,
            "n_spans": len(chunk.spans),
            "n_held_tiles": chunk.n_tiles,
            "walker_slots": n_slots,
            "tile_stride": tile_stride,
            "slot_stride": slot_stride,
        }
        at_tips = np.tile(np.arange(n_nodes) < layout.n_taxa, 2).astype(np.uint8)
        trees, lengths = walkers.trees, walkers.lengths.reshape(*walkers.lengths.shape[:2], -1)
        changed: dict[str, npt.NDArray[Any]] = {"trees": trees, "walkers": walkers.numbers, "walk_lengths": lengths}
        sent: dict[str, npt.NDArray[Any]] = {"spans": chunk.spans, "at_tips": at_tips, "seeds": walkers.seeds}
        sent["split_weights"] = walkers.split_weights
        with self._driver_errors():
            self._use_models(models)
            self._made = None
            for name in ("matrices", "partial", "walk_program", "walk_tracks"):
                arrays.reserve(name, numbers)
            for name, array in (sent | changed).items():
                arrays.send(name, array, numbers)
            arrays.post()
            arrays.held |= chunk.storage
            no_tree = {} if self._sums.levels else {"sum_tree": "spans"}
            arrays.run(self._kernels.walk, (1 if self._one_thread else n_walkers,), (1,), numbers, **no_tree)
            for name, array in changed.items():
                arrays.receive(array, name)
            self._forget_bad_pattern()
        newviews, evaluates = walkers.numbers[:, [WalkWord.NEWVIEWS, WalkWord.EVALUATES]].sum(axis=0).tolist()
        self.counters.newviews += int(newviews)
        self.counters.instructions += int(newviews + evaluates)

    def _add_groups(self, n_values: int) -> None:
        """Enqueue the sums over the groups of each part; they become the last rows of `partial`."""
        width = -(-n_values // ADD_ROWS_ITEMS) * ADD_ROWS_ITEMS
        for level in self._sums.levels if n_values else ():
            numbers = self._fixed | {"first_made": level.start, "n_values": n_values}
            self._arrays.run(self._kernels.add_rows, (width, len(level)), (ADD_ROWS_ITEMS, 1), numbers)
        self._queue.flush()

    def _site_values(self, request: Request) -> FloatArray:
        with self._driver_errors():
            shape = request.n_values, self.layout.n_lanes
            lanes = self._arrays.receive(np.empty(shape, dtype=self.layout.wide), "site")
            values = lanes[:, self.layout.lane_of_pattern].astype(np.float64)
            if not np.isfinite(values).all():
                self._forget_bad_pattern()
        return values

    @contextmanager
    def _driver_errors(self) -> Iterator[None]:
        """Raise the driver's errors as DeviceError; the use of a closed engine is a mistake of the caller."""
        if self._closed:
            raise EngineError(f"the engine on {self.device_name} is closed")
        try:
            yield
        except cl.Error as error:
            raised = _as_device_error(self.device_name, error)
            if isinstance(raised, DeviceLostError):
                raised.device = replace(self._device, handle=None)  # an error may come from another process
            raise raised from error

    def _forget_bad_pattern(self) -> None:
        self._arrays.keep("bad_pattern", np.array([NO_BAD_PATTERN]), {})

    def _release_clas(self) -> None:
        with self._driver_errors():
            self._arrays.finish()
            self._free_clas()

    def _free_clas(self) -> None:
        for held in self._held:
            for array in held.values():
                self.counters.hold(-array.size)
                array.release()
        self._held, self._chunks = [], []

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            self._arrays.finish()
        except cl.Error as error:  # the device is lost; the error that told us so must not be masked
            log.warning("%s: %s", self.device_name, error)
        self._free_clas()
        self._arrays.release()


def _as_device_error(name: str, error: cl.Error) -> DeviceError:
    """A driver's error in one line; later engines do without the contexts and programs that there are."""
    forget_contexts()
    forget_programs()
    return (DeviceMemoryError if isinstance(error, cl.MemoryError) else DeviceLostError)(f"{name}: {error}")
