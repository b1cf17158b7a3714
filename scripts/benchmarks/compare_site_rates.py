"""Compare per-site rates (+PSR) with gamma rates (+G4), and with GTRCAT of Debian's RAxML 8.

    python scripts/benchmarks/compare_site_rates.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--task TASK ...]
        [--program NAME ...] [--device DEVICE] [--cpu-limit SECONDS] [--keep FOLDER] [--output FILE.json]

Task "passes" times what a search consists of, on one thread: lnL, the derivatives in all branch lengths, the gradient
in the model, and the choice of the sites' rates; with the bytes of all conditional likelihoods. Task "search" runs
default searches, and RAxML's rapid hill-climbing (-f d); task "fast" runs `--effort fast` and RAxML's fast search
(-f E). All run on one thread from the same start tree: trees/NAME.start.nwk of REFERENCE_DIR, or for simulated data a
parsimony tree of plltool. Reported are CPU seconds of the process and its children, the largest resident memory, and
lnL of the final tree under GTR+F+G4 as plltool optimises it; all programs end under gamma rates themselves. A program
that needs more than --cpu-limit is stopped, and the last tree that RAxML has written is judged in place of its final
tree.

DATA_DIR holds NAME.phy or NAME.phy.gz; sim5000 has 5,000 simulated taxa of 1,000 sites. Rows are added to those that
FILE.json has. FOLDER keeps the files of the programs, which are thrown away otherwise.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import simulate_alignment
from rivals import (
    RAXML,
    commit,
    comparison_parser,
    is_there,
    load,
    parsimony_tree,
    plain_alignment,
    report_row,
    run,
    today,
)

import plltool
from plltool.engine.requests import Holder
from plltool.io.alignment_formats import format_phylip
from plltool.optimise.categories import choose_categories
from plltool.optimise.likelihood import TreeLikelihood

SETS = ("dna150", "dna354", "dna500", "dna1288", "dna125", "sim5000")
TASKS = ("passes", "search", "fast")
MODELS = {"psr": "GTR+F+PSR", "g4": "GTR+F+G4"}
PROGRAMS = (*MODELS, "raxml")
REPEATS = 7  # of each pass; the median counts
SEED, MEAN_LENGTH = 1, 0.03  # of simulated alignments, which have half as many gaps as taxa


def prepare(name: str, data: Path, reference: Path, folder: Path) -> tuple[Path, Path]:
    """The alignment as a plain file, and the start tree."""
    if not name.startswith("sim"):
        return plain_alignment(data, name, folder), reference / "trees" / f"{name}.start.nwk"
    n_taxa = int(name.removeprefix("sim"))
    sequences, _ = simulate_alignment.make(SEED, n_taxa + 1, 1000, MEAN_LENGTH, n_taxa // 2)
    *names, _ = sequences  # without the duplicate
    alignment, start = folder / f"{name}.phy", folder / f"{name}.start.nwk"
    alignment.write_text(format_phylip(names, [sequences[own] for own in names]))
    start.write_text(parsimony_tree(alignment, None, SEED) + "\n")
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
        engine: Holder = likelihood.engine
        choice = None
        if program == "psr":
            choose_categories(on)
            choice = median_cpu(lambda: choose_categories(on))

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


def search_command(program: str, task: str, alignment: Path, start: Path, device: str) -> list[str]:
    """The command line of one search."""
    if program == "raxml":
        command = [RAXML, "-T", "1", "-f", "E" if task == "fast" else "d", "-j", "-m", "GTRCAT"]
        return [*command, "-n", "run", "-p", "1", "-s", str(alignment), "-t", str(start)]
    effort = "fast" if task == "fast" else "default"
    command = ["plltool", "search", str(alignment), "--start", str(start), "--model", MODELS[program], "--seed", "1"]
    return [*command, "--effort", effort, "--threads", "1", "--device", device, "--prefix", "plltool", "--quiet"]


def time_search(
    alignment: Path, start: Path, program: str, task: str, device: str, cpu_limit: int, folder: Path
) -> dict[str, Any] | None:
    """One search in a folder: CPU seconds, memory, and plltool's lnL of the final tree; None without the program."""
    command = search_command(program, task, alignment, start, device)
    if not is_there(command[0]):
        return None
    spent = run(command, folder, cpu_limit=cpu_limit, strict=False)
    (folder / "screen").write_text(spent.printed)
    row = {name: getattr(spent, name) for name in ("cpu_seconds", "seconds", "load", "resident_bytes")}
    return {**row, "finished": spent.status == 0, **judge(alignment, program, folder)}


def judge(alignment: Path, program: str, folder: Path) -> dict[str, Any]:
    """lnL of the tree that a program has written last, under gamma rates by plltool."""
    if program == "raxml":
        trees = sorted(folder.glob("RAxML_*.run*"), key=lambda path: path.stat().st_mtime)
        trees = [path for path in trees if path.name.startswith(("RAxML_result", "RAxML_checkpoint", "RAxML_fastTree"))]
        judged = plltool.evaluate(alignment, trees[-1], MODELS["g4"], threads=1)
        return {"lnl": judged.lnl, "judged_on": judged.device}
    record = json.loads((folder / "plltool.json").read_text())
    return {"lnl": record["lnl"], "device": record["device"], "engine_bytes": record["counters"]["peak_bytes"]}


def main() -> None:
    parser = comparison_parser(__doc__, SETS, PROGRAMS)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cpu-limit", type=int, default=3600, metavar="SECONDS")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    results = load(options.output, [])
    with nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory() as top:
        for name in options.set or SETS:
            files = prepare(name, options.data, options.reference.resolve(), Path(top).resolve())
            for task in options.task or TASKS:
                for program in options.program or PROGRAMS:
                    if task != "passes":
                        folder = Path(top).resolve() / f"{name}.{task}.{program}"
                        folder.mkdir()
                        row = time_search(*files, program, task, options.device, options.cpu_limit, folder)
                    elif program in MODELS:
                        row = time_passes(*files, program, options.device)
                    else:
                        continue
                    if row is not None:
                        date = today()
                        row = {"set": name, "task": task, "program": program, "date": date, "commit": commit(), **row}
                        report_row(results, row, options.output)


if __name__ == "__main__":
    main()
