"""Splits (bipartitions of the taxa) as Python integers, trees as sets of them, and the distances between trees.

Bit i of a split is set if taxon i is on the side without taxon 0. Integers of any size are quick to join and serve as
keys, also where there are thousands of taxa.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.errors import InputError, check_one_of
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


def nest(sets: Iterable[int]) -> dict[int, list[int]]:
    """The sets directly within each set of taxa; the largest has all, and of two that overlap one has the other."""
    order = sorted(sets, key=lambda taxa: (-taxa.bit_count(), taxa))
    within: dict[int, list[int]] = {taxa: [] for taxa in order}
    holder = dict.fromkeys(members_of(order[0]), order[0])  # of each taxon, the smallest set so far that has it
    for taxa in order[1:]:
        within[holder[next(members_of(taxa))]].append(taxa)
        holder.update(dict.fromkeys(members_of(taxa), taxa))
    return within


def branch_splits(tree: Tree, names: Sequence[str] | None = None) -> list[int]:
    """The split (n_edges,) of each branch: the taxa on its side without the first of `names`, by default the tree's.

    Bit i is set if ``names[i]`` is there. Raises InputError if `names` are not exactly the tree's taxa.
    """
    names = tree.names if names is None else names
    positions = {name: i for i, name in enumerate(names)}
    differing = sorted(set(tree.names) ^ positions.keys())
    if differing or len(names) != tree.n_taxa:
        found = f"{differing[0]!r} is in only one of them" if differing else "a name occurs twice"
        raise InputError(f"cannot compare trees with different taxa: {found}")
    bits = [positions[name] for name in tree.names]
    below = [1 << bit for bit in bits] + [0] * (tree.n_nodes - tree.n_taxa)
    splits = [0] * tree.n_edges
    for node, parent, branch in reversed(tree.directed_from(bits.index(0))):
        below[parent] |= below[node]
        splits[branch] = below[node]
    return splits


def inner_splits(tree: Tree, names: Sequence[str] | None = None) -> list[int]:
    """The splits of the inner branches (n_taxa - 3,), which tell topologies apart; the rest as in `branch_splits`."""
    splits = branch_splits(tree, names)
    return [split for split, is_inner in zip(splits, tree.is_inner_branch.tolist(), strict=True) if is_inner]


def splits_of(tree: Tree, names: Sequence[str] | None = None) -> dict[int, float]:
    """The branch lengths by split, tips included, the mean of several parts; parameters as in `branch_splits`.

    Branches that were `added` are missing.
    """
    lengths = tree.lengths if tree.lengths.ndim == 1 else tree.lengths.mean(axis=1)
    splits, own = branch_splits(tree, names), tree.own_branches
    return dict(zip([splits[branch] for branch in own.tolist()], lengths[own].tolist(), strict=True))


def rf_distance(a: Tree, b: Tree) -> int:
    """The number of splits in exactly one of two trees over the same taxa (Robinson & Foulds 1981)."""
    return len(set(inner_splits(a)) ^ set(inner_splits(b, a.names)))


def branch_score_distance(a: Tree, b: Tree) -> float:
    """The root of the summed squared differences of the lengths of corresponding branches (Kuhner & Felsenstein 1994).

    A branch that a tree lacks counts as length 0; the root is taken as in PHYLIP's treedist.
    """
    differences = splits_of(a)
    for split, length in splits_of(b, a.names).items():
        differences[split] = differences.get(split, 0.0) - length
    return float(np.linalg.norm(list(differences.values())))


def smaller_sides(tree: Tree, branches: Iterable[int]) -> list[list[str]]:
    """For each of `branches`, the taxa on its smaller side in order; if equal, the side without the first taxon."""
    splits = branch_splits(tree)
    return [smaller_side(splits[branch], tree.names) for branch in branches]


def smaller_side(split: int, names: Sequence[str]) -> list[str]:
    """The names of the taxa on the smaller side of a split; if both are equal, on the one without the first taxon."""
    smaller = everyone(len(names)) ^ split if 2 * split.bit_count() > len(names) else split
    return [names[taxon] for taxon in members_of(smaller)]


Splits = Mapping[int, float]

DISTANCES = RF, WEIGHTED_RF, BRANCH_SCORE = "rf", "wrf", "branch-score"


@dataclass(frozen=True, eq=False)
class TreeSet:
    """Trees as sets of splits."""

    names: tuple[str, ...]  # the taxa, in the order of the splits' bits
    # the distinct splits of all inner branches in the order of first occurrence, see `plltool.tree.splits`
    splits: tuple[int, ...]
    starts: IndexArray  # (n_trees + 1,) where the splits of each tree start in `members`
    members: IndexArray  # (starts[-1],) numbers of splits, ascending within a tree
    lengths: FloatArray  # (starts[-1],) lengths of these branches, NaN if a tree gives none
    pendants: FloatArray  # (n_trees, n_taxa) lengths of the branches at the tips
    # (n_trees,) the split of the branch on which each tree has its root; None for a tree without one
    roots: tuple[int | None, ...]
    # (n_trees,) the file of each tree and its number there, such as a.nwk:2, or its number in the set
    labels: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<TreeSet: {self.n_trees} trees of {len(self.names)} taxa, {len(self.splits)} distinct internal splits>"

    @property
    def n_trees(self) -> int:
        return len(self.pendants)

    @property
    def counts(self) -> IndexArray:
        """The number of trees that have each split: (n_splits,)."""
        return np.bincount(self.members, minlength=len(self.splits))

    @property
    def shares(self) -> dict[int, float]:
        """The share of the trees that have each split."""
        return dict(zip(self.splits, (self.counts / self.n_trees).tolist(), strict=True))

    def of_tree(self, number: int) -> IndexArray:
        """The numbers of the splits of one tree, ascending."""
        return self.members[self.starts[number] : self.starts[number + 1]]

    def part(self, first: int, last: int) -> Self:
        """The trees `first` to `last` - 1; all splits keep their numbers."""
        ends = self.starts[first : last + 1]
        own = slice(ends[0], ends[-1])
        by_split = {"starts": ends - ends[0], "members": self.members[own], "lengths": self.lengths[own]}
        by_tree = {name: getattr(self, name)[first:last] for name in ("pendants", "roots", "labels")}
        return replace(self, **by_split, **by_tree)


def make_tree_set(
    names: Sequence[str],
    trees: Iterable[Splits],
    roots: Sequence[int | None] | None = None,
    labels: Sequence[str] | None = None,
) -> TreeSet:
    """A set of trees, given as splits, also of tips, with lengths; by default without roots, labelled by numbers."""
    numbers: dict[int, int] = {}
    tips = {1 << taxon: taxon for taxon in range(1, len(names))} | {everyone(len(names)) - 1: 0}
    starts, members, lengths, pendants = [0], [], [], []
    for tree in trees:
        pendant = np.full(len(names), np.nan)
        inner = {}
        for split, length in tree.items():
            if split in tips:
                pendant[tips[split]] = length
            else:
                inner[numbers.setdefault(split, len(numbers))] = length
        own = sorted(inner)
        members.append(np.array(own, dtype=np.intp))
        lengths.append(np.array([inner[number] for number in own], dtype=np.float64))
        starts.append(starts[-1] + len(own))
        pendants.append(pendant)
    if not pendants:
        raise InputError("found no trees, expected at least one")
    begins, n = np.array(starts, dtype=np.intp), len(pendants)
    arrays = begins, np.concatenate(members), np.concatenate(lengths), np.array(pendants)
    of_trees = tuple(roots or [None] * n), tuple(labels or map(str, range(1, n + 1)))
    return TreeSet(tuple(names), tuple(numbers), *arrays, *of_trees)


def distances(trees: TreeSet, kind: str = RF) -> FloatArray:
    """The distances between all pairs of trees: (n_trees, n_trees).

    `kind`: "rf", the number of splits in exactly one of two trees (Robinson & Foulds 1981); "wrf", the sum of absolute
    differences between the lengths of corresponding branches, where a missing branch has length 0 (Robinson & Foulds
    1979); "branch-score", the root of the sum of their squares (Kuhner & Felsenstein 1994). The last two include the
    branches at the tips. A root is ignored.
    """
    check_one_of("distance", kind, DISTANCES)
    if kind == RF:
        sizes = np.diff(trees.starts)
        values = np.ones(len(trees.members))
        return np.array([sizes[i] + sizes - 2.0 * _sum_trees(trees, row) for i, row in _rows(trees, values)])
    for i in range(trees.n_trees):
        own = trees.lengths[trees.starts[i] : trees.starts[i + 1]]
        if np.isnan(own).any() or np.isnan(trees.pendants[i]).any():
            raise InputError(f"tree {i + 1} of {trees.n_trees}: found a branch without length, expected one for each")
    result = np.empty((trees.n_trees, trees.n_trees))
    power = 1 if kind == WEIGHTED_RF else 2
    for i, row in _rows(trees, trees.lengths):
        both = _sum_trees(trees, np.abs(row - trees.lengths) ** power)
        shared = _sum_trees(trees, row**power)  # summed in the same order for trees with the same splits
        tips = (np.abs(trees.pendants - trees.pendants[i]) ** power).sum(axis=1)
        result[i] = both + (shared[i] - shared) + tips
    result = np.maximum(result, 0.0)
    return result if power == 1 else np.sqrt(result)


def _rows(trees: TreeSet, values: FloatArray) -> Iterable[tuple[int, FloatArray]]:
    """For each tree in turn: its values at all members of all trees, 0 for splits that it lacks."""
    dense = np.zeros(len(trees.splits))
    for i in range(trees.n_trees):
        own = slice(trees.starts[i], trees.starts[i + 1])
        dense[trees.members[own]] = values[own]
        yield i, dense[trees.members]
        dense[trees.members[own]] = 0.0


def _sum_trees(trees: TreeSet, values: FloatArray) -> FloatArray:
    """The sum of `values` (one per member) over the members of each tree: (n_trees,)."""
    padded = np.append(values, 0.0)
    sums = np.add.reduceat(padded, trees.starts[:-1])
    return np.where(np.diff(trees.starts) > 0, sums, 0.0)
