"""A tree of the reference and all queries, which are added one at a time where the likelihood is highest.

It keeps every split of the reference: a query only adds a node to a branch. Each query, those with most data first, is
placed on the tree with the queries before it, so that queries from a clade that the reference lacks can form it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.analyses.placement.branches import Places, free_branches
from plltool.analyses.placement.queries import PLACE_BATCH, Placer, count_known
from plltool.arrays import FloatArray, IndexArray
from plltool.engine.requests import Holder, work_of
from plltool.engine.storage import Slots
from plltool.io.newick_writer import write_newick
from plltool.optimise.lengths import smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.progress import announce
from plltool.run.memory import ask_engine
from plltool.tree.operations import directed_slots
from plltool.tree.rooted import add_root, place_outgroup
from plltool.tree.rooted_nodes import UnrootedNodes
from plltool.tree.topology import Tree, restore_duplicates

GRAFT_EPSILON = 0.001  # lnL that a last step of all lengths must promise


@dataclass(frozen=True)
class Grafted:
    """The reference tree with all queries that have data."""

    tree: Tree  # the taxa of the reference, then the queries in the order of their files
    newick: str  # the tree as text, with the root where the reference has it
    lnl: float  # log-likelihood of the reference and the queries on it, under the models of the reference


def graft_queries(placer: Placer, found: Sequence[Places], fixed: bool, root: tuple[int, float] | None) -> Grafted:
    """All queries on the tree of `placer`, which has `found` the places of each.

    In the end all lengths are optimised; if `fixed`, the queries divide the branches of the reference and no more.
    `root` is the branch of the reference with the root, and the root's share of its length from its first end.
    """
    reference, queries, n_queries = placer.tree, placer.queries, len(placer.queries)
    first = np.array([places.branches[np.argmax(places.lnl)] for places in found])
    turn = np.zeros(n_queries, dtype=np.int64)  # of each query among those of its branch
    known = count_known(queries.codes, placer.data)
    for branch in np.unique(first):
        own = np.flatnonzero(first == branch)
        turn[own[np.argsort(-known[own], kind="stable")]] = np.arange(len(own))
    order = np.lexsort([-known, turn])
    turn = turn[order]
    tips = (*reference.names, *(queries.names[query][0] for query in order.tolist()))

    def grow(engine: Holder) -> tuple[Tree, float]:
        likelihood = TreeLikelihood(reference, placer.models, engine)
        while (at := likelihood.tree.n_taxa - reference.n_taxa) < n_queries:
            announce(f"grafting queries, {at} of {n_queries} grafted")
            places = placer.slide(likelihood, np.flatnonzero(turn[at:] == turn[at])[:PLACE_BATCH])
            best = _best_apart(likelihood.tree, places if fixed else free_branches(likelihood, places))
            likelihood.tree = insert_tips(likelihood.tree, tips[at + reference.n_taxa :], best.branches, best.lengths)
            likelihood.topology_changed()
        lnl = likelihood.lnl() if fixed else smooth(likelihood, GRAFT_EPSILON)
        placer.work.add_earlier(work_of(engine))
        return likelihood.tree, lnl

    rows = [np.ones(own.shape[1], dtype=bool) for own in queries.codes]
    patterns = [placer.with_queries(part, order, own) for part, own in enumerate(rows)]
    tree, lnl = ask_engine(grow, patterns, placer.models, Slots(directed_slots(len(tips)) + 1), placer.hardware)
    # queries that are identical are beside each other
    starts = reference.n_taxa + np.cumsum([0, *map(len, queries.names)])
    groups = [list(range(starts[query], starts[query + 1])) for query in order.tolist()]
    names = (*reference.names, *(name for own in queries.names for name in own))
    tree = restore_duplicates(tree, names, [*([taxon] for taxon in range(reference.n_taxa)), *groups])
    return Grafted(tree, write_newick(tree if root is None else _rooted(tree, reference, *root)), lnl)


def _best_apart(tree: Tree, places: Places) -> Places:
    """The best place of each query, up to the first query whose branch has a node in common with one before it."""
    order = np.lexsort([-places.lnl, places.queries])
    best = order[np.unique(places.queries[order], return_index=True)[1]]
    used: set[int] = set()
    for number, branch in enumerate(places.branches[best]):
        ends = set(tree.ends[branch].tolist())
        if used & ends:
            best = best[:number]
            break
        used |= ends
    return places[best]


def insert_tips(tree: Tree, names: Sequence[str], branches: IndexArray, lengths: FloatArray) -> Tree:
    """The tree with further tips, as many of `names` as there are `branches`, all different, each in one of these.

    The lengths (n, 3) are those from the new node to the first and to the second end of the branch, and to the tip.
    Branches keep their numbers and first ends; the rest of each comes behind them, then the branches of the tips.
    """
    n, k = tree.n_taxa, len(branches)
    ends = tree.ends + k * (tree.ends >= n)
    joints, far = tree.n_nodes + k + np.arange(k), ends[branches, 1]
    ends[branches, 1] = joints
    own = tree.lengths.copy()
    own[branches] = lengths[:, 0]
    ends = np.concatenate([ends, np.column_stack([joints, far]), np.column_stack([joints, n + np.arange(k)])])
    return Tree.from_edges((*tree.names, *names[:k]), ends, np.concatenate([own, lengths[:, 1], lengths[:, 2]]))


def _rooted(tree: Tree, reference: Tree, branch: int, share: float) -> Tree:
    """The tree with a root where a branch of the reference has it; both number the reference's nodes in one order."""
    shift = tree.n_taxa - reference.n_taxa
    first, at = (reference.ends[branch] + shift * (reference.ends[branch] >= reference.n_taxa)).tolist()
    above = {node: (parent, own) for node, parent, own in tree.directed_from(first)}
    path = []
    while at != first:
        path.append((at, above[at][1]))
        at = above[at][0]
    left = share * sum(tree.lengths[own] for _, own in path)
    for node, own in reversed(path):
        length = tree.lengths[own]
        if left <= length or (node, own) == path[0]:
            break
        left -= length
    part = min(left / length, 1.0)
    return add_root(tree, own, part if tree.ends[own, 1] == node else 1.0 - part)


def find_root_branch(tree: Tree, outgroup: Sequence[str] | None) -> tuple[int, float] | None:
    """The branch between an outgroup and the rest, or that with the root with which the tree was read, and where."""
    if outgroup is None:
        return tree.root_place
    names = dict(enumerate(tree.names))
    return place_outgroup(UnrootedNodes(tree.ends, tree.lengths, ("",) * tree.n_edges, names), outgroup)
