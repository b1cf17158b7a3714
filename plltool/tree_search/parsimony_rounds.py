"""SPR rounds under Fitch parsimony: what stepwise addition has misplaced is mended before likelihoods are computed.

A subtree is pruned, and both branches beside its joint become one. From there a walk takes along the sets of the tree
behind it, so that each branch on its way has the sets of the rest of the tree on both sides. Joined, they tell how many
changes the subtree adds there, as in stepwise addition. The walks of many subtrees go side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray, IndexArray, IntArray
from plltool.constants import NO_NODE
from plltool.tree.constraint import Constraint, Regions
from plltool.tree.topology import Tree
from plltool.tree_search.parsimony import (
    CodeArray,
    PlaneArray,
    bit_slice,
    count_common,
    informative_sites,
    join_sets,
    stepwise_addition,
)

PARSIMONY_RADIUS = 5  # of the SPR rounds
WALK_BYTES = 1 << 21  # of sets that walks take along: the caches hold them


def parsimony_tree(
    codes: CodeArray,
    weights: FloatArray,
    names: Sequence[str],
    rng: np.random.Generator,
    constraint: Constraint | None = None,
) -> Tree:
    """Build a start tree: stepwise addition, then SPR rounds until no move within PARSIMONY_RADIUS saves a change.

    Parameters and errors are those of `stepwise_addition`.
    """
    tree = stepwise_addition(codes, weights, names, rng, constraint)
    rounds = SprRounds(bit_slice(informative_sites(codes, weights)), tree.ends, constraint)
    while rounds.improve(PARSIMONY_RADIUS):
        pass
    return Tree.from_edges(names, rounds.ends)


class SprRounds:
    """A tree with the Fitch sets of all its subtrees, and rounds of moves that save changes.

    Messages are numbered as in stepwise addition: 2e + s is the set of the subtree at end s of branch e. A move is the
    changes that it saves, the message that leaves the subtree, and the one that leads over the target branch away from
    the joint.

    Parameters
    ----------
    tips : uint64 array (n_taxa, n_states, words), the tips' sets.
    ends : int32 array (2 n_taxa - 3, 2), the two nodes of each branch.
    constraint : the tree obeys it and goes on to do so.

    Attributes
    ----------
    ends : of the tree as it is now.
    n_common : how often two subtrees that meet agree, over all nodes and sites: one more is one change fewer.
    """

    def __init__(self, tips: PlaneArray, ends: IntArray, constraint: Constraint | None = None):
        self._tips = tips
        self._constraint = constraint
        self._messages = np.empty((2 * len(ends), *tips.shape[1:]), dtype=np.uint64)
        self._set(ends)

    def improve(self, radius: int) -> int:
        """Apply the moves that save most and do not touch each other; return the number of changes saved.

        Together they may save less than alone. If that is nothing, the better half of them is tried, and so on: a
        single move saves what it promises. None crosses a branch that another one crosses, so that none changes a split
        that decides whether another one obeys the constraint.
        """
        moves = self._choose(self._find(radius))
        before, ends = self.n_common, self.ends
        while moves:
            self._set(_regraft(ends, self._leaving, moves))
            if self.n_common > before:
                return self.n_common - before
            self._set(ends)
            moves = moves[: len(moves) // 2]
        return 0

    def _set(self, ends: IntArray) -> None:
        """Set the tree and compute all messages: first those towards tip 0, then those away from it."""
        n_taxa, messages = len(self._tips), self._messages
        self.ends = ends
        self._sources = ends.reshape(-1).astype(np.intp)
        by_node = np.argsort(self._sources, kind="stable")
        self._leaving = np.full((2 * n_taxa - 2, 3), NO_NODE, dtype=np.intp)
        self._leaving[:n_taxa, 0] = by_node[:n_taxa]
        self._leaving[n_taxa:] = by_node[n_taxa:].reshape(-1, 3)
        self._above, self._depth = np.zeros((2, 2 * n_taxa - 2), dtype=np.intp)
        messages[self._leaving[:n_taxa, 0]] = self._tips
        first = away = self._leaving[:1, 0]
        levels: list[tuple[IndexArray, IndexArray]] = []
        while away.size:
            nodes = self._sources[away ^ 1]
            self._above[nodes], self._depth[nodes] = self._sources[away], len(levels) + 1
            away = away[nodes >= n_taxa]
            levels.append((away, self._onward(away)))
            away = levels[-1][1].ravel()
        self.n_common = 0
        for away, onward in reversed(levels):
            left, right = messages[onward[:, 0] ^ 1], messages[onward[:, 1] ^ 1]
            messages[away ^ 1] = join_sets(left, right)
            self.n_common += int(count_common(left, right).sum())
        self.n_common += int(count_common(messages[first], messages[first ^ 1]).sum())
        for away, onward in levels:
            for side in (0, 1):
                messages[onward[:, side]] = join_sets(messages[away], messages[onward[:, 1 - side] ^ 1])

    def _onward(self, messages: IndexArray) -> IndexArray:
        """(n, 2) the two messages that each of n messages (n,), which enter inner nodes, goes into."""
        rows = self._leaving[self._sources[messages ^ 1]]
        return rows[rows != (messages ^ 1)[:, None]].reshape(-1, 2)

    def _find(self, radius: int) -> IndexArray:
        """(n, 3) the best move of each subtree that has one, those that save most first."""
        subtrees = np.flatnonzero(self._sources.reshape(-1, 2)[:, ::-1].ravel() >= len(self._tips))
        regions = None
        if self._constraint is not None:
            regions = self._constraint.regions(Tree.from_edges(self._constraint.names, self.ends))
        at_once = max(1, WALK_BYTES // (self._messages[0].nbytes << radius))
        found = [self._walk(subtrees[k : k + at_once], radius, regions) for k in range(0, len(subtrees), at_once)]
        moves = np.concatenate(found)
        return moves[np.argsort(-moves[:, 0], kind="stable")]

    def _walk(self, subtrees: IndexArray, radius: int, regions: Regions | None) -> IndexArray:
        """The best moves of some subtrees, given by the messages that leave them, in their order."""
        messages, n_taxa = self._messages, len(self._tips)
        onward = self._onward(subtrees)
        present = count_common(messages[subtrees], join_sets(messages[onward[:, 0] ^ 1], messages[onward[:, 1] ^ 1]))
        best, targets = present.copy(), np.zeros_like(subtrees)
        joints = self._sources[subtrees ^ 1]
        homes = None
        if regions is not None:
            homes = regions.homes[joints, (self._leaving[joints] == (subtrees ^ 1)[:, None]).argmax(axis=1)]
        walker, at, behind = np.repeat(np.arange(len(subtrees)), 2), onward.ravel(), onward[:, ::-1].ravel() ^ 1
        carried = messages[behind]
        for _ in range(radius):
            is_inner = self._sources[at ^ 1] >= n_taxa
            walker, carried, onward = (
                np.repeat(walker[is_inner], 2),
                np.repeat(carried[is_inner], 2, axis=0),
                self._onward(at[is_inner]),
            )
            if not walker.size:
                break
            at = onward.ravel()
            carried = join_sets(carried, messages[onward[:, ::-1].ravel() ^ 1])
            common = count_common(messages[subtrees[walker]], join_sets(carried, messages[at ^ 1]))
            if regions is not None and homes is not None:
                common[~regions.admit(homes[walker], at >> 1)] = -1
            order = np.lexsort((at, -common, walker))
            order = order[np.diff(walker[order], prepend=-1) > 0]
            order = order[common[order] > best[walker[order]]]
            best[walker[order]], targets[walker[order]] = common[order], at[order]
        return np.column_stack([best - present, subtrees, targets])[best > present]

    def _choose(self, moves: IndexArray) -> list[list[int]]:
        """The moves that share no node with a better one on their ways, nor beside their joints."""
        taken: list[list[int]] = []
        touched: set[int] = set()
        for move in moves.tolist():
            _, subtree, target = move
            joint = int(self._sources[subtree ^ 1])
            nodes = {joint, *self._sources[self._leaving[joint] ^ 1].tolist()}
            end = int(self._sources[target ^ 1])
            while joint != end:
                if self._depth[joint] < self._depth[end]:
                    joint, end = end, joint
                nodes |= {joint, end}
                joint = int(self._above[joint])
            if touched.isdisjoint(nodes):
                touched |= nodes
                taken.append(move)
        return taken


def _regraft(ends: IntArray, leaving: IndexArray, moves: Sequence[Sequence[int]]) -> IntArray:
    """The branches of the tree after moves that do not touch each other; `leaving` has the messages of each node."""
    moved = ends.copy()
    sides = moved.reshape(-1)
    for _, subtree, target in moves:
        joint = int(sides[subtree ^ 1])
        one, other = (message for message in leaving[joint].tolist() if message != subtree ^ 1)
        sides[one] = sides[other ^ 1]  # one branch beside the joint becomes both, the other a part of the target
        sides[other], sides[other ^ 1] = joint, sides[target ^ 1]
        sides[target ^ 1] = joint
    return moved
