"""Many trees over the same taxa, multifurcating or not, as sets of splits, and the distances between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.errors import InputError, check_one_of
from plltool.tree.splits import everyone

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

    def part(self, first: int, last: int) -> TreeSet:
        """The trees `first` to `last` - 1; all splits keep their numbers."""
        ends = self.starts[first : last + 1]
        own = slice(ends[0], ends[-1])
        return TreeSet(
            self.names,
            self.splits,
            ends - ends[0],
            self.members[own],
            self.lengths[own],
            self.pendants[first:last],
            self.roots[first:last],
            self.labels[first:last],
        )


def make_tree_set(
    names: Sequence[str],
    trees: Iterable[Splits],
    roots: Sequence[int | None] | None = None,
    labels: Sequence[str] | None = None,
) -> TreeSet:
    """A set of trees, each given as its splits, including those of tips, with branch lengths.

    `roots` and `labels` are as in `TreeSet`; by default no tree has a root, and all are numbered. Raises InputError if
    there is no tree.
    """
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
    return TreeSet(
        tuple(names),
        tuple(numbers),
        np.array(starts, dtype=np.intp),
        np.concatenate(members),
        np.concatenate(lengths),
        np.array(pendants),
        tuple(roots or [None] * len(pendants)),
        tuple(labels or [str(number) for number in range(1, len(pendants) + 1)]),
    )


def distances(trees: TreeSet, kind: str = RF) -> FloatArray:
    """The distances between all pairs of trees: (n_trees, n_trees).

    `kind`: "rf", the number of splits in exactly one of two trees (Robinson & Foulds 1981); "wrf", the sum of absolute
    differences between the lengths of corresponding branches, where a missing branch has length 0 (Robinson & Foulds
    1979); "branch-score", the root of the sum of their squares (Kuhner & Felsenstein 1994). The last two include the
    branches at the tips. A root is ignored.

    Raises InputError if `kind` is unknown, or needs lengths that a tree does not have.
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
