"""Estimated lnL of trees on resampled alignments, and the best tree for each of these (RELL; Minh et al. 2013).

The lnL of a tree on a resampled alignment is estimated by the sum of its site lnL with the resampled weights. Each
resampled alignment keeps the best of all trees met.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.alignment.patterns import Urn, batches, resample_once
from plltool.arrays import FloatArray
from plltool.codec import saved
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.constraint import Constraint
from plltool.tree.rooted import inner_branches
from plltool.tree.splits import inner_splits
from plltool.tree.topology import Tree
from plltool.tree_search.neighbours import interchange, neighbour_sites

RELL_TIE = 0.5  # lnL within which trees are equally good (Hoang et al. 2018)
RELL_CHUNK = 4096  # patterns whose weights are converted to doubles at once

WeightArray = npt.NDArray[Any]  # uint16, or wider where parts have more sites

KEY_BYTES = 16  # length of a topology's digest


def draw_weights(parts: Sequence[FloatArray], n_sets: int, rng: np.random.Generator) -> WeightArray:
    """How often each pattern is drawn in each of `n_sets` resampled alignments: (n_patterns, n_sets).

    `parts` holds the pattern weights of each part, which is resampled by itself.
    """
    urns = [Urn(own) for own in parts]
    kind = np.promote_types(np.uint16, np.min_scalar_type(max(urn.size for urn in urns)))
    weights = np.empty((sum(map(len, parts)), n_sets), dtype=kind)
    for column in range(n_sets):
        weights[:, column] = resample_once(urns, rng)
    return weights


def estimate_lnls(site_lnl: FloatArray, weights: WeightArray) -> FloatArray:
    """The lnL of trees on resampled alignments, (..., n_sets), from their lnL of each pattern, (..., n_patterns)."""
    rows = site_lnl.reshape(-1, len(weights))
    lnls = np.zeros((len(rows), weights.shape[1]))
    for first in range(0, len(weights), RELL_CHUNK):
        some = slice(first, first + RELL_CHUNK)
        lnls += rows[:, some] @ weights[some].astype(np.float64)
    return lnls.reshape(*site_lnl.shape[:-1], -1)


@dataclass(frozen=True, eq=False)
class MetTree:
    key: bytes  # a digest of its topology
    tree: Tree  # with nearly optimal lengths
    lnls: FloatArray  # (n_sets,) its estimated lnL on each resampled alignment


class Meetings:
    """The `trees` that are met, in this order: each topology once, and none of those that are `known` by their keys."""

    def __init__(self, weights: WeightArray, known: Set[bytes] = frozenset()):
        self.trees: list[MetTree] = []
        self._weights = weights
        self._known = set(known)

    def meet(self, likelihood: TreeLikelihood) -> None:
        self._add(likelihood.tree.copy(), lambda: estimate_lnls(likelihood.site_lnl(), self._weights))

    def meet_neighbours(self, likelihood: TreeLikelihood, constraint: Constraint | None) -> None:
        """Meet those interchanges of the current tree that a resampled alignment prefers to the others and to the tree.

        Under a process that is not time-reversible no neighbour is met.
        """
        if likelihood.is_rooted:
            return
        tree = likelihood.tree
        branches = inner_branches(tree)
        lnls = np.empty((len(branches), 2, self._weights.shape[1]))
        for some in batches(len(branches), 2 * likelihood.engine.n_patterns):
            lnls[some] = estimate_lnls(neighbour_sites(likelihood, branches[some]), self._weights)
        best = np.maximum(lnls.max(axis=(0, 1)), estimate_lnls(likelihood.site_lnl(), self._weights))
        for number, which in np.argwhere((lnls > best - RELL_TIE).any(axis=2)).tolist():
            neighbour = interchange(tree, int(branches[number]), which)
            if constraint is None or constraint.is_obeyed_by(neighbour):
                self._add(neighbour, lnls[number, which].copy)

    def _add(self, tree: Tree, estimate: Callable[[], FloatArray]) -> None:
        key = _digest(tree)
        if key not in self._known:
            self._known.add(key)
            self.trees.append(MetTree(key, tree, estimate()))


@saved("trees", "chosen", "rng", "_best", "_equals", "_seen")
class RellPool:
    """The best of the trees met so far for each resampled alignment.

    Trees whose estimated lnL differ by less than RELL_TIE are equally good: one of them is kept at random, each with
    the same probability. Otherwise nodes without support would always be resolved as in the tree that was met first.
    `trees` has those that are kept, by their numbers, and `chosen` (n_sets,) the number for each alignment.
    `rng` chooses among equals.
    """

    def __init__(self, n_sets: int, rng: np.random.Generator):
        self.trees: dict[int, Tree] = {}
        self.chosen = np.zeros(n_sets, dtype=np.intp)
        self.rng = rng
        self._best = np.full(n_sets, -np.inf)
        self._equals = np.zeros(n_sets)
        self._seen: set[bytes] = set()

    @property
    def n_met(self) -> int:
        """The number of topologies met; they are numbered in this order."""
        return len(self._seen)

    @property
    def keys(self) -> Set[bytes]:
        return frozenset(self._seen)

    def add(self, met: MetTree) -> None:
        """Add a tree, unless its topology has been met before."""
        if met.key in self._seen:
            return
        number = self.n_met
        self._seen.add(met.key)
        draws = self.rng.random(len(met.lnls))
        better = met.lnls > self._best + RELL_TIE
        equal = ~better & (met.lnls > self._best - RELL_TIE)
        self._equals = np.where(better, 1, self._equals + equal)
        takes = better | (equal & (draws * self._equals < 1))
        self._best = np.maximum(self._best, met.lnls)
        self.chosen = np.where(takes, number, self.chosen)
        candidates = self.trees | {number: met.tree}
        self.trees = {kept: candidates[kept] for kept in np.unique(self.chosen).tolist()}

    def copy(self) -> RellPool:
        """A copy that does not change when this pool meets more trees."""
        other = copy.copy(self)
        other.rng, other._seen = copy.deepcopy(self.rng), self._seen.copy()
        return other


def _digest(tree: Tree) -> bytes:
    """A digest that only trees of the same topology share."""
    n_bytes = 8 * -(-tree.n_taxa // 64)
    splits = b"".join(split.to_bytes(n_bytes, "little") for split in sorted(inner_splits(tree)))
    return hashlib.sha256(splits).digest()[:KEY_BYTES]
