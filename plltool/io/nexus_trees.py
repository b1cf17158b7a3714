"""The trees of NEXUS files (Maddison, Swofford & Maddison 1997), read by plltool's own Newick parser.

Names are kept byte for byte, as in Newick: an underscore of a bare name is not turned into a blank. Comments such as
``[&R]`` are skipped, except supports of nodes, see `plltool.io.newick`.
A label is the name of a taxon, a key of TRANSLATE, or the number of a taxon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from plltool.errors import InputError, show_name
from plltool.io.alignment_formats import decode_name
from plltool.io.newick import parse_trees
from plltool.io.nexus_commands import Command, split_commands
from plltool.tree.rooted_nodes import RootedNodes

_LABEL = r"'(?:[^']|'')*+'|[^\s,='\[\]();]++"
_TREE = re.compile(rf"\s*+(?:\*\s*+)?(?P<name>{_LABEL})\s*+(?:\[[^\[\]]*+\]\s*+)*+=(?P<newick>.*)", re.DOTALL)
_WORD = re.compile(rf"\s*+({_LABEL})")
_PAIR = re.compile(rf"\s*+({_LABEL})\s+({_LABEL})\s*+(,|\Z)")

Names = dict[str, str]  # what a label stands for


def read_nexus_trees(content: bytes, source: str) -> Iterator[RootedNodes]:
    """Every tree of the trees blocks of a NEXUS file, one after another.

    Raises
    ------
    InputError
        If a tree, the translation or a comment cannot be read.
    """
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
    inner = set(nodes.parents)
    taxa = set(names.values())
    for node, label in enumerate(nodes.labels):
        if node not in inner and label in names and label not in taxa:
            nodes.labels[node] = names[label]
    return nodes


def _unquote(label: str) -> str:
    return label[1:-1].replace("''", "'") if label.startswith("'") else label
