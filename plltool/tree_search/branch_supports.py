"""Supports of branches by the likelihood of trees that are one move away: SH-aLRT, aBayes, LBP and SPRTA.

For the first three, each inner branch is compared with its two interchanges by their site lnL; the lengths of the five
branches around it are optimised on each, see `plltool.tree_search.neighbours` also for roots.

For SPRTA (De Maio et al. 2025, Nature), the subtree at one end of a branch could be attached elsewhere. Its support is
the likelihood of the tree over the sum of those of the tree and of all trees in which the subtree, and nothing else, is
attached to another branch: ``1 / (1 + sum_i exp(lnl_i - lnl))``. Of each such tree the branch that closes the gap is
optimised, and then the three lengths where the subtree is; the other lengths stay. A place at no distance from the
present one makes the same multifurcating tree, and does not count.
"""

import copy
from collections.abc import Sequence

import numpy as np

from plltool.alignment.patterns import batches, resampled_sums
from plltool.arrays import FloatArray, IndexArray, slices
from plltool.constants import ABAYES, LBP, MAX_RADIUS, MIN_BRANCH_LENGTH, SH_ALRT
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.rooted import branches_at_root, drop_root, inner_branches, spread_over_branches, unrooted_branches
from plltool.tree_search.neighbours import neighbour_sites, optimise_joins, prepare_insertions
from plltool.tree_search.scan import Steps, all_prunes, scan

ALRT_MARGIN = 0.05  # lnL by which a branch must exceed a replicate: the precision of the optimisation (IQ-TREE's)


def support_branches(
    likelihood: TreeLikelihood, kinds: Sequence[str], n_replicates: int, rng: np.random.Generator
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Supports, of some NEIGHBOUR_KINDS, of all inner branches of a tree whose lengths and model are optimised.

    The tree stays as it is. The engine needs at least two scratch slots behind the directed CLAs. All branches see the
    same `n_replicates` resampled alignments. Returns

    values : (n_edges,) for each kind, "sh-alrt" and "lbp" in per cent, "abayes" from 0 to 1; NaN at branches of tips.
        Both branches at a root have the values of the one that it divides
    lnl : (n_edges, 3) lnL of the tree and of its two interchanges at each branch; likewise
    """
    tree = likelihood.tree
    branches = inner_branches(tree)
    weights = likelihood.engine.weights
    own = likelihood.site_lnl()
    gains = np.empty((len(branches), 2))
    shares = np.empty((2, len(branches)))
    for some in batches(len(branches), 2 * len(own)):
        differences = neighbour_sites(likelihood, branches[some]) - own
        gains[some] = differences @ weights
        if {SH_ALRT, LBP} & set(kinds):
            parts = likelihood.split_patterns(weights)
            drawn = resampled_sums(differences.reshape(-1, len(own)), parts, n_replicates, copy.deepcopy(rng))
            drawn = drawn.reshape(n_replicates, -1, 2)
            shares[:, some] = sh_alrt(gains[some], drawn), local_bootstrap(drawn)
    found = {SH_ALRT: 100 * shares[0], ABAYES: abayes(gains), LBP: 100 * shares[1]}
    lnl = float(own @ weights) + np.column_stack([np.zeros(len(branches)), gains])

    def spread(values: FloatArray) -> FloatArray:
        of_unrooted = np.full((drop_root(tree).n_edges, *values.shape[1:]), np.nan)
        of_unrooted[unrooted_branches(tree)[branches]] = values
        return spread_over_branches(tree, of_unrooted)

    return {kind: spread(found[kind]) for kind in kinds}, spread(lnl)


def sh_alrt(gains: FloatArray, drawn: FloatArray) -> FloatArray:
    """SH-like approximate likelihood ratio tests (Guindon et al. 2010, p. 310).

    The statistic of a branch is the difference of its lnL to that of the better interchange. The statistic of a
    replicate is the difference between the best and the second best of the three, after the lnL on the data has been
    subtracted from each (Shimodaira and Hasegawa's centring). Returns (n,) the share of replicates whose statistic is
    smaller by at least ALRT_MARGIN. `gains` (n, 2) are lnL of the interchanges minus lnL of the tree, and `drawn`
    (n_replicates, n, 2) the same for resampled alignments.
    """
    centred = np.concatenate([np.zeros((*drawn.shape[:2], 1)), drawn - gains], axis=2)
    centred.sort(axis=2)
    statistic = -gains.max(axis=1)
    return np.mean(statistic > centred[..., 2] - centred[..., 1] + ALRT_MARGIN, axis=0)


def local_bootstrap(drawn: FloatArray) -> FloatArray:
    """Local bootstrap probabilities (n,) (Adachi & Hasegawa 1996): how often a tree is best; `drawn`: see `sh_alrt`."""
    return np.mean(drawn.max(axis=2) < 0, axis=0)


def abayes(gains: FloatArray) -> FloatArray:
    """Posterior probability (n,) of each branch against its two interchanges (Anisimova et al. 2011).

    The three have equal prior probabilities; `gains` is that of `sh_alrt`.
    """
    relative = np.concatenate([np.zeros((len(gains), 1)), gains], axis=1)
    relative -= relative.max(axis=1, keepdims=True)
    return np.exp(relative[:, 0]) / np.exp(relative).sum(axis=1)


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
    for some in slices(len(joints), at_once):
        prunes = all_prunes(likelihood, joints[some])
        steps = scan(likelihood, prunes, MAX_RADIUS, lnl, patient=True)
        ratios = _sum_ratios(likelihood, steps, lnl)
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


def _sum_ratios(likelihood: TreeLikelihood, steps: Steps, lnl: float) -> FloatArray:
    """(n_prunes,) the sum of the likelihoods of all other places of each subtree, over the likelihood of the tree."""
    chosen = np.union1d(np.flatnonzero(steps.scores >= lnl - SCORE_MARGIN), steps.best_of_each(LEAST_PLACES))
    prunes, sums = steps.prunes, np.zeros(len(steps.prunes))
    for part in slices(len(chosen), likelihood.n_scratch):
        some = chosen[part]
        prune = steps.prune[some]
        clas, operands, up = prepare_insertions(likelihood, steps, some)
        half = likelihood.tree.lengths[steps.branch[some]] / 2
        stem = likelihood.tree.lengths[likelihood.tree.edges[prunes.joints[prune], prunes.columns[prune]]]
        start = np.maximum(np.stack([half, half, stem], axis=-1), MIN_BRANCH_LENGTH)
        found, lengths = optimise_joins(clas, operands, start, up)
        counts = _distances(likelihood, steps, some, lengths[..., 0]) > SAME_PLACE
        sums += np.bincount(prune, np.where(counts, np.exp(found - lnl), 0.0), len(prunes))
    return sums


def _distances(likelihood: TreeLikelihood, steps: Steps, chosen: IndexArray, beyond: FloatArray) -> FloatArray:
    """(n_chosen,) from where each subtree is to where it would be; the longest of all parts.

    `beyond` (n_chosen, [n_parts]) are the lengths to the end of its new branch that is towards the gap.
    """
    tree, prunes, prune = likelihood.tree, steps.prunes, steps.prune[chosen]
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
