r"""The sets of NEXUS files: charsets, and partitions of an alignment into them.

    #NEXUS
    begin sets;
      charset first = 1-900\3;
      charset rest = genes.phy: 2-900\3 3-900\3 901-.;     IQ-TREE: columns of a file, which must be the alignment
      charpartition mine = GTR+G4: first, HKY: rest;       IQ-TREE: models and their charsets
    end;

Without a charpartition, ``partition NAME = 2: first, rest;`` (MrBayes) chooses charsets, otherwise each charset is a
part; the models are the default ones. ``set partition = NAME;`` chooses among several partitions or charpartitions.
Charsets may have others as members, ``all`` stands for all columns, and ``remainder`` for those that no other part has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from plltool.constants import DEFAULT_DOUBLET_MODEL
from plltool.errors import InputError, show_name
from plltool.io.alignment_formats import decode_name
from plltool.io.nexus_commands import Command, split_commands
from plltool.io.part_columns import (
    COLUMN,
    USUAL_MODELS,
    Charsets,
    PartColumns,
    check_size,
    find_members,
    read_columns,
)
from plltool.io.partition_reader import ITEM, ModelReader, check_data, check_name, check_new, read_part_model
from plltool.model.scheme import PartSpec, Scheme, SitePair

_MAX_LISTED = 10  # charsets in one message
_COUNT = re.compile(rf"{COLUMN}\s*+:")  # how many charsets a MrBayes partition has
_NAME = r"(?P<name>'[^']*+'|[^\s=*]++)"
_SET = re.compile(rf"\s*+(?:\*\s*+)?{_NAME}\s*+(?:\([^()]*+\)\s*+)?=(?P<text>.*)", re.DOTALL)


def read_sets(content: bytes, source: str, read_model: ModelReader) -> Scheme:
    """The parts in the sets, assumptions or MrBayes block of a NEXUS file; arguments and errors as in `read_lines`."""
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


def _name_chosen(commands: Sequence[Command]) -> str:
    """The partition that the last ``set partition = NAME`` names; empty without one."""
    options = [command.parse_options() for command in commands if command.word == "set"]
    return next((found["partition"] for found in reversed(options) if "partition" in found), "")


def _choose(commands: Sequence[Command], source: str) -> Command | None:
    """The partition or charpartition that is set, else the only charpartition, else the only partition, if any.

    Raises InputError if several have the name, or none has.
    """
    wanted = _name_chosen(commands)
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
        raise InputError(
            f"{where}: found {command.word} without a name and a final semicolon, expected {command.word} NAME = ... ;"
        )
    return match["name"].strip("'"), match["text"].strip(), where


def _read_charsets(commands: Sequence[Command], source: str) -> Charsets:
    """The columns of each charset."""
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
    """``MODEL: CHARSET [CHARSET ...], ...``: the name of a part joins those of its charsets."""
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
