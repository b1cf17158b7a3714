"""Other forms of a tree that is given as Newick text: without very short branches, and as NEXUS."""

from __future__ import annotations

import re

from plltool.io.newick import parse_nodes
from plltool.io.newick_writer import write_nodes

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
    inner = set(nodes.parents)
    labels = [nexus_label(label) for node, label in enumerate(nodes.labels) if node not in inner]
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
