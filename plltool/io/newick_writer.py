"""Write trees as Newick text and as NEXUS, also without their very short branches."""

import math
import re
from collections.abc import Mapping, Sequence

from plltool.arrays import BoolArray
from plltool.errors import InputError, list_names, show_name
from plltool.io.newick import parse_nodes
from plltool.tree.rooted_nodes import RootedNodes
from plltool.tree.topology import Tree

_BARE_LABEL = re.compile(r"""[^\s()\[\]{}:;,'"=\x00-\x1f\x7f-\x9f]+""")


def write_newick(
    tree: Tree,
    lengths: bool = True,
    outgroup: str | Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    left_out: BoolArray | None = None,
    marks: Sequence[str] | None = None,
) -> str:
    """Write a tree on one line, as a trifurcation at the inner node next to tip 0; with a root, as a bifurcation there.

    Children are in the order of their first tips, so that equal trees with equal names give equal strings.

    lengths : write branch lengths, in expected substitutions per site, with all digits needed to read them back.
    outgroup : name of a taxon, or names of several; the trifurcation is placed so that they are one of its clades.
    labels : (n_edges,) labels of inner branches, such as supports. Each is written at the lower node of its branch, as
        seen from the root, and so stays with its branch for any outgroup. Those of tip branches are not written.
    left_out : (n_edges,) mask of inner branches that are contracted; by default those that were `added`, see `Tree`.
    marks : (n_edges,) texts that follow the lengths of the branches.
    """
    root = find_root(tree, outgroup)
    tails = [""] * tree.n_edges
    if lengths:
        tails = [f":{length!r}" for length in tree.lengths.tolist()]
    if marks is not None:
        tails = [tail + mark for tail, mark in zip(tails, marks, strict=True)]
    texts, children = {root: ""}, {root: list[int]()}
    for node, parent, branch in tree.ordered_from(root, tree.added if left_out is None else left_out):
        if not (tree.is_rooted and node == 0):
            label = written_label(tree.names[node]) if tree.is_tip(node) else "" if labels is None else labels[branch]
            texts[node], children[node] = label + tails[branch], []
            children[parent].append(node)
    return join_newick(root, children, texts)


def join_newick(root: int, children: Mapping[int, Sequence[int]], texts: Mapping[int, str]) -> str:
    """A tree on one line, from the children of each node, none of tips, and the text that stands behind it."""
    pieces, stack = list[str](), list[int | str]([";", root])
    while stack:
        item = stack.pop()
        if isinstance(item, str) or not children[item]:
            pieces.append(item if isinstance(item, str) else texts[item])
            continue
        pieces.append("(")
        stack.append(")" + texts[item])
        for child in reversed(children[item]):
            stack += [child, ","]
        stack.pop()  # no comma in front of the first
    return "".join(pieces)


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
            below = {node}
            for other, above, _ in visits:
                if above in below:
                    below.add(other)
                    if tree.is_tip(other) and not is_member[other]:
                        found = f"{show_name(tree.names[other])} lies within it"
                        raise InputError(f"the outgroup is not one clade: {found}")
            return node if tree.is_tip(parent) else parent
        n_members[parent] += n_members[node]
    raise AssertionError("the branch at the tip that is no member has all members below")


def write_nodes(nodes: RootedNodes, marks: Sequence[str] | None = None) -> str:
    """Write a rooted tree on one line as it stands, with labels of inner nodes; `marks` follow the labels of nodes."""
    labels = [written_label(label) if label else "" for label in nodes.labels]
    texts = zip(labels, marks or [""] * len(labels), map(written_length, nodes.lengths), strict=True)
    return join_newick(0, dict(enumerate(nodes.children())), dict(enumerate(map("".join, texts))))


def written_length(length: float) -> str:
    """The length of a branch behind its node; nothing for NaN."""
    return "" if math.isnan(length) else f":{float(length)!r}"


def written_label(name: str, bare: re.Pattern[str] = _BARE_LABEL) -> str:
    """The name in Newick, quoted unless it is a `bare` label."""
    if bare.fullmatch(name):
        return name
    return "'" + name.replace("'", "''") + "'"


# The label of a tip follows ``(`` or ``,``; quoted labels elsewhere and comments are skipped as a whole.
_TIP = re.compile(r"(?P<before>[(,])(?P<label>'(?:[^']|'')*+'|[^\s()\[\]:;,']++)|'(?:[^']|'')*+'|\[[^\[\]]*+\]")
_PLAIN = re.compile(r"[A-Za-z0-9.]++")  # in NEXUS a bare underscore means a blank, and most marks have a meaning


def collapse_newick(newick: str, threshold: float) -> tuple[str, int]:
    """A Newick string without its inner branches of at most `threshold`, and their number.

    `threshold` is in substitutions per site. Labels of these branches go with them. Raises InputError for other text.
    """
    nodes = parse_nodes(newick, "the tree")
    inner = set(nodes.parents)
    gone = [0 < node in inner and nodes.lengths[node] <= threshold for node in range(len(nodes.parents))]
    return write_nodes(nodes.contracted(gone)), sum(gone)


def write_nexus(newick: str, name: str = "best", is_rooted: bool = False) -> str:
    """A NEXUS file of a tree in Newick, with a root if it `is_rooted` or two branches meet there.

    Names but of letters and digits are quoted. Comments, which must not be nested, stay where they are.
    """
    nodes = parse_nodes(newick, "the tree")
    labels = [written_label(nodes.labels[tip], _PLAIN) for tip in nodes.tips]
    waiting = iter(labels)

    def relabel(match: re.Match[str]) -> str:
        return match[0] if match["label"] is None else match["before"] + next(waiting)

    taxa = "\n    ".join(labels)
    kind = "R" if is_rooted or nodes.parents.count(0) == 2 else "U"
    return (
        f"#NEXUS\nbegin taxa;\n  dimensions ntax={len(labels)};\n  taxlabels\n    {taxa};\nend;\n"
        f"begin trees;\n  tree {name} = [&{kind}] {_TIP.sub(relabel, newick)}\nend;\n"
    )
