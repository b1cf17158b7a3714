"""How a tree is shown: an outgroup as one clade, and mean branch lengths where the parts have lengths of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.errors import InputError, show_name
from plltool.io.newick import find_root, write_newick
from plltool.tree.splits import smaller_sides
from plltool.tree.topology import Tree


def mean_tree(tree: Tree, sites: FloatArray) -> Tree:
    """The tree with the means of its parts' own branch lengths, weighted by their numbers of sites (n_parts,)."""
    return tree if tree.lengths.ndim == 1 else tree.with_lengths(tree.lengths @ (sites / sites.sum()))


def check_outgroup(outgroup: Sequence[str] | None, names: Sequence[str], whose: str = "the alignment") -> None:
    """Raise InputError, before a run begins, if the outgroup has a name that is not in `names` or has all of them."""
    if outgroup is None:
        return
    unknown = sorted(set(outgroup).difference(names))
    if unknown:
        raise InputError(f"the outgroup's taxon {show_name(unknown[0])} is not in {whose}")
    if not 0 < len(set(outgroup)) < len(names):
        raise InputError(f"an outgroup must be some of the taxa, found {len(set(outgroup))} of {len(names)}")


def usable_outgroup(
    tree: Tree, outgroup: Sequence[str] | None, left_out: BoolArray | None = None
) -> tuple[Sequence[str] | None, list[str]]:
    """The outgroup if it is one clade of the tree, otherwise its first taxon; and a warning in that case.

    `left_out` (n_edges,) are branches that only resolve a multifurcation, see `write_newick`: they make no clade.
    """
    try:
        find_root(tree, outgroup)
        if outgroup is None or left_out is None or not _is_clade_of(tree, set(outgroup), left_out):
            return outgroup, []
        problem = "the outgroup is not one clade: the tree does not resolve it"
    except InputError as error:
        problem = str(error)
    first = list(outgroup or ())[:1]
    return first, [f"{problem}; {show_name(first[0])} alone is used as the outgroup"]


def _is_clade_of(tree: Tree, members: set[str], branches: BoolArray) -> bool:
    """Whether the taxa on one side of any of the `branches` are the members."""
    others = set(tree.names) - members
    return any(set(side) in (members, others) for side in smaller_sides(tree, np.flatnonzero(branches)))


def write_rooted(
    tree: Tree, outgroup: Sequence[str] | None, labels: Sequence[str] | None = None
) -> tuple[str, list[str]]:
    """The tree as Newick, and warnings; see `usable_outgroup` for an outgroup that is not one clade."""
    usable, remarks = usable_outgroup(tree, outgroup)
    return write_newick(tree, outgroup=usable, labels=labels), remarks
