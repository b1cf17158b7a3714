"""The choice of engine and device, and its reason: fixed rules, so that the same input gives the same bits."""

import functools
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from plltool.constants import MASK_STATES
from plltool.engine.base import Engine, EngineData
from plltool.engine.buffers import AnyBuffers, NumpyBuffers
from plltool.engine.layout import DataShape, Layout, choose_layout, count_work_groups
from plltool.engine.numpy_engine import EigenbasisEngine, NumpyEngine
from plltool.engine.opencl.device import Device, list_devices
from plltool.engine.opencl.device_faults import find_fault
from plltool.engine.opencl.environment import INTEL_THREADS, INTEL_THREADS_VARIABLE
from plltool.engine.storage import Slots, Storage, data_bytes, plan_storage
from plltool.errors import DeviceError, DeviceMemoryError, InputError, MemoryShortageError, show_name, warn_caller
from plltool.hardware import Hardware, available_memory
from plltool.progress import log

DEVICE_MEMORY_SHARE = 0.9  # of a device's own memory, by default; drivers and displays need some
HOST_MEMORY_SHARE = 0.8  # of the host's available memory, by default; other programs run, too
INSTALL_HINT = "`pip install 'plltool[pocl]'` installs a driver for the CPU"
LONGEST_REASON = 300  # characters of the reason why "auto" skips a device
NUMPY_REASON = "numpy on the CPU, one thread"
FORKED = "OpenCL hangs in a fork of a process that has used it; start processes by multiprocessing.get_context('spawn')"


@dataclass(frozen=True)
class EnginePlan:
    """How an engine would hold its data."""

    layout: Layout
    storage: Storage
    memory: int  # bytes that CLAs may take
    offered: int  # bytes that they could have
    useful: int  # bytes beyond which they would make nothing faster


def plan_engine(
    device: Device | None, shape: DataShape, slots: Slots, hardware: Hardware, share: float = 1.0, rough: bool = False
) -> EnginePlan:
    """What `make_engine` makes on a device, None for numpy: resident if that is best and fits, else streaming.

    It takes a `share` of `hardware.memory`, or else of what the device offers. A `rough` engine has single precision,
    except on numpy, where searches with such a screen take 1.2 times as long. Raises DeviceError if the device cannot
    use `hardware.vw` lanes, or if the memory does not hold the CLAs of a single tile.
    """
    precision = "rough" if rough and device is not None else hardware.precision
    layout = choose_layout(device, shape, precision, hardware.vw)
    if hardware.memory is None:
        offered = int(share * _offered_memory(device)) - data_bytes(layout, expanded_tips=device is None)
    else:
        offered = int(share * hardware.memory)
    work_groups = 0
    if device is not None:
        units = device.compute_units
        work_groups = count_work_groups(layout, min(device.usable_threads(hardware.threads) or units, units))
    useful = slots.useful_bytes(layout, work_groups)
    memory = min(offered, useful)
    largest = None if device is None else device.max_allocation
    try:
        storage = plan_storage(layout, slots.choose(layout, memory), memory, largest, work_groups)
    except MemoryShortageError as error:
        raise error.of_share(share) from error
    return EnginePlan(layout, storage, memory, offered, useful)


def _offered_memory(device: Device | None) -> int:
    """Bytes that a device offers where the user does not say how many to use."""
    if device is not None and not device.shares_host_memory:
        return int(DEVICE_MEMORY_SHARE * device.memory)
    offered = int(HOST_MEMORY_SHARE * available_memory())
    return offered if device is None else min(device.memory, offered)


@functools.cache
def _first_process() -> int:
    """The number of the process that asked first, also in its forks."""
    return os.getpid()


def find_devices() -> tuple[list[Device], list[str]]:
    """What `list_devices` returns; DeviceError also in a fork of a process that has called this."""
    if os.getpid() != _first_process():
        raise DeviceError(FORKED)
    return list_devices()


def rank_devices(devices: Sequence[Device], precision: str = "double") -> list[Device]:
    """The devices that can be used in a precision, in the order in which "auto" prefers them.

    GPUs with memory of their own come first, then CPUs. A GPU that shares the memory of the CPU comes after it: it has
    the same bandwidth. Intel's CPU runtime comes before PoCL, since it was 1.5 times faster on the same cores. The rest
    follows the order of the platforms.
    """

    def preference(device: Device) -> tuple[bool, bool, bool, bool]:
        intel = "intel" in device.platform.lower()
        own_memory = device.kind == "gpu" and not device.shares_host_memory
        return (not own_memory, device.kind != "cpu", device.kind != "gpu", not intel)

    return sorted((device for device in devices if device.problem_in(precision) is None), key=preference)


def find_device(
    devices: Sequence[Device], wanted: str, failures: Sequence[str] = (), precision: str = "double"
) -> Device:
    """The device that `wanted` names: "opencl", "cpu", "gpu", "P:D", or a part of a platform's or device's name.

    The platform's version counts as part of its name, because that is where PoCL says "PoCL". The one that "auto" would
    prefer is taken. Raises DeviceError, which lists devices and failures, if no device that matches can be used.
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
    usable = rank_devices(named, precision)
    if usable:
        return usable[0]
    if named:
        raise DeviceError(f"device '{wanted}' cannot be used: {'; '.join(describe_problems(named, precision))}")
    there = "; ".join(device.label for device in devices) or "none"
    kinds = {"opencl": "device", "cpu": "CPU", "gpu": "GPU"}
    missing = (
        f"there is no {kinds[word]} that OpenCL can use" if word in kinds else f"no OpenCL device is called '{wanted}'"
    )
    raise DeviceError("; ".join([missing, f"devices found: {there}", *failures]))


def open_on(
    device: Device | None,
    data: EngineData,
    shape: DataShape,
    slots: Slots,
    hardware: Hardware,
    share: float = 1.0,
    profile: bool = False,
    rough: bool = False,
) -> Engine:
    """An engine on a device, None for numpy, see `make_engine`; whatever goes wrong is a DeviceError.

    A device that has less memory than it claims is asked for half as much, until even one tile is too much.
    """
    if device is None:
        plan = plan_engine(None, shape, slots, hardware, share, rough)
        return NumpyEngine(plan.layout, plan.storage, data)
    from plltool.engine.opencl.engine import OpenCLEngine

    threads = device.usable_threads(hardware.threads)
    while True:
        plan = plan_engine(device, shape, slots, hardware, share, rough)
        try:
            return OpenCLEngine(plan.layout, plan.storage, data, device, threads, profile)
        except DeviceMemoryError as error:
            log.warning("%s; trying with half as much", error)
        # outside the handler, which would keep what failed alive
        hardware, share = replace(hardware, memory=plan.storage.n_bytes(plan.layout) // 2), 1.0


def make_engine(
    data: EngineData,
    shape: DataShape,
    slots: Slots,
    hardware: Hardware,
    share: float = 1.0,
    profile: bool = False,
    rough: bool = False,
) -> tuple[Engine, str]:
    """Make the engine that `hardware` asks for; return it, and one line that says what was chosen and why.

    Threads limit the cores of a CPU device; GPUs and numpy ignore them. With less memory than all CLAs take, the engine
    streams patterns through the memory that there is; its answers keep every bit. `share` is that of `plan_engine`;
    `profile` measures how long kernels run; `rough` is that of `plan_engine`, too.

    Raises DeviceError if a device asked for by name is missing, fails or has too little memory, or if `hardware.memory`
    is too little; "auto" tries the next device instead, and numpy last. Raises InputError for several devices.
    """
    if hardware.is_several:
        raise InputError(f"device: found {show_name(hardware.device)}, expected one device only")

    def make(device: Device | None) -> Engine:
        return open_on(device, data, shape, slots, hardware, share, profile, rough)

    if hardware.is_auto:
        return _make_automatically(make, hardware)
    if hardware.is_numpy:
        return make(None), f"{NUMPY_REASON}: asked for"
    found, failures = find_devices()
    chosen = find_device(found, hardware.device, failures, hardware.precision)
    if (fault := find_fault(chosen)) is not None:
        raise DeviceError(f"device '{hardware.device}' cannot be used: {chosen.label}: {fault}")
    return make(chosen), _describe_choice(chosen, hardware.threads, f"asked for by '{hardware.device}'")


def make_site_engine(
    data: EngineData, shape: DataShape, slots: Slots, hardware: Hardware, share: float
) -> tuple[Engine, str]:
    """An engine for parts that have few patterns and an eigensystem each, and why its device was chosen.

    There is one on numpy only: DeviceError if `hardware` names another device.
    """
    if not (hardware.is_auto or hardware.is_numpy):
        found = f"device '{hardware.device}' cannot compute frequencies of each site (+SSF)"
        raise DeviceError(f"{found}, expected auto or numpy")
    plan = plan_engine(None, shape, slots, replace(hardware, vw=1), share)
    reason = "frequencies of each site (+SSF) are computed by numpy, on one thread"
    return EigenbasisEngine(plan.layout, plan.storage, data), reason


def _make_automatically(make: Callable[[Device | None], Engine], hardware: Hardware) -> tuple[Engine, str]:
    """The engine of the first device that works, or of numpy, and why it was chosen."""
    devices, failures = find_automatic(hardware.precision)
    tried = False
    for device in devices:
        tried = True
        try:
            return make(device), _describe_choice(device, hardware.threads, explain_rank(device, failures))
        except DeviceError as error:
            if isinstance(error, MemoryShortageError) and hardware.memory is not None:
                raise  # the user set it: a slower device would only hide that it is too little
            failures.append(textwrap.shorten(str(error), LONGEST_REASON))  # a compiler's log has many lines
    reason = explain_numpy(failures, install=not tried)
    if tried:
        warn_caller(reason)
    return make(None), reason


def find_automatic(precision: str) -> tuple[Iterator[Device], list[str]]:
    """The devices that "auto" tries, each tested when it is its turn, and a line for each that it has skipped so far.

    A `PlltoolWarning` says so at the end if there was none.
    """
    try:
        found, failures = find_devices()
    except DeviceError as error:
        found, failures = [], [str(error)]
    failures = failures + describe_problems(found, precision)

    def passing() -> Iterator[Device]:
        none_passes = True
        for device in rank_devices(found, precision):
            fault = find_fault(device)
            if fault is None:
                none_passes = False
                yield device
            else:
                failures.append(f"{device.label}: {fault}")
        if none_passes:
            warn_caller(explain_numpy(failures, install=True))

    return passing(), failures


def describe_problems(devices: Sequence[Device], precision: str = "double") -> list[str]:
    """A line for each device that the engine cannot use in a precision."""
    problems = [(device.label, device.problem_in(precision)) for device in devices]
    return [f"{label}: {problem}" for label, problem in problems if problem is not None]


def explain_rank(device: Device, failures: Sequence[str]) -> str:
    """Why "auto" takes `device`; `failures` are lines about the devices that it skipped."""
    if device.kind == "gpu":
        own = "a GPU with memory of its own comes first"
        why = "a GPU that shares the CPU's memory; no usable CPU device" if device.shares_host_memory else own
    elif device.kind == "cpu":
        why = "the best CPU device; no usable GPU with memory of its own"
    else:
        why = "neither a usable GPU nor a CPU device"
    return f"chosen automatically, {why}" + (f" ({'; '.join(failures)})" if failures else "")


def explain_numpy(failures: Sequence[str], install: bool) -> str:
    """Why "auto" takes numpy; `install` adds what to install for a device."""
    hint = f"; {INSTALL_HINT}" if install and FORKED not in failures else ""
    return f"{NUMPY_REASON}: no OpenCL device can be used ({'; '.join(failures) or 'none found'}){hint}"


def _describe_choice(device: Device, threads: int | None, why: str) -> str:
    """The device of an engine that has been made, and why; warns if it uses another number of cores than asked for."""
    if device.kind != "cpu":
        return f"OpenCL device {device.label}: {why}"
    wanted = used = min(device.usable_threads(threads) or device.compute_units, device.compute_units)
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


def open_buffers(
    device: Device | None, shape: DataShape, n_slots: int, n_matrices: int, n_logs: int, hardware: Hardware
) -> AnyBuffers:
    """An engine of explicit buffers on a device, None for numpy; DeviceError if it fails or does not hold them.

    The tips have any state. `n_logs` are rows of logarithms. Of `hardware` precision, vw and threads count.
    """
    is_many = shape.n_states > MASK_STATES
    layout = choose_layout(device, replace(shape, n_codes=shape.n_states * is_many), hardware.precision, hardware.vw)
    codes = np.full((shape.n_taxa, layout.n_patterns), 0 if is_many else 1)
    data = EngineData(codes, np.ones(layout.n_patterns), np.eye(shape.n_states, dtype=np.uint8) if is_many else None)
    engine: AnyBuffers
    storage = plan_storage(layout, n_slots, None, None if device is None else device.max_allocation)
    if device is None:
        engine = NumpyBuffers(layout, storage, data)
    else:
        from plltool.engine.opencl.buffers import OpenCLBuffers

        engine = OpenCLBuffers(layout, storage, data, device, device.usable_threads(hardware.threads))
    engine.prepare_buffers(n_matrices, n_logs)
    for tip in range(shape.n_taxa):
        engine.set_codes(tip, np.full(layout.n_patterns, layout.padding_code))
    return engine
