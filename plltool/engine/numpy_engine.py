"""The numpy engine: the same blocked layout and programs as the OpenCL engine, in readable form.

It is the fallback where no OpenCL device is found, and the twin that kernels are tested against. CLAs are
(slot, block, component, state, lane), scaling counts (slot, block, component, lane), and tips are expanded to
(taxon, block, 1, state, lane).
"""

import platform
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.engine.base import Engine, EngineData
from plltool.engine.branch_tables import Spectra
from plltool.engine.contract import InstructionWord, Opcode, SpanWord, TrackWord
from plltool.engine.layout import Layout
from plltool.engine.program import Request
from plltool.engine.requests import Answer, Parts
from plltool.engine.storage import Storage

IMPOSSIBLE = -(1 << 30)  # a scaling count below any other
SMALL_GAP = 1e-3  # of exponents, whose divided difference keeps 13 digits above it, and by two terms of a series below


class NumpyEngine(Engine):
    """The numpy engine: tiles are single blocks, and a program runs on all `_blocks` of a run at the same time."""

    name = "numpy"

    def __init__(self, layout: Layout, storage: Storage, data: EngineData):
        super().__init__(layout, storage, data)
        self.device_name, self.driver = f"numpy on {platform.machine()}", f"numpy {np.__version__}"
        self._hold_clas()
        by_block = self._codes.transpose(1, 0, 2, 3).reshape(layout.n_taxa, layout.n_blocks, layout.vw)
        expanded = self._state_sets[by_block].swapaxes(-1, -2)
        self._tips = np.ascontiguousarray(expanded)[:, :, None]
        self._send_weights(layout.pad_weights(self.weights))
        for array in (self._tips, self._weights):
            self.counters.hold(array.nbytes)
        self._enter_run(self.storage.runs[0])

    def _hold_clas(self) -> None:
        layout, held = self.layout, sum(self.storage.buffer_tiles)
        shape = (self.n_slots, held, layout.n_components)
        self._all_clas = np.ones((*shape, layout.n_states, layout.vw), dtype=layout.real)
        self._all_scales = np.zeros((*shape, layout.vw), dtype=np.int32)
        self.counters.hold(self._all_clas.nbytes + self._all_scales.nbytes)

    def _release_clas(self) -> None:
        self.counters.hold(-self._all_clas.nbytes - self._all_scales.nbytes)
        self._all_clas, self._all_scales = self._all_clas[:0].copy(), self._all_scales[:0].copy()
        self._clas, self._scales = self._all_clas, self._all_scales

    def _close(self) -> None:
        """There is no device, and arrays go when the engine goes."""

    def _send_weights(self, padded: FloatArray) -> None:
        self._weights = padded.reshape(self.layout.n_blocks, self.layout.vw)

    def _enter_run(self, run: IntArray) -> None:
        """Let programs work on the blocks of one run."""
        if len(self._all_clas) < self.n_slots:  # released
            self._hold_clas()
        n_blocks = int(run[:, SpanWord.N_TILES].sum())  # a tile is one block
        self._blocks: slice | IndexArray = slice(None)  # views are faster than copies
        if not self.resident:
            spans = run[:, [SpanWord.FIRST_TILE, SpanWord.N_TILES]].tolist()
            self._blocks = np.concatenate([np.arange(first, first + n) for first, n in spans])
        self._block_part = self.layout.block_part[self._blocks]
        self._clas, self._scales = self._all_clas[:, :n_blocks], self._all_scales[:, :n_blocks]
        self._no_scale = np.zeros((n_blocks, self.layout.n_components, self.layout.vw), dtype=np.int32)

    def set_model(self, parts: Parts) -> None:
        self._check_parts(parts)
        self._parts = parts
        self._use_model(parts)

    def _use_model(self, parts: Parts) -> None:
        self._spectra = Spectra.of(parts)
        self._eigenvalues, self._right, self._left = self._spectra.eigenvalues, self._spectra.right, self._spectra.left
        self._mass = np.stack([part.masses() for part in parts])  # part, C, S
        self._has_still = bool((self._eigenvalues[:, :, 0] == 0).any())

    def _branch_tables(self, lengths: FloatArray, wanted: Collection[str]) -> None:
        """Make P matrices of every branch and part, and the other tables asked for."""
        self._tables_made = self._spectra.tables(lengths, wanted, self.layout.real)

    def _ask(self, request: Request, lengths: FloatArray) -> Answer:
        """Nothing runs before the answer is fetched, so that devices which have been asked work in the meantime."""
        return partial(self._site_values if request.of_sites else self._execute, request, lengths)

    def pack_models(self, models: Sequence[Parts]) -> list[Parts]:
        return list(models)

    def _execute(self, request: Request, lengths: FloatArray) -> FloatArray:
        self._branch_tables(lengths, self._tables(request.program))
        values = np.zeros((self.layout.n_parts, request.n_values))
        for run in self.storage.runs:
            self._enter_run(run)
            for result, per_lane in self._take_through(request.program):
                if not np.isfinite(per_lane).all():
                    lanes = np.arange(self.layout.n_lanes).reshape(-1, self.layout.vw)[self._blocks]
                    bad = lanes[~np.isfinite(per_lane.sum(axis=0))]
                    self._check_finite(per_lane, int(bad.min()), result)
                sums = np.einsum("kbv,bv->bk", per_lane, self._weights[self._blocks])
                np.add.at(values[:, result : result + sums.shape[1]], self._block_part, sums)
        return values

    def _ask_tracks(self, request: Request, lengths: FloatArray, models: Sequence[Parts], tracks: IntArray) -> Answer:
        """Tracks run one after another in the same slots, when the answer is fetched."""

        def answer() -> FloatArray:
            values = np.zeros((self.n_parts, request.n_values))
            places = np.split(np.arange(request.n_values), tracks[1:, TrackWord.VALUE_SHIFT])
            try:
                for (begin, end, _, pset, _), model, place in zip(tracks.tolist(), models, places, strict=True):
                    self._use_model(model)
                    own = replace(request, program=request.program[begin:end], n_values=len(place))
                    values[:, place] = self._execute(own, lengths[pset : pset + self.n_parts])
            finally:
                self._use_model(self._parts)
            return values

        return answer

    def _take_through(self, program: IntArray) -> Iterator[tuple[int, FloatArray]]:
        """Run a program on the blocks of the present run; yields (result, values (k, block, lane))."""
        self.counters.launches += 1
        self._block_mass = self._mass[self._block_part][..., None]  # weight of the component times frequency
        handlers = {
            Opcode.EVALUATE: self._evaluate,
            Opcode.DERIVATIVE: self._derivative,
            Opcode.INSERT: self._insert,
            Opcode.TRIPLET: self._triplet,
            Opcode.MASS_GRADIENT: self._mass_gradient,
        }
        gradients: dict[int, FloatArray] = {}  # sums over branches, pattern by pattern, so that runs change no bit
        for row in program.tolist():
            opcode, result = row[InstructionWord.OPCODE], row[InstructionWord.RESULT]
            if opcode in (Opcode.NEWVIEW, Opcode.PROPAGATE):
                self._make_cla(row)
            elif opcode == Opcode.RATE_MATRIX_GRADIENT:
                gradients[result] = gradients.get(result, 0.0) + self._rate_matrix_gradient(row)
            else:
                yield result, handlers[opcode](row)
        yield from gradients.items()

    def _site_values(self, request: Request, lengths: FloatArray) -> FloatArray:
        self._branch_tables(lengths, self._tables(request.program))
        values = np.empty((request.n_values, self.layout.n_blocks, self.layout.vw))
        for run in self.storage.runs:
            self._enter_run(run)
            for result, per_lane in self._take_through(request.program):
                values[result, self._blocks] = per_lane[0]
        return values.reshape(request.n_values, -1)[:, self.layout.lane_of_pattern]

    def _operand(self, index: int) -> tuple[FloatArray, IntArray]:
        """CLA (block, C or 1, S, lane) and scaling counts (block, C, lane) of a slot or a tip."""
        if index < 0:
            return self._tips[~index][self._blocks], self._no_scale
        return self._clas[index], self._scales[index]

    def _times(self, order: int, branch: int, x: FloatArray) -> FloatArray:
        """P x for every block, with the matrices of the block's part; by `order` also P' x or P'' x."""
        table = self._tables_made["slopes"][:, :, order - 1] if order else self._tables_made["matrices"]
        return self._of_blocks(table[:, branch]) @ x

    def _of_blocks(self, table: FloatArray) -> FloatArray:
        """What blocks take of a table (part, ...), each with its part; without that axis if there is one part."""
        return table[0] if len(table) == 1 else table[self._block_part]

    def _table_on(self, name: str, branch: int) -> FloatArray:
        """A table of a branch: decays (block, C, 3, S), or divided_differences (block, table, C, S, S)."""
        return self._tables_made[name][self._block_part, branch]

    def _make_cla(self, row: list[int]) -> None:
        opcode, slot, a, pa, b, pb = row[: InstructionWord.C]
        x, scale = self._operand(a)
        z = self._times(0, pa, x)
        if opcode == Opcode.NEWVIEW:
            y, scale_b = self._operand(b)
            z = z * self._times(0, pb, y)
            z, exponent = self._rescale(z)
            scale = scale + scale_b + exponent
        self._clas[slot] = z
        self._scales[slot] = scale

    def _rescale(self, z: FloatArray) -> tuple[FloatArray, IntArray]:
        """Bring components below the threshold back to order 1, lane by lane, each by another power of two."""
        threshold = 2.0**-self.layout.scale_bits
        if z.min() >= threshold:
            return z, self._no_scale
        maximum = z.max(axis=2)
        small = (maximum < threshold) & (maximum > 0)
        exponent = np.where(small, np.frexp(maximum)[1], 0).astype(np.int32)
        if small.any():
            z = np.ldexp(z, -exponent[:, :, None, :])
        return z, exponent

    def _log(self, likelihood: npt.NDArray[np.floating], scale: npt.ArrayLike) -> FloatArray:
        values = likelihood.astype(np.float64)
        if values.min() > 0 and values.max() < np.inf:
            logs: FloatArray = np.log(values)
        else:
            logs = np.log(values, where=np.isfinite(values) & (values > 0), out=np.full(values.shape, np.nan))
        return logs + np.asarray(scale) * np.log(2.0)

    def _aligned(self, *indices: int) -> tuple[list[FloatArray], IntArray]:
        """Operands at one scale for all components of a pattern, and that scale (block, lane).

        The first operand takes the factors. A component that is too small beside the largest one becomes 0. One of
        rate 0, whose likelihoods are 0 or 1 and never scaled, is impossible where the operands have no state in common;
        its count is then left out.
        """
        operands = [self._operand(index) for index in indices]
        counts = np.asarray(sum(scale for _, scale in operands))
        if self._has_still:
            still = self._eigenvalues[self._block_part][:, :, 0] == 0
            columns = np.flatnonzero(still.any(axis=0))
            shape = (*counts.shape[:2], self.layout.n_states, self.layout.vw)
            shared = np.prod([np.broadcast_to(x, shape)[:, columns] for x, _ in operands], axis=0)
            impossible = still[:, columns, None] & np.all(shared == 0, axis=2)
            counts[:, columns] = np.where(impossible, IMPOSSIBLE, counts[:, columns])
        first, *others = (x for x, _ in operands)
        if not counts.any():
            return [first.astype(np.float64, copy=False), *others], counts[:, 0]
        largest = np.max(counts, axis=1)
        factor = np.ldexp(1.0, np.maximum(counts - largest[:, None], -1023))
        return [first * factor[:, :, None, :], *others], largest

    def _evaluate(self, row: list[int]) -> FloatArray:
        (x, y), scale = self._aligned(row[InstructionWord.A], row[InstructionWord.B])
        product = x * self._times(0, row[InstructionWord.PB], y)
        return self._log(_sum_states(self._block_mass * product), scale)[None]

    def _derivative(self, row: list[int]) -> FloatArray:
        (x, y), scale = self._aligned(row[InstructionWord.A], row[InstructionWord.B])
        mass = self._block_mass
        if not self.layout.reversible:
            orders = [_sum_states(mass * x * self._times(order, row[InstructionWord.PB], y)) for order in range(3)]
            return self._derivatives(row, scale, *orders)
        right, left = self._of_blocks(self._right), self._of_blocks(self._left)
        s = (right.swapaxes(-1, -2) @ (mass * x)) * (left @ y)  # block, C, k, lane
        sums = np.einsum("bcdk,bckv->dbv", self._table_on("decays", row[InstructionWord.PB]), s)
        return self._derivatives(row, scale, _sum_states(mass * (x * y)) + sums[0], *sums[1:])

    def _derivatives(self, row: list[int], scale: IntArray, *orders: FloatArray) -> FloatArray:
        """The values of a DERIVATIVE from the likelihood and its first two derivatives."""
        likelihood, d1 = orders[0], orders[1] / orders[0]
        lnl = np.zeros_like(d1) if row[InstructionWord.C] else self._log(likelihood, scale)
        return np.stack([lnl, d1, orders[2] / likelihood - d1 * d1])

    def _rate_matrix_gradient(self, row: list[int]) -> FloatArray:
        (x, y), _ = self._aligned(row[InstructionWord.A], row[InstructionWord.B])
        sa = self._of_blocks(self._right).swapaxes(-1, -2) @ (self._block_mass * x)
        sb = self._of_blocks(self._left) @ y
        likelihood = _sum_states(self._block_mass * x * self._times(0, row[InstructionWord.PB], y))
        differences = self._table_on("divided_differences", row[InstructionWord.PB])
        terms = np.einsum("bckv,bclv,bqckl->qcklbv", sa / likelihood[:, None, None], sb, differences)
        return terms.reshape(-1, *likelihood.shape)

    def _mass_gradient(self, row: list[int]) -> FloatArray:
        (x, y), _ = self._aligned(row[InstructionWord.A], row[InstructionWord.B])
        terms = self._block_mass * x * self._times(0, row[InstructionWord.PB], y)  # block, C, S, lane
        shares = terms / _sum_states(terms)[:, None, None]
        return shares.transpose(1, 2, 0, 3).reshape(-1, *shares.shape[::3])

    def _insert(self, row: list[int]) -> FloatArray:
        (x, y, z), scale = self._aligned(row[InstructionWord.A], row[InstructionWord.B], row[InstructionWord.C])
        product = z * self._times(0, row[InstructionWord.PA], x) * self._times(0, row[InstructionWord.PB], y)
        return self._log(_sum_states(self._block_mass * product), scale)[None]

    def _triplet(self, row: list[int]) -> FloatArray:
        operands, scale = self._aligned(row[InstructionWord.A], row[InstructionWord.B], row[InstructionWord.C])
        orders = []  # for each operand: P x, P' x, P'' x
        for x, branch in zip(operands, row[InstructionWord.PA :: 2], strict=True):
            orders.append([self._times(order, branch, x) for order in range(3)])
        mass = self._block_mass

        of_first = [mass * order for order in orders[0]]

        @cache
        def of_two(i: int, j: int) -> FloatArray:
            return of_first[i] * orders[1][j]

        def total(i: int, j: int, k: int) -> FloatArray:
            return _sum_states(of_two(i, j) * orders[2][k])

        likelihood = total(0, 0, 0)
        g = [total(*order) / likelihood for order in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
        pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # of the three lengths
        curves = [total(*((a == k) + (b == k) for k in range(3))) / likelihood - g[a] * g[b] for a, b in pairs]
        return np.stack([self._log(likelihood, scale), *g, *curves])


class EigenbasisEngine(NumpyEngine):
    """The same for many parts of few patterns (+SSF), whose P matrices for all branches would fill the memory.

    The components of a part have one eigensystem, ``Q = R diag(l) L``, and a block has one lane. Products are made in
    the eigenbasis, ``P x = x + R (exp(l r t) - 1) L x``, where a branch is read; no table outlives an instruction.
    """

    def _use_model(self, parts: Parts) -> None:
        super()._use_model(parts)
        self._right, self._left = self._right[:, :1].copy(), self._left[:, :1].copy()
        del self._spectra  # which has those of all components

    def _branch_tables(self, lengths: FloatArray, wanted: Collection[str]) -> None:
        self._lengths = np.abs(lengths)

    def _on(self, branch: int) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues times rates (block, C, S), and lengths (block, 1, 1)."""
        return self._eigenvalues[self._block_part], self._lengths[self._block_part, branch, None, None]

    def _times(self, order: int, branch: int, x: FloatArray) -> FloatArray:
        rates, t = self._on(branch)
        factors = rates**order * np.exp(rates * t) if order else np.expm1(rates * t)
        columns = self._left[self._block_part, 0] @ x[..., 0].swapaxes(1, 2)  # block, k, C
        change = self._right[self._block_part, 0] @ (factors.swapaxes(1, 2) * columns)
        product = change.swapaxes(1, 2)[..., None]
        return product if order else np.maximum(x + product, 0.0)

    def _table_on(self, name: str, branch: int) -> FloatArray:
        """The same with few exponentials: differences where (x - y) t is small are a series in its square."""
        rates, t = self._on(branch)
        if name == "decays":
            decay = np.exp(rates * t)
            return np.stack([np.expm1(rates * t), rates * decay, rates**2 * decay], axis=2)
        half = np.exp(rates * t / 2)
        decay, t = half * half, t[..., None]
        gap = rates[..., :, None] - rates[..., None, :]
        close = np.abs(gap * t) < SMALL_GAP
        series = t * half[..., :, None] * half[..., None, :] * (1 + (gap * t) ** 2 / 24)
        return np.where(close, series, (decay[..., :, None] - decay[..., None, :]) / np.where(close, 1.0, gap))[:, None]


def _sum_states(values: FloatArray) -> FloatArray:
    """Sum over components and states: (block, C, S, lane) to (block, lane), in double."""
    return np.asarray(np.add.reduce(values, axis=(1, 2), dtype=np.float64))
