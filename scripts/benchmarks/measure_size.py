"""Measure what large data take: seconds, resident memory, and how much memory was foretold.

    python scripts/benchmarks/measure_size.py FOLDER [--task TASK ...] [--memory SIZE] [--limit SECONDS]
        [--step STEP ...] --output FILE.json

Task "read" reads and compresses an alignment of 1,000 taxa and a million sites. Task "taxa" evaluates 50,000 taxa of
1,500 sites on their true tree, as it is and with lengths and model optimised; task "sites" does so with 1,000 taxa of
100,000 sites, and searches. Task "programs" lets plltool, IQ-TREE 2, RAxML 8 and FastTree 2 (Debian's; those that are
on the PATH) begin a fast search of 1,000 taxa of 10,000 sites.

Every figure is that of a process of its own, on one thread (RAxML: two, its least): CPU seconds (user and system), wall
seconds, its largest resident memory, and for plltool what it held on the device and what it had foretold. A process
that takes more processor seconds than --limit gets a Ctrl-C: its figures are marked as stopped, and say how far it had
come. A search of plltool then still ends with its best tree; whatever has not ended at twice the limit is killed.

The alignments of "taxa", "sites" and "programs" are those of `simulate_alignment.py --seed 1 --mean-length 0.03`; that
of "read" is split into two again and again, and each half changes at one site of fifty. They stay in FOLDER, and what
FILE.json holds of other tasks, and of other steps with --step, is kept.
"""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from compare_large import make_apart, prepare
from rivals import IQTREE, RAXML, commit, cpu_seconds, is_there, load, make_parser, save, today

TASKS = {  # taxa, sites
    "read": (1000, 1_000_000),
    "taxa": (50_000, 1500),
    "sites": (1000, 100_000),
    "programs": (1000, 10_000),
}
CHANGED_SHARE = 0.02  # of the sites, between an ancestor and its child
STEPS = {"taxa": ("fixed", "foretold", "optimised"), "sites": ("fixed", "foretold", "optimised", "search")}
MODEL = "GTR+F+G4"
PAUSE = 0.5  # seconds between two looks at a process

Figures = tuple[str, dict[str, Any]]  # what was measured, and what it took

READ = """
import sys
from plltool.model.partition import without_duplicates
from plltool.alignment.patterns import compress
from plltool.run.inputs import resolve_inputs
data, _ = resolve_inputs(sys.argv[1], sys.argv[2])
print(compress(without_duplicates(data)[0].alignments[0]).n_patterns)
"""

FORETELL = """
import json, sys
from plltool.alignment.patterns import compress
from plltool.hardware import Hardware, parse_size
from plltool.run.inputs import resolve_inputs
from plltool.run.memory import evaluation_slots, plan_memory
data, models = resolve_inputs(sys.argv[1], sys.argv[2])
parts = [compress(part) for part in data.alignments]
hardware = Hardware(memory=parse_size(sys.argv[3]), threads=1)
print(plan_memory(parts, models, hardware, evaluation_slots(data.n_taxa)).n_bytes)
"""


def write_split_sequences(path: Path, n_taxa: int, n_sites: int) -> None:
    """A FASTA alignment of `n_taxa` sequences, which split into two until there are enough."""
    rng = np.random.default_rng(1)
    letters = np.frombuffer(b"ACGT", dtype=np.uint8)
    rows = [rng.integers(0, 4, n_sites, dtype=np.uint8)]
    while len(rows) < n_taxa:
        rows = [change(row, rng) for row in rows for _ in range(2)]
    with path.open("wb") as file:
        for number, row in enumerate(rows[:n_taxa]):
            file.write(b">t%d\n%s\n" % (number, letters[row].tobytes()))


def change(row: Any, rng: np.random.Generator) -> Any:
    """A copy that differs at CHANGED_SHARE of the sites, or a little less."""
    row = row.copy()
    sites = rng.integers(0, len(row), int(CHANGED_SHARE * len(row)))
    row[sites] = (row[sites] + rng.integers(1, 4, len(sites), dtype=np.uint8)) % 4
    return row


def measure(command: Sequence[object], limit: float = math.inf) -> tuple[dict[str, Any], str]:
    """Run one process: what it took, whether it was stopped at the limit, and what it printed."""
    load, began, stopped = os.getloadavg()[0], time.perf_counter(), False
    with tempfile.TemporaryFile("w+") as out, subprocess.Popen(list(map(str, command)), stdout=out) as process:
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            used = cpu_seconds(process.pid)
            if used > 2 * limit:
                process.kill()
            elif used > limit and not stopped:
                process.send_signal(signal.SIGINT)
                stopped = True
            time.sleep(PAUSE)
        _, status, usage = ended
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        printed = out.read()
    if process.returncode and not stopped:
        raise SystemExit(f"{command[0]} ended with status {process.returncode}")
    figures = {
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "seconds": round(time.perf_counter() - began, 1),
        "resident_bytes": 1024 * usage.ru_maxrss,
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
    }
    return figures | ({"stopped_at": limit} if stopped else {}), printed


def measure_reading(folder: Path, n_taxa: int, n_sites: int) -> Iterator[Figures]:
    """Reading, compressing and nothing else."""
    alignment = folder / "read.fasta"
    if not alignment.exists():
        make_apart(write_split_sequences, alignment, n_taxa, n_sites)
    figures, printed = measure([sys.executable, "-c", READ, alignment, MODEL])
    yield "read", {**figures, "n_patterns": int(printed)}


def measure_runs(alignment: Path, memory: str, limit: float, steps: Sequence[str]) -> Iterator[Figures]:
    """Evaluations of the true tree, and a fast search, of simulated data: those of them that are among the steps."""
    settings = ["--model", MODEL, "--memory", memory, "--threads", "1"]
    evaluate = ["plltool", "evaluate", alignment, "--tree", alignment.with_suffix(".truth.nwk"), *settings, "--json"]
    if "fixed" in steps:
        yield "fixed", run([*evaluate, "--fixed"], limit)
    if "foretold" in steps:
        evaluation = [sys.executable, "-c", FORETELL, alignment, MODEL, memory]
        search = ["plltool", "check", alignment, *settings, "--json"]
        n_bytes = int(measure(evaluation)[1]), json.loads(measure(search)[1])["device_bytes"]
        yield "foretold", dict(zip(("optimised_bytes", "search_bytes"), n_bytes, strict=True))
    if "optimised" in steps:
        yield "optimised", run(evaluate, limit)
    if "search" in steps:
        prefix, record = alignment.with_suffix(""), alignment.with_suffix(".json")
        record.unlink(missing_ok=True)
        command = ["plltool", "search", alignment, *settings, "--effort", "fast", "--prefix", prefix, "--redo"]
        yield "search", run(command, limit, record)


def measure_programs(alignment: Path, limit: float) -> Iterator[Figures]:
    """Fast searches by plltool and others, each in a folder of its own that is removed."""
    commands: dict[str, list[object]] = {
        "plltool": ["plltool", "search", alignment, "--effort", "fast", "--model", MODEL, "--threads", "1"],
        "iqtree": [IQTREE, "-s", alignment, "-fast", "-m", MODEL, "-nt", "1"],
        "raxml": [RAXML, "-T", "2", "-f", "E", "-m", "GTRGAMMA", "-p", "1", "-s", alignment],
        "fasttree": ["fasttree", "-gtr", "-gamma", "-nt", "-nopr", alignment],
    }
    outputs = {"plltool": "--prefix", "iqtree": "-pre", "raxml": "-n"}
    for program, command in commands.items():
        if not is_there(str(command[0])):
            continue
        with tempfile.TemporaryDirectory(dir=alignment.parent) as folder, contextlib.chdir(folder):
            yield program, measure([*command, *([outputs[program], "tree"] if program in outputs else [])], limit)[0]


def run(command: Sequence[object], limit: float, file: Path | None = None) -> dict[str, Any]:
    """What a command took, its lnL, and the bytes that it held on the device, by the record that it prints or writes.

    Of one that was stopped also the last event: the stage, its round, and lnL.
    """
    with tempfile.NamedTemporaryFile("r") as progress:
        figures, printed = measure([*command, "--json-progress", progress.name], limit)
        events = [event for line in progress if "lnl" in (event := json.loads(line))]
    if "stopped_at" in figures and events:
        figures["reached"] = events[-1]
    if file is not None and file.exists():
        printed = file.read_text()
    if not printed:
        return figures
    record = json.loads(printed)
    return {**figures, "lnl": record["lnl"], "device_bytes": record["counters"]["peak_bytes"]}


def main() -> None:
    parser = make_parser(__doc__, required=True)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--step", action="append", choices=STEPS["sites"], help="only these steps")
    parser.add_argument("--memory", default="8G", help="for conditional likelihoods (default: 8G)")
    parser.add_argument("--limit", type=float, default=math.inf, help="processor seconds of each process")
    options = parser.parse_args()
    figures: dict[str, Any] = load(options.output, {"tasks": {}})
    for task in options.task or TASKS:
        n_taxa, n_sites = TASKS[task]
        if task == "read":
            found = measure_reading(options.folder, n_taxa, n_sites)
        elif task == "programs":
            (folder := options.folder / task).mkdir(exist_ok=True)
            found = measure_programs(prepare(n_taxa, folder, n_sites).resolve(), options.limit)
        else:
            steps = [step for step in STEPS[task] if not options.step or step in options.step]
            alignment = prepare(n_taxa, options.folder, n_sites)
            found = measure_runs(alignment, options.memory, options.limit, steps)
        before = figures["tasks"].get(task, {}) if options.step else {}
        made = {"date": today(), "commit": commit(), "memory": options.memory}
        of_task = figures["tasks"][task] = {**before, "n_taxa": n_taxa, "n_sites": n_sites, **made}
        for name, own in found:
            of_task[name] = own
            print(task, name, own, flush=True)
            save(options.output, figures)


if __name__ == "__main__":
    main()
