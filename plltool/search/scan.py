"""SPR neighbourhoods in batches: heal every prune, score every insertion within a radius.

A *prune* is an inner node (the joint) with one of its three subtrees; there are 3 (n_taxa - 2). Taking joint and
subtree away leaves a gap between the joint's other neighbours, healed by one branch whose length is optimised
while both its CLAs exist. A *step* walks from the gap over one more branch: one NEWVIEW into a scratch slot (the
walk's depth bounds the scratch, not its size) and one INSERT score of the subtree in the middle of that branch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plltool.constants import HEALING_ROUNDS, SCAN_VALUES_PER_LAUNCH
from plltool.engine import program as prog
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.steps import apply_step, newton_step
from plltool.tree.topology import FloatArray, IntArray

MAX_RADIUS = 28  # a path is two bits a branch in one int64


@dataclass(frozen=True)
class Prunes:
    """Subtrees to move, and the branch that heals each gap.

    Attributes
    ----------
    joints, columns : (n,) inner node and the column of its subtree
    healed : (n,) length of the branch that closes the gap
    """

    joints: IntArray
    columns: IntArray
    healed: FloatArray

    def __len__(self) -> int:
        return len(self.joints)

    def subset(self, chosen: npt.NDArray[np.intp]) -> Prunes:
        return Prunes(self.joints[chosen], self.columns[chosen], self.healed[chosen])


@dataclass(frozen=True)
class Steps:
    """Insertions within the radius, in depth-first order of each prune.

    Attributes
    ----------
    prune : (n,) index of the prune
    parent : (n,) index of the step before, -1 at the gap
    depth : (n,) branches walked before this one
    source, source_branch : (n,) operand that carries the rest of the tree up to here, -1-marked by `parent`, and the
        branch it comes through; for parent == -1 the CLA beyond the gap, through the healed branch
    side, side_branch : (n,) the sibling's CLA and branch
    beyond, branch : (n,) the CLA beyond the branch of insertion, and that branch
    """

    prune: IntArray
    parent: IntArray
    depth: IntArray
    source: IntArray
    source_branch: IntArray
    side: IntArray
    side_branch: IntArray
    beyond: IntArray
    branch: IntArray

    def __len__(self) -> int:
        return len(self.prune)


def all_prunes(likelihood: TreeLikelihood, joints: npt.NDArray[np.integer] | None = None) -> Prunes:
    """Every prune (or those at `joints`) with its healed branch after HEALING_ROUNDS of batched Newton steps.

    The CLAs must belong to the tree's lengths (`TreeLikelihood.all_derivatives`).
    """
    tree, view = likelihood.tree, likelihood.view
    if joints is None:
        joints = np.arange(tree.n_taxa, tree.n_nodes)
    nodes = np.repeat(joints.astype(np.int32), 3)
    columns = np.tile(np.arange(3, dtype=np.int32), len(joints))
    k1, k2 = (columns + 1) % 3, (columns + 2) % 3
    healed = tree.lengths[tree.edges[nodes, k1]] + tree.lengths[tree.edges[nodes, k2]]
    ends = np.column_stack([view.facing[nodes, k1], view.facing[nodes, k2], np.arange(len(nodes))])
    for _ in range(HEALING_ROUNDS):
        slopes = likelihood.engine.derivatives(ends, healed).sum(axis=1)
        healed = apply_step(healed, newton_step(healed, slopes[:, 1], slopes[:, 2]))
    return Prunes(nodes, columns, healed)


def walk(likelihood: TreeLikelihood, prunes: Prunes, radius: int) -> Steps:
    """All insertions that are at most `radius` branches from the gap, the gap itself excluded."""
    tree, view = likelihood.tree, likelihood.view
    n_edges = tree.n_edges
    levels: list[dict[str, npt.NDArray[np.int64]]] = []
    prune = np.tile(np.arange(len(prunes)), 2)
    sides = np.repeat([1, 2], len(prunes))
    joints, columns = prunes.joints[prune], prunes.columns[prune]
    near, far = (columns + sides) % 3, (columns + 3 - sides) % 3
    level = {
        "prune": prune,
        "node": tree.neighbours[joints, near],
        "entry": view.back[joints, near],
        "source": view.facing[joints, far],
        "source_branch": 2 * n_edges + prune,
        "key": (sides - 1) << (2 * MAX_RADIUS),
        "parent": np.full(2 * len(prunes), -1),
    }
    first = 0
    for depth in range(min(radius, MAX_RADIUS)):
        inner = np.flatnonzero(level["node"] >= tree.n_taxa)
        if not len(inner):
            break
        at = {name: np.repeat(column[inner], 2) for name, column in level.items()}
        turn = np.tile([1, 2], len(inner))
        onward, side = (at["entry"] + turn) % 3, (at["entry"] + 3 - turn) % 3
        node = at["node"]
        branch = tree.edges[node, onward]
        found = {
            "prune": at["prune"],
            "parent": at["parent"],
            "depth": np.full(len(node), depth),
            "source": at["source"],
            "source_branch": at["source_branch"],
            "side": view.facing[node, side],
            "side_branch": tree.edges[node, side],
            "beyond": view.facing[node, onward],
            "branch": branch,
            "key": at["key"] | (turn << (2 * (MAX_RADIUS - 1 - depth))),
        }
        levels.append(found)
        level = {
            "prune": found["prune"],
            "node": tree.neighbours[node, onward],
            "entry": view.back[node, onward],
            "source": np.zeros(len(node), dtype=np.int64),
            "source_branch": branch,
            "key": found["key"],
            "parent": first + np.arange(len(node)),
        }
        first += len(node)
    return _depth_first(levels)


def _depth_first(levels: list[dict[str, npt.NDArray[np.int64]]]) -> Steps:
    """Breadth-first levels as depth-first steps: scratch by depth, every parent just before its children."""
    if not levels:
        return Steps(*[np.zeros(0, dtype=np.int32)] * 9)
    joined = {name: np.concatenate([level[name] for level in levels]) for name in levels[0]}
    order = np.lexsort([joined.pop("key"), joined["prune"]])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    columns = {name: column[order].astype(np.int32) for name, column in joined.items()}
    parent = columns["parent"]
    columns["parent"] = np.where(parent >= 0, rank[parent], -1).astype(np.int32)
    return Steps(**columns)


def branch_lengths(likelihood: TreeLikelihood, prunes: Prunes) -> FloatArray:
    """Lengths that go with `walk`: of every branch, of half of every branch, and the healed ones."""
    lengths = likelihood.tree.lengths
    return np.concatenate([lengths, lengths / 2, prunes.healed])


def score_insertions(likelihood: TreeLikelihood, prunes: Prunes, steps: Steps) -> FloatArray:
    """lnL (n_steps,) of regrafting each step's subtree in the middle of its branch, lengths as they are."""
    scores = np.empty(len(steps))
    lengths = branch_lengths(likelihood, prunes)
    limit = max(1, SCAN_VALUES_PER_LAUNCH // len(likelihood.engine.layout.groups))
    ends = np.flatnonzero(np.diff(steps.prune, append=-1)) + 1  # where the steps of a prune end
    start = 0
    while start < len(steps):
        stop = int(ends[max(np.searchsorted(ends, start + limit, side="right") - 1, np.searchsorted(ends, start + 1))])
        program = _scan_program(likelihood, prunes, steps, start, stop)
        values = likelihood.engine.execute(program, lengths, stop - start, request="scan")
        scores[start:stop] = values.sum(axis=0)
        start = stop
    return scores


def _scan_program(likelihood: TreeLikelihood, prunes: Prunes, steps: Steps, start: int, stop: int) -> IntArray:
    """Per prune one PROPAGATE of the subtree, per step one NEWVIEW and one INSERT."""
    tree, view = likelihood.tree, likelihood.view
    moving, first_slot = likelihood.scratch, likelihood.scratch + 1
    chosen = slice(start, stop)
    prune, depth = steps.prune[chosen], steps.depth[chosen]
    source = np.where(depth == 0, steps.source[chosen], first_slot + depth - 1)
    made = first_slot + depth
    newviews = prog.newview(
        made, source, steps.source_branch[chosen], steps.side[chosen], steps.side_branch[chosen]
    )
    half = tree.n_edges + steps.branch[chosen]
    inserts = prog.insert(np.arange(stop - start), made, half, steps.beyond[chosen], half, moving)
    heads = np.flatnonzero(np.diff(prune, prepend=-1))
    joints, columns = prunes.joints[prune[heads]], prunes.columns[prune[heads]]
    propagates = prog.propagate(moving, view.facing[joints, columns], tree.edges[joints, columns])
    program = np.empty((2 * len(prune) + len(heads), prog.N_WORDS), dtype=np.int32)
    at = 2 * np.arange(len(prune)) + np.cumsum(np.diff(prune, prepend=-1) != 0)
    program[at], program[at + 1] = newviews, inserts
    program[at[heads] - 1] = propagates
    return program
