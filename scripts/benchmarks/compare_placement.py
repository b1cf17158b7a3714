"""Compare placement with RAxML 8, whose `-f v` is the evolutionary placement algorithm.

    python scripts/benchmarks/compare_placement.py --fragments dna500.phy --leave-one-out dna150.phy
        --folder FOLDER --output JSON

`--fragments` leaves some taxa out, searches a tree of the others, cuts fragments from those left out and places them
with both programs. Two places agree if they are the same branch, or if RAxML says that its lnL of ours is within 0.01
of its best. RAxML frees three lengths for that. So IQ-TREE 2 judges the others: it optimises all lengths of the tree
with the fragment on either branch, under the model that plltool fitted to the reference. `--leave-one-out` searches a
tree of all taxa, takes each of them away, places it on the rest and counts the inner nodes between the place and where
it was. There both programs keep the model and the lengths that were fitted to the whole tree.

Times of fragments are of processors, user and system, of all that a program does. Everything random depends on --seed.
FOLDER keeps the trees and what RAxML has done, --output the distances of taxa that were left out: a run that was
stopped goes on there. Needs raxmlHPC and iqtree2. Debian's raxmlHPC takes 2 threads at least, which wait busily.
"""

import json
import re
import sys
from pathlib import Path

import dendropy
import numpy as np
from rivals import as_iqtree_model, load, make_parser, run, run_iqtree, save, side_below

import plltool

MODEL = "GTR+F+G4"
TOLERANCE = 0.01  # lnL
RAXML = ["raxmlHPC", "-m", "GTRGAMMA", "-p", 1]
FREED = {"plltool": None, "plltool --raxml-blo": True, "plltool --no-raxml-blo": False}  # keyword raxml_blo
LEAST_KNOWN = 0.5  # of the columns of a fragment


def time_run(command):
    """CPU and wall seconds of a command."""
    spent = run(command)
    return {"cpu_seconds": spent.cpu_seconds, "seconds": spent.seconds}


def write_fasta(path, rows):
    path.write_text(plltool.format_fasta([name for name, _ in rows], [row for _, row in rows]))


def place_with_plltool(folder, *extra):
    command = [Path(sys.executable).with_name("plltool"), "place", "--reference", folder / "ref.fa"]
    command += ["--tree", folder / "ref.nwk"]
    command += ["--queries", folder / "queries.fa", "--model", MODEL, "--threads", 1, "--prefix", folder / "own"]
    times = time_run([*command, "--redo", "--filter-max", 50, "--filter-acc-lwr", 1, "--quiet", *extra])
    return times, read_places(folder / "own.jplace")


def place_with_raxml(folder, threads, *extra):
    """The times and the places; those of an earlier run if there are any."""
    times = folder / "raxml.json"
    if not times.exists():
        for old in folder.glob("RAxML_*"):
            old.unlink()
        command = [*RAXML, "-T", threads, "-f", "v", "-s", folder / "all.fa", "-t", folder / "ref.nwk", "-n", "x"]
        command += ["-w", folder, "--epa-keep-placements=50", "--epa-prob-threshold=0.0000001", *extra]
        times.write_text(json.dumps(time_run(command)))
    return json.loads(times.read_text()), read_places(folder / "RAxML_portableTree.x.jplace")


def read_places(path):
    """For each query its places, best first: the taxa on one side of the branch, and lnL."""
    return places_of(json.loads(path.read_text()))


def places_of(given):
    """The same of the content of a jplace file."""
    tree = dendropy.Tree.get(
        data=given["tree"], schema="newick", is_parse_jplace_tokens=True, preserve_underscores=True
    )
    tree.encode_bipartitions()
    sides, taxa = {}, sorted(leaf.taxon.label for leaf in tree.leaf_node_iter())
    for edge in tree.postorder_edge_iter():
        if edge.tail_node is None:
            continue
        sides[edge.edge_number] = side_below(edge.head_node, taxa)
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


def compare_fragments(data, folder, options, _known, keep):
    reference, queries = cut_fragments(
        data, options.taxa, options.fragments_each, options.sites, np.random.default_rng(options.seed)
    )
    for name, rows in (("ref.fa", reference), ("queries.fa", queries), ("all.fa", reference + queries)):
        write_fasta(folder / name, rows)
    search_once(folder / "ref.nwk", folder / "ref.fa")
    times, theirs = place_with_raxml(folder, options.threads)
    described = {"raxml": times}
    for program in FREED:
        times, own = place_with_plltool(folder, *program.split()[1:])
        described[program] = times | agreement(own, theirs, folder)
        described[program]["share_of_time"] = times["cpu_seconds"] / described["raxml"]["cpu_seconds"]
    keep({"taxa": len(reference), "queries": len(queries), "programs": described})


def search_once(path, data):
    """A fast search's tree, unless an earlier run has left it."""
    if not path.exists():
        path.write_text(plltool.search(data, MODEL, effort="fast", threads=1).newick + "\n")


def agreement(own, theirs, folder):
    """How many queries have the same best branch, or one as good: as RAxML sees it, and as IQ-TREE does."""
    losses = {}
    for query, places in theirs.items():
        best = own[query][0][0]
        losses[query] = 0.0 if places[0][0] == best else places[0][1] - dict(places).get(best, -np.inf)
    large = {query: loss for query, loss in losses.items() if loss > TOLERANCE}
    judged = {query: judge(query, own[query][0][0], theirs[query][0][0], folder) for query in large}
    number = len(losses)
    return {
        "same_branch": sum(places[0][0] == own[query][0][0] for query, places in theirs.items()) / number,
        "as_good_by_raxml": 1 - len(large) / number,
        "as_good_by_iqtree": 1 - sum(loss > TOLERANCE for loss in judged.values()) / number,
        "better_by_iqtree": sum(loss < -TOLERANCE for loss in judged.values()),
        "losses": {query: [round(loss, 4), round(judged[query], 4)] for query, loss in large.items()},
    }


def judge(query, own, theirs, folder):
    """How much higher IQ-TREE's lnL is with a query on their branch than on ours, all lengths optimised."""
    model = as_iqtree_model(json.loads((folder / "own.place.json").read_text())["model"])
    files = [(folder / name).read_text() for name in ("ref.fa", "queries.fa")]
    row = re.search(rf"^>{re.escape(query)}\n[^>]*", files[1], re.MULTILINE)[0]
    (folder / "judged.fa").write_text(files[0] + row)
    lnl = []
    for branch in (own, theirs):
        (folder / "judged.nwk").write_text(graft(folder / "ref.nwk", branch, query))
        options = ["-te", folder / "judged.nwk", "-m", model, "-blmin", "1e-6"]
        run_iqtree(folder / "judged.fa", folder / "judged", *options)
        found = re.search(r"Log-likelihood of the tree: (\S+)", (folder / "judged.iqtree").read_text())
        lnl.append(float(found[1]))
    return lnl[1] - lnl[0]


def graft(path, branch, query):
    """The reference with a query in the middle of a branch, which is given by the taxa on one side."""
    tree = dendropy.Tree.get(path=path, schema="newick", preserve_underscores=True)
    taxa = {leaf.taxon.label for leaf in tree.leaf_node_iter()}
    for below in tree.preorder_node_iter():
        if {leaf.taxon.label for leaf in below.leaf_iter()} in (branch, taxa - branch):
            break
    above, half = below.parent_node, below.edge.length / 2
    joint = above.new_child(edge_length=half)
    above.remove_child(below)
    joint.add_child(below)
    below.edge.length = half
    joint.new_child(taxon=tree.taxon_namespace.new_taxon(query), edge_length=0.03)
    return tree.as_string("newick", unquoted_underscores=True, suppress_rooting=True)


def leave_out_each(data, folder, options, known, keep):
    """Node distances between the places of taxa and where they were, by program; those `known` are not made again."""
    rows = [(name, row.decode().upper()) for name, row in zip(data.names, data.rows, strict=True)]
    search_once(folder / "all.nwk", data)
    text = (folder / "all.nwk").read_text()
    model = plltool.evaluate(data, text, MODEL, threads=1).models[0]
    distances = known.get("distances") or {program: {} for program in ("raxml", *FREED)}
    for taxon, (name, row) in enumerate(rows[: options.left_out]):
        if name in distances["raxml"]:
            continue
        tree = dendropy.Tree.get(data=text, schema="newick", preserve_underscores=True)
        home, pruned = prune(tree, name)
        rest = rows[:taxon] + rows[taxon + 1 :]
        for program, place in place_back(folder, taxon, rest, (name, row), pruned, model, options.threads).items():
            distances[program][name] = nodes_between(pruned, home, place)
        described = {program: summary(list(own.values())) for program, own in distances.items()}
        left_out = len(distances["raxml"])
        keep({"taxa": data.n_taxa, "left_out": left_out, "programs": described, "distances": distances})


def place_back(folder, taxon, rest, left_out, pruned, model, threads):
    """The place of a taxon on the tree of the others, by program."""
    own = folder / str(taxon)
    own.mkdir(exist_ok=True)
    for file, some in (("ref.fa", rest), ("all.fa", [*rest, left_out])):
        write_fasta(own / file, some)
    newick = pruned.as_string("newick", unquoted_underscores=True, suppress_rooting=True)
    (own / "ref.nwk").write_text(newick)
    fitted = folder / "RAxML_binaryModelParameters.model"
    if not fitted.exists():  # for the first taxon: RAxML wants a model of as many taxa
        command = [*RAXML, "-T", threads, "-f", "e", "-s", own / "ref.fa", "-t", own / "ref.nwk"]
        run([*command, "-n", "model", "-w", folder])
    places = {"raxml": place_with_raxml(own, threads, "-R", fitted)[1]}
    name, row = left_out
    query = plltool.Sequences((name,), (row.encode(),), name, None, least=1)
    for program, freed in FREED.items():
        found = plltool.place(dict(rest), newick, query, model.to_string(), fixed=True, raxml_blo=freed, threads=1)
        places[program] = places_of(json.loads(found.jplace()))
    return {program: found[name][0][0] for program, found in places.items()}


def summary(distances):
    """The mean number of nodes, the largest, and how many places are where the taxon was, and within one node of it."""
    numbers = np.array(distances)
    shares = {"home": float(np.mean(numbers == 0)), "within_1": float(np.mean(numbers <= 1))}
    return {"mean": float(numbers.mean()), "largest": int(numbers.max()), **shares}


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
        ends[side_below(node, taxa)] = {node, node.parent_node}
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
    parser = make_parser(__doc__, required=True)
    parser.add_argument("--fragments", type=Path, help="alignment")
    parser.add_argument("--leave-one-out", type=Path, help="alignment")
    parser.add_argument("--folder", type=Path, required=True, help="where the files of the programs stay")
    parser.add_argument("--taxa", type=int, default=100, help="number of taxa to leave out of --fragments")
    parser.add_argument("--fragments-each", type=int, default=10, help="of each taxon left out")
    parser.add_argument("--sites", type=int, default=200, help="columns of a fragment")
    parser.add_argument("--left-out", type=int, help="number of taxa of --leave-one-out, by default all")
    parser.add_argument("--threads", type=int, default=2, help="of RAxML")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    result = load(options.output, {})
    for what, path, compare in (
        ("fragments", options.fragments, compare_fragments),
        ("leave-one-out", options.leave_one_out, leave_out_each),
    ):
        if path is not None:
            folder = options.folder.resolve() / what
            folder.mkdir(parents=True, exist_ok=True)
            about = {"alignment": path.name, "model": MODEL, "seed": options.seed}

            def keep(found, what=what, about=about):
                result[what] = found | about
                save(options.output, result)

            compare(plltool.read_alignment(path), folder, options, result.get(what, {}), keep)
            print(json.dumps(result[what]["programs"]))


if __name__ == "__main__":
    main()
