"""Listing and probing devices, the environment they load in, and the command that reports them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import plltool
from plltool.cli.devices import devices, format_report
from plltool.engine.opencl import environment, probe
from plltool.engine.opencl.device import Device, list_devices, safe_vector_width
from plltool.engine.opencl.environment import prepare_environment
from plltool.engine.opencl.probe import explain_failure, probe_device, run_probe
from plltool.errors import DeviceError

POCL = "Portable Computing Language"


class TestVectorWidth:
    @pytest.mark.parametrize(
        ("platform", "version", "native", "expected"),
        [
            (POCL, "OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6, SLEEF", 8, 4),
            (POCL, "OpenCL 3.0 PoCL 3.1+debian  Linux, None+Asserts, RELOC, LLVM 15.0.6", 8, 8),
            (POCL, "OpenCL 3.0 PoCL 5.0  Linux, LLVM 9.0.1", 8, 4),
            (POCL, "OpenCL 2.0 pocl", 8, 4),
            (POCL, "OpenCL 3.0 PoCL 6.0  Linux, LLVM 18.1.0", 2, 2),
            ("Intel(R) OpenCL", "OpenCL 3.1 LINUX", 8, 8),
            ("Intel(R) OpenCL", "OpenCL 3.1 LINUX", 16, 8),
            ("other", "OpenCL 1.2", 0, 2),
        ],
    )
    def test_width(self, platform, version, native, expected):
        assert safe_vector_width(platform, version, native) == expected


class FakeError(Exception):
    """Stands for pyopencl.Error."""


class BrokenPlatform:
    name = "Broken"
    version = "OpenCL 1.2"

    def get_devices(self):
        raise FakeError("OUT_OF_HOST_MEMORY")


class BrokenDevice:
    @property
    def type(self):
        raise FakeError("INVALID_DEVICE")


def fake_device(**changes):
    values = {
        "type": 2, "native_vector_width_double": 8, "name": "Fake ", "driver_version": "1", "double_fp_config": 63,
        "max_compute_units": 3, "global_mem_size": 1000, "max_mem_alloc_size": 250, "host_unified_memory": 1,
        "available": True, "compiler_available": True, "max_work_group_size": 64, "local_mem_size": 32768,
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


@pytest.fixture
def fake_opencl(monkeypatch):
    """A function that replaces pyopencl by one with the platforms given."""

    def use(*platforms):
        types = SimpleNamespace(CPU=2, GPU=4)
        module = SimpleNamespace(Error=FakeError, device_type=types, get_platforms=lambda: list(platforms))
        monkeypatch.setitem(sys.modules, "pyopencl", module)

    return use


def platform_of(*handles):
    return SimpleNamespace(name="Fine", version="OpenCL 3.0", get_devices=lambda: list(handles))


class TestList:
    def test_broken_drivers_hide_nothing(self, fake_opencl):
        fake_opencl(BrokenPlatform(), platform_of(BrokenDevice(), fake_device()))
        found, problems = list_devices()
        assert [(device.index, device.name, device.kind) for device in found] == [("1:1", "Fake", "cpu")]
        assert len(problems) == 2
        assert "platform 0" in problems[0]
        assert "OUT_OF_HOST_MEMORY" in problems[0]
        assert "device 1:0" in problems[1]

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({}, None),
            ({"double_fp_config": 0}, "no double precision"),
            ({"compiler_available": False}, "no compiler"),
            ({"available": False}, "not available"),
        ],
    )
    def test_problems(self, fake_opencl, changes, problem):
        fake_opencl(platform_of(fake_device(**changes)))
        (device,), _ = list_devices()
        assert device.problem is None if problem is None else problem in device.problem

    @pytest.mark.parametrize(("kind", "number"), [("cpu", 2), ("gpu", 4), ("other", 8)])
    def test_kinds(self, fake_opencl, kind, number):
        fake_opencl(platform_of(fake_device(type=number)))
        assert list_devices()[0][0].kind == kind

    def test_without_pyopencl(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyopencl", None)
        with pytest.raises(DeviceError, match="pyopencl cannot be imported"):
            list_devices()

    @pytest.mark.opencl
    def test_what_is_there(self):
        found, _ = list_devices()
        for device in found:
            assert device.compute_units > 0
            assert 0 < device.max_allocation <= device.memory
            assert device.label.startswith(device.index)


def python(code):
    return [sys.executable, "-c", code]


class TestProbe:
    def test_success(self):
        assert run_probe(python("print('noise')"), 60) is None

    def test_a_crash(self):
        code = "import os, sys; print('LLVM ERROR: Cannot select: fma', file=sys.stderr, flush=True); os.abort()"
        assert run_probe(python(code), 60) == "the driver crashes (SIGABRT): LLVM ERROR: Cannot select: fma"

    def test_a_silent_crash(self):
        assert run_probe(python("import os; os.kill(os.getpid(), 11)"), 60) == (
            "the driver crashes (SIGSEGV): no message"
        )

    def test_an_error(self):
        assert run_probe(python("raise SystemExit('kernels do not build')"), 60) == "kernels do not build"

    def test_a_hang(self):
        assert run_probe(python("import time; time.sleep(60)"), 0.5) == "no answer within 0.5 s"

    def test_a_command_that_does_not_start(self):
        assert "does not start" in run_probe(["/no/such/program"], 60)

    @pytest.mark.parametrize(
        ("returncode", "stderr", "expected"),
        [
            (1, "warning\n\n  the reason \n", "the reason"),
            (-6, "note\nLLVM ERROR: bad\n  at 0x1\nin f", "the driver crashes (SIGABRT): LLVM ERROR: bad"),
            (-200, "", "the driver crashes (signal 200): no message"),
            (1, "x" * 1000, "x" * 200),
        ],
    )
    def test_explanations(self, returncode, stderr, expected):
        assert explain_failure(returncode, stderr) == expected

    @pytest.mark.opencl
    def test_a_device(self):
        assert probe_device("0:0") is None

    @pytest.mark.opencl
    def test_a_device_that_is_not_there(self):
        assert "no OpenCL device is called '99:0'" in probe_device("99:0")

    @pytest.mark.opencl
    def test_wrong_values_are_noticed(self, monkeypatch):
        original, calls = probe.toy_values, []

        def disturbed(engine):
            calls.append(engine.name)
            return original(engine) * (1.0 if engine.name == "numpy" else 1.0 + 1e-6)

        monkeypatch.setattr(probe, "toy_values", disturbed)
        with pytest.raises(DeviceError, match="wrong values: relative error 1e-06"):
            probe.check_device("0:0")
        assert calls == ["opencl", "numpy"]


@pytest.fixture
def intel_prefix(tmp_path, monkeypatch):
    """A Python environment with a file in the place of Intel's runtime, an empty system and cache."""
    prefix = tmp_path / "prefix"
    (prefix / "lib").mkdir(parents=True)
    (prefix / "lib" / "libintelocl.so").write_bytes(b"")
    system = tmp_path / "system"
    system.mkdir()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(os, "environ", {"XDG_CACHE_HOME": str(tmp_path / "cache"), "OPENCL_VENDOR_PATH": str(system)})
    return prefix


def vendor_files():
    return [file.read_text().strip() for file in sorted(Path(os.environ["OCL_ICD_VENDORS"]).iterdir())]


class TestEnvironment:
    def test_nothing_there(self, intel_prefix):
        (intel_prefix / "lib" / "libintelocl.so").unlink()
        before = dict(os.environ)
        assert prepare_environment() == []
        assert os.environ == before

    def test_intel_beside_the_drivers_of_the_system(self, intel_prefix, tmp_path):
        (tmp_path / "system" / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
        (tmp_path / "system" / "empty.icd").write_text("")
        (line,) = prepare_environment()
        assert "OCL_ICD_VENDORS=" in line
        assert vendor_files() == ["libnvidia-opencl.so.1", str(intel_prefix / "lib" / "libintelocl.so")]
        assert all(file.suffix == ".icd" for file in Path(os.environ["OCL_ICD_VENDORS"]).iterdir())

    def test_repeated_calls_change_nothing(self, intel_prefix):
        first = prepare_environment(), dict(os.environ)
        assert (prepare_environment(), dict(os.environ)) == first

    def test_a_lost_file_is_written_again(self, intel_prefix):
        prepare_environment()
        (file,) = Path(os.environ["OCL_ICD_VENDORS"]).iterdir()
        file.write_text("broken")
        prepare_environment()
        assert vendor_files() == [str(intel_prefix / "lib" / "libintelocl.so")]

    def test_what_the_user_set_stays(self, intel_prefix):
        os.environ["OCL_ICD_VENDORS"] = "/somewhere"
        os.environ[environment.INTEL_THREADS_VARIABLE] = "7"
        assert prepare_environment(threads=3) == []
        assert os.environ["OCL_ICD_VENDORS"] == "/somewhere"
        assert os.environ[environment.INTEL_THREADS_VARIABLE] == "7"

    def test_a_runtime_of_the_system_is_enough(self, intel_prefix, tmp_path):
        (tmp_path / "system" / "intel.icd").write_text("/opt/intel/lib/libintelocl.so\n")
        assert prepare_environment() == []
        assert "OCL_ICD_VENDORS" not in os.environ

    def test_an_unwritable_cache(self, intel_prefix, tmp_path):
        (tmp_path / "cache").write_text("a file where a folder should be")
        (line,) = prepare_environment()
        assert "is not used" in line
        assert "OCL_ICD_VENDORS" not in os.environ

    def test_threads(self, intel_prefix):
        prepare_environment(threads=3)
        assert os.environ[environment.INTEL_THREADS_VARIABLE] == "3"

    def test_importing_changes_nothing_and_loads_no_opencl(self):
        code = (
            "import os, sys; before = dict(os.environ)\n"
            "import plltool.cli.devices, plltool.engine.select, plltool.engine.opencl.probe\n"
            "assert dict(os.environ) == before\n"
            "assert 'pyopencl' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def invoke(monkeypatch):
    """Run the command with the devices given, whose probes have the outcomes given."""

    def run(*arguments, found=(), failures=(), probes=()):
        outcomes = dict(probes)
        monkeypatch.setattr("plltool.analyses.devices.prepare_environment", lambda: ["VARIABLE=value"])
        monkeypatch.setattr("plltool.analyses.devices.list_devices", lambda: (list(found), list(failures)))
        monkeypatch.setattr("plltool.analyses.devices.probe_device", lambda index: outcomes.get(index))
        return CliRunner().invoke(devices, arguments, catch_exceptions=False)

    return run


def device(index, kind="cpu", problem=None):
    return Device(
        index=index, platform="Somebody", version="OpenCL 3.0", name=f"Device{index}", driver="1", kind=kind,
        has_double=problem is None, compute_units=2, memory=2**32, max_allocation=2**30, max_group_items=64,
        local_memory=2**15, shares_host_memory=True,
        vector_width=4, handle=None, problem=problem,
    )  # fmt: skip


class TestCommand:
    def test_text(self, invoke):
        toy = device("0:1", "gpu", "no double precision")
        result = invoke(found=[device("0:0"), toy], failures=["platform 1 does not list its devices: X"])
        assert result.exit_code == 0
        for part in (
            "0:0  Device0:0", "cpu, 2 cores", "4.0 GiB, largest buffer 1.0 GiB", "vectors  4 patterns", "passed",
            "FAILED: no double precision", "platform 1 does not list", "--device auto takes 0:0", "VARIABLE=value",
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

    def test_auto_would_take_a_device_whose_test_failed(self, invoke):
        result = invoke(found=[device("0:0")], probes={"0:0": "crashes"})
        assert result.exit_code == 0
        assert "its test failed" in result.output
        assert "pip install 'plltool[pocl]'" in result.output

    def test_nothing(self, monkeypatch):
        monkeypatch.setattr("plltool.analyses.devices.prepare_environment", lambda: [])
        monkeypatch.setitem(sys.modules, "pyopencl", None)
        result = CliRunner().invoke(devices, catch_exceptions=False)
        assert result.exit_code == 0
        for part in ("No OpenCL device", "takes numpy", "plltool[pocl]", "plltool[intel]", "driver of its vendor"):
            assert part in result.output

    @pytest.mark.opencl
    def test_what_is_there(self, monkeypatch):
        monkeypatch.setattr("plltool.analyses.devices.prepare_environment", lambda: [])
        report = plltool.devices()
        assert any(row["problem"] is None for row in report["devices"])
        assert report["auto"]["device"] != "numpy"
        assert format_report(report)
