"""Engines whose tips, matrices and CLAs the caller reads and writes; `plltool.beagle` stands on them.

P matrices do not follow from the lengths of a request here: a client has numbered *matrices* (n_components, n_states,
n_states), and instructions name one where they would name a branch. It may be any square matrix, such as a derivative
of P. Programs consist of NEWVIEW and PROPAGATE. Their CLAs keep exact scaling counts, whatever the caller takes out of
them (see `plltool.beagle.partials`), so nothing underflows. Matrices, CLAs, scale factors and the values of patterns
stay on the device; sums come back. What makes sums returns a function that waits for them, so that requests can go on.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IntArray
from plltool.engine.base import Engine
from plltool.engine.branch_tables import Spectra
from plltool.engine.contract import ONES, Combination, Step
from plltool.engine.numpy_engine import NumpyEngine
from plltool.model.components import Components

if TYPE_CHECKING:
    from plltool.engine.opencl.buffers import OpenCLBuffers

Pending = Callable[[], FloatArray]  # waits for numbers
RATIO_VALUES = 2  # a ratio and its square


class BufferEngine(Engine):
    """What both twins have; `prepare_buffers` comes before anything else. `NumpyBuffers` describes all calls."""

    n_matrices: int

    def prepare_buffers(self, n_matrices: int, n_logs: int) -> None:
        """Make room for a number of matrices, and of rows of logarithms, which are 0."""
        self.n_matrices = n_matrices
        n, c = self.layout.n_states, self.layout.n_components
        right = left = np.tile(np.eye(n), (c, 1, 1))
        turns = None if self.layout.reversible else np.zeros((c, n))
        even, weights = np.full((c, n), 1 / n), np.full(c, 1 / c)
        self.set_model([Components(np.zeros((c, n)), right, left, even, np.ones(c), weights, rotations=turns)])

    def encode(self, states: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Codes, in the engine's order, of states 0 .. n_states - 1; anything else is any state."""
        n = self.layout.n_states
        known = (states >= 0) & (states < n)
        own = states if self.layout.many_states else 1 << np.where(known, states, 0)
        return np.where(known, own, self.layout.padding_code)

    def to_lanes(self, values: npt.NDArray[Any], fill: float) -> npt.NDArray[Any]:
        """Values of patterns (n_patterns, ...) as values of lanes (n_blocks, vw, ...), `fill` in the padding."""
        padded = np.full((self.layout.n_lanes, *values.shape[1:]), fill, dtype=values.dtype)
        padded[self.layout.lane_of_pattern] = values
        return padded.reshape(self.layout.n_blocks, self.layout.vw, *values.shape[1:])

    def write_slot(self, slot: int, values: FloatArray) -> None:
        """Write a CLA (n_patterns, n_components, n_states); its scaling counts become 0."""
        cla = self.to_lanes(values, 1.0).transpose(0, 2, 3, 1)
        self._put_slot(slot, np.ascontiguousarray(cla, dtype=self.layout.real))

    def read_slot(self, slot: int) -> tuple[FloatArray, IntArray]:
        """A CLA (n_patterns, n_components, n_states), and its counts (n_patterns, n_components), powers of two."""
        cla, counts = self._get_slot(slot)
        lanes, shape = self.layout.lane_of_pattern, (self.layout.n_lanes, *cla.shape[1:3])
        values = cla.transpose(0, 3, 1, 2).reshape(shape)[lanes]
        return values.astype(np.float64), counts.transpose(0, 2, 1).reshape(shape[:2])[lanes]

    @abstractmethod
    def _put_slot(self, slot: int, cla: npt.NDArray[np.floating]) -> None:
        """Write a CLA (n_blocks, n_components, n_states, vw), and 0 as its counts."""

    @abstractmethod
    def _get_slot(self, slot: int) -> tuple[npt.NDArray[np.floating], IntArray]:
        """A CLA (n_blocks, n_components, n_states, vw), and its counts (n_blocks, n_components, vw)."""


class NumpyBuffers(NumpyEngine, BufferEngine):
    """The twin of `plltool.engine.opencl.buffers.OpenCLBuffers`; nothing is left to wait for."""

    def prepare_buffers(self, n_matrices: int, n_logs: int) -> None:
        super().prepare_buffers(n_matrices, n_logs)
        n, c = self.layout.n_states, self.layout.n_components
        self._matrices = np.zeros((1, n_matrices, c, n, n), dtype=self.layout.real)
        self._tables_made = {"matrices": self._matrices}
        self._logs = np.zeros((n_logs, self.layout.n_blocks, self.layout.vw))

    def set_codes(self, tip: int, codes: npt.NDArray[np.integer]) -> None:
        """Give a tip other codes (n_patterns,), as `encode` returns them."""
        sets = self._state_sets[self.to_lanes(codes, self.layout.padding_code)]
        self._tips[tip, :, 0] = sets.swapaxes(-1, -2)

    def set_matrices(self, indices: Sequence[int], matrices: FloatArray) -> None:
        """Set matrices (n, n_components, n_states, n_states)."""
        self._matrices[0, list(indices)] = matrices

    def read_matrices(self, indices: Sequence[int]) -> FloatArray:
        """Matrices (n, n_components, n_states, n_states)."""
        return self._matrices[0, list(indices)].astype(np.float64)

    def make_matrices(self, eigen: FloatArray, lengths: FloatArray, places: IntArray) -> None:
        """Make P, P' and P'' of lengths (n,), from `eigen` of one P set, the matrices of `places` (3, n), -1: none."""
        wanted = ["slopes"] if (places[1:] >= 0).any() else []
        made = Spectra.unpack(eigen, self.layout.n_states).tables(lengths[None], wanted, self.layout.real)
        tables = [made["matrices"][0], *(made["slopes"][0].swapaxes(0, 1) if wanted else ())]
        for own, table in zip(places, tables, strict=False):
            self._matrices[0, own[own >= 0]] = table[own >= 0]

    def combine_matrices(self, combination: int, pairs: IntArray, results: Sequence[int]) -> None:
        """Make matrices of pairs (2, n) of others, see `contract.Combination`."""
        a, b = self._matrices[0, pairs[0]], self._matrices[0, pairs[1]]
        make = {Combination.PRODUCT_OF_TWO: lambda: a @ b, Combination.SUM_OF_TWO: lambda: a + b}
        self.set_matrices(results, make[combination]() if combination in make else a.swapaxes(-1, -2))

    def _put_slot(self, slot: int, cla: npt.NDArray[np.floating]) -> None:
        self._all_clas[slot] = cla
        self._all_scales[slot] = 0

    def _get_slot(self, slot: int) -> tuple[npt.NDArray[np.floating], IntArray]:
        return self._all_clas[slot], self._all_scales[slot]

    def make(self, program: IntArray, steps: IntArray | None = None) -> None:
        """Run NEWVIEW and PROPAGATE instructions, which name matrices, then steps; waits for nothing."""
        self._check_slots(program)
        self.counters.count("partials", program)
        for _ in self._take_through(program):
            pass
        if steps is not None:
            self.note_scales(steps)

    def note_scales(self, steps: IntArray) -> None:
        """Run steps (n, STEP_WORDS) on rows of logarithms, see `contract.StepWord`; waits for nothing."""
        for kind, to, a, b in steps.tolist():
            other = self._logs[b] if b >= 0 else 0.0
            if kind == Step.LARGEST:
                largest = self._log_maxima(a)
                self._logs[to] = np.where(np.isfinite(largest), largest - other, 0.0)
            else:
                self._logs[to] = (self._logs[a] if a >= 0 else 0.0) + (other if kind == Step.ADD else -other)

    def _log_maxima(self, slot: int) -> FloatArray:
        """(block, lane) logarithm of the largest entry of a CLA, counts included; -inf where all are 0."""
        entries = self._all_clas[slot].max(axis=2).astype(np.float64)  # block, component, lane
        logs = np.log(entries, where=entries > 0, out=np.full(entries.shape, -np.inf))
        return np.asarray(np.max(logs + self._all_scales[slot] * np.log(2.0), axis=1))

    def read_logs(self, row: int) -> FloatArray:
        """(n_patterns,) a row of logarithms."""
        return self._logs[row].ravel()[self.layout.lane_of_pattern]

    def _sides(self, operand: int) -> tuple[FloatArray, IntArray]:
        """An operand of a query: entries (block, C or 1, S or 1, lane), and counts (block, C, lane)."""
        if operand == ONES:
            return np.ones((1, 1, 1, 1)), self._no_scale
        cla, scale = self._operand(operand)
        return cla.astype(np.float64), scale

    def _products(self, query: Sequence[int], masses: FloatArray, n: int) -> tuple[FloatArray, IntArray]:
        """(n, block, lane) sums over components and states, and the power of two that belongs to all of them."""
        x, scale = self._sides(query[0])
        sides = [self._sides(query[2] + k - 1 if k else query[1]) for k in range(n)]
        counts = scale + sides[0][1]
        parts = [np.ldexp(np.sum(masses[..., None] * x * y, axis=2), more - sides[0][1]) for y, more in sides]
        own = np.stack(parts)  # k, block, component, lane
        present = np.any(own != 0, axis=0)
        lowest = np.iinfo(np.int32).min
        largest = np.where(present, counts, lowest).max(axis=1)
        largest = np.where(largest == lowest, 0, largest)
        shifts = np.where(present, np.clip(counts - largest[:, None], -2000, 0), 0)
        return np.ldexp(own, shifts).sum(axis=2), largest

    def add_sites(self, queries: IntArray, masses: FloatArray, n_products: int) -> Pending:
        """Sums over patterns, weighted, of log-likelihoods and `n_products` - 1 derivatives; (n_products,).

        See `add_sites` in `kernels/buffers.cl`. Likelihoods of all queries (n, QUERY_WORDS) are added up; `masses`
        (n, n_components, n_states) are component weight * frequency. `read_sites` has what belongs to single patterns.
        """
        found: FloatArray | None = None
        with np.errstate(divide="ignore", invalid="ignore"):
            for query, own in zip(queries.tolist(), masses, strict=True):
                sums, power = self._products(query, own, n_products)
                rows = [self._logs[row] if row >= 0 else 0.0 for row in query[3:]]
                values = sums / sums[0]
                values[0] = np.log(sums[0]) + power * np.log(2.0) - rows[0] - rows[1] + rows[2]
                found = values if found is None else np.logaddexp(found, values)
        assert found is not None, "a query at least"
        if n_products > 2:
            found[2] -= found[1] ** 2
        self._sites, sums = found, self._weigh(found)
        return lambda: sums

    def _weigh(self, values: FloatArray) -> FloatArray:
        """Weighted sums of values (n, block, lane); patterns of weight 0 do not count."""
        return np.sum(np.where(self._weights != 0, values, 0.0) * self._weights, axis=(1, 2))

    def read_sites(self, n: int) -> FloatArray:
        """(n, n_patterns) values of patterns of the last `add_sites`."""
        return self._sites[:n].reshape(n, -1)[:, self.layout.lane_of_pattern]

    def add_ratios(self, queries: IntArray, masses: FloatArray, first: int, n_all: int, want_sites: bool) -> None:
        """Note ratios of queries first .. first + n - 1 of `n_all`, and their squares; see `take_ratios`."""
        if first == 0:
            self._ratios = np.empty((n_all, self.layout.n_blocks, self.layout.vw))
        with np.errstate(divide="ignore", invalid="ignore"):
            for number, (query, own) in enumerate(zip(queries.tolist(), masses, strict=True)):
                sums, _ = self._products(query, own, 2)
                self._ratios[first + number] = sums[1] / sums[0]

    def take_ratios(self, n_all: int, want_sites: bool) -> tuple[FloatArray, FloatArray | None]:
        """(n_all, 2) weighted sums of ratios and squares, and the ratios (n_all, n_patterns) if wanted; waits."""
        sums = np.stack([self._weigh(self._ratios), self._weigh(self._ratios**2)], axis=1)
        return sums, self._ratios.reshape(n_all, -1)[:, self.layout.lane_of_pattern] if want_sites else None

    def add_products(self, queries: IntArray, masses: FloatArray, factors: FloatArray) -> FloatArray:
        """(n_states, n_states) sums over queries and patterns of x_i y_j, over the likelihood; waits.

        Components count by their mass, times `factors` (n, n_components) above the line.
        """
        n = self.layout.n_states
        total = np.zeros((n, n))
        for query, own, factor in zip(queries.tolist(), masses, factors, strict=True):
            sums, power = self._products(query, own, 1)
            (x, scale), (y, more) = self._sides(query[0]), self._sides(query[1])
            weights = np.where(self._weights != 0, self._weights, 0.0) / sums[0]
            shares = np.ldexp(weights[:, None], scale + more - power[:, None])  # block, component, lane
            above = (own * factor[:, None])[..., None] * x * shares[:, :, None]
            total += np.einsum("bciv,bcjv->ij", above, np.broadcast_to(y, above.shape))
        return total

    def finish(self) -> None:
        """Wait until all that was asked for is done."""


AnyBuffers: TypeAlias = "NumpyBuffers | OpenCLBuffers"
