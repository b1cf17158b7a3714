"""Compare plans of a search, by where they end and how long they take, on alignments that are hard to search.

    python scripts/benchmarks/compare_plans.py make DATA_DIR FOLDER [--seed N] [--number N]
    python scripts/benchmarks/compare_plans.py run FILE.fasta ... --output FILE.json [--plan PLAN ...] [--seeds N,N]
        [--label WORD] [--limit SECONDS]
    python scripts/benchmarks/compare_plans.py show FILE.json [--plan PLAN ...] [--sets WORD] [--chart FILE.svg]

`make` writes hard alignments: samples of taxa and columns of the alignments in DATA_DIR and DATA_DIR/treebase, and
concatenations of genes that many taxa lack; DNA and proteins. The names of a third begin with "held": keep these for
the end, and tune on the others.

`run` searches under GTR+F+G4, or LG+G4 where the file name has "-aa-", on one thread. A PLAN is an effort, with options
of `plltool.SearchOptions` after colons: fast, default:stop=kh, thorough:radii=5:perturbations=0. Other programs are
plans, too: "IQ-TREE -fast", "IQ-TREE" and "RAxML" run iqtree2 and raxmlHPC-PTHREADS-AVX, whose two threads wait
busily, from their own start trees. The lnL of their trees is that of `plltool.evaluate`. FILE.json gets a row for each
set, plan and seed, with lnL and the seconds of the processor. Rows that are there already are not searched again.
`--label` goes before the names of plans, to tell two versions apart.

`show` prints a table of the plans on the sets that all of them have searched. Losses are in lnL against the best end of
the same set: the median of the medians of sets, the mean, and the worst of all searches. A set is behind where the
median loses more than 1. Seconds are geometric means. The chart shows mean losses.
"""

import argparse
import itertools
import json
import math
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from draw_chains import draw_ends
from rivals import RAXML, load, run_iqtree, save
from rivals import run as measure

import plltool
from plltool.constants import EFFORT_NAMES
from plltool.io.alignment_formats import format_fasta

DNA = (
    *("dna354", "dna500", "dna1288", "dna2000"),
    *(f"treebase/dna-{name}" for name in ("S13718-M15540", "S13903-M15991", "S14351-M17671", "S1444-M960")),
)
PROTEINS = "aa140", "treebase/protein-S10281-M4780", "treebase/protein-S12097-M11013"
MOST_TAXA, MOST_PROTEINS = (60, 90, 120, 180), 30  # of the alignments in turn; half as many at least
SITES = 200, 500
GENES, LOSS = (4, 10), (0.5, 0.9)  # of a concatenation, and the share of genes that a taxon lacks
HELD_BACK = 3  # every third alignment
RIVALS = "IQ-TREE -fast", "IQ-TREE", "RAxML"
BEHIND = 1.0  # lnL: a plan whose median on a set loses more is behind there
Letters = npt.NDArray[np.str_]


def sample(letters: Letters, most_taxa: int, rng: np.random.Generator) -> Letters:
    """Some taxa and columns, in their order."""
    ends = (most_taxa // 2, most_taxa), SITES
    numbers = [min(int(rng.integers(*pair)), size) for pair, size in zip(ends, letters.shape, strict=True)]
    drawn = [np.sort(rng.choice(size, n, replace=False)) for n, size in zip(numbers, letters.shape, strict=True)]
    return letters[np.ix_(*drawn)]


def lose_genes(letters: Letters, rng: np.random.Generator) -> Letters:
    """The columns as genes; each taxon has one gene at least."""
    bounds = np.linspace(0, letters.shape[1], int(rng.integers(*GENES, endpoint=True)) + 1).astype(int)
    lacks = rng.random((len(letters), len(bounds) - 1)) < rng.uniform(*LOSS)
    lacks[np.arange(len(letters)), rng.integers(len(bounds) - 1, size=len(letters))] = False
    return np.where(np.repeat(lacks, np.diff(bounds), axis=1), "-", letters)


def make(data: Path, folder: Path, seed: int, number: int) -> None:
    """Write the alignments: the same kind three times, then the next kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in range(number):
        rng = np.random.default_rng((seed, place))
        kind = place // HELD_BACK % 6
        is_protein, is_gappy = kind >= 4, kind % 2 == 1
        source = data / str(rng.choice(PROTEINS if is_protein else DNA))
        suffix = next(suffix for suffix in (".phy", ".phy.gz", ".fasta.gz") if Path(f"{source}{suffix}").exists())
        whole = np.array([list(row.decode()) for row in plltool.read_alignment(f"{source}{suffix}").rows])
        letters = sample(whole, MOST_PROTEINS if is_protein else MOST_TAXA[place % len(MOST_TAXA)], rng)
        if is_gappy:
            letters = lose_genes(letters, rng)
        rows = {f"t{row:03}": "".join(line) for row, line in enumerate(letters) if set(line) - set("-?NXn")}
        name = "held" if place % HELD_BACK == HELD_BACK - 1 else "tune"
        name += f"-{place + 1:02}-{'aa' if is_protein else 'dna'}-{'gaps' if is_gappy else 'full'}"
        (folder / f"{name}.fasta").write_text(format_fasta(list(rows), list(rows.values())))


def parse_plan(plan: str) -> plltool.SearchOptions:
    """The options that a plan stands for."""
    effort, *words = plan.split(":")
    given: dict[str, Any] = {}
    for name, values in (word.split("=") for word in words):
        read = tuple(value if value.isalpha() else json.loads(value) for value in values.split(","))
        given[name] = read if name == "radii" else read[0]
    return plltool.SearchOptions(effort, **given)


def search(alignment: plltool.Sequences, model: str, plan: str, seed: int) -> dict[str, Any]:
    """The end of one search, and how long it took."""
    began = time.process_time()
    found = plltool.search(alignment, model, options=parse_plan(plan), seed=seed, threads=1, workers=1)
    seconds = round(time.process_time() - began, 2)
    perturbations = sum(event.stage == "perturb" for event in found.trace)
    row = {"device": found.device, "lnl": round(found.lnl, 3), "cpu_seconds": seconds, "perturbations": perturbations}
    return row | {"climbs": [round(lnl, 3) for lnl in found.start_lnls]}


def search_elsewhere(file: Path, model: str, program: str, seed: int, limit: int) -> dict[str, Any] | None:
    """The end of one search of another program, under plltool's likelihood; None if it takes longer than `limit`."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(file, folder))  # the programs write beside the alignment
        if program == "RAxML":
            kind = "PROTGAMMALG" if "LG" in model else "GTRGAMMA"
            command = [RAXML, "-T", "2", "-m", kind, "-p", seed, "-n", "run", "-w", folder, "-s", copy]
            spent, tree = measure(command, cpu_limit=limit), Path(folder) / "RAxML_bestTree.run"
        else:
            options = [*program.split()[1:], "-m", model, "-seed", seed]
            spent = run_iqtree(copy, Path(folder) / "run", *options, cpu_limit=limit)
            tree = Path(folder) / "run.treefile"
        if spent.stopped:
            return None
        lnl = plltool.evaluate(str(file), str(tree), model, threads=1).lnl
    return {"lnl": round(lnl, 3), "cpu_seconds": spent.cpu_seconds}


def run(files: list[Path], plans: list[str], seeds: list[int], label: str, output: Path, limit: int) -> None:
    """Search every alignment by every plan with every seed."""
    rows = load(output, [])
    done = {(row["set"], row["plan"], row["seed"]) for row in rows}
    for file in files:
        asked = itertools.product(seeds, plans)
        todo = [(plan, seed) for seed, plan in asked if (file.stem, label + plan, seed) not in done]
        if not todo:
            continue
        alignment, model = plltool.read_alignment(str(file)), "LG+G4" if "-aa-" in file.name else "GTR+F+G4"
        if not all(plan in RIVALS for plan, _ in todo):
            search(alignment, model, "fast:perturbations=1", 1)  # compiles the kernels
        for plan, seed in todo:
            if plan in RIVALS:
                found = search_elsewhere(file, model, plan, seed, limit)
            else:
                found = search(alignment, model, plan, seed)
            if found is not None:
                rows.append({"set": file.stem, "plan": label + plan, "seed": seed, **found})
                save(output, rows)


def summarise(rows: list[dict[str, Any]], plans: list[str]) -> dict[str, list[float]]:
    """For each plan, the figures of `show` on the sets that all of them have searched."""
    best = {name: max(row["lnl"] for row in rows if row["set"] == name) for name in {row["set"] for row in rows}}
    common = set.intersection(*({row["set"] for row in rows if row["plan"] == plan} for plan in plans))
    figures = {}
    for plan in plans:
        own = [[row for row in rows if (row["plan"], row["set"]) == (plan, name)] for name in sorted(common)]
        lost = [[best[row["set"]] - row["lnl"] for row in of_set] for of_set in own]
        medians = [statistics.median(of_set) for of_set in lost]
        seconds = [statistics.fmean(max(0.01, row["cpu_seconds"]) for row in of_set) for of_set in own]
        losses = [statistics.median(medians), statistics.fmean(map(statistics.fmean, lost)), max(map(max, lost))]
        behind = sum(median > BEHIND for median in medians)
        n_searches = sum(map(len, own))
        figures[plan] = [len(common), n_searches, *losses, behind, statistics.geometric_mean(seconds)]
    return figures


def table(rows: list[dict[str, Any]], plans: list[str]) -> str:
    """The figures of the plans as a Markdown table."""
    lines = ["| plan | sets | searches | median loss | mean loss | worst loss | sets behind | seconds |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for plan, (n_sets, n_searches, *losses, behind, seconds) in summarise(rows, plans).items():
        cells = [f"{n_sets}", f"{n_searches}", *(f"{loss:.1f}" for loss in losses), f"{behind}", f"{seconds:.2g}"]
        lines.append(f"| {' | '.join([plan, *cells])} |")
    return "\n".join(lines)


def draw(rows: list[dict[str, Any]], plans: list[str]) -> str:
    """The chart, with a line for each program."""
    ends = [
        ("plltool" if plan in EFFORT_NAMES else plan.split()[0], math.log10(seconds), mean)
        for plan, (*_, mean, _worst, _behind, seconds) in summarise(rows, plans).items()
    ]
    return draw_ends(ends, "seconds of one core, as powers of ten")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    maker = commands.add_parser("make")
    maker.add_argument("data", type=Path)
    maker.add_argument("folder", type=Path)
    maker.add_argument("--seed", type=int, default=1, help="default: 1")
    maker.add_argument("--number", type=int, default=36, help="of alignments; default: 36")
    runner = commands.add_parser("run")
    runner.add_argument("files", type=Path, nargs="+")
    runner.add_argument("--plan", action="append", help="default: fast, default and thorough")
    runner.add_argument("--seeds", default="1,2,3", help="default: 1,2,3")
    runner.add_argument("--label", default="")
    runner.add_argument("--limit", type=int, default=90, help="of the seconds of another program; default: 90")
    runner.add_argument("--output", type=Path, required=True)
    shower = commands.add_parser("show")
    shower.add_argument("results", type=Path)
    shower.add_argument("--plan", action="append", help="default: all")
    shower.add_argument("--sets", default="", help="those with this in their names, such as gaps; default: all")
    shower.add_argument("--chart", type=Path)
    options = parser.parse_args()
    if options.command == "make":
        make(options.data, options.folder, options.seed, options.number)
    elif options.command == "run":
        plans, seeds = options.plan or list(EFFORT_NAMES), [int(seed) for seed in options.seeds.split(",")]
        run(options.files, plans, seeds, options.label, options.output, options.limit)
    else:
        rows = [row for row in json.loads(options.results.read_text()) if options.sets in row["set"]]
        plans = options.plan or list(dict.fromkeys(row["plan"] for row in rows))
        print(table(rows, plans))
        if options.chart is not None:
            options.chart.write_text(draw(rows, plans))


if __name__ == "__main__":
    main()
