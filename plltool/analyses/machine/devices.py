"""`devices` lists what OpenCL offers on this machine, tests it, and tells what the device "auto" means."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from plltool.engine.layout import default_lanes
from plltool.engine.opencl.device import Device, list_devices
from plltool.engine.opencl.device_faults import retest_device
from plltool.engine.opencl.environment import advise_on_gpus, describe_offer
from plltool.engine.select import describe_problems, explain_numpy, explain_rank, rank_devices
from plltool.engine.several import all_indices
from plltool.errors import DeviceError, PlltoolWarning
from plltool.run.run_result import installed_versions

PACKAGES = ("pyopencl", "pocl-binary-distribution", "intel-opencl-rt", "matplotlib")
INSTALL_LINES = (
    "for the CPU: pip install 'plltool[pocl]' (55 MB), or pip install 'plltool[intel]' (0.5 GB, also on AMD, 1.3 to "
    "1.5 times as fast on CPUs with AVX-512)",
    "for a GPU: the OpenCL driver of its vendor",
)


def devices() -> dict[str, Any]:
    """List and test every OpenCL device. A test takes up to a few seconds, once for each new device.

    Returns
    -------
    A dictionary of strings, numbers, lists and dictionaries:

    - ``devices`` : a dictionary for each device; ``problem`` is None if its test passed, otherwise one line
    - ``auto`` : ``device`` and ``reason``, what the device "auto" means and why
    - ``all`` : the indices of the devices that "all" means
    - ``failures`` : a line for each driver, platform or device that does not answer
    - ``environment`` : a line for each driver that plltool had to load
    - ``install`` : what to install if no device works, otherwise empty
    - ``packages`` : the version of each package that drives devices or is optional, None where it is not installed
    - ``advice`` : a line for each GPU that cannot be used as the machine is, with what to do
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PlltoolWarning)  # a driver that cannot be used is among the failures
            found, failures = list_devices()
    except DeviceError as error:
        found, failures = [], [str(error)]
    rows = [_describe_device(device) for device in found]
    return {
        "environment": describe_offer(),
        "devices": rows,
        "failures": failures,
        "auto": _automatic(found, failures, {row["index"]: row["problem"] for row in rows}),
        "all": all_indices([device for device, row in zip(found, rows, strict=True) if row["problem"] is None]),
        "install": [] if any(row["problem"] is None for row in rows) else list(INSTALL_LINES),
        "packages": dict.fromkeys(PACKAGES) | installed_versions(PACKAGES),
        "advice": [] if any(row["type"] == "gpu" for row in rows) else advise_on_gpus(),
    }


def _describe_device(device: Device) -> dict[str, Any]:
    return {name: getattr(device, name) for name in ("index", "name", "platform", "version", "driver")} | {
        "type": device.kind,
        "cores": device.compute_units,
        "memory_bytes": device.memory,
        "largest_buffer_bytes": device.max_allocation,
        "double": device.has_double,
        "vector_width": default_lanes(device, "double"),
        "problem": device.problem or retest_device(device),
    }


def _automatic(found: Sequence[Device], failures: list[str], problems: dict[str, str | None]) -> dict[str, str]:
    """What "auto" means; `problems` holds the outcome of each device's test by its index."""
    skipped = failures + describe_problems(found)
    for device in rank_devices(found):
        problem = problems[device.index]
        if problem is None:
            return {"device": device.index, "reason": explain_rank(device, skipped)}
        skipped.append(f"{device.label}: {problem}")
    return {"device": "numpy", "reason": explain_numpy(skipped, install=False)}  # the report says what to install
