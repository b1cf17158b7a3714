"""Engines whose tips, matrices and CLAs the caller reads and writes; `plltool.beagle` stands on them.

P matrices do not follow from lengths here: every *matrix* (n_components, n_states, n_states) is given, and instructions
name it where they would name a branch. It may be any square matrix, such as a derivative of P. Programs consist of
NEWVIEW and PROPAGATE. Their CLAs keep exact scaling counts, whatever the caller takes out of them (see
`plltool.beagle.partials`), so nothing underflows. What makes numbers returns a function that waits for them, so that
requests can go on in the meantime.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IntArray
from plltool.engine.base import Engine, Tables
from plltool.engine.numpy_engine import NumpyEngine
from plltool.model.components import Components

Pending = Callable[[], FloatArray]  # waits for numbers


class BufferEngine(Engine):
    """See above; `prepare_buffers` comes before anything else."""

    n_matrices: int

    def prepare_buffers(self, n_matrices: int) -> None:
        """Make room for a number of matrices."""
        self.n_matrices = n_matrices
        n, c = self.layout.n_states, self.layout.n_components
        right = left = np.tile(np.eye(n), (c, 1, 1))
        weights = np.full(c, 1 / c)
        self.set_model([Components(np.zeros((c, n)), right, left, np.full((c, n), 1 / n), np.ones(c), weights)])

    def encode(self, states: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Codes, in the engine's order, of states 0 .. n_states - 1; anything else is any state."""
        n = self.layout.n_states
        known = (states >= 0) & (states < n)
        own = states if self.layout.many_states else 1 << np.where(known, states, 0)
        return np.where(known, own, self.layout.padding_code)

    def to_lanes(self, values: npt.NDArray[np.generic], fill: float) -> npt.NDArray[np.generic]:
        """Values of patterns (n_patterns, ...) as values of lanes (n_blocks, vw, ...), `fill` in the padding."""
        padded = np.full((self.layout.n_lanes, *values.shape[1:]), fill, dtype=values.dtype)
        padded[self.layout.lane_of_pattern] = values
        return padded.reshape(self.layout.n_blocks, self.layout.vw, *values.shape[1:])

    @abstractmethod
    def set_codes(self, tip: int, codes: npt.NDArray[np.integer]) -> None:
        """Give a tip other codes (n_patterns,), as `encode` returns them."""

    @abstractmethod
    def set_matrices(self, indices: Sequence[int], matrices: FloatArray) -> None:
        """Set matrices (n, n_components, n_states, n_states)."""

    @abstractmethod
    def write_slot(self, slot: int, values: FloatArray) -> None:
        """Write a CLA (n_patterns, n_components, n_states); its scaling counts become 0."""

    @abstractmethod
    def read_slot(self, slot: int) -> tuple[FloatArray, IntArray]:
        """A CLA (n_patterns, n_components, n_states), and its counts (n_patterns, n_components), powers of two."""

    @abstractmethod
    def make(self, program: IntArray) -> None:
        """Run NEWVIEW and PROPAGATE instructions, which name matrices; waits for nothing."""

    @abstractmethod
    def log_maxima(self, slots: Sequence[int]) -> Pending:
        """(n, n_patterns) logarithm of the largest entry of each CLA, counts included; -inf where all are 0."""

    @abstractmethod
    def dot_clas(self, a: int, first_b: int, n: int, masses: FloatArray) -> Pending:
        """(n + 1, n_patterns) sums over components and states of mass * a * b, for CLAs in slots first_b + k.

        The last row is a power of two that belongs to all sums of a pattern. The CLAs b have the same counts. `masses`
        (n_components, n_states) are component weight * frequency.
        """

    @abstractmethod
    def finish(self) -> None:
        """Wait until all that was asked for is done."""


class NumpyBuffers(NumpyEngine, BufferEngine):
    """The twin of `plltool.engine.opencl.buffers.OpenCLBuffers`; nothing is left to wait for."""

    def prepare_buffers(self, n_matrices: int) -> None:
        super().prepare_buffers(n_matrices)
        n, c = self.layout.n_states, self.layout.n_components
        self._matrices = np.zeros((1, n_matrices, c, n, n), dtype=self.layout.real)

    def _branch_tables(self, lengths: FloatArray, tables: Tables) -> None:
        """Nothing follows from lengths."""

    def set_codes(self, tip: int, codes: npt.NDArray[np.integer]) -> None:
        sets = self._state_sets[self.to_lanes(codes, self.layout.padding_code)]
        self._tips[tip, :, 0] = sets.swapaxes(-1, -2)

    def set_matrices(self, indices: Sequence[int], matrices: FloatArray) -> None:
        self._matrices[0, list(indices)] = matrices

    def write_slot(self, slot: int, values: FloatArray) -> None:
        self._all_clas[slot] = self.to_lanes(values, 1.0).transpose(0, 2, 3, 1)
        self._all_scales[slot] = 0

    def read_slot(self, slot: int) -> tuple[FloatArray, IntArray]:
        lanes = self.layout.lane_of_pattern
        cla = self._all_clas[slot].transpose(0, 3, 1, 2).reshape(self.layout.n_lanes, *self._all_clas.shape[2:4])
        counts = self._all_scales[slot].transpose(0, 2, 1).reshape(self.layout.n_lanes, -1)
        return cla[lanes].astype(np.float64), counts[lanes]

    def make(self, program: IntArray) -> None:
        self._check_slots(program)
        self.counters.count("partials", program)
        for _ in self._take_through(program):
            pass

    def log_maxima(self, slots: Sequence[int]) -> Pending:
        entries = self._all_clas[list(slots)].max(axis=3).astype(np.float64)  # slot, block, component, lane
        logs = np.log(entries, where=entries > 0, out=np.full(entries.shape, -np.inf))
        maxima = np.max(logs + self._all_scales[list(slots)] * np.log(2.0), axis=2)
        found = maxima.reshape(len(slots), -1)[:, self.layout.lane_of_pattern]
        return lambda: found

    def dot_clas(self, a: int, first_b: int, n: int, masses: FloatArray) -> Pending:
        x = masses[:, :, None] * self._all_clas[a]  # block, component, state, lane
        own = np.sum(x * self._all_clas[first_b : first_b + n], axis=3, dtype=np.float64)  # k, block, component, lane
        counts = self._all_scales[a] + self._all_scales[first_b]
        present = np.any(own != 0, axis=0)
        lowest = np.iinfo(np.int32).min
        largest = np.where(present, counts, lowest).max(axis=1)
        largest = np.where(largest == lowest, 0, largest)
        shifts = np.where(present, np.clip(counts - largest[:, None], -2000, 0), 0)
        sums = np.ldexp(own, shifts).sum(axis=2)
        rows = np.concatenate([sums, largest[None]]).reshape(n + 1, -1)[:, self.layout.lane_of_pattern]
        return lambda: rows

    def finish(self) -> None:
        """Nothing is under way."""
