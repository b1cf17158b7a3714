"""Write placements in the format jplace, version 3 (Matsen, Hoffman, Gallagher & Stamatakis 2012)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from plltool.arrays import IndexArray
from plltool.io.newick_writer import find_root, write_newick
from plltool.tree.topology import Tree

JPLACE_VERSION = 3


class JplaceRow(NamedTuple):
    """A place of a query as the format has it; the fields are called and ordered as there.

    Attributes
    ----------
    edge_num : number of the branch in the text of the tree
    likelihood : lnL of the tree with the query
    like_weight_ratio : likelihood over the sum of those of all places
    distal_length : from the place to the end of the branch that is away from the root of the text
    pendant_length : of the branch to the query
    """

    edge_num: int
    likelihood: float
    like_weight_ratio: float
    distal_length: float
    pendant_length: float


class EdgeNumbers:
    """The branches of a tree as they are numbered in jplace: in the order in which their lengths stand in the text.

    Attributes
    ----------
    number : (n_edges,) of each branch
    distal : (n_edges,) the node at the end of each branch that is away from the root of the text
    tree : the text, with numbers
    """

    def __init__(self, tree: Tree, outgroup: str | Sequence[str] | None = None):
        root = find_root(tree, outgroup)
        self.number: IndexArray = np.empty(tree.n_edges, dtype=np.intp)
        self.distal: IndexArray = np.empty(tree.n_edges, dtype=np.intp)
        unclosed: list[tuple[int, int]] = []
        order: list[int] = []
        for node, parent, branch in tree.ordered_from(root):
            self.distal[branch] = node
            while unclosed and unclosed[-1][0] != parent:
                order.append(unclosed.pop()[1])
            unclosed.append((node, branch))
        order += [branch for _, branch in reversed(unclosed)]
        self.number[order] = np.arange(tree.n_edges)
        marks = [f"{{{number}}}" for number in self.number.tolist()]
        self.tree = write_newick(tree, outgroup=outgroup, marks=marks)


def format_jplace(
    tree: str, placements: Iterable[tuple[Sequence[str], Sequence[JplaceRow]]], metadata: dict[str, str]
) -> str:
    """The text of a file, ASCII only, a query a line.

    Parameters
    ----------
    tree : with numbers, see `EdgeNumbers`
    placements : the names of the queries that have the same sequence, and their places, best first
    metadata : what made the file
    """
    lines = [json.dumps({"p": rows, "n": names}, allow_nan=False) for names, rows in placements]
    return (
        "{\n"
        f' "version": {JPLACE_VERSION},\n'
        f' "tree": {json.dumps(tree)},\n'
        f' "fields": {json.dumps(JplaceRow._fields)},\n'
        ' "placements": [\n  ' + ",\n  ".join(lines) + "\n ],\n"
        f' "metadata": {json.dumps(metadata)}\n'
        "}\n"
    )
