"""Compare bootstrap supports with Debian's RAxML 8 and IQ-TREE 2: correlations over splits, differences, seconds.

    python scripts/benchmarks/compare_supports.py ALIGNMENT [--replicates N] [--program NAME ...] [--threads N]
        [--seconds N] [--made NAME=FILE ...] [--output FILE.json]

Every program runs GTR+F+G4, except raxml-cat, which runs GTRCAT. plltool searches the tree; then each program makes its
replicates: plltool, plltool-fast and plltool-default (`plltool bootstrap` with the default or the named effort of the
replicates), plltool-rapid (--rapid), raxml and raxml-cat (-b), raxml-rapid (-x), iqtree-ufboot (-B 1000) and
plltool-ufboot. --seconds limits each of them: the replicates made by then count, those of IQ-TREE only if it has
finished. --made adds the trees of an existing file, without seconds. Pairs of programs are compared over the inner
branches of plltool's tree, and over all splits that either program has in at least 5 % of its trees. Seconds are wall
time and processor time of whole processes. Programs that are not installed are left out.
"""

import argparse
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rivals import IQTREE, RAXML, is_there, make_parser, run, save, today

import plltool
from plltool.run.inputs import as_tree_set
from plltool.tree.splits import branch_splits, inner_splits

PROGRAMS = (
    *("plltool", "plltool-fast", "plltool-default", "plltool-rapid", "plltool-ufboot"),
    *("raxml", "raxml-cat", "raxml-rapid", "iqtree-ufboot"),
)
MODEL = "GTR+F+G4"
RARE = 0.05  # share of the trees of both programs below which a split is left out
EXECUTABLES = {"raxml": RAXML, "iqtree": IQTREE, "plltool": "plltool"}


def replicate_command(program: str, alignment: Path, folder: Path, number: int, threads: int) -> tuple[list[Any], Path]:
    """The command line of a bootstrap, and the file that its trees will be in."""
    if program.startswith("plltool"):
        effort = program.partition("-")[2]
        how = ["--rapid"] if effort == "rapid" else ["--replicate-effort", effort] if effort else []
        options = ["--replicates", number, *how, "--threads", threads]
        command = ["plltool", "bootstrap", alignment, "--model", MODEL, *options, "--prefix", folder / program]
        return [*command, "--workers", threads, "--quiet"], folder / f"{program}.bootstraps.nwk"
    if program.startswith("raxml"):
        kind = "-x" if program == "raxml-rapid" else "-b"
        model = "GTRCAT" if program == "raxml-cat" else "GTRGAMMA"
        command = [RAXML, "-T", threads, kind, "7", "-p", "7", "-#", number, "-m", model]
        return [*command, "-s", alignment, "-n", program, "-w", folder], folder / f"RAxML_bootstrap.{program}"
    command = [IQTREE, "-s", alignment, "-m", MODEL, "-B", "1000", "--wbtl", "-T", threads]
    command += ["-seed", "7", "-redo", "--keep-ident", "-quiet", "--prefix", folder / program]
    return command, folder / f"{program}.ufboot"


def time_run(command: list[Any], seconds: float) -> dict[str, Any]:
    """Wall and processor seconds of a process that may take `seconds`, and whether it was stopped at the limit."""
    spent = run(command, limit=seconds)
    return {"seconds": spent.seconds, "cpu_seconds": spent.cpu_seconds, "cut": spent.stopped}


def agreement(ours: Sequence[float], theirs: Sequence[float]) -> dict[str, float]:
    """How well two lists of values of the same things agree."""
    a, b = np.array(ours), np.array(theirs)
    return {
        "n": len(a),
        "correlation": round(float(np.corrcoef(a, b)[0, 1]), 5),
        "mean_difference": round(float(np.mean(a - b)), 5),
        "mean_absolute_difference": round(float(np.mean(np.abs(a - b))), 5),
        "largest_difference": round(float(np.max(np.abs(a - b))), 5),
    }


def compare(first: dict[int, float], second: dict[int, float], branches: list[int]) -> dict[str, Any]:
    """Compare supports of two programs over the branches of a tree, and over all splits that are not rare."""
    common = [split for split in first.keys() | second.keys() if max(first.get(split, 0), second.get(split, 0)) >= RARE]
    return {
        what: agreement([first.get(split, 0.0) for split in splits], [second.get(split, 0.0) for split in splits])
        for what, splits in (("branches", branches), ("splits", common))
    }


def make_ufboot(
    alignment: Path, tree: Path, model: str, threads: int, names: Sequence[str]
) -> tuple[dict[int, float], dict[str, Any]]:
    """plltool's ultrafast supports of its tree, by split of the `names`."""
    began, used = time.perf_counter(), time.process_time()
    found = plltool.ultrafast_bootstrap(alignment, tree, model, threads=threads, seed=7)
    seconds = {"seconds": round(time.perf_counter() - began, 1), "cpu_seconds": round(time.process_time() - used, 1)}
    values = dict(zip(branch_splits(found.tree, names), (found.values["ufboot"] / 100).tolist(), strict=True))
    return {split: value for split, value in values.items() if value == value}, seconds | {"cut": False, "trees": 1000}


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    parser.add_argument("alignment", type=Path)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--program", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=7200.0)
    parser.add_argument("--made", nargs="+", default=[], metavar="NAME=FILE")
    return parser.parse_args()


def main() -> None:
    asked = parse_arguments()
    programs: dict[str, Any] = {}
    shares: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alignment = folder / asked.alignment.name
        shutil.copy(asked.alignment, alignment)
        command = ["plltool", "search", alignment, "--model", MODEL, "--threads", asked.threads, "--quiet"]
        search = time_run([*command, "--prefix", folder / "best"], asked.seconds)
        best = plltool.read_tree(folder / "best.best.nwk", plltool.read_alignment(alignment).names)
        splits = inner_splits(best)
        for program in asked.program:
            if not is_there(EXECUTABLES[program.partition("-")[0]]):
                continue
            if program == "plltool-ufboot":
                tree, model = folder / "best.best.nwk", str(folder / "best.json")
                found = make_ufboot(alignment, tree, model, asked.threads, best.names)
                shares[program], programs[program] = found
            else:
                command, path = replicate_command(program, alignment, folder, asked.replicates, asked.threads)
                programs[program] = time_run(command, asked.seconds)
                if not path.exists():
                    continue
                lines = [line for line in path.read_text().splitlines() if line.endswith(";")]
                path.write_text("\n".join(lines) + "\n")
                programs[program]["trees"] = len(lines)
                shares[program] = as_tree_set(path, best.names).shares
            print(program, programs[program], flush=True)
    for program, path in (entry.split("=", 1) for entry in asked.made):
        trees = as_tree_set(path, best.names)
        programs[program] = {"trees": trees.n_trees}
        shares[program] = trees.shares
    pairs = {
        f"{a} {b}": compare(shares[a], shares[b], splits)
        | ({} if "ufboot" not in a + b else {"splits": None})  # of plltool-ufboot the tree's branches only
        for a, b in itertools.combinations(shares, 2)
    }
    for pair, values in pairs.items():
        print(pair, values["branches"])
    record = {
        "date": today(),
        "alignment": asked.alignment.name,
        "threads": asked.threads,
        "search": search,
        "programs": programs,
        "pairs": pairs,
    }
    save(asked.output, record)


if __name__ == "__main__":
    main()
