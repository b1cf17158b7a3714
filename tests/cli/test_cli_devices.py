"""The command that lists and tests devices."""

import json
import sys

import pytest
from click.testing import CliRunner

import plltool
from plltool.cli import main
from plltool.cli.tools import format_devices
from plltool.engine.opencl.device import Device


@pytest.fixture
def invoke(monkeypatch):
    """Run the command with the devices given, whose probes have the outcomes given."""

    def run(*arguments, found=(), failures=(), probes=()):
        outcomes = dict(probes)
        monkeypatch.setattr("plltool.analyses.machine.devices.describe_offer", lambda: ["a driver from somewhere"])
        monkeypatch.setattr("plltool.analyses.machine.devices.list_devices", lambda: (list(found), list(failures)))
        monkeypatch.setattr("plltool.analyses.machine.devices.retest_device", lambda device: outcomes.get(device.index))
        return CliRunner().invoke(main, ["devices", *arguments], catch_exceptions=False)

    return run


def device(index, kind="cpu", problem=None):
    return Device(
        index=index, platform="Somebody", version="OpenCL 3.0", name=f"Device{index}", driver="1", kind=kind,
        has_double=index != "0:2", compute_units=2, memory=2**32, max_allocation=2**30, max_group_items=64,
        local_memory=2**15, shares_host_memory=True,
        vector_width=4, handle=None, problem=problem,
    )  # fmt: skip


class TestCommand:
    def test_text(self, invoke):
        toys = [device("0:1", "gpu", "no compiler"), device("0:2", "gpu")]
        result = invoke(found=[device("0:0"), *toys], failures=["platform 1 does not list its devices: X"])
        assert result.exit_code == 0
        for part in (
            "0:0  Device0:0", "CPU, 2 cores", "GPU, 2 compute units", "4.0 GiB, at most 1.0 GiB in one buffer",
            "4 alignment patterns", "passed", "FAILED: no compiler", "platform 1 does not list",
            "--device auto uses 0:0", "a driver from somewhere", "single only, with --precision single",
            "0:2 Device0:2 (Somebody): no double precision",
        ):  # fmt: skip
            assert part in result.output
        assert "pip install" not in result.output

    def test_json(self, invoke):
        result = invoke("--json", found=[device("0:0"), device("0:1", "gpu")], probes={"0:0": "crashes"})
        report = json.loads(result.output)
        assert [row["problem"] for row in report["devices"]] == ["crashes", None]
        assert [row["vector_width"] for row in report["devices"]] == [4, 64]
        assert report["auto"]["device"] == "0:1"
        assert report["install"] == []

    def test_auto_takes_no_device_whose_test_failed(self, invoke):
        result = invoke(found=[device("0:0")], probes={"0:0": "crashes"})
        assert result.exit_code == 0
        assert "--device auto uses numpy" in result.output
        assert "0:0 Device0:0 (Somebody): crashes" in result.output
        assert "pip install 'plltool[pocl]'" in result.output

    def test_nothing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyopencl", None)
        result = CliRunner().invoke(main, ["devices"], catch_exceptions=False)
        assert result.exit_code == 0
        for part in ("No OpenCL device", "uses numpy", "plltool[pocl]", "plltool[intel]", "driver of its vendor"):
            assert part in result.output

    @pytest.mark.opencl
    def test_what_is_there(self):
        report = plltool.devices()
        assert any(row["problem"] is None for row in report["devices"])
        assert report["auto"]["device"] != "numpy"
        assert format_devices(report)
