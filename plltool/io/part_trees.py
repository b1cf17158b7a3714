"""Read the tree of an alignment, with branch lengths for each part if the file has them, and constraint trees."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np

from plltool.errors import InputError
from plltool.io.bridge import TreeObject
from plltool.io.newick import number_some_tips, parse_nodes, unrooted_tree
from plltool.io.nexus_commands import starts_like_nexus
from plltool.io.tree_files import load_nodes, read_nexus_trees, read_tree_text
from plltool.progress import log
from plltool.tree.constraint import Constraint, make_constraint
from plltool.tree.rooted_nodes import RootedNodes, unrooted_branches
from plltool.tree.splits import branch_splits
from plltool.tree.topology import Tree

NO_BRANCH = -1


def read_tree(
    path: str | PathLike[str],
    names: Sequence[str] | None = None,
    resolve_seed: int | None = None,
    unlinked: bool = False,
) -> Tree:
    """The tree of a file, Newick, NEXUS or the record of a run, compressed or not.

    If there are several trees, in Newick one per line, the first one is used and a warning says so; with `unlinked` the
    tree has the lengths of all of them: (n_edges, n_trees). For the other parameters and `Tree.warnings` see
    `parse_newick`. The path ``-`` is standard input.

    Raises
    ------
    InputError
        If the file cannot be read or has no tree, the taxa are not `names`, or topologies differ.
    """
    content, source = read_tree_text(path)
    if starts_like_nexus(content):
        found = [(f"{source}: tree {k}", nodes) for k, nodes in enumerate(read_nexus_trees(content, source), start=1)]
        n_trees = len(found)
    else:
        n_trees, found = _read_newick(content.decode("utf-8", "surrogateescape"), source, unlinked)
    if not found:
        raise InputError(f"{source}: found no tree, expected at least one")
    if n_trees > 1 and unlinked:
        return _join_lengths([(where, unrooted_tree(nodes, where, names, resolve_seed)) for where, nodes in found])
    if n_trees > 1:
        hint = "--brlen unlinked takes one for each partition of the alignment"
        log.warning("%s: found %d trees, the first one is taken; %s", source, n_trees, hint)
    return unrooted_tree(found[0][1], source, names, resolve_seed)


def _read_newick(text: str, source: str, every: bool) -> tuple[int, list[tuple[str, RootedNodes]]]:
    """The number of trees, one per line, and where each is with its nodes; only the first one unless `every`."""
    lines = [(f"{source}: line {k}", line) for k, line in enumerate(text.split("\n"), start=1) if line.strip()]
    n_trees = len(lines) if all(line.rstrip().endswith(";") for _, line in lines) else 1
    if every and n_trees > 1:
        return n_trees, [(where, parse_nodes(line.strip(), where)) for where, line in lines]
    return n_trees, [(source, parse_nodes(text, source))]


def _join_lengths(trees: list[tuple[str, Tree]]) -> Tree:
    """The first tree with the lengths of all, given with their places in the file; InputError if topologies differ."""
    origin, first = trees[0]
    lengths = []
    for where, tree in trees:
        branches = {split: branch for branch, split in enumerate(branch_splits(tree, first.names))}
        order = [branches.get(split, NO_BRANCH) for split in branch_splits(first)]
        if NO_BRANCH in order:
            raise InputError(f"{where}: the topology differs from that in {origin}, expected the same topology")
        lengths.append(tree.lengths[order])
    joined = first.with_lengths(np.stack(lengths, axis=1))
    joined.warnings = tuple(warning for _, tree in trees for warning in tree.warnings)
    return joined


# --- constraints: trees over some of the taxa, with nodes of any degree -----------------------------------


def read_constraint(given: str | PathLike[str] | TreeObject, names: Sequence[str]) -> Constraint | None:
    """The constraint that a tree makes, the first of a file, of Newick text or of another library, see `load_nodes`.

    Branch lengths, labels of inner nodes and the root are ignored.

    `names`: of all taxa; labels stand for them as in `parse_newick`.

    Returns the constraint; None for a tree without inner branches, which every tree obeys.
    """
    nodes, source = load_nodes(given, "the constraint given")
    taxa = number_some_tips(nodes, source, names, "the constraint")
    if len(taxa) < 3:  # no tree is left once the root is removed
        return None
    n_children = np.bincount(np.array(nodes.parents[1:], dtype=np.int64), minlength=len(nodes.parents))
    return make_constraint(names, unrooted_branches(nodes, n_children)[0], taxa)
