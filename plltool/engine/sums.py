"""The order in which partial sums of groups are added up to sums of parts: a tree that the layout alone decides."""

from dataclasses import dataclass

import numpy as np

from plltool.arrays import IntArray
from plltool.engine.layout import Layout

FAN_IN = 64  # rows added at a time: all groups of a part on a CPU at once, those on a GPU in two or three levels


@dataclass(frozen=True, eq=False)
class SumTree:
    """Rows of partial sums: first the groups', then the rows made of them, level by level."""

    n_groups: int  # rows that `traverse` makes
    made: IntArray  # int32 (n_made_rows, 2), for each made row the first row that it adds and the one after the last
    # rows of `made` that can be made at the same time, one level after another; none if each part is one group
    levels: tuple[range, ...]

    @property
    def n_rows(self) -> int:
        """All rows; the last ones are the sums of the parts."""
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
