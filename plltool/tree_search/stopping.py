"""Rules that end a climb early, by what its last stage changed."""

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from plltool.arrays import FloatArray
from plltool.constants import KH_QUANTILE, RF_SHARE
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.splits import rf_distance
from plltool.tree.topology import Tree

Memory = npt.NDArray[Any]


class StopRule:
    """Compares the tree after each stage with the tree of the stage before.

    Parameters
    ----------
    rule : "epsilon" never ends a climb before its last stage; "rf" ends it after a stage that changed at most RF_SHARE
        of the inner branches (RAxML's -D); "kh" after a stage whose gain may be due to chance, see `is_significant`
    memory : the `memory` after the stage before, if there was one

    Attributes
    ----------
    memory : for "rf" the ends of the branches after the last stage, for "kh" the lnL of each pattern, otherwise None
    """

    def __init__(self, rule: str, likelihood: TreeLikelihood, memory: Memory | None = None):
        self._rule = rule
        self._likelihood = likelihood
        self.memory = memory

    def says_enough(self) -> bool:
        """Whether the stage that has just ended should be the last one; never true after the first stage."""
        before, likelihood = self.memory, self._likelihood
        tree = likelihood.tree
        if self._rule == "rf":
            self.memory = tree.ends.copy()
            return before is not None and _distance(before, tree) <= RF_SHARE * 2 * (tree.n_taxa - 3)
        if self._rule == "kh":
            self.memory = likelihood.site_lnl()
            return before is not None and not is_significant(before, self.memory, likelihood.engine.weights)
        return False


def _distance(ends: Memory, tree: Tree) -> int:
    """The Robinson-Foulds distance between a tree and another one, given by the ends of its branches."""
    return rf_distance(Tree.from_edges(tree.names, ends), tree)


def is_significant(before: FloatArray, after: FloatArray, weights: FloatArray) -> bool:
    """Whether the gain in lnL exceeds KH_QUANTILE standard errors of itself (Kishino & Hasegawa 1989).

    Parameters
    ----------
    before, after : (n_patterns,) lnL of each pattern on the two trees
    weights : (n_patterns,) number of sites with each pattern; sites are treated as independent draws
    """
    n_sites = float(weights.sum())
    difference = after - before
    gain = float(weights @ difference)
    variance = float(weights @ (difference - gain / n_sites) ** 2) / max(1.0, n_sites - 1)
    return gain > KH_QUANTILE * math.sqrt(n_sites * variance)
