"""A quick estimate of how hard it will be to find the best tree of an alignment.

If the data have a clear signal, parsimony trees built in different orders agree. If the signal is weak or
contradictory, each order leads to another tree, and so does each climb. Haag et al. (2022) predict difficulty from such
features by machine learning; here a simple formula combines two of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import ENOUGH_PATTERNS_PER_TAXON, QUICK_TREES, SPARSE_WEIGHT
from plltool.tree.constraint import Constraint
from plltool.tree.splits import rf_distance
from plltool.tree.topology import Tree
from plltool.tree_search.parsimony import CodeArray, stepwise_addition


@dataclass(frozen=True)
class Difficulty:
    """The features of an alignment that the score is computed from.

    Attributes
    ----------
    disagreement : share of inner branches in which two quick trees differ, the mean over all pairs; 0 to 1
    patterns_per_taxon : number of distinct columns per sequence
    gaps : share of undetermined characters
    """

    disagreement: float
    patterns_per_taxon: float
    gaps: float

    @property
    def score(self) -> float:
        """0 (easy) to 1 (hopeless): the disagreement, plus a term if there are few patterns per taxon."""
        sparse = SPARSE_WEIGHT * math.log2(max(1.0, ENOUGH_PATTERNS_PER_TAXON / self.patterns_per_taxon))
        return min(1.0, self.disagreement + sparse)

    def __str__(self) -> str:
        return (
            f"{self.score:.2f} of 1: {QUICK_TREES} parsimony trees differ in {100 * self.disagreement:.0f} % of their "
            f"branches, {self.patterns_per_taxon:.1f} patterns per taxon, {100 * self.gaps:.0f} % gaps"
        )


def assess_difficulty(
    codes: CodeArray,
    weights: FloatArray,
    names: Sequence[str],
    rng: np.random.Generator,
    constraint: Constraint | None = None,
) -> Difficulty:
    """Estimate the difficulty of an alignment from QUICK_TREES parsimony trees; arguments as in `stepwise_addition`."""
    trees = [stepwise_addition(codes, weights, names, rng, constraint) for _ in range(QUICK_TREES)]
    pairs = list(itertools.combinations(trees, 2))
    disagreement = sum(_share_of_branches(a, b) for a, b in pairs) / len(pairs)
    anything = (1 << int(codes.max()).bit_length()) - 1
    gaps = np.average((codes == anything).mean(axis=0), weights=weights)
    return Difficulty(disagreement, codes.shape[1] / codes.shape[0], float(gaps))


def _share_of_branches(a: Tree, b: Tree) -> float:
    """The Robinson-Foulds distance as a share of the largest possible one."""
    return rf_distance(a, b) / max(1, 2 * (a.n_taxa - 3))
