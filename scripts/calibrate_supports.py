"""Are branches with a support of 95 % true in 95 of 100 cases? Supports of simulated alignments, whose trees are known.

    python scripts/calibrate_supports.py ALIGNMENT [--sets 12] [--taxa 40] [--sites 600] [--replicates 100]
        [--threads N] [--output FILE.json]

plltool searches the tree and the model of ALIGNMENT (GTR+F+G4). Each set evolves along that tree, cut down to some taxa
drawn at random; plltool searches its tree, under the same model. The branches of this tree, true or not, get supports
by plltool's ultrafast bootstrap, by bootstrap replicates and by `iqtree2 -B 1000`, which is left out if it is not
installed. Told are, of all sets together, means beside the share of branches that are true, the same by ranges of
support, and the Brier score, the mean square of what a support is off.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from plltool.analyses.bootstrap import bootstrap
from plltool.analyses.search import search
from plltool.analyses.simulate import Simulation, simulate
from plltool.analyses.ultrafast import ultrafast_bootstrap
from plltool.run.tree_sets import as_tree_set
from plltool.tree.duplicates import restrict_tree
from plltool.tree.topology import Tree
from plltool.tree.tree_set import splits_of

MODEL = "GTR+F+G4"
RANGES = ((0.95, 1.0), (0.8, 0.95), (0.5, 0.8), (0.0, 0.5))


def inner_splits(tree: Tree, names: tuple[str, ...]) -> list[int]:
    ends = tree.ends.min(axis=1).tolist()
    return [split for split, end in zip(splits_of(tree, names), ends, strict=True) if end >= tree.n_taxa]


def shares(trees: Any, names: tuple[str, ...]) -> dict[int, float]:
    found = as_tree_set(trees, names)
    return dict(zip(found.splits, (found.counts / found.n_trees).tolist(), strict=True))


def run_iqtree(drawn: Simulation, threads: int) -> dict[int, float]:
    """The shares of all splits in its 1000 trees."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.fasta"
        path.write_text("".join(f">{name}\n{row}\n" for name, row in zip(drawn.names, drawn.sequences, strict=True)))
        options = ["-m", MODEL, "-B", "1000", "--wbtl", "-seed", "1", "--keep-ident", "-quiet"]
        subprocess.run(["iqtree2", "-s", path, "-T", str(threads), *options], check=True, capture_output=True)
        trees = Path(f"{path}.ufboot")
        trees.write_text("".join(line + "\n" for line in trees.read_text().splitlines() if line.endswith(";")))
        return shares(trees, drawn.names)


def support_set(true: Tree, models: Any, number: int, asked: argparse.Namespace) -> dict[str, list[float]]:
    """Of the branches of one set's tree: whether each is true, and its supports by program."""
    drawn = simulate(true, models, asked.sites, seed=number)
    sequences = drawn.as_sequences()
    best = search(sequences, MODEL, threads=asked.threads)
    names = best.tree.names
    splits, known = inner_splits(best.tree, names), set(inner_splits(true, names))
    ultrafast = ultrafast_bootstrap(sequences, best.tree, best.models, threads=asked.threads)
    replicates = bootstrap(sequences, best.models, replicates=asked.replicates, threads=asked.threads)
    found = {
        "plltool-ufboot": dict(zip(splits_of(ultrafast.tree), ultrafast.values["ufboot"].tolist(), strict=True)),
        "plltool": shares(replicates.trees, names),
    }
    if shutil.which("iqtree2"):
        found["iqtree-ufboot"] = run_iqtree(drawn, asked.threads)
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignment", type=Path)
    for option, default in (("sets", 12), ("taxa", 40), ("sites", 600), ("replicates", 100)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    whole = search(asked.alignment, MODEL, threads=asked.threads)
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
        "date": datetime.now(UTC).date().isoformat(),
        "alignment": asked.alignment.name,
        **{name: getattr(asked, name) for name in ("sets", "taxa", "sites", "replicates")},
        "branches": len(true_ones),
        "true": round(float(true_ones.mean()), 3),
        "programs": {name: judge(np.array(values), true_ones) for name, values in columns.items()},
    }
    print(json.dumps(record, indent=1))
    if asked.output:
        asked.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
