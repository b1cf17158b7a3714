"""Trees in time, from the dates on which taxa were sampled: `date`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Unpack

import numpy as np

from plltool.analyses.dating import treetime
from plltool.constants import DEFAULT_LINKAGE, DEFAULT_SEED
from plltool.errors import InputError, check_least
from plltool.io.files import tabbed
from plltool.io.newick_writer import write_nexus, write_nodes
from plltool.io.table_reader import DatesLike, SampleDate, match_dates
from plltool.progress import announce
from plltool.reports.blocks import Row
from plltool.reports.tree_blocks import MarkedTree
from plltool.reports.tree_sections import mark_dated
from plltool.run.evaluation import EvaluationSettings, evaluate_and_ask
from plltool.run.inputs import AlignmentLike, ModelLike, TreeLike, resolve_inputs
from plltool.run.likelihood import Likelihood
from plltool.run.results import Result
from plltool.run.rooting import mean_tree, root_nodes
from plltool.schema import Keys
from plltool.settings import takes_keywords
from plltool.tree.rooted_nodes import RootedNodes


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DateResult(Result):
    """A tree in time; lnL, tree and model belong to the tree in substitutions.

    Notebooks show the tree in time. The columns of the table are node, date, numeric_date, lower and upper (the years
    between which it lies; NaN if TreeTime does not tell), parent and rate, in substitutions per site and year.

    Attributes
    ----------
    dated : the tree in time, with its clock and the dates of its nodes
    seed : of what TreeTime draws at random
    """

    dated: treetime.DatedTree

    @property
    def root(self) -> treetime.DatedNode:
        """The most recent common ancestor of all taxa."""
        return self.dated.dates[0]

    @property
    def dated_newick(self) -> str:
        """The tree in time as Newick, with lengths in years and names of all nodes."""
        return write_nodes(self.dated.nodes)

    def dated_nexus(self) -> str:
        """The tree in time as NEXUS, with the dates and heights of its nodes as FigTree shows them."""
        last = max(node.year for node in self.dated.dates)
        marks = []
        for node in self.dated.dates:
            told = [f'date="{node.day}"', f"year={node.year:.4f}", f"height={last - node.year:.4f}"]
            if node.interval is not None:
                first, second = node.interval
                told += [f"year_range={{{first:.4f},{second:.4f}}}"]
                told += [f"height_range={{{last - second:.4f},{last - first:.4f}}}"]
            marks.append(f"[&{','.join([*told, f'rate={node.rate * self.dated.clock.rate:.6g}'])}]")
        return write_nexus(write_nodes(self.dated.nodes, marks), "dated", is_rooted=True)

    def describe_dates(self) -> list[str]:
        """The clock and the root for people."""
        clock, root = self.dated.clock, self.root
        within = "" if clock.interval is None else " ({:.4g} to {:.4g})".format(*clock.interval)
        between = "" if root.interval is None else " ({:.2f} to {:.2f})".format(*root.interval)
        lines = [f"clock rate: {clock.rate:.4g} substitutions per site and year{within}"]
        lines += [f"root: {root.year:.2f}{between}, {root.day}"]
        lines += [f"regression: R2 {clock.r_squared:.3f}, x-intercept {clock.origin:.2f}"]
        if clock.coalescent_time is not None:
            lines.append(f"coalescent time: {clock.coalescent_time:.4g} years")
        return lines

    def _drawn(self) -> MarkedTree:
        return mark_dated(self.dated.as_record(), self.dated_newick)

    def _rows(self) -> Sequence[Row]:
        rows = []
        for number, node in enumerate(self.dated.dates):
            lower, upper = node.interval or (math.nan, math.nan)
            parent = self.dated.dates[self.dated.nodes.parents[number]].name if number else ""
            rate = node.rate * self.dated.clock.rate
            row = {"node": node.name, "date": node.day, "numeric_date": node.year, "lower": lower, "upper": upper}
            rows.append(row | {"parent": parent, "rate": rate})
        return rows

    def format_dates(self) -> str:
        """A table separated by tabs: each node with its date, interval, and rate; the root first."""
        rows = self._rows()
        lines = [list(rows[0])]
        for row in rows:
            years = ("" if math.isnan(row[key]) else f"{row[key]:.4f}" for key in ("numeric_date", "lower", "upper"))
            lines.append([row["node"], row["date"], *years, row["parent"], f"{row['rate']:.6g}"])
        return tabbed(lines)

    def format_regression(self) -> str:
        """A table separated by tabs: the distance of each dated tip from the root, and what the clock expects."""
        lines = [["taxon", "date", "distance", "expected", "residual"]]
        for tip in self.dated.tips:
            expected = self.dated.clock.expect(tip.year)
            numbers = (tip.distance, expected, tip.distance - expected)
            lines.append([tip.name, f"{tip.year:.4f}", *(f"{number:.8f}" for number in numbers)])
        return tabbed(lines)

    @Keys("dated_tree=dated_newick dating=dated")
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The record of any result, with the tree in time, its nodes and the clock."""
        return super().as_record(command) | {"dated_tree": self.dated_newick, "dating": self.dated.as_record()}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool date` writes, by the ends of their names; `command` as for `as_record`."""
        return {
            "date.nwk": self.dated_newick + "\n",
            "date.nex": self.dated_nexus(),
            "date.tsv": self.format_dates(),
            "date.clock.tsv": self.format_regression(),
            "date.json": self.to_json(command) + "\n",
        }


def check_dates(
    dates: DatesLike, names: Sequence[str], name_column: str | None = None, date_column: str | None = None
) -> tuple[dict[str, SampleDate | None], list[str]]:
    """What `date` finds before it begins: the first and last year of each taxon, None if unknown, and warnings.

    `names` are those of the taxa; the rest, and errors, are as for `date`.
    """
    if find_spec("treetime") is None:
        raise InputError("dates of a tree need TreeTime: pip install 'plltool[dating]'")
    known, _, _, unused = match_dates(dates, name_column, date_column, names)
    n_dated = sum(own is not None for own in known.values())
    if n_dated < treetime.LEAST_DATED:
        found = f"taxa with a date: found {n_dated}, expected at least {treetime.LEAST_DATED}"
        raise InputError("; ".join([found, *unused]))
    return known, unused


@takes_keywords(EvaluationSettings)
def date(
    alignment: AlignmentLike,
    tree: TreeLike,
    dates: DatesLike,
    model: ModelLike | None = None,
    *,
    root: str = treetime.BEST,
    clock_rate: float | None = None,
    clock_error: float | None = None,
    coalescent: str | None = None,
    relaxed: tuple[float, float] | None = None,
    lengths: str = treetime.AUTO,
    name_column: str | None = None,
    date_column: str | None = None,
    seed: int = DEFAULT_SEED,
    **settings: Unpack[EvaluationSettings],
) -> DateResult:
    """Date a tree by the dates on which its taxa were sampled, with TreeTime, which must be installed.

    Branch lengths and model parameters are optimised. TreeTime (Sagulenko, Puller & Neher 2018) then finds the root and
    the dates of the nodes.

    Parameters
    ----------
    alignment, tree, model, settings : see `evaluate`, also for errors. An `outgroup` is one side of the root, in the
        middle of its branch
    dates : file, see `plltool.io.table_reader`, or dates by the names of taxa, as a mapping, a pandas Series, or a
        table of pandas or polars: years, such as 2011.37; texts, such as "2011-05-17" or "2011-05-XX"; days of
        `datetime` or pandas; first and last year; or None for an unknown date, as of taxa that are left out
    root : where the root is without an outgroup: "best", by regression of root-to-tip distances on dates; "min-dev",
        where these distances vary least; "oldest", beside the oldest taxon
    clock_rate, clock_error : rate of the clock, in substitutions per site and year, and its standard error, if they are
        known; otherwise the regression finds them
    coalescent : "const" or "skyline" for a coalescent prior on the times of nodes
    relaxed : slack and coupling of an autocorrelated clock, such as (1.0, 0.5), as those of TreeTime
    lengths : "input" for the optimised branch lengths as they are; "joint" or "marginal" for sequences and model, from
        which TreeTime finds them again. "auto" is "input" if a branch is longer than 0.1, or TreeTime has no such
        model: parts, classes of sites, rates across sites, other data than DNA and proteins
    name_column, date_column : columns of the file of dates
    seed : of what TreeTime draws at random

    Raises InputError also if fewer than three taxa have a date, or TreeTime is not installed, or finds no clock in the
    dates.
    """
    chosen = treetime.ClockSettings(root, clock_rate, clock_error, coalescent, relaxed, lengths)
    check_least("seed", seed, 0)
    data, models = resolve_inputs(alignment, model, settings.get("brlen", DEFAULT_LINKAGE))
    known, unused = check_dates(dates, data.names, name_column, date_column)

    def ask(likelihood: Likelihood) -> dict[str, Any]:
        shown = mean_tree(likelihood.tree, np.array([part.n_sites for part in likelihood.data.parts]))
        nodes, outgroup = RootedNodes.of_tree(shown), settings.get("outgroup")
        if outgroup is not None:
            nodes, _ = root_nodes(nodes, None, outgroup)
        sites = treetime.SiteData.of(likelihood.data, likelihood.models)
        announce("dating")
        return {
            "dated": treetime.date_tree(nodes, outgroup is not None, known, data.n_sites, sites, chosen, seed),
            "seed": seed,
        }

    told = replace(data, warnings=(*data.warnings, *unused))
    return evaluate_and_ask(ask, DateResult, told, tree, models, {}, **settings)
