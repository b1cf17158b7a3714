"""Files of one tree, or of trees of an alignment's parts, one a line: one topology, each part's own branch lengths."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from os import PathLike

import numpy as np

from plltool.errors import InputError
from plltool.io.content import read_text
from plltool.io.newick import parse_newick
from plltool.tree.splits import branch_splits
from plltool.tree.topology import Tree

NO_BRANCH = -1

_log = logging.getLogger("plltool")


def read_tree(
    path: str | PathLike[str], names: Sequence[str], resolve_seed: int | None = None, unlinked: bool = False
) -> Tree:
    """The tree of a file; where they are `unlinked`, with lengths (n_edges, n_trees) if there are several, one a line.

    Other parameters as in `parse_newick`. Of several trees where lengths are not unlinked the first one is taken, and a
    warning says so.

    Raises
    ------
    InputError
        If the file cannot be read, a line is no tree of these taxa, or topologies differ.
    """
    text = read_text(path).decode("utf-8", "surrogateescape")
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if len(lines) < 2 or not all(line.endswith(";") for _, line in lines):
        return parse_newick(text, str(path), names, resolve_seed)
    if not unlinked:
        hint = "--brlen unlinked takes one for each part of the alignment"
        _log.warning("%s: found %d trees, the first one is taken; %s", path, len(lines), hint)
        return parse_newick(text, str(path), names, resolve_seed)
    first, lengths = None, []
    for number, line in lines:
        where = f"{path}: line {number}"
        tree = parse_newick(line, where, names, resolve_seed)
        first = first or tree
        branches = {row.tobytes(): branch for branch, row in enumerate(branch_splits(tree))}
        order = [branches.get(row.tobytes(), NO_BRANCH) for row in branch_splits(first)]
        if NO_BRANCH in order:
            raise InputError(f"{where}: found another topology than on line {lines[0][0]}, expected the same")
        lengths.append(tree.lengths[order])
    assert first is not None, "there are two lines at least"
    return first.with_lengths(np.stack(lengths, axis=1))
