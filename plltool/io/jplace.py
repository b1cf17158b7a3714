"""Write and read placements in the format jplace, version 3 (Matsen, Hoffman, Gallagher & Stamatakis 2012)."""

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plltool.arrays import IndexArray
from plltool.errors import InputError
from plltool.io.files import parse_object
from plltool.io.newick import parse_nodes
from plltool.io.newick_writer import find_root, write_newick
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.topology import Tree

JPLACE_VERSION = 3
_EDGE_NUMBER = re.compile(r"'(?:[^']|'')*'|\{([0-9]{1,9})\}")  # quoted names are passed over


class JplaceRow(NamedTuple):
    """A place of a query as the format has it; the fields are called and ordered as there."""

    edge_num: int  # number of the branch in the text of the tree
    likelihood: float  # lnL of the tree with the query
    like_weight_ratio: float  # likelihood over the sum of those of all places
    distal_length: float  # from the place to the end of the branch that is away from the root of the text
    pendant_length: float  # of the branch to the query


class EdgeNumbers:
    """The branches of a tree as they are numbered in jplace: in the order in which their lengths stand in the text.

    number : (n_edges,) of each branch
    distal : (n_edges,) the node at the end of each branch that is away from the root of the text
    tree : the text, with numbers
    """

    def __init__(self, tree: Tree, outgroup: str | Sequence[str] | None = None):
        visits = tree.ordered_from(find_root(tree, outgroup))
        branch_of = {node: branch for node, _, branch in visits}
        closed = _closing_order((node, parent) for node, parent, _ in visits)
        order = [branch_of[node] for node in closed]
        self.number: IndexArray = np.empty(tree.n_edges, dtype=np.intp)
        self.distal: IndexArray = np.empty(tree.n_edges, dtype=np.intp)
        self.number[order] = np.arange(tree.n_edges)
        self.distal[order] = closed
        marks = [f"{{{number}}}" for number in self.number.tolist()]
        self.tree = write_newick(tree, outgroup=outgroup, marks=marks)


def _closing_order(visits: Iterable[tuple[int, int]]) -> list[int]:
    """All nodes but the root in the order in which their texts end, from visits (node, parent) depth first."""
    order, unclosed = list[int](), list[int]()
    for node, parent in visits:
        while unclosed and unclosed[-1] != parent:
            order.append(unclosed.pop())
        unclosed.append(node)
    return order + unclosed[::-1]


def format_jplace(
    tree: str, placements: Iterable[tuple[Sequence[str], Sequence[JplaceRow]]], metadata: dict[str, str]
) -> str:
    """The text of a file, ASCII only, a query a line; `tree` has numbers, see `EdgeNumbers`.

    `placements` are names of queries with one sequence and their places, best first; `metadata` what made the file.
    """
    lines = [json.dumps({"p": rows, "n": names}, allow_nan=False) for names, rows in placements]
    parts = {"version": JPLACE_VERSION, "tree": tree, "fields": JplaceRow._fields}
    written = [f' "{name}": {json.dumps(part)}' for name, part in parts.items()]
    written.append(' "placements": [\n  ' + ",\n  ".join(lines) + "\n ]")
    return "{\n" + ",\n".join([*written, f' "metadata": {json.dumps(metadata)}']) + "\n}\n"


@dataclass(frozen=True, eq=False)
class Jplace:
    """What a file has."""

    nodes: RootedNodes  # the tree
    node_of: dict[int, int]  # the node below each branch, by the number of the branch
    # the names of the queries that have the same sequence, and their places
    queries: tuple[tuple[tuple[str, ...], tuple[JplaceRow, ...]], ...]


def parse_jplace(content: bytes, source: str) -> Jplace:
    """The content of a file, of any program."""
    given = parse_object(content, source, ("tree", "fields", "placements"), "placements (jplace)")
    try:
        text, fields = str(given["tree"]), [list(given["fields"]).index(name) for name in JplaceRow._fields]
    except ValueError as problem:
        raise InputError(f"{source}: fields: {problem}, expected {', '.join(JplaceRow._fields)}") from None
    nodes = parse_nodes(_EDGE_NUMBER.sub(lambda found: "" if found[1] else found[0], text), f"{source}: tree")
    numbers = [int(found[1]) for found in _EDGE_NUMBER.finditer(text) if found[1]]
    closed = _closing_order(enumerate(nodes.parents[1:], start=1))
    if len(set(numbers)) != len(numbers) or len(numbers) < len(closed):
        found = f"{source}: tree: found {len(set(numbers))} different numbers of branches"
        raise InputError(f"{found}, expected one at each of {len(closed)}")
    node_of = dict(zip(numbers, closed, strict=False))
    entries = given["placements"] if isinstance(given["placements"], list) else []
    queries = []
    for where, entry in ((f"{source}: query {k}", own) for k, own in enumerate(entries, start=1)):
        try:  # names stand under "n", or with their multiplicities under "nm"
            names = entry["n"] if "n" in entry else [name for name, _ in entry["nm"]]
            names = (names,) if isinstance(names, str) else tuple(map(str, names))
            rows = [[row[field] for field in fields] for row in entry["p"]]
            places = tuple(JplaceRow(int(row[0]), *(float(value) for value in row[1:])) for row in rows)
        except (ArithmeticError, LookupError, TypeError, ValueError) as problem:
            found = f"found {type(problem).__name__}: {problem}"
            raise InputError(f"{where}: {found}, expected names and places") from None
        if not places:
            raise InputError(f"{where}: found no place, expected at least one")
        if not all(math.isfinite(value) for place in places for value in place):
            raise InputError(f"{where}: found a number that is not finite")
        unknown = next((place.edge_num for place in places if place.edge_num not in node_of), None)
        if unknown is not None:
            raise InputError(f"{where}: found branch {unknown}, expected a number in the tree")
        queries.append((names, places))
    return Jplace(nodes, node_of, tuple(queries))
