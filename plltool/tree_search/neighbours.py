"""The nearest-neighbour interchanges of inner branches, with the branch lengths around optimised, many at a time.

An inner branch joins two pairs of subtrees, 0 1 | 2 3; its interchanges are 0 2 | 1 3 and 0 3 | 1 2. A sweep optimises
the three lengths at one end of each new inner branch by Newton steps, then the three lengths at the other end.

Under a process that is not time-reversible the interchanges are those of the tree without its root, and the root stays
where it is: within one of the four subtrees, or on the inner branch. There it divides the branch into two, and the
lengths of both are optimised, each with the lengths at its end; so the root may move along the new branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.arrays import BoolArray, FloatArray, IndexArray, IntArray
from plltool.constants import MAX_BACKTRACKS, MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.engine import program as prog
from plltool.engine.contract import TRIPLET_VALUES
from plltool.engine.requests import Clas
from plltool.optimise.lengths import predicted_gains
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.steps import apply_step, newton_step
from plltool.tree.moves import exchange_subtrees
from plltool.tree.operations import ROOT
from plltool.tree.topology import Tree
from plltool.tree_search.insertions import add_parts, flatten_lengths, join, triplet_step

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

    def __getitem__(self, items: slice | IndexArray) -> _Quartets:
        return _Quartets(self.operands[items], self.up[items], self.divided[items])

    def __len__(self) -> int:
        return len(self.operands)

    def interchanged(self) -> _Quartets:
        """The two interchanges of each: (2 n,)."""
        pairings = np.array(INTERCHANGES)
        operands, up = self.operands[:, pairings].reshape(-1, 4), self.up[:, pairings].reshape(-1, 4)
        return _Quartets(operands, up, np.repeat(self.divided, len(INTERCHANGES)))


def neighbour_sites(likelihood: TreeLikelihood, branches: npt.NDArray[np.integer]) -> FloatArray:
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
    at_once = max(1, likelihood.n_scratch // 2)
    for start in range(0, len(around), at_once):
        some = slice(start, start + at_once)
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


def _find_quartets(likelihood: TreeLikelihood, branches: npt.NDArray[np.integer]) -> tuple[_Quartets, FloatArray]:
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
