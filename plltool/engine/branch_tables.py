"""P matrices and the other tables of branches, made on the host in double precision: twin of `kernels/pmatrices.cl`.

The numpy engine has no others. Devices without double precision get theirs from here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.engine.layout import Layout
from plltool.model.components import Components, combine, exponential


@dataclass(frozen=True, eq=False)
class Spectra:
    """The eigensystems of P sets, from which the tables of all branches follow."""

    eigenvalues: FloatArray  # pset, C, S; times the rates
    rotations: FloatArray | None  # the same of their imaginary parts; None if all are real
    right: FloatArray  # pset, C, S, S
    left: FloatArray  # likewise
    stationary: FloatArray  # pset, C, S

    @classmethod
    def of(cls, parts: Sequence[Components]) -> Self:
        """Those of models, which make a P set each."""
        rates = np.array([part.rates for part in parts])[..., None]
        eigenvalues = np.array([part.eigenvalues for part in parts]) * rates
        turning = [part.rotations for part in parts if part.rotations is not None]
        vectors = (np.array([getattr(part, name) for part in parts]) for name in ("right", "left", "frequencies"))
        return cls(eigenvalues, np.array(turning) * rates if turning else None, *vectors)

    def at_rates(self, rates: FloatArray) -> Spectra:
        """Components of these rates (C,), from one component of rate 1."""
        values, turns = (None if part is None else part * rates[:, None] for part in (self.eigenvalues, self.rotations))
        vectors = (np.repeat(own, len(rates), axis=1) for own in (self.right, self.left, self.stationary))
        assert values is not None
        return Spectra(values, turns, *vectors)

    def pack(self) -> FloatArray:
        """The array `eigen` of the contract."""
        flat = (*self.left.shape[:2], -1)
        rows = [self.eigenvalues, self.right.swapaxes(2, 3).reshape(flat), self.left.reshape(flat)]
        return np.concatenate(rows if self.rotations is None else [*rows, self.rotations], axis=2)

    @classmethod
    def unpack(cls, eigen: FloatArray, n_states: int) -> Self:
        """From the array `eigen` of the contract."""
        shape = (*eigen.shape[:2], n_states, n_states)
        cuts = np.cumsum([n_states, n_states**2, n_states**2])
        eigenvalues, right, left, rotations = np.split(eigen, cuts, axis=2)
        left = left.reshape(shape)
        turns = rotations if rotations.size else None
        return cls(eigenvalues, turns, right.reshape(shape).swapaxes(2, 3), left, left[:, :, -1])

    def tables(
        self, lengths: FloatArray, wanted: Collection[str], real: np.dtype[np.floating]
    ) -> dict[str, npt.NDArray[Any]]:
        """P matrices and the `wanted` arrays of the contract, of the type `real`, at lengths (n_psets, n_branches).

        matrices are (pset, branch, C, S, S), decays (pset, branch, C, 3, S), slopes (pset, branch, 2, C, S, S), and
        divided_differences (pset, branch, table, C, k, l).
        """
        rates = self.eigenvalues[:, None]  # pset, branch, C, S
        turns = None if self.rotations is None else self.rotations[:, None]
        t = np.abs(lengths)[:, :, None, None]
        grow, turn = exponential(rates * t, None if turns is None else turns * t)
        slope, slope_turn = _times_eigenvalues(rates, turns, grow + 1.0, turn)
        curve, curve_turn = _times_eigenvalues(rates, turns, slope, slope_turn)

        def make(diagonal: FloatArray, beside: FloatArray | None) -> FloatArray:
            forward = combine(self.right[:, None], diagonal, beside, self.left[:, None])
            return forward if turns is None else self._in_time(forward, lengths)

        made = {"matrices": np.maximum(make(grow, turn) + np.eye(rates.shape[-1]), 0.0)}
        if "decays" in wanted:
            made["decays"] = np.stack([grow, slope, curve], axis=3)
        if "slopes" in wanted:
            made["slopes"] = np.stack([make(slope, slope_turn), make(curve, curve_turn)], axis=2)
        if "divided_differences" in wanted:
            if turns is None:
                differences = divided_differences(rates, rates, t[..., None])[..., None, :, :, :]
            else:
                differences = rotating_differences(rates + 1j * turns, t[..., None])
            made["divided_differences"] = np.asarray(differences)
        return {name: table.astype(real) for name, table in made.items()}

    def _in_time(self, forward: FloatArray, lengths: FloatArray) -> FloatArray:
        """P, or a slope, of every branch; for negative lengths of the process in reverse, P*_ij = pi_j P_ji / pi_i."""
        pi = self.stationary[:, None]
        reverse = forward.swapaxes(-1, -2) * pi[..., None, :] / pi[..., :, None]
        return np.where((lengths < 0)[:, :, None, None, None], reverse, forward)


def _times_eigenvalues(
    rates: FloatArray, turns: FloatArray | None, diagonal: FloatArray, beside: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """The product of two matrices in the form that `Components` describes, of which the first holds the eigenvalues."""
    if turns is None or beside is None:
        return rates * diagonal, None
    return rates * diagonal - turns * beside, rates * beside + turns * diagonal


def divided_differences(
    first: npt.NDArray[np.inexact], second: npt.NDArray[np.inexact], t: FloatArray
) -> npt.NDArray[np.inexact]:
    """(exp(x t) - exp(y t)) / (x - y), or t exp(x t) where x = y, of each pair x, y of eigenvalues: (..., S, S).

    It starts from the slower decay, so that nothing overflows.
    """
    x, y = first[..., :, None], second[..., None, :]
    slow, fast = np.where(x.real >= y.real, x, y), np.where(x.real >= y.real, y, x)
    gap = (fast - slow) * t
    ratio = np.where(gap == 0, 1.0, np.expm1(gap) / np.where(gap == 0, 1.0, gap))
    return np.asarray(t * (np.expm1(slow * t) + 1.0) * ratio)


def rotating_differences(values: npt.NDArray[np.complexfloating], t: FloatArray) -> FloatArray:
    """The four tables of a rate matrix whose eigenvalues may be complex, see `pmatrices.cl`: (..., 4, C, S, S)."""
    plain, mirrored = divided_differences(values, values, t), divided_differences(values, values.conj(), t)
    total, rest = (plain + mirrored) / 2, (plain - mirrored) / 2
    return np.stack([total.real, total.imag, -rest.imag, rest.real], axis=-4)


# --- as kernels read them ---------------------------------------------------------------------------------


def pack_tables(layout: Layout, matrices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Matrices (..., S, S) that multiply CLAs, as kernels read them (..., matrix_values); see `many_states.h`."""
    flat = (*matrices.shape[:-2], -1)
    if not layout.many_states:
        return matrices.reshape(flat)
    return np.concatenate([matrices.swapaxes(-1, -2).reshape(flat), matrices.sum(axis=-1)], axis=-1)


def pack_matrices(layout: Layout, matrices: npt.NDArray[np.floating]) -> npt.NDArray[Any]:
    """P matrices (..., C, S, S), with tables for tips, as kernels read them (..., branch_values); see `layout.h`."""
    shape = matrices.shape[:-3]
    packed = np.zeros((*shape, layout.branch_values), dtype=layout.real)
    packed[..., : layout.n_components * layout.matrix_values] = pack_tables(layout, matrices).reshape(*shape, -1)
    if layout.table_rows:
        tables = _tip_tables(layout, matrices.astype(layout.real))
        packed[..., -layout.n_components * layout.table_rows * layout.vw :] = tables.reshape(*shape, -1)
    return packed


def _tip_tables(layout: Layout, matrices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(..., n_components, table_rows, vw) the tables of sums for tips, see `kernels/layout.h`."""
    n_states, vw = layout.n_states, layout.vw
    if layout.table_rows > n_states:  # a vector for each set of states, a lane for each row
        members = (np.arange(layout.table_rows)[:, None] >> np.arange(n_states)) & 1
        rows = np.minimum(np.arange(vw), n_states - 1)
        return np.asarray(np.einsum("...ij,ej->...ei", matrices, members)[..., rows])
    n_in_table = 4 if vw == 16 and n_states >= 4 else min(n_states, 3)
    members = (np.arange(vw)[:, None] >> np.arange(n_in_table)) & 1
    tables = np.einsum("...ij,ej->...ie", matrices[..., :n_in_table], members)
    if n_in_table < n_states:
        tables[..., 0] += matrices[..., n_in_table]
    return np.asarray(tables)
