"""Hill climbing by batches of SPR and NNI moves; and the place of the root, if the process is not time-reversible.

The CLAs towards a root, wherever it is, pass no branch against time. So one set of directed CLAs serves all places at
once, and each place is a node where the two sides of a branch and the tip that stands for the root meet.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray, WholeArray, distinct
from plltool.constants import NO_NODE
from plltool.errors import EngineError
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import optimise_model
from plltool.progress import Move
from plltool.tree.moves import Undo, prune_regraft
from plltool.tree.operations import ROOT
from plltool.tree.splits import branch_splits, members_of
from plltool.tree.topology import Tree
from plltool.tree_search.neighbours import Insertions, optimise_insertions, optimise_joins
from plltool.tree_search.scan import Joints, Steps, all_prunes, heal, scan

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


def find_moves(likelihood: TreeLikelihood, lnl: float, radius: int, joints: Joints = None) -> Insertions:
    """Every promising move of the subtrees at `joints` within `radius`.

    `lnl` is that of the current tree. The tree obeys the constraint, and does so after any single one of the moves. If
    the likelihood has a screen, moves are found with that, and those that do not lose more than SCREENING_LOSS times
    the typical loss there are optimised again with the likelihood; beside a constraint all are, because it allows few
    moves, and the best of them may be a narrow choice. Where single precision cannot represent a pattern, there is no
    screen.
    """

    def scan_for_moves(own: TreeLikelihood, own_lnl: float) -> tuple[Steps, IndexArray]:
        """The insertions of the subtrees, with scores, and the best of them."""
        steps = scan(own, all_prunes(own, joints), radius, own_lnl)
        return steps, best_steps(steps, own_lnl)

    screen = likelihood.screen
    if screen is not None:
        with suppress(EngineError):
            screen_lnl = screen.lnl()
            steps, chosen = scan_for_moves(screen, screen_lnl)
            floor = screen_lnl - SCREENING_LOSS * steps.typical_loss if screen.constraint is None else -np.inf
            rough = optimise_insertions(screen, steps, chosen, floor)
            kept = rough.lnl >= floor
            gaps, prunes = distinct(steps.prune[chosen[kept]]), steps.prunes
            healed = prunes.healed.copy()
            healed[gaps] = heal(likelihood, prunes.joints[gaps], prunes.columns[gaps])
            steps = replace(steps, prunes=replace(prunes, healed=healed))
            return optimise_insertions(likelihood, steps, chosen[kept], lnl, rough.lengths[kept])
    steps, chosen = scan_for_moves(likelihood, lnl)
    return optimise_insertions(likelihood, steps, chosen, lnl)


def rank_moves(moves: Insertions, lnl: float) -> IndexArray:
    """Indices of the moves that gain at least MIN_MOVE_GAIN, best first; ties by index."""
    gain = np.round((moves.lnl - lnl) / GAIN_GRID)
    worthy = np.flatnonzero(gain * GAIN_GRID >= MIN_MOVE_GAIN)
    return worthy[np.argsort(-gain[worthy], kind="stable")]


def apply_moves(
    likelihood: TreeLikelihood, moves: Insertions, ranked: IndexArray, most: int | None = None
) -> list[tuple[int, Undo]]:
    """Apply moves in order, at most `most` of them, except those that touch nodes that an earlier move changed.

    Two moves may together break a constraint that each obeys; then fewer are applied. Returns (move, undo) for each.
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
    while applied and not likelihood.admits(tree):
        for _, undo in reversed(applied[len(applied) // 2 :]):
            undo.restore(tree)
        del applied[len(applied) // 2 :]
    if applied:
        likelihood.topology_changed()
    return applied


def nodes_near(tree: Tree, nodes: WholeArray, distance: int) -> BoolArray:
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
    likelihood: TreeLikelihood, lnl: float, radius: int, joints: Joints = None, epsilon: float = ROUND_EPSILON
) -> Round:
    """Find moves, apply the compatible ones that gain, and smooth; arguments as in `find_moves`.

    Lengths are smoothed to `epsilon`, or ROUND_SHARE of lnL if that is more.
    """
    moves = find_moves(likelihood, lnl, radius, joints)
    ranked = rank_moves(moves, lnl)
    waiting = distinct(moves.joints[ranked])
    tree = likelihood.tree
    before = tree.lengths.copy()
    most, rejected = len(ranked), 0
    while len(ranked) and rejected < MAX_REJECTED_MOVES:
        applied = apply_moves(likelihood, moves, ranked, most)
        if not applied:
            break
        reached = smooth(likelihood, max(epsilon, ROUND_SHARE * abs(lnl)))
        if reached > lnl:
            changed = np.concatenate([undo.nodes for _, undo in applied])
            near = nodes_near(tree, changed, RESCAN_DISTANCE)
            near[waiting] = True
            joints = tree.n_taxa + np.flatnonzero(near[tree.n_taxa :])
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


ROOT_GAIN = 0.001  # lnL that another place of the root must gain, with its two lengths optimised
ROOT_TRIALS = 6  # places of the root that are tried with all lengths optimised
ROOT_MODEL_TRIALS = 25  # with the model optimised, too, once in the end
ROOT_PRECISION = 0.1  # lnL of lengths and model at each of these places; with 5 the best of them is easily missed
ROOT_HOPE = 10.0  # lnL that a place may lose before that
MAX_ROOT_MOVES = 10  # of the root, one after another; typical 0 to 2


@dataclass(frozen=True)
class RootPlaces:
    """All places of the root of a tree, one on each branch of the tree without its root."""

    # (n,) the branch, as numbered in the tree with its root; its own two branches are one place, the first of all,
    # which has the number of one of them
    branches: IndexArray
    ends: IndexArray  # (n, 2) the nodes on both sides
    lengths: FloatArray  # (n, 2) or (n, n_parts, 2) the best lengths from the root to these nodes
    lnl: FloatArray  # (n,) lnL with these two lengths and all others unchanged


@dataclass(frozen=True)
class RootPlace:
    """The root on a branch."""

    taxa: tuple[str, ...]  # those on the side of the branch that has fewer
    lnl: float  # with the lengths on both sides optimised and all others unchanged
    # from the root to the side of `taxa`, and to the other; means over parts that have lengths of their own
    lengths: tuple[float, float]


def describe_places(likelihood: TreeLikelihood, places: RootPlaces) -> tuple[RootPlace, ...]:
    """The places of the root of the likelihood's tree, best first."""
    tree, above = likelihood.tree, likelihood.view.descent.branch
    splits = branch_splits(tree)
    found = []
    for number, branch in enumerate(places.branches.tolist()):
        below = [tree.names[taxon] for taxon in members_of(splits[branch])]
        beyond = [name for name in tree.names[ROOT + 1 :] if name not in set(below)]
        means = places.lengths[number].reshape(-1, 2).mean(axis=0).tolist()
        if above[places.ends[number, 0]] != branch:
            means.reverse()
        sides = sorted([(len(below), below, means), (len(beyond), beyond, means[::-1])])
        taxa, lengths = sides[0][1:]
        found.append(RootPlace(tuple(taxa), float(places.lnl[number]), (lengths[0], lengths[1])))
    return tuple(sorted(found, key=lambda place: -place.lnl))


def scan_root(likelihood: TreeLikelihood) -> RootPlaces:
    """lnL of every place of the root, each with its two lengths optimised; the engine holds all directed CLAs."""
    tree, view = likelihood.tree, likelihood.view
    top = int(tree.neighbours[ROOT, 0])
    left, right = (k for k in range(3) if tree.neighbours[top, k] != ROOT)
    branches = np.append(tree.edges[top, left], np.setdiff1d(np.arange(tree.n_edges), tree.edges[top]))
    ends = np.vstack([tree.neighbours[top, [left, right]], tree.ends[branches[1:]]]).astype(np.int64)
    near, far = np.vstack([view.incoming[top, [left, right]], view.sides[branches[1:]]]).T
    halves = tree.lengths[branches] / 2
    sides = np.stack([halves, halves], axis=-1)
    sides[0] = np.moveaxis(tree.lengths[tree.edges[top, [left, right]]], 0, -1)
    own = np.broadcast_to(tree.lengths[tree.edges[ROOT, 0]], halves.shape)
    operands = np.column_stack([near, far, np.full(len(branches), ~ROOT)])
    with likelihood.any_root() as clas:
        lnl, lengths = optimise_joins(clas, operands, np.concatenate([sides, own[..., None]], axis=-1))
    return RootPlaces(branches, ends, lengths[..., :2], lnl)


def move_root(likelihood: TreeLikelihood, lnl: float, stay: bool = False) -> float:
    """Move the root to its best place, and again as long as lnL gains ROOT_GAIN; return lnL, which never falls.

    All lengths are optimised at each of the ROOT_TRIALS best places, and the best result is kept. `lnl` is that of the
    tree as it stands. With `stay` the root moves along its own branch only.
    """
    for _ in range(MAX_ROOT_MOVES):
        places = scan_root(likelihood)
        trials = [0] if stay else np.argsort(-places.lnl, kind="stable")[:ROOT_TRIALS].tolist()
        trials = [trial for trial in trials if places.lnl[trial] > lnl - ROOT_HOPE]
        reached = _try_places(likelihood, places, trials, lnl, lambda: smooth(likelihood))
        gain, lnl = reached - lnl, reached
        if gain < ROOT_GAIN:
            break
    return lnl


def explore_roots(likelihood: TreeLikelihood, lnl: float, groups: Sequence[str] | None = None) -> float:
    """Move the root to the best of ROOT_MODEL_TRIALS places with lengths and model optimised; return lnL.

    A model that was optimised with the root elsewhere speaks for that place, so `move_root` alone does not leave it.
    `groups` are those of free model parameters; None for all. lnL never falls from `lnl`.
    """
    places = scan_root(likelihood)
    trials = np.argsort(-places.lnl, kind="stable")[:ROOT_MODEL_TRIALS].tolist()

    def optimise() -> float:
        smooth(likelihood, ROOT_PRECISION)
        optimise_model(likelihood, groups, ROOT_PRECISION, scale=True)
        return smooth(likelihood)

    return _try_places(likelihood, places, trials, lnl, optimise)


def place_root(
    likelihood: TreeLikelihood, lnl: float, optimise: Callable[[], float], stay: bool = False, explore: bool = True
) -> float:
    """Optimise the place of the root, and then what `optimise` does, until neither gains; return lnL.

    `lnl` and `stay` are as for `move_root`; all else has been optimised. Without `explore` the root is near its place.
    """
    if explore and not stay:
        lnl = explore_roots(likelihood, lnl)
    for _ in range(MAX_ROOT_MOVES):
        moved = move_root(likelihood, lnl, stay)
        if moved == lnl:
            break
        lnl = optimise()
    return lnl


def _try_places(
    likelihood: TreeLikelihood, places: RootPlaces, trials: Sequence[int], lnl: float, optimise: Callable[[], float]
) -> float:
    """Move the root to the best of the `trials` after `optimise`, unless that is below `lnl`; return lnL."""
    best, best_lnl = before, lnl = likelihood.fit(), lnl
    for trial in trials:
        _put_root(likelihood.tree, places, trial)
        likelihood.topology_changed()
        reached = optimise()
        if reached > best_lnl:
            best, best_lnl = likelihood.fit(), reached
        likelihood.restore(before)
    likelihood.restore(best)
    return best_lnl


def _put_root(tree: Tree, places: RootPlaces, number: int) -> None:
    top, own = int(tree.neighbours[ROOT, 0]), int(tree.edges[ROOT, 0])
    beside = np.setdiff1d(tree.edges[top], own)
    first, second = np.moveaxis(places.lengths[number], -1, 0)
    if number:
        around = (first, second, tree.lengths[own])
        prune_regraft(tree, top, ROOT, int(places.branches[number]), tree.lengths[beside].sum(axis=0), around)
    else:
        left = tree.edge_between(top, int(places.ends[0, 0]))
        tree.lengths[left], tree.lengths[beside.sum() - left] = first, second
