"""Which engine, device and layout a run uses, and why: fixed rules, so that the same input gives the same bits."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plltool.engine.base import Engine, FloatArray
from plltool.engine.layout import REAL_TYPE, Layout
from plltool.engine.numpy_engine import NumpyEngine
from plltool.engine.opencl.device import Device, list_devices
from plltool.engine.opencl.environment import INTEL_THREADS_VARIABLE
from plltool.errors import DeviceError, InputError

NUMPY_LANES = (1, 2, 4)
NUMPY_DEFAULT_LANES = 4
CPU_LANES = (2, 4, 8)
GPU_LANES = (32, 64)
GPU_DEFAULT_LANES = 64
GPU_MAX_GROUPS = 65_536  # one tile per group up to 4 million patterns; bounds the partial sums that leave the device
CPU_TILE_PATTERNS = 32  # PoCL was fastest with 8 blocks of 4, Intel with 4 blocks of 8; a tile stays in cache
CPU_GROUPS_PER_CORE = 8  # a work-group is what a CPU driver schedules: a few per core balance, hundreds cost
CPU_MIN_GROUPS_PER_CORE = 4  # small data get smaller tiles rather than idle cores
MAX_PADDING = 1.25  # blocks with padding over blocks with patterns; many small parts get smaller tiles
INSTALL_HINT = "`pip install 'plltool[pocl]'` brings a CPU device"
LONGEST_REASON = 300  # characters of a failure that "auto" passes over
NUMPY_REASON = "numpy on the CPU, one thread"


@dataclass(frozen=True)
class DataShape:
    """What a layout must hold: see `Layout` for the fields."""

    n_states: int
    n_components: int
    n_taxa: int
    part_patterns: tuple[int, ...]
    precision: str = "double"


def choose_layout(
    device: Device,
    n_states: int,
    n_components: int,
    n_taxa: int,
    part_patterns: Sequence[int],
    precision: str = "double",
    vw: int | None = None,
    n_slots: int = 0,
) -> Layout:
    """The layout for an OpenCL device: a fixed function of the device and the shape of the data.

    It does not depend on the number of threads in use, so neither do the sums.

    Parameters
    ----------
    n_states, n_components, n_taxa, part_patterns, precision : see `Layout`
    vw : lanes of a block; None for the device's best
    n_slots : CLAs to be held; matters only where one group's share would exceed the largest buffer

    Raises
    ------
    DeviceError
        If the device cannot use `vw` lanes.
    InputError
        If the precision is unknown.
    """
    shape = DataShape(n_states, n_components, n_taxa, tuple(part_patterns), _known_precision(precision))
    return _layout_for(device, shape, vw, n_slots)


def _layout_for(device: Device, shape: DataShape, vw: int | None, n_slots: int) -> Layout:
    if device.kind == "gpu":
        lanes = _check_lanes(device.label, vw, default_lanes(device), GPU_LANES)
        return _make_layout(shape, lanes, 1, on_gpu=True, max_groups=GPU_MAX_GROUPS)
    # Single precision uses the width of double: the sums are double vectors of as many lanes.
    allowed = tuple(n for n in CPU_LANES if n <= device.vector_width)
    lanes = _check_lanes(device.label, vw, default_lanes(device), allowed)
    layout = _cpu_tiles(shape, lanes, CPU_MIN_GROUPS_PER_CORE * device.compute_units)
    buffers = layout.slot_bytes * n_slots // device.max_allocation + 1
    return replace(layout, max_groups=max(CPU_GROUPS_PER_CORE * device.compute_units, 2 * buffers))


def default_lanes(device: Device) -> int:
    """Lanes of a block on an OpenCL device, unless asked otherwise."""
    return GPU_DEFAULT_LANES if device.kind == "gpu" else device.vector_width


def _known_precision(precision: str) -> str:
    if precision not in REAL_TYPE:
        raise InputError(f"unknown precision '{precision}', expected one of: {', '.join(REAL_TYPE)}")
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
    )


def _cpu_tiles(shape: DataShape, lanes: int, enough_tiles: int) -> Layout:
    """The largest tiles, up to CPU_TILE_PATTERNS, that are enough in number and do not pad too much."""
    blocks = sum(-(-n // lanes) for n in shape.part_patterns)
    layout = _make_layout(shape, lanes, CPU_TILE_PATTERNS // lanes, on_gpu=False, max_groups=1)
    while layout.tile_blocks > 1 and (layout.n_tiles < enough_tiles or layout.n_blocks > MAX_PADDING * blocks):
        layout = replace(layout, tile_blocks=layout.tile_blocks // 2)
    return layout


def _check_lanes(label: str, vw: int | None, default: int, allowed: tuple[int, ...]) -> int:
    if vw is None:
        return default
    if vw not in allowed:
        raise DeviceError(f"{label} cannot use blocks of {vw} lanes, only of {', '.join(map(str, allowed))}")
    return vw


def engine_bytes(layout: Layout, n_slots: int, n_weight_sets: int = 1) -> int:
    """Device memory that an OpenCL engine holds from its start: CLAs, scaling counts, tips, weights and tables.

    P matrices, programs and partial sums come on top, by request; they are small beside `n_slots` CLAs.
    """
    tips = layout.n_lanes * layout.n_taxa * layout.code.itemsize
    weights = n_weight_sets * layout.n_lanes * 8
    tables = 4 * layout.n_tiles + 16 * len(layout.groups) + 4
    return n_slots * layout.slot_bytes + tips + weights + tables


def rank_devices(devices: Sequence[Device]) -> list[Device]:
    """The usable devices, the one that "auto" prefers first.

    GPUs before CPUs, those with memory of their own first; Intel's CPU runtime before PoCL (1.5 times faster, measured
    on the same cores); then in the order of the platforms.
    """

    def preference(device: Device) -> tuple[bool, bool, bool, bool]:
        intel = "intel" in device.platform.lower()
        return (device.kind != "gpu", device.shares_host_memory, device.kind != "cpu", not intel)

    return sorted((device for device in devices if device.problem is None), key=preference)


def find_device(devices: Sequence[Device], wanted: str) -> Device:
    """The device that `wanted` names: "opencl", "cpu", "gpu", "P:D", or a part of a platform's or device's name.

    The platform's version counts as part of its name: that is where PoCL calls itself so. Of several devices it is the
    one that "auto" would prefer. Raises DeviceError, listing what there is, if none is usable.
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
    raise DeviceError(f"no OpenCL device is called '{wanted}'; devices found: {there}")


@dataclass(frozen=True)
class EngineRequest:
    """The arguments of `make_engine` that do not depend on the device."""

    codes: npt.NDArray[np.integer]
    weights: FloatArray
    shape: DataShape
    n_slots: int
    vw: int | None
    threads: int | None

    def numpy_engine(self) -> NumpyEngine:
        lanes = _check_lanes("numpy", self.vw, NUMPY_DEFAULT_LANES, NUMPY_LANES)
        layout = _make_layout(self.shape, lanes, 1, on_gpu=False, max_groups=1)
        return NumpyEngine(layout, self.n_slots, self.codes, self.weights)

    def opencl_engine(self, device: Device) -> Engine:
        """An engine on `device`; whatever goes wrong is a DeviceError."""
        from plltool.engine.opencl.engine import OpenCLEngine

        layout = _layout_for(device, self.shape, self.vw, self.n_slots)
        needed = engine_bytes(layout, self.n_slots, len(np.atleast_2d(self.weights)))
        if device.kind == "gpu" and needed > device.memory:  # it may show only at the first launch otherwise
            raise DeviceError(f"{device.label}: needs {needed / 2**30:.1f} GiB, has {device.memory / 2**30:.1f} GiB")
        threads = self.threads if device.kind == "cpu" else None
        return OpenCLEngine(layout, self.n_slots, self.codes, self.weights, device, threads)


def make_engine(
    codes: npt.NDArray[np.integer],
    weights: FloatArray,
    n_states: int,
    n_components: int,
    n_taxa: int,
    part_patterns: Sequence[int],
    n_slots: int,
    device: str = "auto",
    precision: str = "double",
    vw: int | None = None,
    threads: int | None = None,
) -> tuple[Engine, str]:
    """Make the engine that `device` asks for.

    Parameters
    ----------
    codes : unsigned integers (n_taxa, n_patterns), sets of states as bits, parts one after another
    weights : float64 (n_patterns,) or (n_weight_sets, n_patterns)
    n_states, n_components, n_taxa, part_patterns, precision : see `Layout`
    n_slots : CLAs to hold
    device : "auto", "numpy", or what `find_device` takes
    vw : lanes of a block; None for the best
    threads : cores of a CPU device to use at most; None for all; GPUs and numpy take no notice

    Returns
    -------
    The engine, and one line that says what was chosen and why.

    Raises
    ------
    DeviceError
        If a device asked for is missing or fails. "auto" tries the next one instead, numpy at last.
    InputError
        If the precision is unknown.
    """
    shape = DataShape(n_states, n_components, n_taxa, tuple(part_patterns), _known_precision(precision))
    request = EngineRequest(codes, weights, shape, n_slots, vw, threads)
    if device.strip().lower() == "auto":
        return _automatic_engine(request)
    if device.strip().lower() == "numpy":
        return request.numpy_engine(), f"{NUMPY_REASON}: asked for"
    found, _ = list_devices()
    chosen = find_device(found, device)
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
    return request.numpy_engine(), explain_numpy(failures, install=not devices)


def find_automatic() -> tuple[list[Device], list[str]]:
    """The devices that "auto" tries, in order, and a line for each that it passes over."""
    try:
        devices, failures = list_devices()
    except DeviceError as error:
        return [], [str(error)]
    return rank_devices(devices), failures + describe_problems(devices)


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
    """Why "auto" takes numpy; `install` adds what would bring a device."""
    hint = f"; {INSTALL_HINT}" if install else ""
    return f"{NUMPY_REASON}: no OpenCL device is usable ({'; '.join(failures) or 'none found'}){hint}"


def _describe_choice(device: Device, threads: int | None, why: str) -> str:
    if device.kind != "cpu":
        return f"OpenCL device {device.label}: {why}"
    used = device.compute_units if threads is None else min(threads, device.compute_units)
    if used < device.compute_units and _ignores_threads(device, used):
        why += f"; this driver obeys a limit of {threads} only by {INTEL_THREADS_VARIABLE}, set before it loads"
        used = device.compute_units
    return f"OpenCL device {device.label}, {used} of {device.compute_units} cores: {why}"


def _ignores_threads(device: Device, threads: int) -> bool:
    """Intel's CPU runtime accepts a sub-device and runs it on all cores (see `prepare_environment`)."""
    if "intel" not in device.platform.lower():
        return False
    limit = os.environ.get(INTEL_THREADS_VARIABLE, "")
    return not (limit.isdigit() and int(limit) <= threads)
