r"""Partition files: a line for each part (RAxML, RAxML-NG), or charsets of NEXUS and partitions into them.

    GTR+F+G4, cox1_1 = 1-900\3, 903          RAxML-NG: any model string
    DNA, its = 901-1500                      RAxML: DNA, AA (PROT), MULTI (MORPH) are the default models of such data;
    LGF, gene = 1501-.                       F or X after the name of a protein matrix: counted or optimised frequencies
    CODON2, nad1 = 2401-3300                 IQ-TREE's word for codons, here of genetic code 2, and the default model
    charpartition mine = GTR+G4: a, HKY: b;  IQ-TREE: models and their charsets
    partition mine = 2: a, b;                MrBayes: chooses charsets, otherwise each charset is a part
    set partition = mine;                    chooses among several partitions or charpartitions

Without models the default ones are used. How columns are written, see `part_columns`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from plltool.constants import DEFAULT_DOUBLET_MODEL
from plltool.errors import InputError, errors_at, show_name
from plltool.io.alignment_formats import decode_name
from plltool.io.nexus_commands import Command, split_commands
from plltool.io.part_columns import (
    COLUMN,
    DATA_NAMES,
    USUAL_MODELS,
    Charsets,
    PartColumns,
    check_size,
    find_members,
    read_columns,
)
from plltool.model.multistate import find_name
from plltool.model.proteins import canonical_names
from plltool.model.scheme import PartSpec, Scheme, SitePair
from plltool.model.spec import ModelSpec

ModelReader = Callable[[str], ModelSpec]

# Nothing that has matched is given back (``++``), so that a line of a million blanks takes no longer than any other.
ITEM = r"(?:[^,{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})++"  # braces may hold models with braces
_MODEL = re.compile(rf"(?P<model>{ITEM}),")
_SUFFIXES = {"F": "+F", "X": "+FO"}


def unwrap(text: str) -> list[tuple[int, str]]:
    """The lines of a text that are neither blank nor comments (``#``), each with the number of its first one.

    A line goes on where a brace is open, or a plus sign ends a line or begins the next one.
    """
    lines: list[tuple[int, list[str]]] = []
    n_open = 0
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if lines and (n_open > 0 or lines[-1][1][-1].endswith("+") or line.startswith("+")):
            lines[-1][1].append(line)
        else:
            lines.append((number, [line]))
            n_open = 0
        n_open += line.count("{") - line.count("}")
    return [(number, "".join(pieces)) for number, pieces in lines]


def is_partition_line(text: str) -> bool:
    """Whether a text is ``MODEL, NAME = SITES``."""
    return _split_line(text) is not None


def _split_line(line: str) -> tuple[str, str, str] | None:
    """Model, name and sites of ``MODEL, NAME = SITES``; None for another line."""
    line = line.strip()
    match = _MODEL.match(line)
    if match is None:
        return None
    name, *sites = line[match.end() :].split("=")
    return (match["model"].strip(), name.strip(), sites[0]) if len(sites) == 1 else None


def read_lines(text: str, source: str, read_model: ModelReader) -> Scheme:
    """The parts in a partition file of RAxML or RAxML-NG; `read_model` reads model strings.

    Blank lines and lines that begin with ``#`` are skipped; a model may take several lines, see `unwrap`.
    """
    scheme: list[PartSpec] = []
    seen: dict[str, str] = {}
    for number, line in unwrap(text):
        where = f"{source}: line {number}"
        fields = _split_line(line)
        if fields is None:
            raise InputError(f"{where}: found {show_name(line.strip())}, expected MODEL, NAME = SITES")
        text, name, sites = fields
        check_name(name, where)
        check_new(name, seen, where)
        model = read_part_model(text, f"{where}: partition {show_name(name)}", read_model)
        columns = read_columns(sites, where, name)
        model = check_data(model, columns, name)
        scheme.append(PartSpec(model, name, columns.ranges, where, columns.files, columns.n_sites))
    if not scheme:
        raise InputError(f"{source}: found no line with a model, expected one for each partition")
    return tuple(scheme)


def read_part_model(text: str, where: str, read_model: ModelReader) -> ModelSpec:
    """A model string, or one of RAxML's words."""
    word = text.upper()
    text = text if find_name(word) else USUAL_MODELS.get(word, text)  # BIN is a model, too
    matrix, suffix = word[:-1], _SUFFIXES.get(word[-1:])
    if word not in canonical_names() and matrix in canonical_names() and suffix:
        text = canonical_names()[matrix] + suffix
    with errors_at(where):
        return read_model(text)


def check_name(name: str, where: str) -> None:
    """Raise InputError unless a part's name can be written to a partition file."""
    if "=" in name or len(name.splitlines()) != 1:
        found = f"found {show_name(name)} as a partition's name"
        raise InputError(f"{where}: {found}, expected one without '=' and line breaks")


def check_new(name: str, seen: dict[str, str], where: str) -> None:
    """Remember where a part is named; InputError if the name is not new."""
    if name in seen:
        raise InputError(f"{where}: found part {show_name(name)} again, expected different names ({seen[name]})")
    seen[name] = where


def check_data(model: ModelSpec, sites: PartColumns, name: str) -> ModelSpec:
    """The model of columns, under their genetic code; InputError if they are said to be of another kind than it is."""
    expected = DATA_NAMES.get(sites.data_word, model.data)
    model = model.for_data(expected)
    if model.data != expected:
        found = f"found a {model.data} model, {model.shown}, for {expected} data"
        raise InputError(f"{sites.where}: partition {show_name(name)}: {found}")
    return model


# --- charsets and partitions of NEXUS ---------------------------------------------------------------------

_MAX_LISTED = 10  # charsets in one message
_COUNT = re.compile(rf"{COLUMN}\s*+:")  # how many charsets a MrBayes partition has
_NAME = r"(?P<name>'[^']*+'|[^\s=*]++)"
_SET = re.compile(rf"\s*+(?:\*\s*+)?{_NAME}\s*+(?:\([^()]*+\)\s*+)?=(?P<text>.*)", re.DOTALL)


def read_sets(content: bytes, source: str, read_model: ModelReader) -> Scheme:
    """The parts in the sets, assumptions or MrBayes block of a NEXUS file; arguments as in `read_lines`."""
    words = ("charset", "charpartition", "partition", "set")
    commands = [command for command in split_commands(content, source) if command.word in words]
    charsets = _read_charsets([c for c in commands if c.word == "charset"], source)
    chosen = _choose(commands, source)
    if chosen is not None:
        read = _read_charpartition if chosen.word == "charpartition" else _read_partition
        return read(chosen, source, charsets, read_model)
    if not charsets:
        raise InputError(f"{source}: found no charset, expected a partition")
    return tuple(_default_part(name, sites, sites.where, read_model) for name, sites in charsets.items())


def _choose(commands: Sequence[Command], source: str) -> Command | None:
    """The partition or charpartition that is set, else the only charpartition, else the only partition, if any."""
    # by the last "set partition = NAME"
    options = [command.parse_options() for command in commands if command.word == "set"]
    wanted = next((found["partition"] for found in reversed(options) if "partition" in found), "")
    kinds = [[command for command in commands if command.word == word] for word in ("charpartition", "partition")]
    given = [*kinds[0], *kinds[1]] if wanted else kinds[0] or kinds[1]
    named = [c for c in given if _split_set(c, source)[0] == wanted] if wanted else given
    if len(named) == 1:
        return named[0]
    if not given:
        return None
    lines = ", ".join(str(command.line) for command in given)
    words = "partition command" if len(given) == 1 else "partition commands"
    of_name = f", {len(named)} of them with the name {show_name(wanted)}" if wanted else ""
    found = f"found {len(given)} {words} (lines {lines}){of_name}"
    raise InputError(f"{source}: {found}, expected one, or 'set partition = NAME;' with the name of one")


def _split_set(command: Command, source: str) -> tuple[str, str, str]:
    """The name, the text after the equals sign, and the place of both."""
    where = f"{source}: line {command.line}"
    match = _SET.fullmatch(decode_name(command.text))
    if match is None or not command.is_closed:
        found = f"found {command.word} without a name and a final semicolon"
        raise InputError(f"{where}: {found}, expected {command.word} NAME = ... ;")
    return match["name"].strip("'"), match["text"].strip(), where


def _read_charsets(commands: Sequence[Command], source: str) -> Charsets:
    charsets: dict[str, PartColumns] = {}
    total = 0
    for command in commands:
        name, text, where = _split_set(command, source)
        check_name(name, where)
        if name in charsets:
            other = charsets[name].where
            raise InputError(f"{where}: found charset {show_name(name)} again, expected different names ({other})")
        known = charsets.get(text)  # a charset may be the name of an earlier one
        charsets[name] = replace(known, where=where) if known else read_columns(text, where, name, charsets)
        total += len(charsets[name].ranges)
        check_size(total, where, name)
    return charsets


def _find_charset(name: str, where: str, charsets: Charsets) -> PartColumns:
    found = find_members(name, charsets)
    if found is None:
        there = ", ".join(map(show_name, list(charsets)[:_MAX_LISTED])) or "none"
        more = f" and {len(charsets) - _MAX_LISTED} more" if len(charsets) > _MAX_LISTED else ""
        raise InputError(f"{where}: found charset {show_name(name)}, expected one of these: {there}{more}")
    return replace(found, where=found.where or where)


def _default_part(name: str, sites: PartColumns, where: str, read_model: ModelReader) -> PartSpec:
    """A part under the default model of its data, which is left open unless the charset says what they are."""
    usual = USUAL_MODELS[sites.data_word] if sites.data_word else ""
    if any(isinstance(some, SitePair) for some in sites.ranges):
        usual = DEFAULT_DOUBLET_MODEL
    return PartSpec(read_model(usual) if usual else None, name, sites.ranges, where, sites.files, sites.n_sites)


def _read_charpartition(command: Command, source: str, charsets: Charsets, read_model: ModelReader) -> Scheme:
    """``MODEL: CHARSET [CHARSET ...], ...``: the name of a part joins the names of its charsets."""
    _, text, where = _split_set(command, source)
    scheme: list[PartSpec] = []
    seen: dict[str, str] = {}
    for item in re.findall(ITEM, text) or [""]:
        model, colon, sets = item.rpartition(":")
        names = [name.strip("'") for name in re.findall(r"'[^']*'|\S+", sets)]
        if not colon or not names or len(set(names)) < len(names):
            raise InputError(f"{where}: found {show_name(item.strip())}, expected MODEL: CHARSET, each charset once")
        name = "_".join(names)
        check_new(name, seen, where)
        found = read_part_model(model.strip(), f"{where}: partition {show_name(name)}", read_model)
        members = [_find_charset(one, where, charsets) for one in names]
        for sites in members:
            found = check_data(found, sites, name)
        ranges = tuple(some for sites in members for some in sites.ranges)
        files = tuple(dict.fromkeys(file for sites in members for file in sites.files))
        n_sites = next((sites.n_sites for sites in members if sites.n_sites), None)
        scheme.append(PartSpec(found, name, ranges, where, files, n_sites))
    return tuple(scheme)


def _read_partition(command: Command, source: str, charsets: Charsets, read_model: ModelReader) -> Scheme:
    """``COUNT: CHARSET, CHARSET, ...`` under the default models."""
    _, text, where = _split_set(command, source)
    count = _COUNT.match(text)
    names = [name.strip().strip("'") for name in text[count.end() if count else 0 :].split(",")]
    if count and int(count[1]) != len(names):
        raise InputError(f"{where}: found {len(names)} charsets in a partition, expected {count[1]}, as it announces")
    return tuple(_default_part(name, _find_charset(name, where, charsets), where, read_model) for name in names)
