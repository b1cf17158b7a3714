"""Platforms and devices: what is there, and what a device asks of a layout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from plltool.errors import DeviceError

# Lanes of a vector that the compiler of a CPU driver can generate code for. PoCL with LLVM 14, the one on PyPI, aborts
# the whole process on double8 (and in single precision on float8, whose sums are double8); Debian's PoCL (LLVM 15) and
# Intel's runtime handle 8. Intel reports a preferred width of 1 and a native one of 8: the native one counts.
POCL_SAFE_WIDTH = 4
POCL_GOOD_LLVM = 15
NARROWEST_VECTOR = 2
WIDEST_VECTOR = 8


@dataclass(frozen=True)
class Device:
    """One OpenCL device.

    Attributes
    ----------
    index : "platform:device", as `--device` accepts it
    version : what the platform says of itself
    kind : "cpu", "gpu" or "other"
    compute_units : cores of a CPU, multiprocessors of a GPU
    memory, max_allocation : bytes in all and of the largest buffer, as the driver claims them
    max_group_items, local_memory : work-items of a work-group at most, and bytes of local memory that it can have
    shares_host_memory : of a CPU or an integrated GPU
    vector_width : lanes of a vector that the device's compiler is known to handle
    handle : pyopencl.Device
    problem : why the engine cannot use the device, or None
    """

    index: str
    platform: str
    version: str
    name: str
    driver: str
    kind: str
    has_double: bool
    compute_units: int
    memory: int
    max_allocation: int
    max_group_items: int
    local_memory: int
    shares_host_memory: bool
    vector_width: int
    handle: Any
    problem: str | None = None

    @property
    def full_name(self) -> str:
        """Name and platform, which tell what it computes, wherever it stands among others."""
        return f"{self.name} ({self.platform})"

    @property
    def label(self) -> str:
        """Index, name and platform, for messages."""
        return f"{self.index} {self.full_name}"


def safe_vector_width(platform: str, version: str, native_width: int) -> int:
    """Lanes of the widest vector to use on a CPU device.

    Parameters
    ----------
    platform, version : the platform's name and version strings
    native_width : doubles in the device's native vector
    """
    width = min(WIDEST_VECTOR, max(NARROWEST_VECTOR, native_width))
    if "portable computing" in platform.lower():
        llvm = re.search(r"LLVM (\d+)", version)
        if llvm is None or int(llvm[1]) < POCL_GOOD_LLVM:
            width = min(width, POCL_SAFE_WIDTH)
    return width


def _find_problem(device: Any) -> str | None:
    if not device.available:
        return "the driver says that it is not available"
    if not device.compiler_available:
        return "the driver has no compiler"
    if not device.double_fp_config:
        return "no double precision"
    return None


def _describe(index: str, platform: Any, device: Any) -> Device:
    import pyopencl as cl

    kind = "cpu" if device.type & cl.device_type.CPU else "gpu" if device.type & cl.device_type.GPU else "other"
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
        vector_width=safe_vector_width(platform.name, platform.version, device.native_vector_width_double),
        handle=device,
        problem=_find_problem(device),
    )


def list_devices() -> tuple[list[Device], list[str]]:
    """Every device of every platform, and a line for each platform or device that failed to answer.

    Raises
    ------
    DeviceError
        If pyopencl cannot be imported or no OpenCL driver is installed.
    """
    try:
        import pyopencl as cl
    except (ImportError, OSError) as error:
        raise DeviceError(f"pyopencl cannot be imported: {error}") from error
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise DeviceError(f"no OpenCL platform: {error}") from error
    devices: list[Device] = []
    problems: list[str] = []
    for p, platform in enumerate(platforms):
        try:
            handles = platform.get_devices()
        except cl.Error as error:
            problems.append(f"platform {p} does not list its devices: {error}")
            continue
        for d, handle in enumerate(handles):
            try:
                devices.append(_describe(f"{p}:{d}", platform, handle))
            except cl.Error as error:
                problems.append(f"device {p}:{d} does not describe itself: {error}")
    return devices, problems
