"""``plltool devices``: what OpenCL offers on this machine, whether it works, and what ``--device auto`` means."""

from __future__ import annotations

import json
from typing import Any

import plltool
from plltool.cli.command import command
from plltool.cli.options import json_option
from plltool.cli.terminal import print_line, print_results


@command()
@json_option
def devices(as_json: bool) -> None:
    """List and test the OpenCL devices, and show which one `--device auto` uses and why.

    The last lines give the versions of packages and, if there is a GPU that cannot be used, what to do.

    The test builds the kernels, computes the likelihood of a small tree and compares it with numpy's. It runs in a
    process of its own, so that a driver that crashes is reported like any other failure.
    """
    report = plltool.devices()
    if as_json:
        print_line(json.dumps(report, indent=2))
    else:
        print_results(format_report(report).splitlines())


def format_report(report: dict[str, Any]) -> str:
    blocks = [_format_device(row) for row in report["devices"]] or ["No OpenCL device found."]
    lines = [*report["environment"], *(f"failure: {line}" for line in report["failures"])]
    passed = [row["index"] for row in report["devices"] if row["problem"] is None]
    if len(passed) > 1:
        several, every = ",".join(passed), ",".join(report["all"])
        lines.append(f"--device {several} divides the patterns among these; --device all takes {every}")
    lines.append(f"--device auto uses {report['auto']['device']}: {report['auto']['reason']}")
    lines += [f"To install, {line}" for line in report["install"]]
    lines += report["advice"]
    packages = (f"{name} {found or 'not installed'}" for name, found in report["packages"].items())
    lines.append(f"packages: {', '.join(packages)}")
    return "\n\n".join([*blocks, "\n".join(lines)])


def _format_device(row: dict[str, Any]) -> str:
    memory, buffer = (row[key] / 2**30 for key in ("memory_bytes", "largest_buffer_bytes"))
    units = "cores" if row["type"] == "cpu" else "compute units"
    values = {
        "platform": f"{row['platform']}, {row['version']}",
        "driver": row["driver"],
        "type": f"{row['type'].upper()}, {row['cores']} {units}",
        "memory": f"{memory:.1f} GiB, at most {buffer:.1f} GiB in one buffer",
        "precision": "double and single" if row["double"] else "single only, with --precision single",
        "vectors": f"{row['vector_width']} alignment patterns at a time",
        "test": "passed" if row["problem"] is None else f"FAILED: {row['problem']}",
    }
    return "\n".join([f"{row['index']}  {row['name']}", *(f"     {key:11}{value}" for key, value in values.items())])
