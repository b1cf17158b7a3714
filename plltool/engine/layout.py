"""Shapes, padding and the kernels' macros: the layout is the one place that defines them.

The patterns of each part are padded to whole blocks of VW lanes (Izquierdo-Carrasco et al. 2013, section IV), and the
blocks to whole tiles. A tile never holds two parts. Padding lanes have weight 0 and undetermined tips.
A *group* is the run of tiles that one work-group takes through a program, in one launch or in several. The sums of
groups are added up on the device (`sums.py`), so the layout alone decides the order of every sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.constants import MASK_STATES
from plltool.engine.codes import MAX_CODES
from plltool.engine.contract import KernelArgument, macros
from plltool.errors import EngineError

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
# Bytes of one value for all patterns of a tile. 32 doubles were best for searches of 354 and 500 taxa, 64 singles for a
# post-order of 64 and 1,000 taxa. In larger tiles more blocks share a P matrix, but fewer CLAs of a tile stay in cache.
CPU_TILE_BYTES = 256
ROW_TABLE_LANES = 8  # lanes from which on a vector holds the sums of enough sets of states, see `kernels/layout.h`
SET_TABLE_LANES = 4  # lanes, and at most as many states, with which tables for tips have a vector for each set
PMATRIX_COLUMNS = (
    12  # columns of a P matrix that one work-item of a CPU makes; each work-item computes all exponentials itself
)
JOB_BYTES = 448  # of `Job`, `Output` and `Task` (`traverse.cl` checks it) where an address has 8 bytes
LARGEST_COLUMN_TILE = 16  # columns of a table that work-items who share states bring to local memory at a time


@dataclass(frozen=True)
class Layout:
    """Shapes of everything an engine stores. Raises EngineError if there are too many codes."""

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
        if self.max_codes > MAX_CODES:
            raise EngineError(f"{self.n_codes} codes of {self.n_states} states, expected at most {MAX_CODES}")

    @property
    def most_blocks(self) -> int:
        """Blocks that a tile may have in the compiled kernels, which data of different size share.

        Tiles of one block have kernels of their own: without loops over blocks they take 0.92 to 0.95 times as long.
        """
        if self.tile_blocks == 1:
            return 1
        return max(self.tile_blocks, CPU_TILE_BYTES // (self.real.itemsize * self.vw))

    @property
    def real(self) -> np.dtype[np.floating]:
        """Type of CLAs and of tables such as P."""
        return TYPES[self.precision][0]

    @property
    def sum(self) -> np.dtype[np.floating]:
        """Type of the sums over a pattern's states and components."""
        return TYPES[self.precision][1]

    @property
    def double_sums(self) -> bool:
        """Whether sums over patterns are double; else they are two floats."""
        return self.has_double and self.precision != "rough"

    @property
    def wide(self) -> np.dtype[np.floating]:
        """Type of pattern weights, and of what is computed from the sums of a pattern."""
        return np.dtype(np.float64 if self.double_sums else np.float32)

    @property
    def wide_sum(self) -> np.dtype[np.inexact]:
        """Type of sums over patterns. Two floats are kept as the two of a complex number: their sum is what counts."""
        return np.dtype(np.float64 if self.double_sums else np.complex64)

    @property
    def code(self) -> np.dtype[np.unsignedinteger]:
        """Type of a tip code."""
        return np.min_scalar_type(self.max_codes - 1)

    @property
    def many_states(self) -> bool:
        """Tip codes index a given table of state sets, and kernels loop over states."""
        return self.n_states > MASK_STATES or self.n_codes > 0

    @property
    def max_codes(self) -> int:
        """The largest number of codes in the engines' order, see `codes.py`."""
        return self.n_states + 1 + self.n_codes if self.many_states else 1 << self.n_states

    @property
    def padding_code(self) -> int:
        """The code of an undetermined tip, in the engines' order."""
        return self.n_states if self.many_states else (1 << self.n_states) - 1

    @property
    def matrix_values(self) -> int:
        """Numbers of a matrix on the device; with many states a column of row sums is added, see `many_states.h`."""
        return self.n_states * (self.n_states + self.many_states)

    @property
    def model_values(self) -> int:
        """Numbers of a component in the array `model`: masses, the two matrices of the eigenbasis, rate."""
        return self.n_states + 2 * self.matrix_values + 1

    @property
    def eigen_values(self) -> int:
        """Numbers of a component in the array `eigen`: eigenvalues, U, U^-1, and the eigenvalues' imaginary parts."""
        return self.n_states * (1 if self.reversible else 2) + 2 * self.n_states**2

    @property
    def difference_tables(self) -> int:
        """Tables of divided differences of a branch and component, see `pmatrices.cl`."""
        return 1 if self.reversible else 4

    @property
    def gradient_values(self) -> int:
        """Numbers that RATE_MATRIX_GRADIENT makes."""
        return self.difference_tables * self.n_components * self.n_states**2

    @property
    def shared_states(self) -> bool:
        """Work-items share the states of a lane."""
        return self.lane_per_item and self.many_states

    @property
    def group_items(self) -> int:
        """Work-items of a work-group."""
        return self.vw * self.state_workers if self.lane_per_item else 1

    @property
    def own_states(self) -> int:
        """Consecutive states of a lane that a work-item owns; with padding."""
        return -(-self.n_states // self.state_workers)

    @property
    def local_bytes(self) -> int:
        """Local memory of work-items that share states: their job, and the largest of the other uses, one at a time."""
        return JOB_BYTES + 8 * self.shared_doubles

    @property
    def shared_doubles(self) -> int:
        """Local memory that work-items use for one thing after another, see `kernels/shared_states.h`."""
        padded = self.state_workers * self.own_states
        products = self.column_tile * (padded + self.vw) * self.real.itemsize
        terms = self.group_items * self.sum.itemsize
        lanes = 2 * self.column_tile * (self.vw + 1) * 8
        return -(-max(products, terms, lanes) // 8)

    @property
    def pmatrix_columns(self) -> int:
        """Columns of a P matrix that one work-item makes: one on a GPU, which has more items than there are columns."""
        return 1 if self.lane_per_item else PMATRIX_COLUMNS

    @property
    def double_lanes(self) -> int:
        """Lanes of a vector of doubles: as many as a block has, or half as many where kernels have no others."""
        return self.vw if self.double_sums else max(2, self.vw // 2)

    def pmatrix_items(self, n_psets: int, n_branches: int) -> int:
        """Work-items that make the P matrices of all branches in every P set, see `pmatrices.cl`."""
        width = 1 if self.lane_per_item or self.many_states else self.double_lanes
        shares = -(-self.n_states // self.pmatrix_columns)  # work-items that make a P matrix together
        return n_psets * -(-n_branches // width) * self.n_components * shares

    @property
    def scale_bits(self) -> int:
        return SCALE_BITS[self.real]

    @property
    def n_parts(self) -> int:
        return len(self.part_patterns)

    @property
    def n_patterns(self) -> int:
        return sum(self.part_patterns)

    @cached_property
    def part_blocks(self) -> tuple[int, ...]:
        return tuple(-(-n // self.vw) for n in self.part_patterns)

    @cached_property
    def part_tiles(self) -> tuple[int, ...]:
        return tuple(-(-n // self.tile_blocks) for n in self.part_blocks)

    @property
    def n_tiles(self) -> int:
        return sum(self.part_tiles)

    @property
    def n_blocks(self) -> int:
        """Blocks with padding."""
        return self.n_tiles * self.tile_blocks

    @property
    def n_lanes(self) -> int:
        """Patterns with padding."""
        return self.n_blocks * self.vw

    @property
    def block_values(self) -> int:
        """Numbers in the CLA of one block."""
        return self.n_components * self.n_states * self.vw

    @property
    def table_rows(self) -> int:
        """Vectors of a component's table for tips: one for each row of P or for each set of states; 0 for no table."""
        if self.lane_per_item or self.many_states:
            return 0
        if self.vw >= ROW_TABLE_LANES:
            return self.n_states
        return 1 << self.n_states if self.n_states <= self.vw == SET_TABLE_LANES else 0

    @property
    def branch_values(self) -> int:
        """Numbers of a branch on the device: its P matrices, then their tables for tips (`kernels/layout.h`)."""
        matrices = self.n_components * self.matrix_values
        if not self.table_rows:
            return matrices
        return (-(-matrices // self.vw) + self.n_components * self.table_rows) * self.vw

    @property
    def block_scales(self) -> int:
        """Scaling counts of one block: one per component and pattern."""
        return self.n_components * self.vw

    @property
    def block_bytes(self) -> int:
        """Bytes of one slot in one block: CLA and scaling counts."""
        return self.block_values * self.real.itemsize + self.block_scales * SCALE_BYTES

    @property
    def slot_bytes(self) -> int:
        return self.n_blocks * self.block_bytes

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

    def array_bytes(self, argument: KernelArgument, sizes: Mapping[str, int]) -> int:
        """Bytes of an array that kernels take, in a launch of these sizes (`contract.LAUNCH_SIZES`)."""
        return ArrayShape(argument, self).n_bytes(sizes)

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
