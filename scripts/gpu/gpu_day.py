"""Test and measure plltool on the GPU of this machine; `gpu_day.sh` sets up an environment and calls this.

    python scripts/gpu/gpu_day.py [--out FOLDER] [--kind gpu|cpu] [--limit SECONDS] [--small] [PART ...]

Each part writes FOLDER/PART.json after every step, so that nothing is lost if it is stopped; at the end all parts are
merged into FOLDER/gpu_day.json. A part that takes longer than its limit is stopped, and the next one begins. Without a
device of the kind wanted there is only FOLDER/system.json, which says what was looked for, and the exit status is 3.

Parts:
- system: drivers that were looked for and found, devices, limits, the compiler's log, commit
- tests: the tests of engines in several processes, on the device and on no other; what they print is in tests.txt
- compare: searches on the device and on numpy, which must end alike, on four alignments
- bench: throughput for 4, 20 and 61 states, 32 and 64 lanes, with 4, 8 and 16 work-groups for each compute unit
- levels: the same in one launch and by levels, for 64 and 400 taxa and few patterns
- experiments: those of the papers, for docs/experiments.md; see `experiments.py`
- wide: 100 taxa, 100,000 and 1,000,000 patterns
- gradients: derivatives of all branches of 50 to 800 taxa
- searches: fast and default searches, seconds and lnL; and by processes that share the device

`--kind cpu --small` rehearses all of it on an OpenCL device of the CPU.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "scripts" / "benchmarks"
COMMAND = "from plltool.cli import main; main(prog_name='plltool')"
LIMITS = {  # seconds
    "system": 120,
    "tests": 360,
    "compare": 150,
    "bench": 120,
    "levels": 120,
    "experiments": 300,
    "wide": 120,
    "gradients": 60,
    "searches": 180,
}
DEVICE_FACTS = (
    "name",
    "version",
    "driver_version",
    "max_compute_units",
    "max_clock_frequency",
    "max_work_group_size",
    "local_mem_size",
    "global_mem_size",
    "max_mem_alloc_size",
    "max_constant_buffer_size",
    "extensions",
)
NO_DEVICE = 3  # exit status
MOST_TEST_PROCESSES = 8  # at the same time on one device

Step = tuple[str, Callable[[], Any]]  # what the figures are called, and what makes them


def plltool(*arguments: str, constants: Mapping[str, float] | None = None) -> str:
    """The output of a command of plltool, with other values of constants of `plltool.engine.opencl`, by MODULE.NAME."""
    changes = "".join(f"{name}; {name} = {value}; " for name, value in (constants or {}).items())
    return run("-P", "-c", f"from plltool.engine.opencl import engine, schedule; {changes}{COMMAND}", *arguments)


def run(*arguments: str) -> str:
    """The output of Python with these arguments."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


class Day:
    """What the parts share: the device, where results go, and how large the data are."""

    def __init__(self, out: Path, kind: str, small: bool):
        self.out = out
        self.kind = kind
        self.small = small
        self.data = ROOT / "data"

    # --- parts: the steps of each ---------------------------------------------------------------------------

    def system(self) -> Iterator[Step]:
        yield "machine", lambda: {"system": platform.platform(), "cores": os.cpu_count()}
        yield "drivers", find_drivers
        yield "nvidia-smi", lambda: run_if_there("nvidia-smi")
        yield "devices", lambda: describe_devices(self.kind)
        yield "plltool devices", lambda: plltool("devices").splitlines()
        yield "compiler", lambda: compile_log(self.kind)

    def tests(self) -> Iterator[Step]:
        yield "engine", lambda: run_tests(self.kind, self.out, [] if self.small else ["-m", ""])

    def compare(self) -> Iterator[Step]:
        for name in ("primates.phy", "simulated.fasta", "hard.fasta"):
            yield name, lambda name=name: self._compare(self.data / name)
        yield "proteins", lambda: self._compare(self._simulate("proteins", "LG+G4{0.7}", 400))

    def bench(self) -> Iterator[Step]:
        for states in (4, 20, 61):
            shape = f"64x{(1000 if states == 4 else 200) if self.small else (100000 if states == 4 else 20000)}"
            for lanes in (32, 64):
                yield f"{states} states, {lanes} lanes", lambda a=(states, shape, lanes): self._bench(*a)
            for groups in (4, 8, 16):
                change = {"engine.GPU_GROUPS_PER_UNIT": groups}
                yield f"{states} states, {groups} groups", lambda a=(states, shape, 32, change): self._bench(*a)

    def levels(self) -> Iterator[Step]:
        sizes = (2000,) if self.small else (2000, 16000, 64000)
        shapes = {4: [f"{taxa}x{n}" for taxa in (64, 400) for n in sizes], 20: [f"64x{n}" for n in sizes]}
        for states, shape in ((states, shape) for states, own in shapes.items() for shape in own):
            for what, share in (("one launch", 0), ("by levels", 1e9)):
                change = {"schedule.GPU_LEVEL_SHARE": share, "schedule.GPU_LEVEL_SPANS": 1e9}
                yield f"{states} states, {shape}, {what}", lambda a=(states, shape, None, change): self._bench(*a)

    def experiments(self) -> Iterator[Step]:
        for name in ("sizes", "searches", "states", "columns", "taxa", "gradients", "chains"):
            yield name, lambda name=name: self._experiment(name)

    def wide(self) -> Iterator[Step]:
        for patterns in (2000,) if self.small else (100_000, 1_000_000):
            yield f"{patterns} patterns", lambda shape=f"100x{patterns}": self._bench(4, shape)

    def gradients(self) -> Iterator[Step]:
        for taxa in (50, 100) if self.small else (50, 100, 200, 400, 800):
            yield f"{taxa} taxa", lambda shape=f"{taxa}x2000": self._bench(4, shape)

    def searches(self) -> Iterator[Step]:
        for name in ("primates.phy", "simulated.fasta", "hard.fasta"):
            for effort in ("fast", "default"):
                yield f"{name}, {effort}", lambda a=(self.data / name, effort): self._search(*a)
        sizes = ((100, 1000), (500, 1200), (100, 100_000))[: 1 if self.small else 3]
        for taxa, sites in sizes:
            yield f"{taxa} taxa, {sites:,} sites, fast", lambda a=(taxa, sites): self._search(self._evolve(*a), "fast")
        for n in ("1", "4", "8"):  # processes that share the device
            more = ("default", "--starts", "8", "--workers", n)
            yield f"8 start trees, {n} workers", lambda more=more: self._search(self._evolve(*sizes[:2][-1]), *more)

    # --- steps ----------------------------------------------------------------------------------------------

    def _bench(
        self, states: int, shape: str, lanes: int | None = None, change: Mapping[str, float] | None = None
    ) -> Any:
        """The rows of `plltool bench`."""
        file = self.out / "bench.tmp"
        options = ["--vw", str(lanes)] if lanes else []
        if self.small:
            options += ["--repetitions", "1"]
        options += ["--device", self.kind, "--output", str(file), "--redo", "--quiet"]
        plltool("bench", "--states", str(states), "--shape", shape, *options, constants=change)
        found = json.loads(file.read_text())
        file.unlink()
        return {"device": found["device"], "reason": found["reason"], "rows": found["rows"]}

    def _compare(self, alignment: Path) -> Any:
        """How searches on the device and on numpy differ."""
        options = ["--a", self.kind, "--b", "numpy", "--effort", "fast", "--json", "--quiet"]
        return json.loads(plltool("compare", str(alignment), *options))

    def _search(self, alignment: Path, effort: str, *more: str) -> Any:
        """Of the second of two searches, since the first compiles kernels: seconds of the process and of its search."""
        prefix = self.out / "search.tmp"
        options = ["--effort", effort, "--seed", "1", "--device", self.kind, "--profile", *more]
        for _ in range(2):
            began = time.perf_counter()
            plltool("search", str(alignment), *options, "--prefix", str(prefix), "--redo", "--quiet")
            seconds = time.perf_counter() - began
        record = json.loads(prefix.with_suffix(".tmp.json").read_text())
        for file in self.out.glob("search.tmp*"):
            file.unlink()
        found = {name: record[name] for name in ("lnl", "device", "n_patterns")}
        found |= {name: record["counters"][name] for name in ("launches", "device_seconds")}
        return found | {"seconds": round(seconds, 2), "search_seconds": record["seconds"]}

    def _simulate(self, name: str, model: str, sites: int) -> Path:
        """An alignment that evolves on the tree of data/simulated.nwk."""
        file = self.out / f"{name}.fasta"
        options = ["--tree", str(self.data / "simulated.nwk"), "--model", model, "--sites", str(sites)]
        plltool("simulate", *options, "--output", str(file), "--redo")
        return file

    def _experiment(self, name: str) -> list[dict[str, Any]]:
        """The rows of an experiment of a paper."""
        file = self.out / f"experiment_{name}.json"
        options = ["--device", self.kind, "--output", str(file)]
        options += ["--first", "2", "--repetitions", "1"] if self.small else ["--repetitions", "3"]
        run(str(BENCHMARKS / "experiments.py"), name, *options)
        rows: list[dict[str, Any]] = json.loads(file.read_text())[name]
        return rows

    def _evolve(self, taxa: int, sites: int) -> Path:
        """An alignment of so many simulated sequences, on a tree of its own."""
        prefix = self.out / f"evolved{taxa}x{sites}"
        sizes = ["--taxa", str(taxa), "--sites", str(sites), "--seed", "1", "--out", str(prefix)]
        run(str(BENCHMARKS / "simulate_alignment.py"), *sizes)
        return prefix.with_suffix(".fasta")


# --- the machine ------------------------------------------------------------------------------------------------


def offer_driver(out: Path) -> None:
    """Tell OpenCL loaders of the vendors' libraries that no ``.icd`` file names; a user's OCL_ICD_VENDORS stands."""
    if os.environ.get("OCL_ICD_VENDORS"):
        return
    registered = [file.read_text().strip() for file in Path("/etc/OpenCL/vendors").glob("*.icd")]
    missing = [path for path in find_drivers()["found"] if Path(path).name not in map(os.path.basename, registered)]
    if missing:
        folder = out / "vendors"
        folder.mkdir(exist_ok=True)
        for number, library in enumerate([*registered, *missing]):
            (folder / f"{number}.icd").write_text(library + "\n")
        os.environ["OCL_ICD_VENDORS"] = str(folder)


def find_drivers() -> dict[str, Any]:
    """Vendors' OpenCL libraries on this machine, and where they were looked for."""
    from plltool.engine.opencl.environment import GPU_LIBRARIES, LIBRARY_FOLDERS, find_gpu_drivers, registered_libraries

    return {
        "found": sorted(map(str, find_gpu_drivers())),
        "libraries": list(GPU_LIBRARIES),
        "folders": LIBRARY_FOLDERS,
        "registered": sorted(registered_libraries()),
        "OCL_ICD_VENDORS": os.environ.get("OCL_ICD_VENDORS"),
    }


def list_kind(kind: str) -> list[Any]:
    """The usable OpenCL devices of a kind."""
    from plltool.engine.opencl.device import list_devices
    from plltool.errors import DeviceError

    try:
        devices, _ = list_devices()
    except DeviceError:
        return []
    return [device for device in devices if device.kind == kind]


def describe_devices(kind: str) -> list[dict[str, Any]]:
    """Names and limits of the devices of a kind; raises RuntimeError if there is none."""
    devices = list_kind(kind)
    if not devices:
        raise RuntimeError(f"no OpenCL device of kind {kind}")
    return [{name: getattr(device.handle, name) for name in DEVICE_FACTS} for device in devices]


def compile_log(kind: str) -> Any:
    """What the compiler says of the kernels for 4, 20 and 61 states, and seconds that it takes."""
    import pyopencl as cl

    from plltool.engine.contract import OPCODE_SETS
    from plltool.engine.layout import DataShape, choose_layout
    from plltool.engine.opencl.kernels import build_traverse

    logs = {}
    for states in (4, 20, 61):
        device = list_kind(kind)[0]
        context = cl.Context([device.handle])
        layout = choose_layout(device, DataShape(states, 4, 20, (1000,), 2 * states))
        for name in OPCODE_SETS:
            began = time.perf_counter()
            program = build_traverse(context, layout, name)
            log = program.get_build_info(device.handle, cl.program_build_info.LOG)
            seconds = round(time.perf_counter() - began, 2)
            logs[f"{states} states, {name}"] = {"seconds": seconds, "log": log[-4000:]}
    return logs


def run_if_there(command: str) -> str | None:
    """The output of a command, or None if it is not there."""
    try:
        return subprocess.run([command], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None


def run_tests(kind: str, out: Path, options: list[str]) -> dict[str, Any]:
    """The tests of engines, which take the first OpenCL device with double precision: it must be of this kind.

    What they print is in `out`, also if they are stopped.
    """
    from plltool.engine.opencl.device import list_devices

    first = next(device for device in list_devices()[0] if device.has_double)
    if first.kind != kind:
        raise RuntimeError(
            f"the tests would take {first.name} of kind {first.kind}, expected {kind}: set OCL_ICD_VENDORS"
        )
    n = min(MOST_TEST_PROCESSES, os.cpu_count() or 1)
    command = [sys.executable, "-um", "pytest", "-vv", "-p", "no:cacheprovider", "-n", str(n), "--require-opencl"]
    log = out / "tests.txt"
    with log.open("w") as file:
        done = subprocess.run([*command, "--durations=10", *options, "tests/engine"], cwd=ROOT, stdout=file)
    output = log.read_text().splitlines()
    if done.returncode:
        raise RuntimeError("\n".join(output[-80:]))
    return {"device": first.name, "output": output[-15:]}


# --- running ----------------------------------------------------------------------------------------------------


def run_part(day: Day, part: str) -> bool:
    """Run the steps of a part and save its file after each; whether all went well."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    record: dict[str, Any] = {
        "part": part,
        "date": datetime.now(UTC).isoformat("T", "seconds"),
        "commit": commit or None,
        "steps": {},
    }
    well = True
    for name, step in getattr(day, part)():
        began = time.perf_counter()
        try:
            found = {"found": step()}
        except Exception as problem:  # a step that fails must not take the others with it
            found, well = {"error": f"{type(problem).__name__}: {problem}"}, False
        record["steps"][name] = found | {"seconds": round(time.perf_counter() - began, 2)}
        (day.out / f"{part}.json").write_text(json.dumps(record, indent=1) + "\n")
        print(f"{part}: {name}: {'error: ' + found['error'][:200] if 'error' in found else 'done'}", flush=True)
    return well


def run_parts(parts: list[str], options: argparse.Namespace) -> int:
    """Run parts as processes, each within its limit, and merge what they leave."""
    failed = []
    for part in parts:
        limit = options.limit or LIMITS[part]
        command = [sys.executable, __file__, "--out", options.out, "--kind", options.kind, "--run", part]
        process = subprocess.Popen([*map(str, command), *["--small"] * options.small], start_new_session=True)
        try:
            failed += [part] * (process.wait(limit) != 0)
        except subprocess.TimeoutExpired:
            failed.append(part)
            print(f"{part}: stopped after {limit} s", flush=True)
        finally:
            with contextlib.suppress(ProcessLookupError):  # all that it has started has ended
                os.killpg(process.pid, signal.SIGKILL)
        if part == "system" and not list_kind(options.kind):
            print(f"no OpenCL device of kind {options.kind}; {options.out / 'system.json'} says what was looked for")
            return NO_DEVICE
    merged = {
        file.stem: json.loads(file.read_text()) for file in sorted(options.out.glob("*.json")) if file.stem in LIMITS
    }
    (options.out / "gpu_day.json").write_text(json.dumps(merged, indent=1) + "\n")
    print(f"results: {options.out / 'gpu_day.json'}; parts with errors: {', '.join(failed) or 'none'}")
    return int(bool(failed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="some of the parts; all by default")
    parser.add_argument("--out", type=Path, default=Path("gpu_day"), metavar="FOLDER")
    parser.add_argument("--kind", choices=("gpu", "cpu"), default="gpu", help="kind of device to test")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="of each part, in place of its own")
    parser.add_argument("--small", action="store_true", help="use small data: a rehearsal")
    parser.add_argument("--run", choices=LIMITS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(LIMITS))
    if unknown:
        parser.error(f"found {', '.join(unknown)}, expected some of: {', '.join(LIMITS)}")
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.run:
        sys.exit(not run_part(Day(options.out, options.kind, options.small), options.run))
    offer_driver(options.out)
    sys.exit(run_parts(options.parts or list(LIMITS), options))


if __name__ == "__main__":
    main()
