"""An unrooted binary tree as integer arrays.

Nodes 0 .. n_taxa-1 are the tips, in the order of ``names``; nodes n_taxa .. 2 n_taxa-3 are inner nodes of
degree 3. Nothing here is recursive, so trees of any depth work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from plltool.arrays import ArrayLike, BoolArray, FloatArray, IndexArray, IntArray
from plltool.codec import saved
from plltool.constants import DEFAULT_BRANCH_LENGTH, MIN_BRANCH_LENGTH, NO_NODE, ROOT_NAME
from plltool.errors import InputError

if TYPE_CHECKING:
    import Bio.Phylo.BaseTree
    import dendropy

    from plltool.reports.tree_drawing import TreeDrawing


@saved("names", "neighbours", "edges", "ends", "lengths")
class Tree:
    """Topology and branch lengths.

    Attributes
    ----------
    names : (n_taxa,) taxon names, one per tip
    neighbours : int32 (2 n_taxa - 2, 3), the neighbours of each node; a tip uses only column 0, the others are -1
    edges : int32 (2 n_taxa - 2, 3), the index of the branch to each of those neighbours; -1 likewise
    ends : int32 (2 n_taxa - 3, 2), the two nodes of each branch
    lengths : float64 (2 n_taxa - 3,), in expected substitutions per site; (2 n_taxa - 3, n_parts) if the parts of an
        alignment have lengths of their own, see `unlink`
    warnings : what a user should know about the tree as it was read, one line each; copies have none
    root_place : where the root of the tree was as it was read, if it had two branches: on which branch, and at which
        share of its length from its first end; None otherwise, and for copies
    root_is_given : whether the tree was given with a place for its root; False for copies
    added : (n_edges,) inner branches that only resolve nodes of more than three branches, which stay: likelihoods have
        no length there, and written trees lack them; None if there are none, or nodes were resolved for good
    """

    warnings: tuple[str, ...] = ()
    root_place: tuple[int, float] | None = None
    root_is_given: bool = False
    added: BoolArray | None = None

    def __init__(
        self, names: Sequence[str], neighbours: IntArray, edges: IntArray, ends: IntArray, lengths: FloatArray
    ):
        self.names = tuple(names)
        self.neighbours = neighbours
        self.edges = edges
        self.ends = ends
        self.lengths = lengths

    @classmethod
    def from_edges(cls, names: Sequence[str], ends: ArrayLike, lengths: ArrayLike | None = None) -> Tree:
        """Build a tree from n_taxa >= 3 names and the two nodes (2 n_taxa - 3, 2) of each branch; tip i is node i.

        Without `lengths` (2 n_taxa - 3,) all have the default one. Raises InputError if the branches do not form an
        unrooted binary tree of all nodes.
        """
        n_taxa = len(names)
        ends_array = np.array(ends, dtype=np.int32).reshape(-1, 2)
        n_edges, n_nodes = 2 * n_taxa - 3, 2 * n_taxa - 2
        if n_taxa < 3 or len(ends_array) != n_edges:
            raise InputError(f"a binary tree of {n_taxa} taxa has {n_edges} branches, found {len(ends_array)}")
        if lengths is None:
            length_array = np.full(n_edges, DEFAULT_BRANCH_LENGTH)
        else:
            length_array = np.array(lengths, dtype=np.float64)
        _check_lengths(length_array, n_edges)
        strange = ends_array[(ends_array < 0) | (ends_array >= n_nodes)]
        if strange.size:
            raise InputError(f"expected nodes from 0 to {n_nodes - 1} in a tree of {n_taxa} taxa, found {strange[0]}")
        sides = ends_array.ravel()
        too_many = np.bincount(sides, minlength=n_nodes) > np.where(np.arange(n_nodes) < n_taxa, 1, 3)
        if too_many.any():
            raise InputError(f"not a binary tree: node {too_many.argmax()} has too many branches")
        places = np.argsort(sides, kind="stable")  # branch e joins the nodes at places 2e and 2e + 1
        neighbours, edges = np.full((2, n_nodes, 3), NO_NODE, dtype=np.int32)
        for rows, values in ((neighbours, sides[places ^ 1]), (edges, places >> 1)):
            rows[:n_taxa, 0], rows[n_taxa:] = values[:n_taxa], values[n_taxa:].reshape(-1, 3)
        reached, stack, rows_of_nodes = {0, NO_NODE}, [0], neighbours.tolist()
        while stack:
            new = {*rows_of_nodes[stack.pop()]} - reached
            reached |= new
            stack.extend(new)
        if len(reached) <= n_nodes:
            raise InputError("not a tree: its branches do not connect all taxa")
        return cls(names, neighbours, edges, ends_array, length_array)

    @property
    def n_taxa(self) -> int:
        return len(self.names)

    @property
    def is_rooted(self) -> bool:
        """Whether tip 0 is no taxon but the root, see `plltool.tree.rooted`."""
        return self.names[0] == ROOT_NAME

    @property
    def n_nodes(self) -> int:
        return 2 * self.n_taxa - 2

    @property
    def n_edges(self) -> int:
        return 2 * self.n_taxa - 3

    @property
    def is_inner_branch(self) -> BoolArray:
        """(n_edges,) whether each branch joins two inner nodes: those branches tell topologies apart."""
        return np.asarray((self.ends >= self.n_taxa).all(axis=1))

    @property
    def own_branches(self) -> IndexArray:
        """(n_own,) the branches that were not `added`."""
        return np.arange(self.n_edges) if self.added is None else np.flatnonzero(~self.added)

    def is_tip(self, node: int) -> bool:
        return node < self.n_taxa

    def copy(self) -> Tree:
        """A deep copy; only the names are shared."""
        tree = Tree(self.names, self.neighbours.copy(), self.edges.copy(), self.ends.copy(), self.lengths.copy())
        tree.added = self.added
        return tree

    def with_lengths(self, lengths: FloatArray) -> Tree:
        """A copy with other branch lengths, (n_edges,) or (n_edges, n_parts); InputError if it has more or fewer."""
        tree = self.copy()
        tree.lengths = np.array(lengths, dtype=np.float64)
        _check_lengths(tree.lengths, self.n_edges)
        tree.root_place = self.root_place
        return tree

    def with_tips(self, names: Sequence[str]) -> Tree:
        """The tree with its tips in the order of `names`, and the rest numbered as by `renumbered`."""
        number = {name: tip for tip, name in enumerate(names)}
        nodes = np.array([*map(number.__getitem__, self.names), *range(self.n_taxa, self.n_nodes)])
        tree = Tree.from_edges(names, nodes[self.ends], self.lengths)
        tree.added = self.added
        tree.root_place = self.root_place
        return tree.renumbered()

    def unlink(self, n_parts: int) -> Tree:
        """A copy in which each of `n_parts` parts has separate lengths, equal to the current ones."""
        return self.with_lengths(np.repeat(self.lengths[:, None], n_parts, axis=1))

    def assign(self, other: Tree) -> None:
        """Copy the topology and the lengths of a tree over the same taxa, bit for bit, in place."""
        self.neighbours[:], self.edges[:], self.ends[:] = other.neighbours, other.edges, other.ends
        self.lengths[:] = other.lengths

    def has_topology_of(self, other: Tree) -> bool:
        """Whether nodes and branches of a tree over the same taxa have the same numbers and places."""
        return np.array_equal(self.ends, other.ends) and np.array_equal(self.neighbours, other.neighbours)

    def position(self, node: int, neighbour: int) -> int:
        """The column of `neighbour` among the neighbours of `node`."""
        row = self.neighbours[node]
        for k in range(3):
            if row[k] == neighbour:
                return k
        raise ValueError(f"nodes {node} and {neighbour} are not neighbours")

    def edge_between(self, a: int, b: int) -> int:
        """The index of the branch that joins two neighbours."""
        return int(self.edges[a, self.position(a, b)])

    def directed_from(self, root: int) -> list[tuple[int, int, int]]:
        """(node, parent, branch) of every node except `root`, parents before their children."""
        neighbours, edges, n_taxa = self.neighbours.tolist(), self.edges.tolist(), self.n_taxa
        stack = [
            (child, root, edge) for child, edge in zip(neighbours[root], edges[root], strict=True) if child != NO_NODE
        ]
        visits = []
        while stack:
            visit = stack.pop()
            visits.append(visit)
            node, parent, _ = visit
            if node >= n_taxa:
                for child, edge in zip(neighbours[node], edges[node], strict=True):
                    if child != parent:
                        stack.append((child, node, edge))
        return visits

    def ordered_from(self, root: int, left_out: BoolArray | None = None) -> list[tuple[int, int, int]]:
        """(node, parent, branch) of every node but `root` in preorder, children in the order of their first tips.

        `left_out`, a mask (n_edges,), contracts inner branches: their lower nodes are missing, and the children of
        these are the children of the node above.
        """
        visits = self.directed_from(root)
        first_tip = list(range(self.n_nodes))  # inner nodes come after all tips
        for node, parent, _ in reversed(visits):
            first_tip[parent] = min(first_tip[parent], first_tip[node])
        if left_out is not None:
            kept = list(range(self.n_nodes))  # for each node the lowest one at or above it that is not missing
            for node, parent, branch in visits:
                if left_out[branch]:
                    kept[node] = kept[parent]
            visits = [(node, kept[parent], branch) for node, parent, branch in visits if not left_out[branch]]
        children: list[list[tuple[int, int, int]]] = [[] for _ in range(self.n_nodes)]
        for visit in sorted(visits, key=lambda visit: first_tip[visit[0]], reverse=True):
            children[visit[1]].append(visit)
        ordered, stack = [], children[root]
        while stack:
            visit = stack.pop()
            ordered.append(visit)
            stack.extend(children[visit[0]])
        return ordered

    def renumbered(self) -> Tree:
        """The same tree, inner nodes and branches in the order of `ordered_from` tip 0: only tips' numbers matter."""
        nodes, parents, branches = np.array(self.ordered_from(0)).T
        number = np.arange(self.n_nodes)
        inner = nodes[nodes >= self.n_taxa]
        number[inner] = np.arange(self.n_taxa, self.n_nodes)
        ends = np.column_stack([number[parents], number[nodes]])
        tree = Tree.from_edges(self.names, ends, self.lengths[branches])
        tree.added = None if self.added is None else self.added[branches]
        if self.root_place is not None:
            branch, share = self.root_place
            place = int(np.flatnonzero(branches == branch)[0])
            tree.root_place = place, share if self.ends[branch, 0] == parents[place] else 1.0 - share
        return tree

    def total_length(self) -> float:
        """The sum of all branch lengths, in expected substitutions per site."""
        return float(self.lengths.sum())

    def __repr__(self) -> str:
        """One line: the size of the tree and its total length."""
        several = self.lengths.ndim > 1
        length = f"lengths of {self.lengths.shape[1]} parts" if several else f"length {self.total_length():.4g}"
        return f"<Tree: {self.n_taxa} taxa, {self.n_edges} branches, {length}>"

    def draw(self) -> TreeDrawing:
        """The tree, smaller clades first, to print or to show in a notebook; see `TreeDrawing` for SVG and PDF."""
        from plltool.reports.tree_drawing import TreeDrawing
        from plltool.tree.rooted_nodes import RootedNodes

        return TreeDrawing(RootedNodes.of_tree(self).ladderized())

    def _repr_html_(self) -> str:
        return self.draw()._repr_html_()

    def to_dendropy(self) -> dendropy.Tree:
        """An unrooted dendropy tree, seeded at the inner node next to tip 0; or a rooted one of a tree with a root.

        Names and children are in the order of `write_newick`, lengths in expected substitutions per site.
        """
        from plltool.io.bridge import to_dendropy

        return to_dendropy(self)

    def to_biopython(self) -> Bio.Phylo.BaseTree.Tree:
        """An unrooted tree of Bio.Phylo, as `to_dendropy` makes one; ImportError if Biopython is not installed."""
        from plltool.io.bridge import to_biopython

        return to_biopython(self)

    def shown_from(self, root: int) -> list[tuple[int, int, int]]:
        """`ordered_from` an inner node, without the tip that stands for the root, and branches that were `added`."""
        return [visit for visit in self.ordered_from(root, self.added) if not (self.is_rooted and visit[0] == 0)]


def _check_lengths(lengths: FloatArray, n_edges: int) -> None:
    if lengths.ndim not in (1, 2) or len(lengths) != n_edges:
        raise InputError(f"expected the lengths of {n_edges} branches, found an array {lengths.shape}")


def restrict_tree(tree: Tree, names: Sequence[str]) -> Tree:
    """The tree of `names`, tips in their order, the rest as by `Tree.renumbered`; branches that meet are summed."""
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
