"""The numpy engine: the same blocked layout and programs as the OpenCL engine, in readable form.

It is the fallback where no OpenCL device is found, and the twin that kernels are tested against. CLAs are float64
(slot, block, component, state, lane), scaling counts (slot, block, component, lane), tips are expanded to
(taxon, block, 1, state, lane).
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from plltool.engine import program as prog
from plltool.engine.base import Engine, FloatArray, IntArray, Parts, Tables
from plltool.engine.layout import Layout
from plltool.engine.program import Request

IMPOSSIBLE = -(1 << 30)  # a scaling count below any other


class NumpyEngine(Engine):
    """See :class:`plltool.engine.base.Engine`; the layout's tiles are single blocks.

    Programs run on all blocks of a run of the storage at once; `_blocks` says which those are.
    """

    name = "numpy"

    def __init__(
        self,
        layout: Layout,
        n_slots: int,
        codes: npt.NDArray[np.integer],
        weights: FloatArray,
        state_sets: npt.ArrayLike | None = None,
        memory: int | None = None,
    ):
        super().__init__(layout, n_slots, codes, weights, state_sets, memory)
        self._hold_clas()
        by_block = self._codes.transpose(1, 0, 2, 3).reshape(layout.n_taxa, layout.n_blocks, layout.vw)
        expanded = self._state_sets.astype(layout.real)[by_block].swapaxes(-1, -2)
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
        self._rests = False

    def rest(self) -> None:
        self.counters.hold(-self._all_clas.nbytes - self._all_scales.nbytes)
        self._all_clas, self._all_scales = self._all_clas[:0].copy(), self._all_scales[:0].copy()
        self._clas, self._scales = self._all_clas, self._all_scales
        self._rests = True

    def _send_weights(self, padded: FloatArray) -> None:
        self._weights = padded.reshape(-1, self.layout.n_blocks, self.layout.vw)

    def _enter_run(self, run: IntArray) -> None:
        """Let programs work on the blocks of one run."""
        if self._rests:
            self._hold_clas()
        n_blocks = int(run[:, 2].sum())
        self._blocks: slice | npt.NDArray[np.intp] = slice(None)  # views are faster than copies
        if not self.resident:
            self._blocks = np.concatenate([np.arange(first, first + n) for first, n in run[:, 1:3].tolist()])
        self._block_part = self.layout.block_part[self._blocks]
        self._clas, self._scales = self._all_clas[:, :n_blocks], self._all_scales[:, :n_blocks]
        self._no_scale = np.zeros((n_blocks, self.layout.n_components, self.layout.vw), dtype=np.int32)

    @property
    def device_name(self) -> str:
        return f"numpy on {platform.machine()}"

    @property
    def driver(self) -> str:
        return f"numpy {np.__version__}"

    def set_model(self, parts: Parts) -> None:
        self._check_parts(parts)
        self._parts = parts
        self._eigenvalues = np.stack([part.eigenvalues * part.rates[:, None] for part in parts])
        self._right = np.stack([part.right for part in parts])
        self._left = np.stack([part.left for part in parts])
        self._mass = np.stack([part.masses() for part in parts])  # part, C, S

    def _branch_tables(self, lengths: FloatArray, tables: Tables) -> None:
        """P matrices, their slopes, decays and responses of every branch, per part: twin of `pmatrices.cl`."""
        rates = self._eigenvalues[:, None]  # part, branch, C, S
        grow = np.expm1(rates * lengths[:, :, None, None])
        slope = rates * (grow + 1.0)
        curve = rates * slope
        right, left = self._right[:, None], self._left[:, None]

        def combine(diagonal: FloatArray) -> FloatArray:
            return (right * diagonal[..., None, :]) @ left

        real = self.layout.real
        self._matrices = np.maximum(combine(grow) + np.eye(self.layout.n_states), 0.0).astype(real)
        self._decays = np.stack([grow, slope, curve], axis=3).astype(real)  # part, branch, C, 3, S
        if tables.slopes:
            self._slopes = np.stack([combine(slope), combine(curve)], axis=2).astype(real)  # part, branch, 2, C, S, S

        if tables.responses:
            t = lengths[:, :, None, None, None]
            gap = np.abs(rates[..., :, None] - rates[..., None, :]) * t
            ratio = np.where(gap == 0, 1.0, -np.expm1(-gap) / np.where(gap == 0, 1.0, gap))
            response = t * (np.maximum(grow[..., :, None], grow[..., None, :]) + 1.0) * ratio
            self._responses = response.astype(real)  # part, branch, C, k, l

    def _execute(self, request: Request, lengths: FloatArray, tables: Tables) -> FloatArray:
        self._branch_tables(lengths, tables)
        values = np.zeros((self.layout.n_parts, request.n_values))
        for run in self.storage.runs:
            self._enter_run(run)
            for opcode, result, per_lane in self._take_through(request.program):
                if not np.all(np.isfinite(per_lane)):
                    self._check_finite(per_lane, self._find_lane(per_lane), result)
                sets = request.sets if opcode == prog.EVALUATE else request.sets[:1]
                weights = self._weights[sets][:, self._blocks]
                sums = np.einsum("kbv,sbv->bks", per_lane, weights).reshape(len(self._block_part), -1)
                np.add.at(values[:, result : result + sums.shape[1]], self._block_part, sums)
        return values

    def _likelihoods(self, program: IntArray, lengths: FloatArray, models: Sequence[Parts]) -> FloatArray:
        own = self._parts
        values = np.empty((len(models), self.n_parts))
        try:
            for model, at, value in zip(models, lengths, values, strict=True):
                self.set_model(model)
                value[:] = self._execute(Request(program, 1), at, Tables())[:, 0]
        finally:
            self.set_model(own)
        return values

    def _take_through(self, program: IntArray) -> Iterator[tuple[int, int, FloatArray]]:
        """Run a program on the blocks of the present run; yields (opcode, result, values (k, block, lane))."""
        self.counters.launches += 1
        handlers = {
            prog.EVALUATE: self._evaluate,
            prog.DERIVATIVE: self._derivative,
            prog.INSERT: self._insert,
            prog.TRIPLET: self._triplet,
            prog.ROOT: self._root,
        }
        gradients: dict[int, FloatArray] = {}  # sums over branches, pattern by pattern, so that runs change no bit
        for row in program:
            opcode, result = int(row[0]), int(row[1])
            if opcode in (prog.NEWVIEW, prog.PROPAGATE):
                self._make_cla(row)
            elif opcode == prog.GRADIENT:
                gradients[result] = gradients.get(result, 0.0) + self._gradient(row)
            else:
                yield opcode, result, handlers[opcode](row)
        for result, gradient in gradients.items():
            yield prog.GRADIENT, result, gradient

    def _site_values(self, request: Request, lengths: FloatArray) -> FloatArray:
        self._branch_tables(lengths, Tables())
        values = np.empty((request.n_values, self.layout.n_blocks, self.layout.vw))
        for run in self.storage.runs:
            self._enter_run(run)
            for _, result, per_lane in self._take_through(request.program):
                values[result, self._blocks] = per_lane[0]
        return values.reshape(request.n_values, -1)[:, self.layout.lane_of_pattern]

    def _find_lane(self, per_lane: FloatArray) -> int:
        """The first lane of the present run, counted among all, with a value (k, block, lane) that is not finite."""
        lanes = np.arange(self.layout.n_lanes).reshape(-1, self.layout.vw)[self._blocks]
        return int(lanes[~np.isfinite(per_lane.sum(axis=0))].min())

    def _operand(self, index: int) -> tuple[FloatArray, IntArray]:
        """CLA (block, C or 1, S, lane) and scaling counts (block, C, lane) of a slot or a tip."""
        if index < 0:
            return self._tips[~index][self._blocks], self._no_scale
        return self._clas[index], self._scales[index]

    def _times(self, table: FloatArray, branch: int, x: FloatArray) -> FloatArray:
        """P x for every block, with the matrices of the block's part."""
        return table[self._block_part, branch] @ x

    def _make_cla(self, row: IntArray) -> None:
        opcode, slot, a, pa, b, pb = (int(word) for word in row[:6])
        x, scale = self._operand(a)
        z = self._times(self._matrices, pa, x)
        if opcode == prog.NEWVIEW:
            y, scale_b = self._operand(b)
            z = z * self._times(self._matrices, pb, y)
            z, exponent = self._rescale(z)
            scale = scale + scale_b + exponent
        self._clas[slot] = z
        self._scales[slot] = scale

    def _rescale(self, z: FloatArray) -> tuple[FloatArray, IntArray]:
        """Bring components, lane by lane, that fell below the threshold back to order 1 by their own power of two."""
        maximum = z.max(axis=2)
        small = (maximum < 2.0**-self.layout.scale_bits) & (maximum > 0)
        exponent = np.where(small, np.frexp(maximum)[1], 0).astype(np.int32)
        if small.any():
            z = np.ldexp(z, -exponent[:, :, None, :])
        return z, exponent

    def _log(self, likelihood: npt.NDArray[np.floating], scale: npt.ArrayLike) -> FloatArray:
        good = np.isfinite(likelihood) & (likelihood > 0)
        logs = np.log(likelihood.astype(np.float64), where=good, out=np.full(likelihood.shape, np.nan))
        return logs + np.asarray(scale) * np.log(2.0)

    @property
    def _block_mass(self) -> FloatArray:
        """Component weight times frequency, (block, C, S, 1)."""
        return self._mass[self._block_part][..., None]

    def _aligned(self, *indices: int) -> tuple[list[FloatArray], IntArray]:
        """Operands at one scale for all components of a pattern, and that scale (block, lane).

        The first operand takes the factors; a component too small beside the largest one becomes 0. One of rate 0,
        whose likelihoods are 0 or 1 and never scaled, is impossible where the operands have no state in common; its
        count must not be taken for the largest.
        """
        operands = [self._operand(int(index)) for index in indices]
        counts = np.asarray(sum(scale for _, scale in operands))
        still = self._eigenvalues[self._block_part][:, :, 0] == 0
        if still.any():
            columns = np.flatnonzero(still.any(axis=0))
            shape = (*counts.shape[:2], self.layout.n_states, self.layout.vw)
            shared = np.prod([np.broadcast_to(x, shape)[:, columns] for x, _ in operands], axis=0)
            impossible = still[:, columns, None] & np.all(shared == 0, axis=2)
            counts[:, columns] = np.where(impossible, IMPOSSIBLE, counts[:, columns])
        largest = np.max(counts, axis=1)
        factor = np.ldexp(1.0, np.maximum(counts - largest[:, None], -1023))
        first = operands[0][0] * factor[:, :, None, :]
        return [first, *(x for x, _ in operands[1:])], largest

    def _evaluate(self, row: IntArray) -> FloatArray:
        (x, y), scale = self._aligned(row[2], row[4])
        product = x * self._times(self._matrices, row[5], y)
        return self._log(_sum_states(self._block_mass * product), scale)[None]

    def _derivative(self, row: IntArray) -> FloatArray:
        (x, y), scale = self._aligned(row[2], row[4])
        part = self._block_part
        mass = self._block_mass
        s = (self._right[part].swapaxes(-1, -2) @ (mass * x)) * (self._left[part] @ y)  # block, C, k, lane
        decays = self._decays[part, row[5]]  # block, C, 3, k
        sums = np.einsum("bcdk,bckv->dbv", decays, s)
        likelihood = _sum_states(mass * (x * y)) + sums[0]
        d1 = sums[1] / likelihood
        return np.stack([self._log(likelihood, scale), d1, sums[2] / likelihood - d1 * d1])

    def _gradient(self, row: IntArray) -> FloatArray:
        (x, y), _ = self._aligned(row[2], row[4])
        part = self._block_part
        sa = self._right[part].swapaxes(-1, -2) @ (self._block_mass * x)
        sb = self._left[part] @ y
        likelihood = _sum_states(self._block_mass * x * self._times(self._matrices, row[5], y))
        terms = np.einsum("bckv,bclv,bckl->cklbv", sa / likelihood[:, None, None], sb, self._responses[part, row[5]])
        return terms.reshape(-1, *likelihood.shape)

    def _root(self, row: IntArray) -> FloatArray:
        (x, y), _ = self._aligned(row[2], row[4])
        terms = self._block_mass * x * self._times(self._matrices, row[5], y)  # block, C, S, lane
        shares = terms / _sum_states(terms)[:, None, None]
        return shares.transpose(1, 2, 0, 3).reshape(-1, *shares.shape[::3])

    def _insert(self, row: IntArray) -> FloatArray:
        (x, y, z), scale = self._aligned(row[2], row[4], row[6])
        product = z * self._times(self._matrices, row[3], x) * self._times(self._matrices, row[5], y)
        return self._log(_sum_states(self._block_mass * product), scale)[None]

    def _triplet(self, row: IntArray) -> FloatArray:
        operands, scale = self._aligned(row[2], row[4], row[6])
        orders = []  # for each operand: P x, P' x, P'' x
        for x, branch in zip(operands, row[[3, 5, 7]], strict=True):
            first, second = self._slopes[:, :, 0], self._slopes[:, :, 1]
            orders.append([self._times(table, branch, x) for table in (self._matrices, first, second)])
        mass = self._block_mass

        def total(i: int, j: int, k: int) -> FloatArray:
            return _sum_states(mass * orders[0][i] * orders[1][j] * orders[2][k])

        likelihood = total(0, 0, 0)
        g = [total(*order) / likelihood for order in ((1, 0, 0), (0, 1, 0), (0, 0, 1))]
        curves = [
            total(*order) / likelihood - g[a] * g[b]
            for order, a, b in (
                ((2, 0, 0), 0, 0),
                ((0, 2, 0), 1, 1),
                ((0, 0, 2), 2, 2),
                ((1, 1, 0), 0, 1),
                ((1, 0, 1), 0, 2),
                ((0, 1, 1), 1, 2),
            )
        ]
        return np.stack([self._log(likelihood, scale), *g, *curves])


def _sum_states(values: FloatArray) -> FloatArray:
    """Sum over components and states: (block, C, S, lane) to (block, lane), in double."""
    return np.asarray(np.sum(values, axis=(1, 2), dtype=np.float64))
