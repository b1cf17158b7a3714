"""Platforms and devices: what is there, and what a device asks of a layout."""

import contextlib
import ctypes
import functools
import os
import re
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plltool.engine.opencl.environment import INTEL_THREADS, caches_settled, intel_offered
from plltool.errors import DeviceError, warn_caller
from plltool.hardware import available_cores

# Lanes of a vector that the compiler of a CPU driver can generate code for. PoCL with LLVM 14, the one on PyPI, may
# abort the whole process on double8 (and in single precision on float8, whose sums are double8); Debian's PoCL (LLVM
# 15) and Intel's runtime handle 8. Intel reports a preferred width of 1 and a native one of 8: the native one counts.
POCL_SAFE_WIDTH = 4
POCL_GOOD_LLVM = 15
NARROWEST_VECTOR = 2
WIDEST_VECTOR = 8
AMD_QUERY = "cl_amd_device_attribute_query"  # the extension of drivers that tell of it


@dataclass(unsafe_hash=True)  # no field is set again
class Device:
    """One OpenCL device."""

    index: str  # "platform:device", as `--device` accepts it
    platform: str
    version: str  # what the platform says of itself
    name: str
    driver: str
    kind: str  # "cpu", "gpu" or "other"
    has_double: bool
    compute_units: int  # cores of a CPU, multiprocessors of a GPU
    memory: int  # bytes, as the driver claims
    max_allocation: int  # bytes of the largest buffer, likewise
    max_group_items: int  # work-items of a work-group at most
    local_memory: int  # bytes that a work-group can have
    shares_host_memory: bool  # of a CPU or an integrated GPU
    vector_width: int  # lanes of a vector of doubles that the device's compiler is known to handle
    handle: Any  # pyopencl.Device
    single_width: int | None = None  # lanes of singles, likewise; None if only a test can tell whether twice as many
    has_sub_devices: bool = True  # of a CPU: fewer threads can be used; rusticl crashes if it is asked
    wave: int = 0  # work-items that an AMD device runs in step; 0 of other devices
    problem: str | None = None  # why the engine cannot use the device in any precision, or None

    def problem_in(self, precision: str) -> str | None:
        """Why the engine cannot use the device in a precision, or None."""
        if self.problem is None and not self.has_double and precision != "single":
            return "no double precision; it can be used with --precision single"
        return self.problem

    def __post_init__(self) -> None:
        self.full_name = f"{self.name} ({self.platform})"  # results depend on it, but not on the index
        self.label = f"{self.index} {self.full_name}"  # for messages
        self.is_intel_cpu = self.kind == "cpu" and "intel" in self.platform.lower()  # Intel's driver, whatever the CPU

    def usable_threads(self, wanted: int | None) -> int | None:
        """The threads of a CPU to use: those that are asked for, or the cores that this process has; None for all."""
        if self.kind != "cpu" or not self.has_sub_devices:
            return None
        cores = available_cores()
        return wanted or (cores if cores < self.compute_units else None)


def is_pocl(platform: str) -> bool:
    """Whether the name of a platform is PoCL's."""
    return "portable computing" in platform.lower()


def safe_vector_widths(platform: str, version: str, native_width: int) -> tuple[int, int | None]:
    """`vector_width` and `single_width` of a CPU device whose native vector has `native_width` doubles."""
    width = min(WIDEST_VECTOR, max(NARROWEST_VECTOR, native_width))
    if is_pocl(platform):
        llvm = re.search(r"LLVM (\d+)", version)
        if llvm is None or int(llvm[1]) < POCL_GOOD_LLVM:
            return min(width, POCL_SAFE_WIDTH), None
    return width, 2 * width


def _describe(index: str, platform: Any, device: Any) -> Device:
    import pyopencl as cl

    kind = "cpu" if device.type & cl.device_type.CPU else "gpu" if device.type & cl.device_type.GPU else "other"
    problem = None if device.compiler_available else "the driver has no compiler"
    if not device.available:
        problem = "the driver says that it is not available"
    width, single_width = safe_vector_widths(platform.name, platform.version, device.native_vector_width_double)
    return Device(
        index=index,
        platform=platform.name.strip(),
        version=platform.version.strip(),
        name=device.name.strip(),
        driver=device.driver_version,
        kind=kind,
        has_double=bool(device.double_fp_config),
        compute_units=device.max_compute_units,
        memory=device.global_mem_size,
        max_allocation=device.max_mem_alloc_size,
        max_group_items=device.max_work_group_size,
        local_memory=device.local_mem_size,
        shares_host_memory=bool(device.host_unified_memory),
        vector_width=width,
        single_width=single_width,
        handle=device,
        has_sub_devices=device.partition_max_sub_devices > 0,
        wave=device.wavefront_width_amd if AMD_QUERY in device.extensions.split() else 0,
        problem=problem,
    )


def make_context(device: Device, threads: int | None) -> tuple[Any, Any]:
    """An OpenCL context, and the device for its queues: `device`, or a sub-device with this number of CPU threads.

    A queue must name the sub-device: PoCL's context of one says that it is of the whole device. All engines of this
    process on the same cores share it and its programs, until `forget_contexts`. Raises DeviceError for too few
    threads.
    """
    limit = threads if threads is not None and threads < device.compute_units else None
    with INTEL_THREADS.settled(threads) if device.is_intel_cpu else contextlib.nullcontext():
        return _context(device.handle, limit)


@functools.cache
def _context(handle: Any, threads: int | None) -> tuple[Any, Any]:
    """The context of a `pyopencl.Device`, or of a sub-device with this number of threads, and this device."""
    import pyopencl as cl

    if threads is not None:
        try:
            handle = handle.create_sub_devices([cl.device_partition_property.BY_COUNTS, threads])[0]
        except cl.Error as error:
            raise DeviceError(f"{handle.name} cannot be limited to {threads} threads: {error}") from error
    return cl.Context([handle]), handle


def forget_contexts() -> None:
    """Give later engines new contexts: an error of a device may have spoilt the present ones."""
    _context.cache_clear()


def list_devices() -> tuple[list[Device], list[str]]:
    """Every device of every platform, and a line for each driver, platform or device that fails.

    Drivers load with the first call. A `PlltoolWarning` says once if Intel's driver is installed but cannot be used, or
    if compiled kernels cannot be kept. Raises DeviceError if pyopencl cannot be imported or no driver can be used.
    """
    loader_was_used = "pyopencl" in sys.modules
    platforms: list[Any] = []
    devices: list[Device] = []
    with caches_settled() as remarks:
        try:
            import pyopencl as cl
        except (ImportError, OSError) as error:
            raise DeviceError(f"pyopencl cannot be imported: {error}") from error
        found_none: cl.Error | None = None
        with intel_offered(loader_was_used) as problems:
            try:
                platforms = cl.get_platforms()
            except cl.Error as error:
                found_none = error
        if not platforms:
            raise DeviceError("; ".join([f"no OpenCL platform: {found_none}", *problems])) from found_none
        for remark in (*remarks, *problems):
            _warn_once(remark)
        for p, platform in enumerate(platforms):
            try:
                handles = platform.get_devices()
            except cl.Error as error:
                problems.append(f"platform {p} does not list its devices: {error}")
                continue
            for d, handle in enumerate(handles):
                try:
                    devices.append(_describe(f"{p}:{d}", platform, handle))
                    name_unknown_processor(handle.int_ptr, handle.version)
                except cl.Error as error:
                    problems.append(f"device {p}:{d} does not describe itself: {error}")
    return devices, problems


@functools.cache
def _warn_once(remark: str) -> None:
    warn_caller(remark)


# --- the processor that PoCL compiles for, where PoCL does not know it -------------------------------------------

# PoCL asks its LLVM for the processor's name. LLVM calls a processor that is newer than itself "generic" (LLVM 14, in
# PyPI's PoCL, does so with AMD's Zen 5), and its own compiler then refuses every kernel: "unknown target CPU 'generic'"
# (PoCL's issue 1049). No option or environment variable of PoCL 3 changes the name, so it is replaced in the driver's
# own description of the device.
UNKNOWN = b"generic"
DESCRIPTION_BYTES = 1024  # read of PoCL's description of a device; its pointer to the name is at byte 640 in PoCL 3.0
POINTER = struct.Struct("P")

# Names of LLVM for the levels of the x86-64 psABI, and the flags of /proc/cpuinfo that tell the third from the first.
# The fourth level, with AVX-512, gains nothing: this PoCL handles vectors of four doubles.
MODERN, BASIC = b"x86-64-v3", b"x86-64"
MODERN_FLAGS = {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}

_named: dict[int, ctypes.Array[ctypes.c_char]] = {}  # of devices; kept, because the driver points to them


def name_unknown_processor(device: int, version: str) -> bool:
    """Give PoCL a processor to compile for if its LLVM does not know this one; returns whether that was done.

    `device` is the address of the driver's description of it; `version` ends with the processor's name.
    """
    if "PoCL" not in version or not version.endswith("x86_64-unknown-linux-gnu-" + UNKNOWN.decode()):
        return False
    place = None if device in _named else _find_name(device)
    if place is None:
        return False
    _named[device] = ctypes.create_string_buffer(_processor_level())
    ctypes.c_void_p.from_address(place).value = ctypes.addressof(_named[device])
    return True


def _find_name(device: int) -> int | None:
    """Address of the first pointer to the text "generic" within the description, or None.

    Another description may follow, which is none of ours. In /proc/self/mem an address that is none is an error, no
    crash.
    """
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)
    except OSError:
        return None
    try:
        description = os.pread(memory, DESCRIPTION_BYTES, device)
        whole = len(description) - len(description) % POINTER.size
        for number, (pointer,) in enumerate(POINTER.iter_unpack(description[:whole])):
            if _read_text(memory, pointer) == UNKNOWN:
                return device + POINTER.size * number
    except OSError:
        return None
    finally:
        os.close(memory)
    return None


def _read_text(memory: int, address: int) -> bytes:
    """The zero-terminated text at an address if it is as short as "generic", else something else."""
    try:
        text = os.pread(memory, len(UNKNOWN) + 1, address)
    except (OSError, OverflowError):
        return b""
    return text[:-1] if text.endswith(b"\0") else b""


def _processor_level() -> bytes:
    """LLVM's name for the level of the x86-64 psABI that this machine has."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return BASIC
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return MODERN if set(flags.split()) >= MODERN_FLAGS else BASIC
