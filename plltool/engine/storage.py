"""Where an engine keeps its CLAs, and how many bytes that takes.

A pattern never talks to another pattern. So an engine with less memory than all slots times all tiles takes *runs* of
tiles, one after another, through the whole program in the same storage: it streams, and no CLA outlives a launch.
Every run holds some tiles of many groups rather than all tiles of few, so that it keeps all cores busy; a group's
tiles come in their order, and so do the sums, whose bits do not depend on the cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.constants import MAX_SCRATCH_BYTES
from plltool.engine.layout import SCALE_BYTES, Layout
from plltool.engine.program import N_WORDS
from plltool.engine.sums import plan_sums
from plltool.errors import MemoryShortageError

IntArray = npt.NDArray[np.int32]

SPAN_WORDS = 6
WORD_BYTES = 4
SUM_BYTES = 8  # of a partial sum, a weight, a branch length


@dataclass(frozen=True)
class Slots:
    """How many CLAs a task needs, and with how many more it is faster.

    Attributes
    ----------
    least : that it cannot do without
    extra : that save launches where CLAs are resident; given as far as memory and MAX_SCRATCH_BYTES allow
    streamed_extra : likewise where patterns are streamed: launches cost more there, and CLAs of few tiles take little
    """

    least: int
    extra: int = 0
    streamed_extra: int = 0

    def choose(self, layout: Layout, memory: int) -> int:
        """The number to hold in `memory` bytes: for all tiles if the least of them fit, else for runs of tiles."""
        fitting = memory // layout.slot_bytes
        if fitting >= self.least:
            return min(self.least + min(self.extra, MAX_SCRATCH_BYTES // layout.slot_bytes), fitting)
        most = self.least + self.streamed_extra
        return most if tile_bytes(layout, most) <= memory else self.least


@dataclass(frozen=True, eq=False)
class Storage:
    """Slots for a layout.

    Attributes
    ----------
    n_slots : CLAs of each tile
    resident : whether every run has storage of its own, so that CLAs outlive a launch
    runs : int32 (n, SPAN_WORDS) each; a row is a *span*, the tiles of one work-group: group, first tile, number of
        tiles, part, place of the first tile in the run's storage, 1 where the group begins
    """

    n_slots: int
    resident: bool
    runs: tuple[IntArray, ...]

    @property
    def buffer_tiles(self) -> list[int]:
        """Tiles of each buffer: one buffer per run, or one for all."""
        tiles = [int(run[:, 2].sum()) for run in self.runs]
        return tiles if self.resident else [max(tiles)]

    def n_bytes(self, layout: Layout) -> int:
        """Of all CLAs with their scaling counts."""
        return sum(self.buffer_tiles) * tile_bytes(layout, self.n_slots)


def tile_bytes(layout: Layout, n_slots: int) -> int:
    """Bytes of the CLAs and scaling counts of one tile."""
    return n_slots * layout.tile_blocks * layout.block_bytes


def plan_storage(layout: Layout, n_slots: int, memory: int | None = None, max_allocation: int | None = None) -> Storage:
    """Storage for `n_slots` CLAs: resident if it fits, else for as many tiles at a time as fit.

    Parameters
    ----------
    memory : bytes that all CLAs may take; None for no limit
    max_allocation : bytes of the largest buffer; None for no limit

    Raises
    ------
    MemoryShortageError
        If not even one tile fits.
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
    return Storage(n_slots, resident, tuple(_cut(layout.groups, capacity)))


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
            runs.append(np.column_stack([some, groups[some, 0] + start, tiles, groups[some, 2], places, begins]))
    return [np.ascontiguousarray(run, dtype=np.int32) for run in runs]


@dataclass(frozen=True)
class RequestSize:
    """The lengths of what goes along with a request; `decays`, `slopes` and `responses` as in `base.Tables`."""

    instructions: int
    branches: int
    values: int
    decays: bool = False
    slopes: bool = False
    responses: bool = False


def data_bytes(layout: Layout, n_weight_sets: int = 1, expanded_tips: bool = False) -> int:
    """Memory of tips and weights; the numpy engine expands tips to a number for each state."""
    tip = layout.n_states * layout.real.itemsize if expanded_tips else layout.code.itemsize
    return layout.n_lanes * (layout.n_taxa * tip + n_weight_sets * SUM_BYTES)


def engine_bytes(layout: Layout, storage: Storage, n_weight_sets: int = 1, requests: Sequence[RequestSize] = ()) -> int:
    """Device memory of an OpenCL engine at its peak: CLAs, data, and what goes along with the largest requests."""
    spans = sum(len(run) for run in storage.runs)
    sums = plan_sums(layout)
    words = layout.n_tiles + SPAN_WORDS * spans + sums.made.size + 1
    tables = WORD_BYTES * words + layout.max_codes * layout.n_states
    data = data_bytes(layout, n_weight_sets)
    return storage.n_bytes(layout) + data + tables + _request_bytes(layout, sums.n_rows, requests)


def numpy_bytes(layout: Layout, storage: Storage, n_weight_sets: int = 1) -> int:
    """Likewise for the numpy engine, without the temporary arrays of a request."""
    return storage.n_bytes(layout) + data_bytes(layout, n_weight_sets, expanded_tips=True)


def _request_bytes(layout: Layout, sum_rows: int, requests: Sequence[RequestSize]) -> int:
    """Each buffer as large as the largest of its uses: model, program, lengths, tables and partial sums."""
    if not requests:
        return 0
    real = layout.real.itemsize
    squares = layout.n_states**2
    per_branch = layout.n_parts * layout.n_components
    needs = np.array([
        (
            request.instructions * N_WORDS * WORD_BYTES,
            request.branches * layout.n_parts * SUM_BYTES,
            request.branches,
            request.branches * layout.n_parts * layout.branch_values * real,
            request.branches * per_branch * 3 * layout.n_states * real * request.decays,
            request.branches * per_branch * 2 * layout.matrix_values * real * request.slopes,
            request.branches * per_branch * squares * real * request.responses,
            request.values * sum_rows * SUM_BYTES,
        )
        for request in requests
    ])  # fmt: skip
    eigen, model = layout.n_states + 2 * squares, layout.n_states + 2 * layout.matrix_values + 1
    return per_branch * (eigen * SUM_BYTES + model * real) + int(needs.max(axis=0).sum())
