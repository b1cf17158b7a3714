"""Splits (bipartitions of the taxa) as packed bit rows, and the two usual distances between trees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plltool.errors import InputError
from plltool.tree.topology import Tree

SplitArray = npt.NDArray[np.uint64]

BITS_PER_WORD = 64


def branch_splits(tree: Tree, names: Sequence[str] | None = None) -> SplitArray:
    """The split that each branch makes: the taxa on its side without the first name.

    Parameters
    ----------
    tree : the tree.
    names : the tree's names in the order that the bits shall have; by default the tree's own order.

    Returns
    -------
    uint64 array (2 n_taxa - 3, ceil(n_taxa / 64)); row e belongs to branch e, and bit i % 64 of word i // 64
    is set if ``names[i]`` is on the side without ``names[0]``.

    Raises
    ------
    InputError
        If `names` are not exactly the tree's taxa.
    """
    bit_of = _bit_numbers(tree, tree.names if names is None else names)
    rows = np.zeros((tree.n_nodes, -(-tree.n_taxa // BITS_PER_WORD)), dtype=np.uint64)
    word, shift = np.divmod(bit_of, BITS_PER_WORD)
    rows[np.arange(tree.n_taxa), word] = np.left_shift(np.uint64(1), shift.astype(np.uint64))
    visits = list(tree.directed_from(int(np.argmin(bit_of))))
    for node, parent, _ in reversed(visits):
        rows[parent] |= rows[node]
    splits = np.empty((tree.n_edges, rows.shape[1]), dtype=np.uint64)
    nodes, _, branches = np.array(visits).T
    splits[branches] = rows[nodes]
    return splits


def bipartitions(tree: Tree, names: Sequence[str] | None = None) -> SplitArray:
    """The splits of the inner branches only, those that tell topologies apart.

    Parameters, rows and errors as in `branch_splits`.

    Returns
    -------
    uint64 array (n_taxa - 3, ceil(n_taxa / 64)), in the order of the inner branches.
    """
    return branch_splits(tree, names)[(tree.ends >= tree.n_taxa).all(axis=1)]


def rf_distance(a: Tree, b: Tree) -> int:
    """The number of splits in exactly one of two trees over the same taxa (Robinson & Foulds 1981).

    Raises
    ------
    InputError
        If the trees do not have the same taxa.
    """
    splits_a = {row.tobytes() for row in bipartitions(a)}
    splits_b = {row.tobytes() for row in bipartitions(b, a.names)}
    return len(splits_a ^ splits_b)


def branch_score_distance(a: Tree, b: Tree) -> float:
    """The branch score distance of two trees over the same taxa, in expected substitutions per site.

    The root of the summed squared differences of the lengths of corresponding branches, a branch that a tree
    lacks counting as length 0 (Kuhner & Felsenstein 1994; the root is taken as in PHYLIP's treedist).

    Raises
    ------
    InputError
        If the trees do not have the same taxa.
    """
    differences = {row.tobytes(): length for row, length in zip(branch_splits(a), a.lengths.tolist(), strict=True)}
    for row, length in zip(branch_splits(b, a.names), b.lengths.tolist(), strict=True):
        key = row.tobytes()
        differences[key] = differences.get(key, 0.0) - length
    return float(np.linalg.norm(list(differences.values())))


def _bit_numbers(tree: Tree, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The position in `names` of each tip's name: (n_taxa,)."""
    positions = {name: i for i, name in enumerate(names)}
    differing = sorted(set(tree.names) ^ positions.keys())
    if differing or len(names) != tree.n_taxa:
        found = f"{differing[0]!r} is in only one of them" if differing else "a name occurs twice"
        raise InputError(f"cannot compare trees with different taxa: {found}")
    return np.array([positions[name] for name in tree.names])


def smaller_sides(tree: Tree, branches: npt.NDArray[np.integer]) -> list[list[str]]:
    """Of each branch the names of the taxa on that side which has fewer of them, in the tree's order.

    Of two equal sides it is the one without the first taxon.
    """
    taxa = np.arange(tree.n_taxa)
    sides = []
    for words in branch_splits(tree)[branches]:
        inside = (words[taxa // BITS_PER_WORD] >> (taxa % BITS_PER_WORD).astype(np.uint64)) & np.uint64(1) == 1
        if 2 * np.count_nonzero(inside) > tree.n_taxa:
            inside = ~inside
        sides.append([tree.names[taxon] for taxon in np.flatnonzero(inside)])
    return sides
