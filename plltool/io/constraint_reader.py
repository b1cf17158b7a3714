"""Constraint trees, Newick or NEXUS: over some of the taxa, with nodes of any degree."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np

from plltool.io.newick import number_some_tips, parse_nodes
from plltool.io.tree_files import load_nodes
from plltool.tree.constraint import Constraint, make_constraint
from plltool.tree.rooted_nodes import RootedNodes, unrooted_branches


def read_constraint(path: str | PathLike[str], names: Sequence[str]) -> Constraint | None:
    """The constraint that the first tree of a file makes, Newick or NEXUS, gzipped or not; see `parse_constraint`."""
    return constraint_from_nodes(*load_nodes(path), names)


def parse_constraint(text: str, source: str, names: Sequence[str]) -> Constraint | None:
    """The constraint that Newick text makes; branch lengths, labels of inner nodes and the root are ignored.

    Parameters
    ----------
    text : the tree, ended by ``;``
    source : the file's name, for errors
    names : of all taxa; labels stand for them as in `parse_newick`

    Returns
    -------
    The constraint; None for a tree without inner branches, which every tree obeys.

    Raises
    ------
    InputError
        If the text is not a tree, or a taxon in it occurs twice or is none of `names`.
    """
    return constraint_from_nodes(parse_nodes(text, source), source, names)


def constraint_from_nodes(nodes: RootedNodes, source: str, names: Sequence[str]) -> Constraint | None:
    """The constraint that a rooted tree makes; parameters, what is returned and errors as of `parse_constraint`."""
    taxa = number_some_tips(nodes, source, names, "the constraint")
    if len(taxa) < 3:  # no tree is left once the root is removed
        return None
    n_children = np.bincount(np.array(nodes.parents[1:], dtype=np.int64), minlength=len(nodes.parents))
    return make_constraint(names, unrooted_branches(nodes, n_children)[0], taxa)
