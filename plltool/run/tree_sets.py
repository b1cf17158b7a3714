"""From what a user gives - files or trees - to a set of trees."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TypeAlias

from plltool.io.tree_files import read_tree_set
from plltool.tree.splits import splits_of
from plltool.tree.topology import Tree
from plltool.tree.tree_set import TreeSet, make_tree_set

TreesLike: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]] | Sequence[Tree] | TreeSet


def as_tree_set(trees: TreesLike, names: Sequence[str] | None = None, whose: str = "the tree") -> TreeSet:
    """A set of trees from a file or several (Newick or NEXUS, gzipped or not), from a sequence of `Tree`, or as it is.

    Parameters
    ----------
    names : the taxa in the order wanted, those of `whose`; by default as in the first tree. A `TreeSet` keeps its own

    Raises
    ------
    InputError
        If a file cannot be read, there is no tree, or the taxa are not the same in all.
    """
    if isinstance(trees, TreeSet):
        return trees
    if isinstance(trees, (str, PathLike)):
        return read_tree_set([trees], names, whose)
    given = list(trees)
    if given and isinstance(given[0], Tree):
        order = given[0].names if names is None else names
        return make_tree_set(order, [splits_of(tree, order) for tree in given if isinstance(tree, Tree)])
    return read_tree_set([path for path in given if not isinstance(path, Tree)], names, whose)
