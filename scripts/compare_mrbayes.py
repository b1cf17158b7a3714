#!/usr/bin/env python3
"""Compare samples of plltool with those of MrBayes 3.2 (Debian's package mrbayes): the same posterior, and the time.

    scripts/compare_mrbayes.py data/primates.phy --generations 100000 --rival-generations 200000 --output results.json

Both run two runs of four chains under GTR+G4 (proteins: LG+G4) with the default priors of MrBayes 3.2, one after the
other, each on one thread. Both sets of files are read by the same code: effective sizes (Vehtari et al. 2021) of all
runs behind a burn-in of 25 %, means and 95 % intervals, split frequencies, and their average standard deviation (ASDSF)
between the programs. Seconds are processor time. A difference of means is given in standard errors.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import plltool
from plltool.constants import DEFAULT_BURNIN
from plltool.io.tree_files import read_tree_set
from plltool.run.posterior import shortest_interval
from plltool.statistics.convergence import effective_size, split_deviation

RUNS = 2
MRBAYES = """begin mrbayes;
 set autoclose=yes nowarn=yes seed={seed} swapseed={seed};
 execute data.nex;
 {model}
 mcmc ngen={generations} samplefreq={every} printfreq={generations} nruns=2 nchains=4 filename=rival diagnfreq=5000;
end;
"""
MODELS = {
    "DNA": ("GTR+FO+G4", "lset nst=6 rates=gamma;"),
    "protein": ("LG+G4", "prset aamodelpr=fixed(lg); lset rates=gamma;"),
}


def write_nexus(path: Path, alignment: Any) -> None:
    """The alignment for MrBayes."""
    kind = "dna" if alignment.states.name == "DNA" else "protein"
    rows = "\n".join(f"{n} {row.decode()}" for n, row in zip(alignment.names, alignment.rows, strict=True))
    size = f"dimensions ntax={len(alignment.names)} nchar={alignment.n_sites};"
    path.write_text(f"#NEXUS\nbegin data;\n{size}\nformat datatype={kind} gap=- missing=?;\nmatrix\n{rows}\n;\nend;\n")


def timed(command: list[str], folder: Path) -> float:
    """Run a command; its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def read_runs(prefix: Path) -> tuple[dict[str, np.ndarray], dict[int, float]]:
    """The numbers of both runs (2, n) by column, and the shares of splits, behind the burn-in."""
    tables = []
    for run in range(1, RUNS + 1):
        lines = Path(f"{prefix}.run{run}.p").read_text().splitlines()[1:]
        rows = np.array([line.split("\t") for line in lines[1:]], dtype=float)
        tables.append(rows[int(DEFAULT_BURNIN * len(rows)) :])
    columns = lines[0].split("\t")
    numbers = {name: np.array([rows[:, k] for rows in tables]) for k, name in enumerate(columns) if k}
    return numbers, split_shares(prefix)


def split_shares(prefix: Path) -> dict[int, float]:
    """The shares of splits in the trees of both runs behind the burn-in."""
    shares: dict[int, float] = {}
    names: list[str] | None = None
    for run in range(1, RUNS + 1):
        path = Path(f"{prefix}.run{run}.t")
        names = names or sorted(read_tree_set([path]).names)
        trees = read_tree_set([path], names)
        kept = trees.part(int(DEFAULT_BURNIN * trees.n_trees), trees.n_trees)
        for split, share in kept.shares.items():
            shares[split] = shares.get(split, 0.0) + share / RUNS
    return shares


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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("alignment", type=Path)
    parser.add_argument("--generations", type=int, default=100_000)
    parser.add_argument("--rival-generations", type=int, default=200_000)
    parser.add_argument("--sample-every", type=int, default=50)
    parser.add_argument("--rival-every", type=int, default=100)
    parser.add_argument("--taxa", type=int, help="only the first taxa of the file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    alignment = plltool.read_alignment(asked.alignment)
    rows = dict(list(zip(alignment.names, (row.decode() for row in alignment.rows), strict=True))[: asked.taxa])
    model, commands = MODELS[alignment.states.name]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.fasta").write_text("".join(f">{taxon}\n{row}\n" for taxon, row in rows.items()))
        write_nexus(folder / "data.nex", plltool.read_alignment(folder / "data.fasta"))
        text = MRBAYES.format(
            seed=asked.seed, model=commands, generations=asked.rival_generations, every=asked.rival_every
        )
        (folder / "run.nex").write_text(text)
        rival_seconds = timed(["mb", "run.nex"], folder)
        command = ["plltool", "sample", "data.fasta", "--model", model, "--generations", str(asked.generations)]
        command += ["--sample-every", str(asked.sample_every), "--seed", str(asked.seed), "--threads", "1"]
        seconds = timed([*command, "--prefix", "own", "--quiet"], folder)
        own, own_splits = read_runs(folder / "own")
        rival, rival_splits = read_runs(folder / "rival")
    found = {
        "alignment": asked.alignment.name, "taxa": len(rows), "model": model,
        "plltool": {"generations": asked.generations, "seconds": round(seconds, 1), "numbers": describe(own, seconds)},
        "mrbayes": {
            "generations": asked.rival_generations, "seconds": round(rival_seconds, 1),
            "numbers": describe(rival, rival_seconds),
        },
        "asdsf_between": split_deviation([own_splits, rival_splits]),
    }  # fmt: skip
    print(f"ASDSF between the programs: {found['asdsf_between']:.5f}")
    print(f"seconds: plltool {seconds:.1f}, MrBayes {rival_seconds:.1f}")
    for number, mine in found["plltool"]["numbers"].items():
        other = found["mrbayes"]["numbers"].get(number)
        if other is not None:
            error = np.hypot(mine["deviation"] / mine["ess"] ** 0.5, other["deviation"] / other["ess"] ** 0.5)
            apart = (mine["mean"] - other["mean"]) / error
            rates = f"ESS/s {mine['ess_per_second']:8.2f} {other['ess_per_second']:8.2f}"
            print(f"{number:>10} {mine['mean']:12.6g} {other['mean']:12.6g}  {apart:5.1f} errors apart  {rates}")
    if asked.output:
        asked.output.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
