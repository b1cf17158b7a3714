"""Concordance factors of the branches of a tree: the result, and the texts that show it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import GCF, IC, ICA, QCF, SCF, SCFL
from plltool.io.files import Recorded, nan_to_null, tabbed
from plltool.io.newick_writer import write_nexus, written_label
from plltool.reports.blocks import Row
from plltool.reports.methods import read_table
from plltool.reports.shown import Shown
from plltool.reports.tree_blocks import Drawn
from plltool.run.results import Result
from plltool.run.supports import BRANCH, NOT_AVAILABLE, Supports
from plltool.schema import Keys

COLUMN_OF_KIND = {GCF: "gCF", QCF: "qCF", SCF: "sCF", SCFL: "sCFL", IC: "IC", ICA: "ICA"}
FACTORS = (GCF, SCF, SCFL)  # the kinds in the labels of the main tree
NUMBER = "_N"  # the end of the name of a column with numbers in place of per cent


@dataclass(frozen=True, eq=False, repr=False)
class Concordance(Recorded, Shown):
    """Concordance factors of the inner branches of a tree.

    The columns of its table are ID, those of `columns`, Label and Length, see `format_table`.

    Around a branch there are four subtrees A, B and C, D. A has the first taxon of the tree by name, and C the first
    taxon of the other end. The branch is AB|CD; its first interchange is AC|BD, its second AD|BC. Branches at nodes of
    more than three branches have no interchanges.

    Attributes
    ----------
    supports : the tree with what there is of "gcf", "scf", "scfl", "qcf", "ic" and "ica"
    columns : (n_branches,) what is known of each inner branch, in their order, by the names of the table; NaN where
        nothing tells. See `describe_columns`
    around : for each of the branches a taxon of A, B, C and D; None at nodes of more than three branches
    labels : (n_branches,) what the tree had at its inner branches before
    evaluation : the tree with its likelihood, where it was needed
    seed : of the quartets; None if there were none
    """

    supports: Supports
    columns: dict[str, FloatArray]
    around: tuple[tuple[str, ...] | None, ...]
    labels: tuple[str, ...]
    evaluation: Result | None
    seed: int | None

    def __repr__(self) -> str:
        kinds = ", ".join(self.supports.kinds)
        return f"<Concordance: {kinds}, {len(self.labels)} branches, {self.supports.tree.n_taxa} taxa>"

    def _drawn(self) -> Drawn | None:
        return self.newick(), ()

    def _rows(self) -> Sequence[Row]:
        tree = self.supports.tree
        lengths = [float(np.mean(tree.lengths[branch])) for branch in self.supports.branches]
        values = [column.tolist() for column in self.columns.values()]
        names = "ID", *self.columns, "Label", "Length"
        rows = zip(range(1, len(self.labels) + 1), *values, self.labels, lengths, strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def newick(self) -> str:
        """The tree with labels such as ``97/85.71/40.2``: what it had before, and gCF, sCF and likelihood's sCF."""
        kinds = [kind for kind in FACTORS if kind in self.supports.kinds]
        columns = [self.supports.labels_of(kind) for kind in kinds]
        rows = zip(self._spread(self.labels), *columns, strict=True)
        return self.supports.newick_with([written_label("/".join(filter(None, row))) for row in rows])

    def branch_newick(self) -> str:
        """The tree with the number of each branch in the table as its label."""
        return self.supports.newick_with(self._spread([str(number) for number in range(1, len(self.labels) + 1)]))

    def nexus(self) -> str:
        """The tree as NEXUS, all columns being named annotations such as ``[&gCF=50,gN=12]``, which FigTree reads."""
        texts = [[f"{name}={_show(row[name])}" for name in ("ID", *self.columns)] for row in self._rows()]
        marks = self._spread([f"[&{','.join(row)}]" for row in texts])
        return write_nexus(self.supports.newick_with(marks), "concordance")

    def describe_columns(self) -> dict[str, str]:
        """What each column of the table means."""
        meanings, shares = read_table("concordance.txt"), {name: name.removesuffix(NUMBER) for name in self.columns}
        return {name: meanings.get(name, f"{share} as a number") for name, share in shares.items()}

    def format_table(self) -> str:
        """A table separated by tabs, with a row for each inner branch and the columns of IQ-TREE's .cf.stat files.

        Lines that begin with # say what the columns mean. NA stands where nothing tells.
        """
        lines = [
            ["# Concordance factors of the branches AB|CD of a tree; NA: nothing tells"],
            ["# ID: number of the branch"],
            *([f"# {name}: {meaning}"] for name, meaning in self.describe_columns().items()),
            ["# Label: what the tree had at the branch before"],
            ["# Length: branch length"],
            ["ID", *self.columns, "Label", "Length"],
        ]
        for row in self._rows():
            values = [_show(row[name]) for name in ("ID", *self.columns)]
            lines.append([*values, row["Label"] or NOT_AVAILABLE, f"{row['Length']:.10g}"])
        return tabbed(lines)

    @Keys(
        "seed command:str?",
        {"evaluation": Result},
        like=Supports,
        branches=[Keys("id:int", like=BRANCH, around=(None, [str]), columns=dict[str, float | None])],
        columns=dict[str, str],
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The supports, with all columns and a quartet of taxa around each branch, and the evaluation, if any."""
        record = self.supports.as_record()
        for k, row in enumerate(record["branches"]):
            row["id"] = k + 1
            row["around"] = None if self.around[k] is None else list(self.around[k] or ())
            row["columns"] = {name: nan_to_null(float(values[k])) for name, values in self.columns.items()}
        record |= {"columns": self.describe_columns(), "seed": self.seed, "command": command}
        return record if self.evaluation is None else record | {"evaluation": self.evaluation.as_record(command)}

    def texts(self, command: str | None = None) -> dict[str, str]:
        """The files that `plltool concordance` writes, by the ends of their names; `command` as for `as_record`."""
        return {
            "cf.nwk": self.newick() + "\n",
            "cf.branch.nwk": self.branch_newick() + "\n",
            "cf.nex": self.nexus(),
            "cf.stat": self.format_table(),
            "cf.json": self.to_json(command) + "\n",
        }

    def _spread(self, labels: Sequence[str]) -> list[str]:
        whole = [""] * self.supports.tree.n_edges
        for branch, label in zip(self.supports.branches.tolist(), labels, strict=True):
            whole[branch] = label
        return whole


def _show(value: float) -> str:
    return NOT_AVAILABLE if math.isnan(value) else f"{value:.6g}"
