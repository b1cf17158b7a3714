"""Hill climbing by batches of SPR and NNI moves."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plltool.arrays import BoolArray, IndexArray, distinct
from plltool.constants import NO_NODE
from plltool.errors import EngineError
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.progress import Move
from plltool.tree.constraint import Constraint
from plltool.tree.moves import Undo, prune_regraft
from plltool.tree.topology import Tree
from plltool.tree_search.insertions import Insertions, optimise_insertions
from plltool.tree_search.scan import Prunes, Steps, all_prunes, heal, scan

INSERTIONS_PER_PRUNE = 3  # insertions per subtree whose lengths are optimised, best scores first
INSERTION_CUTOFF = 0.7  # times the typical loss: insertions that score lower are left out
SCREENING_LOSS = 0.02  # times the typical loss: what a move may lose in the screen and still be tried without it
MIN_MOVE_GAIN = 1e-2  # lnL that a move must promise
GAIN_GRID = 1e-4  # gains are rounded to this lnL before moves are ranked, so that devices agree; ties go by index
RESCAN_DISTANCE = 4  # branches around a change within which subtrees are scanned again in the next round
MAX_REJECTED_MOVES = 5  # moves that a round tries singly without success before it gives up
ROUND_EPSILON = 0.5  # lnL precision of branch lengths between rounds
ROUND_SHARE = 3e-6  # the same as a share of lnL; the larger of the two counts


def best_steps(steps: Steps, lnl: float) -> IndexArray:
    """Indices, ascending, of at most INSERTIONS_PER_PRUNE steps of each subtree whose lengths are worth optimising.

    They are the best by score, and lose at most INSERTION_CUTOFF times the typical loss from the current `lnl`.
    """
    return np.sort(steps.best_of_each(INSERTIONS_PER_PRUNE, lnl - INSERTION_CUTOFF * steps.typical_loss))


def find_moves(
    likelihood: TreeLikelihood,
    lnl: float,
    radius: int,
    joints: npt.NDArray[np.integer] | None = None,
    constraint: Constraint | None = None,
) -> Insertions:
    """Every promising move of the subtrees at `joints` (None: all) within `radius`.

    `lnl` is that of the current tree. The tree obeys the `constraint`, and does so after any single one of the moves.
    If the likelihood has a screen, moves are found with that, and those that do not lose more than SCREENING_LOSS times
    the typical loss there are optimised again with the likelihood; beside a constraint all are, because it allows few
    moves, and the best of them may be a narrow choice. Where single precision cannot represent a pattern, there is no
    screen.
    """

    def scan_for_moves(own: TreeLikelihood, own_lnl: float) -> tuple[Prunes, Steps, IndexArray]:
        """The subtrees, their insertions with scores, and the best of these."""
        prunes = all_prunes(own, joints)
        admits = None if constraint is None else constraint.admission(own.tree, prunes.joints, prunes.columns)
        steps = scan(own, prunes, radius, own_lnl, admits)
        return prunes, steps, best_steps(steps, own_lnl)

    screen = likelihood.screen
    if screen is not None:
        with suppress(EngineError):
            screen_lnl = screen.lnl()
            prunes, steps, chosen = scan_for_moves(screen, screen_lnl)
            floor = screen_lnl - SCREENING_LOSS * steps.typical_loss if constraint is None else -np.inf
            rough = optimise_insertions(screen, prunes, steps, chosen, floor)
            kept = rough.lnl >= floor
            gaps, healed = distinct(steps.prune[chosen[kept]]), prunes.healed.copy()
            healed[gaps] = heal(likelihood, prunes.joints[gaps], prunes.columns[gaps])
            prunes = replace(prunes, healed=healed)
            return optimise_insertions(likelihood, prunes, steps, chosen[kept], lnl, rough.lengths[kept])
    prunes, steps, chosen = scan_for_moves(likelihood, lnl)
    return optimise_insertions(likelihood, prunes, steps, chosen, lnl)


def rank_moves(moves: Insertions, lnl: float) -> IndexArray:
    """Indices of the moves that gain at least MIN_MOVE_GAIN, best first; ties by index."""
    gain = np.round((moves.lnl - lnl) / GAIN_GRID)
    worthy = np.flatnonzero(gain * GAIN_GRID >= MIN_MOVE_GAIN)
    return worthy[np.argsort(-gain[worthy], kind="stable")]


def apply_moves(
    likelihood: TreeLikelihood,
    moves: Insertions,
    ranked: IndexArray,
    most: int | None = None,
    constraint: Constraint | None = None,
) -> list[tuple[int, Undo]]:
    """Apply moves in order, at most `most` of them, except those that touch nodes that an earlier move changed.

    Two moves may together break a `constraint` that each obeys; then fewer are applied. Returns (move, undo) for each.
    """
    tree = likelihood.tree
    touched: set[int] = set()
    applied: list[tuple[int, Undo]] = []
    for k in ranked.tolist():
        joint, column, branch = int(moves.joints[k]), int(moves.columns[k]), int(moves.branches[k])
        subtree = int(tree.neighbours[joint, column])
        nodes = {joint, *tree.neighbours[joint].tolist(), *tree.ends[branch].tolist()}
        if touched & nodes:
            continue
        if len(applied) == most:
            break
        toward, away, hanging = moves.lengths[k].T
        first, second = (toward, away) if moves.toward_gap[k] else (away, toward)
        undo = prune_regraft(tree, joint, subtree, branch, moves.healed[k], (first, second, hanging))
        if undo is not None:
            touched |= nodes
            applied.append((k, undo))
    while applied and constraint is not None and not constraint.is_obeyed_by(tree):
        for _, undo in reversed(applied[len(applied) // 2 :]):
            undo.restore(tree)
        del applied[len(applied) // 2 :]
    if applied:
        likelihood.topology_changed()
    return applied


def nodes_near(tree: Tree, nodes: npt.NDArray[np.integer], distance: int) -> BoolArray:
    """Mask (n_nodes,) of the nodes at most `distance` branches from any of `nodes`."""
    near = np.zeros(tree.n_nodes, dtype=bool)
    near[nodes] = True
    for _ in range(distance):
        onward = tree.neighbours[near].ravel()
        near[onward[onward != NO_NODE]] = True
    return near


@dataclass(frozen=True)
class Round:
    lnl: float  # lnL after the round; never lower than before
    n_moves: int  # that were kept
    joints: IndexArray  # of subtrees to scan in the next round: near a change, or with a gain that had to wait
    chosen: tuple[Move, ...] = ()  # the moves that were kept


def climb_round(
    likelihood: TreeLikelihood,
    lnl: float,
    radius: int,
    joints: npt.NDArray[np.integer] | None = None,
    epsilon: float = ROUND_EPSILON,
    constraint: Constraint | None = None,
) -> Round:
    """Find moves, apply the compatible ones that gain, and smooth; arguments as in `find_moves`.

    Lengths are smoothed to `epsilon`, or ROUND_SHARE of lnL if that is more. The tree always obeys the `constraint`.
    """
    moves = find_moves(likelihood, lnl, radius, joints, constraint)
    ranked = rank_moves(moves, lnl)
    waiting = distinct(moves.joints[ranked])
    tree = likelihood.tree
    before = tree.lengths.copy()
    most, rejected = len(ranked), 0
    while len(ranked) and rejected < MAX_REJECTED_MOVES:
        applied = apply_moves(likelihood, moves, ranked, most, constraint)
        if not applied:
            break
        reached = smooth(likelihood, max(epsilon, ROUND_SHARE * abs(lnl))).lnl
        if reached > lnl:
            joints = _worth_another_look(tree, [undo for _, undo in applied], waiting)
            return Round(reached, len(applied), joints, tuple(_describe_move(tree, moves, k, lnl) for k, _ in applied))
        for _, undo in reversed(applied):
            undo.restore(tree)
        tree.lengths[:] = before
        likelihood.topology_changed()
        most = max(1, len(applied) // 2)
        if len(applied) == 1:  # it fails even alone: try the others
            ranked = ranked[ranked != applied[0][0]]
            rejected += 1
    return Round(lnl, 0, np.zeros(0, dtype=np.int64))


def _describe_move(tree: Tree, moves: Insertions, k: int, lnl: float) -> Move:
    """Describe move `k`, which has been applied to the tree, which had `lnl` before."""
    joint, column = int(moves.joints[k]), int(moves.columns[k])
    subtree, first, second = (int(tree.neighbours[joint, (column + turn) % 3]) for turn in range(3))
    roots = [(subtree, joint)]
    if not tree.is_tip(subtree):
        roots = [(int(node), subtree) for node in tree.neighbours[subtree] if node != joint]
    inside = tuple(_some_taxon(tree, node, parent) for node, parent in roots)
    sides = _some_taxon(tree, first, joint), _some_taxon(tree, second, joint)
    return Move(inside, sides, float(moves.lnl[k] - lnl), (joint, subtree, first, second))


def _some_taxon(tree: Tree, node: int, parent: int) -> str:
    """A taxon at or behind `node`, seen from `parent`."""
    while not tree.is_tip(node):
        node, parent = min(int(other) for other in tree.neighbours[node] if other != parent), node
    return tree.names[node]


def _worth_another_look(tree: Tree, applied: list[Undo], waiting: npt.NDArray[np.integer]) -> IndexArray:
    """The inner nodes near the changes of some moves, and those that are `waiting`."""
    near = np.zeros(tree.n_nodes, dtype=bool)
    for undo in applied:
        near[undo.nodes] = True
    near = nodes_near(tree, np.flatnonzero(near), RESCAN_DISTANCE)
    near[waiting] = True
    near[: tree.n_taxa] = False
    return np.flatnonzero(near)
