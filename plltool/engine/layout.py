"""Shapes, padding and the kernels' macros: the layout is the one place that defines them.

The patterns of each part are padded to whole blocks of VW lanes (Izquierdo-Carrasco et al. 2013, section IV), and the
blocks to whole tiles. A tile never holds two parts. Padding lanes have weight 0 and undetermined tips.
A *group* is the run of tiles that one work-group takes through a program, in one launch or in several. The sums of
groups are added up on the device (`sums.py`), so the layout alone decides the order of every sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.constants import MASK_STATES
from plltool.engine.codes import MAX_CODES
from plltool.engine.contract import ARRAYS, KernelArgument, macros
from plltool.engine.opencl.device import WIDEST_VECTOR, Device
from plltool.engine.opencl.device_faults import find_fault
from plltool.errors import DeviceError, EngineError

# A component whose maximum falls below 2^-SCALE_BITS is rescaled. The product of two entries at the threshold stays
# far above the smallest normal number: 2^-1022 in double, 2^-126 in single precision.
SCALE_BITS: dict[np.dtype[np.floating], int] = {np.dtype(np.float64): 256, np.dtype(np.float32): 32}
# By precision, the type of CLAs and of tables such as P, and the type of the sums over a pattern's states and
# components. Sums over patterns are double. They are two floats in "rough", which is for screens and has nothing double
# but the making of P matrices, and on devices without double precision, which take "single" or "rough".
TYPES: dict[str, tuple[np.dtype[np.floating], np.dtype[np.floating]]] = {
    "double": (np.dtype(np.float64), np.dtype(np.float64)),
    "mixed": (np.dtype(np.float32), np.dtype(np.float64)),
    "single": (np.dtype(np.float32), np.dtype(np.float32)),
    "rough": (np.dtype(np.float32), np.dtype(np.float32)),
}
C_TYPE: dict[np.dtype[np.floating], str] = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}
CODE_TYPE = {1: "uchar", 2: "ushort", 4: "uint"}  # by their bytes
# numpy's names of the other types that kernels take; those in capitals are the layout's
NUMPY_TYPE = {"double": "float64", "int": "int32", "uchar": "uint8", "ulong": "uint64"}
MACROS = (  # attributes of a layout, but for the types
    "N_STATES MANY_STATES N_COMPONENTS VW DOUBLE_LANES MOST_BLOCKS LANE_PER_ITEM GROUP_ITEMS STAGED_MATRICES REAL"
    " REAL_BITS SUM HAS_DOUBLE CODE SCALE_BITS PMATRIX_COLUMNS TABLE_ROWS MATRIX_VALUES BRANCH_VALUES MODEL_VALUES"
    " EIGEN_VALUES REVERSIBLE DIFFERENCE_TABLES"
)
SHARED_STATES_MACROS = " STATE_WORKERS OWN_STATES COLUMN_TILE SHARED_DOUBLES JOB_BYTES"
SCALE_BYTES = 4
# Bytes of one value for all patterns of a tile, with TILE_COMPONENTS or more. 32 doubles were best for
# searches of 354 and 500 taxa, 64 singles for a post-order of 64 and 1,000 taxa. In larger tiles more blocks share a P
# matrix, but fewer CLAs of a tile stay in cache.
CPU_TILE_BYTES = 256
TILE_COMPONENTS = 4
ROW_TABLE_LANES = 8  # lanes from which on a vector holds the sums of enough sets of states, see `kernels/layout.h`
SET_TABLE_LANES = 4  # lanes, and at most as many states, with which tables for tips have a vector for each set
PMATRIX_COLUMNS = 12, 1, 8  # columns of P made together: by an item of a CPU, of a GPU; a group of one with many states
PMATRICES_ITEMS = 32  # work-items of a group; PoCL compiles a kernel again for each local size that it is called with
JOB_BYTES = 456  # of `Job`, `Output` and `Task` (`traverse.cl` checks it) where an address has 8 bytes
LARGEST_COLUMN_TILE = 16  # columns of a table that work-items who share states bring to local memory at a time

# of the choice of a layout
NUMPY_LANES = (1, 2, 4)
NUMPY_DEFAULT_LANES = 4
CPU_LANES = (2, 4, 8, 16)
GPU_LANES = (32, 64)
GPU_DEFAULT_LANES = 64
GPU_MANY_STATES_LANES = 32  # as many work-items as NVIDIA's devices run in step; on an H200 as fast as 64 or faster
GPU_OWN_STATES = 6  # states that a work-item owns where states are shared: they fit its registers; not measured
GPU_MAX_GROUPS = 65_536  # one tile per group up to 4 million patterns; limits the number of partial sums
CPU_GROUPS_PER_CORE = 8  # CPU drivers schedule work-groups: a few per core balance the load, hundreds cost time
CPU_MIN_GROUPS_PER_CORE = 4  # small data sets get smaller tiles, so that no core is idle
MAX_PADDING = 1.25  # blocks with padding over blocks with patterns; many small parts get smaller tiles


@dataclass(unsafe_hash=True)  # no field is set again
class Layout:
    """Shapes of everything an engine stores, which follow from its fields. Raises EngineError for too many codes."""

    n_states: int  # of the model
    n_components: int  # likewise
    n_taxa: int  # of the data
    part_patterns: tuple[int, ...]  # number of patterns of each part
    vw: int  # lanes of a block
    tile_blocks: int = 1  # blocks of a tile
    lane_per_item: bool = False  # a work-item owns one lane (GPU) rather than whole blocks as vectors (CPU)
    staged_matrices: bool = False  # the P matrices of a NEWVIEW are in local memory; few states on a GPU only
    state_workers: int = 1  # work-items that share the states of a lane, see `shared_states.h`; 1 for other shapes
    column_tile: int = LARGEST_COLUMN_TILE  # columns of a table that they bring to local memory at a time
    cut_kernels: bool = False  # kernels are compiled for sets of instructions (`contract.OPCODE_SETS`)
    tile_major: bool = True  # CLAs lie [tile][slot] (cache-friendly) rather than [slot][tile] (coalesced)
    precision: str = "double"  # "double", "single", "rough", or "mixed": single CLAs and P matrices; see TYPES
    max_groups: int = 64  # groups to aim at; there are up to n_parts more, since a group never holds two parts
    n_codes: int = 0  # rows of the table of state sets; 0 where codes are bit masks (see `codes.py`)
    reversible: bool = True  # no branch has a direction, and no eigenvalue is complex
    has_double: bool = True  # of the device

    def __post_init__(self) -> None:
        self._settle_types()
        self._settle_patterns()
        self._settle_sizes()
        self._settle_local_memory()

    def _settle_types(self) -> None:
        self.real, self.sum = TYPES[self.precision]
        self.scale_bits = SCALE_BITS[self.real]
        self.double_sums = self.has_double and self.precision != "rough"  # over patterns; else they are two floats
        # of pattern weights, and of what is computed from the sums of a pattern
        self.wide = np.dtype(np.float64 if self.double_sums else np.float32)
        # of sums over patterns; two floats are kept as the two of a complex number: their sum is what counts
        self.wide_sum: np.dtype[np.inexact] = np.dtype(np.float64 if self.double_sums else np.complex64)
        # whether tip codes index a given table of state sets, and kernels loop over states
        self.many_states = self.n_states > MASK_STATES or self.n_codes > 0
        # the largest number of codes, and the code of an undetermined tip, in the engines' order, see `codes.py`
        self.max_codes = self.n_states + 1 + self.n_codes if self.many_states else 1 << self.n_states
        self.padding_code = self.n_states if self.many_states else self.max_codes - 1
        if self.max_codes > MAX_CODES:
            raise EngineError(f"{self.n_codes} codes of {self.n_states} states, expected at most {MAX_CODES}")
        self.code: np.dtype[np.unsignedinteger] = np.min_scalar_type(self.max_codes - 1)

    def _settle_patterns(self) -> None:
        self.n_parts, self.n_patterns = len(self.part_patterns), sum(self.part_patterns)
        self.part_blocks = tuple(-(-n // self.vw) for n in self.part_patterns)
        self.part_tiles = tuple(-(-n // self.tile_blocks) for n in self.part_blocks)
        self.n_tiles = sum(self.part_tiles)
        self.n_blocks = self.n_tiles * self.tile_blocks  # with padding, likewise lanes, which are patterns then
        self.n_lanes = self.n_blocks * self.vw

    def _settle_sizes(self) -> None:
        n, vw = self.n_states, self.vw
        # numbers of a matrix on the device; with many states a column of row sums is added, see `many_states.h`
        self.matrix_values = n * (n + self.many_states)
        # of a component in `model`: masses, the two matrices of the eigenbasis, rate; and in `eigen`: eigenvalues, U,
        # U^-1, and the eigenvalues' imaginary parts
        self.model_values = n + 2 * self.matrix_values + 1
        self.eigen_values = n * (1 if self.reversible else 2) + 2 * n**2
        self.difference_tables = 1 if self.reversible else 4  # of a branch and component, see `pmatrices.cl`
        self.gradient_values = self.difference_tables * self.n_components * n**2  # that RATE_MATRIX_GRADIENT makes
        # vectors of a component's table for tips: one for each row of P or for each set of states; 0 for no table
        self.table_rows = n if vw >= ROW_TABLE_LANES else 1 << n if n <= vw == SET_TABLE_LANES else 0
        if self.lane_per_item or self.many_states:
            self.table_rows = 0
        self.branch_values = self.n_components * self.matrix_values  # P matrices, then their tables (`layout.h`)
        if self.table_rows:
            self.branch_values = (-(-self.branch_values // vw) + self.n_components * self.table_rows) * vw
        self.block_values = self.n_components * n * vw  # numbers in the CLA of one block
        self.block_scales = self.n_components * vw  # its scaling counts: one per component and pattern
        self.block_bytes = self.block_values * self.real.itemsize + self.block_scales * SCALE_BYTES
        self.slot_bytes = self.n_blocks * self.block_bytes
        # blocks that a tile may have in the compiled kernels, which data of different size share; tiles of one block
        # have kernels of their own: without loops over blocks they take 0.92 to 0.95 times as long
        self.most_blocks = max(self.tile_blocks, self.largest_tile // vw)
        if self.tile_blocks == 1:
            self.most_blocks = 1
        # one on a GPU with few states, which has more items than there are columns
        self.pmatrix_columns = PMATRIX_COLUMNS[self.lane_per_item * (1 + self.many_states)]
        # lanes of a vector of doubles: as many as a block has, or half as many where kernels have no others
        self.double_lanes = vw if self.double_sums else max(2, vw // 2)

    @property
    def largest_tile(self) -> int:
        """Patterns of a tile on a CPU at most."""
        more = 1 if self.many_states else max(1, TILE_COMPONENTS // self.n_components)
        return more * CPU_TILE_BYTES // self.real.itemsize

    def _settle_local_memory(self) -> None:
        self.shared_states = self.lane_per_item and self.many_states  # work-items share the states of a lane
        self.group_items = self.vw * self.state_workers if self.lane_per_item else 1  # work-items of a work-group
        self.own_states = -(-self.n_states // self.state_workers)  # consecutive ones that an item owns; with padding
        products = self.column_tile * (self.state_workers * self.own_states + self.vw) * self.real.itemsize
        terms = self.group_items * self.sum.itemsize
        lanes = 2 * self.column_tile * (self.vw + 1) * 8
        self.shared_doubles = -(-max(products, terms, lanes) // 8)  # used for one thing after another
        # local memory of work-items that share states: their job, and the largest of the other uses, one at a time
        self.local_bytes = JOB_BYTES + 8 * self.shared_doubles

    def pmatrix_items(self, n_psets: int, n_branches: int) -> int:
        """Work-items, in whole groups, that make the P matrices of all branches in every P set, see `pmatrices.cl`."""
        width = 1 if self.lane_per_item or self.many_states else self.double_lanes
        shares = n_psets * -(-n_branches // width) * self.n_components * -(-self.n_states // self.pmatrix_columns)
        return PMATRICES_ITEMS * (shares if self.shared_states else -(-shares // PMATRICES_ITEMS))

    @cached_property
    def lane_of_pattern(self) -> IndexArray:
        """(n_patterns,) the padded lane of each pattern; parts come one after another."""
        starts = np.concatenate([[0], np.cumsum(self.part_tiles)[:-1]]) * self.tile_blocks * self.vw
        return np.concatenate(
            [start + np.arange(n, dtype=np.intp) for start, n in zip(starts, self.part_patterns, strict=True)]
        )

    @cached_property
    def tile_used_blocks(self) -> IntArray:
        """(n_tiles,) blocks of each tile that hold patterns."""
        used = []
        for blocks, tiles in zip(self.part_blocks, self.part_tiles, strict=True):
            used += [self.tile_blocks] * (tiles - 1) + [blocks - (tiles - 1) * self.tile_blocks]
        return np.array(used, dtype=np.int32)

    @cached_property
    def block_part(self) -> IntArray:
        """(n_blocks,) the part of each block."""
        return np.repeat(np.arange(self.n_parts, dtype=np.int32), np.array(self.part_tiles) * self.tile_blocks)

    @cached_property
    def groups(self) -> IntArray:
        """(n_groups, 3) first tile, number of tiles, part; in order of tiles."""
        share = -(-self.n_tiles // self.max_groups)
        rows, first = [], 0
        for part, tiles in enumerate(self.part_tiles):
            for start in range(0, tiles, share):
                rows.append((first + start, min(share, tiles - start), part))
            first += tiles
        return np.array(rows, dtype=np.int32)

    @cached_property
    def part_first_group(self) -> IndexArray:
        """(n_parts,) index of the first group of each part."""
        return np.searchsorted(self.groups[:, 2], np.arange(self.n_parts))

    def pad_codes(self, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Tip codes (n_taxa, n_patterns), in the engines' order, as [tile][taxon][block in tile][lane]."""
        padded = np.full((self.n_taxa, self.n_lanes), self.padding_code, dtype=self.code)
        padded[:, self.lane_of_pattern] = codes
        tiled = padded.reshape(self.n_taxa, self.n_tiles, self.tile_blocks, self.vw)
        return np.ascontiguousarray(tiled.transpose(1, 0, 2, 3))

    def pad_weights(self, weights: FloatArray) -> FloatArray:
        """Weights (n_patterns,) as (n_lanes,), 0 in the padding."""
        padded = np.zeros(self.n_lanes, dtype=self.wide)
        padded[self.lane_of_pattern] = weights
        return padded

    def strides(self, n_slots: int, n_tiles: int) -> tuple[int, int]:
        """(tile stride, slot stride) in blocks, where `n_slots` slots of `n_tiles` tiles are held."""
        if self.tile_major:
            return n_slots * self.tile_blocks, self.tile_blocks
        return self.tile_blocks, n_tiles * self.tile_blocks

    def dtype(self, argument: KernelArgument) -> np.dtype[Any]:
        """The numpy type of an argument of a kernel, or of its elements."""
        layout_types: dict[str, np.dtype[Any]] = {
            "REAL": self.real,
            "CODE": self.code,
            "WIDE": self.wide,
            "WIDE_SUM": self.wide_sum,
        }
        return layout_types.get(argument.ctype) or np.dtype(NUMPY_TYPE[argument.ctype])

    @cached_property
    def arrays(self) -> dict[str, ArrayShape]:
        """The shapes of the arrays that kernels take, by their names in the contract."""
        return {name: ArrayShape(argument, self) for name, argument in ARRAYS.items()}

    def macros(self, has_double: bool | None = None) -> list[str]:
        """The -D options of kernels with double precision or without; by default as sums over patterns have it."""
        known = {"REAL": C_TYPE[self.real], "SUM": C_TYPE[self.sum], "CODE": CODE_TYPE[self.code.itemsize]}
        known |= {"REAL_BITS": str(8 * self.real.itemsize), "JOB_BYTES": str(JOB_BYTES)}
        known["HAS_DOUBLE"] = str(int(self.double_sums if has_double is None else has_double))
        words = MACROS + SHARED_STATES_MACROS * self.shared_states
        values = {name: known.get(name) or int(getattr(self, name.lower())) for name in words.split()}
        return [f"-D{name}={value}" for name, value in (values | macros()).items()]

    def describe(self) -> dict[str, object]:
        """What a result file records of the layout."""
        names = "vw tile_blocks lane_per_item staged_matrices state_workers cut_kernels tile_major precision has_double"
        return {name: getattr(self, name) for name in names.split()} | {"groups": len(self.groups)}


class ArrayShape:
    """What the contract says of an array, for one layout: all that does not depend on the launch is computed once.

    Its bytes are `fixed_bytes` times the sizes of the launch that `sizes` names.
    """

    def __init__(self, argument: KernelArgument, layout: Layout):
        self._argument = argument
        self.dtype = layout.dtype(argument)
        self._dimensions: list[str | int] = [getattr(layout, str(d), d) for d in argument.shape or ()]
        self.fixed_bytes = self.dtype.itemsize * prod(d for d in self._dimensions if isinstance(d, int))
        self.sizes = [d for d in self._dimensions if isinstance(d, str)]

    def n_bytes(self, sizes: Mapping[str, int]) -> int:
        """Bytes of the array in a launch of these sizes (`contract.LAUNCH_SIZES`)."""
        n_bytes = self.fixed_bytes
        for size in self.sizes:
            n_bytes *= sizes[size]
        return n_bytes

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Shape of the array in a launch of these sizes."""
        return tuple([sizes[d] if isinstance(d, str) else d for d in self._dimensions])

    def describe(self, sizes: Mapping[str, int]) -> str:
        """Type and shape, as on the host and as declared."""
        declared = ", ".join(map(str, self._argument.shape or ()))
        return f"{self.dtype} {self.shape(sizes)}, which is {self._argument.ctype} ({declared})"


# --- the choice of a layout for a device: fixed rules, so that the same input gives the same bits ------------------


@dataclass(frozen=True)
class DataShape:
    """What a layout must hold; see `Layout` for the fields."""

    n_states: int
    n_components: int
    n_taxa: int
    part_patterns: tuple[int, ...]
    n_codes: int = 0
    reversible: bool = True


def choose_layout(device: Device | None, shape: DataShape, precision: str = "double", vw: int | None = None) -> Layout:
    """The layout for a device, None for numpy: a fixed function of the device and the shape of the data.

    It does not depend on the number of threads in use, nor do the sums. `vw` None stands for the device's best number
    of lanes; 32 or 64 on a CPU device ask for the shape of a GPU, which devices without double precision always have:
    all of them are GPUs, but for Mesa's on the CPU. Raises DeviceError if the device cannot use `vw` lanes.
    """
    if device is None:
        lanes = _check_lanes("numpy", vw, NUMPY_DEFAULT_LANES, NUMPY_LANES)
        return Layout(**vars(shape), precision=precision, vw=lanes, max_groups=1)
    like_gpu = device.kind == "gpu" or not device.has_double
    if like_gpu or vw in GPU_LANES:
        are_many = shape.n_states > MASK_STATES or shape.n_codes
        default = GPU_MANY_STATES_LANES if are_many else default_lanes(device, precision)
        lanes = _check_lanes(device.label, vw, default, GPU_LANES)
        layout = Layout(
            **vars(shape),
            precision=precision,
            vw=lanes,
            lane_per_item=True,
            tile_major=False,
            max_groups=GPU_MAX_GROUPS,
            cut_kernels=like_gpu,  # each set takes seconds to compile on a CPU, where fewer registers gain nothing
            has_double=device.has_double,
        )
        return use_local_memory(layout, device.max_group_items, device.local_memory)
    default = default_lanes(device, precision)
    lanes = _check_lanes(device.label, vw, default, (*(n for n in CPU_LANES if n <= default), *GPU_LANES))
    layout = _cpu_tiles(shape, precision, lanes, CPU_MIN_GROUPS_PER_CORE * device.compute_units)
    return replace(layout, max_groups=CPU_GROUPS_PER_CORE * device.compute_units)


def count_work_groups(layout: Layout, units: int) -> int:
    """Work-groups of a launch at most, on `units` compute units; 1 for one thread, which then does all itself."""
    n_groups = len(layout.groups)
    if layout.lane_per_item:
        return n_groups
    return 1 if units == 1 else min(n_groups, CPU_GROUPS_PER_CORE * units)


def use_local_memory(layout: Layout, max_items: int, local_memory: int) -> Layout:
    """A GPU's layout with what its work-groups share in local memory; other layouts stay as they are.

    With few states they share the P matrices of a NEWVIEW, if these fit. With many they share the states of a lane:
    workers own GPU_OWN_STATES each, or more where a work-group cannot have `max_items`. They read tables in even tiles
    of up to LARGEST_COLUMN_TILE columns, or fewer where `local_memory` (bytes) does not hold them.
    """
    if not layout.lane_per_item:
        return layout
    if not layout.many_states:
        matrices = 2 * layout.n_components * layout.matrix_values * layout.real.itemsize
        return replace(layout, staged_matrices=JOB_BYTES + matrices <= local_memory)
    workers = max(1, min(-(-layout.n_states // GPU_OWN_STATES), max_items // layout.vw))
    for largest in range(LARGEST_COLUMN_TILE, 0, -1):
        tile = -(-layout.n_states // -(-layout.n_states // largest))
        shared = replace(layout, state_workers=workers, column_tile=tile)
        if shared.local_bytes <= local_memory:
            break
    return shared


def default_lanes(device: Device, precision: str) -> int:
    """Lanes of a block on an OpenCL device by default: on a CPU as many as a vector of CLA values has.

    On AMD's GPUs as many as run in step, 32 on RDNA: compilers then drop the barriers of a work-group.

    Vectors have as many lanes of doubles, or in rough computation twice as many of singles, on which a compiler may
    fail; that is tested.
    """
    if device.kind == "gpu" or not device.has_double:
        return device.wave if device.wave in GPU_LANES else GPU_DEFAULT_LANES
    wide, width = 2 * device.vector_width, device.vector_width
    if precision == "rough":
        return device.single_width or (wide if find_fault(device, wide) is None else width)
    if precision == "single":
        return device.single_width or width
    return wide if TYPES[precision][0].itemsize == 4 and width == WIDEST_VECTOR else width


def _cpu_tiles(shape: DataShape, precision: str, lanes: int, enough_tiles: int) -> Layout:
    """The largest tiles that are enough in number and do not pad too much."""
    blocks = sum(-(-n // lanes) for n in shape.part_patterns)
    layout = Layout(**vars(shape), precision=precision, vw=lanes, max_groups=1)
    layout = replace(layout, tile_blocks=layout.largest_tile // lanes)
    while layout.tile_blocks > 1 and (layout.n_tiles < enough_tiles or layout.n_blocks > MAX_PADDING * blocks):
        layout = replace(layout, tile_blocks=layout.tile_blocks // 2)
    return layout


def _check_lanes(label: str, vw: int | None, default: int, allowed: tuple[int, ...]) -> int:
    if vw is None:
        return default
    if vw not in allowed:
        raise DeviceError(f"{label} cannot use blocks of {vw} lanes, only of {', '.join(map(str, allowed))}")
    return vw
