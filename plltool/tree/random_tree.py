"""Random topologies by stepwise insertion, and the insertion step that all start trees use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray, IntArray
from plltool.constants import MIN_BRANCH_LENGTH
from plltool.errors import InputError
from plltool.tree.topology import Tree


def attach_tip(ends: IntArray, branch: int, tip: int, n_placed: int) -> tuple[int, int, int]:
    """Insert a tip into a branch of a growing tree, in place; returns the new inner node and the two new branches.

    `branch` joined (a, b) and joins (a, inner) afterwards. The first new branch joins (inner, b), the second
    (tip, inner). A tree grows from two tips joined by branch 0, so k = `n_placed` tips use the first 2k - 3 rows of
    `ends`, int32 (2 n_taxa - 3, 2), the two nodes of each branch, and the first k - 2 inner nodes.
    """
    n_taxa = (len(ends) + 3) // 2
    inner, lower, pendant = n_taxa + n_placed - 2, 2 * n_placed - 3, 2 * n_placed - 2
    ends[lower] = inner, ends[branch, 1]
    ends[branch, 1] = inner
    ends[pendant] = tip, inner
    return inner, lower, pendant


def random_topology(n_taxa: int, rng: np.random.Generator) -> IntArray:
    """Draw an unrooted binary topology; all labelled topologies are equally likely.

    Taxa are inserted in random order, each into a branch chosen uniformly: every labelled topology comes
    from exactly one sequence of choices.

    Returns int32 array (2 n_taxa - 3, 2), the two nodes of each branch, numbered as in `Tree`.
    """
    if n_taxa < 3:
        raise InputError(f"a tree needs at least 3 taxa, found {n_taxa}")
    order = rng.permutation(n_taxa).tolist()
    choices = rng.integers(0, 2 * np.arange(2, n_taxa) - 3).tolist()
    ends = np.empty((2 * n_taxa - 3, 2), dtype=np.int32)
    ends[0] = order[:2]
    for n_placed, (tip, branch) in enumerate(zip(order[2:], choices, strict=True), start=2):
        attach_tip(ends, branch, tip, n_placed)
    return ends


def random_tree(names: Sequence[str], rng: np.random.Generator) -> Tree:
    """Draw a tree uniformly from all topologies over `names`; all branches get the default length."""
    return Tree.from_edges(names, random_topology(len(names), rng))


def resolve_nodes(ends: IntArray, lengths: FloatArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Replace each node with more than three branches by a random binary tree; all are equally likely.

    `ends`: int32 array (n_branches, 2), the two nodes of each branch of an unrooted tree; `lengths`: float64 array
    (n_branches,), or (n_branches, n_parts).

    Returns the same branches in the same order, some with new inner nodes, then the new branches, which
    have the minimum length; new nodes have the numbers after those in use.
    """
    sides = ends.copy().reshape(-1)
    degrees = np.bincount(sides)
    starts = np.concatenate([[0], np.cumsum(degrees)])
    sides_by_node = np.argsort(sides, kind="stable")
    next_node, added = len(degrees), []
    for node in np.flatnonzero(degrees > 3):
        degree = int(degrees[node])
        # The branches of the node become the tips of a random topology; its last inner node stays this node.
        topology = random_topology(degree, rng)
        new_nodes = np.append(np.arange(next_node, next_node + degree - 3), node)
        next_node += degree - 3
        is_pendant = (topology < degree).any(axis=1)
        pendant = np.sort(topology[is_pendant], axis=1)
        sides[sides_by_node[starts[node] + pendant[:, 0]]] = new_nodes[pendant[:, 1] - degree]
        added.append(new_nodes[topology[~is_pendant] - degree])
    new_ends = np.concatenate([sides.reshape(-1, 2), *added]).astype(np.int32)
    least = np.full((len(new_ends) - len(lengths), *lengths.shape[1:]), MIN_BRANCH_LENGTH)
    return new_ends, np.concatenate([lengths, least])


def randomise_short_branches(tree: Tree, least: float | FloatArray, rng: np.random.Generator) -> Tree:
    """A tree whose short inner branches, which carry no information, are replaced by random ones.

    A branch is short if its length is at most `least`, for all parts or (n_parts,), in all parts. Nodes that join more
    than three branches then are resolved at random, by branches of MIN_BRANCH_LENGTH.
    """
    excess = (tree.lengths - least).reshape(tree.n_edges, -1).max(axis=1)
    is_gone = tree.is_inner_branch & (excess <= 0)
    merged = np.arange(tree.n_nodes)  # the node into which each node is merged
    for node, parent, branch in tree.directed_from(0):
        if is_gone[branch]:
            merged[node] = merged[parent]
    _, numbers = np.unique(merged[tree.ends[~is_gone]].ravel(), return_inverse=True)
    ends, lengths = resolve_nodes(numbers.reshape(-1, 2).astype(np.int32), tree.lengths[~is_gone], rng)
    return Tree.from_edges(tree.names, ends, lengths)
