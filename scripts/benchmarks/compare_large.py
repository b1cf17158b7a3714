"""Compare fast searches of plltool on thousands of simulated taxa with FastTree 2 and VeryFastTree 4.

    python scripts/benchmarks/compare_large.py FOLDER [--taxa N ...] [--sites N] [--threads N] [--memory BYTES]
        [--task TASK ...] [--program NAME ...] --output FILE.json

Task "search" runs whole searches under GTR and gamma rates, each program from a start tree of its own, FastTree always
on one thread: CPU seconds (user and system) and wall seconds of the process, and its largest resident memory. Task
"plltool" lets plltool optimise lengths and model (GTR+F+G4) on each final tree, and counts the inner branches that are
not in the true tree; task "iqtree" asks IQ-TREE 2 for lnL at these lengths under this model. "truth" is a program that
answers with the true tree.

The alignments are those of `simulate_alignment.py --seed 1 --taxa N --sites N --mean-length 0.03 --gaps N/2`. They
stay in FOLDER with the final trees, and what FILE.json holds is kept, so that tasks and programs can run one by one.
Programs that are not on the PATH are left out. FastTree is that of Debian; PyPI has VeryFastTree.
"""

import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import simulate_alignment
from rivals import IQTREE, as_iqtree_model, commit, is_there, load, make_parser, printed_lnl, run, save, today

import plltool
from plltool.io.alignment_formats import format_fasta
from plltool.tree.splits import rf_distance

TASKS = ("search", "plltool", "iqtree")
PROGRAMS = ("truth", "plltool", "fasttree", "veryfasttree")
SEED, MEAN_LENGTH = 1, 0.03
MODEL = "GTR+F+G4"


def prepare(n_taxa: int, folder: Path, n_sites: int) -> Path:
    """Simulate an alignment, and write it and the true tree, unless they are there."""
    alignment = folder / f"{n_taxa}.fasta"
    if not alignment.exists():
        make_apart(write_simulated, alignment, n_taxa, n_sites)
    return alignment


def make_apart(make: Callable[..., None], *arguments: object) -> None:
    """Call a function in a process of its own: Linux counts the peak memory of a parent as that of later children."""
    process = multiprocessing.get_context("spawn").Process(target=make, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{make.__name__} ended with status {process.exitcode}")


def write_simulated(alignment: Path, n_taxa: int, n_sites: int) -> None:
    """Simulate an alignment, and write it and the true tree."""
    sequences, newick = simulate_alignment.make(SEED, n_taxa, n_sites, MEAN_LENGTH, n_taxa // 2)
    *_, duplicate = sequences
    twins = f"({simulate_alignment.DUPLICATED}:0,{duplicate}:0)"
    tree = newick.replace(f"{simulate_alignment.DUPLICATED}:", f"{twins}:")
    alignment.with_suffix(".truth.nwk").write_text(tree + "\n")
    alignment.write_text(format_fasta(list(sequences), list(sequences.values())))


def time_search(program: str, alignment: Path, tree: Path, threads: int, memory: str | None) -> dict[str, Any] | None:
    """Run one search, which writes the tree; None without the program."""
    if program == "plltool":
        command = ["plltool", "search", alignment, "--model", MODEL, "--effort", "fast", "--threads", str(threads)]
        command += ["--seed", "1", "--prefix", alignment.with_suffix(""), "--redo", "--no-report"]
        command += ["--memory", memory] if memory else []
    elif program == "fasttree":
        command = ["fasttree", "-gtr", "-gamma", "-nt", "-nopr", "-out", tree, alignment]
    else:
        command = ["VeryFastTree", "-gtr", "-gamma", "-nt", "-threads", str(threads), "-double-precision"]
        command += ["-out", tree, alignment]
    if not is_there(command[0]):
        return None
    spent = run(command)
    if program == "plltool":
        shutil.copy(alignment.with_suffix(".best.nwk"), tree)
    return {name: getattr(spent, name) for name in ("cpu_seconds", "seconds", "resident_bytes", "load")}


def judge_by_plltool(alignment: Path, tree: Path) -> dict[str, Any]:
    """lnL of a tree with optimised lengths and model, which are kept, and its inner branches that are not true."""
    result = plltool.evaluate(alignment, tree, MODEL, threads=1)
    optimised_tree(tree).write_text(result.newick + "\n")
    truth = plltool.read_tree(alignment.with_suffix(".truth.nwk"), result.tree.names)
    false_branches = rf_distance(result.tree, truth) // 2
    return {"lnl": result.lnl, "model": result.model, "device": result.device, "false_branches": false_branches}


def judge_by_iqtree(alignment: Path, tree: Path, model: str) -> dict[str, Any]:
    """lnL by IQ-TREE at the lengths and under the model that plltool found."""
    command = [IQTREE, "-s", alignment, "--seqtype", "DNA", "-te", optimised_tree(tree), "-blfix", "-nt", "1"]
    command += ["-m", as_iqtree_model(model), "--keep-ident"]
    command += ["-pre", tree.with_suffix(""), "-redo"]
    return {"iqtree_lnl": printed_lnl(command, r"Initial log-likelihood: (-[\d.]+)")}


def optimised_tree(tree: Path) -> Path:
    """The file of a tree with optimised lengths."""
    return tree.with_suffix(".optimised")


def main() -> None:
    parser = make_parser(__doc__, required=True)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--taxa", action="append", type=int, help="default: 2500, 5000 and 10000")
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", help="of plltool's conditional likelihoods, as its option takes it")
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--program", action="append", choices=PROGRAMS)
    options = parser.parse_args()
    figures: dict[str, Any] = load(options.output, {"sets": {}})
    for n_taxa in options.taxa or (2500, 5000, 10000):
        alignment = prepare(n_taxa, options.folder, options.sites)
        of_set = figures["sets"].setdefault(str(n_taxa), {})
        for task in options.task or TASKS:
            for program in options.program or PROGRAMS:
                tree = alignment.with_suffix(f".{program}.nwk")
                found = None
                if task == "search" and program != "truth":
                    found = time_search(program, alignment, tree, options.threads, options.memory)
                elif task == "plltool" and tree.exists():
                    found = judge_by_plltool(alignment, tree)
                elif task == "iqtree" and "model" in of_set.get(program, {}):
                    found = judge_by_iqtree(alignment, tree, of_set[program]["model"])
                if found is None:
                    continue
                of_set.setdefault(program, {}).update(found)
                print(n_taxa, task, program, found, flush=True)
                if task == "search" and program == "plltool":
                    figures |= {"date": today(), "commit": commit()}
                save(options.output, figures)


if __name__ == "__main__":
    main()
