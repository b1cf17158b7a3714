"""What kernels take of a GPU, by the compilers that `gpu_registers.py` runs, and how it reads their reports."""

import json
from dataclasses import astuple
from pathlib import Path

import gpu_registers as module
import pytest

RECORDED = Path(module.__file__).parent / "results" / "2026-11-23-gpu-registers.json"

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
    options = [*module.BUILD_OPTIONS, *layout.macros(), module.opcode_macro("likelihoods")]
    files = (*module.COMMON_FILES, *module.TRAVERSE_FILES)
    found = module.measure_nvidia(tools, layout, files, options, list(module.NVIDIA))
    return {device: kernels["traverse"] for device, kernels in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "most"),
    [(DOUBLE, 96), (SINGLE, 72), (MANY[0], 96), (MANY[1], 80)],
    ids=["double", "single", "20", "61"],
)
def test_common_kernels_fit_registers(case, most):
    """No spills, no stack, and at most so many registers on each device of NVIDIA; 240 to 255, and spills, before."""
    for device, use in measure_likelihoods(case).items():
        assert (use.spilled_bytes, use.stack_bytes) == (0, 0), device
        assert use.registers <= most, device


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
