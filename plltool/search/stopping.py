"""When a climb has come far enough: what its last stage changed, against a rule."""

from __future__ import annotations

import math

from plltool.constants import KH_QUANTILE, RF_SHARE
from plltool.optimise.likelihood import TreeLikelihood
from plltool.tree.splits import rf_distance
from plltool.tree.topology import FloatArray


class StopRule:
    """Compares a likelihood's tree after each stage with the one before.

    Parameters
    ----------
    rule : "epsilon" never ends a climb before its last stage; "rf" does once a stage changed at most RF_SHARE of the
        inner branches (RAxML's -D); "kh" once what a stage gained could be chance, see `is_significant`
    """

    def __init__(self, rule: str, likelihood: TreeLikelihood):
        self._rule = rule
        self._likelihood = likelihood
        self._remember()

    def _remember(self) -> None:
        if self._rule == "rf":
            self._tree = self._likelihood.tree.copy()
        if self._rule == "kh":
            self._sites = self._likelihood.site_lnl()

    def says_enough(self) -> bool:
        """Whether the stage that has just ended should be the last one."""
        if self._rule == "rf":
            before = self._tree
            self._remember()
            return rf_distance(before, self._likelihood.tree) <= RF_SHARE * 2 * (before.n_taxa - 3)
        if self._rule == "kh":
            sites = self._sites
            self._remember()
            return not is_significant(sites, self._sites, self._likelihood.engine.weights[0])
        return False


def is_significant(before: FloatArray, after: FloatArray, weights: FloatArray) -> bool:
    """Whether the gain in lnL exceeds KH_QUANTILE standard errors of itself (Kishino & Hasegawa 1989).

    Parameters
    ----------
    before, after : (n_patterns,) lnL of each pattern on the two trees
    weights : (n_patterns,) how often each pattern occurs; sites are taken as independent draws
    """
    n_sites = float(weights.sum())
    difference = after - before
    gain = float(weights @ difference)
    variance = float(weights @ (difference - gain / n_sites) ** 2) / max(1.0, n_sites - 1)
    return gain > KH_QUANTILE * math.sqrt(n_sites * variance)
