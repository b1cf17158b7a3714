"""Scale buffers of an instance: logarithms of factors, pattern by pattern."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.beagle.codes import Sizes, check_index, check_indices


class ScaleBuffers:
    """The calls of an instance that concern scale buffers; they take their turn behind what is under way."""

    def __init__(self, sizes: Sizes):
        self.pattern_count, self.scale_buffer_count = sizes.pattern_count, sizes.scale_buffer_count
        self._scales = np.zeros((self.scale_buffer_count, self.pattern_count))
        self._partition_of = np.zeros(self.pattern_count, dtype=np.intp)
        self._n_partitions = 1
        self._later: list[Callable[[], None]] = []

    def settle(self) -> None:
        """Wait for all requests, and for the scale factors of all operations, in their order."""
        waiting = self._later[:]
        self._later.clear()
        for work in waiting:
            work()

    def _patterns_of(self, partition: int | None) -> IndexArray:
        """The patterns of a partition, or of all."""
        if partition is None:
            return np.arange(self.pattern_count)
        return np.flatnonzero(self._partition_of == check_index("partition", partition, self._n_partitions))

    def accumulate_scale_factors(
        self, scale_indices: npt.ArrayLike, cumulative_scale_index: int, partition: int | None = None
    ) -> None:
        """Add buffers to a cumulative one; those of a partition only, if one is given."""
        self._add(scale_indices, cumulative_scale_index, partition, 1.0)

    def remove_scale_factors(
        self, scale_indices: npt.ArrayLike, cumulative_scale_index: int, partition: int | None = None
    ) -> None:
        """Take buffers off a cumulative one; those of a partition only, if one is given."""
        self._add(scale_indices, cumulative_scale_index, partition, -1.0)

    def _add(self, scale_indices: npt.ArrayLike, total: int, partition: int | None, sign: float) -> None:
        indices = check_indices("scale buffer", scale_indices, self.scale_buffer_count)
        to, own = check_index("scale buffer", total, self.scale_buffer_count), self._patterns_of(partition)

        def add() -> None:
            self._scales[to, own] += sign * self._scales[indices][:, own].sum(axis=0)

        self._later.append(add)

    def reset_scale_factors(self, cumulative_scale_index: int, partition: int | None = None) -> None:
        """Make a buffer 0; that of a partition only, if one is given."""
        to = check_index("scale buffer", cumulative_scale_index, self.scale_buffer_count)
        own = self._patterns_of(partition)

        def reset() -> None:
            self._scales[to, own] = 0.0

        self._later.append(reset)

    def copy_scale_factors(self, destination_index: int, source_index: int) -> None:
        """Make a buffer a copy of another one."""
        to = check_index("scale buffer", destination_index, self.scale_buffer_count)
        source = check_index("scale buffer", source_index, self.scale_buffer_count)

        def copy() -> None:
            self._scales[to] = self._scales[source]

        self._later.append(copy)

    def get_scale_factors(self, index: int) -> FloatArray:
        """A copy of a buffer, logarithms (n_patterns,); waits."""
        at = check_index("scale buffer", index, self.scale_buffer_count)
        self.settle()
        return np.array(self._scales[at])
