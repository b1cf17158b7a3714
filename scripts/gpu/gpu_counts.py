#!/usr/bin/env python3
"""Count what instructions and requests ask of a GPU, and predict how long a search takes on several devices.

    python scripts/gpu/gpu_counts.py [--device auto] [--library liboclgrind-rt-icd.so] [--output FILE.json]

Nothing is timed, and no GPU is needed. Operations and loads from local memory are counted by Oclgrind, a simulated
device (Debian's package oclgrind), which runs each instruction in the layout of a GPU: in double precision, with all
components. An operation is an addition, multiplication or division of floating-point numbers; a logarithm is made of
them. Bytes are those that must come from and go to the device's memory: CLAs, their counts and the codes of tips, and P
matrices and the like once for each block of 64 or 32 patterns.

Launches, waits and instructions of requests are counted on `--device`, in the layout of a GPU, once with a launch for
each program and once by levels, which a GPU of `--units` multiprocessors runs where patterns are few. A wait is a copy
to the host, which ends once all that was launched before it has ended. The tree is random and the data evolve along it.

The prediction takes the longest of three times for each instruction: that of its bytes, its operations and its loads
from local memory, at the peaks of data sheets (`DEVICES`). Local memory serves one load of 32 work-items a cycle.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np
from find_races import find_library

import plltool
from plltool.analyses.machine.bench.items import FixedModel, Shape, encode_states, make_data
from plltool.arrays import IntArray
from plltool.constants import MASK_STATES
from plltool.engine import program as prog
from plltool.engine.base import Engine, EngineData
from plltool.engine.contract import DERIVATIVE_VALUES, TRIPLET_VALUES, InstructionWord, Opcode
from plltool.engine.layout import SCALE_BYTES, DataShape, Layout
from plltool.engine.opencl import engine as opencl_engine
from plltool.engine.opencl.arrays import DeviceArrays
from plltool.engine.requests import Counters
from plltool.engine.select import Slots, make_engine
from plltool.hardware import Hardware
from plltool.model.model import Model
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.run.memory import search_slots
from plltool.tree.moves import random_tree
from plltool.tree_search.climb import find_moves

SHAPES = {"4 x 4": (4, 4, 64), "20 x 4": (20, 4, 32), "61 x 1": (61, 1, 32)}  # states, components, lanes of a GPU
TIP = ~0  # of one state in each pattern
LANES, RADIUS, SITES = 64, 10, 100_000
MOST_VALUES = 61 * 61  # of an instruction
LAUNCH, WAIT = 5e-6, 20e-6  # seconds, assumed


@dataclass(frozen=True)
class Device:
    """Peaks by the vendor's data sheet."""

    bytes_per_second: float
    operations_per_second: float  # in double precision
    units: int
    clock: float

    @property
    def local_loads_per_second(self) -> float:
        return self.units * 32 * self.clock


DEVICES = {
    "H100 SXM": Device(3.35e12, 34e12, 132, 1.98e9),
    "H200": Device(4.8e12, 34e12, 132, 1.98e9),
    "MI300X": Device(5.3e12, 81.7e12, 304, 2.1e9),
    "RTX 5090": Device(1.79e12, 1.64e12, 170, 2.41e9),
}


@dataclass(frozen=True)
class Instruction:
    """An instruction on CLAs 0, 1 and 2, and what it reads and writes."""

    rows: IntArray
    n_values: int = 0
    clas: int = 2  # read and written
    tips: int = 0
    matrices: int = 1  # P matrices, or those of the eigenbasis


NEWVIEWS = ("NEWVIEW, two CLAs", "NEWVIEW, a tip and a CLA", "NEWVIEW, two tips")  # by the number of tips
INSTRUCTIONS = {
    "PROPAGATE": Instruction(prog.propagate(2, 0, 4)),
    NEWVIEWS[0]: Instruction(prog.newview(2, 0, 4, 1, 5), clas=3, matrices=2),
    NEWVIEWS[1]: Instruction(prog.newview(2, TIP, 4, 1, 5), clas=2, tips=1, matrices=2),
    NEWVIEWS[2]: Instruction(prog.newview(2, TIP, 4, ~1, 5), clas=1, tips=2, matrices=2),
    "EVALUATE": Instruction(prog.evaluate(0, 0, 1, 4), 1),
    "DERIVATIVE": Instruction(prog.derivative(0, 0, 1, 4), DERIVATIVE_VALUES, matrices=2),
    "INSERT": Instruction(prog.insert(0, 0, 4, 1, 5, 2), 1, clas=3, matrices=2),
    "TRIPLET": Instruction(prog.triplet(0, 0, 4, 1, 5, 2, 6), TRIPLET_VALUES, clas=3, matrices=9),
    "RATE_MATRIX_GRADIENT": Instruction(prog.rate_matrix_gradient(0, 0, 1, 4), MOST_VALUES, matrices=4),
    "MASS_GRADIENT": Instruction(prog.mass_gradient(0, 0, 1, 4), MOST_VALUES),
}
MAKE_CLAS = np.concatenate([prog.newview(0, TIP, 0, ~1, 1), prog.newview(1, ~2, 2, ~3, 3), prog.newview(2, 0, 4, 1, 5)])


def count_bytes(instruction: Instruction, layout: Layout) -> float:
    """Of the device's memory, for each pattern."""
    cla = layout.n_components * (layout.n_states * layout.real.itemsize + SCALE_BYTES)
    tables = instruction.matrices * layout.n_components * layout.matrix_values * layout.real.itemsize
    return instruction.clas * cla + instruction.tips * layout.code.itemsize + tables / layout.vw


def open_engine(name: str) -> Engine:
    """An engine in the layout of a GPU, one block of patterns, on the only device that this process sees."""
    n_states, n_components, lanes = SHAPES[name]
    rng = np.random.default_rng(n_states)
    components, _, states = make_data(Shape(5, lanes), n_states, rng)
    kept = {
        field: getattr(components, field)[:n_components] for field in ("eigenvalues", "right", "left", "frequencies")
    }
    weights = np.full(n_components, 1 / n_components)
    components = replace(components, **kept, rates=components.rates[:n_components], weights=weights)
    codes, sets = encode_states(states, n_states)
    data = EngineData(codes, np.ones(lanes), sets)
    shape = DataShape(n_states, n_components, 5, (lanes,), data.n_codes)
    with wanted_groups(1):  # one launch for a program
        engine, _ = make_engine(data, shape, Slots(3), Hardware("0:0", vw=lanes))
    engine.set_model([components])
    return engine


def run_instructions() -> None:
    """Run each instruction once and three times, for every shape: what Oclgrind counts."""
    for name in SHAPES:
        with open_engine(name) as engine:
            for instruction in INSTRUCTIONS.values():
                for times in (1, 3):
                    program = np.concatenate([MAKE_CLAS] + [instruction.rows] * times)
                    engine.execute(prog.Request(program, instruction.n_values, keep=False), np.full(7, 0.1))


def read_histograms(text: str) -> list[tuple[int, int]]:
    """Floating-point operations and loads from local memory of each launch of `traverse`, as Oclgrind prints them."""
    found = []
    for part in text.split("Instructions executed for kernel '")[1:]:
        kernel, _, histogram = part.partition("'")
        if kernel != "traverse":
            continue
        counts = {
            what: int(number) for number, what in re.findall(r"^ +(\d+) - (.*?)(?: \(|$)", histogram, re.MULTILINE)
        }
        by_name = {what.split("(")[0]: count for what, count in counts.items()}
        adds = sum(by_name.get(name, 0) for name in ("fadd", "fsub", "fmul", "fdiv"))
        operations = adds + 2 * by_name.get("call llvm.fmuladd.f64", 0)
        found.append((operations, by_name.get("load local", 0)))
    return found


def count_instructions(library: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Of each shape and instruction: bytes, operations and loads from local memory for each pattern."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "oclgrind.icd").write_text(f"{library}\n")
        variables = {"OCL_ICD_VENDORS": folder, "OCLGRIND_INST_COUNTS": "1", "PYOPENCL_NO_CACHE": "1"}
        command = [sys.executable, __file__, "--run-instructions"]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)
    histograms = read_histograms(done.stdout)
    expected = 2 * len(SHAPES) * len(INSTRUCTIONS)
    if len(histograms) != expected:
        raise SystemExit(f"found {len(histograms)} histograms of Oclgrind, expected {expected}")
    found: dict[str, dict[str, dict[str, float]]] = {}
    pairs = zip(histograms[::2], histograms[1::2], strict=True)
    for name, (n_states, n_components, lanes) in SHAPES.items():
        layout = make_layout(n_states, n_components, lanes)
        found[name] = {}
        for what, instruction in INSTRUCTIONS.items():
            once, thrice = next(pairs)
            operations, loads = ((b - a) / 2 / lanes for a, b in zip(once, thrice, strict=True))
            n_bytes = count_bytes(instruction, layout)
            found[name][what] = {"bytes": n_bytes, "operations": operations, "local_loads": loads}
    return found


def make_layout(n_states: int, n_components: int, lanes: int) -> Layout:
    """As far as bytes depend on it."""
    n_codes = n_states if n_states > MASK_STATES else 0
    return Layout(n_states, n_components, 5, (lanes,), lanes, lane_per_item=True, n_codes=n_codes)


def seconds_of(use: dict[str, float], device: Device) -> dict[str, float]:
    """For one pattern, by each of the three limits."""
    return {
        "memory": use["bytes"] / device.bytes_per_second,
        "arithmetic": use["operations"] / device.operations_per_second,
        "local memory": use["local_loads"] / device.local_loads_per_second,
    }


def bound(use: dict[str, float]) -> dict[str, dict[str, Any]]:
    """What bounds an instruction on each device, and 10^9 patterns a second there."""
    found = {}
    for name, device in DEVICES.items():
        seconds = seconds_of(use, device)
        limit = max(seconds, key=lambda key: seconds[key])
        found[name] = {"limit": limit, "billions": 1e-9 / seconds[limit]}
    return found


def name_of(row: IntArray) -> str:
    """Of an instruction in `INSTRUCTIONS`."""
    opcode = row[InstructionWord.OPCODE]
    if opcode == Opcode.NEWVIEW:
        return NEWVIEWS[int(row[InstructionWord.A] < 0) + int(row[InstructionWord.B] < 0)]
    return next(name for name, number in vars(Opcode).items() if name.isupper() and number == opcode)


def spy(owner: type, method: str) -> Any:
    """A patch that keeps the calls of a method, which does what it always does."""
    return mock.patch.object(owner, method, autospec=True, side_effect=getattr(owner, method))


def measure(counters: Callable[[], Counters], ask: Callable[[], object]) -> dict[str, Any]:
    """What a call adds to the counters, the copies from the device, and how often each instruction is executed."""
    launches, asked = counters().launches, sum(counters().requests.values())
    with spy(DeviceArrays, "receive") as receive, spy(Counters, "count") as count:
        ask()
    opcodes = Counter(name_of(row) for call in count.call_args_list for row in call.args[2])
    return {
        "requests": sum(counters().requests.values()) - asked,
        "launches": counters().launches - launches,
        "waits": receive.call_count,
        "instructions": sum(opcodes.values()),
        "by_instruction": opcodes,
    }


def rounds(likelihood: TreeLikelihood) -> dict[str, Callable[[], object]]:
    """What is counted besides a search, by name."""
    return {
        "lnL": likelihood.lnl,
        "all branches": likelihood.all_derivatives,
        "gradient of the rate matrix": likelihood.rate_matrix_gradient,
        "SPR round": lambda: find_moves(likelihood, likelihood.lnl(), RADIUS),
        "smoothing": lambda: smooth(likelihood),
    }


def hardware(device: str) -> Hardware:
    """A device in the layout of a GPU."""
    return Hardware(device, vw=LANES, threads=1)


def wanted_groups(number: int) -> Any:
    """Engines in the layout of a GPU want so many groups of a CPU device with one thread."""
    return mock.patch.object(opencl_engine, "GPU_GROUPS_PER_UNIT", number)


def count_rounds(n_taxa: int, n_sites: int, device: str) -> dict[str, dict[str, Any]]:
    """Of each round; P matrices are made anew for it."""
    shape, found = Shape(n_taxa, n_sites), {}
    components, tree, states = make_data(shape, 4, np.random.default_rng(n_taxa))
    data = EngineData(encode_states(states, 4)[0], np.ones(n_sites))
    engine, _ = make_engine(data, DataShape(4, 4, *shape[:1], (n_sites,)), search_slots(n_taxa), hardware(device))
    with engine:
        likelihood = TreeLikelihood(tree, [cast(Model, FixedModel(components))], engine)
        lengths = likelihood.tree.lengths.copy()
        for number, (name, ask) in enumerate(rounds(likelihood).items()):
            likelihood.tree.lengths[:] = lengths * (1 + 1e-6 * number)
            found[name] = measure(lambda: engine.counters, ask)
    return found


def count_search(n_taxa: int, n_sites: int, device: str) -> dict[str, Any]:
    """Of a fast search for the tree of simulated sequences."""
    rng = np.random.default_rng(n_taxa)
    tree = random_tree([f"t{number}" for number in range(n_taxa)], rng)
    tree.lengths[:] = rng.exponential(0.1, tree.lengths.shape)
    data = plltool.simulate(tree, "GTR{1/4/1/1/4/1}+FE+G4{0.5}", n_sites, seed=1).as_sequences()
    done = Counters()

    def search() -> None:
        nonlocal done
        settings = {"device": device, "threads": 1, "vw": LANES, "workers": 1}
        counters = plltool.search(data, "GTR+FO+G4", effort="fast", seed=1, **settings).counters
        done = Counters(launches=counters["launches"], requests=counters["requests"])

    return measure(lambda: done, search)


def predict(counts: dict[str, Any], uses: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Seconds for `SITES` patterns of 4 states on each device: at its peaks, and of launches and waits."""
    found = {}
    for name, device in DEVICES.items():
        work = counts["by_instruction"].items()
        seconds = sum(number * max(seconds_of(uses[what], device).values()) for what, number in work)
        calls = counts["launches"] * LAUNCH + counts["waits"] * WAIT
        found[name] = {"peak": seconds * SITES, "half": 2 * seconds * SITES, "calls": calls}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="where rounds are counted")
    parser.add_argument("--taxa", type=int, default=100)
    parser.add_argument("--sites", type=int, default=1000, help="sites that are simulated")
    parser.add_argument("--units", type=int, default=132, help="multiprocessors, 132 of an H100")
    parser.add_argument("--library", type=Path, help="Oclgrind's library for OpenCL loaders")
    parser.add_argument("--output", type=Path, help="file for the results")
    parser.add_argument("--run-instructions", action="store_true", help="run them on the first device and end")
    options = parser.parse_args()
    if options.run_instructions:
        return run_instructions()
    uses = count_instructions(find_library(parser, options.library))
    groups = options.units * opencl_engine.GPU_GROUPS_PER_UNIT
    sizes = options.taxa, options.sites, options.device
    with wanted_groups(1):
        found = count_rounds(*sizes) | {"search": count_search(*sizes)}
    with wanted_groups(groups):
        levels = count_rounds(*sizes) | {"search": count_search(*sizes)}
    results = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "taxa": options.taxa,
        "lanes": LANES,
        "units": options.units,
        "devices": {name: vars(device) for name, device in DEVICES.items()},
        "instructions": uses,
        "bounds": {shape: {what: bound(use) for what, use in of.items()} for shape, of in uses.items()},
        "rounds": found,
        "by levels": levels,
        "seconds": {what: predict(counts, uses["4 x 4"]) for what, counts in found.items()},
    }
    text = json.dumps(results, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
