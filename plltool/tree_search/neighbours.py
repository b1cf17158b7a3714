"""Trees that are a move away, with the branch lengths around optimised, hundreds at a time: insertions, interchanges.

An insertion takes a subtree to another branch; the three lengths where they meet are optimised.

An inner branch joins two pairs of subtrees, 0 1 | 2 3; its interchanges are 0 2 | 1 3 and 0 3 | 1 2. A sweep optimises
the three lengths at one end of each new inner branch by Newton steps, then the three lengths at the other end.

Under a process that is not time-reversible the interchanges are those of the tree without its root, and the root stays
where it is: within one of the four subtrees, or on the inner branch. There it divides the branch into two, and the
lengths of both are optimised, each with the lengths at its end; so the root may move along the new branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray, IntArray, WholeArray, slices
from plltool.constants import MAX_BACKTRACKS, MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine import program as prog
from plltool.engine.contract import TRIPLET_VALUES
from plltool.engine.requests import Clas
from plltool.optimise.lengths import apply_step, at_bound, newton_step, predicted_gains, without_rounding
from plltool.optimise.likelihood import TreeLikelihood, add_linked
from plltool.tree.moves import exchange_subtrees
from plltool.tree.operations import ROOT
from plltool.tree.topology import Tree
from plltool.tree_search.scan import Steps, branch_lengths

TRIPLET_ROUNDS = 4  # evaluations of the three lengths at a candidate insertion, with Newton steps in between
MIN_PROMISE = 1e-3  # gain in lnL; the lengths at an insertion whose next step promises less are good enough


@dataclass(frozen=True)
class Insertions:
    """Moves of one neighbourhood, ready to be applied."""

    joints: IntArray  # (n,) inner node of the subtree to prune
    columns: IntArray  # (n,) its column there
    branches: IndexArray  # (n,) the branch to regraft into, as numbered before any move
    toward_gap: BoolArray  # (n,) bool, whether the first end of that branch is the one nearer to the gap
    healed: FloatArray  # (n,) length of the branch that closes the gap; (n, n_parts) if parts have lengths of their own
    # (n, 3) optimised lengths from the joint towards the gap, away from it, and to the subtree; likewise (n, n_parts,
    # 3)
    lengths: FloatArray
    lnl: FloatArray  # (n,) log-likelihood with these lengths and all other lengths unchanged

    def __len__(self) -> int:
        return len(self.lnl)


def optimise_insertions(
    likelihood: TreeLikelihood, steps: Steps, chosen: IndexArray, floor: float, start: FloatArray | None = None
) -> Insertions:
    """Optimise the three branch lengths at the insertions of the `chosen` steps by Newton's method.

    A scratch slot per insertion holds the CLA of the side with the gap, so each launch takes as many insertions as
    there are scratch slots. An insertion takes no further step if that promises less than MIN_PROMISE, or too little
    to reach the lnL `floor`; the result holds the best lengths that it met. `start` are lengths to start from, as in
    the result; by default each insertion is in the middle of its branch.
    """
    tree, prunes, prune = likelihood.tree, steps.prunes, steps.prune[chosen]
    joints, columns, branches = prunes.joints[prune], prunes.columns[prune], steps.branch[chosen]
    if start is None:
        half = tree.lengths[branches] / 2
        start = np.stack([half, half, tree.lengths[tree.edges[joints, columns]]], axis=-1)
    start = np.clip(start, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
    lnl, lengths = np.empty(len(chosen)), np.empty_like(start)
    for part in slices(len(chosen), likelihood.n_scratch):
        lnl[part], lengths[part] = _optimise_batch(likelihood, steps, chosen[part], floor, start[part])
    beyond = steps.beyond[chosen]  # of the end away from the gap
    first_end = tree.ends[branches, 0]
    far_node = np.where(beyond < 0, ~beyond, beyond // 3 + tree.n_taxa)
    return Insertions(joints, columns, branches, first_end != far_node, prunes.healed[prune], lengths, lnl)


def _optimise_batch(
    likelihood: TreeLikelihood, steps: Steps, chosen: IndexArray, floor: float, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    prepared, operands, up = prepare_insertions(likelihood, steps, chosen)
    best, best_lnl = start, np.full(start.shape[:-1], -np.inf)
    active, trial = np.arange(len(chosen)), best.copy()
    values = np.empty((*best_lnl.shape, TRIPLET_VALUES))
    for _ in range(TRIPLET_ROUNDS):
        answer = join(prepared, operands[active], trial, up[active])
        better = answer[..., 0] > best_lnl[active]
        best[active] = np.where(better[..., None], trial, best[active])
        values[active] = np.where(better[..., None], answer, values[active])
        best_lnl[active] = np.where(better, answer[..., 0], best_lnl[active])
        step, promise = triplet_step(best[active], values[active])
        stepped = apply_step(best[active], step)
        trial = np.where(better[..., None], stepped, (best[active] + trial) / 2)
        rise = np.sum(values[active, ..., 1:4] * (stepped - best[active]), axis=-1)
        gain = add_parts(np.minimum(promise, rise))  # where lnL is concave, a step gains less than slopes times step
        onward = (gain >= MIN_PROMISE) & (add_parts(best_lnl[active]) + gain >= floor)
        active, trial = active[onward], trial[onward]
        if not len(active):
            break
    return add_parts(best_lnl), best


def prepare_insertions(
    likelihood: TreeLikelihood, steps: Steps, chosen: IndexArray
) -> tuple[Clas, IntArray, BoolArray]:
    """CLAs at the `chosen` steps, at most as many as there are scratch slots, and for `join` operands and `up` (n, 3).

    The operands are the side with the gap, the other one, and the subtree.
    """
    slots = likelihood.scratch + np.arange(len(chosen))
    chain = _chain_program(steps, chosen, slots)
    prunes, prune = steps.prunes, steps.prune[chosen]
    prepared = likelihood.directed().extend(chain, branch_lengths(likelihood, prunes).T)
    moving = likelihood.view.incoming[prunes.joints[prune], prunes.columns[prune]]
    operands = np.column_stack([slots, steps.beyond[chosen], moving])
    upward = steps.upward[chosen] == 1
    up = np.column_stack([~upward, upward, np.zeros_like(upward)]) & likelihood.is_rooted
    return prepared, operands, up


def join(clas: Clas, operands: WholeArray, lengths: FloatArray, up: BoolArray | None = None) -> FloatArray:
    """Values (n, [n_parts,] 10) of TRIPLETs at nodes where operands (n, 3) meet, with lengths (n, [n_parts,] 3).

    `up` (n, 3) are the operands that lie towards a root; by default none does.
    """
    branches = np.arange(operands.size).reshape(-1, 3)
    if up is not None:
        branches = np.where(up, ~branches, branches)
    joins = np.stack([operands, branches], axis=2).reshape(-1, 6)
    by_branch = flatten_lengths(lengths)
    return add_linked(clas.triplets(joins, by_branch.T), by_branch)


def flatten_lengths(lengths: FloatArray) -> FloatArray:
    """(n k, [n_parts]) from (n, [n_parts,] k): item by item, branch by branch."""
    return np.moveaxis(lengths, -1, 1).reshape(-1, *lengths.shape[1:-1])


def add_parts(lnl: FloatArray) -> FloatArray:
    """(n,) from (n,) or (n, n_parts)."""
    return lnl if lnl.ndim == 1 else lnl.sum(axis=1)


def _chain_program(steps: Steps, chosen: IndexArray, slots: IndexArray) -> IntArray:
    """The newviews along the path from the gap to each chosen step; each path has a slot."""
    rows = []
    at: IndexArray = np.asarray(chosen, dtype=np.int64)
    while len(at):  # from the insertion back to the gap
        depth = steps.depth[at]
        source = np.where(depth == 0, steps.source[at], slots)
        newviews = prog.newview(slots, source, steps.source_branch[at], steps.side[at], steps.side_branch[at])
        rows.append(np.column_stack([slots, depth, newviews]))
        onward = steps.parent[at] >= 0
        at, slots = steps.parent[at[onward]], slots[onward]
    chain = np.concatenate(rows)
    return chain[np.lexsort([chain[:, 1], chain[:, 0]]), 2:].astype(np.int32)


def triplet_step(lengths: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton step (..., 3) for the three lengths at each node, and the gain in lnL (...) that it promises.

    `values` (..., 10) are those of `program.triplet`. The Hessian is scaled by the lengths, so that lengths of
    different magnitudes have the same weight. A length at a bound that lnL pulls beyond it stays there.
    """
    gradient = without_rounding(values[..., 1:4]) * lengths
    hessian = np.empty((*lengths.shape, 3))
    for column, (i, j) in enumerate([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]):
        hessian[..., i, j] = hessian[..., j, i] = values[..., 4 + column] * lengths[..., i] * lengths[..., j]
    stays = at_bound(lengths, gradient)
    hessian[stays[..., :, None] | stays[..., None, :]] = 0.0
    relative, promise = uphill_step(np.where(stays, 0.0, gradient), hessian)
    return relative * lengths, promise


def uphill_step(gradient: FloatArray, hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton step (..., n) from gradient (..., n) and Hessian (..., n, n), and the gain (...) that it promises.

    The eigenvalues of the Hessian are made negative, so that the step leads uphill wherever it is taken.
    """
    eigenvalues, vectors = np.linalg.eigh(hessian)
    curvature = np.maximum(np.abs(eigenvalues), np.finfo(float).tiny ** 0.5)
    rotated = np.einsum("...ij,...i->...j", vectors, gradient)
    step = np.einsum("...ij,...j->...i", vectors, rotated / curvature)
    return step, np.sum(rotated**2 / (2 * curvature), axis=-1)


NEIGHBOUR_EPSILON = 0.001  # lengths around a branch have converged when a sweep over both ends gains less lnL
MAX_NEIGHBOUR_SWEEPS = 20
INTERCHANGES = ((0, 2, 1, 3), (0, 3, 1, 2))  # the four subtrees in pairs: the first two, the last two
SIDES = ((0, 1, 2, 3), (2, 3, 0, 1))  # places of the lengths at the optimised node, then at the other
INNER = (4, 5)  # places of the length of the inner branch, at either node: of its two parts if the root divides it
OWN = 6  # place of the length of the root's own branch, which changes no likelihood


@dataclass(frozen=True)
class _Quartets:
    """Inner branches with what is around them; items are in one order."""

    operands: IntArray  # (n, 4) the subtrees
    up: BoolArray  # (n, 4) whether the root is in them
    divided: BoolArray  # (n,) whether the root is on the inner branch

    def __getitem__(self, items: slice | IndexArray) -> "_Quartets":
        return _Quartets(self.operands[items], self.up[items], self.divided[items])

    def __len__(self) -> int:
        return len(self.operands)

    def interchanged(self) -> "_Quartets":
        """The two interchanges of each: (2 n,)."""
        pairings = np.array(INTERCHANGES)
        operands, up = self.operands[:, pairings].reshape(-1, 4), self.up[:, pairings].reshape(-1, 4)
        return _Quartets(operands, up, np.repeat(self.divided, len(INTERCHANGES)))


def neighbour_sites(likelihood: TreeLikelihood, branches: WholeArray) -> FloatArray:
    """lnL of each pattern on the two interchanges of each inner branch, with the lengths around it optimised.

    The tree is not changed. Each launch takes half as many interchanges as there are scratch slots. Of the two branches
    at a root either may stand for both, if both are inner branches. Returns (n_branches, 2, n_patterns), not weighted.
    """
    around, lengths = _find_quartets(likelihood, branches)
    around = around.interchanged()
    pairings = np.array([[*pairing, *INNER, OWN] for pairing in INTERCHANGES])
    lengths = np.moveaxis(lengths[..., pairings], -2, 1)  # (n, 2, [n_parts,] 7)
    lengths = lengths.reshape(-1, *lengths.shape[2:])
    sites = np.empty((len(around), likelihood.engine.n_patterns))
    for some in slices(len(around), max(1, likelihood.n_scratch // 2)):
        best = _optimise(likelihood, around[some], lengths[some])
        sites[some] = _evaluate(likelihood, around[some], best)
    return sites.reshape(len(branches), len(INTERCHANGES), -1)


def interchange(tree: Tree, branch: int, which: int) -> Tree:
    """The unrooted tree after interchange 0 or 1 of an inner branch, with the lengths as they are; see INTERCHANGES."""
    made = tree.copy()
    node, other = (int(end) for end in tree.ends[branch])
    columns = tree.position(node, other) + 2, tree.position(other, node) + 1 + which
    exchange_subtrees(made, (node, other), (columns[0] % 3, columns[1] % 3))
    return made


def _find_quartets(likelihood: TreeLikelihood, branches: WholeArray) -> tuple[_Quartets, FloatArray]:
    """What is around each branch, and the lengths (n, [n_parts,] 7) in the places above."""
    tree, view = likelihood.tree, likelihood.view
    nodes, beyond = tree.ends[branches], tree.ends[branches, ::-1]
    divided = np.zeros(len(branches), dtype=bool)
    if likelihood.is_rooted:
        top = int(tree.neighbours[ROOT, 0])
        divided = (nodes == top).any(axis=1)
        beyond[divided] = top
        nodes[divided] = np.setdiff1d(tree.neighbours[top], ROOT)
    operands, up, edges, inner = [], [], [], []
    for node, other in zip(nodes.T, beyond.T, strict=True):
        column = np.argmax(tree.neighbours[node] == other[:, None], axis=1)
        for turn in (1, 2):
            place = node, (column + turn) % 3
            operands.append(view.incoming[place])
            up.append(view.toward_root[place] & likelihood.is_rooted)
            edges.append(tree.edges[place])
        inner.append(tree.edges[node, column])
    edges += [*inner, np.full(len(branches), tree.edges[ROOT, 0])]
    around = _Quartets(np.stack(operands, axis=1), np.stack(up, axis=1), divided)
    return around, np.moveaxis(tree.lengths[np.stack(edges, axis=1)], 1, -1)


def _optimise(likelihood: TreeLikelihood, around: _Quartets, lengths: FloatArray) -> FloatArray:
    """Optimise the lengths (n, [n_parts,] 7) from those given."""
    best = np.clip(lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
    lnl = np.full(len(around), -np.inf)
    active = np.arange(len(around))
    for _ in range(MAX_NEIGHBOUR_SWEEPS):
        before = lnl[active]
        for side, (near_0, near_1, _, _) in enumerate(SIDES):
            at, some = best[active], around[active]
            slots = likelihood.scratch + np.arange(len(active))
            places = [*SIDES[side][2:], *((INNER[1 - side], OWN) if some.divided.any() else ())]
            newviews = _far_side(some, side, slots, places)
            clas = likelihood.directed().extend(newviews, flatten_lengths(at[..., places]).T)
            joined = np.column_stack([some.operands[:, [near_0, near_1]], slots])
            beyond = some.divided | some.up[:, SIDES[side][2:]].any(axis=1)  # where the root is
            is_up = np.column_stack([some.up[:, [near_0, near_1]], beyond])
            places = [near_0, near_1, INNER[side]]
            lnl[active], at[..., places] = optimise_joins(clas, joined, at[..., places], is_up)
            whole = ~some.divided
            at[whole, ..., INNER[1 - side]] = at[whole, ..., INNER[side]]
            best[active] = at
        active = active[lnl[active] - before >= NEIGHBOUR_EPSILON]
        if not len(active):
            break
    return best


def _far_side(around: _Quartets, side: int, slots: IndexArray, places: Sequence[int]) -> IntArray:
    """The newviews of the pair at the other node than `side`, which on divided branches go on to the root.

    Lengths are numbered item by item, in the order of `places`.
    """

    def number(place: int) -> IndexArray:
        return len(places) * np.arange(len(around)) + places.index(place)

    newviews = []
    for far in SIDES[side][2:]:
        newviews += [around.operands[:, far], np.where(around.up[:, far], ~number(far), number(far))]
    program = prog.newview(slots, *newviews)
    if not around.divided.any():
        return program
    own, inner, beyond = (values[around.divided] for values in (slots, number(INNER[1 - side]), number(OWN)))
    return np.concatenate([program, prog.newview(own, own, inner, ~ROOT, beyond)])


def optimise_joins(
    clas: Clas, operands: IntArray, lengths: FloatArray, up: BoolArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Optimise the lengths (n, [n_parts,] 3) at nodes where operands (n, 3) meet; returns lnL (n,) and the lengths.

    `up` is as for `join`. A Newton step changes all three lengths together. If it fails, each length takes a step of
    its own uphill, which is halved after every further failure.
    """
    best = lengths.copy()
    lnl = np.full(best.shape[:-1], -np.inf)
    failures = np.zeros(best.shape[:-1], dtype=np.int64)
    values = np.empty((*lnl.shape, TRIPLET_VALUES))
    active, trial = np.arange(len(best)), best.copy()
    while len(active):
        answer = join(clas, operands[active], trial, None if up is None else up[active])
        better = answer[..., 0] > lnl[active]
        lnl[active] = np.where(better, answer[..., 0], lnl[active])
        best[active] = np.where(better[..., None], trial, best[active])
        values[active] = np.where(better[..., None], answer, values[active])
        failures[active] = np.where(better, 0, failures[active] + 1)
        d1, d2 = values[active][..., 1:4], values[active][..., 4:7]
        promise = predicted_gains(best[active], d1, d2).sum(axis=-1)
        going = (promise >= NEIGHBOUR_EPSILON / 4) & (failures[active] <= MAX_BACKTRACKS)
        active = active[going if going.ndim == 1 else going.any(axis=1)]
        together = triplet_step(best[active], values[active])[0]
        alone = newton_step(best[active], values[active][..., 1:4], values[active][..., 4:7])
        damped = alone * 0.5 ** np.maximum(failures[active] - 1, 0)[..., None]
        trial = apply_step(best[active], np.where(failures[active][..., None] == 0, together, damped))
    return add_parts(lnl), best


def _evaluate(likelihood: TreeLikelihood, around: _Quartets, lengths: FloatArray) -> FloatArray:
    """lnL of each pattern (n, n_patterns) on subtrees joined as 0 1 | 2 3 with these lengths."""
    n = len(around)
    items = np.arange(n)
    slots = likelihood.scratch + 2 * items
    places = [0, 1, 2, 3, INNER[1], *((INNER[0], OWN) if around.divided.any() else ())]
    sides = [_far_side(around, 1, slots, places), _far_side(around, 0, slots + 1, places)[:n]]  # pair 0 1, pair 2 3
    across = len(places) * items + places.index(INNER[1])
    end = prog.evaluate(items, slots, slots + 1, np.where(around.up[:, 2:].any(axis=1), ~across, across))
    order = np.argsort(np.concatenate([items, np.flatnonzero(around.divided), items, items]), kind="stable")
    program = np.concatenate([*sides, end])[order]
    pieces = np.append(0, np.cumsum(3 + around.divided)[:-1]).astype(np.int32)
    request = prog.Request(program, n, "neighbours", pieces=pieces)
    return likelihood.directed().execute_sites(request, flatten_lengths(lengths[..., places]).T)
