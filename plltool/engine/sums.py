"""In which order the partial sums of groups are added up to those of parts: a tree that the layout alone decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.engine.layout import Layout

IntArray = npt.NDArray[np.int32]

FAN_IN = 64  # rows that are added at a time: the groups of a CPU's part at once, those of a GPU in two or three levels


@dataclass(frozen=True, eq=False)
class SumTree:
    """Rows of partial sums: those of the groups, then those made of them, level by level.

    Attributes
    ----------
    n_groups : rows that are given
    made : int32 (n_made, 2), of each row that is made the first row and the one behind the last that it adds
    levels : the rows of `made` that may be made at the same time, one level after another; none if a part is a group
    """

    n_groups: int
    made: IntArray
    levels: tuple[range, ...]

    @property
    def n_rows(self) -> int:
        """All rows; the last ones are the parts."""
        return self.n_groups + len(self.made)


def plan_sums(layout: Layout) -> SumTree:
    """The tree for a layout: every level adds up to FAN_IN neighbours of a part, until each part is one row."""
    n_groups = len(layout.groups)
    bounds = np.append(layout.part_first_group, n_groups)  # where the rows of each part begin in the present level
    made: list[tuple[int, int]] = []
    levels = []
    start = 0  # of the present level among all rows
    while bounds[-1] > layout.n_parts:
        level = [
            (start + first, start + min(first + FAN_IN, end))
            for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
            for first in range(begin, end, FAN_IN)
        ]
        levels.append(range(len(made), len(made) + len(level)))
        made += level
        start += int(bounds[-1])
        bounds = np.append(0, np.cumsum(-(-np.diff(bounds) // FAN_IN)))
    return SumTree(n_groups, np.array(made, dtype=np.int32).reshape(-1, 2), tuple(levels))
