"""Are branches with a support of 95 % true in 95 of 100 cases? Supports from simulated alignments with known trees.

    python scripts/benchmarks/calibrate_supports.py ALIGNMENT [--sets 12] [--taxa 40] [--sites 600] [--replicates 100]
        [--threads N] [--output FILE.json]

plltool searches the tree and the model of ALIGNMENT (GTR+F+G4). Each simulated set evolves along that tree, restricted
to taxa drawn at random. plltool searches the tree of the set under the same model, and the branches of this tree, true
or not, get supports from plltool's ultrafast bootstrap, from bootstrap replicates and from `iqtree2 -B 1000` (left out
if it is not installed). Over all sets, the script compares the mean support with the share of branches that are true,
overall and by ranges of support, and computes the Brier score, the mean square of the error of a support.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from rivals import IQTREE, is_there, make_parser, save, today, ultrafast_shares

import plltool
from plltool.run.inputs import as_tree_set
from plltool.tree.splits import branch_splits, inner_splits
from plltool.tree.topology import restrict_tree

MODEL = "GTR+F+G4"
RANGES = ((0.95, 1.0), (0.8, 0.95), (0.5, 0.8), (0.0, 0.5))


def support_set(true: plltool.Tree, models: Any, number: int, asked: argparse.Namespace) -> dict[str, list[float]]:
    """For the branches of one set's tree: whether each is true, and its supports by program."""
    drawn = plltool.simulate(true, models, asked.sites, seed=number)
    sequences = drawn.as_sequences()
    best = plltool.search(sequences, MODEL, threads=asked.threads)
    names = best.tree.names
    splits, known = inner_splits(best.tree, names), set(inner_splits(true, names))
    ultrafast = plltool.ultrafast_bootstrap(sequences, best.tree, best.models, threads=asked.threads)
    replicates = plltool.bootstrap(sequences, best.models, replicates=asked.replicates, threads=asked.threads)
    ufboot = (ultrafast.values["ufboot"] / 100).tolist()
    found = {
        "plltool-ufboot": dict(zip(branch_splits(ultrafast.tree), ufboot, strict=True)),
        "plltool": as_tree_set(replicates.trees, names).shares,
    }
    if is_there(IQTREE):
        rows = dict(zip(drawn.names, drawn.sequences, strict=True))
        found["iqtree-ufboot"] = ultrafast_shares(rows, names, "-m", MODEL, "-seed", 1, "-T", asked.threads)
    of_programs = {name: [own.get(split, 0.0) for split in splits] for name, own in found.items()}
    return {"true": [float(split in known) for split in splits], **of_programs}


def judge(values: np.ndarray, true: np.ndarray) -> dict[str, Any]:
    """How far supports are from the share of true branches."""
    ranges = {}
    for low, high in RANGES:
        some = (values >= low) & ((values < high) | (high == 1.0))
        if some.any():
            mean, share = round(float(values[some].mean()), 3), round(float(true[some].mean()), 3)
            ranges[f"{low:g} to {high:g}"] = {"branches": int(some.sum()), "mean": mean, "true": share}
    brier = round(float(((values - true) ** 2).mean()), 4)
    return {"mean": round(float(values.mean()), 3), "brier": brier, "ranges": ranges}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("alignment", type=Path)
    for option, default in (("sets", 12), ("taxa", 40), ("sites", 600), ("replicates", 100)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args()
    whole = plltool.search(asked.alignment, MODEL, threads=asked.threads)
    columns: dict[str, list[float]] = {}
    for number in range(1, asked.sets + 1):
        rng = np.random.default_rng(number)
        some = sorted(rng.choice(whole.tree.n_taxa, asked.taxa, replace=False).tolist())
        true = restrict_tree(whole.tree, [whole.tree.names[taxon] for taxon in some])
        for name, values in support_set(true, whole.models, number, asked).items():
            columns.setdefault(name, []).extend(values)
        print(f"set {number} of {asked.sets}", flush=True)
    true_ones = np.array(columns.pop("true"))
    record = {
        "date": today(),
        "alignment": asked.alignment.name,
        **{name: getattr(asked, name) for name in ("sets", "taxa", "sites", "replicates")},
        "branches": len(true_ones),
        "true": round(float(true_ones.mean()), 3),
        "programs": {name: judge(np.array(values), true_ones) for name, values in columns.items()},
    }
    print(json.dumps(record, indent=1))
    save(asked.output, record)


if __name__ == "__main__":
    main()
