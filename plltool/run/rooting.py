"""How a tree is shown: an outgroup as one clade, and mean branch lengths where the parts have separate ones."""

from collections.abc import Collection, Sequence
from typing import TypeAlias

import numpy as np

from plltool.arrays import BoolArray, FloatArray
from plltool.constants import MIDPOINT, OUTGROUP, ROOT_KINDS, ROOT_NAME
from plltool.errors import InputError, check_least, show_name, show_object
from plltool.io.newick_writer import find_root, write_newick
from plltool.tree.rooted import check_outgroup, place_midpoint, place_minimal_deviation, place_outgroup
from plltool.tree.rooted_nodes import RootedNodes, UnrootedNodes
from plltool.tree.splits import smaller_sides
from plltool.tree.topology import Tree

OutgroupLike: TypeAlias = str | Sequence[str]


def mean_tree(tree: Tree, sites: FloatArray) -> Tree:
    """The tree with the means of its parts' own branch lengths, weighted by their numbers of sites (n_parts,)."""
    return tree if tree.lengths.ndim == 1 else tree.with_lengths(tree.lengths @ (sites / sites.sum()))


def as_outgroup(given: OutgroupLike | None, names: Sequence[str], whose: str = "the alignment") -> list[str] | None:
    """The taxa of an outgroup: a name, or several; a text that is not a name is several names separated by commas.

    Raises InputError if a name is not among `names`, those of `whose`, or the outgroup has all of them or none.
    """
    if given is None:
        return None
    if names[0] == ROOT_NAME:
        why = "because the model is not time-reversible and places the root itself"
        raise InputError(f"outgroup: not allowed here, {why}")
    outgroup = _split_names(given, names)
    check_outgroup(outgroup, names, whose)
    return outgroup


def _split_names(given: OutgroupLike, names: Sequence[str]) -> list[str]:
    known = set(names)
    texts = [given] if isinstance(given, str) else given
    if not (isinstance(texts, Collection) and all(isinstance(text, str) for text in texts)):
        raise InputError(f"outgroup: found {show_object(given)}, expected a name, or several in a list")
    parts = [part for text in texts for part in ([text] if text in known else text.split(","))]
    return [part if part in known else part.strip() for part in parts]


def usable_outgroup(
    tree: Tree, given: OutgroupLike | None, left_out: BoolArray | None = None
) -> tuple[Sequence[str] | None, list[str]]:
    """The outgroup if it is one clade of the tree, otherwise its first taxon; and a warning in that case.

    `given` is as for `as_outgroup`. `left_out` (n_edges,) are branches that only resolve a multifurcation, see
    `write_newick`: they make no clade.
    """
    outgroup = None if given is None else _split_names(given, tree.names)
    try:
        find_root(tree, outgroup)
        sides = [] if outgroup is None or left_out is None else smaller_sides(tree, np.flatnonzero(left_out))
        members = set(outgroup or ())
        if not any(set(side) in (members, set(tree.names) - members) for side in sides):
            return outgroup, []
        problem = "the outgroup is not one clade: the tree does not resolve it"
    except InputError as error:
        problem = str(error)
    return _first_alone(outgroup or (), problem)


def _first_alone(outgroup: Sequence[str], problem: str) -> tuple[Sequence[str], list[str]]:
    """The first taxon of an outgroup that cannot be used, and a warning."""
    return outgroup[:1], [f"{problem}; {show_name(outgroup[0])} alone is used as the outgroup"]


def root_nodes(nodes: RootedNodes, by: str | None, outgroup: OutgroupLike | None) -> tuple[RootedNodes, str]:
    """A tree with another root, and a sentence about it; without `by` and `outgroup` the tree as it is, and "".

    `by` is one of ROOT_KINDS; an outgroup, on one side of the root, alone means "outgroup". Raises InputError if `by`
    is unknown, or does not go with the outgroup; or as the functions of `plltool.tree.rooted` do.
    """
    by = OUTGROUP if by is None and outgroup is not None else by
    if by is None:
        return nodes, ""
    if by not in ROOT_KINDS:
        raise InputError(f"root: found {show_name(by)}, expected one of: {', '.join(ROOT_KINDS)}")
    if by == OUTGROUP and outgroup is None:
        raise InputError(f"root: found {show_name(by)} without an outgroup, expected the taxa of one")
    if by != OUTGROUP and outgroup is not None:
        raise InputError(f"root: found {show_name(by)} and an outgroup, expected only one")
    check_least("root: tips of the tree", len(nodes.tips), 2)
    tree = UnrootedNodes.of(nodes)
    if outgroup is not None:
        return tree.rooted_at(place_outgroup(tree, _split_names(outgroup, list(tree.names.values())))), ""
    if by == MIDPOINT:
        return tree.rooted_at(place_midpoint(tree)), ""
    place, score, ambiguity = place_minimal_deviation(tree)
    found = f"minimal ancestor deviation {score:.4f}; ratio to the next best branch {ambiguity:.3f}"
    return tree.rooted_at(place), found


def root_by_outgroup(nodes: RootedNodes, outgroup: Sequence[str]) -> tuple[RootedNodes, list[str]]:
    """A tree with an outgroup on one side of its root; as `usable_outgroup`, with its first taxon if it is no clade."""
    try:
        return root_nodes(nodes, OUTGROUP, outgroup)[0], []
    except InputError as error:
        first, remarks = _first_alone(outgroup, str(error))
        return root_nodes(nodes, OUTGROUP, first)[0], remarks


def write_rooted(
    tree: Tree, outgroup: OutgroupLike | None, labels: Sequence[str] | None = None
) -> tuple[str, list[str]]:
    """The tree as Newick, and warnings; see `usable_outgroup` for an outgroup that is not one clade."""
    usable, remarks = usable_outgroup(tree, outgroup, tree.added)
    return write_newick(tree, outgroup=usable, labels=labels), remarks
