"""Transition matrices of an instance: from eigensystems, given, multiplied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray, IndexArray


@dataclass(frozen=True)
class EigenSystem:
    """Q = right @ B @ left: B is diagonal, but for [[a, b], [-b, a]] at neighbours with eigenvalues a +- bi."""

    values: FloatArray  # float64 (S,) real parts
    turns: FloatArray  # float64 (S,) imaginary parts
    partner: IndexArray  # (S,) the other place of each pair
    # right, left: float64 (S, S)
    right: FloatArray
    left: FloatArray

    @classmethod
    def of(cls, right: FloatArray, left: FloatArray, values: FloatArray) -> EigenSystem:
        """`values` (S,), or (2, S) with the imaginary parts; pairs are found from the front."""
        n = len(right)
        parts = np.zeros((2, n))
        parts[: values.size // n] = values.reshape(-1, n)
        partner, place = np.arange(n), 0
        while place < n - 1:
            if parts[1, place] != 0:
                partner[[place, place + 1]] = place + 1, place
                place += 1
            place += 1
        return cls(parts[0], parts[1], partner, right, left)

    def matrices(self, times: FloatArray, rates: FloatArray, order: int) -> FloatArray:
        """exp(Q t r), or its `order`-th derivative in t, for times t (n,) and rates r (C,): (n, C, S, S).

        Entries of exp(Q t r) that rounding makes negative are 0.
        """
        scaled = np.multiply.outer(times, rates)[..., None]
        size, angle = np.exp(self.values * scaled), self.turns * scaled
        diagonal, beside = size * np.cos(angle), size * np.sin(angle)
        a, b = self.values * rates[:, None], self.turns * rates[:, None]
        for _ in range(order):
            diagonal, beside = a * diagonal - b * beside, a * beside + b * diagonal
        product = (self.right * diagonal[..., None, :]) @ self.left
        if np.any(self.turns):
            product = product + (self.right * beside[..., None, :]) @ self.left[self.partner]
        return np.asarray(product if order else np.maximum(product, 0.0))
