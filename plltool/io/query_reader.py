"""Read query sequences that are aligned to a reference, from one or several files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from plltool.alignment.alignment import Sequences
from plltool.alignment.states import StateSpace
from plltool.errors import InputError
from plltool.io.alignment_reader import read_alignments


def read_queries(
    paths: Sequence[str | os.PathLike[str]], states: StateSpace | str | None = None, *, names: str | None = None
) -> tuple[Sequences, ...]:
    """The sequences of FASTA, PHYLIP or NEXUS files, gzipped or not, each with one sequence or more.

    `states` and `names` are as for `read_alignment`.

    Raises InputError as `read_alignment` does, and if a name occurs in two files, or there is no file.
    """
    if not paths:
        raise InputError("queries: found no file, expected one or more")
    files = tuple(read_alignments(paths, states, names=names, least=1))
    seen: dict[str, str] = {}
    for given in files:
        for taxon, name in enumerate(given.names):
            if name in seen:
                found = f"{given.source}: {given.describe_taxon(taxon)} is in {seen[name]}, too"
                raise InputError(f"{found}; rename one of them")
            seen[name] = given.source
    return files
