"""Trees that grow and change: random topologies, the insertion of a tip, prune and regraft, exchange."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import ArrayLike, FloatArray, IntArray
from plltool.constants import MIN_BRANCH_LENGTH, NO_NODE
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
    """The nodes (2 n_taxa - 3, 2) of each branch, numbered as in `Tree`; all labelled topologies are equally likely.

    Taxa are inserted in random order, each into a branch chosen uniformly: every topology has one sequence of choices.
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

    `ends`: int32 (n_branches, 2) of an unrooted tree; `lengths`: (n_branches,), or (n_branches, n_parts). Returns the
    same branches in their order, then the new ones, of the minimum length; new nodes have the numbers after those in
    use.
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


@dataclass(frozen=True)
class Undo:
    """The rows of the tree's arrays that a move overwrote."""

    nodes: IntArray
    neighbours: IntArray
    edge_rows: IntArray
    edges: IntArray
    ends: IntArray
    lengths: FloatArray

    def restore(self, tree: Tree) -> None:
        """Restore the tree as it was before the move."""
        tree.neighbours[self.nodes] = self.neighbours
        tree.edges[self.nodes] = self.edge_rows
        tree.ends[self.edges] = self.ends
        tree.lengths[self.edges] = self.lengths


def subtree_contains(tree: Tree, root: int, parent: int, edge: int) -> bool:
    """Whether `edge` is in the subtree at `root` seen from `parent`, or joins them; the smaller side is walked."""
    if tree.edge_between(root, parent) == edge:
        return True
    sides = {True: [(root, parent)], False: [(parent, root)]}
    inside = True
    while sides[inside]:
        node, came_from = sides[inside].pop()
        for neighbour, other in zip(tree.neighbours[node].tolist(), tree.edges[node].tolist(), strict=True):
            if neighbour in (came_from, NO_NODE):
                continue
            if other == edge:
                return inside
            sides[inside].append((neighbour, node))
        inside = not inside
    return not inside  # this side holds no such branch, so the other does


def prune_regraft(
    tree: Tree, joint: int, subtree: int, target: int, healed: ArrayLike, lengths: Sequence[ArrayLike]
) -> Undo | None:
    """Prune the subtree at `subtree` with its carrier, the inner node `joint`, and regraft it into branch `target`.

    healed : length of the branch that closes the gap; (n_parts,) if parts have separate lengths
    lengths : new lengths from `joint` to the first end of `target`, to its second end, and to `subtree`, each likewise

    `target` then runs from its first end to `joint`. Returns None, with the tree unchanged, if it touches `joint` or
    lies inside the pruned subtree.
    """
    column = tree.position(joint, subtree)
    near, far = (int(tree.neighbours[joint, (column + k) % 3]) for k in (1, 2))
    near_edge, far_edge = (int(tree.edges[joint, (column + k) % 3]) for k in (1, 2))
    if target in (near_edge, far_edge) or subtree_contains(tree, subtree, joint, target):
        return None
    first, second = (int(node) for node in tree.ends[target])
    subtree_edge = int(tree.edges[joint, column])
    nodes = np.array(sorted({joint, near, far, first, second}), dtype=np.int32)
    edges = np.array([near_edge, far_edge, target, subtree_edge], dtype=np.int32)
    undo = Undo(nodes, tree.neighbours[nodes], tree.edges[nodes], edges, tree.ends[edges], tree.lengths[edges])
    # close the gap: the near branch now joins near and far; the far branch is free
    _reconnect(tree, far, far_edge, near, near_edge)
    _reconnect(tree, near, near_edge, far, near_edge)
    tree.ends[near_edge] = near, far
    # regraft: target joins its first end and the joint; the free branch joins the joint and target's second end
    _reconnect(tree, first, target, joint, target)
    _reconnect(tree, second, target, joint, far_edge)
    tree.ends[target] = first, joint
    tree.ends[far_edge] = joint, second
    tree.neighbours[joint, (column + 1) % 3], tree.edges[joint, (column + 1) % 3] = first, target
    tree.neighbours[joint, (column + 2) % 3], tree.edges[joint, (column + 2) % 3] = second, far_edge
    tree.lengths[[near_edge, target, far_edge, subtree_edge]] = np.array([healed, *lengths])
    return undo


def exchange_subtrees(tree: Tree, nodes: tuple[int, int], columns: tuple[int, int]) -> None:
    """Let subtrees that are apart, in columns of two nodes, change places: an NNI if the nodes share a branch."""
    subtrees = [int(tree.neighbours[node, column]) for node, column in zip(nodes, columns, strict=True)]
    edges = [int(tree.edges[node, column]) for node, column in zip(nodes, columns, strict=True)]
    for own, other in ((0, 1), (1, 0)):
        _reconnect(tree, subtrees[own], edges[own], nodes[other], edges[own])
        tree.neighbours[nodes[own], columns[own]] = subtrees[other]
        tree.edges[nodes[own], columns[own]] = edges[other]
        tree.ends[edges[own]] = subtrees[own], nodes[other]


def _reconnect(tree: Tree, node: int, old_edge: int, neighbour: int, edge: int) -> None:
    """Let the branch slot of `node` that held `old_edge` lead to `neighbour` by `edge`."""
    row = tree.edges[node]
    column = int(np.flatnonzero(row == old_edge)[0])
    tree.neighbours[node, column] = neighbour
    row[column] = edge
