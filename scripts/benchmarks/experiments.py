#!/usr/bin/env python3
"""Repeat the experiments of the papers that plltool implements: the tables of docs/experiments.md.

    python scripts/benchmarks/experiments.py [EXPERIMENT ...] [--device auto] [--threads N] --output FILE.json

Experiments; sizes, widths, states, columns and taxa are runs of `plltool bench`:
- sizes: 15 taxa, 1,024 to 262,144 patterns (Izquierdo-Carrasco et al. 2013, table I)
- searches: whole fast searches of 15 taxa, the same sizes (the same table): the median of all repetitions
- widths: the same sizes with 2, 4 and 8 patterns side by side; for devices of the CPU
- older: newview of the same sizes in the layout of RAxML-Light, the states of a pattern side by side (the same, figure
  1), and in plltool's; for one core of a CPU, processor seconds, the least of all repetitions in turn
- functions: what searches spend on each kind of instruction, with 2, 4 and 8 patterns side by side, and in the shape of
  a GPU with 32 and 64; for devices of the CPU, processor seconds (the same, figure 4)
- gradients: CLAs towards the root, those away from it, and the slopes in all branch lengths, for three data sets of
  nucleotides and codons (Gangavarapu et al. 2024, table 1), and 1 to 1,024 patterns of codons (figure 4)
- states: 64 taxa, 1,000 patterns of 4, 20, 61 and 122 states, in double and single precision (Ayres et al. 2012,
  figure 1)
- columns: 62 taxa, 1 to 3,600 patterns of codons (Suchard & Rambaut 2009, figure 4)
- taxa: 4 to 62 taxa, 200 patterns of codons (the same)
- mrbayes: MrBayes with eight chains on the shapes of the next experiment (Zhou et al. 2011, table 3): processor
  seconds of 1,000 generations, from the difference between runs of 100 and 600
- chains: `plltool sample` under GTR+G4 with 1, 2, 4 and 8 chains, five shapes (Zhou et al. 2011, table 2): seconds, and
  processor time, of 1,000 generations; bytes over the bus and launches of one. They are differences between runs of
  100 and of 600 generations, each the least of all repetitions

What FILE.json holds of other experiments is kept. `time_gradients.py` makes the table of gradients, `draw_chains.py`
the chart of chains.
"""

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, cast

import numpy as np
from experiment_parts import OlderLayout, keep_opcodes, spent_by_kind
from rivals import commit, least_seconds, load, make_parser, run, save, today, write_nexus
from simulate_alignment import MEAN_LENGTH
from simulate_alignment import MODEL as EVOLVED

import plltool
from plltool.analyses.machine.bench.items import (
    FixedModel,
    Shape,
    encode_states,
    engine_of,
    make_data,
    n_slots,
    record,
    replay,
)
from plltool.arrays import FloatArray, IntArray
from plltool.engine.base import EngineData
from plltool.engine.contract import Opcode
from plltool.engine.layout import DataShape
from plltool.engine.opencl.engine import OpenCLEngine
from plltool.engine.select import Slots, make_engine
from plltool.hardware import Hardware
from plltool.model.model import Model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.moves import random_tree

SIZES = [2**power for power in range(10, 19)]
STATES = (4, 20, 61, 122)
CODON_COLUMNS = (1, 10, 100, 500, 1000, 3600)
CODON_TAXA = (4, 8, 16, 32, 62)
CHAIN_SHAPES = ((26, 1546), (37, 2238), (111, 1506), (234, 1790), (288, 3386))
CHAINS = (1, 2, 4, 8)
GENERATIONS = 100, 600  # of two runs, whose difference is timed
MRBAYES = """begin mrbayes;
set autoclose=yes nowarn=yes seed=1 swapseed=1;
lset nst=6 rates=gamma;
mcmc ngen={generations} nruns=2 nchains=4 samplefreq={generations} printfreq={generations} diagnfreq={generations};
end;
"""
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
FUNCTION_SIZES = (1024, 8192, 65536)
WIDTHS = (2, 4, 8)
GRADIENT_SHAPES = {  # the carnivores, dengue viruses and yeasts of the paper, and the columns of its figure 4
    4: ((62, 5565), (997, 6869), (49, 12878)),
    61: ((62, 3600), (997, 3343), (49, 22151), *((62, 4**power) for power in range(6))),
}
LARGE = 100_000  # taxa times patterns, from which on gradients are timed once
EXPERIMENTS = (*BENCHES, "searches", "older", "functions", "gradients", "chains", "mrbayes")


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
        # gpu_day.sh does not install plltool
        command = [sys.executable, "-m", "plltool", "bench", *options, "--output", str(file), "--quiet"]
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
    for n_patterns in SIZES[:most]:
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


def run_functions(machine: Machine, most: int | None) -> Iterator[dict[str, Any]]:
    """The rows of the experiment with kinds of instructions; the rest is what a whole search takes besides."""
    for n_patterns in FUNCTION_SIZES[:most]:
        alignment = distinct_columns(15, n_patterns)
        for vw in (*WIDTHS, 32, 64):

            def search(vw: int = vw, alignment: dict[str, str] = alignment) -> float:
                began, hardware = process_time(), {"device": machine.device, "threads": 1, "vw": vw, "workers": 1}
                plltool.search(alignment, "GTR+FO+G4", effort="fast", **hardware)
                return process_time() - began

            search()  # loads modules and compiles kernels
            whole = min(search() for _ in range(machine.repetitions))
            with spent_by_kind(machine.repetitions) as found:
                search()
            found |= {"rest": whole - sum(found.values()), "search": whole}
            shape = {"taxa": 15, "patterns": n_patterns, "vw": vw}
            yield from ({"item": item, **shape, "seconds": seconds} for item, seconds in found.items())


def make_likelihood(
    n_taxa: int, n_patterns: int, n_states: int, n_rates: int, hardware: Hardware
) -> tuple[TreeLikelihood, IntArray]:
    """A likelihood of data that evolved along a random tree, as `plltool bench` has, and the states of tips."""
    components, tree, states = make_data(Shape(n_taxa, n_patterns), n_states, np.random.default_rng(n_taxa))
    names = "eigenvalues", "right", "left", "frequencies"
    kept: dict[str, Any] = {name: getattr(components, name)[:n_rates] for name in names}
    components = dataclasses.replace(
        components, **kept, rates=components.rates[-n_rates:], weights=np.full(n_rates, 1 / n_rates)
    )
    codes, sets = encode_states(states, n_states)
    data = EngineData(codes, np.ones(n_patterns), sets)
    shape = DataShape(n_states, n_rates, n_taxa, (n_patterns,), data.n_codes)
    engine, _ = make_engine(data, shape, Slots(n_slots(Shape(n_taxa, n_patterns))), hardware)
    return TreeLikelihood(tree, [cast(Model, FixedModel(components))], engine), states


def run_older(machine: Machine, most: int | None) -> Iterator[dict[str, Any]]:
    """The rows of the experiment with the older layout."""
    for n_patterns in SIZES[:most]:
        made = [make_likelihood(15, n_patterns, 4, 4, Hardware(machine.device, vw=vw, threads=1)) for vw in WIDTHS]
        likelihood, states = made[-1]
        engine = cast(OpenCLEngine, likelihood.engine)
        program, matrices = newviews_of(likelihood)
        tile = engine.layout.tile_blocks * engine.layout.vw
        works = [OlderLayout(engine._queue, matrices, 1 << states, program, tile).run]
        works += [stage_of(own, own.lnl, [Opcode.NEWVIEW]) for own, _ in made]
        seconds = least_seconds(works, machine.repetitions)
        for item, own in zip(("older", *(f"vw {vw}" for vw in WIDTHS)), seconds, strict=True):
            yield {"item": item, "taxa": 15, "patterns": n_patterns, "seconds": own, "device": engine.device_name}
        for own, _ in made:
            engine_of(own).close()


def newviews_of(likelihood: TreeLikelihood) -> tuple[IntArray, FloatArray]:
    """What `OlderLayout` takes for the likelihood of a tree: its program, and the P matrices."""
    ((request, lengths),) = record(engine_of(likelihood), likelihood.lnl)
    components = likelihood.models[0].components()
    matrices = np.array([components.transition_matrices(length) for length in lengths.ravel()])
    return keep_opcodes(request, [Opcode.NEWVIEW]).program[:, 1:6], matrices


def stage_of(likelihood: TreeLikelihood, ask: Callable[[], object], opcodes: Sequence[int]) -> Callable[[], None]:
    """Runs the instructions of a request that have these opcodes."""
    engine = cast(OpenCLEngine, likelihood.engine)
    executions = [(keep_opcodes(request, opcodes), lengths) for request, lengths in record(engine, ask)]

    def run_stage() -> None:
        replay(engine, executions)
        engine._queue.finish()

    return run_stage


def run_gradients(machine: Machine, most: int | None) -> Iterator[dict[str, Any]]:
    """The rows of the experiment with gradients: each stage without those before it."""
    for n_states, shapes in GRADIENT_SHAPES.items():
        for n_taxa, n_patterns in shapes[:most]:
            hardware = Hardware(machine.device, threads=machine.threads)
            likelihood, _ = make_likelihood(n_taxa, n_patterns, n_states, 4 if n_states == 4 else 1, hardware)
            clas = [Opcode.NEWVIEW, Opcode.PROPAGATE]
            stages = [
                stage_of(likelihood, likelihood.lnl, clas),
                stage_of(likelihood, likelihood.all_derivatives, clas),
                stage_of(likelihood, likelihood.all_derivatives, [*clas, Opcode.DERIVATIVE]),
            ]
            engine = engine_of(likelihood)
            clock = perf_counter if engine.layout.lane_per_item else process_time
            before, shape = 0.0, {"states": n_states, "taxa": n_taxa, "patterns": n_patterns}
            repetitions = machine.repetitions if n_taxa * n_patterns < LARGE else 1
            spent = least_seconds(stages, repetitions, clock)
            for item, seconds in zip(("post-order", "pre-order", "gradient"), spent, strict=True):
                yield {"item": item, **shape, "seconds": seconds - before, "device": engine.device_name}
                before = seconds
            engine.close()


def run_mrbayes(machine: Machine, most: int | None) -> Iterator[dict[str, Any]]:
    """The rows of the experiment with MrBayes: two runs of four chains, as Zhou et al. have them."""
    for n_taxa, n_patterns in CHAIN_SHAPES[:most]:
        spent = []
        for generations in GENERATIONS:
            with tempfile.TemporaryDirectory() as folder:
                file, commands = Path(folder) / "data.nex", MRBAYES.format(generations=generations)
                write_nexus(file, distinct_columns(n_taxa, n_patterns), commands=commands)
                spent.append(run(["mb", file.name], file.parent).cpu_seconds)
        seconds = (spent[1] - spent[0]) / (GENERATIONS[1] - GENERATIONS[0]) * 1000
        yield {"item": "8 chains", "taxa": n_taxa, "patterns": n_patterns, "seconds": seconds, "device": "MrBayes"}


def run_experiment(name: str, machine: Machine, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows of an experiment, or of its first `most` runs or shapes."""
    own = {
        **{"chains": run_chains, "searches": run_searches, "older": run_older, "functions": run_functions},
        **{"gradients": run_gradients, "mrbayes": run_mrbayes},
    }
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
