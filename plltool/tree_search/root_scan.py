"""The place of the root, which matters under processes that are not time-reversible.

The CLAs towards a root, wherever it is, pass no branch against time. So one set of directed CLAs serves all places at
once, and each place is a node where the two sides of a branch and the tip that stands for the root meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.optimise.models import optimise_model
from plltool.tree.moves import prune_regraft
from plltool.tree.operations import ROOT
from plltool.tree.splits import branch_splits, members_of
from plltool.tree.topology import Tree
from plltool.tree_search.neighbours import optimise_joins

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
    first, second = ends[1:].T
    columns = np.argmax(tree.neighbours[first] == second[:, None], axis=1)
    near = np.append(view.incoming[top, left], view.outgoing[first, columns])
    far = np.append(view.incoming[top, right], view.incoming[first, columns])
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
        reached = _try_places(likelihood, places, trials, lnl, lambda: smooth(likelihood).lnl)
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
        return smooth(likelihood).lnl

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
    """Move the root of the tree to one of its places."""
    top, own = int(tree.neighbours[ROOT, 0]), int(tree.edges[ROOT, 0])
    beside = np.setdiff1d(tree.edges[top], own)
    first, second = np.moveaxis(places.lengths[number], -1, 0)
    if number:
        around = (first, second, tree.lengths[own])
        prune_regraft(tree, top, ROOT, int(places.branches[number]), tree.lengths[beside].sum(axis=0), around)
    else:
        left = tree.edge_between(top, int(places.ends[0, 0]))
        tree.lengths[left], tree.lengths[beside.sum() - left] = first, second
