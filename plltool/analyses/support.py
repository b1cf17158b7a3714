"""Supports of a tree's branches by replicate trees, each kind by its name.

    import plltool
    found = plltool.supports("best.nwk", "run.bootstraps.nwk", ("fbp", "tbe"))
    print(found.values["fbp"], found.newick("tbe"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from plltool.analyses.trees import TreesLike, as_tree_set, format_share
from plltool.arrays import BoolArray, FloatArray
from plltool.constants import ABAYES, SH_ALRT
from plltool.errors import InputError
from plltool.io.newick import number_tips, unrooted_tree, write_newick
from plltool.io.tree_files import find_splits, load_nodes
from plltool.tree.splits import everyone, members_of, splits_of
from plltool.tree.supports import frequencies, transfer_supports
from plltool.tree.topology import Tree
from plltool.tree.tree_set import TreeSet

FBP, TBE, UFBOOT = "fbp", "tbe", "ufboot"
MEANINGS = {
    FBP: "Felsenstein's bootstrap proportion: per cent of the replicate trees that have the branch",
    TBE: "transfer bootstrap expectation: 0 to 1",
    UFBOOT: "ultrafast bootstrap, estimated: per cent of resampled alignments whose best tree found has it",
    SH_ALRT: "SH-like approximate likelihood ratio test: per cent of resampled alignments in which chance gains less",
    ABAYES: "posterior probability among the branch and its two interchanges: 0 to 1",
}
IN_PERCENT = (FBP, UFBOOT, SH_ALRT)
MAPPED: dict[str, Callable[[Tree, TreeSet], FloatArray]] = {FBP: frequencies, TBE: transfer_supports}


class Target(NamedTuple):
    """A tree that supports are wanted of.

    Attributes
    ----------
    tree : the tree; nodes of more than three branches are resolved somehow
    added : (n_edges,) the branches that resolve them, which are none of the tree's
    """

    tree: Tree
    added: BoolArray


@dataclass(frozen=True, eq=False)
class Supports:
    """Supports of the branches of a tree.

    Attributes
    ----------
    tree : the tree
    n_replicates : how many trees, or resampled alignments, each kind comes from; 1 of "abayes"
    values : of each kind (n_edges,), from 0 to 1, NaN at the branches of tips
    added : (n_edges,) branches that are none of the tree's, see `Target`, and stay unwritten; None if there are none
    """

    tree: Tree
    n_replicates: dict[str, int]
    values: dict[str, FloatArray]
    added: BoolArray | None = None

    def newick(self, kind: str, outgroup: Sequence[str] | None = None) -> str:
        """The tree with supports of one kind as labels: per cent, or of "tbe" from 0 to 1; errors as in `write_newick`.

        A label belongs to the branch towards the root, so that an outgroup given here moves none to another branch.
        """
        return write_newick(self.tree, outgroup=outgroup, labels=self._labels(kind), left_out=self.added)

    def newick_named(self, outgroup: Sequence[str] | None = None) -> str:
        """The tree with all kinds as named comments, such as ``[&fbp=97,tbe=0.98]``, which FigTree reads."""
        columns = [[f"{kind}={label}" for label in self._labels(kind)] for kind in self.values]
        labels = [f"[&{','.join(parts)}]" for parts in zip(*columns, strict=True)]
        return write_newick(self.tree, outgroup=outgroup, labels=labels, left_out=self.added)

    def as_record(self, outgroup: Sequence[str] | None = None) -> dict[str, Any]:
        """The supports of each inner branch, which is named by the taxa on its smaller side, and what they mean.

        The outgroup is that of the tree in it, see `newick`.
        """
        splits = list(splits_of(self.tree))
        branches = []
        for branch, split in enumerate(splits):
            if (self.tree.ends[branch] < self.tree.n_taxa).any() or (self.added is not None and self.added[branch]):
                continue
            other = everyone(self.tree.n_taxa) ^ split
            smaller = split if split.bit_count() < other.bit_count() else other
            taxa = [self.tree.names[taxon] for taxon in members_of(smaller)]
            numbers = {kind: float(self._shown(kind)[branch]) for kind in self.values}
            branches.append({"taxa": taxa, "length": float(np.mean(self.tree.lengths[branch])), **numbers})
        kinds = {kind: {"meaning": MEANINGS[kind], "replicates": self.n_replicates[kind]} for kind in self.values}
        return {"kinds": kinds, "tree": self.newick_named(outgroup), "branches": branches}

    def joined(self, other: Supports) -> Supports:
        """These and others of the same tree."""
        return Supports(self.tree, self.n_replicates | other.n_replicates, self.values | other.values, self.added)

    def in_order(self, kinds: Sequence[str]) -> Supports:
        """The same, those of `kinds` that there are, in that order."""
        order = [kind for kind in kinds if kind in self.values]
        numbers = {kind: self.n_replicates[kind] for kind in order}
        return Supports(self.tree, numbers, {kind: self.values[kind] for kind in order}, self.added)

    def _shown(self, kind: str) -> FloatArray:
        return self.values[kind] * 100 if kind in IN_PERCENT else self.values[kind]

    def _labels(self, kind: str) -> list[str]:
        values = self.values[kind].tolist()
        return [format_share(value) if kind in IN_PERCENT else f"{value:.6g}" for value in values]


def supports(
    tree: str | PathLike[str] | Tree | Target, replicates: TreesLike, kinds: Sequence[str] = (FBP,)
) -> Supports:
    """How well replicate trees support the branches of a tree.

    Parameters
    ----------
    tree : file, Newick string or Tree, or from `load_target`; nodes may have any number of branches
    replicates : trees of the same taxa, see `trees.as_tree_set`; they may have multifurcations
    kinds : "fbp" (Felsenstein 1985), "tbe" (Lemoine et al. 2018), or both

    Raises
    ------
    InputError
        If a kind is unknown, a file cannot be read or the taxa are not the same.
    """
    check_kinds(kinds, tuple(MAPPED))
    target, added = tree if isinstance(tree, Target) else load_target(tree)
    found = as_tree_set(replicates, target.names)
    values = {kind: np.where(added, np.nan, MAPPED[kind](target, found)) for kind in kinds}
    return Supports(target, dict.fromkeys(kinds, found.n_trees), values, added)


def load_target(tree: str | PathLike[str] | Tree, names: Sequence[str] | None = None) -> Target:
    """A tree that supports are wanted of; arguments as of `supports`, errors as in `tree_files.load_nodes`.

    `names` are the taxa in the order wanted; by default they are numbered as they come.
    """
    if isinstance(tree, Tree):
        return Target(tree, np.zeros(tree.n_edges, dtype=np.bool_))
    nodes, source = load_nodes(tree)
    target = unrooted_tree(nodes, source, names, resolve_seed=0)  # any will do
    own = find_splits(nodes, number_tips(nodes, source, target.names))
    return Target(target, np.array([split not in own for split in splits_of(target)]))


def count_supports(tree: Tree, replicates: TreeSet, kind: str) -> Supports:
    """The frequencies of a tree's branches in replicates, under the name of a kind."""
    return Supports(tree, {kind: replicates.n_trees}, {kind: frequencies(tree, replicates)})


def check_kinds(kinds: Sequence[str], known: Sequence[str]) -> None:
    """Raise InputError unless there is one kind at least and all are known."""
    unknown = [kind for kind in kinds if kind not in known]
    if unknown or not kinds:
        found = repr(unknown[0]) if unknown else "none"
        raise InputError(f"supports: found {found}, expected some of: {', '.join(known)}")


def supports_to_files(supports: Supports, outgroup: Sequence[str] | None = None) -> Mapping[str, str]:
    """The texts of files, by the ends of their names: one tree for each kind, and one with all kinds named."""
    texts = {f"support.{kind}.nwk": supports.newick(kind, outgroup) + "\n" for kind in supports.values}
    return texts | {"support.nwk": supports.newick_named(outgroup) + "\n"}
