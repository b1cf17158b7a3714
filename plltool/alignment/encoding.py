"""Sequences as arrays of codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plltool.alignment.alignment import Alignment, Sequences, check_characters, show_character
from plltool.alignment.facts import count_noun
from plltool.alignment.spaces import OWN_STATES, CodonSpace, NamedSpace, read_codons
from plltool.alignment.states import ALLELES, GENOTYPES, PHASED_ALLELES, PHASED_GENOTYPES, StateSpace
from plltool.arrays import FloatArray, IndexArray
from plltool.errors import InputError


def encode(given: Sequences, states: StateSpace, sites: IndexArray) -> Alignment:
    """The codes of some columns, with warnings of characters whose meaning is doubtful."""
    if given.likelihoods is not None:
        graded, code_of = states.with_likelihoods(_fit_likelihoods(given, states, given.likelihoods.vectors))
        codes = np.ascontiguousarray(code_of[given.likelihoods.numbers[:, sites]])
        codes.setflags(write=False)
        return Alignment(given.names, codes, graded, given.source)
    rows = given.columns(sites)
    states = _space_of_bytes(given, states)
    for taxon, row in enumerate(rows):
        check_characters(given, taxon, row, states, sites)
    warnings = _doubtful_warnings(given, rows, states, sites)
    if isinstance(states, CodonSpace):
        codes, dropped = read_codons(given, states, rows, sites)
        warnings += dropped
    else:
        codes = np.empty((len(rows), len(sites) // states.width), dtype=states.code_of.dtype)
        for own, row in zip(codes, rows, strict=True):
            own[:] = states.encode(row)
    codes.setflags(write=False)
    return Alignment(given.names, codes, states, given.source, warnings)


def _fit_likelihoods(given: Sequences, states: StateSpace, vectors: FloatArray) -> FloatArray:
    """Likelihoods (n, n_states) for these states; InputError if there is another number of them.

    The two phases of a heterozygote are as likely as the genotype without phase.
    """
    if states is PHASED_GENOTYPES and vectors.shape[1] == GENOTYPES.n_states:
        place = {"".join(sorted(pair)): k for k, pair in enumerate(ALLELES)}
        return vectors[:, [place["".join(sorted(pair))] for pair in PHASED_ALLELES]]
    if states.width > 1 or vectors.shape[1] != states.n_states:
        found = f"found likelihoods of {vectors.shape[1]} states in each cell"
        raise InputError(f"{given.source}: {found}, expected {states.name} data, which has {states.n_states} states")
    return vectors


def _space_of_bytes(given: Sequences, states: StateSpace) -> StateSpace:
    """`states` with the meaning of the bytes of sequences; InputError if only a table has such states, or has none."""
    if given.table is not None and states.name.startswith(OWN_STATES):
        return states.with_cells(given.table.cells)
    if given.table is not None:
        expected = "a model with their names, MATRIX{FILE}"
        raise InputError(f"{given.source}: found a table of named states, expected {expected}, or another alignment")
    if isinstance(states, NamedSpace):
        expected = f"a table of taxa by characters, because states of the model have names, such as {states.symbols[0]}"
        raise InputError(f"{given.source}: found sequences of characters, expected {expected}")
    return states.with_sets(given.sets) if given.sets else states


def _doubtful_warnings(
    given: Sequences, rows: Sequence[bytes], states: StateSpace, sites: IndexArray
) -> tuple[str, ...]:
    """At most one line on characters that are read as undetermined but may mean something else."""
    is_doubtful = np.zeros(256, dtype=bool)
    is_doubtful[list(states.doubtful.encode("ascii"))] = True
    count, first = 0, ""
    for taxon, row in enumerate(rows):
        found = np.flatnonzero(is_doubtful[np.frombuffer(row, dtype=np.uint8)])
        if len(found) and not first:
            where = f"{given.describe_taxon(taxon)}, site {sites[found[0]] + 1}"
            first = f"{show_character(row, int(found[0]), given.sets)} in {where}"
        count += len(found)
    if not count:
        return ()
    return (f"{given.source}: {count_noun(count, 'character')} of '{states.doubtful}' read as a gap, first {first}",)
