"""Compile the kernels as GPUs would, and report what limits how many run at once: registers, spills, local memory.

    python scripts/gpu/gpu_registers.py [--case TEXT ...] [--device NAME ...] [--output FILE.json]

No GPU is needed. For NVIDIA, clang and libclc make PTX, and NVIDIA's own assembler makes code for each device; its
driver has another OpenCL compiler in front of it, so registers may differ there. For AMD, clang makes the code and its
report; AMD's driver uses the same compiler, of another version. Needed are Debian's packages clang-19, llvm-19 and
libclc-15, and of PyPI nvidia-cuda-nvcc-cu12 for NVIDIA's devices.

Occupancy is the share of the work-items of a multiprocessor for which there is room: for NVIDIA by registers, local
memory and groups, with the limits of the CUDA C++ Programming Guide (table of compute capabilities); for AMD it is the
compiler's count of waves over the most waves of a SIMD.
"""

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plltool.engine.contract import OPCODE_SETS
from plltool.engine.layout import PMATRICES_ITEMS, DataShape, Layout, choose_layout
from plltool.engine.opencl.device import Device
from plltool.engine.opencl.engine import ADD_ROWS_ITEMS
from plltool.engine.opencl.kernels import (
    BUILD_OPTIONS,
    COMMON_FILES,
    FLOAT_OPTION,
    TABLE_FILES,
    TRAVERSE_FILES,
    find_kernel_folder,
    opcode_macro,
)

LLVM = Path("/usr/lib/llvm-19/bin")
LIBCLC = Path("/usr/lib/clc")
SHAPES = ((4, 1), (4, 4), (20, 4), (61, 1), (122, 1))  # states, components
KERNELS = ("traverse", "pmatrices", "add_rows")
LOWEST = "sm_80"  # PTX for it runs on all later devices
REGISTERS, REGISTER_UNIT, WARP_UNIT, LOCAL_UNIT, LOCAL_RESERVED = 65_536, 256, 4, 128, 1024  # of a multiprocessor


@dataclass(frozen=True)
class Limits:
    """What a multiprocessor of NVIDIA can hold at once."""

    warps: int
    groups: int
    local_bytes: int


NVIDIA = {"sm_80": Limits(64, 32, 164 << 10), "sm_90": Limits(64, 32, 228 << 10), "sm_120": Limits(48, 24, 100 << 10)}
AMD = {"gfx90a": 8, "gfx942": 8, "gfx1100": 16}  # waves of a SIMD
GROUP_LIMITS = {"NVIDIA": (1024, 48 << 10), "AMD": (256, 64 << 10)}  # work-items and local bytes that drivers offer


@dataclass(frozen=True)
class Case:
    """A configuration that `choose_layout` makes for a GPU."""

    n_states: int
    n_components: int
    precision: str
    vw: int

    @property
    def name(self) -> str:
        return f"{self.n_states} x {self.n_components} {self.precision} VW {self.vw}"

    def layout(self, maker: str) -> Layout:
        shape = DataShape(self.n_states, self.n_components, 10, (100_000,))
        return choose_layout(_make_device(maker), shape, self.precision, self.vw)


@dataclass(frozen=True)
class Usage:
    """What one work-item or work-group of a kernel takes."""

    registers: int
    spilled_bytes: int  # stored
    stack_bytes: int
    local_bytes: int
    occupancy: float


Found = dict[str, dict[str, Usage]]  # by device and kernel
CASES = [
    Case(*shape, precision, vw)
    for shape in SHAPES
    for precision in ("double", "single")
    for vw in (32, 64)
]  # fmt: skip


def _make_device(maker: str) -> Device:
    items, local_bytes = GROUP_LIMITS[maker]
    sizes = {"compute_units": 100, "memory": 1 << 36, "max_allocation": 1 << 34, "vector_width": 1}
    names = dict.fromkeys(("platform", "version", "name", "driver"), maker)
    limits = {"max_group_items": items, "local_memory": local_bytes}
    return Device("0:0", **names, **sizes, **limits, kind="gpu", has_double=True, shares_host_memory=False, handle=None)


def find_tools(devices: list[str]) -> tuple[dict[str, Path], str | None]:
    """The files that compile for the devices, and what is missing, in one line."""
    nvcc = importlib.util.find_spec("nvidia.cuda_nvcc") if importlib.util.find_spec("nvidia") else None
    folder = Path(next(iter(nvcc.submodule_search_locations or []))) if nvcc else Path("nvidia-cuda-nvcc-cu12")
    tools = {name: LLVM / name for name in ("clang", "llvm-link", "opt", "llc")}
    if any(device in NVIDIA for device in devices):
        tools["nvptx"] = LIBCLC / "nvptx64--nvidiacl.bc"
        tools["ptxas"] = folder / "bin" / "ptxas"
        tools["libdevice"] = folder / "nvvm" / "libdevice" / "libdevice.10.bc"
    if any(device in AMD for device in devices):
        tools["amdgcn"] = LIBCLC / "amdgcn--amdhsa.bc"
    missing = [str(path) for path in tools.values() if not path.is_file()]
    hint = "of Debian's clang-19, llvm-19 and libclc-15 and PyPI's nvidia-cuda-nvcc-cu12"
    return tools, f"found no {', '.join(missing)} {hint}" if missing else None


def _run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr[-2000:]}")
    return done.stdout + done.stderr


def join_files(files: Sequence[str], folder: Path) -> Path:
    """A file in the folder with the text of kernel files."""
    source, kernels = folder / "kernels.cl", find_kernel_folder()
    source.write_text("\n".join((kernels / name).read_text(encoding="utf-8") for name in files))
    return source


def compile_module(
    tools: dict[str, Path], files: Sequence[str], options: list[str], target: list[str], folder: Path
) -> Path:
    """Kernel files as one optimised module of LLVM, linked with what they call."""
    source, module = join_files(files, folder), folder / "module.bc"
    flags = ["-cl-std=CL1.2", "-nogpulib", "-Xclang", "-finclude-default-header", "-O3", "-w", "-emit-llvm", "-c"]
    _run(tools["clang"], *target, *flags, *options, source, "-o", module)
    for library in ("nvptx", "libdevice") if "nvptx" in target[0] else ("amdgcn",):
        _run(tools["llvm-link"], module, "--only-needed", tools[library], "-o", module)
    keep = f"-internalize-public-api-list={','.join(KERNELS)}"
    _run(tools["opt"], module, keep, "-passes=internalize,default<O3>", "-o", module)
    return module


def measure_nvidia(
    tools: dict[str, Path], layout: Layout, files: Sequence[str], options: list[str], devices: list[str]
) -> Found:
    """Of each device and kernel."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        target = ["--target=nvptx64--nvidiacl", f"-march={LOWEST}", "-Wno-unknown-cuda-version"]
        module = compile_module(tools, files, options, target, folder)
        ptx, code = folder / "kernels.ptx", folder / "code"
        _run(tools["llc"], "-O3", f"-mcpu={LOWEST}", module, "-o", ptx)
        ptx.write_text(require_group_size(ptx.read_text(), layout.group_items))
        found = {}
        for device in devices:
            report = _run(tools["ptxas"], "-v", f"-arch={device}", ptx, "-o", code)
            found[device] = dict(read_ptxas(report, layout, device))
        return found


def require_group_size(ptx: str, size: int) -> str:
    """PTX with the `reqd_work_group_size` of `traverse`, which LLVM drops: registers have to do for all work-items."""
    return re.sub(r"(\.entry traverse\([^)]*\))", rf"\1\n.reqntid {size}, 1, 1", ptx)


def read_ptxas(report: str, layout: Layout, device: str) -> Iterator[tuple[str, Usage]]:
    """Of each kernel in the report of ptxas -v."""
    items = {"traverse": layout.group_items, "pmatrices": PMATRICES_ITEMS, "add_rows": ADD_ROWS_ITEMS}  # of a group
    for part in report.split("Compiling entry function '")[1:]:
        kernel = part.split("'")[0]

        def number(pattern: str, part: str = part) -> int:
            found = re.search(rf"(\d+) {pattern}", part)
            return int(found[1]) if found else 0

        use = Usage(number("registers"), number("bytes spill stores"), number("bytes stack"), number("bytes smem"), 0)
        yield kernel, replace(use, occupancy=nvidia_occupancy(use, items[kernel], NVIDIA[device]))


def nvidia_occupancy(use: Usage, group_items: int, limits: Limits) -> float:
    """The share of the warps of a multiprocessor that can be there at once."""
    group_warps = -(-group_items // 32)
    warp_registers = -(-use.registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
    warps = REGISTERS // warp_registers // WARP_UNIT * WARP_UNIT
    group_bytes = -(-(use.local_bytes + LOCAL_RESERVED) // LOCAL_UNIT) * LOCAL_UNIT
    groups = min(warps // group_warps, limits.groups, limits.warps // group_warps, limits.local_bytes // group_bytes)
    return round(groups * group_warps / limits.warps, 3)


def measure_amd(tools: dict[str, Path], files: Sequence[str], options: list[str], devices: list[str]) -> Found:
    """Of each device and kernel."""
    found = {}
    for device in devices:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={device}"]
            module = compile_module(tools, files, options, target, folder)
            code = folder / "kernels.s"
            _run(tools["llc"], "-O3", f"-mcpu={device}", module, "-o", code)
            found[device] = read_amd(code.read_text(), AMD[device])
    return found


def read_amd(code: str, waves: int) -> dict[str, Usage]:
    """Of each kernel in the comments and the metadata of the compiler's code."""
    found = {}
    for kernel in KERNELS:
        if f"\n{kernel}:" not in code:
            continue
        comments = code.split(f"\n{kernel}:")[1]
        records = code.split("\namdhsa.kernels:")[1].split("\n  - .")
        metadata = next(record for record in records if f".name:           {kernel}\n" in record)

        def number(label: str, text: str) -> int:
            return int(re.search(rf"{label}:\s+(\d+)", text)[1])

        found[kernel] = Usage(
            number(r"\.vgpr_count", metadata),
            4 * number(r"\.vgpr_spill_count", metadata),
            number(r"\.private_segment_fixed_size", metadata),
            number(r"\.group_segment_fixed_size", metadata),
            round(number("; Occupancy", comments) / waves, 3),
        )
    return found


def list_programs(layout: Layout) -> dict[str, tuple[tuple[str, ...], list[str]]]:
    """The files and options of what a GPU runs: `traverse` for each set of instructions, and the other kernels."""
    options = [*BUILD_OPTIONS, *([] if layout.double_sums else [FLOAT_OPTION]), *layout.macros()]
    files = dict.fromkeys(OPCODE_SETS, (*COMMON_FILES, *TRAVERSE_FILES))
    programs = {name: (own, [*options, opcode_macro(name)]) for name, own in files.items()}
    tables = TABLE_FILES if layout.has_double else TABLE_FILES[1:]
    return programs | {"tables": ((*COMMON_FILES, *tables), options)}


def measure_case(tools: dict[str, Path], case: Case, devices: list[str]) -> Found:
    """Of each device and kernel of `list_programs`."""
    found: Found = {device: {} for device in devices}
    for maker, known in (("NVIDIA", NVIDIA), ("AMD", AMD)):
        wanted = [device for device in devices if device in known]
        layout = case.layout(maker)
        for name, (files, options) in list_programs(layout).items() if wanted else ():
            if maker == "NVIDIA":
                made = measure_nvidia(tools, layout, files, options, wanted)
            else:
                made = measure_amd(tools, files, options, wanted)
            for device, kernels in made.items():
                found[device] |= {f"{k} {name}" if k == "traverse" else k: use for k, use in kernels.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", help='only those whose name contains this, such as "4 x 4 double"')
    parser.add_argument("--device", action="append", choices=[*NVIDIA, *AMD], help="only these devices")
    parser.add_argument("--output", type=Path, help="file for the results")
    options = parser.parse_args()
    devices = options.device or [*NVIDIA, *AMD]
    tools, missing = find_tools(devices)
    if missing:
        parser.error(missing)
    cases = [case for case in CASES if any(text in case.name for text in options.case or [""])]
    results: dict[str, Any] = {}
    for case in cases:
        results[case.name] = {}
        for device, kernels in measure_case(tools, case, devices).items():
            results[case.name][device] = {kernel: list(astuple(use)) for kernel, use in kernels.items()}
            for kernel, use in kernels.items():
                where = f"{case.name:24} {device:8} {kernel:20}"
                memory = f"{use.spilled_bytes:4} spilled, {use.stack_bytes:4} stack, {use.local_bytes:5} local"
                print(f"{where} {use.registers:3} registers, {memory}, occupancy {use.occupancy:.0%}", flush=True)
    if options.output:
        save(options.output, tools, results)


def find_versions(tools: dict[str, Path]) -> dict[str, str]:
    """Of the compilers, as they tell it."""
    versions = {name: _run(tools[name], "--version") for name in ("clang", "ptxas") if name in tools}
    first = {"clang": 0, "ptxas": -1}
    return {name: text.strip().splitlines()[first[name]] for name, text in versions.items()}


def save(path: Path, tools: dict[str, Path], results: dict[str, Any]) -> None:
    """Write a file with a line for each configuration and device."""
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    head = {"date": date, "tools": find_versions(tools), "columns": [f.name for f in fields(Usage)]}
    rows = [f'  "{case}, {device}": {json.dumps(use)}' for case, of in results.items() for device, use in of.items()]
    path.write_text(json.dumps(head, indent=1)[:-2] + ',\n "usage": {\n' + ",\n".join(rows) + "\n }\n}\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
