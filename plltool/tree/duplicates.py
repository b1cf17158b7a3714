"""Remove taxa from a tree, and put identical sequences back beside their twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plltool.constants import MIN_BRANCH_LENGTH, NO_NODE
from plltool.errors import InputError
from plltool.tree.topology import Tree


def restrict_tree(tree: Tree, names: Sequence[str]) -> Tree:
    """The tree restricted to `names`, with tips numbered in their order and the rest as by `Tree.renumbered`.

    Two branches that meet where a taxon is removed become one, whose length is their sum.
    """
    numbers = {name: number for number, name in enumerate(names)}
    unknown = sorted(numbers.keys() - set(tree.names))
    if unknown:
        raise InputError(f"cannot restrict a tree to a taxon that it lacks: {unknown[0]!r}")
    if not 3 <= len(numbers) == len(names):
        raise InputError(f"a tree needs at least 3 taxa, all different, found {len(names)} ({len(numbers)} different)")
    new_number = [numbers.get(name, NO_NODE) for name in tree.names] + [NO_NODE] * (tree.n_nodes - tree.n_taxa)
    root = tree.names.index(names[0])
    visits = tree.directed_from(root)
    branching = [0] * tree.n_nodes  # how many children of each node have kept tips at or below them
    for node, parent, _ in reversed(visits):
        branching[parent] += new_number[node] != NO_NODE or branching[node] > 0
    ends, lengths = [], []
    anchor: dict[int, tuple[int, Any]] = {root: (root, 0.0)}  # the nearest kept node above or at each, and length to it
    next_node = len(names)
    for node, parent, edge in visits:
        above, length = anchor[parent]
        anchor[node] = above, length + tree.lengths[edge]
        if new_number[node] == NO_NODE and branching[node] > 1:
            new_number[node] = next_node
            next_node += 1
        if new_number[node] != NO_NODE:
            ends.append((new_number[above], new_number[node]))
            lengths.append(anchor[node][1])
            anchor[node] = node, 0.0
    return Tree.from_edges(names, ends, lengths).renumbered()


def restore_duplicates(tree: Tree, names: Sequence[str], groups: Sequence[Sequence[int]]) -> Tree:
    """The tree of all taxa `names`: identical sequences are put back, each beside its twin.

    A tip with one duplicate becomes a cherry, one with several a comb. The branch of the tip keeps its length and leads
    to the new node; all branches within have the minimum length. ``groups[i]`` holds the taxa that tip i of `tree`
    stands for, itself first, as indices of `names`; every taxon is in one group. The first branches of the result are
    the branches of `tree` in their order.
    """
    shift = len(names) - tree.n_taxa
    tips = [group[0] for group in groups]
    number = np.array([*tips, *range(len(names), tree.n_nodes + shift)], dtype=np.int32)
    ends = number[tree.ends].tolist()
    next_node = tree.n_nodes + shift
    for tip, group in enumerate(groups):
        branch = ends[int(tree.edges[tip, 0])]
        for twin in group[1:]:
            branch[branch.index(group[0])] = next_node
            branch = [group[0], next_node]
            ends += [branch, [twin, next_node]]
            next_node += 1
    twins = np.full((len(ends) - tree.n_edges, *tree.lengths.shape[1:]), MIN_BRANCH_LENGTH)
    return Tree.from_edges(names, ends, np.concatenate([tree.lengths, twins]))
