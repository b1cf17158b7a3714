"""A quick estimate of how hard it will be to find the best tree of an alignment.

If the data have a clear signal, parsimony trees built in different orders agree. If the signal is weak or
contradictory, each order leads to another tree, and so does each climb. Haag et al. (2022) predict difficulty from such
features by machine learning; here a simple formula combines two of them.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plltool.alignment.patterns import Patterns
from plltool.tree.constraint import Constraint
from plltool.tree.splits import rf_distance
from plltool.tree.topology import Tree
from plltool.tree_search.parsimony import parsimony_tree

QUICK_TREES = 3  # parsimony trees whose disagreement measures how difficult an alignment is; also of single parts
ENOUGH_PATTERNS_PER_TAXON = 10.0  # with fewer, an alignment is more difficult than the disagreement says
SPARSE_WEIGHT = 0.1  # added to the difficulty for each halving of the patterns per taxon


@dataclass(frozen=True)
class Difficulty:
    """The features of an alignment that the score is computed from."""

    disagreement: float  # share of inner branches in which two quick trees differ, the mean over all pairs; 0 to 1
    patterns_per_taxon: float  # distinct columns per sequence; of the mean part if lengths are unlinked
    gaps: float  # share of undetermined characters
    conflict: float | None = None  # as `disagreement`, of trees of single parts; None if there is one

    @property
    def score(self) -> float:
        """0 (easy) to 1 (hopeless): the mean disagreement, plus a term if there are few patterns per taxon."""
        differ = self.disagreement if self.conflict is None else (self.disagreement + self.conflict) / 2
        sparse = SPARSE_WEIGHT * math.log2(max(1.0, ENOUGH_PATTERNS_PER_TAXON / self.patterns_per_taxon))
        return min(1.0, differ + sparse)

    def __str__(self) -> str:
        parts = "" if self.conflict is None else f", and those of single partitions in {100 * self.conflict:.0f} %"
        return (
            f"{self.score:.2f} of 1: {QUICK_TREES} parsimony trees differ in {100 * self.disagreement:.0f} % of their "
            f"branches{parts}, {self.patterns_per_taxon:.1f} patterns per taxon, {100 * self.gaps:.0f} % gaps"
        )


def assess_difficulty(
    parts: Sequence[Patterns],
    names: Sequence[str],
    rng: np.random.Generator,
    constraint: Constraint | None = None,
    unlinked: bool = False,
) -> Difficulty:
    """Estimate the difficulty of an alignment from QUICK_TREES parsimony trees.

    If there are several parts, the trees of the QUICK_TREES parts with the most patterns are compared, too.
    """
    codes = np.concatenate([part.masks for part in parts], axis=1)
    weights = np.concatenate([part.weights for part in parts])
    trees = [parsimony_tree(codes, weights, names, rng, constraint, radius=0) for _ in range(QUICK_TREES)]
    conflict = None
    if len(parts) > 1:
        largest = sorted(parts, key=lambda part: -part.codes.shape[1])[:QUICK_TREES]
        alone = [parsimony_tree(part.masks, part.weights, names, rng, constraint, radius=0) for part in largest]
        conflict = _disagreement(alone)
    anything = (1 << int(codes.max()).bit_length()) - 1
    gaps = np.average((codes == anything).mean(axis=0), weights=weights)
    n_patterns = codes.shape[1] / (len(parts) if unlinked else 1)
    return Difficulty(_disagreement(trees), n_patterns / codes.shape[0], float(gaps), conflict)


def _disagreement(trees: Sequence[Tree]) -> float:
    """The share of inner branches in which two of the trees differ, the mean over all pairs."""
    pairs = list(itertools.combinations(trees, 2))
    return sum(rf_distance(a, b) / max(1, 2 * (a.n_taxa - 3)) for a, b in pairs) / len(pairs)
