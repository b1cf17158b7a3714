"""Time whole searches of plltool, IQ-TREE 2 and RAxML 8 from the same start trees, and judge every final tree alike.

    python scripts/benchmarks/compare_rivals.py DATA_DIR REFERENCE_DIR [--set NAME ...] [--program NAME ...]
        [--starts N] [--judge NAME ...] [--output FILE.json] [--chart FILE.svg]

DATA_DIR holds NAME.phy or NAME.phy.gz, and treebase/NAME.fasta.gz: DNA and proteins, searched under GTR+F+G4 or LG+G4.
A set called BASE_N, such as sim15_1024, is the first N columns of BASE_SIZE.phy.gz; "treebase" stands for all sets of
treebase.json. REFERENCE_DIR holds the start trees, trees/NAME.start.nwk and trees/treebase/NAME.start.nwk, and
search.json and treebase.json, which have figures from another machine. With --starts N each program also starts from
N - 1 randomised parsimony trees of plltool (those of Debian's RAxML are poor), and the table shows medians. Taxa are
renamed, because some names are not words. Every program runs on 2 threads; seconds are wall time of whole processes.
plltool compiles its kernels in an earlier search of each set, whose seconds are listed as "cold".

The judges optimise the lengths and the model of every final tree again: plltool, which counts ambiguous characters as
RAxML-NG does, and IQ-TREE, at a fine epsilon. Programs that are not installed are left out. Those that ran on the other
machine only are listed with their lnL, which is RAxML-NG's, and with their seconds there, scaled by the median over the
sets of the ratio of the seconds of `iqtree2 -fast` here to those of IQ-TREE's fast search there.

At the end, and in the chart, are geometric means of seconds and mean losses against the best lnL of each set, over the
sets that all programs have searched. A program is raxml, iqtree, iqtree-fast, or plltool[-EFFORT][:DEVICE], such as
plltool-fast:intel.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from draw_chains import draw_ends
from rivals import (
    IQTREE,
    RAXML,
    commit,
    comparison_parser,
    is_there,
    parsimony_tree,
    plain_alignment,
    printed_lnl,
    run,
    save,
    today,
    write_phylip,
)

import plltool
from plltool.constants import EFFORT_NAMES
from plltool.io.newick_writer import write_newick

DEFAULT_SETS = ("dna101", "dna150", "dna218", "dna354", "dna500")
DEFAULT_PROGRAMS = ("plltool-fast", "plltool", "plltool-thorough", "iqtree-fast", "raxml")
THREADS = "2"
MODELS = {"DNA": ("DNA", "GTR+F+G4", "GTRGAMMA"), "protein": ("AA", "LG+G4", "PROTGAMMALG")}  # IQ-TREE's, RAxML's names
BRIDGE = "iqtree-fast"
BRIDGES = (
    "IQ-TREE 2.0.7 (Debian) -fast",
    "IQ-TREE 3.1.3 -fast",
)  # its names on the other machine, the first that is there
JUDGES = ("plltool", "iqtree")

Figures = dict[str, dict[str, Any]]  # by sets and programs


def start_trees(
    name: str, data: Path, reference: Path, number: int, folder: Path
) -> tuple[Path, tuple[str, str, str], list[Path]]:
    """The alignment of a set under plain names, its kind and models, and start trees: the reference's, then our own."""
    given = plltool.read_alignment(plain_alignment(data, name, folder))
    names = [f"t{taxon}" for taxon in range(given.n_taxa)]
    alignment = write_phylip(folder / f"{name}.plain.phy", dict(zip(names, given.rows, strict=True)))
    trees = [folder / f"{name}.start{number}.nwk" for number in range(number)]
    files = (reference / "trees" / part / f"{name}.start.nwk" for part in ("", "treebase"))
    tree = plltool.read_tree(next(path for path in files if path.exists()), given.names)
    trees[0].write_text(write_newick(plltool.Tree.from_edges(tuple(names), tree.ends, tree.lengths)) + "\n")
    for seed, path in enumerate(trees[1:], start=1):
        path.write_text(parsimony_tree(alignment, None, seed) + "\n")
    return alignment, MODELS["protein" if given.states and given.states.name == "protein" else "DNA"], trees


def search_command(
    program: str, alignment: Path, models: tuple[str, str, str], start: Path, folder: Path
) -> tuple[list[object], Path]:
    """The command line of one search, and the file that its tree will be in."""
    kind, model, raxml_model = models
    if program.startswith("plltool"):
        name, _, device = program.partition(":")
        effort = name.partition("-")[2] or "default"
        if effort not in EFFORT_NAMES:
            raise SystemExit(f"{program!r}: expected an effort among {', '.join(EFFORT_NAMES)}")
        options = ["--effort", effort, "--device", device or "auto", "--prefix", folder / "plltool", "--redo"]
        command = ["plltool", "search", alignment, "--model", model, "--start", start, "--threads", THREADS]
        return [*command, *options], folder / "plltool.best.nwk"
    if program == "raxml":
        command = [RAXML, "-T", THREADS, "-f", "d", "-m", raxml_model, "-s", alignment, "-t", start]
        return [*command, "-n", "run", "-w", folder, "-p", "1"], folder / "RAxML_bestTree.run"
    if program in ("iqtree", BRIDGE):
        how = ["-fast"] if program == BRIDGE else ["-ninit", "1"]
        command = [IQTREE, "-s", alignment, "--seqtype", kind, "-m", model, "-t", start, *how, "-nt", THREADS]
        return [*command, "-pre", folder / "iqtree", "-redo", "-quiet", "--keep-ident", "-seed", "1"], (
            folder / "iqtree.treefile"
        )
    raise SystemExit(f"no program is called {program!r}")


def judge(judge: str, alignment: Path, models: tuple[str, str, str], tree: Path, folder: Path) -> float | None:
    """lnL of a tree with lengths and model optimised; None if the judge is not installed."""
    kind, model, _ = models
    if judge == "plltool":
        return plltool.evaluate(alignment, tree, model, threads=int(THREADS)).lnl
    command = [IQTREE, "-s", alignment, "--seqtype", kind, "-m", model, "-te", tree, "-nt", THREADS, "-me", "0.0001"]
    return printed_lnl(
        [*command, "--keep-ident", "-pre", folder / "judge", "-redo"], r"Optimal log-likelihood: (-[\d.]+)"
    )


def time_search(
    program: str, alignment: Path, models: tuple[str, str, str], start: Path, judges: Sequence[str]
) -> dict[str, Any] | None:
    """Run one search: seconds, and lnL by each judge; None if the program is not installed or fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command, tree = search_command(program, alignment, models, start, folder)
        if not is_there(str(command[0])):
            return None
        done = run(command, folder, strict=False)
        if done.status or not tree.exists():
            print(f"{program}: exit {done.status}: {done.printed[-500:]}", file=sys.stderr)
            return None
        row: dict[str, Any] = {"seconds": done.seconds, "cpu_seconds": done.cpu_seconds}
        return row | {f"{own}_lnl": judge(own, alignment, models, tree, folder) for own in judges}


def read_elsewhere(reference: Path) -> Figures:
    """What other programs took on another machine, set by set; what plltool took there is left out."""
    paths = [reference / name for name in ("search.json", "treebase.json") if (reference / name).exists()]
    found = [json.loads(path.read_text()) for path in paths]
    sets = {name: rows for own in found for name, rows in own.get("sets", own).items()}
    return {
        name: {program: row for program, row in rows.items() if "plltool" not in program} for name, rows in sets.items()
    }


def summarise(results: dict[str, dict[str, list[dict[str, Any]]]], elsewhere: Figures) -> list[dict[str, Any]]:
    """A row for each program on each set: medians over the start trees, here and, scaled, elsewhere."""
    ratios = []
    for name, runs in results.items():
        there = next((elsewhere[name][own] for own in BRIDGES if own in elsewhere.get(name, {})), None)
        if there and BRIDGE in runs:
            ratios.append(runs[BRIDGE][0]["seconds"] / there["seconds"])
    scale = statistics.median(ratios) if ratios else 1.0
    rows = []
    for name, runs in results.items():
        for program, trials in runs.items():
            medians = {key: statistics.median(trial[key] for trial in trials) for key in ("seconds", "plltool_lnl")}
            row = {"set": name, "program": program, "runs": len(trials), "seconds": medians["seconds"]}
            rows.append(row | {"lnl": medians["plltool_lnl"]})
        for program, found in elsewhere.get(name, {}).items():
            scaled = round(scale * found["seconds"], 2)
            rows.append({"set": name, "program": f"elsewhere: {program}", "seconds": scaled, "lnl": found["lnl"]})
    return rows


def total(rows: Sequence[dict[str, Any]], programs: Sequence[str]) -> list[dict[str, Any]]:
    """For each kind of data and program: sets, geometric mean of seconds, and mean and largest loss of lnL."""
    totals = []
    for kind in ("dna", "protein"):
        by_set: dict[str, Figures] = {}
        for row in rows:
            if row["set"].startswith("protein") == (kind == "protein") and row["program"] in programs:
                by_set.setdefault(row["set"], {})[row["program"]] = row
        common = {name: found for name, found in by_set.items() if len(found) == len(programs)}
        for program in programs if common else ():
            lost = [max(row["lnl"] for row in of.values()) - of[program]["lnl"] for of in common.values()]
            seconds = statistics.geometric_mean(max(0.01, of[program]["seconds"]) for of in common.values())
            row = {"kind": kind, "program": program, "sets": len(common), "seconds": round(seconds, 3)}
            totals.append(row | {"loss": round(statistics.fmean(lost), 3), "worst": round(max(lost), 3)})
    return totals


def draw(totals: Sequence[dict[str, Any]]) -> str:
    """The chart: a point for each program, plltool's efforts on a line."""
    ends = []
    for row in totals:
        name = "plltool" if row["program"].startswith("plltool") else row["program"].removeprefix("elsewhere: ")
        ends.append((name, row["seconds"], row["loss"]))
    return draw_ends(ends, "seconds on two cores, geometric mean")


def main() -> None:
    parser = comparison_parser(__doc__, DEFAULT_SETS, DEFAULT_PROGRAMS, strict=False)
    parser.add_argument("--starts", type=int, default=1, help="start trees of each set; default: 1")
    parser.add_argument("--judge", action="append", choices=JUDGES, help="default: both")
    parser.add_argument("--chart", type=Path, metavar="FILE.svg", help="of the DNA alignments")
    options = parser.parse_args()
    elsewhere = read_elsewhere(options.reference)
    judges, programs = options.judge or JUDGES, options.program or DEFAULT_PROGRAMS
    treebase = [name for name in elsewhere if name.startswith(("dna-", "protein-"))]
    sets = [own for name in options.set or DEFAULT_SETS for own in (treebase if name == "treebase" else [name])]
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        for name in sets:
            alignment, models, starts = start_trees(name, options.data, options.reference, options.starts, folder)
            if name in treebase and name.startswith("protein") != (models == MODELS["protein"]):
                del elsewhere[name]  # was searched as another kind of data than its letters are
            cold: dict[str, float] = {}
            for start in starts:
                for program in programs:
                    device = program.partition(":")[2]
                    if program.startswith("plltool") and device not in cold:
                        warm_up, _ = search_command(f"plltool-fast:{device}", alignment, models, start, folder)
                        cold[device] = run(warm_up, folder).seconds
                    row = time_search(program, alignment, models, start, judges)
                    if row is None:
                        continue
                    row |= {"cold": cold[device]} if program.startswith("plltool") else {}
                    results.setdefault(name, {}).setdefault(program, []).append(row)
                    print(name, start.name, program, row, flush=True)
            rows = summarise(results, elsewhere)
            known = [own for own in dict.fromkeys(row["program"] for row in rows) if own in programs or "NG" in own]
            figures = {"date": today(), "commit": commit(), "threads": THREADS, "totals": total(rows, known)}
            save(options.output, figures | {"summary": rows, "sets": results})
    for row in rows:
        print("{set:22} {program:50} {seconds:9.2f} s {lnl}".format(**row))
    for row in figures["totals"]:
        print("{kind:8} {program:50} {sets:3} {seconds:9.2f} s  loss {loss} worst {worst}".format(**row))
    if options.chart is not None:
        options.chart.write_text(draw([row for row in figures["totals"] if row["kind"] == "dna"]))


if __name__ == "__main__":
    main()
