"""How many buffers of each kind an instance has, and how large they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from plltool.beagle.codes import BeagleError, Code

_LEAST = {"tip_count": 1, "state_count": 2, "pattern_count": 1, "category_count": 1}


@dataclass(frozen=True)
class Sizes:
    """The numbers that BEAGLE's `beagleCreateInstance` takes."""

    tip_count: int
    partials_buffer_count: int
    compact_buffer_count: int
    state_count: int
    pattern_count: int
    eigen_buffer_count: int
    matrix_buffer_count: int
    category_count: int
    scale_buffer_count: int

    def check(self) -> None:
        """OUT_OF_RANGE for a size that cannot be."""
        for name, found in asdict(self).items():
            least = _LEAST.get(name, 0)
            if not isinstance(found, (int, np.integer)) or found < least:
                wanted = f"a whole number, {least} or more"
                raise BeagleError(Code.OUT_OF_RANGE, f"{name}: found {found!r}, expected {wanted}")
