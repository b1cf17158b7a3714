"""Trees with a root, for processes that are not time-reversible.

The root is an inner node like any other, and what makes it the root is a tip of its own that has no data: tip 0, called
ROOT_NAME. So a root position is a place of this tip, the two lengths at the root are the lengths of two branches, and
everything that goes over a tree from its tip 0 goes away from the root. The length of the tip's own branch changes no
likelihood.
"""

from __future__ import annotations

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import MIN_BRANCH_LENGTH, ROOT_NAME
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


def drop_root(tree: Tree) -> Tree:
    """The tree without its root, whose two branches become one; the one with the larger number goes."""
    top = int(tree.neighbours[0, 0])
    own = int(tree.edges[0, 0])
    kept, gone = sorted(int(edge) for edge in tree.edges[top] if edge != own)
    ends, lengths = tree.ends.copy(), tree.lengths.copy()
    far = int(ends[gone][ends[gone] != top][0])
    ends[kept] = np.where(tree.ends[kept] == top, far, tree.ends[kept])
    lengths[kept] += lengths[gone]
    left = np.setdiff1d(np.arange(tree.n_edges), [gone, own])
    ends = ends[left]
    return Tree.from_edges(tree.names[1:], ends - 1 - (ends > top), lengths[left])
