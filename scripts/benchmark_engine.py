"""Throughput of an engine: pattern-nodes per second for newview, evaluations and all-branch rounds per second.

    python scripts/benchmark_engine.py [--device auto] [--vw N] [--output FILE.json]

Simulated data under GTR+G4 with a fixed seed: random trees, columns evolved along them. One pattern-node is one
inner node of one pattern, all rate categories. Figures are medians over repetitions; compare only those of one run.
"""

import argparse
import json
import platform
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from plltool import __version__
from plltool.engine import program as prog
from plltool.engine.opencl.environment import prepare_environment
from plltool.model.model import Model
from plltool.model.spec import parse_model
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.scan import all_prunes, scan
from plltool.tree.random_tree import random_tree

SHAPES = ((64, 1_000), (64, 10_000), (64, 100_000), (500, 1_000), (1_288, 1_000))
MODEL = "GTR{1.2/3.4/0.8/1.1/4.1/1.0}+FU{0.28/0.21/0.24/0.27}+G4{0.45}"
SCANNED_JOINTS = 20
RADIUS = 8
SCRATCH = 40


def median_seconds(work: Callable[[], object], repetitions: int) -> float:
    """Median wall-clock time of `work`, after one call that does not count."""
    work()
    seconds = []
    for _ in range(repetitions):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def simulate_codes(tree, n_patterns: int, rng: np.random.Generator) -> np.ndarray:
    """Tip codes (n_taxa, n_patterns) of columns that change along the tree's branches, Jukes-Cantor."""
    states = np.zeros((tree.n_nodes, n_patterns), dtype=np.int8)
    states[0] = rng.integers(0, 4, n_patterns)
    for node, parent, edge in tree.directed_from(0):
        changes = rng.random(n_patterns) < 0.75 * (1 - np.exp(-4 / 3 * tree.lengths[edge]))
        states[node] = np.where(changes, (states[parent] + rng.integers(1, 4, n_patterns)) % 4, states[parent])
    return (1 << states[: tree.n_taxa]).astype(np.uint8)


def measure(n_taxa: int, n_patterns: int, options: argparse.Namespace) -> dict[str, object]:
    """One row of the table."""
    from plltool.engine.select import make_engine

    rng = np.random.default_rng([n_taxa, n_patterns])
    tree = random_tree([f"t{k}" for k in range(n_taxa)], rng)
    tree.lengths[:] = rng.exponential(0.05, tree.n_edges)
    codes = simulate_codes(tree, n_patterns, rng)
    engine, reason = make_engine(
        codes, np.ones(n_patterns), 4, 4, n_taxa, (n_patterns,), 3 * (n_taxa - 2) + SCRATCH,
        device=options.device, precision=options.precision, vw=options.vw, threads=options.threads,
    )  # fmt: skip
    with engine:
        likelihood = TreeLikelihood(tree, [Model(parse_model(MODEL))], engine)
        post_order = prog.newview(*likelihood.view.sources(*likelihood.view.preorder[::-1].T))
        newview = median_seconds(lambda: likelihood.lnl(), options.repetitions)
        round_ = median_seconds(lambda: likelihood.all_derivatives(), options.repetitions)
        edge = [likelihood.root_edge]
        evaluation = median_seconds(lambda: engine.evaluate(edge, tree.lengths), options.repetitions)
        lnl, _ = likelihood.all_derivatives()
        prunes = all_prunes(likelihood, np.arange(n_taxa, min(tree.n_nodes, n_taxa + SCANNED_JOINTS)))
        n_steps = len(scan(likelihood, prunes, RADIUS, lnl))
        scanning = median_seconds(lambda: scan(likelihood, prunes, RADIUS, lnl), options.repetitions)
        return {
            "taxa": n_taxa,
            "patterns": n_patterns,
            "device": engine.device_name,
            "reason": reason,
            "layout": engine.layout.describe(),
            "newview_pattern_nodes_per_second": len(post_order) * n_patterns / newview,
            "evaluations_per_second": 1 / evaluation,
            "all_branch_rounds_per_second": 1 / round_,
            "scanned_insertions_per_second": n_steps / scanning,
            "lnl": lnl,
        }


def commit() -> str:
    """The commit of the working tree, as far as git knows."""
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="double")
    parser.add_argument("--vw", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--output", help="write the table as JSON")
    options = parser.parse_args()
    for line in prepare_environment(options.threads):
        print(line)
    rows = []
    print(f"{'taxa':>6} {'patterns':>9} {'M nodes/s':>10} {'evaluate/s':>11} {'rounds/s':>9} {'insertions/s':>13}")
    for n_taxa, n_patterns in SHAPES:
        row = measure(n_taxa, n_patterns, options)
        rows.append(row)
        print(
            f"{n_taxa:6d} {n_patterns:9d} {row['newview_pattern_nodes_per_second'] / 1e6:10.1f} "
            f"{row['evaluations_per_second']:11.0f} {row['all_branch_rounds_per_second']:9.1f} "
            f"{row['scanned_insertions_per_second']:13.0f}   {row['device']}",
            flush=True,
        )
    if options.output:
        record = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit(),
            "version": __version__,
            "machine": platform.machine(),
            "rows": rows,
        }
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
