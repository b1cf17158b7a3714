"""A quick look at an alignment: how hard will it be to find its best tree?

Where the data speak clearly, parsimony trees grown in different orders agree; where they contradict themselves or say
little, each order ends elsewhere, and so will a climb. Haag et al. (2022) learned to predict difficulty from such
features; here two of them make a score by a plain formula.
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
    """What was seen.

    Attributes
    ----------
    disagreement : share of inner branches in which two quick trees differ, mean over all pairs; 0 to 1
    patterns_per_taxon : distinct columns per sequence
    gaps : share of undetermined characters
    """

    disagreement: float
    patterns_per_taxon: float
    gaps: float

    @property
    def score(self) -> float:
        """0 (easy) to 1 (hopeless): the disagreement, more where there are few patterns for so many taxa."""
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
    """Look at an alignment through QUICK_TREES parsimony trees; arguments as of `stepwise_addition`."""
    trees = [stepwise_addition(codes, weights, names, rng, constraint) for _ in range(QUICK_TREES)]
    pairs = list(itertools.combinations(trees, 2))
    disagreement = sum(_share_of_branches(a, b) for a, b in pairs) / len(pairs)
    anything = (1 << int(codes.max()).bit_length()) - 1
    gaps = np.average((codes == anything).mean(axis=0), weights=weights)
    return Difficulty(disagreement, codes.shape[1] / codes.shape[0], float(gaps))


def _share_of_branches(a: Tree, b: Tree) -> float:
    """Robinson-Foulds distance over the most that it can be."""
    return rf_distance(a, b) / max(1, 2 * (a.n_taxa - 3))
