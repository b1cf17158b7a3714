"""Read files of trees, Newick or NEXUS (Maddison, Swofford & Maddison 1997), for one alignment or of many taxa.

Names are kept byte for byte in NEXUS, too: an underscore of a bare name is not turned into a blank. Comments such as
``[&R]`` are skipped, except supports of nodes, see `plltool.io.newick`. A label is the name of a taxon, a key of
TRANSLATE, or the number of a taxon.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from os import PathLike

import numpy as np

from plltool.constants import NO_NODE
from plltool.errors import InputError, show_name
from plltool.io.alignment_formats import decode_name, starts_like_phylip
from plltool.io.bridge import TreeObject, nodes_from_object
from plltool.io.files import parse_object, read_text, source_name
from plltool.io.newick import is_newick, number_some_tips, number_tips, parse_nodes, parse_trees, unrooted_tree
from plltool.io.newick_writer import write_newick, written_label
from plltool.io.nexus import Command, split_commands, starts_like_nexus
from plltool.progress import log
from plltool.tree.concordance import GeneTree
from plltool.tree.constraint import Constraint, make_constraint
from plltool.tree.rooted import drop_root, root_split
from plltool.tree.rooted_nodes import RootedNodes, unrooted_branches
from plltool.tree.splits import Splits, TreeSet, branch_splits, everyone, make_tree_set, members_of, splits_of
from plltool.tree.topology import Tree

# --- blocks of NEXUS --------------------------------------------------------------------------------------

_LABEL = r"'(?:[^']|'')*+'|[^\s,='\[\]();]++"
_TREE = re.compile(rf"\s*+(?:\*\s*+)?(?P<name>{_LABEL})\s*+(?:\[[^\[\]]*+\]\s*+)*+=(?P<newick>.*)", re.DOTALL)
_WORD = re.compile(rf"\s*+({_LABEL})")
_PAIR = re.compile(rf"\s*+({_LABEL})\s+({_LABEL})\s*+(,|\Z)")

Names = dict[str, str]  # what a label stands for


def read_nexus_trees(content: bytes, source: str) -> Iterator[RootedNodes]:
    """Every tree of the trees blocks of a NEXUS file, one after another."""
    block = ""
    numbers: Names = {}
    names: Names = {}
    for command in split_commands(content, source):
        where = f"{source}: line {command.line}"
        if command.word == "begin":
            block, names = decode_name(command.text).strip().lower(), dict(numbers)
        elif block == "taxa" and command.word == "taxlabels":
            labels = _WORD.findall(decode_name(command.text))
            numbers = {str(number): _unquote(label) for number, label in enumerate(labels, start=1)}
        elif block == "trees" and command.word == "translate":
            names = _read_translation(command, where)
        elif block == "trees" and command.word in ("tree", "utree"):
            yield _read_tree(command, where, names)


def _read_translation(command: Command, where: str) -> Names:
    text, position, names = decode_name(command.text).strip(), 0, {}
    while position < len(text):
        pair = _PAIR.match(text, position)
        if pair is None:
            found = show_name(text[position:].strip())
            raise InputError(f"{where}: found {found} in a translation, expected LABEL NAME, LABEL NAME")
        names[_unquote(pair[1])] = _unquote(pair[2])
        position = pair.end()
    return names


def _read_tree(command: Command, where: str, names: Names) -> RootedNodes:
    """One tree, labels of its tips translated."""
    match = _TREE.fullmatch(decode_name(command.text))
    if match is None or not command.is_closed:
        raise InputError(f"{where}: found a tree without a name and a final semicolon, expected TREE NAME = ... ;")
    nodes = next(parse_trees(match["newick"] + ";", f"{where}: tree {show_name(_unquote(match['name']))}"))
    taxa = set(names.values())
    for tip in nodes.tips:
        if (label := nodes.labels[tip]) in names and label not in taxa:
            nodes.labels[tip] = names[label]
    return nodes


def _unquote(label: str) -> str:
    return label[1:-1].replace("''", "'") if label.startswith("'") else label


# --- files, Newick or NEXUS -------------------------------------------------------------------------------

FIRST_TREE, THE_TREE = "the first tree", "the tree"  # whose taxa others must have
GIVEN_TEXT = "the tree given"  # what errors call Newick text that comes from no file
NO_SPLIT = -1  # all taxa


def read_tree_set(
    given: Sequence[str | PathLike[str] | Tree | TreeObject],
    names: Sequence[str] | None = None,
) -> TreeSet:
    """All trees of several sources, in their order; nodes may have any number of branches.

    Parameters
    ----------
    given : files (Newick or NEXUS, compressed or not), Newick texts, trees, and trees of other libraries
    names : the taxa, those of a tree; by default those of the first tree

    Raises InputError if a file cannot be read, holds no tree or something else, an object is no tree, or the taxa are
    not the same in all trees.
    """
    known: Sequence[str] | None = names
    owner = FIRST_TREE if names is None else THE_TREE
    trees: list[Splits] = []
    roots: list[int | None] = []
    labels: list[str] = []
    for item in given:
        if isinstance(item, Tree):
            labels.append(str(len(trees) + 1))
            tree = drop_root(item)
            known = tree.names if known is None else known
            trees.append(splits_of(tree, known))
            roots.append(root_split(item, known) if item.is_rooted else None)
            continue
        source, found = find_nodes(item)
        for number, nodes in enumerate(found, start=1):
            where = f"{source}: tree {number}"
            tips = number_tips(nodes, where, known, owner)
            if known is None:
                known = [nodes.labels[node] for node in tips]
            trees.append(find_splits(nodes, tips))
            roots.append(find_root_split(nodes, tips))
            is_file = isinstance(item, (str, PathLike)) and not is_newick(item)
            labels.append(f"{source}:{number}" if is_file else str(len(trees)))
            for warning in nodes.describe_negative(where):
                log.warning(warning)
    return make_tree_set(known or (), trees, roots, labels)


def read_gene_trees(given: Sequence[str | PathLike[str] | Tree | TreeObject], names: Sequence[str]) -> list[GeneTree]:
    """All trees of several sources, each over all or some of the taxa `names`; sources as in `read_tree_set`."""
    trees: list[GeneTree] = []
    for item in given:
        source, found = find_nodes(write_newick(item) if isinstance(item, Tree) else item)
        for number, nodes in enumerate(found, start=1):
            tips = number_some_tips(nodes, f"{source}: tree {number}", names, "the gene tree", THE_TREE)
            trees.append(GeneTree(nodes, tips))
    return trees


def find_nodes(given: str | PathLike[str] | TreeObject) -> tuple[str, Iterator[RootedNodes]]:
    """What errors call a file, Newick text or a tree of another library, and the trees in it, at least one."""
    if is_newick(given):
        return GIVEN_TEXT, _at_least_one(parse_trees(str(given), GIVEN_TEXT), GIVEN_TEXT)
    if isinstance(given, (str, PathLike)):
        return source_name(given), _at_least_one(_read_nodes(given), source_name(given))
    nodes, source = nodes_from_object(given)
    return source, iter([nodes])


def _at_least_one(found: Iterable[RootedNodes], source: str) -> Iterator[RootedNodes]:
    """The trees that were found; InputError at their end if there is none."""
    nodes = None
    for nodes in found:
        yield nodes
    if nodes is None:
        raise InputError(f"{source}: found no tree, expected at least one")


def read_trees(
    path: str | PathLike[str], names: Sequence[str] | None = None, resolve_seed: int | None = None
) -> list[Tree]:
    """All trees of a file, compressed or not; parameters, warnings and errors as in `parse_newick`.

    Raises InputError also if the file cannot be read or holds no tree.
    """
    source = source_name(path)
    found = enumerate(_at_least_one(_read_nodes(path), source), start=1)
    return [unrooted_tree(nodes, f"{source}: tree {number}", names, resolve_seed) for number, nodes in found]


def load_nodes(given: str | PathLike[str] | TreeObject, called: str = GIVEN_TEXT) -> tuple[RootedNodes, str]:
    """The first tree of a file, Newick or NEXUS, compressed or not, of Newick text or another library, and its name.

    A warning says if there are more. Text is `called` so.
    """
    if is_newick(given):
        return parse_nodes(str(given), called), called
    source, found = find_nodes(given)
    nodes = next(found)
    with suppress(InputError):  # what follows may be anything
        if next(found, None) is not None:
            log.warning("%s: found several trees, the first one is taken", source)
    return nodes, source


def find_splits(nodes: RootedNodes, tips: dict[int, int]) -> Splits:
    """The splits of a rooted tree and the lengths of their branches, NaN where none is given.

    `tips` holds the number of each tip. The root is removed: two branches with one split become one, as
    long as both together.
    """
    splits: dict[int, float] = {}
    for node, split in _find_branches(nodes, tips):
        length = nodes.lengths[node]
        if split in splits:
            parts = [part for part in (splits[split], length) if not math.isnan(part)]
            length = sum(parts) if parts else math.nan
        splits[split] = length
    return splits


def find_root_split(nodes: RootedNodes, tips: dict[int, int]) -> int | None:
    """The split of the branch on which a tree has its root; None unless the root has two branches."""
    children, top = nodes.children(), 0
    while len(children[top]) == 1:
        top = children[top][0]
    if len(children[top]) != 2:
        return None
    return next(split for node, split in _find_branches(nodes, tips) if node == children[top][0])


def find_labels(nodes: RootedNodes, tips: dict[int, int]) -> dict[int, str]:
    """What stands at the inner branches of a rooted tree, such as supports, by their splits; see `find_splits`."""
    labels: dict[int, str] = {}
    for node, split in _find_branches(nodes, tips):
        if node not in tips and nodes.labels[node]:
            labels.setdefault(split, nodes.labels[node])
    return labels


def _find_branches(nodes: RootedNodes, tips: dict[int, int]) -> Iterator[tuple[int, int]]:
    """The nodes that have a branch above them, and its split."""
    everybody = everyone(len(tips))
    below = [0] * len(nodes.parents)
    for node, number in tips.items():
        below[node] = 1 << number
    for node in range(len(below) - 1, 0, -1):
        below[nodes.parents[node]] |= below[node]
    for node, parent in enumerate(nodes.parents):
        if parent != NO_NODE and below[node] != everybody:
            yield node, everybody ^ below[node] if below[node] & 1 else below[node]


def _read_nodes(path: str | PathLike[str]) -> Iterator[RootedNodes]:
    content, source = read_tree_text(path)
    if starts_like_nexus(content):
        return read_nexus_trees(content, source)
    return parse_trees(content.decode("utf-8", "surrogateescape"), source)


def read_tree_text(path: str | PathLike[str]) -> tuple[bytes, str]:
    """The content of a file of trees, or the tree in the record of a run, and what errors call it."""
    content, source = read_text(path), source_name(path)
    start = content.lstrip()
    if start.startswith(b">") or starts_like_phylip(start):
        raise InputError(f"{source}: found an alignment, expected a tree (Newick or NEXUS), or the record of a run")
    if not start.startswith(b"{"):
        return content, source
    record = parse_object(content, source, ("tree",), "the record of a run")
    return str(record["tree"]).encode("utf-8", "surrogateescape"), f"{source}: tree"


def write_splits(
    names: Sequence[str],
    splits: Sequence[int],
    lengths: Sequence[float],
    labels: Sequence[str],
    pendants: Sequence[float],
) -> str:
    """Write a tree on one line, given by its inner splits; nodes may have many branches.

    It is rooted at the node next to taxon 0; children are in the order of their first taxa.

    splits : as in `TreeSet`; of any two that overlap one holds the other.
    lengths, labels : of the splits' branches; a length that is NaN is not written.
    pendants : (n_taxa,) lengths of the branches at the tips.
    """
    order = sorted(range(len(splits)), key=lambda k: -splits[k].bit_count())
    holder = [NO_SPLIT] * len(names)  # the smallest split so far that holds each taxon
    children: dict[int, list[tuple[int, bool, int]]] = {k: [] for k in (NO_SPLIT, *order)}
    for k in order:
        members = list(members_of(splits[k]))
        children[holder[members[0]]].append((members[0], False, k))
        for taxon in members:
            holder[taxon] = k
    for taxon, smallest in enumerate(holder):
        children[smallest].append((taxon, True, taxon))
    text: dict[int, str] = {}
    for k in (*reversed(order), NO_SPLIT):
        parts = [
            written_label(names[i]) + _tail(pendants[i]) if is_tip else text[i] + labels[i] + _tail(lengths[i])
            for _, is_tip, i in sorted(children[k])
        ]
        text[k] = f"({','.join(parts)})"
    return text[NO_SPLIT] + ";"


def _tail(length: float) -> str:
    return "" if math.isnan(length) else f":{float(length)!r}"


NO_BRANCH = -1


def read_tree(
    path: str | PathLike[str],
    names: Sequence[str] | None = None,
    resolve_seed: int | None = None,
    unlinked: bool = False,
) -> Tree:
    """The tree of a file, Newick, NEXUS or the record of a run, compressed or not.

    If there are several trees, in Newick one per line, the first one is used and a warning says so; with `unlinked` the
    tree has the lengths of all of them: (n_edges, n_trees). For the other parameters and `Tree.warnings` see
    `parse_newick`. The path ``-`` is standard input.

    Raises InputError if the file cannot be read or has no tree, the taxa are not `names`, or topologies differ.
    """
    content, source = read_tree_text(path)
    if starts_like_nexus(content):
        found = [(f"{source}: tree {k}", nodes) for k, nodes in enumerate(read_nexus_trees(content, source), start=1)]
        n_trees = len(found)
    else:
        n_trees, found = _read_newick(content.decode("utf-8", "surrogateescape"), source, unlinked)
    if not found:
        raise InputError(f"{source}: found no tree, expected at least one")
    if n_trees > 1 and unlinked:
        return _join_lengths([(where, unrooted_tree(nodes, where, names, resolve_seed)) for where, nodes in found])
    if n_trees > 1:
        hint = "--brlen unlinked takes one for each partition of the alignment"
        log.warning("%s: found %d trees, the first one is taken; %s", source, n_trees, hint)
    return unrooted_tree(found[0][1], source, names, resolve_seed)


def _read_newick(text: str, source: str, every: bool) -> tuple[int, list[tuple[str, RootedNodes]]]:
    """The number of trees, one per line, and where each is with its nodes; only the first one unless `every`."""
    lines = [(f"{source}: line {k}", line) for k, line in enumerate(text.split("\n"), start=1) if line.strip()]
    n_trees = len(lines) if all(line.rstrip().endswith(";") for _, line in lines) else 1
    if every and n_trees > 1:
        return n_trees, [(where, parse_nodes(line.strip(), where)) for where, line in lines]
    return n_trees, [(source, parse_nodes(text, source))]


def _join_lengths(trees: list[tuple[str, Tree]]) -> Tree:
    """The first tree with the lengths of all, given with their places in the file; InputError if topologies differ."""
    origin, first = trees[0]
    lengths = []
    for where, tree in trees:
        branches = {split: branch for branch, split in enumerate(branch_splits(tree, first.names))}
        order = [branches.get(split, NO_BRANCH) for split in branch_splits(first)]
        if NO_BRANCH in order:
            raise InputError(f"{where}: the topology differs from that in {origin}, expected the same topology")
        lengths.append(tree.lengths[order])
    joined = first.with_lengths(np.stack(lengths, axis=1))
    joined.warnings = tuple(warning for _, tree in trees for warning in tree.warnings)
    return joined


# --- constraints: trees over some of the taxa, with nodes of any degree -----------------------------------


def read_constraint(given: str | PathLike[str] | TreeObject, names: Sequence[str]) -> Constraint | None:
    """The constraint that a tree makes, the first of a file, of Newick text or of another library, see `load_nodes`.

    Branch lengths, labels of inner nodes and the root are ignored.

    `names`: of all taxa; labels stand for them as in `parse_newick`.

    Returns the constraint; None for a tree without inner branches, which every tree obeys.
    """
    nodes, source = load_nodes(given, "the constraint given")
    taxa = number_some_tips(nodes, source, names, "the constraint")
    if len(taxa) < 3:  # no tree is left once the root is removed
        return None
    n_children = np.bincount(np.array(nodes.parents[1:], dtype=np.int64), minlength=len(nodes.parents))
    return make_constraint(names, unrooted_branches(nodes, n_children)[0], taxa)
