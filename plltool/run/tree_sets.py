"""From what a user gives - files or trees - to a set of trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TypeAlias

from plltool.errors import InputError
from plltool.io.tree_files import read_tree_set
from plltool.run.inputs import TreeLike
from plltool.tree.splits import TreeSet
from plltool.tree.topology import Tree

TreesLike: TypeAlias = str | PathLike[str] | Sequence[TreeLike] | TreeSet


def as_tree_set(trees: TreesLike, names: Sequence[str] | None = None, whose: str = "the tree") -> TreeSet:
    """A set of trees from a file (Newick or NEXUS, gzipped or not), Newick text, or several of these or of trees.

    Parameters
    ----------
    trees : a file, Newick text, a sequence of files, texts and trees in any form that `evaluate` takes, or a `TreeSet`,
        which is returned as it is
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
    if isinstance(trees, Tree) or not isinstance(trees, Iterable):
        raise InputError(f"trees: found an object of type {type(trees).__name__}, expected a file, or a list of trees")
    return read_tree_set(list(trees), names, whose)
