"""State spaces by the names that users give to kinds of data."""

from __future__ import annotations

from plltool.alignment.codons import codon_space, genetic_code_of
from plltool.alignment.states import SPACES, StateSpace


def find_space(name: str) -> StateSpace | None:
    """The space of a kind of data: ``dna``, ``rna``, ``protein``, ``codon`` or ``codon2``; None for another name."""
    genetic_code = genetic_code_of(name)
    return SPACES.get(name.lower()) if genetic_code is None else codon_space(genetic_code)


def space_of(data: str) -> StateSpace:
    """The space of the data of a model, see `NamedModel.data`."""
    found = find_space(data)
    assert found is not None, data
    return found
