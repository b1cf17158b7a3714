"""Other forms of a tree that is given as Newick text: without very short branches, and as NEXUS."""

from __future__ import annotations

import math
import re

from plltool.io.newick import RootedNodes, parse_trees
from plltool.io.newick_writer import written_label

# The label of a tip follows ``(`` or ``,``; quoted labels elsewhere and comments are skipped as a whole.
_TIP = re.compile(r"(?P<before>[(,])(?P<label>'(?:[^']|'')*+'|[^\s()\[\]:;,']++)|'(?:[^']|'')*+'|\[[^\[\]]*+\]")
_PLAIN = re.compile(r"[A-Za-z0-9.]++")  # in NEXUS a bare underscore means a blank, and most marks have a meaning


def collapse_newick(newick: str, threshold: float) -> tuple[str, int]:
    """A tree without its inner branches of at most `threshold`, and their number; nodes may have more branches then.

    Raises
    ------
    InputError
        If the text is not a tree.
    """
    nodes = next(parse_trees(newick, "the tree"))
    n_children = [0] * len(nodes.parents)
    for parent in nodes.parents[1:]:
        n_children[parent] += 1
    gone = [
        parent >= 0 and n_children[node] > 0 and nodes.lengths[node] <= threshold
        for node, parent in enumerate(nodes.parents)
    ]
    parents = list(nodes.parents)
    for node, parent in enumerate(parents):  # parents come first, so theirs are known
        if parent >= 0 and gone[parent]:
            parents[node] = parents[parent]
    children: list[list[int]] = [[] for _ in parents]
    for node in range(len(parents) - 1, 0, -1):
        if not gone[node]:
            children[parents[node]].append(node)
    return _write(nodes, children), sum(gone)


def _write(nodes: RootedNodes, children: list[list[int]]) -> str:
    """The nodes as Newick; the children of each are given in reverse order."""
    pieces: list[str] = []
    stack: list[int | str] = [";", 0]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        length = "" if math.isnan(nodes.lengths[item]) else f":{nodes.lengths[item]!r}"
        if not children[item]:
            pieces.append(written_label(nodes.labels[item]) + length)
            continue
        pieces.append("(")
        stack.append(")" + length)
        for child in children[item]:
            stack += [child, ","]
        stack.pop()  # no comma in front of the first
    return "".join(pieces)


def write_nexus(newick: str, name: str = "best") -> str:
    """A NEXUS file of one unrooted tree, given as Newick; names are quoted unless they are letters and digits only.

    Comments stay where they are, such as annotations of nodes; they must not be nested.
    """
    nodes = next(parse_trees(newick, "the tree"))
    inner = set(nodes.parents)
    labels = [nexus_label(label) for node, label in enumerate(nodes.labels) if node not in inner]
    waiting = iter(labels)

    def relabel(match: re.Match[str]) -> str:
        return match[0] if match["label"] is None else match["before"] + next(waiting)

    taxa = "\n    ".join(labels)
    return (
        f"#NEXUS\nbegin taxa;\n  dimensions ntax={len(labels)};\n  taxlabels\n    {taxa};\nend;\n"
        f"begin trees;\n  tree {name} = [&U] {_TIP.sub(relabel, newick)}\nend;\n"
    )


def nexus_label(name: str) -> str:
    """A name as NEXUS wants it."""
    return name if _PLAIN.fullmatch(name) else "'" + name.replace("'", "''") + "'"
