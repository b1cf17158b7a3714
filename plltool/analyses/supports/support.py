"""Supports of a tree's branches by replicate trees: `supports`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import FBP, REPLICATE_KINDS, ROOTSTRAP, TBE
from plltool.io.newick import ROOT_REMOVED, number_tips, unrooted_tree
from plltool.io.tree_files import find_labels, find_splits, load_nodes
from plltool.progress import log
from plltool.run.inputs import TreeLike, TreesLike, as_tree, as_tree_set
from plltool.run.rooting import OutgroupLike
from plltool.run.supports import KINDS, PERCENT, Supports, check_kinds
from plltool.tree.rooted import add_root, drop_root, spread_over_branches, unrooted_branches
from plltool.tree.splits import TreeSet, splits_of
from plltool.tree.supports import frequencies, root_frequencies, transfer_supports
from plltool.tree.topology import Tree

ANY_RESOLUTION = 0  # a seed: the branches that resolve a multifurcation are left out of all answers


class Target(NamedTuple):
    """A tree that gets supports; nodes of more than three branches are resolved arbitrarily.

    The `added` (n_edges,) branches only resolve them and get no supports; `labels` (n_edges,) are what the tree has at
    its inner branches already, "" for nothing. Without lengths it has those of a start tree.
    """

    tree: Tree
    added: BoolArray
    labels: tuple[str, ...]
    has_lengths: bool = True


SHARES: dict[str, Callable[[Tree, TreeSet], FloatArray]] = {
    FBP: frequencies,
    TBE: transfer_supports,
    ROOTSTRAP: root_frequencies,
}


def supports(
    tree: TreeLike, replicates: TreesLike, kinds: str | Sequence[str] = (FBP,), outgroup: OutgroupLike | None = None
) -> Supports:
    """How well replicate trees support the branches of a tree.

    Parameters
    ----------
    tree : file, Newick string, Tree, or tree of dendropy, Biopython or ete; nodes may have any number of branches
    replicates : trees over the same taxa, as for `plltool.tree_distances`; they may have multifurcations
    kinds : some of "fbp" (Felsenstein 1985), "tbe" (Lemoine et al. 2018) and "rootstrap" (Naser-Khdour, Minh & Lanfear
        2022), in the order of the labels. The last needs replicates with roots; a root of the tree stays then
    outgroup : taxa that the written trees show as one clade, see `Supports.with_outgroup`

    Raises InputError if a kind is unknown, a file cannot be read, the taxa are not the same, or the outgroup is not
    among them; if trees must have roots and one has none.
    """
    kinds = check_kinds(kinds, REPLICATE_KINDS)
    names = None
    if not isinstance(tree, (str, PathLike, Tree)):  # dendropy may have blanks for underscores in the replicates
        replicates = as_tree_set(replicates)
        names = replicates.names
    target = load_target(tree, names, keep_root=ROOTSTRAP in kinds)
    return map_replicates(target, replicates, kinds).with_outgroup(outgroup)


def load_target(
    tree: TreeLike, names: Sequence[str] | None = None, ordered: bool = False, keep_root: bool = False
) -> Target:
    """Prepare a tree that gets supports, which is possible before there are replicates; errors as for `supports`.

    Taxa are numbered as they come, or if `ordered` as in `names`, by default in the order of their names: numbers of
    branches then do not depend on how the tree is written. With `keep_root` a root with two branches stays.
    """
    if isinstance(tree, Tree) and tree.added is None:
        tree = tree if keep_root else drop_root(tree)
        tree = as_tree(tree, names or sorted(tree.names)).renumbered() if ordered else tree
        return Target(tree, np.zeros(tree.n_edges, dtype=np.bool_), ("",) * tree.n_edges)
    nodes, source = load_nodes(tree)
    if ordered and names is None:
        names = sorted(nodes.labels[tip] for tip in number_tips(nodes, source))
    resolved = unrooted_tree(nodes, source, names, ANY_RESOLUTION)
    is_kept = keep_root and resolved.root_place is not None
    for warning in resolved.warnings:
        if not (is_kept and ROOT_REMOVED in warning):
            log.warning(warning)
    tips = number_tips(nodes, source, resolved.names)
    own, labels, splits = find_splits(nodes, tips), find_labels(nodes, tips), splits_of(resolved)
    is_added = np.array([split not in own for split in splits])
    has_lengths = not np.isnan(list(own.values())).all()
    texts = [labels.get(split, "") for split in splits]
    if not keep_root or resolved.root_place is None:
        return Target(resolved, is_added, tuple(texts), has_lengths)
    rooted = add_root(resolved, *resolved.root_place)
    place = unrooted_branches(rooted)
    return Target(rooted, is_added[place], tuple(texts[branch] for branch in place), has_lengths)


def map_replicates(target: Target, replicates: TreesLike, kinds: Sequence[str]) -> Supports:
    """The supports of a prepared tree; arguments and errors as for `supports`."""
    tree = drop_root(target.tree)
    found = as_tree_set(replicates, tree.names)
    values = {}
    for kind in kinds:
        shares = spread_over_branches(target.tree, SHARES[kind](tree, found))
        shares[target.added] = np.nan
        values[kind] = 100 * shares if KINDS[kind].unit == PERCENT else shares
    numbers = dict.fromkeys(kinds, found.n_trees)
    return Supports(target.tree, values, numbers, added=target.added, has_lengths=target.has_lengths)
