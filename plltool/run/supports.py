"""Supports of a tree's branches: the one type for all kinds, and the texts that show them.

Each kind has its own unit, everywhere the same: fbp, ufboot, sh-alrt and lbp are in per cent; tbe, abayes
and sprta go from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, NamedTuple

from plltool.arrays import BoolArray, FloatArray, IndexArray
from plltool.constants import ROOTSTRAP, VERSION
from plltool.errors import InputError, check_kind, count, list_names, show_name
from plltool.io.files import Recorded, nan_to_null
from plltool.io.newick_writer import write_newick, write_nexus
from plltool.io.tree_files import write_splits
from plltool.progress import log
from plltool.registry import split_words
from plltool.reports.blocks import Row
from plltool.reports.methods import read_table
from plltool.reports.shown import Shown
from plltool.reports.tree_blocks import Drawn
from plltool.run.rooting import OutgroupLike, as_outgroup, usable_outgroup
from plltool.schema import Keys
from plltool.tree.rooted import drop_root, inner_branches, unrooted_branches
from plltool.tree.splits import TreeSet, smaller_sides
from plltool.tree.supports import Convergence
from plltool.tree.topology import Tree

MAX_SHOWN_ROOTS = 3  # places of the root with the best supports that are shown to people; records have all
PERCENT, SHARE, CERTAINTY = "per cent", "0 to 1", "-1 to 1"
DECIMALS = {PERCENT: 1, SHARE: 3, CERTAINTY: 3}  # of labels, at most
RECORD_DECIMALS = 10
NOT_AVAILABLE = "NA"  # the label of a branch for which there is no value


class Kind(NamedTuple):
    """What a kind of support means, its unit, and of what there is a number behind it."""

    meaning: str
    unit: str
    counted: str


KINDS = {kind: Kind(*text.split(" | ")[:3]) for kind, text in read_table("supports.txt").items()}
BRANCH = Keys("taxa:str[] length:float", {"lnl": [float], **dict.fromkeys(KINDS, float | None)})
CONVERGENCE = Keys("converged:bool", like=Convergence)


class BetterTree(NamedTuple):
    """A tree that was met on the way and is better than the one that gets supports; both lnL under the same models."""

    lnl: float
    lnl_before: float
    tree: Tree

    def __str__(self) -> str:
        return f"the ultrafast bootstrap met a better tree: lnL {self.lnl:.6f}, before {self.lnl_before:.6f}"


@dataclass(frozen=True, eq=False, repr=False)
class Supports(Recorded, Shown):
    """Supports of the branches of a tree.

    The columns of its table are taxa (on the smaller side of the branch), length, and the kinds.

    Attributes
    ----------
    tree : the tree; the two branches at a root have the supports of the one that the root divides
    values : (n_edges,) for each kind, in its unit; NaN where nothing tells, as at the branches of tips, which have
        supports of the kinds "rootstrap" and "sprta" only
    n_replicates : number of trees or resampled alignments behind each kind; nothing for "abayes" and "sprta"
    lnl : (n_edges, 3) lnL of the tree and of its two interchanges at each branch, NaN at the branches of tips; None
        without "sh-alrt", "abayes" and "lbp"
    added : (n_edges,) branches that only resolve multifurcations of the tree that was given, and have no supports;
        None if there are none
    outgroup : taxa that the written trees show as one clade, see `with_outgroup`
    better : a better tree that the ultrafast bootstrap met and did not adopt; None if there is none
    convergence : tests whether there are enough replicates, if their number was to be found
    replicates : the tree of each replicate of the ultrafast bootstrap; None without it
    has_lengths : whether the written trees have branch lengths, as the one that was given
    """

    tree: Tree
    values: dict[str, FloatArray]
    n_replicates: dict[str, int]
    lnl: FloatArray | None = None
    added: BoolArray | None = None
    outgroup: Sequence[str] | None = None
    better: BetterTree | None = None
    convergence: tuple[Convergence, ...] = ()
    replicates: TreeSet | None = None
    has_lengths: bool = True

    def __repr__(self) -> str:
        return f"<Supports: {', '.join(self.values)}, {len(self.branches)} branches, {self.tree.n_taxa} taxa>"

    def _drawn(self) -> Drawn | None:
        return self.newick(), tuple((kind, KINDS[kind].unit) for kind in self.kinds)

    def _rows(self) -> Sequence[Row]:
        return [
            {"taxa": tuple(taxa), "length": length}
            | {kind: float(values[branch]) for kind, values in self.values.items()}
            for branch, taxa, length in self._described_branches()
        ]

    def _described_branches(self) -> Iterator[tuple[int, list[str], float]]:
        """The `branches`, the taxa on the smaller side of each, and its length, which a root does not divide."""
        numbers, unrooted = self.branches, drop_root(self.tree)
        own = unrooted_branches(self.tree)[numbers]
        lengths = unrooted.lengths.reshape(unrooted.n_edges, -1).mean(axis=1)[own].tolist()
        return zip(numbers.tolist(), smaller_sides(unrooted, own), lengths, strict=True)

    @property
    def branches(self) -> IndexArray:
        """The inner branches that are the tree's own; of the two that a root divides, the first."""
        inner = inner_branches(self.tree)
        return inner if self.added is None else inner[~self.added[inner]]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds, in the order of the labels."""
        return tuple(self.values)

    def newick(self, *kinds: str) -> str:
        """The tree with supports as labels of its inner branches, several joined by "/", such as ``91.3/0.992``.

        A label belongs to its branch, whatever the outgroup. The kinds are in this order; all by default.
        """
        check_kinds(kinds or self.kinds, self.kinds)
        columns = [self.labels_of(kind) for kind in kinds or self.kinds]
        return self.newick_with(["/".join(labels) for labels in zip(*columns, strict=True)])

    def nexus(self) -> str:
        """The tree as NEXUS, all kinds being named annotations such as ``[&fbp=97,tbe=0.98]``, which FigTree reads."""
        columns = [[f"{kind}={label}" for label in self.labels_of(kind)] for kind in self.kinds]
        labels = [f"[&{','.join(own)}]" for own in zip(*columns, strict=True)]
        return write_nexus(self.newick_with(labels), "supports")

    def labels_of(self, kind: str) -> list[str]:
        """(n_edges,) the labels of one kind; "NA" at the branches of tips, and where nothing tells."""
        return [format_support(value, KINDS[kind].unit) for value in self.values[kind].tolist()]

    @Keys(
        "tree:str version:str",
        {"root_places": [Keys("taxa:str[] rootstrap:float")], "convergence": [CONVERGENCE]},
        kinds=dict[str, Annotated[Any, Keys("meaning:str unit:str replicates:int?")]],
        branches=[BRANCH],
    )
    def as_record(self, command: str | None = None) -> dict[str, Any]:
        """The kinds, the tree, the inner branches, each named by the taxa on its smaller side, and `root_places`."""
        kinds = {
            kind: {"meaning": KINDS[kind].meaning, "unit": KINDS[kind].unit, "replicates": self.n_replicates.get(kind)}
            for kind in self.kinds
        }
        branches = []
        for branch, taxa, length in self._described_branches():
            row: dict[str, Any] = {"taxa": taxa, "length": length}
            for kind, values in self.values.items():
                row[kind] = nan_to_null(round(float(values[branch]), RECORD_DECIMALS))
            branches.append(row if self.lnl is None else row | {"lnl": self.lnl[branch].tolist()})
        record = {"kinds": kinds, "tree": self.newick(), "branches": branches, "version": VERSION}
        if ROOTSTRAP in self.values:
            record["root_places"] = [{"taxa": taxa, ROOTSTRAP: value} for taxa, value in self.root_places()]
        if self.convergence:
            record["convergence"] = [asdict(test) | {"converged": test.converged} for test in self.convergence]
        return record

    def root_places(self) -> list[tuple[list[str], float]]:
        """The branches that have a root in some replicates: the taxa on the smaller side, and the rootstrap support.

        Branches of tips are among them; best first.
        """
        numbers = unrooted_branches(self.tree)
        values = dict(zip(numbers.tolist(), self.values[ROOTSTRAP].tolist(), strict=True))
        found = sorted((branch for branch, value in values.items() if value > 0), key=lambda branch: -values[branch])
        taxa = smaller_sides(drop_root(self.tree), found)
        return [(own, values[branch]) for own, branch in zip(taxa, found, strict=True)]

    def replicate_newicks(self) -> list[str]:
        """The topologies of `replicates`, a line of Newick for each."""
        if (found := self.replicates) is None:
            return []
        splits = [[found.splits[k] for k in found.of_tree(number).tolist()] for number in range(found.n_trees)]
        none = [math.nan] * len(found.names)
        return [write_splits(found.names, own, none[: len(own)], [""] * len(own), none) for own in splits]

    def texts(self) -> dict[str, str]:
        """The texts of the files that show the supports, by the ends of their names."""
        single = {f"support.{kind}.nwk": self.newick(kind) + "\n" for kind in self.kinds}
        whole = {"support.nex": self.nexus(), "support.json": self.to_json() + "\n"}
        return {"support.nwk": self.newick() + "\n"} | single | whole

    def describe(self) -> list[str]:
        """A line for each kind: what it means, its unit, and how many replicates it comes from."""
        lines = []
        for kind in self.kinds:
            number = self.n_replicates.get(kind)
            of = "" if number is None else f", {count(number, KINDS[kind].counted.removesuffix('s'))}"
            lines.append(f"{kind}: {KINDS[kind].meaning} ({KINDS[kind].unit}{of})")
        if ROOTSTRAP in self.values:
            places = self.root_places()[:MAX_SHOWN_ROOTS]
            lines += [f"root: {value:.4g} % of the replicates  {list_names(taxa)} | others" for taxa, value in places]
        return lines

    def with_outgroup(self, outgroup: OutgroupLike | None) -> Supports:
        """The same supports; the written trees show the outgroup as one clade.

        If it is not one, a warning says so, and its first taxon alone is used. Raises InputError if it has a name that
        is not in the tree, or all of them.
        """
        checked = as_outgroup(outgroup, self.tree.names, "the tree")
        usable, remarks = usable_outgroup(self.tree, checked, self.added)
        for remark in remarks:
            log.warning(remark)
        return replace(self, outgroup=usable)

    def joined(self, other: Supports) -> Supports:
        """These supports and others of the same tree."""
        return replace(
            self,
            values=self.values | other.values,
            n_replicates=self.n_replicates | other.n_replicates,
            lnl=self.lnl if other.lnl is None else other.lnl,
            better=self.better or other.better,
            convergence=self.convergence or other.convergence,
            replicates=self.replicates or other.replicates,
        )

    def in_order(self, kinds: Sequence[str]) -> Supports:
        """Those of the supports that are among `kinds`, in that order."""
        return replace(self, values={kind: self.values[kind] for kind in kinds if kind in self.values})

    def newick_with(self, labels: Sequence[str]) -> str:
        """The tree as Newick with these labels (n_edges,) of branches."""
        return write_newick(self.tree, self.has_lengths, self.outgroup, labels, self.added)


def format_support(value: float, unit: str = PERCENT) -> str:
    """The label of a branch, without zeros at the end."""
    return NOT_AVAILABLE if math.isnan(value) else f"{round(value, DECIMALS[unit]) + 0.0:g}"  # never -0


def check_kinds(given: str | Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The kinds, given as a list or with commas; InputError unless there is at least one, and all are known."""
    check_kind("supports", given, Iterable, f"some of: {', '.join(known)}")
    kinds = split_words(given)
    unknown = [kind for kind in kinds if kind not in known]
    if unknown or not kinds:
        found = show_name(unknown[0]) if unknown else "none"
        raise InputError(f"supports: found {found}, expected some of: {', '.join(known)}")
    return kinds
