"""Where an engine keeps its CLAs, and how many bytes that takes.

Patterns do not depend on each other. An engine with too little memory for all slots of all tiles therefore *streams*:
it takes one *run* of tiles after another through the whole program, in the same storage, and no CLA outlives a launch.
A work-group takes one tile after another, so all its tiles can share the storage of one: if that of one tile for each
work-group of a launch fits, a single run has all tiles. Otherwise, and where all tiles of a run are worked on at once,
each run holds some tiles of many groups rather than all tiles of a few, so that it keeps all cores busy. The tiles of a
group keep their order and so do the sums, so their bits do not depend on how tiles are cut into runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import IntArray
from plltool.engine.contract import SpanWord
from plltool.engine.layout import SCALE_BYTES, Layout
from plltool.engine.sums import plan_sums
from plltool.errors import MemoryShortageError

MAX_SCRATCH_BYTES = 1 << 30  # of these CLAs beyond the minimum, if all CLAs of the tree are held
SHARED_TILES = 2  # for each work-group of a launch, from which it pays that they share the memory of one


@dataclass(frozen=True)
class Slots:
    """How many CLAs a task needs, and how many more make it faster."""

    least: int  # CLAs that the task needs
    extra: int = 0  # more CLAs, which save launches where CLAs are resident, as far as MAX_SCRATCH_BYTES allow
    streamed_extra: int = 0  # the same where patterns are streamed: launches cost more, CLAs of few tiles take little
    streams_from: int | None = None  # tiles from which it takes no longer if no CLA outlives a launch; None: always
    gpu_extra: int = 0  # like `extra`, on GPUs: with a slot for each CLA, levels of instructions do not wait for others

    def choose(self, layout: Layout, memory: int) -> int:
        """How many to hold in `memory` bytes: for all tiles if the least number fits, else for runs of tiles."""
        fitting = memory // layout.slot_bytes
        if fitting >= self.least:
            return min(self._most_resident(layout), fitting)
        return max(self.least, min(self.least + self.streamed_extra, memory // tile_bytes(layout, 1)))

    def useful_bytes(self, layout: Layout, work_groups: int) -> int:
        """Memory of CLAs and scaling counts beyond which the task is no faster; `work_groups` as in `plan_storage`.

        CPUs stream many patterns rather than hold all CLAs: what tiles share stays in a core's cache.
        """
        can_stream = self.streams_from is not None and layout.n_tiles >= self.streams_from
        if can_stream and 0 < SHARED_TILES * work_groups <= layout.n_tiles:
            return work_groups * tile_bytes(layout, self.least + self.streamed_extra)
        return self._most_resident(layout) * layout.slot_bytes

    def _most_resident(self, layout: Layout) -> int:
        extra = self.extra + self.gpu_extra * layout.lane_per_item
        return self.least + min(extra, MAX_SCRATCH_BYTES // layout.slot_bytes)


@dataclass(frozen=True, eq=False)
class Storage:
    """Storage of the CLAs of a layout."""

    n_slots: int  # CLAs of each tile
    resident: bool  # whether every run has storage of its own, so that CLAs outlive a launch
    runs: tuple[IntArray, ...]  # int32 (n_spans, SPAN_WORDS) each; a row is a span, see `contract.SpanWord`
    buffer_tiles: tuple[int, ...]  # tiles that each buffer has room for: one buffer for each run, or one for all runs
    shared: bool = False  # whether that is a tile of each work-group, for all its spans; PLACE is not filled in

    @property
    def launch_share(self) -> float:
        """The share of the patterns that are taken through a program at a time; 1 if all are."""
        tiles = [run[:, SpanWord.N_TILES].sum() for run in self.runs]
        return 1.0 if self.resident else float(max(tiles) / sum(tiles))

    def n_bytes(self, layout: Layout) -> int:
        """Bytes of all CLAs with their scaling counts."""
        return sum(self.buffer_tiles) * tile_bytes(layout, self.n_slots)


def tile_bytes(layout: Layout, n_slots: int) -> int:
    """Bytes of the CLAs and scaling counts of one tile."""
    return n_slots * layout.tile_blocks * layout.block_bytes


def plan_storage(
    layout: Layout, n_slots: int, memory: int | None = None, max_allocation: int | None = None, work_groups: int = 0
) -> Storage:
    """Storage for `n_slots` CLAs: resident if it fits, else for a tile of each work-group or for as many tiles as fit.

    `memory` and `max_allocation` are the bytes of all CLAs and of the largest buffer; None for no limit. `work_groups`
    take one tile after another; 0 if all tiles are worked on at once. MemoryShortageError if not even one tile fits.
    """
    needed = tile_bytes(layout, n_slots)
    scales = n_slots * layout.tile_blocks * layout.block_scales * SCALE_BYTES  # in a buffer of their own
    resident = memory is None or layout.n_tiles * needed <= memory
    capacity = layout.n_tiles
    limits = ((memory, needed, "memory"), (max_allocation, needed - scales, "largest buffer of the device"))
    for limit, size, name in limits:
        if limit is not None:
            capacity = min(capacity, limit // size)
            if capacity < 1:
                raise MemoryShortageError(name, limit, size, layout.n_taxa)
    if 0 < work_groups <= capacity and not resident:
        n = len(layout.groups)
        spans = np.column_stack([np.arange(n), layout.groups, np.zeros(n), np.ones(n)])  # in the order of SpanWord
        return Storage(n_slots, resident, (np.ascontiguousarray(spans, dtype=np.int32),), (work_groups,), shared=True)
    runs = _cut(layout.groups, capacity)
    tiles = [int(run[:, SpanWord.N_TILES].sum()) for run in runs]
    return Storage(n_slots, resident, tuple(runs), tuple(tiles) if resident else (max(tiles),))


def _cut(groups: IntArray, capacity: int) -> list[IntArray]:
    """Runs of at most `capacity` tiles: the same number of tiles of every group, or one tile of some groups."""
    counts = groups[:, 1]
    shares = np.arange(1, counts.max() + 1)
    totals = np.array([np.minimum(counts, share).sum() for share in shares])
    share = max(1, int(np.searchsorted(totals, capacity, side="right")))
    runs = []
    for start in range(0, int(counts.max()), share):
        present = np.flatnonzero(counts > start)
        rows = capacity if share == 1 else len(present)
        for some in np.split(present, range(rows, len(present), rows)):
            tiles = np.minimum(counts[some] - start, share)
            places = np.cumsum(tiles) - tiles
            begins = np.full(len(some), start == 0)
            # in the order of SpanWord
            runs.append(np.column_stack([some, groups[some, 0] + start, tiles, groups[some, 2], places, begins]))
    return [np.ascontiguousarray(run, dtype=np.int32) for run in runs]


@dataclass(frozen=True)
class RequestSize:
    """The lengths of the arrays that go along with a request, as in `contract.LAUNCH_SIZES`."""

    n_instructions: int
    n_branches: int
    n_values: int
    want_decays: bool = False
    want_slopes: bool = False
    want_differences: bool = False


# Arrays that go along with a request
_REQUEST_ARRAYS = (
    "program", "spans", "lengths", "at_tips", "matrices", "decays", "slopes", "divided_differences", "partial"
)  # fmt: skip


def data_bytes(layout: Layout, expanded_tips: bool = False) -> int:
    """Memory of tips and weights; the numpy engine expands tips to a number for each state."""
    tips = layout.arrays["tips"].n_bytes({})
    if expanded_tips:
        tips = layout.n_lanes * layout.n_taxa * layout.n_states * layout.real.itemsize
    return tips + layout.arrays["weights"].n_bytes({})


def engine_bytes(layout: Layout, storage: Storage, requests: Sequence[RequestSize] = ()) -> int:
    """Device memory of an OpenCL engine at its peak: CLAs, data, and what goes along with the largest requests."""
    sums = plan_sums(layout)
    sizes = {"n_state_sets": layout.max_codes, "n_made_rows": len(sums.made)}
    tables = ("used_blocks", "bad_pattern", "state_sets", "sum_tree")
    fixed = sum(layout.arrays[name].n_bytes(sizes) for name in tables)
    held = storage.n_bytes(layout) + data_bytes(layout) + fixed
    if not requests:
        return held
    parts, n_spans = {"n_psets": layout.n_parts}, sum(map(len, storage.runs))
    needs = []
    for request in requests:
        sizes = {**vars(request), **parts, "n_spans": n_spans, "n_sum_rows": sums.n_rows}
        needs.append([layout.arrays[name].n_bytes(sizes) for name in _REQUEST_ARRAYS])
    model = sum(layout.arrays[name].n_bytes(parts) for name in ("eigen", "model"))
    return held + model + sum(map(max, zip(*needs, strict=True)))  # each array as large as its largest use


def numpy_bytes(layout: Layout, storage: Storage) -> int:
    """Memory of the numpy engine, without the temporary arrays of a request."""
    return storage.n_bytes(layout) + data_bytes(layout, expanded_tips=True)
