"""Platforms and devices: what is there, and what a device asks of a layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plltool.errors import DeviceError

# Widest double vector that the compiler of a CPU platform can generate code for. PoCL 3.0 with LLVM 14, the one on
# PyPI, aborts the whole process on double8; other CPU drivers handle the device's preferred width.
POCL_SAFE_WIDTH = 4
WIDEST_VECTOR = 8
GPU_LANES = 64


@dataclass(frozen=True)
class Device:
    """One OpenCL device.

    Attributes
    ----------
    index : "platform:device", as `--device` accepts it
    kind : "cpu", "gpu" or "other"
    vector_width : doubles of a vector that the device's compiler is known to handle
    """

    index: str
    platform: str
    name: str
    driver: str
    kind: str
    has_double: bool
    compute_units: int
    memory: int
    max_allocation: int
    vector_width: int
    handle: Any


def _describe(index: str, platform: Any, device: Any) -> Device:
    import pyopencl as cl

    kind = "cpu" if device.type & cl.device_type.CPU else "gpu" if device.type & cl.device_type.GPU else "other"
    width = min(WIDEST_VECTOR, max(1, device.native_vector_width_double))
    if "portable computing" in platform.name.lower() and "LLVM 14" in platform.version:
        width = min(width, POCL_SAFE_WIDTH)
    return Device(
        index=index,
        platform=platform.name,
        name=device.name.strip(),
        driver=device.driver_version,
        kind=kind,
        has_double=bool(device.double_fp_config),
        compute_units=device.max_compute_units,
        memory=device.global_mem_size,
        max_allocation=device.max_mem_alloc_size,
        vector_width=width,
        handle=device,
    )


def list_devices() -> tuple[list[Device], list[str]]:
    """Every device of every platform, and a line for each platform that failed to answer.

    Raises
    ------
    DeviceError
        If pyopencl cannot be imported or no OpenCL loader is present.
    """
    try:
        import pyopencl as cl
    except ImportError as error:
        raise DeviceError(f"pyopencl cannot be imported: {error}") from error
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        raise DeviceError(f"no OpenCL platform: {error}") from error
    devices, problems = [], []
    for p, platform in enumerate(platforms):
        try:
            found = platform.get_devices()
            devices += [_describe(f"{p}:{d}", platform, device) for d, device in enumerate(found)]
        except cl.Error as error:
            problems.append(f"platform {p} ({platform.name}): {error}")
    return devices, problems
