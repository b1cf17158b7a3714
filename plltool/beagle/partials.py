"""The partials of the patterns of one partition, on an engine, and the scale factors that have been taken out of them.

An engine never divides a CLA by a client's scale factors. Its CLAs keep all their digits by exact powers of two, and
what a client has taken out is a number for each buffer and pattern: log(CLA) = log(what the client sees) + `removed`.
So a scale factor that an operation writes is the logarithm of the largest entry of the CLA, less what has been removed
below. The largest entries come from the device when someone needs them; until then the updates of `removed` and of the
scale buffers wait in a list, in their order, together with the answers that depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray
from plltool.beagle.codes import NONE, BeagleError, Code
from plltool.engine import program as prog
from plltool.engine.buffers import BufferEngine, Pending

SCRATCH = 5  # slots behind those of the buffers: ones, an expanded tip, and P, P', P'' times the lower end of an edge
LOG_OF_2 = float(np.log(2.0))


class PatternBlock:
    """Patterns of one partition.

    Parameters
    ----------
    engine : with SCRATCH slots more than there are partials, and an identity as its last matrix
    patterns : (n,) the patterns, as the instance numbers them
    n_buffers : buffers of the instance
    scales : (n_scale_buffers, n_patterns) scale buffers of the instance, which operations write, as logarithms
    ignores_scales : whether scale factors are left to the engine

    Attributes
    ----------
    removed : (n_buffers, n) logarithms of what has been taken out of each buffer
    """

    def __init__(
        self,
        engine: BufferEngine,
        patterns: IndexArray,
        n_buffers: int,
        scales: FloatArray,
        ignores_scales: bool,
        later: list[Callable[[], None]],
    ):
        self.engine = engine
        self.patterns = patterns
        self.removed = np.zeros((n_buffers, len(patterns)))
        self._scales = scales
        self._ignores_scales = ignores_scales
        self._later = later
        self._operands: dict[int, int] = {}  # of buffers that hold something: a slot, or ~tip
        self._free = list(range(engine.n_slots - SCRATCH))[::-1]
        self._ones, self._expanded, self._products = (engine.n_slots - SCRATCH + k for k in (0, 1, 2))
        shape = len(patterns), engine.layout.n_components, engine.layout.n_states
        engine.write_slot(self._ones, np.ones(shape))

    # --- buffers --------------------------------------------------------------------------------------------

    def set_states(self, tip: int, states: npt.NDArray[np.integer]) -> None:
        """Give a tip states (n,)."""
        slot = self._operands.get(tip, NONE)
        if slot >= 0:
            self._free.append(slot)
        self.engine.set_codes(tip, self.engine.encode(states))
        self._operands[tip] = ~tip
        self._forget_scales(tip)

    def write(self, buffer: int, partials: FloatArray) -> None:
        """Write partials (n, C, S)."""
        self.engine.write_slot(self._slot(buffer), partials)
        self._forget_scales(buffer)

    def _forget_scales(self, buffer: int) -> None:
        self._later.append(lambda: self.removed[buffer].fill(0.0))

    def read(self, buffer: int) -> FloatArray:
        """Partials (n, C, S), as the client sees them; nothing may be left to do."""
        operand = self._operand(buffer)
        values, counts = self.engine.read_slot(self._as_slot(operand))
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values * np.exp(counts * LOG_OF_2 - self.removed[buffer][:, None])[..., None])

    def _slot(self, buffer: int) -> int:
        """The slot of a buffer that is about to be written."""
        slot = self._operands.get(buffer, NONE)
        if slot < 0:
            if not self._free:
                raise BeagleError(Code.OUT_OF_RANGE, f"partials {buffer}: all partials buffers are in use")
            slot = self._operands[buffer] = self._free.pop()
        return slot

    def _operand(self, buffer: int) -> int:
        operand = self._operands.get(buffer)
        if operand is None:
            raise BeagleError(Code.OUT_OF_RANGE, f"buffer {buffer} holds neither states nor partials")
        return operand

    def _as_slot(self, operand: int) -> int:
        """A slot with what an operand holds."""
        if operand >= 0:
            return operand
        self.engine.make(prog.propagate(self._expanded, operand, self.engine.n_matrices - 1))
        return self._expanded

    # --- operations -----------------------------------------------------------------------------------------

    def update(self, operations: IndexArray, cumulative: Sequence[int], pre_order: bool = False) -> None:
        """Run operations (n, 7), see `codes.OPERATION_WORDS`, in their order; nothing waits.

        In a pre-order, the first child is the buffer of the node above, of which the state at the lower end of the
        branch is wanted, and its matrix is transposed: it is given as such.
        """
        start = 0
        for end in range(1, len(operations) + 1):  # maxima are taken at the end of a program
            if end == len(operations) or operations[end, 0] in operations[start:end, 0]:
                self._run(operations[start:end], cumulative[start:end], pre_order)
                start = end

    def _run(self, operations: IndexArray, cumulative: Sequence[int], pre_order: bool) -> None:
        rows = []  # slot, operand, its matrix, other operand, its matrix
        before, were_free = self._operands.copy(), self._free.copy()
        try:
            for target, _, _, a, of_a, b, of_b in operations.tolist():
                ends = self._operand(a), of_a, self._operand(b), of_b
                rows.append((self._slot(target), *ends))
        except BeagleError:
            self._operands, self._free = before, were_free
            raise
        slots, a, of_a, b, of_b = np.array(rows).T
        if pre_order:  # what is above and beside a node, then along its edge
            beside = prog.newview(self._products, a, self.engine.n_matrices - 1, b, of_b)
            along = prog.propagate(slots, self._products, of_a)
            program = np.stack([beside, along], axis=1).reshape(-1, beside.shape[1])
        else:
            program = prog.newview(slots, a, of_a, b, of_b)
        self.engine.make(program)
        writes = [row for row in operations.tolist() if row[1] != NONE and not self._ignores_scales]
        maxima = self.engine.log_maxima([self._operands[row[0]] for row in writes]) if writes else None
        self._later.append(lambda: self._note_scales(operations.tolist(), cumulative, maxima))

    def _note_scales(self, operations: list[list[int]], cumulative: Sequence[int], maxima: Pending | None) -> None:
        """What operations take out of their CLAs."""
        removed, scales, own = self.removed, self._scales, self.patterns
        logs = iter(()) if maxima is None else iter(maxima())
        for (target, write, read, a, _, b, _), total in zip(operations, cumulative, strict=True):
            removed[target] = removed[a] + removed[b]
            if self._ignores_scales:
                continue
            if write != NONE:
                largest = next(logs)
                factor = np.where(np.isfinite(largest), largest - removed[target], 0.0)
                scales[write, own] = factor
                removed[target] += factor
                if total != NONE:
                    scales[total, own] += factor
            elif read != NONE:
                removed[target] += scales[read, own]

    # --- sums -----------------------------------------------------------------------------------------------

    def at_root(self, buffer: int, masses: FloatArray) -> Callable[[], FloatArray]:
        """(1, n) log-likelihood of each pattern, less what has been taken out, of partials at the root."""
        slot = self._as_slot(self._operand(buffer))
        sums = self.engine.dot_clas(slot, self._ones, 1, masses)
        return lambda: self._finish(sums(), buffer)

    def across(self, upper: int, lower: int, matrices: Sequence[int], masses: FloatArray) -> Callable[[], FloatArray]:
        """(k, n) log-likelihood, less what has been taken out, and derivatives of each pattern, across an edge."""
        operand = self._operand(lower)
        slots = [self._products + k for k in range(len(matrices))]
        self.engine.make(prog.propagate(slots, operand, list(matrices)))
        sums = self.engine.dot_clas(self._as_slot(self._operand(upper)), slots[0], len(slots), masses)
        return lambda: self._finish(sums(), upper, lower)

    def _finish(self, rows: FloatArray, *buffers: int) -> FloatArray:
        sums, exponent = rows[:-1], rows[-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = sums / sums[0]
            found[0] = np.log(sums[0]) + exponent * LOG_OF_2 - self.removed[list(buffers)].sum(axis=0)
        if len(found) > 2:
            found[2] -= found[1] ** 2
        return found

    def ratio(self, upper: int, lower: int, matrix: int, masses: FloatArray) -> Callable[[], FloatArray]:
        """(n,) the sum across an edge with a matrix in it, over the sum without."""
        operand, identity = self._operand(lower), self.engine.n_matrices - 1
        self.engine.make(prog.propagate([self._products, self._products + 1], operand, [identity, matrix]))
        sums = self.engine.dot_clas(self._as_slot(self._operand(upper)), self._products, 2, masses)

        def finish() -> FloatArray:
            without, with_matrix, _ = sums()
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.asarray(with_matrix / without)

        return finish
