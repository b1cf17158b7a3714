"""Compare the supports that plltool and IQ-TREE 2 (Debian's) give to the branches of the same trees.

    python scripts/benchmarks/compare_replicates.py ALIGNMENT ... [--replicates N] [--seeds N] [--columns N]
        [--output FILE.json]

For each alignment plltool searches the best tree and resamples the alignment. IQ-TREE searches the tree of each of the
same resampled alignments, as `iqtree2 -b` does of its own ones, so that only the searches differ. The supports of the
inner branches are compared as they are, and once more with the short branches of the replicates left out: those with
less than REPLICATE_UNDECIDED expected substitutions, which plltool resolves at random and IQ-TREE as its search leaves
them. The ultrafast supports are compared with those of `iqtree2 -bb 1000`, with the same number of seeds each. Models
are GTR+F+G4 for DNA, LG+F+G4 for proteins and MK+G4 for morphology. Branches of the best tree with less than half a
substitution are left out, because no program can say anything about them. --columns takes that many columns at random,
the same ones in each run, so that IQ-TREE's searches take seconds. Without replicates only ultrafast supports are
compared. A file that is there keeps what it has of other sets and kinds of supports.
"""

import re
import statistics
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from compare_supports import agreement
from rivals import load, make_parser, run_iqtree, save, today, ultrafast_shares, write_phylip

import plltool
from plltool.analyses.supports.replicates import REPLICATE_UNDECIDED
from plltool.tree.splits import branch_splits

# of each kind of data, by its characters: IQ-TREE's name of the kind, and the model
MODELS = {
    "ACGTUNRYKMSWBDHVX?-.": ("DNA", "GTR+F+G4"),
    "0123456789?-": ("MORPH", "MK+G4"),
    "ACDEFGHIKLMNPQRSTVWYBZJXUO?-.*": ("AA", "LG+F+G4"),
}
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


def read_rows(path: Path, n_columns: int | None) -> dict[str, str]:
    """The sequences that have data under plain names, with all columns or a random sample of them."""
    sequences = plltool.read_alignment(path)
    sites = np.arange(sequences.n_sites)
    if n_columns is not None and n_columns < len(sites):
        sites = np.sort(np.random.default_rng(1).choice(sites, n_columns, replace=False))
    rows = [row.decode() for row in sequences.columns(sites)]
    return {f"t{k}": row for k, row in enumerate(row for row in rows if set(row) - set("?-"))}


def compare_standard(
    data: dict[str, str], kind: str, model: str, best: plltool.SearchResult, wanted: list[int], n_replicates: int
) -> dict[str, list[float]]:
    """The supports of the branches `wanted` by replicates, with and without short branches."""
    theirs = []
    with tempfile.TemporaryDirectory() as folder:
        for number, one in enumerate(plltool.resampled_alignments(data, best.models, replicates=n_replicates)):
            rows = dict(zip(one.names, (row.decode() for row in one.rows), strict=True))
            file = write_phylip(Path(folder) / f"r{number}.phy", rows)
            run_iqtree(file, file, "-st", kind, "-m", model, "-seed", number + 1)
            found = plltool.read_tree(f"{file}.treefile", best.tree.names)
            theirs.append(splits_with_substitutions(found, len(data["t0"])))
    replicates = plltool.bootstrap(data, best.models, replicates=n_replicates, threads=1)
    ours = [splits_with_substitutions(tree, len(data["t0"])) for tree in replicates.trees]
    return {
        f"{program} {kind}": share_of_trees(trees, wanted, least)
        for program, trees in (("plltool", ours), ("iqtree", theirs))
        for kind, least in (("fbp", 0.0), ("fbp decided", REPLICATE_UNDECIDED))
    }


def compare_ultrafast(
    data: dict[str, str], kind: str, model: str, best: plltool.SearchResult, wanted: list[int], n_seeds: int
) -> dict[str, list[float]]:
    """The ultrafast supports of the branches `wanted`, means over seeds."""
    ours, theirs = [], []
    for seed in range(1, n_seeds + 1):
        theirs.append(ultrafast_shares(data, best.tree.names, "-st", kind, "-m", model, "-seed", seed))
        found = plltool.ultrafast_bootstrap(data, best.tree, best.models, threads=1, seed=seed)
        ours.append(dict(zip(branch_splits(found.tree), found.values["ufboot"].tolist(), strict=True)))
    return {
        "plltool ufboot": [statistics.mean(own[split] for own in ours) for split in wanted],
        "iqtree ufboot": [100 * statistics.mean(own.get(split, 0.0) for own in theirs) for split in wanted],
    }


def compare_alignment(
    path: Path, n_replicates: int, n_seeds: int, n_columns: int | None, known: dict[str, Any]
) -> dict[str, Any]:
    """All comparisons for one alignment; those that are not asked for are as `known`."""
    data = read_rows(path, n_columns)
    used = set("".join(data.values()).upper())
    kind, model = next(own for characters, own in MODELS.items() if used <= set(characters))
    best = plltool.search(data, model, threads=1)
    n_sites = len(data["t0"])
    wanted = [split for split, n in splits_with_substitutions(best.tree, n_sites).items() if n >= SOLID]
    values = compare_ultrafast(data, kind, model, best, wanted, n_seeds)
    if n_replicates:
        values |= compare_standard(data, kind, model, best, wanted, n_replicates)
        known = {"replicates": n_replicates}
    kinds = [kind for kind in KINDS if f"plltool {kind}" in values]
    return {
        **known,
        "taxa": len(data), "sites": n_sites, "model": model, "branches": len(wanted), "lnl": round(best.lnl, 3),
        **{kind: agreement(values[f"plltool {kind}"], values[f"iqtree {kind}"]) for kind in kinds},
        "supports": known.get("supports", {}) | {name: [round(own, 1) for own in row] for name, row in values.items()},
    }  # fmt: skip


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("alignments", nargs="+", type=Path)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--columns", type=int)
    asked = parser.parse_args()
    record = load(asked.output, {"sets": {}}) | {"date": today(), "seeds": asked.seeds}
    for path in asked.alignments:
        name = re.sub(r"\.(fasta|phy)(\.gz)?$", "", path.name)
        row = compare_alignment(path, asked.replicates, asked.seeds, asked.columns, record["sets"].get(name, {}))
        record["sets"][name] = row
        print(name, {key: value for key, value in row.items() if key != "supports"}, flush=True)
        save(asked.output, record)


if __name__ == "__main__":
    main()
