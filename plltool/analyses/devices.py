"""`devices` tells what OpenCL offers on this machine, whether it works, and what the device "auto" takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plltool.engine.opencl.device import Device, list_devices
from plltool.engine.opencl.environment import prepare_environment
from plltool.engine.opencl.probe import probe_device
from plltool.engine.select import default_lanes, explain_numpy, explain_rank, rank_devices
from plltool.errors import DeviceError

INSTALL_LINES = (
    "for the CPU: pip install 'plltool[pocl]' (55 MB), or pip install 'plltool[intel]' (0.5 GB, about 1.5 times "
    "faster, also on AMD)",
    "for a GPU: the OpenCL driver of its vendor",
)


def devices() -> dict[str, Any]:
    """Find and test every device.

    Returns
    -------
    environment (lines), devices (a dict each; `problem` is null if the test passed), failures (lines for platforms and
    devices that do not answer), auto (device and reason), install (lines; only where no device works).
    """
    environment = prepare_environment()
    try:
        found, failures = list_devices()
    except DeviceError as error:
        found, failures = [], [str(error)]
    rows = [_describe_device(device) for device in found]
    return {
        "environment": environment,
        "devices": rows,
        "failures": failures,
        "auto": _automatic(found, failures, {row["index"]: row["problem"] for row in rows}),
        "install": [] if any(row["problem"] is None for row in rows) else list(INSTALL_LINES),
    }


def _describe_device(device: Device) -> dict[str, Any]:
    return {
        "index": device.index,
        "name": device.name,
        "platform": device.platform,
        "version": device.version,
        "driver": device.driver,
        "type": device.kind,
        "cores": device.compute_units,
        "memory_bytes": device.memory,
        "largest_buffer_bytes": device.max_allocation,
        "double": device.has_double,
        "vector_width": default_lanes(device, "double"),
        "problem": device.problem or probe_device(device.index),
    }


def _automatic(found: Sequence[Device], failures: list[str], problems: dict[str, str | None]) -> dict[str, str]:
    """What "auto" takes; `problems` holds the outcome of each device's test by its index."""
    ranked = rank_devices(found)
    passed_over = failures + [f"{device.label}: {device.problem}" for device in found if device.problem is not None]
    if not ranked:
        return {
            "device": "numpy",
            "reason": explain_numpy(passed_over, install=False),
        }  # the report says what to install
    first = ranked[0]
    reason = explain_rank(first, passed_over)
    if problems[first.index] is not None:
        reason += "; but its test failed: name another one with --device"
    return {"device": first.index, "reason": reason}
