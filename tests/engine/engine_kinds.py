"""The kinds of engine that tests run over."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from plltool.engine.layout import Layout, default_lanes, use_local_memory
from plltool.engine.opencl.device import POCL_SAFE_WIDTH, is_pocl

MOST_ITEMS, LOCAL_BYTES = 1024, 48 << 10  # of a GPU's work-group


@dataclass(frozen=True)
class Kind:
    """What `make_engine` shall make: "numpy", "vector" (a work-item owns blocks) or "lanes" (it owns a lane).

    With many states `workers` items share a lane; None for as many as a GPU would take. Without `has_double` kernels
    are those of devices without double precision, in which nothing compiles that needs it.
    """

    kind: str
    vw: int
    tile_blocks: int = 1
    max_groups: int = 64
    workers: int | None = None
    has_double: bool = True

    def __str__(self):
        workers = "" if self.workers is None else f"-workers{self.workers}"
        floats = "" if self.has_double else "-floats"
        return f"{self.kind}-vw{self.vw}-tile{self.tile_blocks}-groups{self.max_groups}{workers}{floats}"

    def layout(self, n_states, n_components, n_taxa, part_patterns, precision="double", n_codes=0, reversible=True):
        layout = Layout(
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
            n_codes=n_codes,
            reversible=reversible,
            has_double=self.has_double,
        )
        layout = use_local_memory(layout, MOST_ITEMS, LOCAL_BYTES)
        return layout if self.workers is None else replace(layout, state_workers=self.workers)


NUMPY_KINDS = [Kind("numpy", 1), Kind("numpy", 2), Kind("numpy", 4)]
# From 8 lanes on tips go by a table. A device whose compiler fails on such vectors is never asked, see `find_device`.
WIDE = Kind("vector", 8, 2)
WIDEST = Kind("vector", 16, 2)  # of single CLAs
# PoCL 3.0 compiles lanes of 2 to 16 for minutes (it unrolls the work-items of so small a work-group), so: 1, 32, 64.
# A driver compiles the kernels for each combination of states, components, precision, lanes, and one block or several
# in a tile. That takes 1 to 10 s, nearly all of the time of these tests, and the driver keeps them. So tests share
# combinations where nothing speaks against it: 4 states with 4 components, 20 and 61 with 2.
OPENCL_KINDS = [
    Kind("vector", 2),
    Kind("vector", 4),
    Kind("vector", 4, 3),
    Kind("vector", 4, 8),
    Kind("vector", 2, 3, max_groups=2),
    WIDE,
    Kind("lanes", 1),
    Kind("lanes", 32, 2, max_groups=2),
    Kind("lanes", 64),
]
FEW_KINDS = [Kind("numpy", 4), Kind("vector", 4, 3), WIDE, Kind("lanes", 32)]


def find_device(devices, kind, precision="double"):
    """The first device whose compiler handles the kind's vectors; None if there is none."""
    narrow = kind.kind != "vector" or kind.vw <= POCL_SAFE_WIDTH  # which every compiler handles
    return next((device for device in devices if narrow or kind.vw <= default_lanes(device, precision)), None)


@contextmanager
def compiled_quickly(device, shared_states):
    """Within, PoCL does not optimise kernels, if work-items share states in them.

    It then takes 0.5 s in place of 7 s, and the kernels take 25 times as long.
    """
    from plltool.engine.opencl import kernels

    with pytest.MonkeyPatch.context() as patch:
        if shared_states and is_pocl(device.platform):
            patch.setattr(kernels, "BUILD_OPTIONS", [*kernels.BUILD_OPTIONS, "-cl-opt-disable"])
        yield


def as_params(kinds):
    """pytest parameters; those that need a device are marked."""
    return [
        pytest.param(kind, id=str(kind), marks=[] if kind.kind == "numpy" else pytest.mark.opencl) for kind in kinds
    ]
