"""Devices: their list, the processor that PoCL compiles for, and drivers that the loader is not told of."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from test_select import CPU

from plltool.engine.layout import DataShape, Layout, choose_layout
from plltool.engine.opencl import device as device_module
from plltool.engine.opencl.device import (
    AMD_QUERY,
    list_devices,
    make_context,
    name_unknown_processor,
    safe_vector_widths,
)
from plltool.engine.opencl.environment import VENDORS_VARIABLE, advise_on_gpus, find_gpu_drivers, registered_libraries
from plltool.errors import DeviceError

POCL = "Portable Computing Language"


@pytest.mark.parametrize(
    ("platform", "version", "native", "expected"),
    [
        (POCL, "OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, RELOC, LLVM 14.0.6, SLEEF", 8, (4, None)),
        (POCL, "OpenCL 3.0 PoCL 3.1+debian  Linux, None+Asserts, RELOC, LLVM 15.0.6", 8, (8, 16)),
        (POCL, "OpenCL 3.0 PoCL 5.0  Linux, LLVM 9.0.1", 8, (4, None)),
        (POCL, "OpenCL 2.0 pocl", 8, (4, None)),
        (POCL, "OpenCL 3.0 PoCL 6.0  Linux, LLVM 18.1.0", 2, (2, 4)),
        ("Intel(R) OpenCL", "OpenCL 3.1 LINUX", 8, (8, 16)),
        ("Intel(R) OpenCL", "OpenCL 3.1 LINUX", 16, (8, 16)),
        ("Intel(R) OpenCL", "OpenCL 3.1 LINUX", 4, (4, 8)),
        ("other", "OpenCL 1.2", 0, (2, 4)),
    ],
)
def test_width_of_vectors(platform, version, native, expected):
    assert safe_vector_widths(platform, version, native) == expected


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
        "version": "OpenCL 3.0", "int_ptr": 0,
        "max_compute_units": 3, "global_mem_size": 1000, "max_mem_alloc_size": 250, "host_unified_memory": 1,
        "available": True, "compiler_available": True, "max_work_group_size": 64, "local_mem_size": 32768,
        "partition_max_sub_devices": 3, "extensions": "cl_khr_fp64",
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


@pytest.fixture
def fake_opencl(monkeypatch):
    """A function that replaces pyopencl by one with the platforms given."""

    def use(*platforms):
        types = SimpleNamespace(CPU=2, GPU=4)
        module = SimpleNamespace(Error=FakeError, device_type=types, get_platforms=lambda: list(platforms))
        monkeypatch.setitem(sys.modules, "pyopencl", module)
        monkeypatch.setenv(VENDORS_VARIABLE, "/chosen/by/the/user")  # nothing else is offered then

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
        [({}, None), ({"compiler_available": False}, "no compiler"), ({"available": False}, "not available")],
    )
    def test_problems(self, fake_opencl, changes, problem):
        fake_opencl(platform_of(fake_device(**changes)))
        (device,), _ = list_devices()
        assert device.problem is None if problem is None else problem in device.problem

    def test_lanes_that_run_in_step(self, fake_opencl):
        """On AMD's GPUs a block has as many, if it may; their driver tells of it by an extension."""
        told = {"extensions": f"cl_khr_fp64 {AMD_QUERY} cl_khr_fp16", "type": 4}
        waves = [fake_device(wavefront_width_amd=wave, **told) for wave in (32, 64, 16)]
        fake_opencl(platform_of(*waves, fake_device(type=4)))
        devices, _ = list_devices()
        assert [device.wave for device in devices] == [32, 64, 16, 0]
        assert [choose_layout(device, DataShape(4, 4, 5, (99,))).vw for device in devices] == [32, 64, 64, 64]
        assert [choose_layout(device, DataShape(20, 4, 5, (99,))).vw for device in devices] == [32] * 4

    def test_without_double(self, fake_opencl):
        fake_opencl(platform_of(fake_device(double_fp_config=0)))
        (device,), _ = list_devices()
        assert device.problem_in("single") is None
        assert all("no double" in device.problem_in(precision) for precision in ("double", "mixed"))

    @pytest.mark.parametrize(("number", "threads"), [(0, None), (3, 1)])
    def test_threads_need_sub_devices(self, fake_opencl, number, threads):
        fake_opencl(platform_of(fake_device(partition_max_sub_devices=number)))
        assert list_devices()[0][0].usable_threads(1) == threads

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


@pytest.mark.opencl
def test_engines_on_the_same_cores_share_programs(opencl_device):
    from plltool.engine.opencl.kernels import build_program

    layout, files = Layout(4, 4, 4, (5,), 4), ("layout.h", "sums.cl")
    first, second = (make_context(opencl_device, threads)[0] for threads in (None, opencl_device.compute_units))
    assert first == second
    program = build_program(first, layout, files)
    assert build_program(second, layout, files) is program
    assert build_program(first, layout, files, ["-DANOTHER"]) is not program


ON_ONE_CORE = """
import os, sys
import numpy as np
from plltool import hardware
from plltool.engine.base import EngineData
from plltool.engine.layout import DataShape
from plltool.engine.opencl.device import list_devices
from plltool.engine.select import make_engine
from plltool.engine.storage import Slots
if sys.argv[1] == "affinity":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
else:
    hardware._core_quota = lambda root: 0.4
data = EngineData(np.ones((4, 400), dtype=np.uint8), np.ones(400))
for device in (found for found in list_devices()[0] if found.kind == "cpu" and found.problem is None):
    engine, reason = make_engine(data, DataShape(4, 4, 4, (400,)), Slots(3), hardware.Hardware(device.index))
    assert engine._queue.device.max_compute_units == engine._work_groups == 1
    print(reason)
"""


@pytest.mark.opencl
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not tell the cores of a process")
@pytest.mark.parametrize("limit", ["affinity", "quota"])
def test_runs_use_the_cores_that_their_process_has(limit):
    """Intel's driver offers those of the affinity only, PoCL all; neither knows of a quota."""
    done = subprocess.run([sys.executable, "-P", "-c", ON_ONE_CORE, limit], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines
    assert all(re.search(r", 1 of \d+ cores: asked for", line) for line in lines)


def test_threads_asked_for_are_used(monkeypatch):
    device = replace(CPU, compute_units=4)
    for cores, threads in ((1, 1), (3, 3), (4, None), (9, None)):
        monkeypatch.setattr("plltool.engine.opencl.device.available_cores", lambda cores=cores: cores)
        assert device.usable_threads(None) == threads
        assert device.usable_threads(2) == 2
        assert replace(device, kind="gpu").usable_threads(2) is None


@pytest.mark.opencl
def test_a_context_is_not_used_again_after_an_error(opencl_device):
    import pyopencl as cl

    from plltool.engine.opencl.engine import _as_device_error

    before = make_context(opencl_device, None)
    assert str(_as_device_error("a device", cl.RuntimeError("lost"))) == "a device: lost"
    after = make_context(opencl_device, None)
    assert before != after
    assert make_context(opencl_device, None) == after


UNKNOWN_VERSION = "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic"
WORDS = 126

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="PyPI's PoCL exists for Linux only")


class Description:
    """What a driver holds: words that are no pointers, pointers to texts, and the pointer to the processor's name."""

    def __init__(self, names: tuple[bytes, ...], place: int = 80) -> None:
        self.texts = [ctypes.create_string_buffer(name) for name in (b"pthread", b"generics", b"gener", *names)]
        words = [7, 2**63, 2**64 - 1, 0, 4096] * (WORDS // 5) + [0]
        for number, text in enumerate(self.texts):
            words[place + number] = ctypes.addressof(text)
        self.memory = ctypes.create_string_buffer(struct.pack(f"{WORDS}P", *words), 8 * WORDS)
        self.address = ctypes.addressof(self.memory)

    def text(self, place: int) -> bytes:
        (pointer,) = struct.unpack_from("P", self.memory.raw, 8 * place)
        return ctypes.string_at(pointer)


@pytest.fixture(autouse=True)
def no_names(monkeypatch):
    monkeypatch.setattr(device_module, "_named", {})


@pytest.mark.parametrize("n_names", [1, 2])
def test_an_unknown_processor_gets_the_level_of_the_machine(n_names):
    """Nothing else is changed, such as a second name behind the first."""
    description = Description((b"generic",) * n_names)
    before = description.memory.raw
    assert name_unknown_processor(description.address, UNKNOWN_VERSION)
    assert description.text(83) in (b"x86-64", b"x86-64-v3")
    assert [description.text(place) for place in (80, 81, 82)] == [b"pthread", b"generics", b"gener"]
    changed = [word for word in range(WORDS) if before[8 * word :][:8] != description.memory.raw[8 * word :][:8]]
    assert changed == [83]
    assert not name_unknown_processor(description.address, UNKNOWN_VERSION), "a device gets a name once"
    assert n_names == 1 or description.text(84) == b"generic"


@pytest.mark.parametrize(
    ("names", "version"),
    [
        ((b"generic",), "OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-znver3"),
        ((b"generic",), "OpenCL 3.0 PoCL HSTR: pthread-aarch64-unknown-linux-gnu-generic"),
        ((b"generic",), "OpenCL 3.0 (Build 0)"),
        ((), UNKNOWN_VERSION),  # no pointer is that of the name
    ],
)
def test_other_devices_stay_as_they_are(names, version):
    description = Description(names)
    before = description.memory.raw
    assert not name_unknown_processor(description.address, version)
    assert description.memory.raw == before
    assert not name_unknown_processor(8, version), "an address that is none is no crash"


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        ("fpu avx avx2 bmi1 bmi2 f16c fma movbe avx512f", b"x86-64-v3"),
        ("fpu avx avx2 bmi1 bmi2 f16c movbe", b"x86-64"),
        ("", b"x86-64"),
    ],
)
def test_level_of_the_machine(monkeypatch, tmp_path, flags, level):
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags\t\t: {flags}\n\nflags\t\t: none\n")
    monkeypatch.setattr(device_module, "Path", lambda _: tmp_path / "cpuinfo")
    assert device_module._processor_level() == level


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with folders for libraries, device files and .icd files, and a home."""
    for folder in ("lib", "dev", "vendors", "home"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "vendors"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def advice(machine):
    return advise_on_gpus([str(machine / "lib")], machine)


FILES = {"libnvidia-opencl.so.1": "nvidiactl", "libamdocl64.so": "kfd", "libigdrcl.so": "dri/renderD129"}


def add_driver(machine, name="libnvidia-opencl.so.1", file=""):
    """Add the driver of a GPU, and the file of the GPU; returns the path of the driver."""
    for path in (machine / "dev" / (file or FILES[name]), machine / "lib" / "deep" / name):
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    return path


def test_a_gpu_without_a_driver_and_the_reverse(machine):
    assert advice(machine) == []
    (machine / "lib" / "libigdrcl.so").write_text("")  # a driver without a GPU
    assert advice(machine) == []
    (machine / "dev" / "nvidiactl").write_text("")  # a GPU without a driver
    (line,) = advice(machine)
    assert line.startswith("/dev/nvidiactl tells of a GPU, but its OpenCL driver, libnvidia-opencl.so.1, is missing")


@pytest.mark.parametrize("file", ["", "dxg"])
@pytest.mark.parametrize("name", FILES)
def test_a_gpu_whose_driver_is_not_registered(machine, name, file):
    path = add_driver(machine, name, file)
    (line,) = advice(machine)
    assert line.startswith(f"{path} drives a GPU")


def test_the_command_to_paste_registers_a_driver(machine, monkeypatch):
    path = add_driver(machine)
    (line,) = advice(machine)
    command = line.partition("Paste: ")[2]
    shown = subprocess.check_output(["sh", "-c", f"{command} && echo $OCL_ICD_VENDORS"], text=True)
    monkeypatch.setenv("OCL_ICD_VENDORS", shown.strip())
    assert registered_libraries() == {path.name}
    assert advice(machine) == []


@pytest.mark.parametrize("registered", ["/elsewhere/libnvidia-opencl.so.1", "libnvidia-opencl.so.1\n"])
def test_a_registered_driver_needs_nothing(machine, registered):
    add_driver(machine)
    (machine / "vendors" / "nvidia.icd").write_text(registered)
    assert advice(machine) == []


def test_each_vendor_once(machine):
    add_driver(machine)
    (machine / "lib" / "libnvidia-opencl.so.1").write_text("")
    add_driver(machine, "libamdocl64.so")
    found = sorted(path.name for path in find_gpu_drivers([str(machine / "lib")]))
    assert found == ["libamdocl64.so", "libnvidia-opencl.so.1"]
    assert len(advice(machine)) == 2
