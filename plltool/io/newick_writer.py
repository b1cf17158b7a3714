"""Write trees as Newick text and as NEXUS, also without their very short branches."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from plltool.arrays import BoolArray
from plltool.errors import InputError, show_name
from plltool.io.newick import list_names, parse_nodes
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.topology import Tree

_BARE_LABEL = re.compile(r"""[^\s()\[\]{}:;,'"=\x00-\x1f\x7f-\x9f]+""")


def write_newick(
    tree: Tree,
    lengths: bool = True,
    outgroup: str | Sequence[str] | None = None,
    digits: int | None = None,
    labels: Sequence[str] | None = None,
    left_out: BoolArray | None = None,
    marks: Sequence[str] | None = None,
) -> str:
    """Write a tree on one line, as a trifurcation at the inner node next to tip 0; with a root, as a bifurcation there.

    Children are in the order of their first tips, so that equal trees with equal names give equal strings.

    lengths : write branch lengths, in expected substitutions per site.
    outgroup : name of a taxon, or names of several; the trifurcation is placed so that they are one of its clades.
    digits : significant digits of a length; None writes as many as are needed to read the same number back.
    labels : (n_edges,) labels of inner branches, such as supports. Each is written at the lower node of its branch, as
        seen from the root, and so stays with its branch for any outgroup. Those of tip branches are not written.
    left_out : (n_edges,) mask of inner branches that are contracted.
    marks : (n_edges,) texts that follow the lengths of the branches.
    """
    root = find_root(tree, outgroup)
    tails = [""] * tree.n_edges
    if lengths:
        tails = [f":{length!r}" if digits is None else f":{length:.{digits}g}" for length in tree.lengths.tolist()]
    if marks is not None:
        tails = [tail + mark for tail, mark in zip(tails, marks, strict=True)]
    pieces = ["("]
    unclosed = [(root, "")]
    for node, parent, branch in tree.ordered_from(root, left_out):
        if tree.is_rooted and node == 0:
            continue
        while unclosed[-1][0] != parent:
            pieces.append(")" + unclosed.pop()[1])
        if pieces[-1] != "(":
            pieces.append(",")
        if tree.is_tip(node):
            pieces.append(written_label(tree.names[node]) + tails[branch])
        else:
            pieces.append("(")
            unclosed.append((node, ("" if labels is None else labels[branch]) + tails[branch]))
    pieces.extend(")" + tail for _, tail in reversed(unclosed))
    return "".join(pieces) + ";"


def find_root(tree: Tree, outgroup: str | Sequence[str] | None) -> int:
    """The inner node that `write_newick` writes as the root.

    It is the node next to tip 0; with an outgroup the node that has the outgroup as one of its clades, or the node next
    to the ingroup if that is one taxon.
    """
    if outgroup is None:
        return int(tree.neighbours[0, 0])
    members = {outgroup} if isinstance(outgroup, str) else set(outgroup)
    unknown = sorted(members.difference(tree.names))
    if unknown:
        raise InputError(f"outgroup taxa that are not in the tree: {list_names(unknown)}")
    is_member = [name in members for name in tree.names]
    if not members or all(is_member):
        raise InputError(f"an outgroup must be some of the taxa, found {len(members)} of {tree.n_taxa}")
    visits = tree.directed_from(is_member.index(False))
    n_members = [*map(int, is_member), *[0] * (tree.n_nodes - tree.n_taxa)]
    for node, parent, _ in reversed(visits):
        if n_members[node] == len(members):
            _refuse_intruders(tree, visits, node, is_member)
            return node if tree.is_tip(parent) else parent
        n_members[parent] += n_members[node]
    raise AssertionError("the branch at the tip that is no member has all members below")


def _refuse_intruders(tree: Tree, visits: list[tuple[int, int, int]], clade: int, is_member: list[bool]) -> None:
    """Raise InputError if a taxon below `clade` does not belong to the outgroup."""
    below = {clade}
    for node, parent, _ in visits:
        if parent in below:
            below.add(node)
            if tree.is_tip(node) and not is_member[node]:
                raise InputError(f"the outgroup is not one clade: {show_name(tree.names[node])} lies within it")


def write_nodes(nodes: RootedNodes, marks: Sequence[str] | None = None) -> str:
    """Write a rooted tree on one line as it stands, with labels of inner nodes; `marks` follow the labels of nodes."""
    children = nodes.children()
    pieces: list[str] = []
    stack: list[int | str] = [";", 0]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        label = written_label(nodes.labels[item]) if nodes.labels[item] else ""
        label += "" if marks is None else marks[item]
        tail = label + ("" if math.isnan(nodes.lengths[item]) else f":{nodes.lengths[item]!r}")
        if not children[item]:
            pieces.append(tail)
            continue
        pieces.append("(")
        stack.append(")" + tail)
        for child in reversed(children[item]):
            stack += [child, ","]
        stack.pop()  # no comma in front of the first
    return "".join(pieces)


def written_label(name: str) -> str:
    """The name in Newick, quoted only if necessary."""
    if _BARE_LABEL.fullmatch(name):
        return name
    return "'" + name.replace("'", "''") + "'"


# --- other forms of Newick text ---------------------------------------------------------------------------

# The label of a tip follows ``(`` or ``,``; quoted labels elsewhere and comments are skipped as a whole.
_TIP = re.compile(r"(?P<before>[(,])(?P<label>'(?:[^']|'')*+'|[^\s()\[\]:;,']++)|'(?:[^']|'')*+'|\[[^\[\]]*+\]")
_PLAIN = re.compile(r"[A-Za-z0-9.]++")  # in NEXUS a bare underscore means a blank, and most marks have a meaning


def collapse_newick(newick: str, threshold: float) -> tuple[str, int]:
    """A tree without its inner branches of at most `threshold`, and their number; nodes may have more branches then."""
    nodes = parse_nodes(newick, "the tree")
    inner = set(nodes.parents)
    gone = [0 < node in inner and nodes.lengths[node] <= threshold for node in range(len(nodes.parents))]
    return write_nodes(nodes.contracted(gone)), sum(gone)


def write_nexus(newick: str, name: str = "best", is_rooted: bool = False) -> str:
    """A NEXUS file of one tree, given as Newick, with a root if it `is_rooted` or two branches meet there.

    Names are quoted unless they are letters and digits only.

    Comments stay where they are, such as annotations of nodes; they must not be nested.
    """
    nodes = parse_nodes(newick, "the tree")
    labels = [nexus_label(nodes.labels[tip]) for tip in nodes.tips]
    waiting = iter(labels)

    def relabel(match: re.Match[str]) -> str:
        return match[0] if match["label"] is None else match["before"] + next(waiting)

    taxa = "\n    ".join(labels)
    kind = "R" if is_rooted or nodes.parents.count(0) == 2 else "U"
    return (
        f"#NEXUS\nbegin taxa;\n  dimensions ntax={len(labels)};\n  taxlabels\n    {taxa};\nend;\n"
        f"begin trees;\n  tree {name} = [&{kind}] {_TIP.sub(relabel, newick)}\nend;\n"
    )


def nexus_label(name: str) -> str:
    """A name as NEXUS wants it."""
    return name if _PLAIN.fullmatch(name) else "'" + name.replace("'", "''") + "'"
