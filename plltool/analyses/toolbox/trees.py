"""Sets of trees: their distances and their consensus."""

from __future__ import annotations

from plltool.arrays import FloatArray
from plltool.constants import MAJORITY
from plltool.errors import InputError
from plltool.io.tree_files import write_splits
from plltool.run.inputs import TreesLike, as_tree_set
from plltool.tree.consensus import MAJORITY_RULE, Consensus, make_consensus
from plltool.tree.splits import RF, distances


def tree_distances(trees: TreesLike, kind: str = RF, relative: bool = False) -> FloatArray:
    """The distances of all pairs of trees.

    Parameters
    ----------
    trees : a file (Newick or NEXUS, gzipped or not), Newick text, or a list of files, texts, and trees in any form that
        `plltool.evaluate` takes
    kind : "rf", "wrf" or "branch-score", see `splits.distances`
    relative : divide RF distances by the largest possible, 2 (n_taxa - 3)

    Returns
    -------
    (n_trees, n_trees); splits, or expected substitutions per site

    Raises
    ------
    InputError
        If a file cannot be read, the taxa are not the same in all trees, the kind is unknown or not relative, or a tree
        lacks the lengths that the kind needs.
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


def write_consensus(found: Consensus) -> str:
    """A consensus as one line of Newick; each inner branch is labelled with the per cent of the trees that have it."""
    labels = [f"{100 * share:.6g}" for share in found.shares.tolist()]
    return write_splits(found.names, found.splits, found.lengths.tolist(), labels, found.pendants.tolist())
