"""Start trees under Fitch parsimony (Fitch 1971): randomised stepwise addition, then SPR rounds.

Sets of states are stored bit-sliced: one plane of 64-bit words per state, one bit per site, so that one word
operation handles 64 sites. Every branch of a tree has the Fitch sets of the subtrees on both sides: message 2e + s is
the set of the subtree at end s of branch e. It leaves node ``ends.flat[2e + s]``; message m ^ 1 has the opposite
direction to message m. Joining the two gives the states with the least changes at a node on that branch. Inserting a
subtree there adds one change at exactly those sites where this set and that of the subtree share no state (Goloboff
1996). In a large tree only some branches are tried, see `_GrowingTree.added_changes`.

A round prunes every subtree, and both branches beside its joint become one. From there a walk takes along the sets of
the tree behind it, so that each branch on its way has the sets of the rest of the tree on both sides. The walks of many
subtrees go side by side.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plltool.arrays import AnyArray, FloatArray, IndexArray, IntArray
from plltool.constants import NO_NODE
from plltool.errors import InputError
from plltool.tree.constraint import Constraint, Growth, Regions
from plltool.tree.moves import attach_tip
from plltool.tree.topology import Tree

CodeArray = AnyArray  # of unsigned integers, or beyond 64 states of Python's
PlaneArray = npt.NDArray[np.uint64]

SITES_PER_WORD = 64
ORDER_SPREAD = 0.3  # standard deviation of the logarithms of the random factors of the order
N_REGIONS = 2 * 1000 - 3  # the branches of a tree of 1,000 tips, with which later tips are compared first
N_NEAR = 50  # regions in which the best branch is looked for
PARSIMONY_RADIUS = 5  # of the SPR rounds
WALK_BYTES = 1 << 21  # of sets that walks take along: the caches hold them


def parsimony_tree(
    codes: CodeArray,
    weights: FloatArray,
    names: Sequence[str],
    rng: np.random.Generator,
    constraint: Constraint | None = None,
    radius: int = PARSIMONY_RADIUS,
) -> Tree:
    """Insert taxa one after another where they add the fewest changes, then make SPR moves until none saves a change.

    Beyond 1,000 taxa, and without a constraint, insertions are tried in the parts of the tree that suit a taxon best.
    The order is random, but taxa with more data mostly come first: a taxon that shares no site with those before it
    could go anywhere, and later ones would follow it there. Ties are broken at random; equal states of `rng` give equal
    trees. All branches get the default length. With a constraint its taxa come first, each into the best branch that
    the constraint allows. The `radius` is that of the moves; 0 for none. Raises InputError if there are fewer than 3
    taxa, shapes do not match, a set of states is empty or a weight is not a whole number.

    codes : unsigned (n_taxa, n_patterns), or Python's integers: sets of states; bit s stands for state s (DNA: 1, 2, 4,
        8 and their unions; 15 means undetermined); `weights` (n_patterns,) are the numbers of sites with each pattern
    """
    if codes.ndim != 2 or codes.shape != (len(names), len(weights)):
        raise InputError(
            f"expected state sets of {len(names)} taxa at {len(weights)} patterns, found an array {codes.shape}"
        )
    if not codes.all():
        taxon, pattern = np.argwhere(codes == 0)[0]
        raise InputError(f"taxon {names[taxon]!r} has no possible state at pattern {pattern + 1}")
    if np.any(weights != np.rint(weights)) or np.any(weights < 0):
        raise InputError("parsimony needs pattern weights that are whole numbers >= 0")
    if len(names) < 3:
        raise InputError(f"a tree needs at least 3 taxa, found {len(names)}")
    sites = informative_sites(codes, weights)
    tips = bit_slice(sites)
    factors = np.exp(ORDER_SPREAD * rng.standard_normal(len(sites)))  # of the numbers of cells with data
    order = np.argsort(-factors * (sites != _all_states(sites)).sum(axis=1), kind="stable").tolist()
    ends = _add_stepwise(tips, order, rng, constraint)
    if radius:
        rounds = SprRounds(tips, ends, constraint)
        while rounds.improve(radius):
            pass
        ends = rounds.ends
    return Tree.from_edges(names, ends)


def _add_stepwise(
    tips: PlaneArray, order: list[int], rng: np.random.Generator, constraint: Constraint | None
) -> IntArray:
    """Insert the tips in this order, the constraint's first; return the two nodes of each branch."""
    growth = None
    if constraint is not None:
        order = constraint.addition_order(order)
        growth = Growth(constraint, *order[:2])
    growing = _GrowingTree(tips, *order[:2])
    for tip in order[2:]:
        added = growing.added_changes(tip, everywhere=growth is not None)
        if growth is not None:
            added = np.where(growth.legal(tip), added, 1)  # legal insertions have values of at most 0
        best = np.flatnonzero(added == added.min())
        branch = int(best[rng.integers(len(best))])
        growing.insert(tip, branch)
        if growth is not None:
            growth.insert(tip, branch)
    return growing.ends


class _GrowingTree:
    """The tree so far, which has `n_placed` tips, with the Fitch sets that give the cost of each insertion."""

    def __init__(self, tips: PlaneArray, first: int, second: int):
        n_taxa = len(tips)
        n_branches = 2 * n_taxa - 3
        self.tips = tips  # (n_taxa, n_states, words), their sets
        self.ends = np.full((n_branches, 2), NO_NODE, dtype=np.int32)  # the two nodes of each branch
        self.leaving = np.full((2 * n_taxa - 2, 3), NO_NODE, dtype=np.int64)  # messages of each node; of a tip one
        self.messages = np.zeros((2 * n_branches, *tips.shape[1:]), dtype=np.uint64)  # two for each branch
        self.joined = np.zeros((n_branches, *tips.shape[1:]), dtype=np.uint64)  # the two joined
        self.regions = np.arange(n_branches)  # the first branch of the region of each
        self.ends[0] = first, second
        self.leaving[[first, second], 0] = 0, 1
        self.messages[:2] = tips[[first, second]]
        self.n_placed = 2
        self._join(np.array([0]))

    def added_changes(self, tip: int, everywhere: bool = True) -> IndexArray:
        """The changes that the tip would add in each branch, minus the number of sites: (2 n_placed - 3,).

        The branches of a large tree are in regions: each branch of the first `N_REGIONS`, with those that later tips
        have cut from it. Unless asked for `everywhere`, only the regions whose first branches suit the tip best are
        looked at; the value of others is 1.
        """
        n_branches = 2 * self.n_placed - 3
        everywhere = everywhere or n_branches <= N_REGIONS
        first = -count_common(self.joined[: n_branches if everywhere else N_REGIONS], self.tips[[tip]])
        if everywhere:
            return first
        is_near = np.zeros(N_REGIONS, dtype=bool)
        is_near[np.argpartition(first, N_NEAR)[:N_NEAR]] = True
        near = np.flatnonzero(is_near[self.regions[:n_branches]])
        added = np.ones(n_branches, dtype=np.intp)
        added[near] = -count_common(self.joined[near], self.tips[[tip]])
        return added

    def insert(self, tip: int, branch: int) -> None:
        """Insert a tip into a branch and update all sets."""
        old_end = int(self.ends[branch, 1])
        inner, lower, pendant = attach_tip(self.ends, branch, tip, self.n_placed)
        self.n_placed += 1
        if lower >= N_REGIONS:
            self.regions[[lower, pendant]] = self.regions[branch]
        row = self.leaving[old_end]
        row[row == 2 * branch + 1] = 2 * lower + 1
        self.leaving[inner] = 2 * branch + 1, 2 * lower, 2 * pendant + 1
        self.leaving[tip, 0] = 2 * pendant
        # Without the tip the new node passes on the old messages of the branch; then the tip changes them.
        self.messages[[2 * lower, 2 * lower + 1]] = self.messages[[2 * branch, 2 * branch + 1]]
        self.messages[2 * pendant] = self.tips[tip]
        self.messages[2 * pendant + 1] = self.joined[branch]
        changed = self._propagate(2 * pendant)
        self._join(np.concatenate([changed >> 1, [branch, lower, pendant]]))

    def _propagate(self, start: int) -> IndexArray:
        """Update messages outwards from a changed one as far as they change; return the changed ones."""
        sources = self.ends.reshape(-1)
        changed = [np.empty(0, dtype=np.int64)]
        frontier = np.array([start])
        while frontier.size:
            frontier = frontier[sources[frontier ^ 1] >= len(self.tips)]
            rows = self.leaving[sources[frontier ^ 1]]
            onward = rows[rows != (frontier ^ 1)[:, None]].reshape(-1, 2)
            entering = onward[:, ::-1].ravel() ^ 1
            targets = onward.ravel()
            renewed = join_sets(self.messages[np.repeat(frontier, 2)], self.messages[entering])
            differs = (renewed != self.messages[targets]).any(axis=(1, 2))
            frontier = targets[differs]
            self.messages[frontier] = renewed[differs]
            changed.append(frontier)
        return np.concatenate(changed)

    def _join(self, branches: IndexArray) -> None:
        self.joined[branches] = join_sets(self.messages[2 * branches], self.messages[2 * branches + 1])


class SprRounds:
    """A tree with the Fitch sets of all its subtrees, and rounds of moves that save changes; it obeys the constraint.

    A move is the changes that it saves, the message that leaves the subtree, and the one that leads over the target
    branch away from the joint. `tips` and `ends` are as for `_GrowingTree`.
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
        self.n_common = 0  # how often two subtrees that meet agree, over nodes and sites: one more is one change fewer
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
            regions = Regions(self._constraint, Tree.from_edges(self._constraint.names, self.ends))
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
            walker, carried = np.repeat(walker[is_inner], 2), np.repeat(carried[is_inner], 2, axis=0)
            onward = self._onward(at[is_inner])
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


def join_sets(a: PlaneArray, b: PlaneArray) -> PlaneArray:
    """Fitch's rule at every site (rows, n_states, words): the common states, or all states if there are none."""
    common = a & b
    either = a | b
    either &= ~np.bitwise_or.reduce(common, axis=1, keepdims=True)
    common |= either
    return common


def count_common(a: PlaneArray, b: PlaneArray) -> IndexArray:
    """The number of sites at which two sets share a state (rows,); both (rows, n_states, words), or one row."""
    agreeing = a[:, 0] & b[:, 0]
    for state in range(1, a.shape[1]):
        agreeing |= a[:, state] & b[:, state]
    return np.bitwise_count(agreeing).sum(axis=1, dtype=np.intp)


def informative_sites(codes: CodeArray, weights: FloatArray) -> CodeArray:
    """The columns that distinguish insertions, each repeated by its weight: (n_taxa, n_sites).

    Where at most one state occurs in more than one determined taxon, any insertion adds the same number of changes.
    """
    n_states = int(codes.max(initial=1)).bit_length()
    determined = np.where(codes == _all_states(codes), 0, codes)
    n_repeated = np.zeros(codes.shape[1], dtype=np.int64)
    for state in range(n_states):
        n_repeated += np.count_nonzero(determined & (1 << state), axis=0) > 1
    counts = np.where(n_repeated > 1, weights, 0).astype(np.int64)
    return np.repeat(codes, counts, axis=1)


def variable_sites(codes: CodeArray, weights: FloatArray) -> CodeArray:
    """The columns in which no state is possible in all taxa, each repeated by its weight: (n_taxa, n_sites)."""
    counts = np.where(np.bitwise_and.reduce(codes, axis=0) == 0, weights, 0).astype(np.int64)
    return np.repeat(codes, counts, axis=1)


def _all_states(codes: CodeArray) -> CodeArray:
    """The states that each column has (n_columns,). A cell with all of them says nothing, whatever the data are."""
    return np.bitwise_or.reduce(codes, axis=0)


def bit_slice(codes: CodeArray) -> PlaneArray:
    """Convert sets of states (n_taxa, n_sites) into planes (n_taxa, n_states, words); spare bits are 0."""
    n_taxa, n_sites = codes.shape
    n_states = int(codes.max(initial=1)).bit_length()
    words = max(1, -(-n_sites // SITES_PER_WORD))
    planes = np.empty((n_taxa, n_states, words), dtype=np.uint64)
    padded = np.zeros((n_taxa, words * SITES_PER_WORD), dtype=codes.dtype)
    padded[:, :n_sites] = codes
    for state in range(n_states):
        planes[:, state] = np.packbits((padded >> state & 1).astype(bool), axis=1).view(np.uint64)
    return planes
