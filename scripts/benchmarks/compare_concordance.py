"""Compare gene and site concordance factors with those of IQ-TREE 2, on the genes of real alignments.

    python scripts/benchmarks/compare_concordance.py DATA_DIR --folder FOLDER [--set NAME ...] [--quartets N]
        [--iqtree3 LIBRARY] [--output JSON]

DATA_DIR holds NAME.phy or NAME.phy.gz and NAME.part; for cynmix, cynmix.nex, of which the DNA is taken. Each part is a
gene, of the taxa that have data there. `plltool genes` makes the tree of each gene and that of all. Both programs take
these trees: they must find the same numbers of gene trees on every branch. Their site concordance factors differ by the
quartets that are drawn. So each program draws twice, with other seeds: the root mean square of the differences between
the programs is to be that between the two draws of one of them. IQ-TREE 2.0.7 counts quartets without decisive sites as
0 %, so the factors of both are scaled such that the three of a branch sum to 100. Times are of processors, user and
system.

With --iqtree3, see `iqtree3.py`, factors by likelihood are compared too, under the model and on the lengths that
plltool has optimised. plltool's have no error of sampling, IQ-TREE 3 draws the states --quartets times. IQ-TREE's
factor is the mean of those of the draws, plltool's the share of the expected numbers of sites, so both are taken from
the mean numbers of sites here. IQ-TREE takes more subtrees for ones without data, see `node_states_by_their_rule`.

FOLDER keeps the trees: a run that was stopped goes on there. Needs iqtree2.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dendropy
import numpy as np
from compare_partitions import write_data
from rivals import IQTREE, as_iqtree_model, load, make_parser, run, save, side_below

import plltool
from plltool.optimise.ancestral import _with_each_state
from plltool.optimise.likelihood import TreeLikelihood
from plltool.run.inputs import cut_inputs

SETS = ("cynmix", "dna59", "dna128")
MODEL = "GTR+F+G4"
LEAST_COLUMNS = 100
SEEDS = (1, 2)
EXACT = ("gCF_N", "gDFP_N", "gN")
UNKNOWN = b"-?NnXx"
LETTERS = b"ACGT"
ROUNDING = 1e-9
SHARES, NUMBERS = "", "_N"  # the ends of the names of columns in per cent, and with numbers of sites

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
    return [IQTREE, "-s", alignment, "-t", tree, *factors, "-seed", seed, "-T", 1, "-redo", "--prefix", out]


def read_factors(table: Path, numbered: Path) -> Factors:
    """The rows of a table, by the taxa on the side of each branch that lacks the first taxon."""
    lines = [line.split("\t") for line in table.read_text().splitlines() if not line.startswith("#")]
    rows = {line[0]: dict(zip(lines[0], line, strict=False)) for line in lines[1:]}
    tree = dendropy.Tree.get(path=numbered, schema="newick", preserve_underscores=True)
    taxa = sorted(leaf.taxon.label for leaf in tree.leaf_node_iter())
    found = {}
    for node in tree.preorder_internal_node_iter():
        if node.label in rows:
            row = rows[node.label]
            found[side_below(node, taxa)] = {
                name: float(row[name]) for name in row if name.startswith(("g", "s")) and row[name]
            }
    return found


def is_unequal(own: dict[str, float], theirs: dict[str, float]) -> bool:
    """Whether the gene trees on a branch differ; the programs need not call the same interchange the first."""
    swapped = [sorted((row["gDF1_N"], row["gDF2_N"])) for row in (own, theirs)]
    return swapped[0] != swapped[1] or any(own[name] != theirs[name] for name in EXACT)


def site_factor(row: dict[str, float], unit: str) -> float:
    """sCF, or sCFL, in per cent of the three; `unit` is the end of the names of columns that are divided."""
    names = ("sCF", "sDF1", "sDF2") if "sCF" in row else ("sCFL", "sDFL1", "sDFL2")
    return 100 * row[names[0] + unit] / sum(row[name + unit] for name in names)


def compare(prefix: Path, quartets: int) -> dict[str, Any]:
    """Both programs' factors on the same trees: what differs, and by how much between draws."""
    draws, seconds = draw_twice(prefix, quartets, ("plltool", "iqtree"), concordance_command)
    own, theirs = draws["plltool", 1], draws["iqtree", 1]
    unequal = sum(is_unequal(own[side], theirs[side]) for side in own)
    described = {"branches": len(own), "branches_with_other_gcf": unequal, "cpu_seconds": seconds}
    return described | describe_sites(draws, "plltool", "iqtree", SHARES)


def compare_likelihoods(prefix: Path, quartets: int, library: Path) -> dict[str, Any]:
    """The same of factors by likelihood: of all columns, also by IQ-TREE's rule for gaps, and of those without gaps."""
    given = plltool.read_alignment(f"{prefix}.genes.fasta")
    columns = np.array([list(row.upper()) for row in given.rows], dtype=np.uint8)
    known = np.isin(columns, list(LETTERS)).all(axis=0)
    described = {}
    for kind, rows in (("all", columns), ("known", columns[:, known])):
        if rows.shape[1] < LEAST_COLUMNS:
            continue
        alignment = Path(f"{prefix}.{kind}.fasta")
        plltool.write_text(alignment, plltool.format_fasta(given.names, [row.tobytes().decode() for row in rows]))
        described[kind], draws = compare_likelihoods_of(alignment, MODEL, prefix, quartets, library)
        described[kind]["columns"] = rows.shape[1]
        if kind == "all":
            own = dict.fromkeys((("plltool-scfl", seed) for seed in SEEDS), factors_by_their_rule(alignment, prefix))
            described["all by their rule"] = describe_sites(draws | own, "plltool-scfl", "iqtree3", NUMBERS)
    return described


def factors_by_their_rule(alignment: Path, prefix: Path) -> Factors:
    """plltool's factors, those subtrees being without data which are so for IQ-TREE 3.1.2."""
    record = json.loads(Path(f"{prefix}.plltool-scfl1.cf.json").read_text())["evaluation"]
    settings = {"quartets": 0, "likelihood": True, "fixed": True, "threads": 1}
    with patch("plltool.run.likelihood.node_states", node_states_by_their_rule):
        found = plltool.concordance(record["tree"], None, alignment, record["model"], **settings)
    texts = found.texts()
    paths = [Path(f"{prefix}.rule.{ending}") for ending in ("cf.stat", "cf.branch.nwk")]
    for path in paths:
        plltool.write_text(path, texts[path.name.removeprefix(f"{prefix.name}.rule.")])
    return read_factors(*paths)


def node_states_by_their_rule(
    likelihood: TreeLikelihood, n_states: Sequence[int], subtrees: tuple[np.ndarray, np.ndarray]
) -> list[np.ndarray]:
    """As `plltool.optimise.ancestral.node_states`, 0 where the likelihoods given each state sum to more than 1.

    So they do in a subtree without data, where each is 1; and in one with data of one taxon, if that has a letter that
    is more frequent than the mean.
    """
    lnl = _with_each_state(likelihood, likelihood.view.incoming[subtrees], max(n_states), None)
    found = []
    for own, model in zip(likelihood.split_patterns(lnl), likelihood.models, strict=True):
        given_state = np.exp(own).swapaxes(1, 2) / model.frequencies
        total = given_state.sum(axis=2, keepdims=True)
        found.append(np.where(total > 1 + ROUNDING, 0.0, given_state / total))
    return found


def compare_likelihoods_of(
    alignment: Path, model: str, prefix: Path, quartets: int, library: Path
) -> tuple[dict[str, Any], dict[tuple[str, int], Factors]]:
    def command(program: str, prefix: Path, quartets: int, seed: int, out: Path) -> list[Any]:
        tree = f"{prefix}.best.nwk"
        if program == "plltool-scfl":
            options = ["--scf", 0, "--scfl", "--model", model, "--seed", seed, "--threads", 1, "--redo", "--quiet"]
            return ["plltool", "concordance", alignment, "--tree", tree, *options, "--prefix", out]
        script, fitted = Path(__file__).with_name("iqtree3.py"), Path(f"{prefix}.fitted.nwk")
        record = json.loads(Path(f"{prefix}.plltool-scfl{seed}.cf.json").read_text())["evaluation"]
        plltool.write_text(fitted, record["tree"])
        options = ["--seed", seed, "--scfl", quartets, "--kernel-nonrev", "-blfix"]
        return [sys.executable, script, library, alignment, fitted, as_iqtree_model(record["model"]), out, *options]

    draws, seconds = draw_twice(prefix, quartets, ("plltool-scfl", "iqtree3"), command)
    described = {"model": model, "cpu_seconds": seconds} | describe_sites(draws, "plltool-scfl", "iqtree3", NUMBERS)
    return described, draws


def draw_twice(
    prefix: Path, quartets: int, programs: tuple[str, str], command: Callable[..., list[Any]]
) -> tuple[dict[tuple[str, int], Factors], dict[str, float]]:
    """The factors of both programs with both seeds, and the median of the CPU seconds of each program."""
    seconds: dict[str, list[float]] = {program: [] for program in programs}
    draws = {}
    for seed in SEEDS:
        for program, times in seconds.items():
            out = Path(f"{prefix}.{program}{seed}")
            times.append(run(command(program, prefix, quartets, seed, out)).cpu_seconds)
            numbered = ".cf.branch.nwk" if program.startswith("plltool") else ".cf.branch"
            draws[program, seed] = read_factors(Path(f"{out}.cf.stat"), Path(f"{out}{numbered}"))
    first, *others = draws.values()
    assert all(set(found) == set(first) for found in others)
    return draws, {program: float(np.median(times)) for program, times in seconds.items()}


def describe_sites(draws: dict[tuple[str, int], Factors], own: str, theirs: str, unit: str) -> dict[str, Any]:
    """How far the site factors of two programs are apart, and those of each from itself."""
    branches = list(draws[own, 1])
    factors = {key: np.array([site_factor(found[side], unit) for side in branches]) for key, found in draws.items()}
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
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="where the files of the programs stay")
    parser.add_argument("--set", action="append", help=f"default: {' '.join(SETS)}")
    parser.add_argument("--quartets", type=int, default=1000)
    parser.add_argument("--iqtree3", type=Path, metavar="LIBRARY", help="the library in piqtree")
    options = parser.parse_args()
    folder = options.folder.resolve()
    results = load(options.output, {})
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
        save(options.output, results)


if __name__ == "__main__":
    main()
