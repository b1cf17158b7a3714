"""Steps of branch lengths that interact: what the last rounds tell of the Hessian beyond its diagonal (Nocedal 1980).

Arrays have the shape of the lengths, (n_edges,) or (n_edges, n_parts). Sums over the first axis belong to a part.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import REMEMBERED_STEPS


class Coupling:
    """The last REMEMBERED_STEPS steps, and how they turned the slopes."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=REMEMBERED_STEPS)

    def learn(self, step: FloatArray, turn: FloatArray, is_near: BoolArray) -> None:
        """Remember that the slopes fell by `turn` over a `step`; only for parts that are near the maximum."""
        if np.any(is_near):
            self._pairs.append((np.where(is_near, step, 0.0), np.where(is_near, turn, 0.0)))

    def forget(self, parts: BoolArray) -> None:
        """Forget all steps of some parts (n_parts,) or ()."""
        kept = [(np.where(parts, 0.0, step), np.where(parts, 0.0, turn)) for step, turn in self._pairs]
        self._pairs = deque(kept, maxlen=REMEMBERED_STEPS)

    def couple(self, steps: FloatArray, slopes: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The steps that lengths take together, and for which parts (n_parts,) or () they are known and lead uphill.

        Parameters
        ----------
        steps : that each length would take alone; those with 0 stay
        slopes : first derivatives of lnL
        """
        moves = (steps != 0.0) & (slopes != 0.0)
        slopes = np.where(moves, slopes, 0.0)
        scale = np.where(moves, steps / np.where(moves, slopes, 1.0), 0.0)
        left, used = slopes, []
        for step, turn in reversed(self._pairs):
            step, turn = np.where(moves, step, 0.0), np.where(moves, turn, 0.0)
            curvature = (step * turn).sum(axis=0)
            is_concave = curvature > 0.0
            inverse = np.where(is_concave, 1.0 / np.where(is_concave, curvature, 1.0), 0.0)
            share = inverse * (step * left).sum(axis=0)
            left = left - share * turn
            used.append((step, turn, inverse, share))
        coupled = scale * left
        for step, turn, inverse, share in reversed(used):
            coupled = coupled + (share - inverse * (turn * coupled).sum(axis=0)) * step
        is_known = sum((inverse for _, _, inverse, _ in used), np.zeros(steps.shape[1:])) > 0.0
        return coupled, is_known & ((coupled * slopes).sum(axis=0) > 0.0)
