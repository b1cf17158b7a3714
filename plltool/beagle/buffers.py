"""What an instance holds: its model, matrices, tips, partials and scale factors, and the operations on them."""

import numpy as np

from plltool.arrays import AnyArray, ArrayLike, FloatArray, IndexArray
from plltool.beagle.codes import (
    NONE,
    OPERATION_WORDS,
    PARTITION_OPERATION_WORDS,
    BeagleError,
    Code,
    Flag,
    Resource,
    check_array,
    check_index,
    check_indices,
    check_same_length,
    check_whole,
)
from plltool.beagle.partials import SCRATCH, PatternBlock
from plltool.engine.branch_tables import Spectra
from plltool.engine.contract import Combination, Step
from plltool.engine.layout import DataShape
from plltool.engine.select import open_buffers
from plltool.errors import DeviceError, DeviceMemoryError
from plltool.hardware import Hardware


def read_eigensystem(right: FloatArray, left: FloatArray, values: FloatArray) -> Spectra:
    """Q = right @ B @ left: B is diagonal, but for [[a, b], [-b, a]] at neighbours with eigenvalues a +- bi.

    `values` (S,), or (2, S) with the imaginary parts. Pairs come first, so that the first of each has an even place, as
    the engines want it.
    """
    parts = values.reshape(-1, len(right))
    order = np.argsort(parts[-1] == 0, kind="stable") if len(parts) > 1 else np.arange(len(right))
    real, *turns = (part[order][None, None] for part in parts)
    right, left = right[:, order][None, None], left[order][None, None]
    return Spectra(real, turns[0] if turns else None, right, left, left[:, :, -1])


class Buffers:
    """The calls of an instance that set and get what it holds, or change it; see BEAGLE's of the same names.

    A matrix is (category_count, state_count, state_count); one that is not given is 0. Tips of unknown state meet the
    sums of a matrix' rows, which are 1 in a matrix of probabilities and 0 in its derivatives.
    """

    tip_count: int
    partials_buffer_count: int
    compact_buffer_count: int
    state_count: int
    pattern_count: int
    eigen_buffer_count: int
    matrix_buffer_count: int
    category_count: int
    scale_buffer_count: int

    def __init__(self, sizes: dict[str, int], flags: Flag, resource: Resource, hardware: Hardware):
        vars(self).update(sizes)
        self.flags, self.resource, self._hardware = flags, resource, hardware
        self._ignores_scales = bool(flags & (Flag.SCALING_AUTO | Flag.SCALING_ALWAYS))  # they are left to the engine
        models, n, c = self.eigen_buffer_count, self.state_count, self.category_count
        self._counts = {
            "tip": self.tip_count,
            "buffer": self.partials_buffer_count + self.compact_buffer_count,
            "scale buffer": self.scale_buffer_count,
            "matrix": self.matrix_buffer_count,
            "partition": 1,
            **dict.fromkeys(("eigensystem", "frequencies", "category weights"), models),
            "category rates": max(models, 1),
        }
        self._eigen: dict[int, Spectra] = {}
        self._rates, self._weights = np.ones((max(models, 1), c)), np.full((max(models, 1), c), 1 / c)
        self._frequencies = np.full((max(models, 1), n), 1 / n)
        self._partition_of = np.zeros(self.pattern_count, dtype=np.intp)
        self._pattern_weights = np.ones(self.pattern_count)
        self._tips: dict[int, AnyArray] = {}  # states (P,) or partials (P, S)
        self._open: list[PatternBlock] | None = None
        self._kept: FloatArray | None = None  # matrices of engines that were closed
        self._is_final = False

    def _index(self, what: str, index: int) -> int:
        return check_index(what, index, self._counts[what])

    def _indices(self, what: str, indices: ArrayLike, optional: bool = False) -> IndexArray:
        return check_indices(what, indices, self._counts[what], optional)

    # --- engines --------------------------------------------------------------------------------------------

    def finalize(self) -> None:
        """Free what is held on the device; calls that need it then raise UNINITIALIZED_INSTANCE."""
        self._close_engines()
        self._is_final = True

    def _close_engines(self) -> None:
        for block in self._open or ():
            block.engine.close()
        self._open = None

    def _blocks(self, partition: int | None = None) -> list[PatternBlock]:
        """The patterns of all partitions, or of one, on engines, which open when first needed and get what was set."""
        if self._is_final:
            raise BeagleError(Code.UNINITIALIZED_INSTANCE, "the instance has been finalized")
        if self._open is None:
            self._open = [self._open_block(number) for number in range(self._counts["partition"])]
            for block in self._open:
                block.engine.set_weights(self._pattern_weights[block.patterns])
                if self._kept is not None:
                    block.engine.set_matrices(range(self.matrix_buffer_count), self._kept)
            for tip, values in self._tips.items():
                self._set_tip(tip, values)
        return self._open if partition is None else [self._open[self._index("partition", partition)]]

    def _open_block(self, partition: int) -> PatternBlock:
        patterns = np.flatnonzero(self._partition_of == partition)
        if not len(patterns):
            raise BeagleError(Code.OUT_OF_RANGE, f"partition {partition} has no patterns")
        is_real = Flag.EIGEN_COMPLEX not in self.flags
        sizes = self.state_count, self.category_count, self.tip_count, (len(patterns),)
        shape = DataShape(*sizes, reversible=is_real)
        n_matrices = 2 * self.matrix_buffer_count + 1  # the matrices, their transposes for a pre-order, the identity
        n_buffers = self._counts["buffer"]
        counts = self.partials_buffer_count + SCRATCH, n_matrices, n_buffers + self.scale_buffer_count
        try:
            engine = open_buffers(self.resource.device, shape, *counts, self._hardware)
        except DeviceMemoryError as error:
            raise BeagleError(Code.OUT_OF_MEMORY, str(error)) from error
        except DeviceError as error:
            raise BeagleError(Code.NO_IMPLEMENTATION, str(error)) from error
        identity = np.tile(np.eye(self.state_count), (1, self.category_count, 1, 1))
        engine.set_matrices([n_matrices - 1], identity)
        return PatternBlock(engine, patterns, n_buffers, self._ignores_scales)

    # --- the model ------------------------------------------------------------------------------------------

    def set_eigen_decomposition(
        self, eigen_index: int, eigen_vectors: ArrayLike, inverse_eigen_vectors: ArrayLike, eigen_values: ArrayLike
    ) -> None:
        """Set a rate matrix by its eigenvectors in columns, their inverse, and the eigenvalues (S,).

        With EIGEN_COMPLEX there are 2 S eigenvalues, real parts first. Of a pair a +- bi, which is consecutive, the
        columns of `eigen_vectors` are the real and the imaginary part of the first one's vector.
        With INVEVEC_TRANSPOSED the inverse comes transposed.
        """
        index, n = self._index("eigensystem", eigen_index), self.state_count
        right = check_array("eigenvectors", eigen_vectors, (n, n))
        left = check_array("inverse eigenvectors", inverse_eigen_vectors, (n, n))
        size = 2 * n if Flag.EIGEN_COMPLEX in self.flags else n
        values = check_array("eigenvalues", eigen_values, (size,))
        self._eigen[index] = read_eigensystem(right, left.T if Flag.INVEVEC_TRANSPOSED in self.flags else left, values)

    def set_state_frequencies(self, index: int, frequencies: ArrayLike) -> None:
        """Set the state frequencies (S,) of this number."""
        at = self._index("frequencies", index)
        self._frequencies[at] = check_array("frequencies", frequencies, (self.state_count,))

    def set_category_weights(self, index: int, weights: ArrayLike) -> None:
        """Set the weights (C,) of the categories, of this number."""
        at = self._index("category weights", index)
        self._weights[at] = check_array("category weights", weights, (self.category_count,))

    def set_category_rates(self, rates: ArrayLike) -> None:
        """Set the rates (C,) of the categories that `update_transition_matrices` uses."""
        self.set_category_rates_with_index(0, rates)

    def set_category_rates_with_index(self, index: int, rates: ArrayLike) -> None:
        """Set the rates (C,) of the categories, of this number; 0 is the number in `set_category_rates`."""
        at = self._index("category rates", index)
        self._rates[at] = check_array("category rates", rates, (self.category_count,))

    def _masses(self, weights: int, frequencies: int | None = None) -> FloatArray:
        """(C, S) weight times frequency, or the weight alone, where partials have the frequencies in them."""
        of_states = np.ones(self.state_count)
        own = self._weights[self._index("category weights", weights)]
        if frequencies is not None:
            of_states = self._frequencies[self._index("frequencies", frequencies)]
        return np.asarray(own[:, None] * of_states)

    # --- matrices -------------------------------------------------------------------------------------------

    def update_transition_matrices(
        self,
        eigen_index: int,
        probability_indices: ArrayLike,
        first_derivative_indices: ArrayLike | None,
        second_derivative_indices: ArrayLike | None,
        edge_lengths: ArrayLike,
    ) -> None:
        """Make the matrices of edges, and if asked for their derivatives in the edges' lengths."""
        orders = probability_indices, first_derivative_indices, second_derivative_indices
        n = len(self._indices("matrix", probability_indices))
        self.update_transition_matrices_with_multiple_models([eigen_index] * n, [0] * n, *orders, edge_lengths)

    def update_transition_matrices_with_multiple_models(
        self,
        eigen_indices: ArrayLike,
        category_rate_indices: ArrayLike,
        probability_indices: ArrayLike,
        first_derivative_indices: ArrayLike | None,
        second_derivative_indices: ArrayLike | None,
        edge_lengths: ArrayLike,
    ) -> None:
        """The same for edges, each with an eigensystem and category rates."""
        lengths = np.atleast_1d(np.asarray(edge_lengths, dtype=np.float64))
        models = self._indices("eigensystem", eigen_indices)
        rates = self._indices("category rates", category_rate_indices)
        for length in lengths[~(np.isfinite(lengths) & (lengths >= 0))][:1].tolist():
            raise BeagleError(Code.OUT_OF_RANGE, f"found edge length {length}, expected 0 or more")
        lists = [probability_indices, first_derivative_indices, second_derivative_indices]
        orders = {order: self._indices("matrix", own) for order, own in enumerate(lists) if own is not None}
        named = [(f"matrices of order {order}", indices) for order, indices in orders.items()]
        n = check_same_length([("lengths", lengths), ("eigensystems", models), ("category rates", rates), *named])
        places = np.full((len(lists), n), NONE, dtype=np.int32)
        for order, indices in orders.items():
            places[order] = indices
        for model, rate in dict.fromkeys(zip(models.tolist(), rates.tolist(), strict=True)):
            if model not in self._eigen:
                raise BeagleError(Code.OUT_OF_RANGE, f"eigensystem {model} has not been set")
            own = np.flatnonzero((models == model) & (rates == rate))
            eigen = self._eigen[model].at_rates(self._rates[rate]).pack()
            for block in self._blocks():
                block.engine.make_matrices(eigen, lengths[own], places[:, own])

    def set_transition_matrix(self, matrix_index: int, matrix: ArrayLike, padded_value: float = 1.0) -> None:
        """Set a matrix (C, S, S). `padded_value` is not used, see above."""
        self.set_transition_matrices([matrix_index], np.asarray(matrix, dtype=np.float64)[None])

    def set_transition_matrices(self, matrix_indices: ArrayLike, matrices: ArrayLike) -> None:
        """Set matrices (n, C, S, S)."""
        indices = self._indices("matrix", matrix_indices).tolist()
        shape = len(indices), self.category_count, self.state_count, self.state_count
        own = check_array("matrices", matrices, shape)
        for block in self._blocks():
            block.engine.set_matrices(indices, own)

    def get_transition_matrix(self, matrix_index: int) -> FloatArray:
        """A copy of a matrix (C, S, S); waits."""
        index = self._index("matrix", matrix_index)
        return self._blocks()[0].engine.read_matrices([index])[0]

    def convolve_transition_matrices(
        self, first_indices: ArrayLike, second_indices: ArrayLike, result_indices: ArrayLike
    ) -> None:
        """Make matrices the products of two others: of the edge above, and the edge below."""
        self._combine(Combination.PRODUCT_OF_TWO, first_indices, second_indices, result_indices)

    def add_transition_matrices(
        self, first_indices: ArrayLike, second_indices: ArrayLike, result_indices: ArrayLike
    ) -> None:
        """Make matrices the sums of two others."""
        self._combine(Combination.SUM_OF_TWO, first_indices, second_indices, result_indices)

    def transpose_transition_matrices(self, indices: ArrayLike, result_indices: ArrayLike) -> None:
        """Make matrices the transposes of others."""
        self._combine(Combination.TRANSPOSE, indices, indices, result_indices)

    def _combine(self, combination: int, *lists: ArrayLike) -> None:
        first, second, results = (self._indices("matrix", indices).tolist() for indices in lists)
        check_same_length([("matrices above", first), ("matrices below", second), ("results", results)])
        for block in self._blocks() if results else ():
            block.engine.combine_matrices(combination, np.array([first, second], dtype=np.int32), results)

    def set_differential_matrix(self, matrix_index: int, matrix: ArrayLike) -> None:
        """Set the matrix (C, S, S) by which `calculate_edge_derivatives` multiplies: Q times the rate of a category."""
        self.set_transition_matrix(matrix_index, matrix)

    # --- patterns, tips and partials ------------------------------------------------------------------------

    def set_tip_states(self, tip_index: int, states: ArrayLike) -> None:
        """Set the states (n_patterns,) of a tip, numbers from 0; `state_count` and above is any state."""
        tip, given = self._index("tip", tip_index), check_whole(f"tip {tip_index}", states)
        for state in given[given < 0][:1].tolist():
            raise BeagleError(Code.OUT_OF_RANGE, f"tip {tip}: found state {state}, expected 0 or more")
        if len(given) != self.pattern_count:
            raise BeagleError(Code.OUT_OF_RANGE, f"tip {tip}: found {len(given)} states, expected {self.pattern_count}")
        self._set_tip(tip, given)

    def set_tip_partials(self, tip_index: int, partials: ArrayLike) -> None:
        """Set the partials (n_patterns, state_count) of a tip, which all categories share."""
        tip, shape = self._index("tip", tip_index), (self.pattern_count, self.state_count)
        self._set_tip(tip, check_array(f"partials of tip {tip}", partials, shape))

    def _set_tip(self, tip: int, values: AnyArray) -> None:
        self._tips[tip] = values
        for block in self._open or ():
            own = values[block.patterns]
            if own.ndim == 1:
                block.set_states(tip, own.astype(np.intp))
            else:
                shape = len(own), self.category_count, self.state_count
                block.write(tip, np.broadcast_to(own[:, None], shape).astype(np.float64))

    def set_partials(self, buffer_index: int, partials: ArrayLike) -> None:
        """Set partials (category_count, n_patterns, state_count)."""
        buffer = self._index("buffer", buffer_index)
        shape = self.category_count, self.pattern_count, self.state_count
        values = check_array(f"partials {buffer}", partials, shape).swapaxes(0, 1)
        for block in self._blocks():
            block.write(buffer, values[block.patterns])

    def get_partials(self, buffer_index: int, scale_index: int = NONE) -> FloatArray:
        """Partials (category_count, n_patterns, state_count), times the factors of a scale buffer; waits."""
        buffer = self._index("buffer", buffer_index)
        if scale_index != NONE:
            self._index("scale buffer", scale_index)
        values = np.empty((self.pattern_count, self.category_count, self.state_count))
        for block in self._blocks():
            values[block.patterns] = block.read(buffer)
        if scale_index != NONE:
            values *= np.exp(self.get_scale_factors(scale_index))[:, None, None]
        return values.swapaxes(0, 1).copy()

    def set_pattern_weights(self, weights: ArrayLike) -> None:
        """Set how often each pattern occurs, (n_patterns,)."""
        self._pattern_weights = check_array("pattern weights", weights, (self.pattern_count,))
        for block in self._open or ():
            block.engine.set_weights(self._pattern_weights[block.patterns])

    def set_pattern_partitions(self, partition_count: int, partitions: ArrayLike) -> None:
        """Set the partition of each pattern, (n_patterns,); partials and scale factors are lost."""
        given = check_indices("partition", partitions, partition_count)
        if len(given) != self.pattern_count:
            raise BeagleError(Code.OUT_OF_RANGE, f"found {len(given)} partitions, expected {self.pattern_count}")
        if self._open is not None:
            self._kept = self._open[0].engine.read_matrices(range(self.matrix_buffer_count))
        self._close_engines()
        self._partition_of, self._counts["partition"] = given, partition_count

    def set_root_pre_partials(self, buffer_indices: ArrayLike, state_frequencies_indices: ArrayLike) -> None:
        """Set the partials above a root to its state frequencies."""
        buffers = self._indices("buffer", buffer_indices)
        shape = self.category_count, self.pattern_count, self.state_count
        numbers = check_whole("frequencies", state_frequencies_indices)
        check_same_length([("buffers", buffers), ("frequencies", numbers)])
        for buffer, number in zip(buffers.tolist(), numbers.tolist(), strict=True):
            frequencies = self._frequencies[self._index("frequencies", number)]
            self.set_partials(buffer, np.broadcast_to(frequencies, shape))

    # --- operations -----------------------------------------------------------------------------------------

    def update_partials(self, operations: ArrayLike, cumulative_scale_index: int = NONE) -> None:
        """Compute partials by operations (n, 7), one after another; see `codes.OPERATION_WORDS`."""
        self._update(operations, cumulative_scale_index)

    def update_partials_by_partition(self, operations: ArrayLike) -> None:
        """Compute partials of single partitions by operations (n, 9); see `codes.PARTITION_OPERATION_WORDS`."""
        self._update(operations)

    def update_pre_partials(self, operations: ArrayLike, cumulative_scale_index: int = NONE) -> None:
        """Compute partials above nodes, at the lower end of a node's edge (Ji et al. 2020; Gangavarapu et al. 2024).

        In an operation (n, 7) the first child is the pre-order buffer of the node above and its matrix that of the
        node's own edge; the second child is the node's sibling, with partials below it, and the matrix of its edge.
        """
        self._update(operations, cumulative_scale_index, pre_order=True)

    def update_pre_partials_by_partition(self, operations: ArrayLike) -> None:
        """The same for single partitions, by operations (n, 9); see `codes.PARTITION_OPERATION_WORDS`."""
        self._update(operations, pre_order=True)

    def _update(self, operations: ArrayLike, total: int | None = None, pre_order: bool = False) -> None:
        """Run operations (n, 7) that accumulate in the scale buffer `total`, or (n, 9) with one and a partition each.

        Those of a pre-order need the transposes of the matrices of nodes' own edges.
        """
        n_words = PARTITION_OPERATION_WORDS if total is None else OPERATION_WORDS
        rows = check_whole("operations", operations)
        if rows.size % n_words:
            raise BeagleError(Code.OUT_OF_RANGE, f"operations of {rows.size} numbers, expected {n_words} each")
        rows = rows.reshape(-1, n_words)
        self._indices("buffer", rows[:, [0, 3, 5]])
        self._indices("matrix", rows[:, [4, 6]])
        if not self._ignores_scales:
            self._indices("scale buffer", rows[:, [1, 2]], optional=True)
        partitions = None if total is not None else self._indices("partition", rows[:, 7])
        totals = rows[:, 8] if total is None else np.full(len(rows), total)
        self._indices("scale buffer", totals if total is None else total, optional=True)
        blocks, rows = self._blocks(), rows[:, :OPERATION_WORDS].copy()
        if pre_order:
            used = np.unique(rows[:, 4])
            transposes = (self.matrix_buffer_count + used).tolist()
            for block in blocks:
                pairs = np.stack([used, used]).astype(np.int32)
                block.engine.combine_matrices(Combination.TRANSPOSE, pairs, transposes)
            rows[:, 4] += self.matrix_buffer_count
        for number, block in enumerate(blocks):
            own = slice(None) if partitions is None else partitions == number
            if len(rows[own]):
                block.update(rows[own].tolist(), totals[own].tolist(), pre_order)

    def wait_for_partials(self, buffer_indices: ArrayLike) -> None:
        """Wait until the partials that have been asked for are there."""
        self._indices("buffer", buffer_indices)
        for block in self._open or ():
            block.engine.finish()

    # --- scale buffers: logarithms of factors, pattern by pattern -------------------------------------------

    def accumulate_scale_factors(
        self, scale_indices: ArrayLike, cumulative_scale_index: int, partition: int | None = None
    ) -> None:
        """Add buffers to a cumulative one, only of a partition if one is given."""
        self._add(Step.ADD, scale_indices, cumulative_scale_index, partition)

    def remove_scale_factors(
        self, scale_indices: ArrayLike, cumulative_scale_index: int, partition: int | None = None
    ) -> None:
        """Take buffers off a cumulative one, only of a partition if one is given."""
        self._add(Step.SUBTRACT, scale_indices, cumulative_scale_index, partition)

    def _add(self, kind: int, scale_indices: ArrayLike, total: int, partition: int | None) -> None:
        if self._ignores_scales:  # then clients name buffers of partials
            return
        indices, to = self._indices("scale buffer", scale_indices).tolist(), self._index("scale buffer", total)
        for block in self._blocks(partition):
            block.add_scales(kind, indices, to)

    def reset_scale_factors(self, cumulative_scale_index: int, partition: int | None = None) -> None:
        """Make a buffer 0, only of a partition if one is given."""
        to = self._index("scale buffer", cumulative_scale_index)
        for block in self._blocks(partition):
            block.copy_scales(to, NONE)

    def copy_scale_factors(self, destination_index: int, source_index: int) -> None:
        """Make a buffer a copy of another one."""
        to, source = self._index("scale buffer", destination_index), self._index("scale buffer", source_index)
        for block in self._blocks():
            block.copy_scales(to, source)

    def get_scale_factors(self, index: int) -> FloatArray:
        """A copy of a buffer, logarithms (n_patterns,); waits."""
        at, values = self._index("scale buffer", index), np.empty(self.pattern_count)
        for block in self._blocks():
            values[block.patterns] = block.read_scales(at)
        return values
