"""`plltool devices`: what OpenCL offers on this machine, whether it works, and what `--device auto` takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from plltool.engine.opencl.device import Device

INSTALL_LINES = (
    "for the CPU: pip install 'plltool[pocl]' (55 MB), or pip install 'plltool[intel]' (0.5 GB, about 1.5 times "
    "faster, also on AMD)",
    "for a GPU: the OpenCL driver of its vendor",
)

EPILOG = """\b
Examples:
  plltool devices
"""


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def devices(as_json: bool) -> None:
    """List the OpenCL devices, test each one, and say which one `--device auto` takes and why.

    A test builds the kernels and compares a small computation with numpy, in a process of its own: a driver that
    crashes is reported, not obeyed.
    """
    report = survey_devices()
    click.echo(json.dumps(report, indent=2) if as_json else format_report(report))


def survey_devices() -> dict[str, Any]:
    """Find and test every device.

    Returns
    -------
    environment (lines), devices (a dict each; `problem` is null if the test passed), failures (lines for platforms and
    devices that do not answer), auto (device and reason), install (lines; only where no device works).
    """
    from plltool.engine.opencl.device import list_devices
    from plltool.engine.opencl.environment import prepare_environment
    from plltool.errors import DeviceError

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
    from plltool.engine.opencl.probe import probe_device
    from plltool.engine.select import default_lanes

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
    from plltool.engine.select import explain_numpy, explain_rank, rank_devices

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


def format_report(report: dict[str, Any]) -> str:
    """The report of `survey_devices` as text."""
    blocks = [_format_device(row) for row in report["devices"]] or ["No OpenCL device found."]
    lines = [f"environment: {line}" for line in report["environment"]]
    lines += [f"failure: {line}" for line in report["failures"]]
    lines.append(f"--device auto takes {report['auto']['device']}: {report['auto']['reason']}")
    lines += [f"To install, {line}" for line in report["install"]]
    return "\n\n".join([*blocks, "\n".join(lines)])


def _format_device(row: dict[str, Any]) -> str:
    memory, buffer = (row[key] / 2**30 for key in ("memory_bytes", "largest_buffer_bytes"))
    values = {
        "platform": f"{row['platform']}, {row['version']}",
        "driver": row["driver"],
        "type": f"{row['type']}, {row['cores']} cores",
        "memory": f"{memory:.1f} GiB, largest buffer {buffer:.1f} GiB",
        "double": "yes" if row["double"] else "no",
        "vectors": f"{row['vector_width']} patterns",
        "test": "passed" if row["problem"] is None else f"FAILED: {row['problem']}",
    }
    return "\n".join([f"{row['index']}  {row['name']}", *(f"     {key:9}{value}" for key, value in values.items())])
