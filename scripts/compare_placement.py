"""Compare placement with RAxML 8, whose `-f v` is the evolutionary placement algorithm.

    python scripts/compare_placement.py fragments ALIGNMENT --output scripts/results/DATE-placement.json
    python scripts/compare_placement.py leave-one-out ALIGNMENT --output ...

`fragments` leaves some taxa out, searches a tree of the others, cuts fragments from those left out and places them with
both programs. Two places agree if they are the same branch, or if RAxML says that its lnL of ours is within 0.01 of its
best. `leave-one-out` searches a tree of all taxa, takes --taxa of them away, one at a time, places each on the rest and
counts the inner nodes between the place and where the taxon was. Both programs fit the model and the branch lengths to
the reference, and both times are of processors, user and system, of all that the program does. Everything random
depends on --seed. Needs raxmlHPC, which takes --threads threads: Debian's has 2 at least.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dendropy
import numpy as np

import plltool

MODEL = "GTR+F+G4"
TOLERANCE = 0.01  # lnL
LEAST_KNOWN = 0.5  # of the columns of a fragment


def run(command):
    """CPU and wall seconds of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "seconds": round(time.perf_counter() - began, 2),
    }


def write_fasta(path, rows):
    path.write_text(plltool.format_fasta([name for name, _ in rows], [row for _, row in rows]))


def place_with_plltool(folder, tree, *extra):
    command = [Path(sys.executable).with_name("plltool"), "place", "--reference", folder / "ref.fa", "--tree", tree]
    command += ["--queries", folder / "queries.fa", "--model", MODEL, "--threads", 1, "--prefix", folder / "own"]
    times = run([*command, "--redo", "--filter-max", 50, "--filter-acc-lwr", 1, "--quiet", *extra])
    return times, read_places(folder / "own.jplace")


def place_with_raxml(folder, tree, threads):
    for old in folder.glob("RAxML_*"):
        old.unlink()
    command = ["raxmlHPC", "-T", threads, "-f", "v", "-s", folder / "all.fa", "-t", tree, "-m", "GTRGAMMA", "-n", "x"]
    command += ["-p", 1, "-w", folder, "--epa-keep-placements=50", "--epa-prob-threshold=0.0000001"]
    return run(command), read_places(folder / "RAxML_portableTree.x.jplace")


def read_places(path):
    """For each query its places, best first: the taxa on one side of the branch, and lnL."""
    given = json.loads(path.read_text())
    tree = dendropy.Tree.get(
        data=given["tree"], schema="newick", is_parse_jplace_tokens=True, preserve_underscores=True
    )
    tree.encode_bipartitions()
    sides, taxa = {}, sorted(leaf.taxon.label for leaf in tree.leaf_node_iter())
    for edge in tree.postorder_edge_iter():
        if edge.tail_node is None:
            continue
        below = {leaf.taxon.label for leaf in edge.head_node.leaf_iter()}
        sides[edge.edge_number] = frozenset(below if taxa[0] not in below else set(taxa) - below)
    number, lnl = given["fields"].index("edge_num"), given["fields"].index("likelihood")
    places = {}
    for entry in given["placements"]:
        rows = sorted(((sides[row[number]], row[lnl]) for row in entry["p"]), key=lambda row: -row[1])
        places |= dict.fromkeys(entry["n"], rows)
    return places


def cut_fragments(data, n_left_out, n_each, n_sites, rng):
    """The reference, and fragments of the taxa left out, at least half of their columns known."""
    left_out = set(rng.choice(data.n_taxa, n_left_out, replace=False).tolist())
    rows = [(name, row.decode().upper()) for name, row in zip(data.names, data.rows, strict=True)]
    fragments = []
    for taxon in sorted(left_out):
        name, row = rows[taxon]
        for number in range(n_each):
            while True:
                first = int(rng.integers(data.n_sites - n_sites + 1))
                cut = row[first : first + n_sites]
                if len(re.findall("[ACGTU]", cut)) >= LEAST_KNOWN * n_sites:
                    break
            fragments.append((f"{name}_{number}", cut.rjust(first + n_sites, "-").ljust(data.n_sites, "-")))
    return [row for taxon, row in enumerate(rows) if taxon not in left_out], fragments


def compare_fragments(data, folder, options):
    reference, queries = cut_fragments(
        data, options.taxa, options.fragments, options.sites, np.random.default_rng(options.seed)
    )
    for name, rows in (("ref.fa", reference), ("queries.fa", queries), ("all.fa", reference + queries)):
        write_fasta(folder / name, rows)
    found = plltool.search(folder / "ref.fa", MODEL, effort="fast", threads=1)
    (folder / "ref.nwk").write_text(found.newick + "\n")
    tree = folder / "ref.nwk"
    runs = {"plltool": place_with_plltool(folder, tree)}
    runs["plltool --raxml-blo"] = place_with_plltool(folder, tree, "--raxml-blo")
    their_times, theirs = place_with_raxml(folder, tree, options.threads)
    described = {"raxml": their_times}
    for program, (times, own) in runs.items():
        described[program] = times | agreement(own, theirs)
    return {"taxa": len(reference), "queries": len(queries), "programs": described}


def agreement(own, theirs):
    """How many queries have the same best branch, or one as good; and what the others lose, as RAxML sees it."""
    losses = []
    for query, places in theirs.items():
        best = own[query][0][0]
        losses.append(0.0 if places[0][0] == best else places[0][1] - dict(places).get(best, -np.inf))
    large = sorted(round(loss, 3) for loss in losses if loss > TOLERANCE)
    return {
        "same_branch": sum(places[0][0] == own[query][0][0] for query, places in theirs.items()),
        "as_good": len(losses) - len(large),
        "losses": large,
    }


def leave_out_each(data, folder, options):
    """Node distances between the places of taxa and where they were, by program."""
    rows = [(name, row.decode().upper()) for name, row in zip(data.names, data.rows, strict=True)]
    found = plltool.search(data, MODEL, effort="fast", threads=1)
    n_taxa = min(options.taxa, data.n_taxa)
    chosen = sorted(np.random.default_rng(options.seed).choice(data.n_taxa, n_taxa, replace=False).tolist())
    distances, times = {"plltool": {}, "raxml": {}}, {"plltool": 0.0, "raxml": 0.0}
    for taxon in chosen:
        name, row = rows[taxon]
        rest = rows[:taxon] + rows[taxon + 1 :]
        for file, some in (("ref.fa", rest), ("queries.fa", [(name, row)]), ("all.fa", [*rest, (name, row)])):
            write_fasta(folder / file, some)
        tree = dendropy.Tree.get(data=found.newick, schema="newick", preserve_underscores=True)
        home, pruned = prune(tree, name)
        path = folder / "ref.nwk"
        path.write_text(pruned.as_string("newick", unquoted_underscores=True, suppress_rooting=True))
        runs = {"plltool": place_with_plltool(folder, path), "raxml": place_with_raxml(folder, path, options.threads)}
        for program, (spent, places) in runs.items():
            times[program] += spent["cpu_seconds"]
            distances[program][name] = nodes_between(pruned, home, places[name][0][0])
    return {
        "taxa": data.n_taxa,
        "left_out": n_taxa,
        "distances": distances,
        "means": {program: float(np.mean(list(own.values()))) for program, own in distances.items()},
        "cpu_seconds": {program: round(seconds, 1) for program, seconds in times.items()},
    }


def prune(tree, name):
    """The side of the branch at which a taxon was, as `read_places` calls it, and the unrooted tree without it."""
    tree.deroot()
    leaf = tree.find_node_with_taxon_label(name)
    others = [{tip.taxon.label for tip in child.leaf_iter()} for child in leaf.sibling_nodes()]
    tree.prune_taxa_with_labels([name])
    tree.deroot()
    taxa = sorted(taxon.taxon.label for taxon in tree.leaf_node_iter())
    return frozenset(others[0] if taxa[0] not in others[0] else set(taxa) - others[0]), tree


def nodes_between(tree, home, place):
    """Inner nodes on the path between two branches, each given by the taxa on one side; 0 for the same branch."""
    taxa = sorted(leaf.taxon.label for leaf in tree.leaf_node_iter())
    ends, neighbours = {}, {}
    for node in tree.preorder_node_iter():
        if node.parent_node is None:
            continue
        below = {leaf.taxon.label for leaf in node.leaf_iter()}
        ends[frozenset(below if taxa[0] not in below else set(taxa) - below)] = {node, node.parent_node}
        for one, other in ((node, node.parent_node), (node.parent_node, node)):
            neighbours.setdefault(one, []).append(other)
    if home == place:
        return 0
    at, seen, steps = set(ends[home]), set(ends[home]), 1
    while not at & ends[place]:
        at = {other for node in at for other in neighbours[node]} - seen
        seen |= at
        steps += 1
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fragments", "leave-one-out"])
    parser.add_argument("alignment", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--taxa", type=int, default=100, help="number of taxa to leave out")
    parser.add_argument("--fragments", type=int, default=10, help="of each taxon left out")
    parser.add_argument("--sites", type=int, default=200, help="columns of a fragment")
    parser.add_argument("--threads", type=int, default=2, help="of RAxML")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    data = plltool.read_alignment(options.alignment)
    with tempfile.TemporaryDirectory() as folder:
        compare = compare_fragments if options.what == "fragments" else leave_out_each
        result = compare(data, Path(folder), options)
    result |= {"alignment": options.alignment.name, "model": MODEL, "seed": options.seed}
    plltool.write_text(options.output, json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
