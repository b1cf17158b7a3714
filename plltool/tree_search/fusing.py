"""Leaving local optima: fusing two trees (Goloboff 1999), and perturbations that it makes the best of (Nixon 1999).

Wherever two trees resolve the same clades differently, fusing keeps the better resolution.

The splits that two trees share cut both of them into *regions*: a clade that both trees have, down to the next clades
that both have. Regions in which the trees differ can be exchanged independently of each other, because the same clades
meet at their borders. The CLAs of those are at hand, so that one launch scores all exchanges with one NEWVIEW for each
branch in which the trees differ. Scores nearly add up, as regions hardly interact.

A climb ends when no move gains on the original weights. On randomly reweighted sites other moves gain, which many sites
support (the ratchet; for likelihood Vos 2003). Applied all at once, and followed by a round of climbing on the original
weights, they lead to a tree that is better in some places and worse in others. Fusing takes what is better, so that one
perturbation serves the whole of a tree of any size.
"""

import math
from dataclasses import dataclass

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray
from plltool.engine import program as prog
from plltool.optimise.lengths import SMOOTHING_EPSILON, smooth
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.operations import ROOT, DirectedView
from plltool.tree.splits import branch_splits
from plltool.tree.topology import Tree
from plltool.tree_search.climb import ROUND_EPSILON, climb_round

FUSING_LOSS = 3.0  # lnL that an exchange may lose before lengths are optimised; with 0, fusions end 1 to 5 lower


@dataclass(frozen=True)
class Exchanges:
    """The regions in which a tree differs from a donor.

    A row says how one node of the tree hangs in the donor: below which node, and by a branch of which length. The first
    row of each region is that of its top node, whose parent stays the same.
    """

    region: IndexArray  # (n_rows,) the region that a row belongs to, from 0
    node: IndexArray  # (n_rows,) nodes of the tree
    parent: IndexArray  # likewise
    lengths: FloatArray  # (n_rows, ...) with a last axis for parts that have lengths of their own
    gains: FloatArray  # (n_regions,) lnL gained by each exchange alone, with all lengths as they are in the two trees


def fuse(likelihood: TreeLikelihood, donor: Tree, lnl: float) -> tuple[float, int]:
    """Take from `donor` the regions that are better there; return lnL and the number of regions taken.

    All exchanges that lose at most FUSING_LOSS before lengths are optimised are made; then those that gain when they
    are taken back are taken back. If the tree is worse than before after all, also with lengths that are as precise as
    its own, it is as before. `lnl` is that of the likelihood's tree, whose lengths are optimal. Both trees obey the
    constraint, and so does the result.
    """
    before = likelihood.tree.copy()
    found = find_exchanges(likelihood, donor, lnl)
    taken = found.gains >= -FUSING_LOSS
    if not taken.any():
        return lnl, 0
    fused = _exchange(likelihood, found, taken)
    back = find_exchanges(likelihood, before, fused)
    regretted = back.gains > 0
    if regretted.any():
        fused = _exchange(likelihood, back, regretted)
    if lnl - ROUND_EPSILON < fused < lnl:
        fused = smooth(likelihood, SMOOTHING_EPSILON)
    if fused < lnl:
        likelihood.set_tree(before)
        return lnl, 0
    return fused, int(np.count_nonzero(taken) - np.count_nonzero(regretted))


def _exchange(likelihood: TreeLikelihood, found: Exchanges, taken: BoolArray) -> float:
    """Make exchanges and optimise lengths; return lnL, -inf if the tree then breaks the constraint."""
    make_exchanges(likelihood, found, taken)
    return smooth(likelihood, ROUND_EPSILON) if likelihood.admits(likelihood.tree) else -math.inf


def find_exchanges(likelihood: TreeLikelihood, donor: Tree, lnl: float) -> Exchanges:
    """All regions in which the likelihood's tree, of lnL `lnl`, differs from `donor`, scored in one launch."""
    own, other = _Hanging(likelihood.view), _Hanging(DirectedView(donor))
    shared = own.node_of.keys() & other.node_of.keys()
    top = other.tops(shared)
    region, twin = _match(own, other, shared, top)
    below = other.order[1:]
    below = below[region[top[other.parent[below]]] >= 0]
    heads = np.flatnonzero(region >= 0)
    nodes = np.concatenate([heads, below])
    regions = np.concatenate([region[heads], region[top[other.parent[below]]]])
    parents = np.concatenate([own.parent[twin[heads]], twin[other.parent[below]]])
    gains = _score(likelihood, own, other, top, region, twin) - lnl if len(heads) else np.zeros(0)
    return Exchanges(regions, twin[nodes], parents, donor.lengths[other.branch[nodes]], gains)


def make_exchanges(likelihood: TreeLikelihood, found: Exchanges, taken: BoolArray) -> None:
    """Change the likelihood's tree in the regions that are `taken` (n_regions,)."""
    tree, descent = likelihood.tree, likelihood.view.descent
    parent, lengths, ends = descent.parent.copy(), tree.lengths.copy(), tree.ends.copy()
    is_top = np.arange(len(found.region)) < len(found.gains)
    hangs_elsewhere = taken[found.region] & ~is_top
    parent[found.node[hangs_elsewhere]] = found.parent[hangs_elsewhere]
    for rows in (taken[found.region] & is_top, hangs_elsewhere):  # a region decides on the lengths within it
        lengths[descent.branch[found.node[rows]]] = found.lengths[rows]
    below = np.delete(np.arange(tree.n_nodes), ROOT)
    ends[descent.branch[below]] = np.column_stack([below, parent[below]])
    likelihood.set_tree(Tree.from_edges(tree.names, ends, lengths))


class _Hanging:
    """A tree that hangs from its root tip."""

    def __init__(self, view: DirectedView):
        self.tree, self.view = view.tree, view
        self.order = view.descent.order.astype(np.int64)  # every node but the root tip, parents first
        self.parent = view.descent.parent.astype(np.int64)  # (n_nodes,) the node above each node
        self.branch = view.descent.branch.astype(np.int64)  # (n_nodes,) the branch to it
        splits = branch_splits(self.tree)  # of the branch above each node, and below it the node of each
        self.split = {node: splits[branch] for node, branch in zip(self.order, self.branch[self.order], strict=True)}
        self.node_of = {split: node for node, split in self.split.items()}

    def tops(self, shared: set[int]) -> IndexArray:
        """(n_nodes,) the nearest node, at or above each node, below a branch with a split that is `shared`."""
        top = np.arange(self.tree.n_nodes)
        for node in self.order.tolist():
            if self.split[node] not in shared:
                top[node] = top[self.parent[node]]
        return top


def _match(own: _Hanging, other: _Hanging, shared: set[int], top: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Match the nodes of two trees that share some splits. Returns

    region : (n_nodes,) the number of the region of which a node of the other tree is the top, -1 for other nodes
    twin : (n_nodes,) the node of our tree with the split of each node of the other; within a region, where no node has
        one, each of the region's inner nodes of ours occurs once
    """
    tree = other.tree
    twin = np.full(tree.n_nodes, ROOT)
    for split in shared:
        twin[other.node_of[split]] = own.node_of[split]
    inner = np.arange(tree.n_taxa, tree.n_nodes)
    inside = inner[top[inner] != inner]
    own_top = own.tops(shared)
    own_inside = inner[own_top[inner] != inner]
    twin[inside[np.argsort(twin[top[inside]], kind="stable")]] = own_inside[
        np.argsort(own_top[own_inside], kind="stable")
    ]
    heads = np.unique(top[inside])
    region = np.full(tree.n_nodes, -1)
    region[heads] = np.arange(len(heads))
    return region, twin


def _score(
    likelihood: TreeLikelihood, own: _Hanging, other: _Hanging, top: IndexArray, region: IndexArray, twin: IndexArray
) -> FloatArray:
    """lnL (n_regions,) of our tree with each region of the other one; the arrays are from `_match`.

    A region is a piece of the program: a post-order of its nodes on a stack, then an EVALUATE above its top.
    """
    tree, view = likelihood.tree, likelihood.view
    nodes, columns = other.view.preorder[::-1].astype(np.int64).T
    in_region = region[top[nodes]] >= 0
    nodes, columns = nodes[in_region], columns[in_region]
    by_region = np.argsort(region[top[nodes]], kind="stable")
    nodes, columns = nodes[by_region], columns[by_region]
    depth = other.view.descent.depth
    is_border = top == np.arange(len(top))
    slot = likelihood.scratch + depth - depth[top]
    up = view.toward_root.argmax(axis=1)  # the column of the node above each of ours
    operand = np.where(is_border, view.outgoing[twin, up[twin]], slot)  # at the border: a clade of our tree
    first, second = (other.tree.neighbours[nodes, (columns + turn) % 3].astype(np.int64) for turn in (1, 2))
    branch = tree.n_edges + other.branch  # the lengths of the other tree follow those of ours
    newviews = prog.newview(slot[nodes], operand[first], branch[first], operand[second], branch[second])
    is_top = is_border[nodes]
    heads = nodes[is_top]
    above = view.incoming[twin[heads], up[twin[heads]]]
    evaluates = prog.evaluate(region[heads], above, slot[heads], branch[heads])
    rows = np.stack([newviews, np.zeros_like(newviews)], axis=1)
    rows[is_top, 1] = evaluates
    program = rows[np.column_stack([np.ones(len(nodes), dtype=bool), is_top])]
    ends = np.flatnonzero(is_top) + 1 + np.arange(1, len(heads) + 1)
    pieces = np.concatenate([[0], ends[:-1]]).astype(np.int32)
    scratch = range(likelihood.scratch, int(slot[nodes].max()) + 1)
    request = prog.Request(program, len(heads), "fuse", pieces=pieces, scratch=scratch)
    lengths = np.concatenate([tree.lengths, other.tree.lengths])
    return likelihood.directed().execute(request, lengths.T).sum(axis=0)


RATCHET_SHARE = 0.25  # of the patterns, whose weights a perturbation multiplies by RATCHET_FACTOR (Nixon 1999)
RATCHET_FACTOR = 2.0
RATCHET_RADII = (5, 20)  # of the moves that a perturbation makes, and of the climb after it
LONG_BRANCH = 1.0  # substitutions per site: beyond, all places of a subtree are alike, so it is drawn nearer first
RATCHET_EPSILON = 2.0  # lnL precision of branch lengths on reweighted sites


def reweight(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The weights, each multiplied by RATCHET_FACTOR with probability RATCHET_SHARE; same shape."""
    return np.where(rng.random(weights.shape) < RATCHET_SHARE, RATCHET_FACTOR, 1.0) * weights


def resample(weights: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The weights, each multiplied by an exponential random number of mean 1 (Rubin 1981); same shape.

    This changes more than `reweight`. With several parts, climbs end where one part prevents what another one needs.
    """
    return rng.exponential(size=weights.shape) * weights


def perturb(likelihood: TreeLikelihood, lnl: float, rng: np.random.Generator) -> tuple[float, int]:
    """Perturb the likelihood's tree, climb and fuse; return lnL and the number of places where the tree is better.

    `lnl` is that of the tree, whose lengths are optimal; it never falls.
    """
    base, (jump, radius) = likelihood.tree.copy(), RATCHET_RADII
    np.minimum(likelihood.tree.lengths, LONG_BRANCH, out=likelihood.tree.lengths)
    draw = reweight if len(likelihood.models) == 1 else resample
    with likelihood.reweighted(draw(likelihood.engine.weights, rng)):
        jumped = climb_round(likelihood, likelihood.lnl(), jump, epsilon=RATCHET_EPSILON)
    back = smooth(likelihood, ROUND_EPSILON)
    if len(jumped.joints):  # a round on the original weights around the moves
        climb_round(likelihood, back, radius, jumped.joints)
    donor = likelihood.tree.copy()
    likelihood.set_tree(base)
    fused, n_taken = fuse(likelihood, donor, lnl)
    if fused <= lnl:
        return lnl, 0
    return smooth(likelihood, SMOOTHING_EPSILON), n_taken
