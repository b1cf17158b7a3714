"""Alignments and partition files as other programs take them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import plltool
from plltool import InputError, Sequences
from plltool.constants import FIRST_WORD
from plltool.front_ends.work import read_lines

_CHARSET = re.compile(r"\bcharset\s+(\S+?)\s*=\s*([^;]+);", re.IGNORECASE)
_CHARPARTITION = re.compile(r"\bcharpartition\s+\S+?\s*=\s*([^;]+);", re.IGNORECASE)
_PIECE = re.compile(r"\s*(\d+)(?:\s*-\s*(\d+|\.))?(?:\s*[\\/]\s*(\d+))?\s*")
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


def join_alignments(where: str, states: str | None, counts: Sequence[int] | None) -> tuple[Sequences, list[str]]:
    """The alignments of a file, a list or a folder side by side, and NAME = COLUMNS of each.

    Taxa that one lacks have gaps in it.
    """
    files = list_files(where)
    read = [plltool.read_alignment(path, states, names=FIRST_WORD, constant_sites=counts) for path in files]
    if len(read) == 1:
        return read[0], [f"{Path(files[0]).stem} = 1-{len(read[0].rows[0])}"]
    columns: dict[str, list[bytes]] = {name: [] for own in read for name in own.names}
    parts, first = [], 1
    for path, own in zip(files, read, strict=True):
        own.refuse_table("one of several alignments")
        width, rows = len(own.rows[0]), dict(zip(own.names, own.rows, strict=True))
        for name, pieces in columns.items():
            pieces.append(rows.get(name, b"-" * width))
        parts.append(f"{Path(path).stem} = {first}-{first + width - 1}")
        first += width
    whole = tuple(b"".join(pieces) for pieces in columns.values())
    return Sequences(tuple(columns), whole, where, read[0].states, names_are=FIRST_WORD), parts


def read_parts(path: str, model: str, spell: Callable[[str], str]) -> str:
    """A partition file as plltool reads it, a line for each part; parts without a model have `model`.

    `spell` writes a model of the file as plltool does. A file whose charsets are in files of their own stays as it is.
    """
    lines = read_lines(path)
    if lines[:1] and lines[0].lower().startswith("#nexus"):
        text = re.sub(r"\[[^\]]*\]", "", "\n".join(lines))
        charsets, chosen = _CHARSET.findall(text), _CHARPARTITION.search(text)
        if any(":" in sites for _, sites in charsets):
            return path
        pairs = [pair.rsplit(":", 1) for pair in re.split(r",(?![^{]*\})", chosen[1])] if chosen else []
        stated = {pair[1].strip(): pair[0].strip() for pair in pairs if len(pair) > 1}
        spaced = re.compile(r"(?<=[\w\\])\s+(?=\d)")
        rows = [(stated.get(name, "DNA"), name, spaced.sub(", ", sites)) for name, sites in charsets]
        rows = [row for row in rows if not stated or row[1] in stated]
    else:
        found = [_LINE.fullmatch(line) for line in lines]
        if None in found:
            return path  # plltool's own reader says what is wrong
        rows = [(match["model"], match["name"], match["sites"]) for match in found if match]
    models = [model or own if own.upper() in KINDS else spell(own) for own, _, _ in rows]
    return "\n".join(f"{own}, {name} = {sites.strip()}" for own, (_, name, sites) in zip(models, rows, strict=True))


def cut(data: Sequences, path: str, model: str, spell: Callable[[str], str]) -> list[tuple[str, str, Sequences]]:
    """The name, the model and the alignment of each part of a partition file, without taxa that it has only gaps of."""
    data.refuse_table("what is cut into parts")
    parts, n_sites = [], len(data.rows[0])
    for line in read_parts(path, model, spell).splitlines():
        found = _LINE.fullmatch(line)
        pieces = [_PIECE.fullmatch(piece) for piece in found["sites"].split(",")] if found else [None]
        if None in pieces or found is None:
            raise InputError(f"{path}: found {line!r}, expected a part of the alignment, such as DNA, one = 1-100")
        ends = [(int(piece[1]), piece[2] or piece[1], int(piece[3] or 1)) for piece in pieces if piece]
        columns = [k for a, b, step in ends for k in range(a - 1, n_sites if b == "." else int(b), step)]
        if max(columns, default=n_sites) >= n_sites:
            raise InputError(f"{path}: part {found['name']}: expected columns from 1 to {n_sites}")
        rows = {name: bytes(row[k] for k in columns) for name, row in zip(data.names, data.rows, strict=True)}
        kept = {name: row for name, row in rows.items() if row.strip(b"-?")}
        source = f"{path}: {found['name']}"
        own = replace(data, names=tuple(kept), rows=tuple(kept.values()), source=source, positions=None)
        parts.append((found["name"], found["model"], own))
    return parts
