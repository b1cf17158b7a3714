"""Time whole searches of plltool, Debian's RAxML 8 and IQ-TREE 2 from the same start trees; re-evaluate every result.

    python scripts/benchmarks/compare_rivals.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--program NAME ...]
        [--starts N] [--judge NAME ...] [--output FILE.json]

DATA_DIR holds NAME.phy or NAME.phy.gz. A set called BASE_N, such as sim15_1024, is the first N columns of
BASE_SIZE.phy.gz. REFERENCE_DIR holds trees/NAME.start.nwk and search.json, which has figures from another machine.
With --starts N each program also starts from N - 1 randomised parsimony trees of plltool (those of Debian's RAxML are
poor), and the table shows medians. Every program runs GTR+F+G4 on 2 threads; seconds are wall time of whole processes.
plltool compiles its kernels in an earlier run on the same data, whose seconds are listed as "cold". Both rivals
optimise the lengths and the model of every final tree again at a fine epsilon. It takes both, because branch lengths
have local optima (RAxML stops 0.6 too low on dna354) and because IQ-TREE counts ambiguous characters differently under
+F. Programs that are not installed are left out.

Programs that ran on the other machine only are listed with their seconds there, scaled by the median over the sets of
the ratio of BRIDGE's seconds here to its seconds there.

A program is raxml, iqtree, iqtree-fast, or plltool[-EFFORT][:DEVICE], such as plltool-fast:intel.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rivals import (
    IQTREE,
    RAXML,
    comparison_parser,
    is_there,
    parsimony_tree,
    plain_alignment,
    printed_lnl,
    run,
    save,
    today,
)

DEFAULT_SETS = ("dna101", "dna150", "dna218", "dna354", "dna500")
DEFAULT_PROGRAMS = ("plltool-fast", "plltool", "plltool-thorough", "iqtree-fast", "raxml")
EFFORTS = ("fast", "default", "thorough")
THREADS = "2"
BRIDGE = "iqtree-fast", "IQ-TREE 2.0.7 (Debian) -fast"  # the same program by its names here and elsewhere


def search_command(program: str, alignment: Path, start: Path, folder: Path) -> tuple[list[str], Path]:
    """The command line of one search, and the file that its tree will be in."""
    if program.startswith("plltool"):
        name, _, device = program.partition(":")
        effort = name.partition("-")[2] or "default"
        if effort not in EFFORTS:
            raise ValueError(f"{program!r}: expected an effort among {', '.join(EFFORTS)}")
        command = ["plltool", "search", alignment, "--model", "GTR+F+G4", "--start", start, "--threads", THREADS]
        options = ["--effort", effort, "--device", device or "auto", "--prefix", str(folder / "plltool"), "--redo"]
        return [*map(str, command), *options], folder / "plltool.best.nwk"
    if program == "raxml":
        command = [RAXML, "-T", THREADS, "-f", "d", "-m", "GTRGAMMA", "-s", alignment, "-t", start]
        return [*map(str, command), "-n", "run", "-w", str(folder), "-p", "1"], folder / "RAxML_bestTree.run"
    if program in ("iqtree", "iqtree-fast"):
        command = [IQTREE, "-s", alignment, "--seqtype", "DNA", "-m", "GTR+F+G4", "-t", start]
        command += ["-fast"] if program == "iqtree-fast" else ["-ninit", "1"]
        options = ["-nt", THREADS, "-pre", str(folder / "iqtree"), "-redo", "-quiet", "--keep-ident", "-seed", "1"]
        return [*map(str, command), *options], folder / "iqtree.treefile"
    raise ValueError(f"no program is called {program!r}")


def judge_by_raxml(alignment: Path, tree: Path, folder: Path) -> float | None:
    """lnL of a tree after RAxML optimised lengths and model."""
    command = [RAXML, "-T", THREADS, "-f", "e", "-e", "0.0001", "-m", "GTRGAMMA", "-s", alignment]
    return printed_lnl([*command, "-t", tree, "-n", "judge", "-w", folder], r"Final GAMMA\s+likelihood: (-[\d.]+)")


def judge_by_iqtree(alignment: Path, tree: Path, folder: Path) -> float | None:
    """lnL of a tree after IQ-TREE optimised lengths and model."""
    command = [IQTREE, "-s", alignment, "--seqtype", "DNA", "-m", "GTR+F+G4", "-te", tree, "-nt", THREADS]
    options = ["-me", "0.0001", "--keep-ident", "-pre", folder / "judge", "-redo"]
    return printed_lnl([*command, *options], r"Optimal log-likelihood: (-[\d.]+)")


JUDGES = {"raxml": judge_by_raxml, "iqtree": judge_by_iqtree}


def time_search(program: str, alignment: Path, start: Path, judges: Sequence[str]) -> dict[str, Any] | None:
    """Run one search: seconds, lnL by each judge, and plltool's own lnL where it is the program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command, tree = search_command(program, alignment, start, folder)
        if not is_there(command[0]):
            return None
        row: dict[str, Any] = {}
        if program.startswith("plltool"):
            warm_up = ["plltool", "evaluate", alignment, "--tree", start, "--model", "GTR+F+G4", "--fixed"]
            warm_up += ["--threads", THREADS]
            device = program.partition(":")[2] or "auto"
            row["cold"] = run([*warm_up, "--device", device], folder).seconds
        done = run(command, folder, strict=False)
        row["seconds"] = done.seconds
        if done.status or not tree.exists():
            print(f"{program}: exit {done.status}: {done.printed[-500:]}", file=sys.stderr)
            return None
        record = folder / "plltool.json"
        if record.exists():
            row["own_lnl"] = json.loads(record.read_text())["lnl"]
        for judge in judges:
            row[f"{judge}_lnl"] = JUDGES[judge](alignment, tree, folder)
        return row


def start_trees(data_set: str, alignment: Path, reference: Path, number: int, folder: Path) -> list[Path]:
    """`number` start trees: that of the reference, then parsimony trees of plltool."""
    trees = [(reference / "trees" / f"{data_set}.start.nwk").resolve()]
    for seed in range(1, number):
        trees.append(folder / f"{data_set}.parsimony{seed}.nwk")
        trees[-1].write_text(parsimony_tree(alignment, None, seed) + "\n")
    return trees


def best_lnl(row: dict[str, Any]) -> float | None:
    """The higher lnL of the two judges."""
    found = (row.get(f"{judge}_lnl") for judge in JUDGES)
    return max((lnl for lnl in found if lnl is not None), default=None)


def summarise(results: dict[str, Any], elsewhere: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each program on each set: medians over the start trees, here and, scaled, elsewhere."""
    here_name, elsewhere_name = BRIDGE
    pairs = [
        (runs[here_name][0]["seconds"], elsewhere[name][elsewhere_name]["seconds"])
        for name, runs in results.items()
        if here_name in runs and elsewhere_name in elsewhere.get(name, {})
    ]
    scale = statistics.median(here / there for here, there in pairs) if pairs else 1.0
    rows = []
    for name, runs in results.items():
        for program, trials in runs.items():
            seconds = statistics.median(trial["seconds"] for trial in trials)
            lnls = [lnl for lnl in map(best_lnl, trials) if lnl is not None]
            lnl = statistics.median(lnls) if lnls else None
            rows.append({"set": name, "program": program, "runs": len(trials), "seconds": seconds, "lnl": lnl})
        for program, row in elsewhere.get(name, {}).items():
            scaled = round(scale * row["seconds"], 2)
            rows.append({"set": name, "program": f"elsewhere: {program}", "seconds": scaled, "lnl": row["lnl"]})
    return rows


def main() -> None:
    parser = comparison_parser(__doc__, DEFAULT_SETS, DEFAULT_PROGRAMS, strict=False)
    parser.add_argument("--starts", type=int, default=1, help="start trees of each set; default: 1")
    parser.add_argument("--judge", action="append", choices=JUDGES, help="default: both")
    options = parser.parse_args()
    search_file = options.reference / "search.json"
    elsewhere = json.loads(search_file.read_text()) if search_file.exists() else {}
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data_set in options.set or DEFAULT_SETS:
            alignment = plain_alignment(options.data, data_set, folder)
            results[data_set] = {}
            for start in start_trees(data_set, alignment, options.reference, options.starts, folder):
                for program in options.program or DEFAULT_PROGRAMS:
                    row = time_search(program, alignment, start, options.judge or list(JUDGES))
                    if row is None:
                        continue
                    results[data_set].setdefault(program, []).append({"start": start.name, **row})
                    print(data_set, start.name, program, row, flush=True)
                    figures = {"date": today(), "threads": THREADS, "summary": summarise(results, elsewhere)}
                    save(options.output, figures | {"sets": results})
    for row in summarise(results, elsewhere):
        print("{set:12} {program:50} {seconds:9.2f} s {lnl}".format(**row))


if __name__ == "__main__":
    main()
