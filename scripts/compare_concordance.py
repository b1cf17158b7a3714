"""Compare gene and site concordance factors with those of IQ-TREE 2, on the genes of real alignments.

    python scripts/compare_concordance.py DATA_DIR --folder FOLDER [--set NAME ...] [--quartets N] [--iqtree3 LIBRARY]
        [--output JSON]

DATA_DIR holds NAME.phy or NAME.phy.gz and NAME.part; for cynmix, cynmix.nex, of which the DNA is taken. Each part is a
gene, of the taxa that have data there. `plltool genes` makes the tree of each gene and that of all. Both programs take
these trees: they must find the same numbers of gene trees on every branch. Their site concordance factors differ by the
quartets that are drawn. So each program draws twice, with other seeds: the root mean square of the differences between
the programs is to be that between the two draws of one of them. IQ-TREE 2.0.7 counts quartets without decisive sites as
0 %, so the factors of both are scaled such that the three of a branch sum to 100. Times are of processors, user and
system.

With --iqtree3, see `iqtree3.py`, factors by likelihood are compared too: plltool's have no error of sampling, IQ-TREE 3
draws the states --quartets times.

FOLDER keeps the trees: a run that was stopped goes on there. Needs iqtree2.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import dendropy
import numpy as np
from compare_partitions import write_data
from compare_placement import run

import plltool
from plltool.run.inputs import cut_inputs

SETS = ("cynmix", "dna59", "dna128")
MODEL = "GTR+F+G4"
EQUAL_FREQUENCIES = "JC+G4"
LEAST_KNOWN = 100  # columns
SEEDS = (1, 2)
EXACT = ("gCF_N", "gDFP_N", "gN")
UNKNOWN = b"-?NnXx"

Factors = dict[frozenset[str], dict[str, float]]  # the rows of a table, by the taxa on one side of the branch


def write_genes(alignment: Path, partition: Path, folder: Path) -> int:
    """Write each part to a file of its own, without taxa that have no data in it; the number of parts."""
    given = plltool.read_alignment(alignment)
    columns = np.array([list(row) for row in given.rows], dtype=np.uint8)
    parts = cut_inputs(given, partition, "scaled")[0].parts
    folder.mkdir(exist_ok=True)
    for part in parts:
        rows = columns[:, np.sort(part.sites)]
        known = ~np.isin(rows, list(UNKNOWN)).all(axis=1)
        names = [name for name, has_data in zip(given.names, known, strict=True) if has_data]
        text = plltool.format_fasta(names, [row.tobytes().decode() for row in rows[known]])
        plltool.write_text(folder / f"{part.name}.fasta", text)
    return len(parts)


def make_trees(genes: Path, prefix: Path) -> None:
    """The trees of genes and that of all, unless an earlier run has left them."""
    if not Path(f"{prefix}.cf.stat").exists():
        options = ["--model", MODEL, "--effort", "fast", "--scf", 0, "--threads", 1, "--quiet"]
        run(["plltool", "genes", genes, *options, "--prefix", prefix])


def concordance_command(program: str, prefix: Path, quartets: int, seed: int, out: Path) -> list[Any]:
    tree, genes, alignment = (f"{prefix}.{name}" for name in ("best.nwk", "genes.nwk", "genes.fasta"))
    factors = ["--gcf", genes, "--scf", quartets]
    if program == "plltool":
        options = ["--seed", seed, "--threads", 1, "--redo", "--quiet"]
        return ["plltool", "concordance", alignment, "--tree", tree, *factors, *options, "--prefix", out]
    return ["iqtree2", "-s", alignment, "-t", tree, *factors, "-seed", seed, "-T", 1, "-redo", "--prefix", out]


def read_factors(table: Path, numbered: Path) -> Factors:
    """The rows of a table, by the taxa on the side of each branch that lacks the first taxon."""
    lines = [line.split("\t") for line in table.read_text().splitlines() if not line.startswith("#")]
    rows = {line[0]: dict(zip(lines[0], line, strict=False)) for line in lines[1:]}
    tree = dendropy.Tree.get(path=numbered, schema="newick", preserve_underscores=True)
    taxa = sorted(leaf.taxon.label for leaf in tree.leaf_node_iter())
    found = {}
    for node in tree.preorder_internal_node_iter():
        if node.label in rows:
            below = frozenset(leaf.taxon.label for leaf in node.leaf_iter())
            side = below if taxa[0] not in below else frozenset(taxa) - below
            row = rows[node.label]
            found[side] = {name: float(row[name]) for name in row if name.startswith(("g", "s")) and row[name]}
    return found


def is_unequal(own: dict[str, float], theirs: dict[str, float]) -> bool:
    """Whether the gene trees on a branch differ; the programs need not call the same interchange the first."""
    swapped = [sorted((row["gDF1_N"], row["gDF2_N"])) for row in (own, theirs)]
    return swapped[0] != swapped[1] or any(own[name] != theirs[name] for name in EXACT)


def site_factor(row: dict[str, float]) -> float:
    """sCF, or sCFL, in per cent of the three."""
    names = ("sCF", "sDF1", "sDF2") if "sCF" in row else ("sCFL", "sDFL1", "sDFL2")
    return 100 * row[names[0]] / sum(row[name] for name in names)


def compare(prefix: Path, quartets: int) -> dict[str, Any]:
    """Both programs' factors on the same trees: what differs, and by how much between draws."""
    draws, seconds = draw_twice(prefix, quartets, ("plltool", "iqtree"), concordance_command)
    own, theirs = draws["plltool", 1], draws["iqtree", 1]
    unequal = sum(is_unequal(own[side], theirs[side]) for side in own)
    described = {"branches": len(own), "branches_with_other_gcf": unequal, "cpu_seconds": seconds}
    return described | describe_sites(draws, "plltool", "iqtree")


def compare_likelihoods(prefix: Path, quartets: int, library: Path) -> dict[str, Any]:
    """The same of factors by likelihood: of all columns, and of those that all taxa know, with equal frequencies."""
    alignment, known = Path(f"{prefix}.genes.fasta"), Path(f"{prefix}.known.fasta")
    given = plltool.read_alignment(alignment)
    columns = np.array([list(row.upper()) for row in given.rows], dtype=np.uint8)
    columns = columns[:, np.isin(columns, list(b"ACGT")).all(axis=0)]
    described = {"all columns": compare_likelihoods_of(alignment, MODEL, prefix, quartets, library)}
    if columns.shape[1] >= LEAST_KNOWN:
        plltool.write_text(known, plltool.format_fasta(given.names, [row.tobytes().decode() for row in columns]))
        described["known columns"] = compare_likelihoods_of(known, EQUAL_FREQUENCIES, prefix, quartets, library)
        described["known columns"]["columns"] = columns.shape[1]
    return described


def compare_likelihoods_of(alignment: Path, model: str, prefix: Path, quartets: int, library: Path) -> dict[str, Any]:
    def command(program: str, prefix: Path, quartets: int, seed: int, out: Path) -> list[Any]:
        tree = f"{prefix}.best.nwk"
        if program == "plltool-scfl":
            options = ["--scf", 0, "--scfl", "--model", model, "--seed", seed, "--threads", 1, "--redo", "--quiet"]
            return ["plltool", "concordance", alignment, "--tree", tree, *options, "--prefix", out]
        script = Path(__file__).with_name("iqtree3.py")
        options = ["--seed", seed, "--scfl", quartets, "--kernel-nonrev"]
        return [sys.executable, script, library, alignment, tree, model, out, *options]

    draws, seconds = draw_twice(prefix, quartets, ("plltool-scfl", "iqtree3"), command)
    return {"model": model, "cpu_seconds": seconds} | describe_sites(draws, "plltool-scfl", "iqtree3")


def draw_twice(
    prefix: Path, quartets: int, programs: tuple[str, str], command: Callable[..., list[Any]]
) -> tuple[dict[tuple[str, int], Factors], dict[str, float]]:
    """The factors of both programs with both seeds, and the median of the CPU seconds of each program."""
    seconds: dict[str, list[float]] = {program: [] for program in programs}
    draws = {}
    for seed in SEEDS:
        for program, times in seconds.items():
            out = Path(f"{prefix}.{program}{seed}")
            times.append(run(command(program, prefix, quartets, seed, out))["cpu_seconds"])
            numbered = ".cf.branch.nwk" if program.startswith("plltool") else ".cf.branch"
            draws[program, seed] = read_factors(Path(f"{out}.cf.stat"), Path(f"{out}{numbered}"))
    first, *others = draws.values()
    assert all(set(found) == set(first) for found in others)
    return draws, {program: float(np.median(times)) for program, times in seconds.items()}


def describe_sites(draws: dict[tuple[str, int], Factors], own: str, theirs: str) -> dict[str, Any]:
    """How far the site factors of two programs are apart, and those of each from itself."""
    branches = list(draws[own, 1])
    factors = {key: np.array([site_factor(found[side]) for side in branches]) for key, found in draws.items()}
    sites = {key: sum(row.get("sN", row.get("sNL", 0.0)) for row in found.values()) for key, found in draws.items()}
    gaps = np.array([factors[own, seed] - factors[theirs, seed] for seed in SEEDS])
    return {
        "scf_rms": dict(differences(factors)),
        "scf_mean_difference": float(gaps.mean()),
        "scf_largest_difference": float(abs(gaps).max()),
        "sites_ratio": float(sites[own, 1] / sites[theirs, 1]),
    }


def differences(factors: dict[tuple[str, int], np.ndarray]) -> Iterator[tuple[str, float]]:
    """Root mean squares over branches: between the programs, and between the draws of each."""
    squares: dict[str, list[float]] = {}
    for one, other in combinations(factors, 2):
        name = one[0] if one[0] == other[0] else "between"
        squares.setdefault(name, []).append(float(np.mean((factors[one] - factors[other]) ** 2)))
    return ((name, float(np.sqrt(np.mean(some)))) for name, some in squares.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="where the files of the programs stay")
    parser.add_argument("--set", action="append", help=f"default: {' '.join(SETS)}")
    parser.add_argument("--quartets", type=int, default=1000)
    parser.add_argument("--iqtree3", type=Path, metavar="LIBRARY", help="the library in piqtree")
    parser.add_argument("--output", type=Path, help="sets that it has and that are not compared stay")
    options = parser.parse_args()
    folder = options.folder.resolve()
    results = json.loads(options.output.read_text()) if options.output and options.output.exists() else {}
    folder.mkdir(parents=True, exist_ok=True)
    for name in options.set or SETS:
        alignment, partition = write_data(name, options.data, folder)
        number = write_genes(alignment, partition, folder / f"{name}.genes")
        make_trees(folder / f"{name}.genes", folder / name)
        results[name] = {"genes": number, "model": MODEL, "quartets": options.quartets}
        results[name] |= compare(folder / name, options.quartets)
        if options.iqtree3:
            results[name]["likelihood"] = compare_likelihoods(folder / name, options.quartets, options.iqtree3)
        print(name, results[name], flush=True)
        if options.output:
            plltool.write_text(options.output, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
