#!/usr/bin/env python3
"""Repeat the experiments of the papers that plltool implements: the tables of docs/experiments.md.

    python scripts/benchmarks/experiments.py [EXPERIMENT ...] [--device auto] [--threads N] --output FILE.json

Experiments, all but searches and chains a number of runs of `plltool bench`:
- sizes: 15 taxa, 1,024 to 262,144 patterns (Izquierdo-Carrasco et al. 2013, table I)
- searches: whole fast searches of 15 taxa, 1,024 to 16,384 patterns (the same table): the median of all repetitions
- widths: the same sizes with 2, 4 and 8 patterns side by side; for devices of the CPU
- states: 64 taxa, 1,000 patterns of 4, 20, 61 and 122 states, in double and single precision (Ayres et al. 2012,
  figure 1)
- columns: 62 taxa, 1 to 3,600 patterns of codons (Suchard & Rambaut 2009, figure 4)
- taxa: 4 to 62 taxa, 200 patterns of codons (the same)
- chains: `plltool sample` under GTR+G4 with 1, 2, 4 and 8 chains, five shapes (Zhou et al. 2011, table 2): seconds, and
  processor time, of 1,000 generations; bytes over the bus and launches of one. They are differences between runs of
  100 and of 600 generations, each the least of all repetitions

What FILE.json holds of other experiments is kept. `time_gradients.py` makes the table of gradients, `draw_chains.py`
the chart of chains.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from rivals import commit, load, make_parser, save, today

import plltool
from plltool.tree.random_tree import random_tree

SIZES = [2**power for power in range(10, 19)]
STATES = (4, 20, 61, 122)
CODON_COLUMNS = (1, 10, 100, 500, 1000, 3600)
CODON_TAXA = (4, 8, 16, 32, 62)
CHAIN_SHAPES = ((26, 1546), (37, 2238), (111, 1506), (234, 1790), (288, 3386))
CHAINS = (1, 2, 4, 8)
GENERATIONS = 100, 600  # of two runs, whose difference is timed
EVOLVED = "GTR{1.5/4.0/0.8/1.2/5.0/1.0}+FU{0.32/0.18/0.21/0.29}+G4{0.5}"
MEAN_LENGTH = 0.06  # of a branch, in expected substitutions per site
KEPT = ("item", "states", "precision", "taxa", "patterns", "seconds", "pattern_nodes_per_second", "flops")

BENCHES = {  # options of each run of `plltool bench`
    "sizes": [["--shape", f"15x{patterns}"] for patterns in SIZES],
    "widths": [["--shape", f"15x{patterns}", "--vw", vw] for patterns in SIZES for vw in ("2", "4", "8")],
    "states": [
        ["--states", str(states), "--shape", "64x1000", "--precision", precision]
        for states in STATES
        for precision in ("double", "single")
    ],
    "columns": [["--states", "61", "--shape", f"62x{patterns}"] for patterns in CODON_COLUMNS],
    "taxa": [["--states", "61", "--shape", f"{taxa}x200"] for taxa in CODON_TAXA],
}
EXPERIMENTS = (*BENCHES, "searches", "chains")


@dataclass(frozen=True)
class Machine:
    """What runs use, and how often they are repeated."""

    device: str
    repetitions: int
    threads: int | None = None


def bench(options: Sequence[str]) -> dict[str, Any]:
    """The record of one run of `plltool bench`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        code = "from plltool.cli import main; main(prog_name='plltool')"  # gpu_day.sh does not install plltool
        command = [sys.executable, "-c", code, "bench", *options, "--output", str(file), "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        record: dict[str, Any] = json.loads(file.read_text())
    return record


def rows_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a run, with the width of vectors, and the device."""
    device = f"{record['device']}, {record['driver']}"
    return [{**{key: row[key] for key in KEPT}, "vw": row["layout"]["vw"], "device": device} for row in record["rows"]]


def run_benches(name: str, machine: Machine, most: int | None) -> Iterator[dict[str, Any]]:
    """The rows of an experiment with `plltool bench`."""
    options = ["--device", machine.device, "--repetitions", str(machine.repetitions)]
    options += ["--threads", str(machine.threads)] if machine.threads else []
    for own in BENCHES[name][:most]:
        yield from rows_of(bench([*own, *options]))


def distinct_columns(n_taxa: int, n_patterns: int) -> dict[str, str]:
    """Simulated sequences with this many columns, all of them distinct."""
    rng = np.random.default_rng(n_taxa)
    tree = random_tree([f"t{number:03}" for number in range(1, n_taxa + 1)], rng)
    tree.lengths[:] = rng.exponential(MEAN_LENGTH, tree.n_edges)
    for times in (4, 16):  # few columns are new where taxa are few
        made = plltool.simulate(tree, EVOLVED, times * n_patterns, n_taxa)
        columns = list(dict.fromkeys(zip(*made.sequences, strict=True)))[:n_patterns]
        if len(columns) == n_patterns:
            break
    else:
        sys.exit(f"{n_taxa} taxa: found {len(columns)} distinct columns, expected {n_patterns}")
    return dict(zip(made.names, map("".join, zip(*columns, strict=True)), strict=True))


def time_chains(alignment: dict[str, str], n_chains: int, machine: Machine) -> dict[str, Any]:
    """Seconds of 1,000 generations, and bytes and launches of one."""

    def sample(generations: int) -> plltool.SampleResult:
        options = plltool.SampleOptions(generations=generations, runs=1, chains=n_chains)
        return plltool.sample(alignment, "GTR+FO+G4", options=options, device=machine.device, threads=machine.threads)

    least: list[dict[str, float]] = [{}, {}]
    sample(20)  # loads modules and compiles kernels, so that the two below differ in their generations only
    for _ in range(machine.repetitions):
        for ours, generations in zip(least, GENERATIONS, strict=True):
            began = perf_counter(), process_time()
            found = sample(generations)
            spent = {"seconds": perf_counter() - began[0], "processor_seconds": process_time() - began[1]}
            spent |= {key: found.counters[key] for key in ("bytes_to_device", "bytes_from_device", "launches")}
            ours |= {key: min(value, ours.get(key, value)) for key, value in spent.items()}
    between = GENERATIONS[1] - GENERATIONS[0]
    per = {key: (least[1][key] - least[0][key]) / between * (1000.0 if "seconds" in key else 1.0) for key in least[0]}
    return {"device": found.device, **per}


def run_chains(machine: Machine, most: int | None) -> Iterator[dict[str, Any]]:
    """The rows of the experiment with chains."""
    for n_taxa, n_patterns in CHAIN_SHAPES[:most]:
        alignment = distinct_columns(n_taxa, n_patterns)
        for n_chains in CHAINS:
            shape = {"item": f"{n_chains} chains", "taxa": n_taxa, "patterns": n_patterns, "chains": n_chains}
            yield shape | time_chains(alignment, n_chains, machine)


def run_searches(machine: Machine, most: int | None) -> Iterator[dict[str, Any]]:
    """The rows of the experiment with whole searches."""
    for n_patterns in SIZES[:5][:most]:
        alignment, found = distinct_columns(15, n_patterns), []
        for _ in range(machine.repetitions + 1):
            began = perf_counter(), process_time()
            result = plltool.search(
                alignment, "GTR+FO+G4", effort="fast", workers=1, device=machine.device, threads=machine.threads
            )
            found.append((perf_counter() - began[0], process_time() - began[1]))
        seconds, processor = np.median(found[1:], axis=0).tolist()  # the first loads modules and compiles kernels
        row = {"item": "search", "taxa": 15, "patterns": n_patterns, "seconds": seconds, "processor_seconds": processor}
        yield row | {"launches": result.counters["launches"], "device": result.device}


def run_experiment(name: str, machine: Machine, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows of an experiment, or of its first `most` runs or shapes."""
    own = {"chains": run_chains, "searches": run_searches}
    return own[name](machine, most) if name in own else run_benches(name, machine, most)


def main() -> None:
    parser = make_parser(__doc__, required=True)
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="all by default")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--first", type=int, metavar="N", help="only the first N runs or shapes of each")
    options = parser.parse_args()
    unknown = sorted(set(options.experiments) - set(EXPERIMENTS))
    if unknown:
        parser.error(f"found {', '.join(unknown)}, expected some of: {', '.join(EXPERIMENTS)}")
    figures: dict[str, Any] = load(options.output, {})
    machine = Machine(options.device, options.repetitions, options.threads)
    for name in options.experiments or EXPERIMENTS:
        figures |= {"date": today(), "commit": commit(), "command": sys.argv[1:], name: []}
        for row in run_experiment(name, machine, options.first):
            figures[name].append(row)
            save(options.output, figures)
            print(name, row["item"], row["taxa"], row["patterns"], f"{row['seconds']:.3g} s", flush=True)


if __name__ == "__main__":
    main()
