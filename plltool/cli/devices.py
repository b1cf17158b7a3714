"""`plltool devices`: what OpenCL offers on this machine, whether it works, and what `--device auto` takes."""

from __future__ import annotations

import json
from typing import Any

import click

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
    import plltool

    report = plltool.devices()
    click.echo(json.dumps(report, indent=2) if as_json else format_report(report))


def format_report(report: dict[str, Any]) -> str:
    """The report of `plltool.devices` as text."""
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
