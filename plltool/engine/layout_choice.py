"""The choice of a layout for a device: fixed rules, so that the same input gives the same bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from plltool.constants import MASK_STATES
from plltool.engine.layout import CPU_TILE_BYTES, JOB_BYTES, LARGEST_COLUMN_TILE, TYPES, Layout
from plltool.engine.opencl.device import WIDEST_VECTOR, Device
from plltool.engine.opencl.device_faults import find_fault
from plltool.errors import DeviceError

NUMPY_LANES = (1, 2, 4)
NUMPY_DEFAULT_LANES = 4
CPU_LANES = (2, 4, 8, 16)
GPU_LANES = (32, 64)
GPU_DEFAULT_LANES = 64
GPU_MANY_STATES_LANES = 32  # as many work-items as NVIDIA's devices run in step; on an H200 as fast as 64 or faster
GPU_OWN_STATES = 6  # states that a work-item owns where states are shared: they fit its registers; not measured
GPU_MAX_GROUPS = 65_536  # one tile per group up to 4 million patterns; limits the number of partial sums
CPU_GROUPS_PER_CORE = 8  # CPU drivers schedule work-groups: a few per core balance the load, hundreds cost time
CPU_MIN_GROUPS_PER_CORE = 4  # small data sets get smaller tiles, so that no core is idle
MAX_PADDING = 1.25  # blocks with padding over blocks with patterns; many small parts get smaller tiles


@dataclass(frozen=True)
class DataShape:
    """What a layout must hold; see `Layout` for the fields."""

    n_states: int
    n_components: int
    n_taxa: int
    part_patterns: tuple[int, ...]
    n_codes: int = 0
    reversible: bool = True


def choose_layout(device: Device | None, shape: DataShape, precision: str = "double", vw: int | None = None) -> Layout:
    """The layout for a device, None for numpy: a fixed function of the device and the shape of the data.

    It does not depend on the number of threads in use, nor do the sums. `vw` None stands for the device's best number
    of lanes; 32 or 64 on a CPU device ask for the shape of a GPU, which devices without double precision always have:
    all of them are GPUs, but for Mesa's on the CPU. Raises DeviceError if the device cannot use `vw` lanes.
    """
    if device is None:
        lanes = _check_lanes("numpy", vw, NUMPY_DEFAULT_LANES, NUMPY_LANES)
        return _make_layout(shape, precision, lanes, max_groups=1)
    like_gpu = device.kind == "gpu" or not device.has_double
    if like_gpu or vw in GPU_LANES:
        are_many = shape.n_states > MASK_STATES or shape.n_codes
        default = GPU_MANY_STATES_LANES if are_many else default_lanes(device, precision)
        lanes = _check_lanes(device.label, vw, default, GPU_LANES)
        on_gpu = {"lane_per_item": True, "tile_major": False, "max_groups": GPU_MAX_GROUPS}
        layout = _make_layout(shape, precision, lanes, **on_gpu)
        # Each set takes seconds to compile on a CPU, where nothing is gained by fewer registers.
        layout = replace(layout, cut_kernels=like_gpu, has_double=device.has_double)
        return use_local_memory(layout, device.max_group_items, device.local_memory)
    default = default_lanes(device, precision)
    lanes = _check_lanes(device.label, vw, default, (*(n for n in CPU_LANES if n <= default), *GPU_LANES))
    layout = _cpu_tiles(shape, precision, lanes, CPU_MIN_GROUPS_PER_CORE * device.compute_units)
    return replace(layout, max_groups=CPU_GROUPS_PER_CORE * device.compute_units)


def count_work_groups(layout: Layout, units: int) -> int:
    """Work-groups of a launch at most, on `units` compute units; 1 for one thread, which then does all itself."""
    n_groups = len(layout.groups)
    if layout.lane_per_item:
        return n_groups
    return 1 if units == 1 else min(n_groups, CPU_GROUPS_PER_CORE * units)


def use_local_memory(layout: Layout, max_items: int, local_memory: int) -> Layout:
    """A GPU's layout with what its work-groups share in local memory; other layouts stay as they are.

    With few states they share the P matrices of a NEWVIEW, if these fit. With many they share the states of a lane:
    workers own GPU_OWN_STATES each, or more where a work-group cannot have `max_items`. They read tables in even tiles
    of up to LARGEST_COLUMN_TILE columns, or fewer where `local_memory` (bytes) does not hold them.
    """
    if not layout.lane_per_item:
        return layout
    if not layout.many_states:
        matrices = 2 * layout.n_components * layout.matrix_values * layout.real.itemsize
        return replace(layout, staged_matrices=JOB_BYTES + matrices <= local_memory)
    workers = max(1, min(-(-layout.n_states // GPU_OWN_STATES), max_items // layout.vw))
    for largest in range(LARGEST_COLUMN_TILE, 0, -1):
        tile = -(-layout.n_states // -(-layout.n_states // largest))
        shared = replace(layout, state_workers=workers, column_tile=tile)
        if shared.local_bytes <= local_memory:
            break
    return shared


def default_lanes(device: Device, precision: str) -> int:
    """Lanes of a block on an OpenCL device by default: on a CPU as many as a vector of CLA values has.

    On AMD's GPUs as many as run in step, 32 on RDNA: compilers then drop the barriers of a work-group.

    Vectors have as many lanes of doubles, or in rough computation twice as many of singles, on which a compiler may
    fail; that is tested.
    """
    if device.kind == "gpu" or not device.has_double:
        return device.wave if device.wave in GPU_LANES else GPU_DEFAULT_LANES
    wide, width = 2 * device.vector_width, device.vector_width
    if precision == "rough":
        return device.single_width or (wide if find_fault(device, wide) is None else width)
    if precision == "single":
        return device.single_width or width
    return wide if TYPES[precision][0].itemsize == 4 and width == WIDEST_VECTOR else width


def _make_layout(shape: DataShape, precision: str, vw: int, tile_blocks: int = 1, **more: Any) -> Layout:
    return Layout(**vars(shape), precision=precision, vw=vw, tile_blocks=tile_blocks, **more)


def _cpu_tiles(shape: DataShape, precision: str, lanes: int, enough_tiles: int) -> Layout:
    """The largest tiles, up to CPU_TILE_BYTES, that are enough in number and do not pad too much."""
    patterns = CPU_TILE_BYTES // TYPES[precision][0].itemsize
    blocks = sum(-(-n // lanes) for n in shape.part_patterns)
    layout = _make_layout(shape, precision, lanes, patterns // lanes, max_groups=1)
    while layout.tile_blocks > 1 and (layout.n_tiles < enough_tiles or layout.n_blocks > MAX_PADDING * blocks):
        layout = replace(layout, tile_blocks=layout.tile_blocks // 2)
    return layout


def _check_lanes(label: str, vw: int | None, default: int, allowed: tuple[int, ...]) -> int:
    if vw is None:
        return default
    if vw not in allowed:
        raise DeviceError(f"{label} cannot use blocks of {vw} lanes, only of {', '.join(map(str, allowed))}")
    return vw
