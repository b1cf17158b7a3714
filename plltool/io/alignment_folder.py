"""Read the alignments of a folder, one for each gene, and join them."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from plltool.alignment.alignment import Sequences
from plltool.errors import InputError, show_name
from plltool.io.alignment_reader import read_alignments, starts_like_alignment
from plltool.io.content import read_text
from plltool.io.labels import list_names

PACKED = ".gz"
ENDINGS = (".fasta", ".fas", ".fa", ".fna", ".faa", ".phylip", ".phy", ".nexus", ".nex", ".aln", ".sto", ".msf")
GAP = b"-"

_log = logging.getLogger("plltool")


def read_folder(
    folder: str | os.PathLike[str], states: str | None = None, names: str | None = None
) -> dict[str, Sequences]:
    """The alignments of all files of a folder, by the names of the files without their endings, in that order.

    Hidden files, whose names begin with a dot, and folders are left out, and with a warning files that neither start
    like an alignment nor have an ending of one. `states` and `names` are as for `read_alignment`.

    Raises
    ------
    InputError
        If the folder or a file in it cannot be read, it has no alignments, or two files have the same name.
    """
    place = Path(folder)
    try:
        files = sorted(path for path in place.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError as error:
        raise InputError(f"{place}: cannot read the folder: {error.strerror}") from error
    others = [
        path
        for path in files
        if Path(path.name.removesuffix(PACKED)).suffix not in ENDINGS and not starts_like_alignment(read_text(path))
    ]
    if others:
        _log.warning("%s: left out, no alignments: %s", place, list_names([path.name for path in others]))
    files = [path for path in files if path not in others]
    if not files:
        raise InputError(f"{place}: found no files, expected the alignment of a gene in each")
    found: dict[str, Path] = {}
    for path in files:
        name = Path(path.name.removesuffix(PACKED)).stem
        if name in found:
            raise InputError(f"{path}: found gene {show_name(name)} again, expected different names ({found[name]})")
        if "=" in name or len(name.splitlines()) != 1:
            raise InputError(f"{path}: found {show_name(name)} as a name, expected one without '=' and line breaks")
        found[name] = path
    return dict(zip(found, read_alignments(list(found.values()), states, names=names), strict=True))


def join_alignments(genes: Mapping[str, Sequences], source: str) -> tuple[Sequences, list[tuple[int, int]]]:
    """The alignments side by side, with gaps for the taxa that a gene lacks, and the columns of each gene, from 1.

    Taxa are in the order of their names. `source` is what messages call the whole.
    """
    names = sorted({name for own in genes.values() for name in own.names})
    pieces: dict[str, list[bytes]] = {name: [] for name in names}
    ranges: list[tuple[int, int]] = []
    first = 1
    for own in genes.values():
        own.refuse_table("the alignment of a gene")
        rows = dict(zip(own.names, own.rows, strict=True))
        for name in names:
            pieces[name].append(rows.get(name, GAP * own.n_sites))
        ranges.append((first, first + own.n_sites - 1))
        first += own.n_sites
    kinds = {own.states.name if own.states else "" for own in genes.values()}
    is_one_kind = len(kinds) == 1
    some = next(iter(genes.values()))
    joined = Sequences(
        tuple(names),
        tuple(b"".join(pieces[name]) for name in names),
        source,
        some.states if is_one_kind else None,
        told=is_one_kind and all(own.told for own in genes.values()),
        sets={byte: states for own in genes.values() for byte, states in own.sets.items()},
        names_are=some.names_are,
    )
    return joined, ranges
