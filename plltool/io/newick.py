"""Read trees in Newick format, without recursion, so that nesting of any depth works.

Labels may be quoted ('' stands for a quote) or bare; bare labels are kept byte for byte and end at a blank, a bracket
or one of ``( ) : ; ,``. Comments stand in brackets and may be nested. Branch lengths are optional. Labels of inner
nodes are kept for those who draw or root the tree. An inner node without one has the supports that a comment behind it
or its length tells, such as ``[&posterior=0.98]``, ``[&&NHX:B=98]``, or ``[98]`` of RAxML.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from plltool.constants import CONCORDANCE_KINDS, DEFAULT_BRANCH_LENGTH, NO_NODE, SUPPORT_KINDS
from plltool.errors import InputError, list_names, show_name
from plltool.io.nexus import bracket_end
from plltool.tree.moves import resolve_nodes
from plltool.tree.rooted_nodes import RootedNodes, unrooted_branches
from plltool.tree.topology import Tree

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n\f\v]+)
    |   (?P<mark>[(),:;])
    |   '(?P<quoted>(?:[^']|'')*+)'
    |   (?P<comment>\[)
    |   (?P<bare>[^ \t\r\n\f\v()\[\]:;,'][^ \t\r\n\f\v()\[\]:;,]*)""",
    re.VERBOSE,
)
_BRACKET = re.compile(r"[\[\]]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
MARK = re.compile(r"(?:[#$][0-9]++(?:\.[0-9]++)?|\{[^{}]*\})\Z")  # of a branch, in PAML and HyPhy
# a key begins the text or follows a comma, so that a long text without one takes no longer than any other
_ANNOTATION = re.compile(r"""(?:\A|(?<=,))([^=,{}]++)=\s*("[^"]*"|\{[^{}]*\}|[^,{}"]*)""")
_BARE_SUPPORT = re.compile(r"(?:(?:\A|/)(?:[0-9]++\.?[0-9]*+|\.[0-9]++))++")  # numbers with / between them
_NHX = re.compile(r"&NHX:|:(?=[A-Za-z]++=)")
_HEIGHTS = ("height_95%_hpd", "height_95%hpd", "age_95%hpd", "height_range")  # BEAST, MrBayes, plltool
_RANGE = re.compile(r"\{\s*([^,{}]+?)\s*,\s*([^,{}]+?)\s*\}")
_SUPPORTS = ("posterior", "prob", "bootstrap", "support", "label", "b")  # BEAST, MrBayes, FigTree, NHX
_END = "the end of the text"
ROOT_REMOVED = "the tree is rooted, its root is removed"


def is_newick(given: object) -> bool:
    """Whether this is Newick text rather than the name of a file: it starts with a parenthesis or a comment."""
    return isinstance(given, str) and given.lstrip().startswith(("(", "["))


def parse_newick(text: str, source: str, names: Sequence[str] | None = None, resolve_seed: int | None = None) -> Tree:
    """Read the first tree of a text; what follows its ``;`` is ignored.

    A root with two branches is removed and leaves one branch as long as both together; so is a node with one child. A
    missing length is read as the default length, or as 0 where it is joined to a given one; a negative length as 0.
    The tree's `warnings` tell of a removed root and of negative lengths. Its nodes and branches are numbered as by
    `Tree.renumbered`, so that the way in which the tree is written does not matter.

    names : the alignment's names; tips are numbered in this order, by default in that of the text. Other programs
        cut names at blanks and replace marks. So a bare label that is not among them stands for the only unused name
        that has blanks or marks instead of some of its underscores, or that has it as its first word. A label with
        blanks that is not among them stands for the name that has underscores instead. A mark of a branch, as PAML
        (#1) and HyPhy ({FG}) write it, need not be in the name.
    resolve_seed : seed for resolving nodes with more than three branches at random, all resolutions being equally
        likely, by branches of the least length; None refuses such trees.

    Raises InputError if the text is not a tree, a taxon occurs twice, the taxa are not `names`, there are fewer than
    three, or a node has too many branches and there is no seed.
    """
    return unrooted_tree(parse_nodes(text, source), source, names, resolve_seed)


def parse_nodes(text: str, source: str) -> RootedNodes:
    """The first tree of a text as it is written, with nodes of any degree; InputError if it is not a tree."""
    return _Parser(text, source).parse()


def parse_trees(text: str, source: str) -> Iterator[RootedNodes]:
    """All trees of a text, one after another, as they are written."""
    parser = _Parser(text, source)
    while parser.has_more():
        yield parser.parse()


def number_tips(
    nodes: RootedNodes, source: str, names: Sequence[str] | None = None, whose: str = "the alignment"
) -> dict[int, int]:
    """The number of each tip (by its node) among the `names` of `whose`; by default tips are numbered as they come."""
    tips = nodes.tips
    labels = [nodes.labels[tip] for tip in tips]
    refuse_duplicates(labels, f"{source}: the tree")
    if names is None:
        return dict(zip(tips, range(len(tips)), strict=True))
    refuse_duplicates(names, whose)
    numbers = match_labels(labels, nodes.bare, names)
    unknown = [label for label in labels if label not in numbers]
    used = {numbers[label] for label in labels if label in numbers}
    missing = [name for number, name in enumerate(names) if number not in used]
    differing = ("missing from the tree", missing), (f"unknown to {whose}", unknown)
    if missing or unknown:
        differences = "; ".join(f"{what}: {list_names(taxa)}" for what, taxa in differing if taxa)
        raise InputError(f"{source}: the taxa are not those of {whose}: {differences}")
    return {tip: numbers[label] for tip, label in zip(tips, labels, strict=True)}


def number_some_tips(
    nodes: RootedNodes, source: str, names: Sequence[str], what: str, whose: str = "the alignment"
) -> dict[int, int]:
    """The number of each tip among `names`, as `number_tips`; `what`, such as "the constraint", may lack some."""
    labels = [nodes.labels[tip] for tip in nodes.tips]
    refuse_duplicates(labels, f"{source}: {what}")
    numbers = match_labels(labels, nodes.bare, names)
    unknown = [label for label in labels if label not in numbers]
    if unknown:
        raise InputError(f"{source}: taxa of {what} that are not in {whose}: {list_names(unknown)}")
    return {tip: numbers[label] for tip, label in zip(nodes.tips, labels, strict=True)}


def is_length(value: str | float) -> bool:
    """Whether this is, or spells, a branch length: a finite number."""
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return False
    return math.isfinite(float(value))


# What was read last; from _CLOSED on the current subtree may end here
_START, _OPENED, _COLON, _CLOSED, _LABELLED, _MEASURED = range(6)
_EXPECTED = (("'('",), ("a taxon name", "'('"), ("a branch length",), ("a label", "':'"), ("':'",), ())  # after each


class _Parser:
    """Turns a text into nodes; every error names the line and column."""

    def __init__(self, text: str, source: str):
        self.text = text
        self.source = source
        self._unread = self._tokens()
        self._stream: Iterator[tuple[str, str, int]] = self._unread

    def has_more(self) -> bool:
        """Whether more than blanks and comments follows."""
        first = next(token for token in self._stream if token[0] != "note")
        self._stream = chain([first], self._unread)
        return first[0] != "end"

    def parse(self) -> RootedNodes:
        """Read up to the next ``;``."""
        nodes = RootedNodes()
        node, state = nodes.add(NO_NODE), _START
        tokens = self._stream
        while True:
            kind, value, position = next(tokens)
            if kind == "note":
                value = _NHX.sub(",", value) if value.startswith("&NHX") else value
                told = {key.strip().lower(): text.strip('"') for key, text in _ANNOTATION.findall(value)}
                if state >= _CLOSED and not nodes.labels[node]:
                    # plltool's kinds with slashes between them, or the first of others
                    kinds = [told[key] for key in told if key in (*SUPPORT_KINDS, *CONCORDANCE_KINDS)]
                    bare = value if _BARE_SUPPORT.fullmatch(value) else ""
                    other = next((told[key] for key in _SUPPORTS if key in told), bare)
                    if "e" in other and is_length(other):  # MrBayes: 9.70000000e-01
                        other = f"{float(other):g}"
                    nodes.labels[node] = "/".join(kinds) or other
                height = next((_RANGE.fullmatch(told[key]) for key in _HEIGHTS if key in told), None)
                if height is not None and is_length(height[1]) and is_length(height[2]):
                    nodes.heights[node] = float(height[1]), float(height[2])
            elif kind == "bare" and state == _START and value.isdigit():
                continue  # PHYLIP and PAML write the number of trees, or of taxa and trees, before the first one
            elif kind == "(" and state <= _OPENED:
                node, state = nodes.add(node), _OPENED
            elif kind == "bare" and state >= _CLOSED and MARK.match(value):
                continue
            elif kind in ("bare", "quoted") and state in (_OPENED, _CLOSED):
                nodes.labels[node] = value
                if kind == "bare" and state == _OPENED:
                    nodes.bare.add(value)
                state = _LABELLED
            elif kind == ":" and state in (_CLOSED, _LABELLED):
                state = _COLON
            elif (
                kind == "bare" and state == _COLON and (is_length(own := value) or is_length(own := MARK.sub("", own)))
            ):
                nodes.set_length(node, float(own))
                state = _MEASURED
            elif kind == "," and state >= _CLOSED and node:
                node, state = nodes.add(nodes.parents[node]), _OPENED
            elif kind == ")" and state >= _CLOSED and node:
                node, state = nodes.parents[node], _CLOSED
            elif kind == ";" and state >= _CLOSED and not node:
                return nodes
            else:
                options = list(_EXPECTED[state])
                if state >= _CLOSED:
                    options += ["','", "')'"] if node else ["';'"]
                expected = " or ".join(filter(None, [", ".join(options[:-1]), options[-1]]))
                raise self._error(position, _END if kind == "end" else show_name(value), expected)

    def _tokens(self) -> Iterator[tuple[str, str, int]]:
        """Yield (kind, value, position); the kind of a mark is the mark, of an annotation "note", of the last "end"."""
        text, position = self.text, 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                if text[position] == "]":
                    raise self._error(position, "']'", "a '[' before it")
                raise self._error(position, _END, "a quote that closes the one here")
            kind = str(match.lastgroup)
            if kind == "comment":
                start, position = position, bracket_end(_BRACKET.finditer(text, position), "[")
                if position < 0:
                    raise self._error(start, _END, "a ']' that closes the comment here")
                note = text[start + 1 : position - 1]
                if note.startswith("&") or _BARE_SUPPORT.fullmatch(note):
                    yield "note", note.removeprefix("&"), start
                continue
            if kind == "quoted":
                yield kind, match["quoted"].replace("''", "'"), position
            elif kind != "blank":
                yield match[0] if kind == "mark" else kind, match[0], position
            position = match.end()
        yield "end", "", position

    def _error(self, position: int, found: str, expected: str) -> InputError:
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        return InputError(f"{self.source}:{line}:{column}: found {found}, expected {expected}")


def unrooted_tree(
    nodes: RootedNodes,
    source: str,
    names: Sequence[str] | None = None,
    resolve_seed: int | None = None,
    multifurcations: bool = False,
) -> Tree:
    """Make a tree from rooted nodes; parameters and warnings as in `parse_newick`, and in `read_tree`."""
    tips = number_tips(nodes, source, names)
    if len(tips) < 3:
        raise InputError(f"{source}: found a tree of {len(tips)} taxa, expected at least 3")
    ends, lengths, root_place = unrooted_branches(nodes)
    degrees = np.bincount(ends.ravel())
    n_own = len(ends)
    if resolve_seed is not None or multifurcations:
        ends, lengths = resolve_nodes(ends, lengths, np.random.default_rng(resolve_seed or 0))
    elif degrees.max() > 3:
        node = int(np.argmax(degrees > 3))
        end = next((k for k in range(node + 1, len(nodes.parents)) if nodes.parents[k] < node), len(nodes.parents))
        inner_nodes = set(nodes.parents[node:end])
        below = [nodes.labels[tip] for tip in range(node, end) if tip not in inner_nodes]
        found = f"the node above {list_names(below)} has {degrees[node]} branches, expected 3"
        raise InputError(f"{source}: {found}; resolve such nodes at random with --resolve SEED")
    new_numbers = np.full(ends.max() + 1, NO_NODE, dtype=np.int32)
    new_numbers[list(tips)] = list(tips.values())
    inner = np.flatnonzero((np.bincount(ends.ravel()) > 0) & (new_numbers == NO_NODE))
    new_numbers[inner] = np.arange(len(tips), len(tips) + len(inner))
    lengths[np.isnan(lengths)] = DEFAULT_BRANCH_LENGTH
    tree = Tree.from_edges(names or [nodes.labels[tip] for tip in tips], new_numbers[ends], lengths)
    tree.root_place = root_place
    if resolve_seed is None and len(ends) > n_own:
        tree.added = np.arange(len(ends)) >= n_own
    tree = tree.renumbered()
    removed = [] if root_place is None else [f"{source}: {ROOT_REMOVED}; --outgroup roots the result"]
    tree.warnings = (*removed, *nodes.describe_negative(source))
    return tree


_MARK_IN_NAME = re.compile(r"[^A-Za-z0-9_.|/-]")  # for which IQ-TREE writes an underscore


def match_labels(labels: Sequence[str], bare: set[str], names: Sequence[str]) -> dict[str, int]:
    """The place in `names` of each name, and of each label that stands for one: see `parse_newick`."""
    numbers = {name: number for number, name in enumerate(names)}
    unused = numbers.keys() - set(labels)
    spaced: dict[str, list[str]] = {}
    for label in labels:
        if " " in label and label not in numbers:
            spaced.setdefault(label.replace(" ", "_"), []).append(label)
    spare: dict[str, list[int]] = {}
    for name in unused:
        if len(spaced.get(name, ())) == 1:
            numbers[spaced[name][0]] = numbers[name]
            continue
        whole_and_first = [name, *name.split()[:1]]
        plain = [_MARK_IN_NAME.sub("_", text) for text in whole_and_first]
        for short in {name.replace(" ", "_"), *whole_and_first[1:], *plain}:
            spare.setdefault(short, []).append(numbers[name])
    claims: dict[int, list[str]] = {}
    for label in labels:
        if label in bare and label not in numbers:
            found = spare.get(label) or spare.get(MARK.sub("", label), [])
            if len(found) == 1:
                claims.setdefault(found[0], []).append(label)
    numbers.update((own[0], number) for number, own in claims.items() if len(own) == 1)
    return numbers


def refuse_duplicates(names: Sequence[str], owner: str) -> None:
    """Raise InputError if a name occurs twice."""
    if len(set(names)) < len(names):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        raise InputError(f"{owner} has the same taxon more than once: {list_names(repeated)}")
