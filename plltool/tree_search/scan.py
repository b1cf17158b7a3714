"""SPR neighbourhoods in batches: close the gap of every prune, score every insertion within a radius.

A *prune* is an inner node (the *joint*) with one of its three subtrees; there are 3 (n_taxa - 2). Removing joint and
subtree leaves a *gap* between the other two neighbours of the joint. The *healed* branch closes the gap; its length is
optimised while both its CLAs exist. A *step* walks from the gap over one more branch: one NEWVIEW into a scratch slot
(the depth of the walk determines the number of scratch slots, its size does not) and one INSERT, which scores the
subtree in the middle of that branch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray, IntArray, WholeArray
from plltool.constants import MAX_RADIUS, SCAN_VALUES_PER_LAUNCH
from plltool.engine import program as prog
from plltool.engine.contract import Opcode
from plltool.optimise.lengths import apply_step, newton_step
from plltool.optimise.likelihood import TreeLikelihood, add_linked
from plltool.tree.constraint import ANYWHERE, Regions
from plltool.tree.operations import directed_slots

HEALING_ROUNDS = 2  # evaluations of the branches that close the gaps of pruned subtrees, with Newton steps in between
SCAN_STEPS_PER_PRUNE = 11  # insertions per subtree in a launch; on average 10.5 are within 3 branches of the gap
SCAN_PHASES = (3, 6, 10)  # depths at which a walk pauses to drop hopeless directions; one launch each
WALK_CUTOFF = 3.0  # times the typical loss: the walk ends at steps that lose more; a patient walk may pass them
WALK_LEAST = 10.0  # lnL that a step may lose in any case: with few patterns or many gaps typical losses are 1 to 5
ROAMING_STEPS = 200_000  # that free subtrees make at most in one scan; one may have to try all branches


@dataclass(frozen=True)
class Prunes:
    """Subtrees to move, and the branch that heals each gap."""

    joints: IntArray  # (n,) inner node
    columns: IntArray  # (n,) the column of its subtree
    healed: FloatArray  # (n,) length of the branch that closes the gap; (n, n_parts) if parts have lengths of their own

    def __len__(self) -> int:
        return len(self.joints)


@dataclass(frozen=True)
class Steps:
    """Scored insertions; all columns are int64."""

    prune: IndexArray  # (n,) index of the prune
    parent: IndexArray  # (n,) index of the step before, -1 at the gap; always smaller than the index of the step itself
    depth: IndexArray  # (n,) number of branches walked before this one
    source: IndexArray  # (n,) at the gap, the CLA on its other side; not used at later steps
    source_branch: IndexArray  # (n,) the branch to the CLA from which the step starts; at the gap, the healed one
    side: IndexArray  # (n,) CLA of the sibling
    side_branch: IndexArray  # (n,) its branch, as instructions name it
    beyond: IndexArray  # (n,) the CLA beyond the branch of insertion
    branch: IndexArray  # (n,) that branch
    upward: IndexArray  # (n,) 1 if that branch leads towards the root tip, else 0
    key: IndexArray  # (n,) orders the steps of a prune depth first
    prunes: Prunes  # all of them
    # (n,) lnL after regrafting the subtree in the middle of the branch, with all other lengths unchanged
    scores: FloatArray
    # median loss of lnL of the insertions next to the gap, at least 0; a scale of lnL for these data
    typical_loss: float

    def __len__(self) -> int:
        return len(self.prune)

    def best_of_each(self, most: int, least_score: float = -np.inf) -> IndexArray:
        """Indices of at most `most` steps of each prune, best scores first; none scores less than `least_score`."""
        kept = np.flatnonzero(self.scores >= least_score)
        order = kept[np.lexsort([-self.scores[kept], self.prune[kept]])]
        first = np.flatnonzero(np.diff(self.prune[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
        return order[rank < most]


STEP_COLUMNS = tuple(field.name for field in fields(Steps) if field.name not in ("prunes", "scores", "typical_loss"))
Columns = dict[str, IndexArray]
Joints: TypeAlias = WholeArray | None  # inner nodes whose subtrees move; None for all


def all_prunes(likelihood: TreeLikelihood, joints: Joints = None) -> Prunes:
    """Every prune, or those at `joints`, with healed branches."""
    tree = likelihood.tree
    if joints is None:
        joints = np.arange(tree.n_taxa, tree.n_nodes)
    nodes = np.repeat(joints.astype(np.int32), 3)
    columns = np.tile(np.arange(3, dtype=np.int32), len(joints))
    if likelihood.is_rooted:  # a subtree moves neither with the root in it nor where it leaves one taxon below the root
        left = np.stack([tree.neighbours[nodes, (columns + turn) % 3] for turn in (1, 2)])
        kept = ~likelihood.view.toward_root[nodes, columns] & (left >= tree.n_taxa).any(axis=0)
        nodes, columns = nodes[kept], columns[kept]
    return Prunes(nodes, columns, heal(likelihood, nodes, columns))


def heal(likelihood: TreeLikelihood, nodes: IntArray, columns: IntArray) -> FloatArray:
    """Lengths (n,) or (n, n_parts) of the branches that close the gaps; HEALING_ROUNDS evaluations optimise them."""
    tree, view = likelihood.tree, likelihood.view
    k1, k2 = (columns + 1) % 3, (columns + 2) % 3
    trial = tree.lengths[tree.edges[nodes, k1]] + tree.lengths[tree.edges[nodes, k2]]
    branches = likelihood.against(np.arange(len(nodes)), view.toward_root[nodes, k2])
    ends = np.column_stack([view.incoming[nodes, k1], view.incoming[nodes, k2], branches])
    healed, best_lnl = trial, np.full(trial.shape, -np.inf)
    for _ in range(HEALING_ROUNDS):
        values = add_linked(likelihood.directed().derivatives(ends, trial.T), trial)
        lnl, d1, d2 = np.moveaxis(values, -1, 0)
        better = lnl > best_lnl
        healed, best_lnl = np.where(better, trial, healed), np.maximum(lnl, best_lnl)
        trial = np.where(better, apply_step(trial, newton_step(trial, d1, d2)), (healed + trial) / 2)
    return healed


def scan(likelihood: TreeLikelihood, prunes: Prunes, radius: int, lnl: float, patient: bool = False) -> Steps:
    """Score insertions up to `radius` <= MAX_RADIUS branches from the gap; the current tree has `lnl`.

    The walk pauses at the depths of SCAN_PHASES and continues only from steps that lose less than WALK_CUTOFF times the
    median loss of the insertions next to the gap (RAxML-Light's cutoff, made relative to the data), or WALK_LEAST if
    that is more: branch lengths regain some units of lnL, however little the data tell. A `patient` walk also continues
    if an earlier step since the last pause lost less, so that it crosses narrow valleys. A phase is one launch; the
    first phase computes the P matrices for all. A step that the constraint refuses is not made, and neither are steps
    beyond it: the branches that are allowed for a subtree are connected. A subtree that may move anywhere beside a
    constraint walks on whatever it loses, because the others, held where they are, keep it from its place.
    """
    frontier, constraint = _gaps(likelihood, prunes), likelihood.constraint
    regions = None if constraint is None else Regions(constraint, likelihood.tree)
    columns: Columns = {name: np.zeros(0, dtype=np.int64) for name in STEP_COLUMNS}
    scores = np.zeros(0)
    typical_loss = 0.0
    roams = _find_roaming(likelihood, prunes, regions) if regions else np.zeros(0, dtype=bool)
    for stop in [*(phase for phase in SCAN_PHASES if phase < radius), radius]:
        first = len(scores)
        columns, frontier = _walk(likelihood, prunes, columns, frontier, stop, regions)
        scores = np.concatenate([scores, _score(likelihood, prunes, columns, first)])
        if not len(scores):  # as of 3 taxa
            break
        if first == 0:
            beside = np.sort(scores[columns["depth"] == 0])
            typical_loss = max(0.0, lnl - float(beside[[(len(beside) - 1) // 2, len(beside) // 2]].mean()))
        last = frontier["parent"]
        reached = _best_since(first, scores, columns["parent"], last) if patient else scores[last]
        onward = reached >= lnl - max(WALK_CUTOFF * typical_loss, WALK_LEAST)
        if regions:
            onward |= roams[frontier["prune"]]
        frontier = {name: column[onward] for name, column in frontier.items()}
    return Steps(**columns, prunes=prunes, scores=scores, typical_loss=typical_loss)


def _find_roaming(likelihood: TreeLikelihood, prunes: Prunes, regions: Regions) -> BoolArray:
    """Which subtrees (n,) walk on whatever they lose: the free ones, as many as ROAMING_STEPS suffice for.

    Those on long branches come first, for they are the least at home.
    """
    tree = likelihood.tree
    free = np.flatnonzero(regions.homes[prunes.joints, prunes.columns] == ANYWHERE)
    stems = tree.lengths.reshape(tree.n_edges, -1).sum(axis=1)[tree.edges[prunes.joints[free], prunes.columns[free]]]
    chosen = free[np.argsort(-stems, kind="stable")[: ROAMING_STEPS // tree.n_edges]]
    return np.isin(np.arange(len(prunes)), chosen)


def _best_since(first: int, scores: FloatArray, parent: IndexArray, last: IndexArray) -> FloatArray:
    """The best score of each walk that ends with one of the steps `last`, of its steps from number `first` on."""
    best = np.full(len(last), -np.inf)
    at = last
    while np.any(within := at >= first):
        best[within] = np.maximum(best[within], scores[at[within]])
        at = np.where(within, parent[at], -1)
    return best


def _gaps(likelihood: TreeLikelihood, prunes: Prunes) -> Columns:
    """The starts of the walks, on both sides of every gap: the node to enter, and the CLA from which it is entered."""
    tree, view = likelihood.tree, likelihood.view
    prune = np.tile(np.arange(len(prunes)), 2)
    sides = np.repeat([1, 2], len(prunes))
    joints, columns = prunes.joints[prune], prunes.columns[prune]
    near, far = (columns + sides) % 3, (columns + 3 - sides) % 3
    return {
        "prune": prune,
        "node": tree.neighbours[joints, near].astype(np.int64),
        "entry": view.back[joints, near].astype(np.int64),
        "source": view.incoming[joints, far].astype(np.int64),
        "source_branch": likelihood.against(2 * tree.n_edges + prune, view.toward_root[joints, far]),
        "key": (sides - 1) << (2 * MAX_RADIUS),
        "parent": np.full(2 * len(prunes), -1),
        "depth": np.zeros(2 * len(prunes), dtype=np.int64),
    }


def _walk(
    likelihood: TreeLikelihood, prunes: Prunes, columns: Columns, frontier: Columns, stop: int, regions: Regions | None
) -> tuple[Columns, Columns]:
    """Walk from `frontier` to `stop` branches from the gap; return all steps and the new frontier."""
    tree, view = likelihood.tree, likelihood.view
    levels = [columns]
    n_steps = len(columns["prune"])
    while True:
        inner = np.flatnonzero((frontier["node"] >= tree.n_taxa) & (frontier["depth"] < stop))
        if not len(inner):
            break
        at = {name: np.repeat(column[inner], 2) for name, column in frontier.items()}
        turn = np.tile([1, 2], len(inner))
        if regions is not None:
            homes = regions.homes[prunes.joints[at["prune"]], prunes.columns[at["prune"]]]
            admitted = regions.admit(homes, tree.edges[at["node"], (at["entry"] + turn) % 3])
            at, turn = {name: column[admitted] for name, column in at.items()}, turn[admitted]
        node, depth = at["node"], at["depth"]
        onward, side = (at["entry"] + turn) % 3, (at["entry"] + 3 - turn) % 3
        branch = tree.edges[node, onward].astype(np.int64)
        upward = view.toward_root[node, onward]
        key = at["key"] | (turn << (2 * (MAX_RADIUS - 1 - depth)))
        levels.append({
            **{name: at[name] for name in ("prune", "parent", "depth", "source", "source_branch")},
            "side": view.incoming[node, side].astype(np.int64),
            "side_branch": likelihood.against(tree.edges[node, side].astype(np.int64), view.toward_root[node, side]),
            "beyond": view.incoming[node, onward].astype(np.int64),
            "branch": branch,
            "upward": upward.astype(np.int64),
            "key": key,
        })  # fmt: skip
        frontier = {
            "prune": at["prune"],
            "node": tree.neighbours[node, onward].astype(np.int64),
            "entry": view.back[node, onward].astype(np.int64),
            "source": np.zeros(len(node), dtype=np.int64),
            "source_branch": likelihood.against(branch, ~upward),
            "key": key,
            "parent": n_steps + np.arange(len(node)),
            "depth": depth + 1,
        }
        n_steps += len(node)
    return {name: np.concatenate([level[name] for level in levels]) for name in STEP_COLUMNS}, frontier


def branch_lengths(likelihood: TreeLikelihood, prunes: Prunes) -> FloatArray:
    """The lengths that a scan uses: of every branch, of half of every branch, and of the healed branches."""
    lengths = likelihood.tree.lengths
    return np.concatenate([lengths, lengths / 2, prunes.healed])


def _score(likelihood: TreeLikelihood, prunes: Prunes, columns: Columns, first: int) -> FloatArray:
    """Scores of the steps from `first` on; earlier steps are made only where they lead there."""
    needed = np.zeros(len(columns["prune"]), dtype=bool)
    needed[first:] = True
    at = np.arange(first, len(needed))
    while len(at):
        at = columns["parent"][at]
        at = at[(at >= 0) & (at < first)]
        needed[at] = True
    order = np.flatnonzero(needed)
    order = order[np.lexsort([columns["key"][order], columns["prune"][order]])]
    lengths = branch_lengths(likelihood, prunes)
    scores = np.empty(len(needed))
    for part in _launch_parts(columns["prune"][order], likelihood):
        steps = order[part]
        request = _scan_request(likelihood, prunes, {n: c[steps] for n, c in columns.items()}, steps >= first)
        scores[steps[steps >= first]] = likelihood.directed().execute(request, lengths.T).sum(axis=0)
    return scores[first:]


def scan_limit(n_taxa: int, n_groups: int) -> int:
    """The most insertions in one launch: all of a narrow radius, if there is memory for the sums."""
    return max(1, min(SCAN_VALUES_PER_LAUNCH // n_groups, SCAN_STEPS_PER_PRUNE * directed_slots(n_taxa)))


def _launch_parts(prune: IndexArray, likelihood: TreeLikelihood) -> Iterator[slice]:
    """Split steps, ordered by prune, into launches of bounded size; each prune stays in one launch."""
    limit = scan_limit(likelihood.tree.n_taxa, likelihood.engine.n_groups)
    ends = np.flatnonzero(np.diff(prune, append=-1)) + 1
    start = 0
    while start < len(prune):
        last_fitting = np.searchsorted(ends, start + limit, side="right") - 1
        stop = int(ends[max(last_fitting, np.searchsorted(ends, start, side="right"))])
        yield slice(start, stop)
        start = stop


def _scan_request(likelihood: TreeLikelihood, prunes: Prunes, columns: Columns, scored: BoolArray) -> prog.Request:
    """The request of a launch: a PROPAGATE per prune, a NEWVIEW per step and an INSERT per `scored` step.

    Each prune is a piece of its own. The values are the scores, in the order of the steps.
    """
    tree, view = likelihood.tree, likelihood.view
    moving, first_slot = likelihood.scratch, likelihood.scratch + 1
    prune, depth = columns["prune"], columns["depth"]
    made = first_slot + depth
    source = np.where(depth == 0, columns["source"], made - 1)
    newviews = prog.newview(made, source, columns["source_branch"], columns["side"], columns["side_branch"])
    half, upward = tree.n_edges + columns["branch"], columns["upward"] == 1
    value = np.cumsum(scored) - 1
    here, beyond = likelihood.against(half, ~upward), likelihood.against(half, upward)
    inserts = prog.insert(value, made, here, columns["beyond"], beyond, moving)
    heads = np.flatnonzero(np.diff(prune, prepend=-1))
    joints, column = prunes.joints[prune[heads]], prunes.columns[prune[heads]]
    propagates = prog.propagate(moving, view.incoming[joints, column], tree.edges[joints, column])
    rows = np.stack([np.zeros_like(newviews), newviews, inserts], axis=1)
    present = np.zeros((len(prune), 3), dtype=bool)
    rows[heads, 0] = propagates
    present[heads, 0], present[:, 1], present[:, 2] = True, True, scored
    program = rows[present]
    pieces = np.flatnonzero(program[:, 0] == Opcode.PROPAGATE).astype(np.int32)
    scratch = range(moving, first_slot + int(depth.max()) + 1)
    return prog.Request(program, int(np.count_nonzero(scored)), "scan", pieces=pieces, scratch=scratch)
