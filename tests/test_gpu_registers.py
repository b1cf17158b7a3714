"""What kernels take of a GPU, by the compilers that `gpu_registers.py` runs, and how it reads their reports."""

import json
import shutil
import subprocess
from dataclasses import astuple, replace
from pathlib import Path

import gpu_registers as module
import pytest

RECORDED = Path(module.__file__).parents[1] / "benchmarks" / "results" / "2026-11-27-gpu-registers.json"

PTXAS = """ptxas info    : Compiling entry function 'traverse' for 'sm_90'
ptxas info    : Function properties for traverse
    360 bytes stack frame, 120 bytes spill stores, 148 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 360 bytes cumulative stack size, 8192 bytes smem
"""
MANY = [module.Case(20, 4, "double", 32), module.Case(61, 1, "double", 32)]
DOUBLE, SINGLE = module.Case(4, 4, "double", 64), module.Case(4, 4, "single", 64)


def test_a_report_of_ptxas():
    """As ptxas 12.9 writes it. 65,536 registers hold 8 warps of 32 x 256, of the 64 of a multiprocessor."""
    found = dict(module.read_ptxas(PTXAS, DOUBLE.layout("NVIDIA"), "sm_90"))
    assert found == {"traverse": module.Usage(255, 120, 360, 8192, 0.125)}


@pytest.mark.parametrize(
    ("registers", "local_bytes", "items", "expected"),
    [
        (32, 0, 64, 1.0),
        (128, 0, 64, 0.25),  # 16 warps of 4,096 registers
        (32, 0, 32, 0.5),  # 32 groups of a warp at most
        (32, 46 << 10, 64, 0.125),  # 228 KiB hold 4 groups, each of which reserves another KiB
        (128, 0, 512, 0.25),
        (168, 0, 512, 0.0),  # a group does not fit
    ],
)
def test_occupancy_of_sm_90(registers, local_bytes, items, expected):
    """By the limits of compute capability 9.0 in NVIDIA's CUDA C++ Programming Guide."""
    usage = module.Usage(registers, 0, 0, local_bytes, 0)
    assert module.nvidia_occupancy(usage, items, module.NVIDIA["sm_90"]) == expected


def find_tools(devices):
    """Compilers for the devices; skips the test where they are not."""
    tools, missing = module.find_tools(devices)
    if missing:
        pytest.skip(missing)
    return tools


def measure_likelihoods(case):
    """What `traverse` takes on each device of NVIDIA, compiled for `likelihoods`."""
    tools = find_tools(list(module.NVIDIA))
    layout = case.layout("NVIDIA")
    files, options = module.list_programs(layout)["likelihoods"]
    found = module.measure_nvidia(tools, layout, files, options, list(module.NVIDIA))
    return {device: kernels["traverse"] for device, kernels in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "most"), [(DOUBLE, 96), (SINGLE, 72), (MANY[0], 96), (MANY[1], 80)], ids=["double", "single", "20", "61"]
)
def test_common_kernels_fit_registers(case, most):
    """No spills, no stack, and at most so many registers on each device of NVIDIA; 240 to 255, and spills, before."""
    for device, use in measure_likelihoods(case).items():
        assert (use.spilled_bytes, use.stack_bytes) == (0, 0), device
        assert use.registers <= most, device


@pytest.mark.slow
@pytest.mark.parametrize("case", [DOUBLE, MANY[0]], ids=lambda case: case.name)
@pytest.mark.parametrize("device", ["skl", "pvc", "acm-g10"])
def test_intel_s_compiler(device, case, tmp_path):
    """All programs of a GPU; those without double precision for Arc (acm-g10), which has none."""
    if shutil.which("ocloc") is None:
        pytest.skip("found no ocloc, of Debian's intel-opencl-icd")
    layout = case.layout("NVIDIA")
    if device == "acm-g10":
        layout = replace(layout, precision="single", has_double=False)
    for name, (files, options) in module.list_programs(layout).items():
        source = module.join_files(files, tmp_path)
        command = ["ocloc", "compile", "-device", device, "-options", " ".join(options)]
        done = subprocess.run(
            [*command, "-file", source, "-out_dir", tmp_path / name], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{name}: {done.stdout[-2000:]}"
        assert list((tmp_path / name).glob("*.bin")), name


@pytest.mark.slow
@pytest.mark.parametrize("device", ["gfx90a", "gfx1100"])
def test_no_barriers_where_a_group_is_a_wave(device, tmp_path):
    """In `traverse` with few states, whose lanes are as many as AMD's devices run in step."""
    tools = find_tools([device])
    lanes = {"gfx90a": 64, "gfx1100": 32}[device]
    for case, expected in ((replace(DOUBLE, vw=lanes), False), (MANY[0], True)):
        files, options = module.list_programs(case.layout("AMD"))["likelihoods"]
        target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={device}"]
        compiled = module.compile_module(tools, files, options, target, tmp_path)
        module._run(tools["llc"], "-O3", f"-mcpu={device}", compiled, "-o", tmp_path / "kernels.s")
        assert ("s_barrier" in (tmp_path / "kernels.s").read_text()) == expected


@pytest.mark.slow
@pytest.mark.parametrize("case", [DOUBLE, *MANY], ids=lambda case: case.name)
def test_recorded_figures_are_those_of_the_kernels(case):
    """The file that docs/gpu.md shows; where the compilers are those that made it."""
    found = measure_likelihoods(case)
    recorded = json.loads(RECORDED.read_text("utf-8"))
    if recorded["tools"] != module.find_versions(find_tools(list(module.NVIDIA))):
        pytest.skip(f"{RECORDED.name} is of other compilers: {recorded['tools']}")
    for device, use in found.items():
        assert recorded["usage"][f"{case.name}, {device}"]["traverse likelihoods"] == list(astuple(use)), device
