"""Which engine, device and layout a run uses, and why: fixed rules, so that the same input gives the same bits."""

from __future__ import annotations

import logging
import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plltool.constants import DEVICE_MEMORY_SHARE, HOST_MEMORY_SHARE
from plltool.engine.base import Engine, FloatArray
from plltool.engine.codes import MASK_STATES
from plltool.engine.layout import LARGEST_COLUMN_TILE, TYPES, Layout
from plltool.engine.numpy_engine import NumpyEngine
from plltool.engine.opencl.device import WIDEST_VECTOR, Device, list_devices
from plltool.engine.opencl.environment import INTEL_THREADS, INTEL_THREADS_VARIABLE
from plltool.engine.storage import Slots, Storage, data_bytes, plan_storage
from plltool.errors import DeviceError, DeviceMemoryError, InputError, warn_caller
from plltool.hardware import available_memory

NUMPY_LANES = (1, 2, 4)
NUMPY_DEFAULT_LANES = 4
CPU_LANES = (2, 4, 8, 16)
GPU_LANES = (32, 64)
GPU_DEFAULT_LANES = 64
GPU_MANY_STATES_LANES = 32  # a worker's lanes are then what NVIDIA's devices run in step; unmeasured
GPU_OWN_STATES = 8  # of a lane that a work-item owns where states are shared: what its registers hold; unmeasured
GPU_MAX_GROUPS = 65_536  # one tile per group up to 4 million patterns; bounds the partial sums that leave the device
CPU_TILE_BYTES = 256  # of one value of all a tile's patterns: 32 doubles were best for searches of 354 and 500 taxa,
# 64 singles for a post-order of 64 and 1,000; more blocks share a P matrix, but fewer CLAs of a tile stay in cache
CPU_GROUPS_PER_CORE = 8  # a work-group is what a CPU driver schedules: a few per core balance, hundreds cost
CPU_MIN_GROUPS_PER_CORE = 4  # small data get smaller tiles rather than idle cores
MAX_PADDING = 1.25  # blocks with padding over blocks with patterns; many small parts get smaller tiles
INSTALL_HINT = "`pip install 'plltool[pocl]'` installs a driver for the CPU"
LONGEST_REASON = 300  # characters of a failure that "auto" passes over
NUMPY_REASON = "numpy on the CPU, one thread"

_log = logging.getLogger("plltool")


@dataclass(frozen=True)
class DataShape:
    """What a layout must hold: see `Layout` for the fields."""

    n_states: int
    n_components: int
    n_taxa: int
    part_patterns: tuple[int, ...]
    precision: str = "double"
    n_codes: int = 0


def choose_layout(
    device: Device,
    n_states: int,
    n_components: int,
    n_taxa: int,
    part_patterns: Sequence[int],
    precision: str = "double",
    vw: int | None = None,
    n_codes: int = 0,
) -> Layout:
    """The layout for an OpenCL device: a fixed function of the device and the shape of the data.

    It does not depend on the number of threads in use, so neither do the sums.

    Parameters
    ----------
    n_states, n_components, n_taxa, part_patterns, precision, n_codes : see `Layout`
    vw : lanes of a block; None for the device's best. 32 or 64 on a CPU device ask for the shape of a GPU

    Raises
    ------
    DeviceError
        If the device cannot use `vw` lanes.
    InputError
        If the precision is unknown.
    """
    shape = DataShape(n_states, n_components, n_taxa, tuple(part_patterns), _known_precision(precision), n_codes)
    return _layout_for(device, shape, vw)


def _layout_for(device: Device, shape: DataShape, vw: int | None) -> Layout:
    if device.kind == "gpu" or vw in GPU_LANES:
        default = GPU_MANY_STATES_LANES if shape.n_states > MASK_STATES else GPU_DEFAULT_LANES
        lanes = _check_lanes(device.label, vw, default, GPU_LANES)
        layout = _make_layout(shape, lanes, 1, on_gpu=True, max_groups=GPU_MAX_GROUPS)
        return use_local_memory(layout, device.max_group_items, device.local_memory)
    default = default_lanes(device, shape.precision)
    lanes = _check_lanes(device.label, vw, default, (*(n for n in CPU_LANES if n <= default), *GPU_LANES))
    layout = _cpu_tiles(shape, lanes, CPU_MIN_GROUPS_PER_CORE * device.compute_units)
    return replace(layout, max_groups=CPU_GROUPS_PER_CORE * device.compute_units)


def use_local_memory(layout: Layout, max_items: int, local_memory: int) -> Layout:
    """What the work-groups of a GPU's layout share; other layouts stay as they are.

    Few states: the P matrices of a NEWVIEW, if they fit. Many: the states of a lane, by workers that own GPU_OWN_STATES
    each, more where a work-group cannot have so many items; they read tables in even tiles of up to LARGEST_COLUMN_TILE
    columns, smaller where local memory does not hold them.

    Parameters
    ----------
    max_items, local_memory : work-items and bytes of local memory that a work-group of the device can have
    """
    if not layout.lane_per_item:
        return layout
    if not layout.many_states:
        matrices = 2 * layout.n_components * layout.matrix_values * layout.real.itemsize
        return replace(layout, staged_matrices=matrices <= local_memory)
    workers = max(1, min(-(-layout.n_states // GPU_OWN_STATES), max_items // layout.vw))
    for largest in range(LARGEST_COLUMN_TILE, 0, -1):
        tile = -(-layout.n_states // -(-layout.n_states // largest))
        shared = replace(layout, state_workers=workers, column_tile=tile)
        if shared.local_bytes <= local_memory:
            break
    return shared


def default_lanes(device: Device, precision: str) -> int:
    """Lanes of a block on an OpenCL device, unless asked otherwise: on a CPU those of a vector of CLA values.

    Sums over patterns are double vectors of as many lanes, which a compiler that fails on wide vectors has to handle.
    """
    if device.kind == "gpu":
        return GPU_DEFAULT_LANES
    singles = TYPES[precision][0].itemsize == 4 and device.vector_width == WIDEST_VECTOR
    return 2 * device.vector_width if singles else device.vector_width


def _known_precision(precision: str) -> str:
    if precision not in TYPES:
        raise InputError(f"unknown precision '{precision}', expected one of: {', '.join(TYPES)}")
    return precision


def _make_layout(shape: DataShape, vw: int, tile_blocks: int, *, on_gpu: bool, max_groups: int) -> Layout:
    return Layout(
        shape.n_states,
        shape.n_components,
        shape.n_taxa,
        shape.part_patterns,
        vw,
        tile_blocks=tile_blocks,
        lane_per_item=on_gpu,
        tile_major=not on_gpu,
        precision=shape.precision,
        max_groups=max_groups,
        n_codes=shape.n_codes,
    )


def _cpu_tiles(shape: DataShape, lanes: int, enough_tiles: int) -> Layout:
    """The largest tiles, up to CPU_TILE_BYTES, that are enough in number and do not pad too much."""
    patterns = CPU_TILE_BYTES // TYPES[shape.precision][0].itemsize
    blocks = sum(-(-n // lanes) for n in shape.part_patterns)
    layout = _make_layout(shape, lanes, patterns // lanes, on_gpu=False, max_groups=1)
    while layout.tile_blocks > 1 and (layout.n_tiles < enough_tiles or layout.n_blocks > MAX_PADDING * blocks):
        layout = replace(layout, tile_blocks=layout.tile_blocks // 2)
    return layout


def _check_lanes(label: str, vw: int | None, default: int, allowed: tuple[int, ...]) -> int:
    if vw is None:
        return default
    if vw not in allowed:
        raise DeviceError(f"{label} cannot use blocks of {vw} lanes, only of {', '.join(map(str, allowed))}")
    return vw


@dataclass(frozen=True)
class Plan:
    """How an engine would hold its data.

    Attributes
    ----------
    layout, storage : see there
    memory : bytes that CLAs may take
    """

    layout: Layout
    storage: Storage
    memory: int


def plan_engine(
    device: Device | None,
    shape: DataShape,
    slots: Slots,
    vw: int | None = None,
    memory: int | None = None,
    share: float = 1.0,
) -> Plan:
    """What `make_engine` makes on a device, None for numpy: resident if all CLAs fit into `memory`, else streaming.

    Raises
    ------
    DeviceError
        If the device cannot use `vw` lanes, or if the memory holds the CLAs of no tile.
    """
    if device is None:
        lanes = _check_lanes("numpy", vw, NUMPY_DEFAULT_LANES, NUMPY_LANES)
        layout = _make_layout(shape, lanes, 1, on_gpu=False, max_groups=1)
    else:
        layout = _layout_for(device, shape, vw)
    if memory is None:
        memory = int(share * _offered_memory(device)) - data_bytes(layout, expanded_tips=device is None)
    largest = None if device is None else device.max_allocation
    storage = plan_storage(layout, slots.choose(layout, memory), memory, largest)
    return Plan(layout, storage, memory)


def _offered_memory(device: Device | None) -> int:
    """Bytes of a device that is not told how many to use."""
    if device is not None and not device.shares_host_memory:
        return int(DEVICE_MEMORY_SHARE * device.memory)
    offered = int(HOST_MEMORY_SHARE * available_memory())
    return offered if device is None else min(device.memory, offered)


def rank_devices(devices: Sequence[Device]) -> list[Device]:
    """The usable devices, the one that "auto" prefers first.

    GPUs before CPUs, those with memory of their own first; Intel's CPU runtime before PoCL (1.5 times faster, measured
    on the same cores); then in the order of the platforms.
    """

    def preference(device: Device) -> tuple[bool, bool, bool, bool]:
        intel = "intel" in device.platform.lower()
        return (device.kind != "gpu", device.shares_host_memory, device.kind != "cpu", not intel)

    return sorted((device for device in devices if device.problem is None), key=preference)


def find_device(devices: Sequence[Device], wanted: str, failures: Sequence[str] = ()) -> Device:
    """The device that `wanted` names: "opencl", "cpu", "gpu", "P:D", or a part of a platform's or device's name.

    The platform's version counts as part of its name, because that is where PoCL says "PoCL". If several devices match,
    it is the one that "auto" would prefer.

    Parameters
    ----------
    devices, failures : see `list_devices`

    Raises
    ------
    DeviceError
        If no device that matches can be used; lists the devices and failures.
    """
    word = wanted.strip().lower()
    if word == "opencl":
        named = list(devices)
    elif word in ("cpu", "gpu"):
        named = [device for device in devices if device.kind == word]
    elif re.fullmatch(r"\d+:\d+", word):
        named = [device for device in devices if device.index == word]
    else:
        named = [d for d in devices if word and word in f"{d.name}\n{d.platform}\n{d.version}".lower()]
    usable = rank_devices(named)
    if usable:
        return usable[0]
    if named:
        raise DeviceError(f"device '{wanted}' cannot be used: {'; '.join(describe_problems(named))}")
    there = "; ".join(device.label for device in devices) or "none"
    raise DeviceError("; ".join([f"no OpenCL device is called '{wanted}'", f"devices found: {there}", *failures]))


@dataclass(frozen=True)
class EngineRequest:
    """The arguments of `make_engine` that do not depend on the device."""

    codes: npt.NDArray[np.integer]
    weights: FloatArray
    state_sets: npt.ArrayLike | None
    shape: DataShape
    slots: Slots
    vw: int | None
    threads: int | None
    profile: bool
    memory: int | None
    share: float

    def numpy_engine(self) -> NumpyEngine:
        plan = plan_engine(None, self.shape, self.slots, self.vw, self.memory, self.share)
        return NumpyEngine(
            plan.layout, plan.storage.n_slots, self.codes, self.weights, self.state_sets, memory=plan.memory
        )

    def opencl_engine(self, device: Device) -> Engine:
        """An engine on `device`; whatever goes wrong is a DeviceError.

        A device that has not got what it claimed is asked for half as much, until even one tile is too much.
        """
        from plltool.engine.opencl.engine import OpenCLEngine

        threads = self.threads if device.kind == "cpu" else None
        memory = self.memory
        while True:
            plan = plan_engine(device, self.shape, self.slots, self.vw, memory, self.share)
            try:
                return OpenCLEngine(
                    plan.layout,
                    plan.storage.n_slots,
                    self.codes,
                    self.weights,
                    device,
                    threads,
                    self.profile,
                    self.state_sets,
                    plan.memory,
                )
            except DeviceMemoryError as error:
                _log.warning("%s; trying with half as much", error)
            memory = plan.storage.n_bytes(plan.layout) // 2  # outside the handler, which keeps what failed alive


def make_engine(
    codes: npt.NDArray[np.integer],
    weights: FloatArray,
    n_states: int,
    n_components: int,
    n_taxa: int,
    part_patterns: Sequence[int],
    slots: Slots,
    device: str = "auto",
    precision: str = "double",
    vw: int | None = None,
    threads: int | None = None,
    profile: bool = False,
    state_sets: npt.ArrayLike | None = None,
    memory: int | None = None,
    share: float = 1.0,
) -> tuple[Engine, str]:
    """Make the engine that `device` asks for.

    Parameters
    ----------
    codes : integers (n_taxa, n_patterns), parts one after another; bit masks of states, or rows of `state_sets`
    weights : float64 (n_patterns,) or (n_weight_sets, n_patterns)
    n_states, n_components, n_taxa, part_patterns, precision : see `Layout`
    slots : CLAs to hold
    device : "auto", "numpy", or what `find_device` takes
    vw : lanes of a block; None for the best
    threads : cores of a CPU device to use at most; None for all; GPUs and numpy take no notice
    profile : measure how long kernels run (`Counters.device_seconds`); numpy takes no notice
    state_sets : 0 or 1 (n_codes, n_states); None up to 8 states, see `Engine`
    memory : bytes that CLAs may take; None for what the device offers. With less than all of them take, the engine
        streams patterns through what there is; its answers keep every bit
    share : of what the device offers, where other engines need the rest

    Returns
    -------
    The engine, and one line that says what was chosen and why.

    Raises
    ------
    DeviceError
        If a device asked for is missing, fails or has too little memory. "auto" tries the next one instead, numpy at
        last.
    InputError
        If the precision is unknown.
    """
    n_codes = 0 if state_sets is None else len(np.asarray(state_sets))
    shape = DataShape(n_states, n_components, n_taxa, tuple(part_patterns), _known_precision(precision), n_codes)
    request = EngineRequest(codes, weights, state_sets, shape, slots, vw, threads, profile, memory, share)
    if device.strip().lower() == "auto":
        return _automatic_engine(request)
    if device.strip().lower() == "numpy":
        return request.numpy_engine(), f"{NUMPY_REASON}: asked for"
    found, failures = list_devices()
    chosen = find_device(found, device, failures)
    return request.opencl_engine(chosen), _describe_choice(chosen, threads, f"asked for by '{device}'")


def _automatic_engine(request: EngineRequest) -> tuple[Engine, str]:
    devices, failures = find_automatic()
    for device in devices:
        try:
            engine = request.opencl_engine(device)
        except DeviceError as error:
            failures.append(textwrap.shorten(str(error), LONGEST_REASON))  # a compiler's log has many lines
            continue
        return engine, _describe_choice(device, request.threads, explain_rank(device, failures))
    reason = explain_numpy(failures, install=not devices)
    if devices:
        warn_caller(reason)
    return request.numpy_engine(), reason


def find_automatic() -> tuple[list[Device], list[str]]:
    """The devices that "auto" tries, in order, and a line for each that it passes over.

    A `PlltoolWarning` says so if there is none.
    """
    try:
        found, failures = list_devices()
    except DeviceError as error:
        found, failures = [], [str(error)]
    devices, failures = rank_devices(found), failures + describe_problems(found)
    if not devices:
        warn_caller(explain_numpy(failures, install=True))
    return devices, failures


def describe_problems(devices: Sequence[Device]) -> list[str]:
    """A line for each device that the engine cannot use."""
    return [f"{device.label}: {device.problem}" for device in devices if device.problem is not None]


def explain_rank(device: Device, failures: Sequence[str]) -> str:
    """Why "auto" takes `device`; `failures` are the devices that it passed over."""
    if device.kind == "gpu":
        why = "a GPU with double precision comes first"
    elif device.kind == "cpu":
        why = "the best CPU device; no usable GPU"
    else:
        why = "neither a usable GPU nor a CPU device"
    return f"chosen automatically, {why}" + (f" ({'; '.join(failures)})" if failures else "")


def explain_numpy(failures: Sequence[str], install: bool) -> str:
    """Why "auto" takes numpy; `install` adds what to install for a device."""
    hint = f"; {INSTALL_HINT}" if install else ""
    return f"{NUMPY_REASON}: no OpenCL device can be used ({'; '.join(failures) or 'none found'}){hint}"


def _describe_choice(device: Device, threads: int | None, why: str) -> str:
    """The device of an engine that has been made, and why; warns if it uses another number of cores than asked for."""
    if device.kind != "cpu":
        return f"OpenCL device {device.label}: {why}"
    wanted = used = min(threads or device.compute_units, device.compute_units)
    if device.is_intel_cpu:
        used = min(INTEL_THREADS.limit or device.compute_units, device.compute_units)
    if used != wanted:
        remark = f"Intel's OpenCL driver uses {used} threads, not {wanted}"
        if os.environ.get(INTEL_THREADS_VARIABLE):
            remark += f": {INTEL_THREADS_VARIABLE} says so"
        else:
            remark += ": it keeps the number of the first run in this process; start a new process for another number"
            warn_caller(remark)
        why += f"; {remark}"
    return f"OpenCL device {device.label}, {used} of {device.compute_units} cores: {why}"
