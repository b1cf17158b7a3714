"""Compare the supports that plltool and IQ-TREE 2 (Debian's) give to the branches of the same trees.

    python scripts/compare_replicates.py ALIGNMENT ... [--replicates N] [--seeds N] [--output FILE.json]

For each alignment plltool searches the best tree and resamples the alignment. IQ-TREE searches the tree of each of the
same resampled alignments, as `iqtree2 -b` does of its own ones, so that only the searches differ. The supports of the
inner branches are compared as they are, and once more with the short branches of the replicates left out: those with
less than REPLICATE_UNDECIDED expected substitutions, which plltool resolves at random and IQ-TREE as its search leaves
them. The ultrafast supports are compared with those of `iqtree2 -bb 1000`, with the same number of seeds each. Models
are GTR+F+G4 for DNA and LG+F+G4 for proteins. Branches of the best tree with less than half a substitution are left
out, because no program can say anything about them.
"""

import argparse
import json
import re
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import plltool
from plltool.constants import REPLICATE_UNDECIDED
from plltool.run.tree_sets import as_tree_set
from plltool.tree.splits import branch_splits

MODELS = {"DNA": "GTR+F+G4", "protein": "LG+F+G4"}
KINDS = "fbp", "fbp decided", "ufboot"
SOLID = 0.5  # expected substitutions from which a branch of the best tree counts

Splits = dict[int, float]


def splits_with_substitutions(tree: plltool.Tree, n_sites: int) -> Splits:
    """The expected number of substitutions on each inner branch, by its split."""
    pairs = zip(branch_splits(tree), tree.lengths.reshape(tree.n_edges), tree.is_inner_branch, strict=True)
    return {split: float(length) * n_sites for split, length, inner in pairs if inner}


def share_of_trees(trees: Iterable[Splits], wanted: Iterable[int], least: float) -> list[float]:
    """The percentage of trees with each split, on a branch of at least so many expected substitutions."""
    trees = list(trees)
    return [100 * sum(tree.get(split, -1.0) >= least for tree in trees) / len(trees) for split in wanted]


def search_with_iqtree(alignment: Path, model: str, number: int) -> Path:
    """The file of the tree that IQ-TREE finds."""
    command = ["iqtree2", "-s", alignment, "-m", model, "-nt", 1, "-seed", number + 1, "-quiet", "--keep-ident"]
    subprocess.run(list(map(str, command)), capture_output=True, check=True)
    return Path(f"{alignment}.treefile")


def run_iqtree(alignment: Path, model: str, seed: int) -> Path:
    """The file of the trees of IQ-TREE's ultrafast bootstrap."""
    prefix = alignment.parent / f"iq{seed}"
    command = ["iqtree2", "-s", alignment, "-m", model, "-bb", 1000, "-wbtl", "-nt", 1, "-seed", seed, "-quiet"]
    subprocess.run([*map(str, command), "--keep-ident", "--prefix", str(prefix)], capture_output=True, check=True)
    return Path(f"{prefix}.ufboot")


def describe(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """How two lists of supports of the same branches differ, in per cent."""
    difference = np.array(ours) - np.array(theirs)
    return {
        "mean_difference": round(float(difference.mean()), 2),
        "mean_absolute_difference": round(float(np.abs(difference).mean()), 2),
        "largest_difference": round(float(np.abs(difference).max()), 1),
        "correlation": round(float(np.corrcoef(ours, theirs)[0, 1]), 4),
    }


def compare_alignment(path: Path, n_replicates: int, n_seeds: int) -> dict[str, Any]:
    """All comparisons for one alignment."""
    sequences = plltool.read_alignment(path)
    data = {f"t{k}": row.decode() for k, row in enumerate(sequences.rows)}
    is_dna = set("".join(data.values()).upper()) <= set("ACGTUNRYKMSWBDHVX?-.")
    model = MODELS["DNA" if is_dna else "protein"]
    best = plltool.search(data, model, threads=1)
    n_sites = sequences.n_sites
    wanted = [split for split, n in splits_with_substitutions(best.tree, n_sites).items() if n >= SOLID]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = []
        drawn = plltool.resampled_alignments(data, best.models, replicates=n_replicates)
        for number, one in enumerate(drawn):
            file = folder / f"r{number}.phy"
            rows = (f"{taxon} {row.decode()}\n" for taxon, row in zip(one.names, one.rows, strict=True))
            file.write_text(f"{len(one.names)} {one.n_sites}\n" + "".join(rows))
            jobs.append((file, model, number))
        ours = plltool.bootstrap(data, best.models, replicates=n_replicates, threads=1)
        theirs = [plltool.read_tree(search_with_iqtree(*job), best.tree.names) for job in jobs]
        original = folder / "all.fasta"
        original.write_text("".join(f">{taxon}\n{row}\n" for taxon, row in data.items()))
        made = [run_iqtree(original, model, seed) for seed in range(1, n_seeds + 1)]
        shares = [as_tree_set(path, best.tree.names).shares for path in made]
    own = [splits_with_substitutions(tree, n_sites) for tree in ours.trees]
    other = [splits_with_substitutions(tree, n_sites) for tree in theirs]
    ultrafast = {}
    for seed in range(1, n_seeds + 1):
        found = plltool.ultrafast_bootstrap(data, best.tree, best.models, threads=1, seed=seed)
        ultrafast[seed] = dict(zip(branch_splits(found.tree), found.values["ufboot"].tolist(), strict=True))
    values: Mapping[str, list[float]] = {
        "plltool fbp": share_of_trees(own, wanted, 0.0),
        "iqtree fbp": share_of_trees(other, wanted, 0.0),
        "plltool fbp decided": share_of_trees(own, wanted, REPLICATE_UNDECIDED),
        "iqtree fbp decided": share_of_trees(other, wanted, REPLICATE_UNDECIDED),
        "plltool ufboot": [statistics.mean(ultrafast[seed][split] for seed in ultrafast) for split in wanted],
        "iqtree ufboot": [100 * statistics.mean(found.get(split, 0.0) for found in shares) for split in wanted],
    }
    return {
        "taxa": len(data), "sites": n_sites, "model": model, "branches": len(wanted), "lnl": round(best.lnl, 3),
        **{kind: describe(values[f"plltool {kind}"], values[f"iqtree {kind}"]) for kind in KINDS},
        "supports": {name: [round(value, 1) for value in row] for name, row in values.items()},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignments", nargs="+", type=Path)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    sets: dict[str, Any] = {}
    for path in asked.alignments:
        name = re.sub(r"\.(fasta|phy)(\.gz)?$", "", path.name)
        sets[name] = compare_alignment(path, asked.replicates, asked.seeds)
        print(name, {key: value for key, value in sets[name].items() if key != "supports"}, flush=True)
        record = {"date": datetime.now(UTC).date().isoformat(), "replicates": asked.replicates, "seeds": asked.seeds}
        if asked.output:
            asked.output.write_text(json.dumps(record | {"sets": sets}, indent=1) + "\n")


if __name__ == "__main__":
    main()
