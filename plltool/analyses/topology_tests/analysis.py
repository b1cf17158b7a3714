"""Which of some trees the data reject: `topology_tests`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import Any, Unpack

import numpy as np

from plltool.analyses.topology_tests.statistics import TopologyTests, run_tests
from plltool.arrays import FloatArray
from plltool.constants import DEFAULT_SEED, TEST_LEVEL, TEST_REPLICATES
from plltool.errors import InputError, check_least, shorten
from plltool.io.files import nan_to_null
from plltool.io.table_reader import format_puzzle
from plltool.io.tree_files import read_trees
from plltool.progress import ignore, log
from plltool.reports.blocks import Row
from plltool.run.evaluation import EvaluationSettings, evaluate_and_ask
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike
from plltool.run.likelihood import LENGTHS, Likelihood
from plltool.run.results import Result
from plltool.schema import Keys
from plltool.seeds import TESTS, generator
from plltool.settings import takes_keywords
from plltool.tree.splits import inner_splits
from plltool.tree.topology import Tree

P_VALUES = ("kh", "sh", "wkh", "wsh", "au")  # a small value rejects the tree
_COLUMNS: dict[str, Any] = {own.name: float | None for own in fields(TopologyTests)}
_TREE = Keys(**_COLUMNS | dict.fromkeys(("in_elw_set", "au_undetermined"), bool), tree=str)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TopologyTestResult(Result):
    """The result of topology tests; lnL, tree and model belong to the best tree.

    The columns of its table are tree (its number), and those of `TopologyTests`.

    Attributes
    ----------
    tests : the tests of all trees, in their order
    newicks : all trees, with their optimised lengths
    model_tree : index of the tree on which the model was optimised; None if it was not
    n_replicates, test_seed : number of resampled alignments, and their seed
    tree_site_lnl : (n_trees, n_sites) lnL of each site in the alignment's order
    """

    tests: TopologyTests
    newicks: tuple[str, ...]
    model_tree: int | None
    n_replicates: int
    test_seed: int
    tree_site_lnl: FloatArray

    def _rows(self) -> Sequence[Row]:
        rows = zip(*(values.tolist() for values in vars(self.tests).values()), strict=True)
        named = [dict(zip(vars(self.tests), row, strict=True)) for row in rows]
        return [{"tree": number, **row} for number, row in enumerate(named, start=1)]

    @Keys(tests=Keys("n_replicates:int seed:int model_tree:int?", trees=[_TREE]))
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The record of any result, with the tests tree by tree; missing numbers are null."""
        unclear = self.tests.au_undetermined.tolist()
        trees = [
            {"tree": newick, "au_undetermined": own} | {name: nan_to_null(row[name]) for name in vars(self.tests)}
            for newick, own, row in zip(self.newicks, unclear, self._rows(), strict=True)
        ]
        model_tree = None if self.model_tree is None else self.model_tree + 1
        described = {"n_replicates": self.n_replicates, "seed": self.test_seed, "model_tree": model_tree}
        return super().as_record(command) | {"tests": {**described, "trees": trees}}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool test` writes, by the ends of their names; `command` as for `as_record`."""
        return {"test.nwk": "\n".join(self.newicks) + "\n", "test.json": self.to_json(command) + "\n"}

    def format_site_lnl(self, _name: str | PathLike[str] = "") -> str:
        """`tree_site_lnl` in TREE-PUZZLE's format, whatever the name of the file."""
        return format_puzzle(self.tree_site_lnl)

    def format_table(self) -> list[str]:
        """A header, a line for each tree with lnL and p-values, and what + and - mean."""
        tests = self.tests
        lines = [f"{'tree':>5} {'lnL':>16} {'delta':>10}" + "".join(f"{name:>10}" for name in ("bp", *P_VALUES, "elw"))]
        for row, (lnl, delta) in enumerate(zip(tests.lnl.tolist(), tests.delta.tolist(), strict=True)):
            cells = [f"{tests.bp[row]:8.4f}  "]
            for name in P_VALUES:
                p = float(getattr(tests, name)[row])
                mark = "-" if p < TEST_LEVEL else "?" if name == "au" and tests.au_undetermined[row] else "+"
                cells.append(f"{p:8.4f} {mark}")
            cells.append(f"{tests.elw[row]:8.4f} {'+' if tests.in_elw_set[row] else '-'}")
            lines.append(f"{row + 1:>5} {lnl:16.6f} {delta:10.4f}" + "".join(cells))
        kept = f"+ not rejected, - rejected: p < {TEST_LEVEL:g}, or outside the {100 * (1 - TEST_LEVEL):g} % set of ELW"
        unclear = [
            f"? not determined: tree {row + 1} is hardly ever the best; its AU lies between {low:.2g} and {high:.2g}"
            for row, (low, high) in enumerate(zip(tests.au_low.tolist(), tests.au_high.tolist(), strict=True))
            if tests.au_undetermined[row]
        ]
        return [*lines, kept, *unclear]


@takes_keywords(EvaluationSettings)
def topology_tests(
    alignment: AlignmentLike,
    trees: str | PathLike[str] | Sequence[TreeLike],
    model: ModelLike | None = None,
    *,
    replicates: int = TEST_REPLICATES,
    seed: int = DEFAULT_SEED,
    **settings: Unpack[EvaluationSettings],
) -> TopologyTestResult:
    """lnL of several trees and the tests KH, SH, weighted KH and SH, ELW and AU, see `TopologyTests`.

    Branch lengths are optimised for each tree. The free parameters of the model are optimised on the first tree. If
    another tree is better then, they are optimised again on that tree, and the lengths of all trees again with them.
    Under a model that is not time-reversible the trees have roots, which stay on their branches.

    Parameters
    ----------
    alignment, model, settings : see `evaluate`, also for errors
    trees : a file with the trees, or a list of trees in any form that `evaluate` takes
    replicates, seed : number of resampled alignments and their seed; columns are drawn within parts

    Raises InputError if there are fewer than two trees or fewer than 1 replicates.
    """
    given: list[TreeLike] = [*read_trees(trees)] if isinstance(trees, (str, PathLike)) else list(trees)
    if len(given) < 2:
        raise InputError(f"trees: found {len(given)}, expected at least 2 to compare")
    check_least("replicates", replicates, 1)
    check_least("seed", seed, 0)
    fixed = settings.get("fixed", False)
    remarks: list[str] = []

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        pattern_lnl, trees = _evaluate_all(likelihood, given, fixed)
        weights = [patterns.weights for patterns in likelihood.patterns]
        best = int(np.argmax(pattern_lnl @ np.concatenate(weights)))
        if best != 0 and not fixed:
            likelihood.tree = trees[best]
            likelihood.optimise(listener=settings.get("listener", ignore))
            pattern_lnl, trees = _evaluate_all(likelihood, trees, fixed)
        tests = run_tests(pattern_lnl, weights, replicates, generator(seed, TESTS))
        sites = np.stack([likelihood.spread_over_sites(row) for row in pattern_lnl])
        groups: dict[frozenset[int], list[str]] = {}  # numbers of the trees that have a topology, with its root if any
        for number, tree in enumerate(trees, start=1):
            groups.setdefault(frozenset(inner_splits(tree, trees[0].names)), []).append(str(number))
        same = [shorten(", ".join(numbers)) for numbers in groups.values() if len(numbers) > 1]
        remarks[:] = [f"trees {numbers} have the same topology" for numbers in same]
        newicks = []
        for tree in trees:
            likelihood.tree = tree
            newicks.append(likelihood.newick(settings.get("outgroup")))
        likelihood.tree = trees[int(np.argmax(tests.lnl))]
        return {
            "lnl": float(tests.lnl.max()),
            "tests": tests,
            "newicks": tuple(newicks),
            "model_tree": None if fixed else best,
            "n_replicates": replicates,
            "test_seed": seed,
            "tree_site_lnl": sites,
        }

    found = evaluate_and_ask(ask, TopologyTestResult, alignment, given[0], model, {"roots": True}, **settings)
    for remark in remarks:
        log.warning(remark)
    return replace(found, warnings=(*found.warnings, *remarks))


def _evaluate_all(likelihood: Likelihood, trees: Sequence[TreeLike], fixed: bool) -> tuple[FloatArray, list[Tree]]:
    """lnL of each pattern (n_trees, n_patterns), and the trees, with optimised lengths unless they are fixed."""
    rows, optimised = [], []
    for number, tree in enumerate(trees, start=1):
        likelihood.tree = tree
        if likelihood.is_rooted and not likelihood.root_is_given:
            found = f"tree {number}: found no root, expected one, with two branches"
            raise InputError(f"{found}, because the model is not time-reversible")
        if not fixed:
            likelihood.optimise(LENGTHS)
        optimised.append(likelihood.tree)
        rows.append(likelihood.pattern_lnl())
    return np.stack(rows), optimised
