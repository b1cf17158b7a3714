"""The kinds of engine that tests run over."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from plltool.engine.layout import Layout


@dataclass(frozen=True)
class Kind:
    """What `make_engine` shall make: "numpy", "vector" (a work-item owns blocks) or "lanes" (it owns a lane)."""

    kind: str
    vw: int
    tile_blocks: int = 1
    max_groups: int = 64

    def __str__(self):
        return f"{self.kind}-vw{self.vw}-tile{self.tile_blocks}-groups{self.max_groups}"

    def layout(self, n_states, n_components, n_taxa, part_patterns, precision="double"):
        return Layout(
            n_states,
            n_components,
            n_taxa,
            part_patterns,
            self.vw,
            self.tile_blocks,
            lane_per_item=self.kind == "lanes",
            tile_major=self.kind != "lanes",
            precision=precision,
            max_groups=self.max_groups,
        )


NUMPY_KINDS = [Kind("numpy", 1), Kind("numpy", 2), Kind("numpy", 4)]
# PoCL 3.0 compiles lanes of 2 to 16 for minutes (it unrolls the work-items of so small a work-group), so: 1, 32, 64.
OPENCL_KINDS = [
    Kind("vector", 2),
    Kind("vector", 4),
    Kind("vector", 4, 3),
    Kind("vector", 4, 8),
    Kind("vector", 2, 3, max_groups=2),
    Kind("lanes", 1),
    Kind("lanes", 32, 2, max_groups=2),
    Kind("lanes", 64, 3),
]
FEW_KINDS = [Kind("numpy", 4), Kind("vector", 4, 3), Kind("lanes", 32)]


def as_params(kinds):
    """pytest parameters; those that need a device are marked."""
    return [
        pytest.param(kind, id=str(kind), marks=[] if kind.kind == "numpy" else pytest.mark.opencl) for kind in kinds
    ]
