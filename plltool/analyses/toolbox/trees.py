"""Trees to look at and with other roots, and sets of trees: their distances and their consensus."""

from __future__ import annotations

import math
from dataclasses import replace

from plltool.arrays import FloatArray
from plltool.constants import MAJORITY
from plltool.errors import InputError
from plltool.io.newick_writer import write_nodes
from plltool.io.tree_files import find_nodes, load_nodes, write_splits
from plltool.progress import log
from plltool.reports.picture import TimeScale, drawn_lengths, is_support
from plltool.reports.tree_drawing import TreeDrawing
from plltool.run.inputs import TreeLike, TreesLike, as_tree_set
from plltool.run.rooting import OutgroupLike, root_nodes
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.splits import RF, distances, members_of
from plltool.tree.supports import MAJORITY_RULE, Consensus, make_consensus
from plltool.tree.topology import Tree


def show(
    tree: TreeLike,
    root: str | None = None,
    outgroup: OutgroupLike | None = None,
    ladderize: bool = False,
    latest: float | None = None,
    node_names: bool = False,
) -> TreeDrawing:
    """A tree to look at.

    Parameters
    ----------
    tree : file (Newick or NEXUS, the first tree counts), Newick text, Tree, or tree of dendropy, Biopython or ete;
        nodes may have any number of branches
    root : "midpoint" (Farris 1972), "mad" (minimal ancestor deviation, Tria et al. 2017), "outgroup", or None for the
        tree's own
    outgroup : taxa on one side of the root; a name, or several
    ladderize : put the smaller of two clades first
    latest : year of the latest tip, if branch lengths are years: pictures get an axis of years, and bars where the file
        has the intervals of nodes, as NEXUS of plltool, BEAST and MrBayes does
    node_names : keep names of inner nodes, too; otherwise only supports stay there

    Raises InputError if the tree cannot be read or has fewer than two taxa, a root by distances finds a branch without
    a length, the outgroup is not one clade, or a tree without lengths, or an infinite year, is to be drawn in time.
    """
    nodes, source = load_nodes(tree)
    if len(nodes.parents) < 3:
        raise InputError(f"{source}: found a tree of fewer than 2 taxa, expected at least 2")
    nodes = _root(nodes, source, root, outgroup)
    if not node_names:
        below = nodes.children()
        kept = [label if is_support(label) or not below[node] else "" for node, label in enumerate(nodes.labels)]
        nodes = replace(nodes, labels=kept)
    if latest is not None and not (math.isfinite(latest) and drawn_lengths(nodes)[1]):
        raise InputError(f"{source}: latest: found {latest:g}, expected a year, and a tree with lengths in years")
    nodes = nodes.ladderized() if ladderize else nodes
    if latest is None:
        return TreeDrawing(nodes)
    spans = [nodes.heights.get(node) for node in range(len(nodes.parents))]
    years = tuple(own and (latest - own[1], latest - own[0]) for own in spans)
    return TreeDrawing(nodes, time=TimeScale(latest, years))


def root_trees(trees: TreeLike, by: str | None = None, outgroup: OutgroupLike | None = None) -> list[str]:
    """The trees of a file with other roots, each as a line of Newick; labels stay with their branches.

    Parameters
    ----------
    trees : a file of any number of trees, or one tree in any form that `show` takes
    by, outgroup : see `root` and `outgroup` of `show`, also for errors; one of them must be given
    """
    if by is None and outgroup is None:
        raise InputError("root: found neither a way to find the root nor an outgroup, expected one")
    if isinstance(trees, Tree):
        found = [load_nodes(trees)]
    else:
        source, several = find_nodes(trees)
        found = [(nodes, f"{source}: tree {number}") for number, nodes in enumerate(several, start=1)]
    return [write_nodes(_root(nodes, source, by, outgroup)) for nodes, source in found]


def _root(nodes: RootedNodes, source: str, by: str | None, outgroup: OutgroupLike | None) -> RootedNodes:
    try:
        rooted, remark = root_nodes(nodes, by, outgroup)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    if remark:
        log.info("%s: %s", source, remark)
    return rooted


def tree_distances(trees: TreesLike, kind: str = RF, relative: bool = False) -> FloatArray:
    """The distances of all pairs of trees.

    Parameters
    ----------
    trees : a file (Newick or NEXUS, compressed or not), Newick text, or a list of files, texts, and trees in any form
        that `plltool.evaluate` takes
    kind : "rf", "wrf" or "branch-score", see `splits.distances`
    relative : divide RF distances by the largest possible, 2 (n_taxa - 3)

    Returns
    -------
    (n_trees, n_trees); splits, or expected substitutions per site

    Raises InputError if a file cannot be read, the taxa are not the same in all trees, the kind is unknown or not
    relative, or a tree lacks the lengths that the kind needs.
    """
    if relative and kind != RF:
        raise InputError(f"distances: found relative ones of kind {kind!r}, expected kind {RF!r}")
    given = as_tree_set(trees)
    found = distances(given, kind)
    return found / (2 * max(1, len(given.names) - 3)) if relative else found


def consensus(trees: TreesLike, rule: str = MAJORITY_RULE, threshold: float = MAJORITY) -> Consensus:
    """The consensus of some trees.

    Parameters
    ----------
    trees : as for `tree_distances`
    rule, threshold : see `tree.consensus.make_consensus`, also for errors
    """
    return make_consensus(as_tree_set(trees), rule, threshold)


def write_network(trees: TreesLike) -> str:
    """The splits of some trees as NEXUS for SplitsTree, each weighted by the per cent of the trees that have it.

    trees : as for `tree_distances`; branches at tips have 100 per cent
    """
    given = as_tree_set(trees)
    n_taxa = len(given.names)
    rows = [f"\t100\t {number}," for number in range(1, n_taxa + 1)]
    for split, count in zip(given.splits, given.counts.tolist(), strict=True):
        rows.append(f"\t{100 * count / given.n_trees:.0f}\t {' '.join(str(k + 1) for k in members_of(split))},")
    names = [name.replace("'", "''") for name in given.names]
    taxa = [f"[{number}] '{name}'" for number, name in enumerate(names, 1)]
    head = ["BEGIN Taxa;", f"DIMENSIONS ntax={n_taxa};", "TAXLABELS", *taxa, ";", "END; [Taxa]", "", "BEGIN Splits;"]
    head += [f"DIMENSIONS ntax={n_taxa} nsplits={len(rows)};"]
    head += ["FORMAT labels=no weights=yes confidences=no intervals=no;", "MATRIX"]
    return "\n".join(["#nexus", "", *head, *rows, ";", "END; [Splits]", ""])


def write_consensus(found: Consensus) -> str:
    """A consensus as one line of Newick; each inner branch is labelled with the per cent of the trees that have it."""
    labels = [f"{100 * share:.6g}" for share in found.shares.tolist()]
    return write_splits(found.names, found.splits, found.lengths.tolist(), labels, found.pendants.tolist())
