"""Compare analyses of a finished tree with IQ-TREE 2: supports, tests of topologies, ancestral states.

    python scripts/benchmarks/compare_followups.py --output FILE.json data/primates.phy FILE...
    python scripts/benchmarks/compare_followups.py --model LG+G4 --output ... PROTEINS...
    python scripts/benchmarks/compare_followups.py --partitions genes.nex --output ... ALIGNMENT

For each alignment (GTR+F+G4 by default) the script runs a fast search. On the tree found it compares SH-aLRT and aBayes
(`iqtree2 -te T -alrt 1000 -abayes`); tests of ten trees, the tree itself and its nine best interchanges
(`iqtree2 -z -zb 10000 -zw -au`); and marginal ancestral states with fixed lengths and parameters
(`iqtree2 -asr -blfix`). For the first two each program optimises lengths and model itself. A partition file is NEXUS
with charsets and a charpartition that names the models; IQ-TREE reads it with -p, and ancestral states are left out.
Each program runs on one thread. Needs iqtree2.
"""

import json
import re
import tempfile
import time
from pathlib import Path

import numpy as np
from compare_supports import agreement
from rivals import as_iqtree_model, make_parser, run_iqtree, save

import plltool
from plltool.io.newick import number_tips, parse_nodes
from plltool.io.newick_writer import write_newick
from plltool.io.tree_files import find_labels
from plltool.tree.moves import exchange_subtrees
from plltool.tree.splits import branch_splits

DEFAULT_MODEL = "GTR+F+G4"
COLUMNS = ("bp", "kh", "sh", "wkh", "wsh", "elw", "au")  # in the order of IQ-TREE's table, behind tree, lnL and delta


def ask_iqtree(folder, alignment, *arguments):
    """A function that reads the files of an IQ-TREE run by their suffixes, and the seconds of the run."""
    spent = run_iqtree(alignment, folder / "iq", "-seed", 1, *arguments)
    return lambda ending: (folder / f"iq.{ending}").read_text(), spent.seconds


def their_model(model):
    """IQ-TREE's options for a model, or for a partition file."""
    return ["-p", model] if Path(model).is_file() else ["-m", model]


def labels_of(newick, names):
    """Node labels by the split of the inner branch; that at IQ-TREE's root may have none."""
    nodes = parse_nodes(newick, "IQ-TREE's tree")
    return find_labels(nodes, number_tips(nodes, "IQ-TREE's tree", names))


def compare_supports(alignment, model, tree, folder):
    began = time.perf_counter()
    result = plltool.alrt(alignment, tree, model, threads=1)
    seconds = time.perf_counter() - began
    (folder / "t.nwk").write_text(tree + "\n")
    read, their_seconds = ask_iqtree(
        folder, alignment, *their_model(model), "-te", folder / "t.nwk", "-alrt", 1000, "-abayes"
    )
    names = result.tree.names
    labels = labels_of(read("treefile"), names)
    own = branch_splits(result.tree, names)
    values = result.supports.values
    rows = [
        (values["sh-alrt"][branch], values["abayes"][branch], *map(float, labels[own[branch]].split("/")))
        for branch in np.flatnonzero(result.tree.is_inner_branch).tolist()
        if own[branch] in labels
    ]
    alrt, abayes, their_alrt, their_abayes = zip(*rows, strict=True)
    lnl = float(re.search(r"Log-likelihood of the tree: (\S+)", read("iqtree")).group(1))
    return {
        "lnl": result.lnl,
        "iqtree_lnl": lnl,
        "seconds": round(seconds, 2),
        "iqtree_seconds": round(their_seconds, 2),
        "sh_alrt": agreement(alrt, their_alrt),
        "abayes": agreement(abayes, their_abayes),
    }, result


def best_interchanges(result, n):
    """Newick of the n most likely interchanges of a tree."""
    tree, lnl = result.tree, result.supports.lnl
    found = []
    for branch in np.argsort(-lnl[:, 1:].max(axis=1))[:n].tolist():  # NaN, of tips, come last
        which = int(np.argmax(lnl[branch, 1:]))
        u, v = tree.ends[branch].tolist()
        columns = (tree.position(u, v) + 2) % 3, (tree.position(v, u) + 1 + which) % 3
        changed = tree.copy()
        exchange_subtrees(changed, (u, v), columns)
        found.append(write_newick(changed))
    return found


def compare_tests(alignment, model, trees, folder):
    (folder / "z.nwk").write_text("\n".join(trees) + "\n")
    began = time.perf_counter()
    result = plltool.topology_tests(alignment, str(folder / "z.nwk"), model, threads=1)
    seconds = time.perf_counter() - began
    (folder / "t.nwk").write_text(trees[0] + "\n")
    asked = ["-te", folder / "t.nwk", "-z", folder / "z.nwk", "-zb", 10000, "-zw", "-au"]
    read, their_seconds = ask_iqtree(folder, alignment, *their_model(model), *asked)
    table = []
    for line in read("iqtree").split("USER TREES")[1].splitlines():
        fields = line.replace("+", " ").replace(" - ", " ").rstrip(" -").split()
        if fields and fields[0].isdecimal() and len(fields) == len(COLUMNS) + 3:
            table.append([float(field) for field in fields[1:]])
    theirs = np.array(table)
    return {
        "seconds": round(seconds, 2),
        "iqtree_seconds": round(their_seconds, 2),
        "largest_difference_of_delta": float(np.max(np.abs(result.tests.delta - theirs[:, 1]))),
        **{name: agreement(getattr(result.tests, name), theirs[:, k]) for k, name in enumerate(COLUMNS, start=2)},
    }


def compare_ancestors(alignment, result, folder):
    found = plltool.ancestral_states(alignment, result.newick, result.model, fixed=True, threads=1)
    (folder / "t.nwk").write_text(result.newick + "\n")
    read, _ = ask_iqtree(
        folder, alignment, "-m", as_iqtree_model(result.model), "-te", folder / "t.nwk", "-blfix", "-asr"
    )
    names = result.tree.names
    node_of = {label: key for key, label in labels_of(read("treefile"), names).items()}
    rows = [line.split("\t") for line in read("state").splitlines() if line.startswith("Node") and "Site" not in line]
    theirs = {}
    for row in rows:
        theirs.setdefault(row[0], []).append([float(field) for field in row[3:]])
    # a node is known by the branch above it; which end of that branch it is follows from the smaller distance
    probabilities = found.ancestors[0].probabilities
    own = branch_splits(found.tree, names)
    largest, n_compared = 0.0, 0
    for label, table in theirs.items():
        if label not in node_of:
            continue
        branch = own.index(node_of[label])
        ends = [int(node) - found.tree.n_taxa for node in found.tree.ends[branch]]
        largest = max(largest, min(float(np.max(np.abs(probabilities[node] - table))) for node in ends))
        n_compared += 1
    return {"nodes": n_compared, "sites": found.n_sites, "largest_difference": largest}


def main():
    parser = make_parser(__doc__, required=True)
    parser.add_argument("alignments", nargs="+")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--partitions", help="partition file, NEXUS, instead of a model")
    arguments = parser.parse_args()
    model = arguments.partitions or arguments.model
    results = {}
    for alignment in arguments.alignments:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            tree = plltool.search(alignment, model, effort="fast", threads=1).newick
            supports, result = compare_supports(alignment, model, tree, folder)
            trees = [result.newick, *best_interchanges(result, 9)]
            found = {"model": model, "supports": supports, "tests": compare_tests(alignment, model, trees, folder)}
            if not arguments.partitions:
                found["ancestors"] = compare_ancestors(alignment, result, folder)
            results[Path(alignment).stem] = found
            print(Path(alignment).stem, json.dumps(found, indent=1))
    save(arguments.output, results)


if __name__ == "__main__":
    main()
