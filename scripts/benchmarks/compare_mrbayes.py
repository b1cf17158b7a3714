#!/usr/bin/env python3
"""Compare samples of plltool with those of MrBayes 3.2 (Debian's package mrbayes): the same posterior, and the time.

    scripts/benchmarks/compare_mrbayes.py data/primates.phy --generations 100000 --rival-generations 200000
        --output results.json

Both run two runs of four chains, or --chains, under GTR+G4 (proteins: LG+G4) with the default priors of MrBayes 3.2, at
the same time, each on one thread, from random trees. With --seconds a program that has had so much processor time is
stopped; so is each when this script gets SIGTERM. What they have sampled by then counts. Both sets of files are read by
the same code: effective sizes (Vehtari et al. 2021) of all runs behind a burn-in of 25 %, means and 95 % intervals,
split frequencies, and their average standard deviation (ASDSF) between the runs of a program and between the programs.
Seconds are processor time. Those until the runs agree are in proportion to the generations until ASDSF stays below
0.01, as seen at numbers of samples that grow by 10 %. A difference of means is given in standard errors. Contested
splits, those in between 10 % and 90 % of the samples, have effective sizes, too: of being there or not.

With --references, tables of topologies by long runs of MrBayes (.trprobs.gz), both sample under JC with branch lengths
of the prior Exp(10), as those runs did. A program agrees from when on the ASDSF of its trees to each reference is no
larger than the largest among the references.
"""

import argparse
import gzip
import math
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rivals import cpu_seconds, save, write_nexus

import plltool
from plltool.analyses.sampling.analysis import CHECK_GROWTH
from plltool.analyses.sampling.samples import effective_size, split_deviation
from plltool.analyses.sampling.summaries import shortest_interval
from plltool.constants import DEFAULT_BURNIN, ENOUGH_DEVIATION
from plltool.io.tree_files import read_tree_set
from plltool.tree.splits import TreeSet

RUNS = 2
CONTESTED = 0.1, 0.9  # shares of splits whose effective sizes are told
FIRST_LOOK = 20  # samples of a run before the first look at the agreement of runs
MRBAYES = """begin mrbayes;
 set autoclose=yes nowarn=yes seed={seed} swapseed={seed};
 execute data.nex;
 {model}
 mcmcp ngen={generations} samplefreq={every} printfreq={generations} nruns=2 nchains={chains};
 mcmc filename=rival diagnfreq=5000;
end;
"""
MODELS = {
    "DNA": ("GTR+FO+G4", "lset nst=6 rates=gamma;"),
    "protein": ("LG+G4", "prset aamodelpr=fixed(lg); lset rates=gamma;"),
    "references": ("JC", "lset nst=1 rates=equal; prset statefreqpr=fixed(equal) brlenspr=unconstrained:exp(10);"),
}


class Race:
    """Commands that run at the same time in one folder, each until it ends or has had enough processor time."""

    def __init__(self, folder: Path, commands: dict[str, list[str]], limit: float):
        self._limit = limit
        self._seconds = dict.fromkeys(commands, 0.0)
        self._logs = {name: folder / f"{name}.out" for name in commands}
        self._processes = {}
        for name, command in commands.items():
            with self._logs[name].open("w") as log:
                self._processes[name] = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        signal.signal(signal.SIGTERM, self._stop_all)

    def _stop_all(self, *_: object) -> None:
        self._limit = 0.0

    def run(self) -> dict[str, float]:
        """The processor time of each command."""
        stopped = set()
        while any(process.poll() is None for process in self._processes.values()):
            for name, process in self._processes.items():
                if process.returncode is None and name not in stopped and self._spent(name) >= self._limit:
                    process.send_signal(signal.SIGINT if name == "plltool" else signal.SIGKILL)  # MrBayes would ask
                    stopped.add(name)
            time.sleep(0.5)
        for name, process in self._processes.items():
            if process.returncode and name not in stopped:
                sys.exit(f"{name}: exit status {process.returncode}\n{self._logs[name].read_text()[-2000:]}")
        return self._seconds

    def _spent(self, name: str) -> float:
        self._seconds[name] = cpu_seconds(self._processes[name].pid)
        return self._seconds[name]


def read_lines(path: Path) -> list[str]:
    """The whole lines of a file; the last one of a program that was stopped may be cut off."""
    return path.read_text().rpartition("\n")[0].splitlines()


def cut_to_same_length(prefix: Path) -> int:
    """Make the files of samples equally long, each whole; the last generation."""
    tables, trees = ([Path(f"{prefix}.run{run}.{end}") for run in range(1, RUNS + 1)] for end in "pt")
    rows = {path: read_lines(path) for path in tables}
    texts = {path: [line for line in read_lines(path) if line.strip() != "end;"] for path in trees}
    heads = {path: sum("tree gen." not in line for line in lines) for path, lines in texts.items()}
    least = min(*(len(own) - 2 for own in rows.values()), *(len(texts[path]) - heads[path] for path in trees))
    for path, lines in rows.items():
        path.write_text("\n".join(lines[: least + 2]) + "\n")
    for path, lines in texts.items():
        path.write_text("\n".join([*lines[: least + heads[path]], "end;"]) + "\n")
    return int(rows[tables[0]][least + 1].split("\t")[0])


def read_numbers(prefix: Path) -> dict[str, np.ndarray]:
    """The numbers of both runs (2, n) by column, behind the burn-in."""
    tables = []
    for run in range(1, RUNS + 1):
        lines = Path(f"{prefix}.run{run}.p").read_text().splitlines()[1:]
        rows = np.array([line.split("\t") for line in lines[1:]], dtype=float)
        tables.append(rows[int(DEFAULT_BURNIN * len(rows)) :])
    return {name: np.array([rows[:, k] for rows in tables]) for k, name in enumerate(lines[0].split("\t")) if k}


def read_trees(prefix: Path) -> list[TreeSet]:
    """The trees of each run; all have their taxa in the same order."""
    paths = [Path(f"{prefix}.run{run}.t") for run in range(1, RUNS + 1)]
    names = sorted(read_tree_set(paths[:1]).names)
    return [read_tree_set([path], names) for path in paths]


def shares_of(trees: TreeSet, n: int) -> dict[int, float]:
    """The shares of splits in the first `n` trees of a run, behind the burn-in."""
    return {split: share for split, share in trees.part(int(DEFAULT_BURNIN * n), n).shares.items() if share > 0}


def mean_shares(runs: list[TreeSet], n: int) -> dict[int, float]:
    """The shares of splits in the first `n` trees of all runs, each behind its burn-in."""
    found: dict[int, float] = {}
    for trees in runs:
        for split, share in shares_of(trees, n).items():
            found[split] = found.get(split, 0.0) + share / len(runs)
    return found


def read_topologies(path: Path, names: Sequence[str]) -> tuple[TreeSet, np.ndarray]:
    """The topologies of a table of MrBayes, and their probabilities."""
    weights = np.array(re.findall(r"\[&W ([\d.]+)\]", gzip.decompress(path.read_bytes()).decode()), dtype=float)
    return read_tree_set([path], names), weights / weights.sum()


def read_reference(path: Path, names: Sequence[str]) -> dict[int, float]:
    """The shares of splits in a table of topologies with their probabilities."""
    trees, weights = read_topologies(path, names)
    shares = np.bincount(trees.members, np.repeat(weights, np.diff(trees.starts)), len(trees.splits))
    return dict(zip(trees.splits, shares.tolist(), strict=True))


def find_agreement(n: int, deviation_at: Callable[[int], float], enough: float) -> tuple[float, float | None]:
    """The deviation of all `n` samples, and the share of them from which on it is enough; None if it never is."""
    looks, look = [n], float(FIRST_LOOK)
    while look < n:
        looks.append(int(look))
        look = max(look + 1, CHECK_GROWTH * look)
    last, agreed = deviation_at(n), None
    for look in sorted(looks, reverse=True):
        if deviation_at(look) > enough:
            break
        agreed = look / n
    return last, agreed


def describe(numbers: dict[str, np.ndarray], seconds: float) -> dict[str, Any]:
    """Means, intervals, effective sizes and their rates."""
    found = {}
    for name, values in numbers.items():
        if name == "LnPr" or np.ptp(values) == 0:
            continue
        size = effective_size(values)
        low, high = shortest_interval(np.sort(values.ravel()))
        deviation = float(values.std(ddof=1))
        found[name] = {
            "mean": float(values.mean()), "low": low, "high": high, "deviation": deviation,
            "ess": round(size, 1), "ess_per_second": round(size / seconds, 3),
        }  # fmt: skip
    return found


def describe_splits(runs: list[TreeSet], seconds: float) -> dict[str, Any]:
    """The number of contested splits, and the smallest and the median rate of their effective sizes."""
    first, n = int(DEFAULT_BURNIN * runs[0].n_trees), runs[0].n_trees
    there: dict[int, np.ndarray] = {}
    for run, trees in enumerate(runs):
        for number in range(first, n):
            for own in trees.of_tree(number):
                there.setdefault(trees.splits[own], np.zeros((len(runs), n - first)))[run, number - first] = 1.0
    low, high = CONTESTED
    rates = [effective_size(values) / seconds for values in there.values() if low <= values.mean() <= high]
    if not rates:
        return {"contested": 0}
    least, middle = min(rates), float(np.median(rates))
    return {"contested": len(rates), "least_ess_per_second": round(least, 4), "median_ess_per_second": round(middle, 4)}


def describe_program(
    prefix: Path, trees: list[TreeSet], generations: int, seconds: float, references: list[dict[int, float]], apart: Any
) -> dict[str, Any]:
    """What the files of a program say; `apart` is the largest ASDSF among the references, if there are any."""
    n = trees[0].n_trees
    found = {"generations": generations, "seconds": round(seconds, 1)}

    def agree(name: str, deviation_at: Callable[[int], float], enough: float) -> None:
        deviation, agreed = find_agreement(n, deviation_at, enough)
        found["asdsf" + name] = deviation
        if agreed is not None:
            found[f"seconds_to_agreement{name}"] = agreed * seconds
            found[f"generations_to_agreement{name}"] = agreed * generations

    agree("", lambda look: split_deviation([shares_of(own, look) for own in trees]), ENOUGH_DEVIATION)
    if references:
        agree(
            "_to_references",
            lambda look: max(split_deviation([mean_shares(trees, look), one]) for one in references),
            apart,
        )
    return found | {"splits": describe_splits(trees, seconds), "numbers": describe(read_numbers(prefix), seconds)}


def compare_numbers(own: dict[str, Any], rival: dict[str, Any]) -> dict[str, Any]:
    """By number, how far the means are apart in standard errors, and whether the 95 % intervals overlap."""
    found = {}
    for name in sorted(set(own) & set(rival)):
        a, b = own[name], rival[name]
        error = np.hypot(a["deviation"] / a["ess"] ** 0.5, b["deviation"] / b["ess"] ** 0.5)
        found[name] = {
            "errors_apart": round(float((a["mean"] - b["mean"]) / error), 2),
            "intervals_overlap": bool(a["low"] <= b["high"] and b["low"] <= a["high"]),
        }
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("alignment", type=Path)
    parser.add_argument("--generations", type=int, default=100_000)
    parser.add_argument("--rival-generations", type=int, default=200_000)
    parser.add_argument("--sample-every", type=int, default=10)
    parser.add_argument("--rival-every", type=int, default=50)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--temperature", default="0.1", help="of plltool's heated chains")
    parser.add_argument("--references", type=Path, nargs="+", default=[], help="topologies of long runs (.trprobs.gz)")
    parser.add_argument("--taxa", type=int, help="only the first taxa of the file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="processor time of each program at most")
    parser.add_argument("--folder", type=Path, help="keeps the files of both programs")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    alignment = plltool.read_alignment(asked.alignment)
    assert alignment.states is not None
    rows = dict(list(zip(alignment.names, (row.decode() for row in alignment.rows), strict=True))[: asked.taxa])
    model, commands = MODELS["references" if asked.references else alignment.states.name]
    with tempfile.TemporaryDirectory() as name:
        folder = asked.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "data.fasta").write_text("".join(f">{taxon}\n{row}\n" for taxon, row in rows.items()))
        write_nexus(folder / "data.nex", rows, alignment.states.name)
        sizes = {"generations": asked.rival_generations, "every": asked.rival_every, "chains": asked.chains}
        (folder / "run.nex").write_text(MRBAYES.format(seed=asked.seed, model=commands, **sizes))
        command = ["plltool", "sample", "data.fasta", "--model", model, "--generations", str(asked.generations)]
        command += ["--sample-every", str(asked.sample_every), "--seed", str(asked.seed), "--threads", "1"]
        command += ["--prefix", "own", "--quiet", "--chains", str(asked.chains), "--temperature", asked.temperature]
        command += ["--prior-lengths", "exponential(10)"] * bool(asked.references)
        seconds = Race(folder, {"mrbayes": ["mb", "run.nex"], "plltool": command}, asked.seconds).run()
        generations = {name: cut_to_same_length(folder / name) for name in ("own", "rival")}
        own, rival = read_trees(folder / "own"), read_trees(folder / "rival")
        references = [read_reference(path, own[0].names) for path in asked.references]
        apart = max((split_deviation(pair) for pair in combinations(references, 2)), default=None)
        known = references, apart
        found: dict[str, Any] = {
            "alignment": asked.alignment.name, "taxa": len(rows), "model": model, "seed": asked.seed,
            "chains": asked.chains, "temperature": asked.temperature,
            "asdsf_of_references": apart,
            "plltool": describe_program(folder / "own", own, generations["own"], seconds["plltool"], *known),
            "mrbayes": describe_program(folder / "rival", rival, generations["rival"], seconds["mrbayes"], *known),
        }  # fmt: skip
    found["asdsf_between"] = split_deviation([mean_shares(trees, trees[0].n_trees) for trees in (own, rival)])
    found["differences"] = compare_numbers(found["plltool"]["numbers"], found["mrbayes"]["numbers"])
    found["most_errors_apart"] = max(abs(own["errors_apart"]) for own in found["differences"].values())
    print(f"ASDSF between the programs: {found['asdsf_between']:.5f}")
    for program in ("plltool", "mrbayes"):
        own = found[program]
        agreed = f"from {own['seconds_to_agreement']:.1f} s on" if "seconds_to_agreement" in own else "not yet"
        print(f"{program}: {own['seconds']} s, ASDSF of its runs {own['asdsf']:.5f}, below 0.01 {agreed}")
        if references:
            print(
                f"{program}: to the references {own['asdsf_to_references']:.5f} of {found['asdsf_of_references']:.5f}"
            )
        print(f"{program}: splits {own['splits']}")
    for number, apart in found["differences"].items():
        mine, other = (found[program]["numbers"][number] for program in ("plltool", "mrbayes"))
        rates = f"ESS/s {mine['ess_per_second']:8.2f} {other['ess_per_second']:8.2f}"
        overlap = "" if apart["intervals_overlap"] else "  INTERVALS APART"
        means = f"{mine['mean']:12.6g} {other['mean']:12.6g}"
        print(f"{number:>10} {means}  {apart['errors_apart']:5.1f} errors apart  {rates}{overlap}")
    save(asked.output, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
