"""Supports: how often other trees have the branches of one tree, or nearly have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.errors import InputError
from plltool.tree.splits import branch_splits, inner_splits
from plltool.tree.topology import Tree
from plltool.tree.tree_set import TreeSet


def frequencies(tree: Tree, replicates: TreeSet) -> FloatArray:
    """Felsenstein's bootstrap proportions: the share of the replicates that have each branch (Felsenstein 1985).

    Returns (n_edges,), 0 to 1; NaN at the branches of tips, which all trees have. Raises InputError if the taxa are not
    the same.
    """
    shares = replicates.shares
    values = np.array([shares.get(split, 0.0) for split in branch_splits(tree, replicates.names)])
    values[~tree.is_inner_branch] = np.nan
    return values


def transfer_supports(tree: Tree, replicates: TreeSet) -> FloatArray:
    """Transfer bootstrap expectations (Lemoine et al. 2018).

    The support is 1 - mean(d / (p - 1)) over the replicates: d is the least number of taxa that must change sides to
    turn the branch into one of the replicate's, p the number of taxa on its smaller side.

    Returns and errors as for `frequencies`.
    """
    splits = inner_splits(tree, replicates.names)
    sides = _unpack(splits, tree.n_taxa)
    sizes = sides.sum(axis=1, dtype=np.float64)
    most = np.minimum(sizes, tree.n_taxa - sizes) - 1  # taxa to move until one is left on that side
    found = np.zeros(len(splits))
    for number in range(replicates.n_trees):
        own = [replicates.splits[member] for member in replicates.of_tree(number).tolist()]
        present = set(own)
        lacking = np.array([k for k, split in enumerate(splits) if split not in present], dtype=np.intp)
        if len(lacking):
            nearest = _nearest(sides[lacking], _unpack(own, tree.n_taxa))
            found[lacking] += np.minimum(nearest, most[lacking]) / most[lacking]
    values = np.full(tree.n_edges, np.nan)
    values[tree.is_inner_branch] = 1.0 - found / replicates.n_trees
    return values


def root_frequencies(tree: Tree, replicates: TreeSet) -> FloatArray:
    """Rootstrap: the share of the replicates that have their root on each branch (Naser-Khdour, Minh & Lanfear 2022).

    A replicate whose root is on a branch that the tree lacks supports none. Branches of tips have supports, too.

    Returns (n_edges,), 0 to 1. Raises InputError if the taxa are not the same, or a replicate has no root with two
    branches.
    """
    without = [number for number, root in enumerate(replicates.roots, start=1) if root is None]
    if without:
        found = f"replicate tree {without[0]}: found no root"
        raise InputError(f"{found}, expected one, with two branches, for supports of the root")
    counts = Counter(replicates.roots)
    return np.array([counts[split] / replicates.n_trees for split in branch_splits(tree, replicates.names)])


def _unpack(splits: Sequence[int], n_taxa: int) -> npt.NDArray[np.float32]:
    """Splits as rows of zeros and ones (n_splits, n_taxa); sums of the type are exact below 2^24."""
    n_bytes = -(-n_taxa // 8)
    raw = b"".join(split.to_bytes(n_bytes, "little") for split in splits)
    rows = np.frombuffer(raw, np.uint8).reshape(-1, n_bytes)
    return np.unpackbits(rows, axis=1, count=n_taxa, bitorder="little").astype(np.float32)


def _nearest(sides: npt.NDArray[np.float32], others: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The least number of taxa to move from each of `sides` (n, n_taxa) to one of `others` (m, n_taxa): (n,)."""
    if not len(others):
        return np.full(len(sides), np.inf, dtype=np.float32)
    moved = sides.sum(axis=1)[:, None] + others.sum(axis=1) - 2 * (sides @ others.T)
    return np.asarray(np.minimum(moved, sides.shape[1] - moved).min(axis=1))
