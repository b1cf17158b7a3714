"""Compare per-site rates (+PSR) with gamma rates (+G4), and with GTRCAT of Debian's RAxML 8.

    python scripts/compare_site_rates.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--task TASK ...] [--program NAME ...]
        [--device DEVICE] [--output FILE.json]

Task "passes" times what a search consists of, on one thread: lnL, the derivatives in all branch lengths, the gradient
in the model, and the choice of the sites' rates; with the bytes of all conditional likelihoods. Task "search" runs
whole searches from trees/NAME.start.nwk of REFERENCE_DIR: CPU seconds of the process and its children, the largest
resident memory, and plltool's lnL of the final tree under GTR+F+G4. RAxML gets two threads, the fewest that its AVX
binary takes. DATA_DIR holds NAME.phy.gz; sim5000 is simulated, with 5,000 taxa, 1,000 sites and a seed. Rows are added
to those that FILE.json has.
"""

import json
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import simulate_alignment
from compare_rivals import comparison_parser, plain_alignment, report_row

import plltool
from plltool.engine.shards import AnyEngine
from plltool.io.alignment_writer import format_phylip
from plltool.optimise.categories import choose_categories, lnl_at_rates, rate_grid
from plltool.optimise.likelihood import TreeLikelihood

SETS = ("dna150", "dna354", "dna1288", "dna125", "sim5000")
TASKS = ("passes", "search")
MODELS = {"psr": "GTR+F+PSR", "g4": "GTR+F+G4"}
PROGRAMS = (*MODELS, "raxml")
REPEATS = 7  # of each pass; the median counts
SEED = 2013


def prepare(name: str, data: Path, reference: Path, folder: Path) -> tuple[Path, Path]:
    """The alignment as a plain file, and the start tree."""
    if not name.startswith("sim"):
        return plain_alignment(data, name, folder), reference / "trees" / f"{name}.start.nwk"
    sequences, tree = simulate_alignment.make(SEED, int(name.removeprefix("sim")) + 1, 1000)
    duplicate = next(reversed(sequences))
    del sequences[duplicate]
    alignment, start = folder / f"{name}.phy", folder / f"{name}.nwk"
    alignment.write_text(format_phylip(list(sequences), list(sequences.values())))
    start.write_text(tree + "\n")
    return alignment, start


def median_cpu(work: Callable[[], Any]) -> float:
    """Milliseconds of CPU time."""
    times = []
    for _ in range(REPEATS + 1):  # the first one warms up
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return round(1000 * statistics.median(times[1:]), 3)


def time_passes(alignment: Path, start: Path, program: str, device: str) -> dict[str, Any]:
    """CPU milliseconds of each pass over the start tree, and the bytes of all CLAs of a search."""
    facts = plltool.check(alignment, MODELS[program], device=device)
    with plltool.Likelihood(alignment, start, MODELS[program], device=device, threads=1) as likelihood:
        on: TreeLikelihood = likelihood._likelihood
        engine: AnyEngine = likelihood.engine
        choice = None
        if program == "psr":
            choose_categories(on)
            choice = median_cpu(lambda: lnl_at_rates(on, rate_grid()))

        def at_new_lengths(ask: Callable[[], Any]) -> Callable[[], Any]:
            def work() -> None:
                on.tree.lengths[:] *= 1.0 + 1e-9
                ask()

            return work

        return {
            "n_taxa": facts["n_taxa"],
            "n_patterns": facts["n_patterns"],
            "full_bytes": facts["full_bytes"],
            "device_bytes": facts["device_bytes"],
            "lnl_ms": median_cpu(at_new_lengths(on.lnl)),
            "derivatives_ms": median_cpu(at_new_lengths(on.all_derivatives)),
            "gradient_ms": median_cpu(at_new_lengths(on.rate_matrix_gradient)),
            "choice_ms": choice,
            "device": engine.device_name,
        }


def time_search(alignment: Path, start: Path, program: str, device: str) -> dict[str, Any] | None:
    """One search: CPU seconds, memory, and plltool's lnL of the final tree."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if program == "raxml":
            command = ["raxmlHPC-PTHREADS-AVX", "-T", "2", "-f", "d", "-m", "GTRCAT", "-n", "run", "-p", "1"]
            command += ["-s", str(alignment), "-t", str(start)]
            tree = folder / "RAxML_bestTree.run"
        else:
            command = ["plltool", "search", str(alignment), "--start", str(start), "--model", MODELS[program]]
            command += ["--threads", "1", "--device", device, "--prefix", "plltool", "--quiet"]
            tree = folder / "plltool.best.nwk"
        if shutil.which(command[0]) is None:
            return None
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        judged = plltool.evaluate(alignment, tree, MODELS["g4"], device=device)
        return {
            "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
            "seconds": round(time.perf_counter() - began, 2),
            "resident_bytes": 1024 * after.ru_maxrss,  # of the largest process so far: run one program at a time
            "lnl": judged.lnl,
        }


def main() -> None:
    parser = comparison_parser(__doc__, SETS, PROGRAMS)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.output and options.output.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.set or SETS:
            files = prepare(name, options.data, options.reference.resolve(), Path(folder))
            for task in options.task or TASKS:
                for program in options.program or PROGRAMS:
                    if task == "passes" and program == "raxml":
                        continue
                    row = (time_passes if task == "passes" else time_search)(*files, program, options.device)
                    if row is not None:
                        row = {"set": name, "task": task, "program": program, **row}
                        report_row(results, row, options.output)


if __name__ == "__main__":
    main()
