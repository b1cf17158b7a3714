"""Trees with a root, for processes that are not time-reversible.

The root is an inner node like any other, and what makes it the root is a tip of its own that has no data: tip 0, called
ROOT_NAME. So a root position is a place of this tip, the two lengths at the root are the lengths of two branches, and
everything that goes over a tree from its tip 0 goes away from the root. The length of the tip's own branch changes no
likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import MIN_BRANCH_LENGTH, NO_NODE, ROOT_NAME
from plltool.tree.splits import branch_splits
from plltool.tree.topology import Tree


def add_root(tree: Tree, branch: int, share: float = 0.5) -> Tree:
    """A tree with a root on `branch`, at `share` of its length from its first end; other branches keep their numbers.

    The lengths may be those of several parts. The two new branches come last: the rest of `branch`, and the root's own.
    """
    n_nodes = tree.n_nodes
    ends = tree.ends + 1
    rest = np.array([[n_nodes + 1, ends[branch, 1]], [0, n_nodes + 1]])
    ends[branch, 1] = n_nodes + 1
    own = np.full_like(tree.lengths[:1], MIN_BRANCH_LENGTH)
    lengths: FloatArray = np.concatenate([tree.lengths, (1 - share) * tree.lengths[branch : branch + 1], own])
    lengths[branch] *= share
    return Tree.from_edges((ROOT_NAME, *tree.names), np.concatenate([ends, rest]), lengths)


def unrooted_branches(tree: Tree) -> IndexArray:
    """The branch of the tree without its root that each branch is, or is a part of: (n_edges,); -1 for the root's own.

    The number of the branch itself in a tree that has no root.
    """
    numbers = np.arange(tree.n_edges)
    if not tree.is_rooted:
        return numbers
    own, (kept, gone) = _branches_at_root(tree)
    left = np.setdiff1d(numbers, [gone, own])
    numbers[left] = np.arange(len(left))
    numbers[gone], numbers[own] = numbers[kept], NO_NODE
    return numbers


def inner_branches(tree: Tree) -> IndexArray:
    """The inner branches of the tree without its root, ascending; of the two that a root divides, the first."""
    numbers = unrooted_branches(tree)
    is_inner = drop_root(tree).is_inner_branch
    first = np.unique(numbers, return_index=True)[1]
    return np.sort(first[(numbers[first] >= 0) & is_inner[numbers[first]]])


def spread_over_branches(tree: Tree, values: FloatArray) -> FloatArray:
    """Values (n, ...) of the branches of the tree without its root as those of the tree; NaN for the root's own."""
    numbers = unrooted_branches(tree)
    spread = values[numbers]
    spread[numbers < 0] = np.nan
    return spread


def root_split(tree: Tree, names: Sequence[str]) -> int:
    """The split of the branch on which a rooted tree has its root; bits are in the order of `names`, the taxa."""
    kept = _branches_at_root(tree)[1][0]
    return branch_splits(drop_root(tree), names)[unrooted_branches(tree)[kept]]


def drop_root(tree: Tree) -> Tree:
    """The tree without its root, whose two branches become one; the one with the larger number goes.

    A tree without a root is returned as it is.
    """
    if not tree.is_rooted:
        return tree
    top = int(tree.neighbours[0, 0])
    own, (kept, gone) = _branches_at_root(tree)
    ends, lengths = tree.ends.copy(), tree.lengths.copy()
    far = int(ends[gone][ends[gone] != top][0])
    ends[kept] = np.where(tree.ends[kept] == top, far, tree.ends[kept])
    lengths[kept] += lengths[gone]
    left = np.setdiff1d(np.arange(tree.n_edges), [gone, own])
    ends = ends[left]
    return Tree.from_edges(tree.names[1:], ends - 1 - (ends > top), lengths[left])


def _branches_at_root(tree: Tree) -> tuple[int, list[int]]:
    """The root's own branch, and the two that meet there, ascending."""
    own = int(tree.edges[0, 0])
    return own, sorted(int(edge) for edge in tree.edges[tree.neighbours[0, 0]] if edge != own)
