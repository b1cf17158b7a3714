"""The subtrees around each inner branch of a tree, and how far gene trees agree with the branches.

Gene trees may lack taxa, and have roots and nodes of any degree.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray
from plltool.constants import QUARTET_VALUES
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.splits import branch_splits, everyone, members_of
from plltool.tree.topology import Tree

ORIENTING_TIP = 0


class Subtree(NamedTuple):
    """What hangs at an end of a branch, seen from there."""

    taxa: int  # its taxa as a set of bits, see `plltool.tree.splits`
    node: int  # the inner node at which it hangs
    column: int  # its place among the neighbours of that node


class Surroundings(NamedTuple):
    """An inner branch and the subtrees at its two ends.

    The first end is that on the side of taxon 0. The subtrees of an end are in the order of their first taxa. If each
    end has two subtrees, A, B and C, D, then the branch is AB|CD, and its interchanges are AC|BD and AD|BC.
    """

    branch: int
    ends: tuple[tuple[Subtree, ...], tuple[Subtree, ...]]

    @property
    def is_resolved(self) -> bool:
        """Whether there are two subtrees at each end."""
        return len(self.ends[0]) == len(self.ends[1]) == 2

    @property
    def subtrees(self) -> tuple[Subtree, ...]:
        """All of them, from the first end on."""
        return self.ends[0] + self.ends[1]


def find_surroundings(tree: Tree, added: BoolArray | None = None) -> list[Surroundings]:
    """The surroundings of each inner branch but those `added` (n_edges,), which only resolve nodes, in their order."""
    everybody, splits = everyone(tree.n_taxa), branch_splits(tree)
    is_added = np.zeros(tree.n_edges, dtype=np.bool_) if added is None else added
    lower = np.empty(tree.n_edges, dtype=np.intp)  # the end of each branch that is further from the tip
    for node, _, branch in tree.directed_from(ORIENTING_TIP):
        lower[branch] = node

    def collect(end: int, branch: int) -> tuple[Subtree, ...]:
        found, waiting = [], [(end, branch)]
        while waiting:
            node, came = waiting.pop()
            for column, (other, edge) in enumerate(zip(tree.neighbours[node], tree.edges[node], strict=True)):
                if edge == came:
                    continue
                if is_added[edge]:
                    waiting.append((int(other), int(edge)))
                    continue
                taxa = splits[edge] if lower[edge] == other else everybody ^ splits[edge]
                found.append(Subtree(taxa, node, column))
        return tuple(sorted(found, key=lambda subtree: subtree.taxa & -subtree.taxa))

    around = []
    for branch in np.flatnonzero(tree.is_inner_branch & ~is_added).tolist():
        ends = [collect(int(end), branch) for end in tree.ends[branch]]
        first, second = sorted(ends, key=lambda end: end[0].taxa & -end[0].taxa)
        around.append(Surroundings(branch, (first, second)))
    return around


CERTAINTY_SHARE = 0.05  # of the gene trees: splits that no more have are left out of ICA (Salichos et al. 2014)
TOPOLOGIES = 3  # of a quartet: AB|CD, AC|BD, AD|BC


class GeneTree:
    """A tree over some of the taxa, as it stands in its file.

    nodes : as they stand there
    tips : the number of the taxon of each tip, by its node
    taxa : all its taxa as a set of bits
    """

    def __init__(self, nodes: RootedNodes, tips: dict[int, int]):
        self.nodes, self.tips = nodes, tips
        self.taxa = sum(1 << number for number in tips.values())

    @cached_property
    def splits(self) -> frozenset[int]:
        """All its splits, also of tips, each as the taxa on the side without the first taxon of the tree."""
        return frozenset(map(self.normal, self.nodes.taxa_below(self.tips)))

    def normal(self, side: int) -> int:
        """The split that has these taxa on one side, as `splits` has it; other taxa than the tree's are left out."""
        side &= self.taxa
        return self.taxa ^ side if side & self.taxa & -self.taxa else side

    def resolutions(self, around: Surroundings) -> list[int] | None:
        """The sides of the branch and, if it is resolved, of its interchanges; None for a tree that is not decisive."""
        if any(sum(bool(subtree.taxa & self.taxa) for subtree in end) < 2 for end in around.ends):
            return None
        first = [subtree.taxa for subtree in around.ends[0]]
        if not around.is_resolved:
            return [sum(first)]
        return [first[0] | other for other in (first[1], *(subtree.taxa for subtree in around.ends[1]))]


def count_genes(around: Sequence[Surroundings], trees: Iterable[GeneTree]) -> IndexArray:
    """How many gene trees have each branch, its two interchanges, and are decisive, (n_branches, 4).

    A tree is decisive if it has taxa of two subtrees at each end of the branch (Minh, Hahn & Lanfear 2020). The
    interchanges of branches at nodes of more than three branches have no trees.
    """
    counts = np.zeros((len(around), TOPOLOGIES + 1), dtype=np.intp)
    for tree in trees:
        for row, place in zip(counts, around, strict=True):
            sides = tree.resolutions(place)
            if sides is None:
                continue
            row[TOPOLOGIES] += 1
            for k, side in enumerate(sides):
                row[k] += tree.normal(side) in tree.splits
    return counts


def quartet_shares(around: Sequence[Surroundings], trees: Sequence[GeneTree], n_taxa: int) -> FloatArray:
    """Shares (n_branches, 3) of the quartets around each branch that gene trees resolve in each of the three ways.

    A quartet has a taxon of each of the four subtrees. The shares of a tree are those of the quartets whose taxa it
    has; they are averaged over the trees that have any. An unresolved quartet counts in none. NaN without such a
    quartet.
    """
    shares = np.full((len(around), TOPOLOGIES), np.nan)
    resolved = [k for k, place in enumerate(around) if place.is_resolved]
    most = max((len(tree.nodes.parents) for tree in trees), default=1)
    step = max(1, QUARTET_VALUES // (4 * most))
    for start in range(0, len(resolved), step):
        some = resolved[start : start + step]
        members = np.zeros((n_taxa, 4, len(some)))
        for column, k in enumerate(some):
            for part, subtree in enumerate(around[k].subtrees):
                members[list(members_of(subtree.taxa)), part, column] = 1.0
        sums, n_trees = np.zeros((TOPOLOGIES, len(some))), np.zeros(len(some))
        for tree in trees:
            own, number = _count_quartets(tree, members)
            has_any = number > 0
            sums[:, has_any] += own[:, has_any] / number[has_any]
            n_trees += has_any
        shares[some] = np.divide(sums, n_trees, out=np.full_like(sums, np.nan), where=n_trees > 0).T
    return shares


def _count_quartets(tree: GeneTree, members: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Numbers of quartets that a tree resolves in each way (3, n), and of all that it has (n,).

    `members` (n_taxa, 4, n) are the taxa of the four subtrees. A quartet ab|cd is counted at the node where the ways to
    a, to b and to both c and d part.
    """
    parents = np.array(tree.nodes.parents)
    below = np.zeros((len(parents), *members.shape[1:]))
    nodes = list(tree.tips)
    below[nodes] = members[list(tree.tips.values())]
    for node in range(len(parents) - 1, 0, -1):
        below[parents[node]] += below[node]
    total, up = below[0], below[0] - below
    counts = np.empty((TOPOLOGIES, members.shape[2]))
    for k in range(TOPOLOGIES):
        b, c, d = k + 1, *(part for part in (1, 2, 3) if part != k + 1)
        together = up[:, 0] * up[:, b]  # at each node, of taxa in the same direction
        np.add.at(together, parents[1:], below[1:, 0] * below[1:, b])

        def apart(side: FloatArray, at: FloatArray, b: int = b, c: int = c, d: int = d) -> FloatArray:
            """Quartets whose c and d are in a direction from a node, and whose a and b are in two others."""
            others = (total[0] - side[:, 0]) * (total[b] - side[:, b]) - (at - side[:, 0] * side[:, b])
            return np.asarray((side[:, c] * side[:, d] * others).sum(axis=0))

        counts[k] = apart(up[1:], together[1:]) + apart(below[1:], together[parents[1:]])
    return counts, total.prod(axis=0)


def internode_certainty(splits: Sequence[int], trees: Sequence[GeneTree], n_taxa: int) -> FloatArray:
    """Internode certainty IC, and ICA, of splits (n_splits, 2), from -1 to 1 (Salichos, Stamatakis & Rokas 2014).

    IC weighs a split against the most frequent split that contradicts it. ICA weighs it against all that contradict it
    and each other, the most frequent first, and that more than CERTAINTY_SHARE of the trees have. Both are negative if
    another split is more frequent, and NaN where none occurs. Trees that lack taxa are left out.
    """
    complete = [tree for tree in trees if tree.taxa == everyone(n_taxa)]
    counted = Counter(split for tree in complete for split in tree.splits)
    by_count = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    frequent = [(split, count) for split, count in by_count if count > CERTAINTY_SHARE * len(complete)]
    values = np.full((len(splits), 2), np.nan)
    for row, split in zip(values, splits, strict=True):
        own = counted.get(split, 0)
        rival = next((count for other, count in by_count if contradict(split, other)), 0)
        if own == rival == 0:
            continue
        rivals: list[tuple[int, int]] = []
        for other, count in frequent:
            if contradict(split, other) and all(contradict(other, known) for known, _ in rivals):
                rivals.append((other, count))
        row[:] = _certainty([own, rival]), _certainty([own, *(count for _, count in rivals)])
    return values


def contradict(a: int, b: int) -> bool:
    """Whether no tree has both splits."""
    both = a & b
    return both not in (0, a, b)


def _certainty(counts: Sequence[int]) -> float:
    """1 less the entropy of the counts, in units of its maximum; negative if the first is not the largest."""
    if sum(counts[1:]) == 0:
        return 1.0
    shares = [count / sum(counts) for count in counts if count]
    value = 1.0 + sum(share * math.log(share, len(counts)) for share in shares)
    return value if counts[0] >= max(counts) else -value
