"""Splits (bipartitions of the taxa) as Python integers, and the two usual distances between two trees.

Bit i of a split is set if taxon i is on the side without taxon 0. Integers of any size are quick to join and serve as
keys, also where there are thousands of taxa.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from plltool.errors import InputError
from plltool.tree.topology import Tree


def everyone(n_taxa: int) -> int:
    """The set of all taxa."""
    return (1 << n_taxa) - 1


def members_of(split: int) -> Iterator[int]:
    """The taxa of a split, ascending."""
    while split:
        lowest = split & -split
        yield lowest.bit_length() - 1
        split ^= lowest


def branch_splits(tree: Tree, names: Sequence[str] | None = None) -> list[int]:
    """The split of each branch: the taxa on its side without the first name.

    `names`: the tree's names in the order of the bits; by default the tree's own order.

    Returns (n_edges,), branch by branch; bit i is set if ``names[i]`` is on the side without ``names[0]``. Raises
    InputError if `names` are not exactly the tree's taxa.
    """
    bits = _bit_numbers(tree, tree.names if names is None else names)
    below = [1 << bit for bit in bits] + [0] * (tree.n_nodes - tree.n_taxa)
    splits = [0] * tree.n_edges
    for node, parent, branch in reversed(list(tree.directed_from(bits.index(0)))):
        below[parent] |= below[node]
        splits[branch] = below[node]
    return splits


def inner_splits(tree: Tree, names: Sequence[str] | None = None) -> list[int]:
    """The splits of the inner branches (n_taxa - 3,), which tell topologies apart; the rest as in `branch_splits`."""
    splits = branch_splits(tree, names)
    return [split for split, is_inner in zip(splits, tree.is_inner_branch.tolist(), strict=True) if is_inner]


def splits_of(tree: Tree, names: Sequence[str] | None = None) -> dict[int, float]:
    """The branch lengths of a tree by split, branch by branch; branches at tips are included.

    Where parts have lengths of their own, their mean. Parameters and errors as in `branch_splits`.
    """
    lengths = tree.lengths if tree.lengths.ndim == 1 else tree.lengths.mean(axis=1)
    return dict(zip(branch_splits(tree, names), lengths.tolist(), strict=True))


def rf_distance(a: Tree, b: Tree) -> int:
    """The number of splits in exactly one of two trees over the same taxa (Robinson & Foulds 1981).

    Raises InputError if the trees do not have the same taxa.
    """
    return len(set(inner_splits(a)) ^ set(inner_splits(b, a.names)))


def branch_score_distance(a: Tree, b: Tree) -> float:
    """The branch score distance of two trees over the same taxa, in expected substitutions per site.

    The root of the summed squared differences of the lengths of corresponding branches. A branch that a tree lacks
    counts as length 0 (Kuhner & Felsenstein 1994; the root is taken as in PHYLIP's treedist).

    Raises InputError if the trees do not have the same taxa.
    """
    differences = splits_of(a)
    for split, length in splits_of(b, a.names).items():
        differences[split] = differences.get(split, 0.0) - length
    return float(np.linalg.norm(list(differences.values())))


def smaller_sides(tree: Tree, branches: Iterable[int]) -> list[list[str]]:
    """For each of `branches`, the names of the taxa on its smaller side, in the tree's order.

    If both sides are equal, the one without the first taxon.
    """
    splits = branch_splits(tree)
    return [smaller_side(splits[branch], tree.names) for branch in branches]


def smaller_side(split: int, names: Sequence[str]) -> list[str]:
    """The names of the taxa on the smaller side of a split; if both are equal, on the one without the first taxon."""
    smaller = everyone(len(names)) ^ split if 2 * split.bit_count() > len(names) else split
    return [names[taxon] for taxon in members_of(smaller)]


def _bit_numbers(tree: Tree, names: Sequence[str]) -> list[int]:
    """The position in `names` of the name of each tip (n_taxa,)."""
    positions = {name: i for i, name in enumerate(names)}
    differing = sorted(set(tree.names) ^ positions.keys())
    if differing or len(names) != tree.n_taxa:
        found = f"{differing[0]!r} is in only one of them" if differing else "a name occurs twice"
        raise InputError(f"cannot compare trees with different taxa: {found}")
    return [positions[name] for name in tree.names]
