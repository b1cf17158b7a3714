"""Sets of trees from Python: their distances and their consensus.

    from plltool.analyses.trees import consensus, tree_distances, write_consensus
    files = ["a.nwk", "b.nwk"]
    print(tree_distances(files), write_consensus(consensus(files, "majority")))
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TypeAlias

from plltool.arrays import FloatArray
from plltool.constants import MAJORITY
from plltool.io.tree_files import read_tree_set, write_splits
from plltool.tree.consensus import MAJORITY_RULE, Consensus, make_consensus
from plltool.tree.splits import splits_of
from plltool.tree.topology import Tree
from plltool.tree.tree_set import RF, TreeSet, distances, make_tree_set

TreesLike: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]] | Sequence[Tree] | TreeSet

__all__ = ["Consensus", "TreeSet", "as_tree_set", "consensus", "format_share", "tree_distances", "write_consensus"]


def as_tree_set(trees: TreesLike, names: Sequence[str] | None = None, whose: str = "the tree") -> TreeSet:
    """A set of trees: a file or several (Newick or NEXUS, gzipped or not), a sequence of `Tree`, or as it is.

    Parameters
    ----------
    names : the taxa in the order wanted, those of `whose`; by default as in the first tree. Not heeded for a `TreeSet`

    Raises
    ------
    InputError
        If a file cannot be read, there is no tree, or the taxa are not the same in all.
    """
    if isinstance(trees, TreeSet):
        return trees
    if isinstance(trees, (str, PathLike)):
        return read_tree_set([trees], names, whose)
    given = list(trees)
    if given and isinstance(given[0], Tree):
        order = given[0].names if names is None else names
        return make_tree_set(order, [splits_of(tree, order) for tree in given if isinstance(tree, Tree)])
    return read_tree_set([path for path in given if not isinstance(path, Tree)], names, whose)


def tree_distances(trees: TreesLike, kind: str = RF) -> FloatArray:
    """The distances of all pairs of trees, (n_trees, n_trees); `kind` and errors as in `tree_set.distances`."""
    return distances(as_tree_set(trees), kind)


def consensus(trees: TreesLike, rule: str = MAJORITY_RULE, threshold: float = MAJORITY) -> Consensus:
    """The consensus of some trees; parameters and errors as in `tree.consensus.make_consensus`."""
    return make_consensus(as_tree_set(trees), rule, threshold)


def write_consensus(found: Consensus) -> str:
    """A consensus as Newick on one line, labels being the per cent of the trees that have each inner branch."""
    return write_splits(
        found.names,
        found.splits,
        found.lengths.tolist(),
        [format_share(share) for share in found.shares.tolist()],
        found.pendants.tolist(),
    )


def format_share(share: float) -> str:
    """A share as per cent, without digits that say nothing."""
    return f"{100 * share:.6g}"
