"""Supports of branches by subtree pruning and regrafting: SPRTA (De Maio et al. 2025, Nature).

The subtree at one end of a branch could be attached elsewhere. Its support is the likelihood of the tree over the sum
of those of the tree and of all trees in which the subtree, and nothing else, is attached to another branch:
``1 / (1 + sum_i exp(lnl_i - lnl))``. Of each such tree the branch that closes the gap is optimised, and then the three
lengths where the subtree is; the other lengths stay. A place at no distance from the present one makes the same
multifurcating tree, and does not count.
"""

from __future__ import annotations

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import MAX_RADIUS, MIN_BRANCH_LENGTH
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.rooted import branches_at_root
from plltool.tree_search.insertions import prepare_insertions
from plltool.tree_search.neighbours import optimise_joins
from plltool.tree_search.scan import Prunes, Steps, all_prunes, scan

SCANNED_STEPS = 500_000  # places of subtrees that are held at the same time
SCORE_MARGIN = 40.0  # lnL below the tree from which a score is hopeless: lengths that are optimised regain some of it
LEAST_PLACES = 5  # of each subtree that are optimised, whatever their scores
SAME_PLACE = 4 * MIN_BRANCH_LENGTH  # distance from the present place up to which there is no other tree


def support_by_moves(likelihood: TreeLikelihood) -> FloatArray:
    """SPRTA (n_edges, 2) of a tree whose lengths and model are optimised, if the subtree at either end moves.

    NaN where that is all but one taxon, or has the root. The engine needs scratch slots as for a search. The walk from
    a gap ends as in `scan`, so that places behind very bad ones do not count.
    """
    tree, lnl = likelihood.tree, likelihood.lnl()
    found = np.full((tree.n_edges, 2), np.nan)
    joints = np.arange(tree.n_taxa, tree.n_nodes)
    at_once = max(1, SCANNED_STEPS // (3 * tree.n_edges))
    for first in range(0, len(joints), at_once):
        prunes = all_prunes(likelihood, joints[first : first + at_once])
        steps = scan(likelihood, prunes, MAX_RADIUS, lnl, patient=True)
        ratios = _sum_ratios(likelihood, prunes, steps, lnl)
        edges, subtrees = (values[prunes.joints, prunes.columns] for values in (tree.edges, tree.neighbours))
        found[edges, (tree.ends[edges, 1] == subtrees).astype(int)] = 1 / (1 + ratios)
    return found


def smaller_support(likelihood: TreeLikelihood) -> FloatArray:
    """SPRTA (n_edges,) of each branch, the smaller one of both ends; both branches at a root have the smaller one."""
    found = np.fmin.reduce(support_by_moves(likelihood), axis=1)
    if likelihood.is_rooted:
        at_root = branches_at_root(likelihood.tree)[1]
        found[at_root] = np.fmin.reduce(found[at_root])
    return found


def _sum_ratios(likelihood: TreeLikelihood, prunes: Prunes, steps: Steps, lnl: float) -> FloatArray:
    """(n_prunes,) the sum of the likelihoods of all other places of each subtree, over the likelihood of the tree."""
    chosen = np.union1d(np.flatnonzero(steps.scores >= lnl - SCORE_MARGIN), steps.best_of_each(LEAST_PLACES))
    sums = np.zeros(len(prunes))
    for first in range(0, len(chosen), likelihood.n_scratch):
        some = chosen[first : first + likelihood.n_scratch]
        prune = steps.prune[some]
        clas, operands, up = prepare_insertions(likelihood, prunes, steps, some)
        half = likelihood.tree.lengths[steps.branch[some]] / 2
        stem = likelihood.tree.lengths[likelihood.tree.edges[prunes.joints[prune], prunes.columns[prune]]]
        start = np.maximum(np.stack([half, half, stem], axis=-1), MIN_BRANCH_LENGTH)
        found, lengths = optimise_joins(clas, operands, start, up)
        counts = _distances(likelihood, prunes, steps, some, lengths[..., 0]) > SAME_PLACE
        sums += np.bincount(prune, np.where(counts, np.exp(found - lnl), 0.0), len(prunes))
    return sums


def _distances(
    likelihood: TreeLikelihood, prunes: Prunes, steps: Steps, chosen: IndexArray, beyond: FloatArray
) -> FloatArray:
    """(n_chosen,) from where each subtree is to where it would be; the longest of all parts.

    `beyond` (n_chosen, [n_parts]) are the lengths to the end of its new branch that is towards the gap.
    """
    tree, prune = likelihood.tree, steps.prune[chosen]
    lengths = tree.lengths.reshape(tree.n_edges, -1).max(axis=1)
    turn = 1 + (steps.key[chosen] >> (2 * MAX_RADIUS))
    passed = lengths[tree.edges[prunes.joints[prune], (prunes.columns[prune] + turn) % 3]]
    distances = passed + beyond.reshape(len(chosen), -1).max(axis=1)
    at, rows = steps.parent[chosen], np.arange(len(chosen))
    while len(rows := rows[at >= 0]):
        at = at[at >= 0]
        distances[rows] += lengths[steps.branch[at]]
        at = steps.parent[at]
    return distances
