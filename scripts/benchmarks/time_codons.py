#!/usr/bin/env python3
"""Time a search of simulated codons: 62 taxa, 3,600 codons, vertebrate mitochondrial code, GY.

    python scripts/benchmarks/time_codons.py [--taxa N] [--codons N] [--seed N] [--device DEVICE] [--rival]
        [--output FILE.json]

The tree is random, with exponential lengths. The script measures CPU seconds, on one thread: of a round over all
branches, which is lnL with its first and second derivatives in every length after all lengths have changed; of the same
with the gradient of the rate matrix; and of `plltool search --effort fast`. It reports the Robinson-Foulds distance to
the true tree. With --rival IQ-TREE 2 (`-fast`) gets the same data, at most --cpu-limit seconds of processor time.
"""

import json
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rivals import IQTREE, make_parser, run, save, write_phylip

import plltool
from plltool.tree.random_tree import random_tree

MODEL = "CODON2_GY{0.05/8.0}+FE"
ROUNDS = 5


def simulate(n_taxa: int, n_codons: int, seed: int) -> tuple[Any, Any]:
    """A random tree, and an alignment that evolved along it."""
    rng = np.random.default_rng(seed)
    tree = random_tree([f"t{number}" for number in range(n_taxa)], rng)
    tree.lengths[:] = rng.exponential(0.15, tree.lengths.shape)
    return tree, plltool.simulate(tree, MODEL, 3 * n_codons, seed=seed).as_sequences()


def time_rounds(data: Any, tree: Any, device: str) -> dict[str, float]:
    """CPU seconds of a round over all branches: the shortest of a few."""
    with plltool.Likelihood(data, tree, "CODON2_GY+F3X4", device=device, threads=1) as likelihood:
        lengths = np.array(likelihood.lengths)
        requests = {
            "derivatives_seconds": likelihood.derivatives,
            "rate_matrix_gradient_seconds": likelihood._likelihood.rate_matrix_gradient,
        }
        best = dict.fromkeys(requests, np.inf)
        for number in range(ROUNDS):
            for name, ask in requests.items():
                likelihood.lengths = lengths * (1 + 1e-6 * number)
                begin = time.process_time()
                ask()
                best[name] = min(best[name], time.process_time() - begin)
    return {name: round(float(seconds), 4) for name, seconds in best.items()}


def time_search(data: Any, tree: Any, device: str) -> dict[str, Any]:
    begin = time.process_time()
    found = plltool.search(data, "CODON2_GY+F3X4", effort="fast", device=device, threads=1)
    seconds = time.process_time() - begin
    distance = plltool.tree_distances([found.tree, tree])[0, 1]
    return {
        "cpu_seconds": round(seconds, 1),
        "lnl": found.lnl,
        "model": found.models[0].rate_parameters,
        "rf": float(distance),
    }


def time_rival(data: Any, cpu_limit: int) -> dict[str, Any]:
    """IQ-TREE 2 with one thread; lnl is None if it was stopped."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_phylip(folder / "data.phy", dict(zip(data.names, data.rows, strict=True)))
        command = [IQTREE, "-s", "data.phy", "-st", "CODON2", "-m", "GY+F3X4", "-fast", "-nt", "1", "-seed", "1"]
        spent = run([*command, "-pre", "run"], folder, cpu_limit=cpu_limit, strict=False)
        log = (folder / "run.log").read_text()
    found = re.search(r"BEST SCORE FOUND : (\S+)", log)
    return {"cpu_seconds": spent.cpu_seconds, "lnl": float(found[1]) if found else None}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--taxa", type=int, default=62)
    parser.add_argument("--codons", type=int, default=3600)
    parser.add_argument("--seed", type=int, default=62)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--rival", action="store_true")
    parser.add_argument("--cpu-limit", type=int, default=600)
    arguments = parser.parse_args()
    tree, data = simulate(arguments.taxa, arguments.codons, arguments.seed)
    report: dict[str, Any] = {"taxa": arguments.taxa, "codons": arguments.codons, "seed": arguments.seed}
    report["model"] = MODEL
    steps = [("rounds", lambda: time_rounds(data, tree, arguments.device))]
    steps.append(("search", lambda: time_search(data, tree, arguments.device)))
    if arguments.rival:
        steps.append(("iqtree2 -fast", lambda: time_rival(data, arguments.cpu_limit)))
    for name, step in steps:
        report[name] = step()
        print(f"{name}: {json.dumps(report[name])}", flush=True)
        save(arguments.output, report)


if __name__ == "__main__":
    main()
