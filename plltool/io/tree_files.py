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
from numbers import Real
from os import PathLike

import numpy as np

from plltool.constants import NO_NODE
from plltool.errors import InputError, list_names, show_name, show_object
from plltool.io.alignment_formats import decode_name, starts_like_phylip
from plltool.io.bridge import TreeObject, nodes_from_object
from plltool.io.files import FileName, parse_object, read_text, source_name
from plltool.io.newick import MARK, is_newick, number_some_tips, number_tips, parse_nodes, parse_trees, unrooted_tree
from plltool.io.newick_writer import join_newick, write_newick, written_label, written_length
from plltool.io.nexus import split_commands, starts_like_nexus
from plltool.progress import log
from plltool.tree.concordance import GeneTree
from plltool.tree.constraint import Constraint, make_constraint
from plltool.tree.rooted import drop_root, root_split
from plltool.tree.rooted_nodes import RootedNodes, add_lengths, unrooted_branches
from plltool.tree.splits import Splits, TreeSet, branch_splits, everyone, make_tree_set, nest, splits_of
from plltool.tree.topology import Tree

_LABEL = r"'(?:[^']|'')*+'|[^\s,='\[\]();]++"
_TREE = re.compile(rf"\s*+(?:\*\s*+)?(?P<name>{_LABEL})\s*+(?:\[[^\[\]]*+\]\s*+)*+=(?P<newick>.*)", re.DOTALL)
_WEIGHT = re.compile(r"[^(]*\[&W\s+(?!1[\s\]])", re.IGNORECASE)  # of a tree, other than 1
_WORD = re.compile(rf"\s*+({_LABEL})")
_PAML = re.compile(rb"[0-9]+\s+[0-9]+\s*\(")  # the numbers of taxa and trees, then a tree
_PAIR = re.compile(rf"\s*+({_LABEL})\s+({_LABEL})\s*+(,|\Z)")

Names = dict[str, str]  # what a label stands for


def read_nexus_trees(content: bytes, source: str) -> Iterator[RootedNodes]:
    """Every tree of the trees blocks of a NEXUS file, one after another."""
    block, is_weighted = "", False
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
            text, position, names = decode_name(command.text).strip(), 0, {}
            while position < len(text):
                pair = _PAIR.match(text, position)
                if pair is None:
                    found = show_name(text[position:].strip())
                    raise InputError(f"{where}: found {found} in a translation, expected LABEL NAME, LABEL NAME")
                names[_unquote(pair[1])] = _unquote(pair[2])
                position = pair.end()
        elif block == "trees" and command.word in ("tree", "utree"):
            match = _TREE.fullmatch(decode_name(command.text))
            if match is None or not command.is_closed:
                found = "found a tree without a name and a final semicolon"
                raise InputError(f"{where}: {found}, expected TREE NAME = ... ;")
            if not is_weighted and (is_weighted := _WEIGHT.match(match["newick"]) is not None):
                log.warning("%s: found weights of trees, such as [&W 0.5], which are ignored: each counts once", source)
            nodes = next(parse_trees(match["newick"] + ";", f"{where}: tree {show_name(_unquote(match['name']))}"))
            taxa = set(names.values())
            for tip in nodes.tips:
                label = nodes.labels[tip]
                label = label if label in names else MARK.sub("", label)  # the mark of a branch behind a number
                if label in names and label not in taxa:
                    nodes.labels[tip] = names[label]
            yield nodes


def _unquote(label: str) -> str:
    return label[1:-1].replace("''", "'") if label.startswith("'") else label


FIRST_TREE, THE_TREE = "the first tree", "the tree"  # whose taxa others must have
GIVEN_TEXT = "the tree given"  # what errors call Newick text that comes from no file


def read_tree_set(
    given: Sequence[FileName | Tree | TreeObject], names: Sequence[str] | None = None, burnin: float = 0.0
) -> TreeSet:
    """All trees of several sources, in their order; nodes may have any number of branches.

    `given` are files (Newick or NEXUS, compressed or not), Newick texts, trees, and trees of other libraries; `names`
    are the taxa, by default those of the first tree; `burnin` is the share of trees, 0 to 1, left out where each
    source begins. Raises InputError if a file cannot be read, holds no tree or something else, an object is no tree, or
    the taxa are not the same in all trees.
    """
    if not (isinstance(burnin, Real) and 0 <= burnin < 1):
        raise InputError(f"burnin: found {show_object(burnin)}, expected a share from 0 to below 1")
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
        before = len(trees)
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
        for own in (trees, roots, labels):
            del own[before : before + int(burnin * (len(own) - before))]
    return make_tree_set(known or (), trees, roots, labels)


def read_gene_trees(given: Sequence[FileName | Tree | TreeObject], names: Sequence[str]) -> list[GeneTree]:
    """All trees of several sources, each over all or some of the taxa `names`; sources as in `read_tree_set`."""
    trees: list[GeneTree] = []
    for item in given:
        source, found = find_nodes(write_newick(item) if isinstance(item, Tree) else item)
        for number, nodes in enumerate(found, start=1):
            tips = number_some_tips(nodes, f"{source}: tree {number}", names, "the gene tree", THE_TREE)
            trees.append(GeneTree(nodes, tips))
    return trees


def find_nodes(given: FileName | TreeObject, called: str = GIVEN_TEXT) -> tuple[str, Iterator[RootedNodes]]:
    """What errors call a file, Newick text or a tree of another library, and the trees in it, at least one."""
    if is_newick(given):
        return called, _at_least_one(parse_trees(str(given), called), called)
    if isinstance(given, (str, PathLike)):
        content, source = read_tree_text(given)
        is_nexus = starts_like_nexus(content)
        found = read_nexus_trees(content, source) if is_nexus else parse_trees(decode_name(content), source)
        return source_name(given), _at_least_one(found, source_name(given))
    nodes, source = nodes_from_object(given)
    return source, iter([nodes])


def _at_least_one(found: Iterable[RootedNodes], source: str) -> Iterator[RootedNodes]:
    """The trees that were found; InputError at their end if there is none."""
    nodes = None
    for nodes in found:
        yield nodes
    if nodes is None:
        raise InputError(f"{source}: found no tree, expected at least one")


def read_trees(path: FileName, names: Sequence[str] | None = None, resolve_seed: int | None = None) -> list[Tree]:
    """All trees of a file or text, as `parse_newick` reads one; InputError also if it cannot be read or has no tree."""
    source, found = find_nodes(path)
    several = enumerate(found, start=1)
    return [unrooted_tree(nodes, f"{source}: tree {number}", names, resolve_seed) for number, nodes in several]


def load_nodes(given: FileName | Tree | TreeObject, called: str = GIVEN_TEXT) -> tuple[RootedNodes, str]:
    """The first tree of a file, text, which is `called` so, or an object, and its name; a warning if there are more."""
    if isinstance(given, Tree):
        return RootedNodes.of_tree(given), "the tree"
    source, found = find_nodes(given, called)
    nodes = next(found)
    with suppress(InputError):  # what follows may be anything
        if next(found, None) is not None:
            log.warning("%s: found several trees, the first one is taken", source)
    return nodes, source


def find_splits(nodes: RootedNodes, tips: dict[int, int]) -> Splits:
    """The splits of a rooted tree, whose `tips` are numbered, and lengths of branches, NaN where none is given.

    The root is removed: two branches with one split become one, as long as both together.
    """
    splits: dict[int, float] = {}
    for node, split in find_branches(nodes, tips):
        splits[split] = add_lengths(splits.get(split, math.nan), nodes.lengths[node])
    return splits


def find_root_split(nodes: RootedNodes, tips: dict[int, int]) -> int | None:
    """The split of the branch on which a tree has its root; None unless the root has two branches."""
    children, top = nodes.children(), 0
    while len(children[top]) == 1:
        top = children[top][0]
    if len(children[top]) != 2:
        return None
    return next(split for node, split in find_branches(nodes, tips) if node == children[top][0])


def find_labels(nodes: RootedNodes, tips: dict[int, int]) -> dict[int, str]:
    """What stands at the inner branches of a rooted tree, such as supports, by their splits; see `find_splits`."""
    labels: dict[int, str] = {}
    for node, split in find_branches(nodes, tips):
        if node not in tips and nodes.labels[node]:
            labels.setdefault(split, nodes.labels[node])
    return labels


def find_branches(nodes: RootedNodes, tips: dict[int, int]) -> Iterator[tuple[int, int]]:
    """The nodes that have a branch above them, and its split; `tips` as for `find_splits`."""
    everybody, below = everyone(len(tips)), nodes.taxa_below(tips)
    for node, parent in enumerate(nodes.parents):
        if parent != NO_NODE and below[node] != everybody:
            yield node, everybody ^ below[node] if below[node] & 1 else below[node]


def read_tree_text(path: FileName) -> tuple[bytes, str]:
    """The content of a file of trees, or the tree in the record of a run, and what errors call it."""
    content, source = read_text(path), source_name(path)
    start = content.lstrip()
    if start.startswith(b">") or (starts_like_phylip(start) and not _PAML.match(start)):
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
    """Write a tree by its inner splits on one line, rooted at the node next to taxon 0, in the order of first taxa.

    `splits` are as in `TreeSet`; of any two that overlap one holds the other. `lengths`, `labels` are of their
    branches, `pendants` (n_taxa,) lengths of those at the tips; a length that is NaN is not written.
    """
    root = everyone(len(names) + 1)  # more than all taxa, so that a single tip is not the root
    nodes = [*(1 << taxon for taxon in range(len(names))), *splits]
    children = {node: sorted(own, key=lambda taxa: taxa & -taxa) for node, own in nest([root, *nodes]).items()}
    texts = zip([*map(written_label, names), *labels], map(written_length, (*pendants, *lengths)), strict=True)
    return join_newick(root, children, {**dict(zip(nodes, map("".join, texts), strict=True)), root: ""})


NO_BRANCH = -1


def read_tree(
    path: FileName,
    names: Sequence[str] | None = None,
    resolve_seed: int | None = None,
    unlinked: bool = False,
    multifurcations: bool = False,
) -> Tree:
    """The tree of a file, Newick, NEXUS or the record of a run, compressed or not; ``-`` is standard input.

    Of several trees, in Newick one per line, the first one is used and a warning says so; with `unlinked` the tree has
    the lengths of all: (n_edges, n_trees). With `multifurcations` these stay if there is no seed, see `Tree.added`. For
    other parameters and `Tree.warnings` see `parse_newick`. Raises InputError if the file cannot be read or has no
    tree, the taxa are not `names`, or topologies differ.
    """
    content, source = read_tree_text(path)
    if starts_like_nexus(content):
        found = [(f"{source}: tree {k}", nodes) for k, nodes in enumerate(read_nexus_trees(content, source), start=1)]
        n_trees = len(found)
    else:
        text = content.decode("utf-8", "surrogateescape")  # trees are one per line, and all are read only if needed
        lines = [(f"{source}: line {k}", line) for k, line in enumerate(text.split("\n"), start=1) if line.strip()]
        n_trees = len(lines) if all(line.rstrip().endswith(";") for _, line in lines) else 1
        found = [(source, parse_nodes(text, source))] if n_trees < 2 or not unlinked else []
        found = found or [(where, parse_nodes(line.strip(), where)) for where, line in lines]
    if not found:
        raise InputError(f"{source}: found no tree, expected at least one")
    how = resolve_seed, multifurcations
    if n_trees > 1 and unlinked:
        return _join_lengths([(where, unrooted_tree(nodes, where, names, *how)) for where, nodes in found])
    if n_trees > 1:
        hint = "--brlen unlinked takes one for each partition of the alignment"
        log.warning("%s: found %d trees, the first one is taken; %s", source, n_trees, hint)
    return unrooted_tree(found[0][1], source, names, *how)


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


def read_constraint(given: FileName | Tree | TreeObject, names: Sequence[str]) -> Constraint | None:
    """The constraint that a tree, or the first of `load_nodes`, makes; labels stand for `names` as in `parse_newick`.

    Lengths, labels of inner nodes and the root are ignored; None without inner branches, which every tree obeys. Raises
    InputError if it cannot be read, or a taxon in it occurs twice or is not among `names`.
    """
    if isinstance(given, Tree) and given.added is None:
        if unknown := sorted(set(given.names).difference(names)):
            raise InputError(f"taxa of the constraint that are not in the alignment: {list_names(unknown)}")
        return make_constraint(names, given.ends, {tip: names.index(name) for tip, name in enumerate(given.names)})
    nodes, source = load_nodes(given, "the constraint given")
    taxa = number_some_tips(nodes, source, names, "the constraint")
    if len(taxa) < 3:  # no tree is left once the root is removed
        return None
    return make_constraint(names, unrooted_branches(nodes)[0], taxa)
