"""Compare plans of a search, by where they end and how long they take, on alignments that are hard to search.

    python scripts/benchmarks/compare_plans.py make DATA_DIR FOLDER [--seed N] [--number N]
    python scripts/benchmarks/compare_plans.py run FILE.fasta ... --output FILE.json [--plan PLAN ...] [--seeds N,N]
        [--label WORD]
    python scripts/benchmarks/compare_plans.py show FILE.json ... [--chart FILE.svg]

`make` writes hard alignments: samples of taxa and columns of the alignments in DATA_DIR and DATA_DIR/treebase, and
concatenations of genes that many taxa lack; DNA and proteins. The names of a third begin with "held": keep these for
the end, and tune on the others.

`run` searches under GTR+F+G4, or LG+G4 where the file name has "-aa-", on one thread. A PLAN is an effort, with options
of `plltool.SearchOptions` after colons: fast, default:starts=4, thorough:radii=5:perturbations=0. FILE.json gets a row
for each set, plan and seed, with lnL and the seconds of the processor. Rows that are there already are not searched
again. `--label` goes before the names of plans, to tell two versions apart.

`show` prints for each plan the median, mean, 90th percentile and worst of the losses in lnL against the best end of the
same set, and the geometric mean of the seconds. It leaves out what not all plans have searched. The chart shows mean
losses; plans that differ in later options only are on one line.
"""

import argparse
import itertools
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from draw_chains import as_document
from rivals import load, save

import plltool
from plltool.constants import EFFORT_NAMES
from plltool.io.alignment_formats import format_fasta
from plltool.reports.plots import draw_path

DNA = (
    *("dna354", "dna500", "dna1288", "dna2000"),
    *(f"treebase/dna-{name}" for name in ("S13718-M15540", "S13903-M15991", "S14351-M17671", "S1444-M960")),
)
PROTEINS = "aa140", "treebase/protein-S10281-M4780", "treebase/protein-S12097-M11013"
MOST_TAXA, MOST_PROTEINS = (120, 160, 240, 420), 80  # of the alignments in turn; half as many at least
SITES = 200, 500
GENES, LOSS = (4, 10), (0.5, 0.9)  # of a concatenation, and the share of genes that a taxon lacks
HELD_BACK = 3  # every third alignment
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
    given = {name: json.loads(f"[{values}]") for name, values in (word.split("=") for word in words)}
    return plltool.SearchOptions(effort, **{k: tuple(v) if k == "radii" else v[0] for k, v in given.items()})


def search(alignment: plltool.Sequences, model: str, plan: str, seed: int) -> dict[str, Any]:
    """The end of one search, and how long it took."""
    began = time.process_time()
    found = plltool.search(alignment, model, options=parse_plan(plan), seed=seed, threads=1, workers=1)
    seconds = round(time.process_time() - began, 2)
    perturbations = sum(event.stage == "perturb" for event in found.trace)
    row = {"device": found.device, "lnl": round(found.lnl, 3), "cpu_seconds": seconds, "perturbations": perturbations}
    return row | {"climbs": [round(lnl, 3) for lnl in found.start_lnls]}


def run(files: list[Path], plans: list[str], seeds: list[int], label: str, output: Path) -> None:
    """Search every alignment by every plan with every seed."""
    rows = load(output, [])
    done = {(row["set"], row["plan"], row["seed"]) for row in rows}
    for file in files:
        asked = itertools.product(seeds, plans)
        todo = [(plan, seed) for seed, plan in asked if (file.stem, label + plan, seed) not in done]
        if not todo:
            continue
        alignment, model = plltool.read_alignment(str(file)), "LG+G4" if "-aa-" in file.name else "GTR+F+G4"
        search(alignment, model, "fast:perturbations=1", 1)  # compiles the kernels
        for plan, seed in todo:
            rows.append({"set": file.stem, "plan": label + plan, "seed": seed, **search(alignment, model, plan, seed)})
            save(output, rows)


def show(rows: list[dict[str, Any]], chart: Path | None) -> None:
    """Print a line for each plan, and draw them."""
    best = {name: max(row["lnl"] for row in rows if row["set"] == name) for name in {row["set"] for row in rows}}
    by_plan = {row["plan"]: [one for one in rows if one["plan"] == row["plan"]] for row in rows}
    common = set.intersection(*({(row["set"], row["seed"]) for row in own} for own in by_plan.values()))
    print(f"{'plan':44} {'runs':>5} {'median':>8} {'mean':>8} {'90 %':>8} {'worst':>8} {'seconds':>8}")
    lines: dict[str, list[tuple[float, float]]] = {}  # by effort and first option
    for plan, own in by_plan.items():
        counted = [row for row in own if (row["set"], row["seed"]) in common]
        lost = [best[row["set"]] - row["lnl"] for row in counted]
        seconds = statistics.geometric_mean(max(0.01, row["cpu_seconds"]) for row in counted)
        figures = statistics.median(lost), statistics.fmean(lost), float(np.quantile(lost, 0.9)), max(lost), seconds
        print(f"{plan:44} {len(counted):5}", *(f"{figure:8.2f}" for figure in figures))
        lines.setdefault(":".join(plan.split(":")[:2]), []).append((seconds, -figures[1]))
    if chart is not None:
        names = "seconds of one core, geometric mean", "lnL against the best end, mean"
        kinds = [[number] * len(line) for number, line in enumerate(lines.values())]
        plot = draw_path(list(lines.values()), kinds, list(lines), names, "Ends of searches against time")
        chart.write_text(as_document(plot))


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
    runner.add_argument("--output", type=Path, required=True)
    shower = commands.add_parser("show")
    shower.add_argument("results", type=Path, nargs="+")
    shower.add_argument("--chart", type=Path)
    options = parser.parse_args()
    if options.command == "make":
        make(options.data, options.folder, options.seed, options.number)
    elif options.command == "run":
        plans, seeds = options.plan or list(EFFORT_NAMES), [int(seed) for seed in options.seeds.split(",")]
        run(options.files, plans, seeds, options.label, options.output)
    else:
        show([row for path in options.results for row in json.loads(path.read_text())], options.chart)


if __name__ == "__main__":
    main()
