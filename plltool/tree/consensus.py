"""Consensus trees of a set of trees: strict, majority rule, extended majority rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plltool.arrays import FloatArray, IndexArray
from plltool.constants import MAJORITY
from plltool.errors import InputError, check_one_of
from plltool.tree.splits import TreeSet, members_of

RULES = STRICT, MAJORITY_RULE, EXTENDED = "strict", "majority", "extended"


@dataclass(frozen=True, eq=False)
class Consensus:
    """A consensus tree, whose nodes may have many branches."""

    names: tuple[str, ...]  # the taxa
    splits: tuple[int, ...]  # its inner branches, as `TreeSet.splits`
    shares: FloatArray  # (n_splits,) the share of the trees that have each split
    # (n_splits,) mean length of each in the trees that have it, NaN if one of these trees gives none
    lengths: FloatArray
    pendants: FloatArray  # (n_taxa,) mean lengths of the branches at the tips, likewise

    def __repr__(self) -> str:
        return f"<Consensus: {len(self.names)} taxa, {len(self.splits)} of {len(self.names) - 3} internal branches>"


def make_consensus(trees: TreeSet, rule: str = MAJORITY_RULE, threshold: float = MAJORITY) -> Consensus:
    """The consensus tree of some trees.

    rule : "strict", splits in all trees; "majority", splits in more than `threshold` of them (Margush & McMorris 1981);
        "extended", those of the majority and then others, the most frequent first (ties: the one seen first), that
        contradict none taken before (the extended majority rule of Felsenstein's PHYLIP)
    threshold : a share from 0.5 to below 1
    """
    check_one_of("rule", rule, RULES)
    if not MAJORITY <= threshold < 1:
        raise InputError(f"threshold: found {threshold}, expected a share from {MAJORITY} to below 1")
    counts = trees.counts
    if rule == STRICT:
        chosen = np.flatnonzero(counts == trees.n_trees)
    else:
        chosen = np.flatnonzero(counts > threshold * trees.n_trees)
        if rule == EXTENDED:
            chosen = extend(trees, counts, chosen)
    lengths = np.bincount(trees.members, weights=trees.lengths, minlength=len(counts))[chosen] / counts[chosen]
    return Consensus(
        trees.names,
        tuple(trees.splits[number] for number in chosen.tolist()),
        counts[chosen] / trees.n_trees,
        lengths,
        trees.pendants.mean(axis=0),
    )


def extend(trees: TreeSet, counts: IndexArray, chosen: IndexArray) -> IndexArray:
    """The numbers `chosen` of compatible splits, followed by other splits that are compatible with all before them.

    The others are taken by `counts` (n_splits,), largest first, ties by number. Splits that no tree has are left out.
    """
    most = len(trees.names) - 3
    result = chosen.tolist()
    taken = set(result)
    holding: list[list[int]] = [[] for _ in trees.names]  # for each taxon the splits taken that have it
    for number in result:
        _enter(trees.splits[number], holding)
    for number in np.argsort(-counts, kind="stable").tolist():
        if len(result) == most or not counts[number]:
            break
        if number not in taken and _fits(trees.splits[number], holding):
            _enter(trees.splits[number], holding)
            result.append(number)
    return np.array(result, dtype=np.intp)


def _fits(split: int, holding: list[list[int]]) -> bool:
    """Whether every split taken that shares a taxon with `split` contains it or lies in it."""
    for taxon in members_of(split):
        for other in holding[taxon]:
            if split & other not in (split, other):
                return False
    return True


def _enter(split: int, holding: list[list[int]]) -> None:
    for taxon in members_of(split):
        holding[taxon].append(split)
