"""Estimated lnL of trees on resampled alignments, and which tree each of these keeps (RELL; after Minh et al. 2013).

The lnL of a tree on a resampled alignment is estimated by the lnL of its sites, summed with the weights of the
resampled one. Each resampled alignment first makes the tree its own by all interchanges next to its inner branches that
gain there; what several gain that do not meet is taken to add up. Of all trees met it keeps the one that is best then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.constants import RELL_CHUNK, RELL_TIE
from plltool.optimise.likelihood import TreeLikelihood
from plltool.search.neighbours import adjacent_branches, inner_branches, interchange, neighbour_sites
from plltool.search.state import Arrays, pack_trees, unpack_trees
from plltool.statistics.resampling import batches, resample_once
from plltool.tree.constraint import Constraint
from plltool.tree.splits import bipartitions
from plltool.tree.topology import FloatArray, Tree

IndexArray = npt.NDArray[np.intp]
ChoiceArray = npt.NDArray[np.int8]
WeightArray = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]

KEY_BYTES = 16  # of a topology's digest
KEPT = -1  # in place of the number of an interchange: there is none


def draw_weights(part_patterns: Sequence[IndexArray], n_sets: int, rng: np.random.Generator) -> WeightArray:
    """How often each pattern is drawn in so many resampled alignments: (n_patterns, n_sets).

    `part_patterns` holds of each part the pattern of each of its sites, (n_sites of the part,); patterns are counted
    from 0 in each part, and the parts' patterns follow one another in the result. Each part is resampled by itself.
    """
    ends = np.cumsum([int(patterns.max()) + 1 for patterns in part_patterns])
    columns = [patterns + first for patterns, first in zip(part_patterns, (0, *ends[:-1]), strict=True)]
    most = max(len(patterns) for patterns in part_patterns)
    weights = np.empty((ends[-1], n_sets), dtype=np.uint16 if most < 1 << 16 else np.uint32)
    for column in range(n_sets):
        weights[:, column] = resample_once(columns, len(weights), rng)
    return weights


class RellPool:
    """Of the trees met so far, the one that is best for each resampled alignment, once that has made it its own.

    What differs by less than RELL_TIE is as good as each other, and one is taken at random, each with the same
    probability, be it of a branch and its interchanges or of the trees: lest a node without support be resolved as the
    tree that was met first has it.

    Attributes
    ----------
    trees : those that are kept, as they were met, by their numbers
    chosen : (n_sets,) the number of the tree that each resampled alignment keeps
    made : (n_inner_branches, n_sets) which interchange is made there at each of its inner branches, by its number in
        INTERCHANGES; KEPT for none
    """

    def __init__(self, weights: WeightArray, rng: np.random.Generator):
        n_sets = weights.shape[1]
        self.trees: dict[int, Tree] = {}
        self.chosen = np.zeros(n_sets, dtype=np.intp)
        self.made: ChoiceArray = np.empty((0, n_sets), dtype=np.int8)
        self._weights = weights
        self._rng = rng
        self._best = np.full(n_sets, -np.inf)
        self._equals = np.zeros(n_sets)
        self._seen: set[bytes] = set()

    @property
    def n_met(self) -> int:
        """How many topologies were met; they are numbered in this order."""
        return len(self._seen)

    def add(self, likelihood: TreeLikelihood, constraint: Constraint | None = None) -> None:
        """Take the tree as it stands into account, unless its topology is known.

        Interchanges are left out where they might break the `constraint`, which the tree obeys.
        """
        tree = likelihood.tree
        key = _digest(tree)
        if key in self._seen:
            return
        self._seen.add(key)
        branches = inner_branches(likelihood)
        own = likelihood.site_lnl()
        gains = np.empty((len(branches), 2, len(self.chosen)))
        for some in batches(len(branches), 2 * len(own)):
            gains[some] = self.estimate(neighbour_sites(likelihood, branches[some]) - own)
        if constraint is not None:
            gains[constraint.regions(tree).is_tied[branches]] = -np.inf
        gained, made = choose_interchanges(gains, adjacent_branches(likelihood, branches), self._rng)
        self._offer(tree, self.estimate(own) + gained, made)

    def _offer(self, tree: Tree, lnls: FloatArray, made: ChoiceArray) -> None:
        """Let each resampled alignment take a new tree that has these lnL (n_sets,) after the interchanges `made`."""
        number = self.n_met - 1
        draws = self._rng.random(len(lnls))
        better = lnls > self._best + RELL_TIE
        equal = ~better & (lnls > self._best - RELL_TIE)
        self._equals = np.where(better, 1, self._equals + equal)
        takes = better | (equal & (draws * self._equals < 1))
        self._best = np.maximum(self._best, lnls)
        self.chosen = np.where(takes, number, self.chosen)
        self.made = np.where(takes, made, self.made) if number else made
        candidates = self.trees | {number: tree.copy()}
        self.trees = {kept: candidates[kept] for kept in np.unique(self.chosen).tolist()}

    def estimate(self, site_lnl: FloatArray) -> FloatArray:
        """lnL of trees on each resampled alignment, (..., n_sets), by the lnL of each pattern, (..., n_patterns)."""
        rows = site_lnl.reshape(-1, site_lnl.shape[-1])
        lnls = np.zeros((len(rows), self._weights.shape[1]))
        for first in range(0, rows.shape[1], RELL_CHUNK):
            some = slice(first, first + RELL_CHUNK)
            lnls += rows[:, some] @ self._weights[some].astype(np.float64)
        return lnls.reshape(*site_lnl.shape[:-1], -1)

    def kept(self) -> Iterator[tuple[Tree, int]]:
        """The trees that resampled alignments have made their own, and of how many each of them is."""
        columns, counts = np.unique(np.vstack([self.chosen, self.made]), axis=1, return_counts=True)
        for column, count in zip(columns.T, counts.tolist(), strict=True):
            tree, made = self.trees[int(column[0])], column[1:]
            changed = np.flatnonzero(made != KEPT)
            branches = np.flatnonzero((tree.ends >= tree.n_taxa).all(axis=1))
            yield interchange(tree, branches[changed], made[changed]) if len(changed) else tree, count

    def copy(self) -> RellPool:
        """One that stays as it is when this one meets more trees; its source of random numbers is the same."""
        other = RellPool(self._weights, self._rng)
        other.trees, other.chosen, other.made = self.trees, self.chosen, self.made
        other._best, other._equals, other._seen = self._best, self._equals, self._seen.copy()
        return other

    def pack(self) -> Arrays:
        """The pool as arrays, apart from weights and random numbers; there was a tree at least."""
        return {
            "chosen": self.chosen,
            "made": self.made,
            "best": self._best,
            "equals": self._equals,
            "seen": np.frombuffer(b"".join(sorted(self._seen)), dtype=np.uint8),
            "kept numbers": np.array(list(self.trees)),
            **pack_trees("kept", list(self.trees.values())),
        }

    @classmethod
    def unpack(
        cls,
        packed: Mapping[str, npt.NDArray[Any]],
        names: Sequence[str],
        weights: WeightArray,
        rng: np.random.Generator,
    ) -> RellPool:
        """The pool that was packed, of trees over the taxa `names`."""
        pool = cls(weights, rng)
        kept = unpack_trees("kept", packed, names)
        pool.trees = dict(zip(packed["kept numbers"].tolist(), kept, strict=True))
        pool.chosen, pool.made = packed["chosen"], packed["made"]
        pool._best, pool._equals = packed["best"], packed["equals"]
        seen = packed["seen"].tobytes()
        pool._seen = {seen[at : at + KEY_BYTES] for at in range(0, len(seen), KEY_BYTES)}
        return pool


def choose_interchanges(
    gains: FloatArray, adjacent: IndexArray, rng: np.random.Generator
) -> tuple[FloatArray, ChoiceArray]:
    """The interchanges that each resampled alignment makes, of which no two are at branches that meet.

    At each branch the best of it and its interchanges is wanted, or one at random of those within RELL_TIE of it. Where
    branches meet the one that gains most has its way, to RELL_TIE.

    Parameters
    ----------
    gains : (n_branches, 2, n_sets) lnL that the interchanges gain on each resampled alignment
    adjacent : (n_branches, 4) the branches that each one meets; n_branches for none

    Returns
    -------
    gained : (n_sets,) the lnL that the best choices gain
    made : (n_branches, n_sets) interchange, 0 or 1, or KEPT
    """
    n_branches, _, n_sets = gains.shape
    best = np.maximum(gains.max(axis=1), 0.0)
    three = np.concatenate([np.zeros((n_branches, 1, n_sets)), gains], axis=1)
    draws = np.where(three > best[:, None] - RELL_TIE, rng.random(three.shape), -1.0)
    wanted = (draws.argmax(axis=1) - 1).astype(np.int8)
    strength = best + RELL_TIE * rng.random(best.shape)
    made = np.full((n_branches, n_sets), KEPT, dtype=np.int8)
    waiting = np.vstack([wanted != KEPT, np.zeros(n_sets, dtype=bool)])  # the last row is no branch
    while waiting.any():
        claims = np.where(waiting, np.vstack([strength, np.zeros(n_sets)]), -np.inf)
        wins = waiting.copy()
        wins[:-1] &= claims[:-1] > claims[adjacent].max(axis=1)
        made[wins[:-1]] = wanted[wins[:-1]]
        waiting &= ~wins
        waiting[:-1] &= ~wins[adjacent].any(axis=1)
    return np.where(made == KEPT, 0.0, best).sum(axis=0), made


def _digest(tree: Tree) -> bytes:
    """The same for trees of the same topology only."""
    rows = bipartitions(tree)
    return hashlib.sha256(rows[np.lexsort(rows.T)].tobytes()).digest()[:KEY_BYTES]
