"""How many buffers of each kind an instance has, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass

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
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise BeagleError(Code.OUT_OF_RANGE, f"{name}: found {getattr(self, name)}, expected {least} or more")
