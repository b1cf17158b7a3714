"""GPU drivers that the OpenCL loader is not told of, and GPUs without a driver."""

from __future__ import annotations

import subprocess

import pytest

from plltool.engine.opencl.drivers import advise_on_gpus, find_gpu_drivers, registered_libraries


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


def test_no_gpu_no_advice(machine):
    assert advice(machine) == []
    (machine / "lib" / "libigdrcl.so").write_text("")  # a driver without a GPU
    assert advice(machine) == []


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


def test_a_gpu_without_a_driver(machine):
    (machine / "dev" / "nvidiactl").write_text("")
    (line,) = advice(machine)
    assert line.startswith("/dev/nvidiactl tells of a GPU, but its OpenCL driver, libnvidia-opencl.so.1, is missing")


def test_each_vendor_once(machine):
    add_driver(machine)
    (machine / "lib" / "libnvidia-opencl.so.1").write_text("")
    add_driver(machine, "libamdocl64.so")
    assert sorted(path.name for path in find_gpu_drivers([str(machine / "lib")])) == [
        "libamdocl64.so",
        "libnvidia-opencl.so.1",
    ]
    assert len(advice(machine)) == 2
