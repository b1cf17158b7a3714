"""Alignments and partition files as other programs take them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import plltool
from plltool import Sequences
from plltool.constants import FIRST_WORD
from plltool.front_ends.work import read_lines

_CHARSET = re.compile(r"\bcharset\s+(\S+?)\s*=\s*([^;]+);", re.IGNORECASE)
_CHARPARTITION = re.compile(r"\bcharpartition\s+\S+?\s*=\s*([^;]+);", re.IGNORECASE)
_LINE = re.compile(r"\s*(?P<model>[^=]+?)\s*,\s*(?P<name>[^,=]+?)\s*=(?P<sites>.*)")
KINDS = ("DNA", "DNAX", "AA", "BIN", "MULTI", "PROT", "AUTO", "NT", "CODON", "MORPH")  # in place of a model


def states_of(kind: str) -> str | None:
    """plltool's word for a kind of data, None if the data tell."""
    return {"AA": "protein", "NT": "dna", "AUTO": ""}.get(kind.upper(), kind.lower()) or None


def list_files(where: str) -> list[str]:
    """The files of a folder in the order of their names, or of names with commas between them."""
    if os.path.isdir(where):
        return [str(path) for path in sorted(Path(where).iterdir()) if path.is_file() and path.name[0] != "."]
    return where.split(",")


def join_alignments(where: str, states: str | None, counts: Sequence[int] | None) -> tuple[Sequences, list[str], str]:
    """The alignments of a file, a list or a folder side by side, NAME = COLUMNS of each, and the first taxon."""
    read = {path: plltool.read_alignment(path, states, names=FIRST_WORD) for path in list_files(where)}
    first, *others = read.values()
    whole, ranges = plltool.join_alignments(read, where) if others else (first, [(1, first.n_sites)])
    parts = [f"{Path(path).stem} = {start}-{stop}" for path, (start, stop) in zip(read, ranges, strict=True)]
    return whole.with_constant_sites(counts) if counts else whole, parts, first.names[0]


def read_parts(path: str, model: str, spell: Callable[[str], str]) -> str:
    """A partition file as plltool reads it, a line for each part; parts without a model have `model`.

    `spell` writes a model of the file as plltool does. A file whose charsets are in files of their own stays as it is.
    The tree length of a part, which IQ-TREE writes behind its name, is found again.
    """
    lines = read_lines(path)
    if lines[:1] and lines[0].lower().startswith("#nexus"):
        text = re.sub(r"\[[^\]]*\]", "", "\n".join(lines))
        charsets, chosen = _CHARSET.findall(text), _CHARPARTITION.search(text)
        if any(":" in sites for _, sites in charsets):
            return path
        pairs = [pair.rsplit(":", 1) for pair in re.split(r",(?![^{]*\})", chosen[1])] if chosen else []
        stated = {re.sub(r"\{[^{}]*\}$", "", pair[1].strip()): pair[0].strip() for pair in pairs if len(pair) > 1}
        spaced = re.compile(r"(?<=[\w\\])\s+(?=\d)")
        rows: list[Any] = [(stated.get(name, "DNA"), name, spaced.sub(", ", sites)) for name, sites in charsets]
        rows = [row for row in rows if not stated or row[1] in stated]
    else:
        rows = [match.groups() for line in lines if (match := _LINE.fullmatch(line))]
        if len(rows) < len(lines):
            return path  # plltool's own reader says what is wrong
    models = [model or own if own.upper() in KINDS else spell(own) for own, _, _ in rows]
    return "\n".join(f"{own}, {name} = {sites.strip()}" for own, (_, name, sites) in zip(models, rows, strict=True))


def cut(data: Sequences, path: str, model: str, spell: Callable[[str], str]) -> list[tuple[str, str, Sequences]]:
    """The name, the model and the alignment of each part of a partition file."""
    lines = read_parts(path, model, spell)
    models = [match["model"] for match in map(_LINE.fullmatch, lines.splitlines()) if match]
    return [(name, own, part) for own, (name, part) in zip(models, plltool.cut_parts(data, lines).items(), strict=True)]
