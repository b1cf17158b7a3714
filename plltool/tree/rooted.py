"""Trees with a root, for processes that are not time-reversible.

The root is an inner node like any other, and what makes it the root is a tip of its own that has no data: tip 0, called
ROOT_NAME. So a root position is a place of this tip, the two lengths at the root are the lengths of two branches, and
everything that goes over a tree from its tip 0 goes away from the root. The length of the tip's own branch changes no
likelihood.
"""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import MIN_BRANCH_LENGTH, NO_NODE, ROOT_NAME
from plltool.errors import InputError, show_name
from plltool.tree.rooted_nodes import Place, UnrootedNodes, preorder
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
    """(n_edges,) the branch of the unrooted tree that each one is, or is a part of; -1 for the root's own branch."""
    numbers = np.arange(tree.n_edges)
    if not tree.is_rooted:
        return numbers
    own, (kept, gone) = branches_at_root(tree)
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
    """Values (n, ...) for the branches of the rooted tree, from the tree without its root; NaN at the root."""
    numbers = unrooted_branches(tree)
    spread = values[numbers]
    spread[numbers < 0] = np.nan
    return spread


def root_split(tree: Tree, names: Sequence[str]) -> int:
    """The split of the branch on which a rooted tree has its root; bits are in the order of `names`, the taxa."""
    kept = branches_at_root(tree)[1][0]
    return branch_splits(drop_root(tree), names)[unrooted_branches(tree)[kept]]


def drop_root(tree: Tree) -> Tree:
    """The tree, without its root if it has one, whose two branches become one; the one with the larger number goes."""
    if not tree.is_rooted:
        return tree
    top = int(tree.neighbours[0, 0])
    own, (kept, gone) = branches_at_root(tree)
    ends, lengths = tree.ends.copy(), tree.lengths.copy()
    far = int(ends[gone][ends[gone] != top][0])
    ends[kept] = np.where(tree.ends[kept] == top, far, tree.ends[kept])
    lengths[kept] += lengths[gone]
    left = np.setdiff1d(np.arange(tree.n_edges), [gone, own])
    ends = ends[left]
    return Tree.from_edges(tree.names[1:], ends - 1 - (ends > top), lengths[left])


def branches_at_root(tree: Tree) -> tuple[int, list[int]]:
    """The root's own branch, and the two that meet there, ascending."""
    own = int(tree.edges[0, 0])
    return own, sorted(int(edge) for edge in tree.edges[tree.neighbours[0, 0]] if edge != own)


class _Survey:
    """The distances in a tree, seen from one of its inner nodes, its top.

    visits : (node, parent, branch) of every other node, in preorder
    tips : in preorder, so that those below a node are neighbours: by node the `first` of them, and one after the `last`
    children, depths : by node the nodes next below it, and the distance from the top
    distances : (n_tips, n_tips) between tips
    """

    def __init__(self, tree: UnrootedNodes):
        if np.isnan(tree.lengths).any():
            raise InputError("a root by distances: a branch of the tree has no length")
        if len(tree.names) < 3:
            raise InputError(f"a root by distances: found a tree of {len(tree.names)} taxa, expected at least 3")
        self.top = top = next(node for node in tree.ends.ravel().tolist() if node not in tree.names)
        self.visits = visits = preorder(tree.ends, top)
        self.depths, self.children = depths, children = {top: 0.0}, {top: list[int]()}
        for node, parent, branch in visits:
            depths[node] = depths[parent] + float(tree.lengths[branch])
            children[node] = []
            children[parent].append(node)
        self.tips = [node for node, _, _ in visits if not children[node]]
        self.first = first = {tip: number for number, tip in enumerate(self.tips)}
        self.last = last = {tip: number + 1 for number, tip in enumerate(self.tips)}
        below = np.array([depths[tip] for tip in self.tips])
        distances = np.zeros((len(below), len(below)))
        for node in (*(node for node, _, _ in reversed(visits)), top):
            if not children[node]:
                continue
            first[node], last[node] = first[children[node][0]], last[children[node][-1]]
            for child in children[node]:
                own, later = slice(first[child], last[child]), slice(last[child], last[node])
                distances[own, later] = below[own, None] + below[None, later] - 2.0 * depths[node]
        self.distances: FloatArray = distances + distances.T

    def below(self, node: int) -> IndexArray:
        """The tips below a node, by their numbers."""
        return np.arange(self.first[node], self.last[node])

    def above(self, node: int) -> IndexArray:
        """All other tips."""
        return np.concatenate([np.arange(self.first[node]), np.arange(self.last[node], len(self.tips))])

    def heights(self, node: int) -> FloatArray:
        """The distances of the tips below a node from it."""
        return np.array([self.depths[tip] for tip in self.tips[self.first[node] : self.last[node]]]) - self.depths[node]


def check_outgroup(outgroup: Collection[str], names: Collection[str], whose: str) -> set[str]:
    """The taxa of an outgroup; InputError unless `whose` names have each once, and others."""
    members, numbers = set(outgroup), Counter(names)
    unknown = sorted(members.difference(names))
    if unknown:
        raise InputError(f"the outgroup's taxon {show_name(unknown[0])} is not in {whose}")
    repeated = sorted(name for name in members if numbers[name] > 1)
    if repeated:
        raise InputError(f"the outgroup's taxon {show_name(repeated[0])} is in {whose} more than once")
    if not 0 < len(members) < len(names):
        raise InputError(f"an outgroup must be some of the taxa, found {len(members)} of {len(names)}")
    return members


def place_outgroup(tree: UnrootedNodes, outgroup: Collection[str]) -> Place:
    """The middle of the branch between the outgroup and the other taxa."""
    members = check_outgroup(outgroup, tree.names.values(), "the tree")
    start = next(node for node, name in tree.names.items() if name not in members)
    visits = preorder(tree.ends, start)
    inside = {node: int(name in members) for node, name in tree.names.items()}
    sizes = dict.fromkeys(tree.names, 1)
    for node, parent, branch in reversed(visits):
        if inside.get(node, 0) == sizes[node] == len(members):
            return Place(branch, 0.5)
        inside[parent] = inside.get(parent, 0) + inside.get(node, 0)
        sizes[parent] = sizes.get(parent, 0) + sizes[node]
    raise InputError(f"the outgroup of {len(members)} taxa is not one clade of the tree")


def place_midpoint(tree: UnrootedNodes) -> Place:
    """The middle of the longest path between two tips (Farris 1972); the first one of several."""
    survey = _Survey(tree)
    a, b = np.unravel_index(np.argmax(survey.distances), survey.distances.shape)
    above = {node: (parent, branch) for node, parent, branch in survey.visits}
    left = float(survey.distances[a, b]) / 2.0
    node = max(survey.tips[int(a)], survey.tips[int(b)], key=survey.depths.__getitem__)
    while True:
        parent, branch = above[node]
        length = float(tree.lengths[branch])
        if left <= length or parent not in above:
            return _place(tree, branch, node, min(left / length, 1.0) if length else 0.5)
        left -= length
        node = parent


def place_minimal_deviation(tree: UnrootedNodes) -> tuple[Place, float, float]:
    """Where the ancestor deviations of all pairs of tips are least (Tria, Landan & Dagan 2017, Nat Ecol Evol 1:0193).

    Where two tips i and j have their ancestor at v, it deviates by ``2 d(i, v) / d(i, j) - 1`` from the middle of their
    path. The score of a root is the root mean square over all pairs at some distance. Returns the place, its score, and
    the ratio of its score to that of the next best branch: near 1 if the root is ambiguous.
    """
    survey = _Survey(tree)
    n_pairs = np.count_nonzero(survey.distances) / 2
    if not n_pairs:
        raise InputError("a root by ancestor deviations: all taxa are at distance 0 from each other")
    within = _deviations_elsewhere(survey)
    found = []
    for node, _, branch in survey.visits:
        share, across = _best_on_branch(survey, node, float(tree.lengths[branch]))
        found.append((float(np.sqrt((within[node] + across) / n_pairs)), branch, node, share))
    found.sort()
    score, branch, node, share = found[0]
    ambiguity = score / found[1][0] if found[1][0] > 0 else 1.0
    return _place(tree, branch, node, share), score, ambiguity


def _place(tree: UnrootedNodes, branch: int, node: int, share: float) -> Place:
    """A place at a share of a branch's length from the end `node`."""
    return Place(branch, share if tree.ends[branch, 0] == node else 1.0 - share)


def _best_on_branch(survey: _Survey, node: int, length: float) -> tuple[float, float]:
    """The best place on the branch above a node, as a share from it, and the sum of squares of pairs across."""
    distances = survey.distances[np.ix_(survey.below(node), survey.above(node))]
    inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=distances > 0)
    heights = survey.heights(node)[:, None]
    deviations = np.where(distances > 0, 2.0 * heights * inverse - 1.0, 0.0)
    slope, curvature = np.sum(deviations * inverse), np.sum(inverse * inverse)
    best = float(np.clip(-slope / (2.0 * curvature), 0.0, length)) if curvature else 0.0
    across = np.sum(deviations**2) + 4.0 * best * slope + 4.0 * best**2 * curvature
    return best / length if length else 0.5, max(float(across), 0.0)


def _deviations_elsewhere(survey: _Survey) -> dict[int, float]:
    """By node, the sum of squares of all pairs on one side of the branch above it, if the root is on that branch."""
    below: dict[int, float] = {}  # of the pairs that are both below a node
    without: dict[int, float] = {}  # of those whose paths meet at its parent, seen from it
    for node in (*(node for node, _, _ in reversed(survey.visits)), survey.top):
        children = survey.children[node]
        table = _deviations_at(survey, node)
        among = table[:-1, :-1].sum() / 2.0
        below[node] = float(among) + sum(below[child] for child in children)
        for k, child in enumerate(children):
            without[child] = float(table.sum() / 2.0 - table[k].sum())
    outside: dict[int, float] = {}  # of the pairs that are both above the branch
    for node, parent, _ in survey.visits:
        siblings = sum(below[other] for other in survey.children[parent] if other != node)
        outside[node] = without[node] + siblings + outside.get(parent, 0.0)
    return {node: below[node] + outside[node] for node, _, _ in survey.visits}


def _deviations_at(survey: _Survey, node: int) -> FloatArray:
    """Sums of squares of the pairs whose paths meet at a node, by the two directions; the last direction is up."""
    children = survey.children[node]
    sides = [survey.below(child) - survey.first[node] for child in children]
    table = np.zeros((len(sides) + 1, len(sides) + 1))
    heights = survey.heights(node)
    numbers = survey.below(node)
    above = survey.above(node)
    for k, side in enumerate(sides):
        for other, columns in ((j, numbers[sides[j]]) for j in range(k)):
            table[k, other] = table[other, k] = _sum_squares(survey, numbers[side], columns, heights[side])
        if len(above):
            table[k, -1] = table[-1, k] = _sum_squares(survey, numbers[side], above, heights[side])
    return table


def _sum_squares(survey: _Survey, rows: IndexArray, columns: IndexArray, heights: FloatArray) -> float:
    """Sum of the squared deviations of pairs; `heights` are the distances of the rows' tips from the ancestor."""
    distances = survey.distances[np.ix_(rows, columns)]
    relative = np.divide(2.0 * heights[:, None], distances, out=np.ones_like(distances), where=distances > 0)
    return float(np.sum((relative - 1.0) ** 2))
