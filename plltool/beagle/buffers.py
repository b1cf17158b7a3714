"""Tips and partials of an instance on their engines, and the operations that make partials."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.beagle.codes import (
    NONE,
    OPERATION_WORDS,
    PARTITION_OPERATION_WORDS,
    BeagleError,
    Code,
    Flag,
    Sizes,
    check_array,
    check_index,
    check_indices,
    check_same_length,
    check_whole,
)
from plltool.beagle.model import ModelBuffers
from plltool.beagle.partials import SCRATCH, PatternBlock
from plltool.beagle.resources import Resource
from plltool.engine.buffers import AnyBuffers
from plltool.engine.contract import Combination, Step
from plltool.engine.select import open_buffers
from plltool.errors import DeviceError, DeviceMemoryError


class Buffers(ModelBuffers):
    """The calls of an instance that concern patterns, tips, partials and scales; see BEAGLE's of the same names."""

    def __init__(self, sizes: Sizes, flags: Flag, resource: Resource, vw: int | None, threads: int | None):
        super().__init__(sizes, flags)
        self._partition_of = np.zeros(self.pattern_count, dtype=np.intp)
        self._n_partitions = 1
        self.resource, self._hardware = resource, (vw, threads)
        self._buffer_count = self.partials_buffer_count + self.compact_buffer_count
        self._pattern_weights = np.ones(self.pattern_count)
        self._tips: dict[int, npt.NDArray[np.generic]] = {}  # states (P,) or partials (P, S)
        self._open: list[PatternBlock] | None = None
        self._kept: FloatArray | None = None  # matrices of engines that were closed
        self._is_final = False

    def finalize(self) -> None:
        """Free what is held on the device; calls that need it then raise UNINITIALIZED_INSTANCE."""
        self._close_engines()
        self._is_final = True

    def _close_engines(self) -> None:
        for block in self._open or ():
            block.engine.close()
        self._open = None

    def _blocks(self) -> list[PatternBlock]:
        """The partitions' patterns on their engines, which are opened when first needed and get what has changed."""
        if self._is_final:
            raise BeagleError(Code.UNINITIALIZED_INSTANCE, "the instance has been finalized")
        if self._open is None:
            self._open = [self._open_block(number) for number in range(self._n_partitions)]
            for block in self._open:
                block.engine.set_weights(self._pattern_weights[block.patterns])
                if self._kept is not None:
                    block.engine.set_matrices(range(self.matrix_buffer_count), self._kept)
            for tip in self._tips:
                self._send_tip(tip)
        return self._open

    def _engines(self) -> list[AnyBuffers]:
        return [block.engine for block in self._blocks()]

    def _open_block(self, partition: int) -> PatternBlock:
        patterns = np.flatnonzero(self._partition_of == partition)
        if not len(patterns):
            raise BeagleError(Code.OUT_OF_RANGE, f"partition {partition} has no patterns")
        shape = self.state_count, self.category_count, self.tip_count, len(patterns)
        precision = "single" if Flag.PRECISION_SINGLE in self.flags else "double"
        n_matrices = 2 * self.matrix_buffer_count + 1  # the matrices, their transposes for a pre-order, the identity
        counts = self.partials_buffer_count + SCRATCH, n_matrices, self._buffer_count + self.scale_buffer_count
        is_real = Flag.EIGEN_COMPLEX not in self.flags
        try:
            engine = open_buffers(self.resource.device, shape, *counts, precision, is_real, *self._hardware)
        except DeviceMemoryError as error:
            raise BeagleError(Code.OUT_OF_MEMORY, str(error)) from error
        except DeviceError as error:
            raise BeagleError(Code.NO_IMPLEMENTATION, str(error)) from error
        identity = np.tile(np.eye(self.state_count), (1, self.category_count, 1, 1))
        engine.set_matrices([n_matrices - 1], identity)
        return PatternBlock(engine, patterns, self._buffer_count, self._ignores_scales)

    @property
    def _ignores_scales(self) -> bool:
        """Whether scale factors are left to the engine."""
        return bool(self.flags & (Flag.SCALING_AUTO | Flag.SCALING_ALWAYS))

    # --- data -----------------------------------------------------------------------------------------------

    def set_tip_states(self, tip_index: int, states: npt.ArrayLike) -> None:
        """Set the states (n_patterns,) of a tip, numbers from 0; `state_count` and above is any state."""
        tip, given = check_index("tip", tip_index, self.tip_count), check_whole(f"tip {tip_index}", states)
        for state in given[given < 0][:1].tolist():
            raise BeagleError(Code.OUT_OF_RANGE, f"tip {tip}: found state {state}, expected 0 or more")
        if len(given) != self.pattern_count:
            raise BeagleError(Code.OUT_OF_RANGE, f"tip {tip}: found {len(given)} states, expected {self.pattern_count}")
        self._set_tip(tip, given)

    def set_tip_partials(self, tip_index: int, partials: npt.ArrayLike) -> None:
        """Set the partials (n_patterns, state_count) of a tip, which all categories share."""
        tip = check_index("tip", tip_index, self.tip_count)
        shape = self.pattern_count, self.state_count
        self._set_tip(tip, check_array(f"partials of tip {tip}", partials, shape))

    def _set_tip(self, tip: int, values: npt.NDArray[np.generic]) -> None:
        self._tips[tip] = values
        if self._open is not None:
            self._send_tip(tip)

    def _send_tip(self, tip: int) -> None:
        values = self._tips[tip]
        for block in self._open or ():
            own = values[block.patterns]
            if own.ndim == 1:
                block.set_states(tip, own.astype(np.intp))
            else:
                shape = len(own), self.category_count, self.state_count
                block.write(tip, np.broadcast_to(own[:, None], shape).astype(np.float64))

    def set_partials(self, buffer_index: int, partials: npt.ArrayLike) -> None:
        """Set partials (category_count, n_patterns, state_count)."""
        buffer = check_index("buffer", buffer_index, self._buffer_count)
        shape = self.category_count, self.pattern_count, self.state_count
        values = check_array(f"partials {buffer}", partials, shape).swapaxes(0, 1)
        for block in self._blocks():
            block.write(buffer, values[block.patterns])

    def get_partials(self, buffer_index: int, scale_index: int = NONE) -> FloatArray:
        """Partials (category_count, n_patterns, state_count), times the factors of a scale buffer; waits."""
        buffer = check_index("buffer", buffer_index, self._buffer_count)
        if scale_index != NONE:
            check_index("scale buffer", scale_index, self.scale_buffer_count)
        values = np.empty((self.pattern_count, self.category_count, self.state_count))
        for block in self._blocks():
            values[block.patterns] = block.read(buffer)
        if scale_index != NONE:
            values *= np.exp(self.get_scale_factors(scale_index))[:, None, None]
        return values.swapaxes(0, 1).copy()

    def set_pattern_weights(self, weights: npt.ArrayLike) -> None:
        """Set how often each pattern occurs, (n_patterns,)."""
        self._pattern_weights = check_array("pattern weights", weights, (self.pattern_count,))
        for block in self._open or ():
            block.engine.set_weights(self._pattern_weights[block.patterns])

    def set_pattern_partitions(self, partition_count: int, partitions: npt.ArrayLike) -> None:
        """Set the partition of each pattern, (n_patterns,); partials and scale factors are lost."""
        given = check_indices("partition", partitions, partition_count)
        if len(given) != self.pattern_count:
            raise BeagleError(Code.OUT_OF_RANGE, f"found {len(given)} partitions, expected {self.pattern_count}")
        if self._open is not None:
            self._kept = self._open[0].engine.read_matrices(range(self.matrix_buffer_count))
        self._close_engines()
        self._partition_of, self._n_partitions = given, partition_count

    def set_root_pre_partials(self, buffer_indices: npt.ArrayLike, state_frequencies_indices: npt.ArrayLike) -> None:
        """Set the partials above a root to its state frequencies."""
        buffers = check_indices("buffer", buffer_indices, self._buffer_count)
        shape = self.category_count, self.pattern_count, self.state_count
        numbers = check_whole("frequencies", state_frequencies_indices)
        check_same_length([("buffers", buffers), ("frequencies", numbers)])
        for buffer, number in zip(buffers.tolist(), numbers.tolist(), strict=True):
            frequencies = self._frequencies[self._check_model("frequencies", number)]
            self.set_partials(buffer, np.broadcast_to(frequencies, shape))

    # --- operations -----------------------------------------------------------------------------------------

    def update_partials(self, operations: npt.ArrayLike, cumulative_scale_index: int = NONE) -> None:
        """Compute partials by operations (n, 7), one after another; see `codes.OPERATION_WORDS`."""
        self._update(*self._check_operations(operations, cumulative_scale_index))

    def update_partials_by_partition(self, operations: npt.ArrayLike) -> None:
        """Compute partials of single partitions by operations (n, 9); see `codes.PARTITION_OPERATION_WORDS`."""
        self._update(*self._check_operations(operations))

    def update_pre_partials(self, operations: npt.ArrayLike, cumulative_scale_index: int = NONE) -> None:
        """Compute partials above nodes, at the lower end of a node's edge (Ji et al. 2020; Gangavarapu et al. 2024).

        In an operation (n, 7) the first child is the pre-order buffer of the node above and its matrix that of the
        node's own edge; the second child is the node's sibling, with partials below it, and the matrix of its edge.
        """
        self._update_above(*self._check_operations(operations, cumulative_scale_index))

    def update_pre_partials_by_partition(self, operations: npt.ArrayLike) -> None:
        """The same for single partitions, by operations (n, 9); see `codes.PARTITION_OPERATION_WORDS`."""
        self._update_above(*self._check_operations(operations))

    def _update_above(self, rows: IndexArray, cumulative: IndexArray, partitions: IndexArray | None) -> None:
        """Run operations of a pre-order, which need the transposes of the matrices of nodes' own edges."""
        used = np.unique(rows[:, 4])
        transposes = (self.matrix_buffer_count + used).tolist()
        for engine in self._engines():
            engine.combine_matrices(Combination.TRANSPOSE, np.stack([used, used]).astype(np.int32), transposes)
        rows = rows.copy()
        rows[:, 4] += self.matrix_buffer_count
        self._update(rows, cumulative, partitions, pre_order=True)

    def _update(
        self, rows: IndexArray, cumulative: IndexArray, partitions: IndexArray | None, pre_order: bool = False
    ) -> None:
        for number, block in enumerate(self._blocks()):
            own = slice(None) if partitions is None else partitions == number
            if len(rows[own]):
                block.update(rows[own].tolist(), cumulative[own].tolist(), pre_order)

    def _check_operations(
        self, operations: npt.ArrayLike, total: int | None = None
    ) -> tuple[IndexArray, IndexArray, IndexArray | None]:
        """Operations (n, 7), the scale buffer in which each accumulates, and its partition; None for all.

        The scale buffer `total` is that of all operations; without it each has one, and a partition.
        """
        n_words = PARTITION_OPERATION_WORDS if total is None else OPERATION_WORDS
        rows = check_whole("operations", operations)
        if rows.size % n_words:
            raise BeagleError(Code.OUT_OF_RANGE, f"operations of {rows.size} numbers, expected {n_words} each")
        rows = rows.reshape(-1, n_words)
        check_indices("buffer", rows[:, [0, 3, 5]], self._buffer_count)
        check_indices("matrix", rows[:, [4, 6]], self.matrix_buffer_count)
        if not self._ignores_scales:
            check_indices("scale buffer", rows[:, [1, 2]], self.scale_buffer_count, optional=True)
        partitions = check_indices("partition", rows[:, 7], self._n_partitions) if total is None else None
        totals = rows[:, 8] if total is None else np.full(len(rows), total)
        check_indices("scale buffer", totals if total is None else total, self.scale_buffer_count, optional=True)
        return rows[:, :OPERATION_WORDS], totals, partitions

    # --- waiting --------------------------------------------------------------------------------------------

    def wait_for_partials(self, buffer_indices: npt.ArrayLike) -> None:
        """Wait until the partials that have been asked for are there."""
        check_indices("buffer", buffer_indices, self._buffer_count)
        for block in self._open or ():
            block.engine.finish()

    # --- scale buffers: logarithms of factors, pattern by pattern -------------------------------------------

    def _blocks_of(self, partition: int | None) -> list[PatternBlock]:
        blocks = self._blocks()
        return blocks if partition is None else [blocks[check_index("partition", partition, len(blocks))]]

    def accumulate_scale_factors(
        self, scale_indices: npt.ArrayLike, cumulative_scale_index: int, partition: int | None = None
    ) -> None:
        """Add buffers to a cumulative one, only of a partition if one is given."""
        self._add(Step.ADD, scale_indices, cumulative_scale_index, partition)

    def remove_scale_factors(
        self, scale_indices: npt.ArrayLike, cumulative_scale_index: int, partition: int | None = None
    ) -> None:
        """Take buffers off a cumulative one, only of a partition if one is given."""
        self._add(Step.SUBTRACT, scale_indices, cumulative_scale_index, partition)

    def _add(self, kind: int, scale_indices: npt.ArrayLike, total: int, partition: int | None) -> None:
        indices = check_indices("scale buffer", scale_indices, self.scale_buffer_count).tolist()
        to = check_index("scale buffer", total, self.scale_buffer_count)
        for block in self._blocks_of(partition):
            block.add_scales(kind, indices, to)

    def reset_scale_factors(self, cumulative_scale_index: int, partition: int | None = None) -> None:
        """Make a buffer 0, only of a partition if one is given."""
        to = check_index("scale buffer", cumulative_scale_index, self.scale_buffer_count)
        for block in self._blocks_of(partition):
            block.copy_scales(to, NONE)

    def copy_scale_factors(self, destination_index: int, source_index: int) -> None:
        """Make a buffer a copy of another one."""
        to = check_index("scale buffer", destination_index, self.scale_buffer_count)
        source = check_index("scale buffer", source_index, self.scale_buffer_count)
        for block in self._blocks():
            block.copy_scales(to, source)

    def get_scale_factors(self, index: int) -> FloatArray:
        """A copy of a buffer, logarithms (n_patterns,); waits."""
        at = check_index("scale buffer", index, self.scale_buffer_count)
        values = np.empty(self.pattern_count)
        for block in self._blocks():
            values[block.patterns] = block.read_scales(at)
        return values
