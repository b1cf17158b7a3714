"""The partials of the patterns of one partition, on an engine, and the scale factors that have been taken out of them.

An engine never divides a CLA by a client's scale factors. Its CLAs keep all their digits by exact powers of two, and
what a client has taken out is a logarithm for each buffer and pattern: log(CLA) = log(what the client sees) + removed.
So a scale factor that an operation writes is the logarithm of the largest entry of the CLA, less what has been removed
below. The engine keeps these logarithms in rows, first those of the buffers, then the scale buffers, and changes them
by steps (`contract.StepWord`), so that none of them has to come to the host.
"""

from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray, WholeArray, slices
from plltool.beagle.codes import NONE, BeagleError, Code
from plltool.engine import program as prog
from plltool.engine.buffers import AnyBuffers, Pending
from plltool.engine.contract import INSTRUCTION_WORDS, ONES, Step

EDGES_AT_ONCE = 8  # edges whose products have slots of their own, so that one program makes them
SCRATCH = 1 + EDGES_AT_ONCE  # slots behind those of the buffers: an expanded tip, and matrices times ends of edges
LOG_OF_2 = float(np.log(2.0))
NO_PROGRAM = np.empty((0, INSTRUCTION_WORDS), dtype=np.int32)


class PatternBlock:
    """Patterns of one partition.

    engine : with SCRATCH slots more than there are partials, an identity as its last matrix, and rows of logarithms
    patterns : (n,) the patterns, as the instance numbers them
    n_buffers : buffers of the instance
    ignores_scales : whether scale factors are left to the engine
    """

    def __init__(self, engine: AnyBuffers, patterns: IndexArray, n_buffers: int, ignores_scales: bool):
        self._engine = engine
        self.patterns = patterns
        self._n_buffers = n_buffers
        self._ignores_scales = ignores_scales
        self._program: IntArray = NO_PROGRAM  # this and the steps after it are what the engine does not know yet
        self._steps: list[tuple[int, int, int, int]] = []
        self._removed: set[int] = set()  # buffers of which something has been taken out
        self._operands: dict[int, int] = {}  # of buffers that hold something: a slot, or ~tip
        self._free = list(range(engine.n_slots - SCRATCH))[::-1]
        self._expanded = engine.n_slots - SCRATCH
        self._products = self._expanded + 1

    @property
    def engine(self) -> AnyBuffers:
        """The engine, with all partials that have been asked for."""
        return self._send() if len(self._program) else self._engine

    # --- buffers --------------------------------------------------------------------------------------------

    def set_states(self, tip: int, states: WholeArray) -> None:
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
        if buffer in self._removed:
            self._removed.remove(buffer)
            self._steps.append((Step.ADD, buffer, NONE, NONE))

    def read(self, buffer: int) -> FloatArray:
        """Partials (n, C, S), as the client sees them; waits."""
        operand, _ = self._operand(buffer), self._send()
        if operand < 0:
            self.engine.make(prog.propagate(self._expanded, operand, self.engine.n_matrices - 1))
            operand = self._expanded
        values, counts = self.engine.read_slot(operand)
        removed = self.engine.read_logs(buffer)[:, None] if buffer in self._removed else 0.0
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values * np.exp(counts * LOG_OF_2 - removed)[..., None])

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

    # --- operations -----------------------------------------------------------------------------------------

    def update(self, operations: list[list[int]], cumulative: Sequence[int], pre_order: bool = False) -> None:
        """Run operations (n, 7), see `codes.OPERATION_WORDS`, in their order; nothing waits.

        In a pre-order, the first child is the buffer of the node above, of which the state at the lower end of the
        branch is wanted, and its matrix is transposed: it is given as such.
        """
        start = 0
        targets: set[int] = set()
        for end, row in enumerate(operations):  # steps read the CLAs at the end of a program
            if row[0] in targets:
                self._run(operations[start:end], cumulative[start:end], pre_order)
                start, targets = end, set()
            targets.add(row[0])
        self._run(operations[start:], cumulative[start:], pre_order)

    def _run(self, operations: list[list[int]], cumulative: Sequence[int], pre_order: bool) -> None:
        engine, rows = self.engine, []  # slot, operand, its matrix, other operand, its matrix
        before, were_free = self._operands.copy(), self._free.copy()
        try:
            for target, _, _, a, of_a, b, of_b in operations:
                ends = self._operand(a), of_a, self._operand(b), of_b
                rows.append((self._slot(target), *ends))
        except BeagleError:
            self._operands, self._free = before, were_free
            raise
        slots, a, of_a, b, of_b = np.array(rows).T
        if pre_order:  # what is above and beside a node, then along its edge
            beside = prog.newview(self._products, a, engine.n_matrices - 1, b, of_b)
            along = prog.propagate(slots, self._products, of_a)
            program = np.stack([beside, along], axis=1).reshape(-1, beside.shape[1])
        else:
            program = prog.newview(slots, a, of_a, b, of_b)
        if not self._ignores_scales:
            self._note_scales(operations, cumulative)
        self._program = program

    def _note_scales(self, operations: list[list[int]], cumulative: Sequence[int]) -> None:
        """What operations take out of their CLAs."""
        removed, steps, first = self._removed, self._steps, self._n_buffers
        for (target, write, read, a, _, b, _), total in zip(operations, cumulative, strict=True):
            is_removed = not removed.isdisjoint((a, b))
            if is_removed or target in removed:
                below_a, below_b = (row if row in removed else NONE for row in (a, b))
                steps.append((Step.ADD, target, below_a, below_b))
            removed.discard(target)
            below = target if is_removed else NONE
            if write != NONE:
                steps.append((Step.LARGEST, first + write, self._operands[target], below))
                steps.append((Step.ADD, target, below, first + write))
                if total != NONE:
                    steps.append((Step.ADD, first + total, first + total, first + write))
            elif read != NONE:
                steps.append((Step.ADD, target, below, first + read))
            if is_removed or write != NONE or read != NONE:
                removed.add(target)

    # --- scale buffers --------------------------------------------------------------------------------------

    def add_scales(self, kind: int, scales: Sequence[int], total: int) -> None:
        """Add scale buffers to another one, or subtract them from it."""
        to = self._n_buffers + total
        self._steps.extend((kind, to, to, self._n_buffers + scale) for scale in scales)

    def copy_scales(self, to: int, source: int) -> None:
        """Make a scale buffer a copy of another one, or 0."""
        self._steps.append((Step.ADD, self._n_buffers + to, NONE if source == NONE else self._n_buffers + source, NONE))

    def read_scales(self, scale: int) -> FloatArray:
        """(n,) a scale buffer; waits."""
        return self._send().read_logs(self._n_buffers + scale)

    def _send(self) -> AnyBuffers:
        program, steps = self._program, self._steps
        self._program, self._steps = NO_PROGRAM, []
        if len(program) or steps:
            self._engine.make(program, np.array(steps, dtype=np.int32) if steps else None)
        return self._engine

    # --- sums -----------------------------------------------------------------------------------------------

    def ask(self, rows: list[list[int]], orders: list[list[int]], masses: FloatArray) -> Pending:
        """Weighted sums of the log-likelihood of sets of buffers, less what has been taken out, and derivatives.

        `rows` are a buffer at the root, or the ends of an edge, and a scale buffer; `orders` the matrices of each order
        of derivatives. The values of patterns are then the engine's `read_sites`.
        """
        queries, propagates = [], [self._program]
        for number, (upper, *lower, scale) in enumerate(rows):
            less = [row if row in self._removed else NONE for row in (upper, *lower, NONE)[:2]]
            plus = NONE if scale == NONE or self._ignores_scales else self._n_buffers + scale
            if lower:
                slots = [self._products + (number + k) % EDGES_AT_ONCE for k in range(len(orders))]
                propagates.append(prog.propagate(slots, self._operand(lower[0]), [own[number] for own in orders]))
                ends = slots[0], slots[0] + 1
            else:
                ends = ONES, NONE
            queries.append([self._operand(upper), *ends, *less, plus])
        self._program = np.concatenate(propagates)
        return self._send().add_sites(np.array(queries, dtype=np.int32), masses, max(len(orders), 1))

    def add_ratios(
        self, ends: list[tuple[int, int]], matrices: Sequence[int], masses: FloatArray, wants_sites: bool
    ) -> None:
        """Ask for sums across edges with matrices in them, over the sums without; see `NumpyBuffers.take_ratios`."""
        queries = self.queries(ends)
        queries[:, 2] = self._products + np.arange(len(ends)) % EDGES_AT_ONCE
        for own in slices(len(ends), EDGES_AT_ONCE):
            self.engine.make(prog.propagate(queries[own, 2], queries[own, 1], matrices[own]))
            self.engine.add_ratios(queries[own], masses[own], own.start, len(ends), wants_sites)

    def queries(self, ends: list[tuple[int, int]]) -> IntArray:
        """Queries of the ends of edges, without matrices and rows of logarithms."""
        rows = [(self._operand(upper), self._operand(lower), *[NONE] * 4) for upper, lower in ends]
        return np.array(rows, dtype=np.int32).reshape(-1, 6)
