"""Which state space data belong to: by name, by what their model knows, and by what their characters show."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from plltool.alignment.codons import codon_space, genetic_code_of
from plltool.alignment.genotypes import GENOTYPES, PHASED_GENOTYPES
from plltool.alignment.multistate import COUNTED_SYMBOLS, MULTISTATE, UNDETERMINED, count_states, multistate_space
from plltool.alignment.states import DNA, EITHER, PROTEIN, StateSpace, make_space, state_rows
from plltool.alignment.words import DOUBLET, doublet_space

OWN_STATES = "states "  # and their symbols or names, see `join_states`: the name of a user's state space
COUNTED = multistate_space(len(COUNTED_SYMBOLS))  # stands for the space of as many states as the data show
SPACES = {  # as users call them
    "dna": DNA,
    "rna": DNA,
    "protein": PROTEIN,
    "bin": multistate_space(2),
    "morph": COUNTED,
    "multi": COUNTED,
}

_CLEAR_BASES = b"ACGTUacgtu"
_SILENT = b"NXnx"  # any base, or any amino acid; N also is asparagine


def space_called(name: str) -> StateSpace | None:
    """The space that users call so: one of SPACES, ``codon``, or ``codon2`` for another genetic code; None if none."""
    genetic_code = genetic_code_of(name)
    return SPACES.get(name) if genetic_code is None else codon_space(genetic_code)


def find_space(data: str, n_states: int) -> StateSpace:
    """The space of a model for `data`, a `StateSpace.name`, with `n_states`."""
    genetic_code = genetic_code_of(data)
    if genetic_code is not None:
        return codon_space(genetic_code)
    if data.startswith(OWN_STATES):
        return own_space(data)
    if data == MULTISTATE:
        return multistate_space(n_states)
    if data == DOUBLET:
        return doublet_space()
    return next(space for space in (DNA, PROTEIN, GENOTYPES, PHASED_GENOTYPES) if space.name == data)


def join_states(symbols: Sequence[str]) -> str:
    """Symbols of a user's states as one text: NSE, or north|south|east if they are not single digits and letters."""
    single = all(re.fullmatch("[0-9A-Za-z]", symbol) for symbol in symbols)
    return ("" if single else EITHER).join(symbols)


def split_states(text: str) -> tuple[str, ...]:
    """The symbols that `join_states` joined."""
    return tuple(text.split(EITHER) if EITHER in text else text)


@functools.cache
def own_space(name: str) -> StateSpace:
    """A user's state space; the other case of a letter is the same state, unless it is another one.

    States with names occur in tables only, where case matters.
    """
    symbols = name.removeprefix(OWN_STATES)
    if EITHER in symbols:
        names = split_states(symbols)
        return NamedSpace(name, names, np.zeros(256, dtype=np.uint8), state_rows(len(names)), "")
    sets = {symbol.swapcase(): symbol for symbol in symbols} | {symbol: symbol for symbol in symbols}
    sets |= dict.fromkeys(UNDETERMINED, symbols)
    return make_space(name, symbols, dict(sorted(sets.items())), state_rows(len(symbols)), "")


class NamedSpace(StateSpace):
    """States with names, which only the cells of a table can be: no character stands for one."""


NAMED = NamedSpace("named-state", (), np.zeros(256, dtype=np.uint8), np.zeros((1, 0), dtype=bool), "")  # of any names


def settle_space(states: StateSpace, sequences: Iterable[bytes], sets: Mapping[int, bytes]) -> StateSpace:
    """`states`, or what stands for: if these are `COUNTED`, the space of as many states as the sequences show."""
    return multistate_space(count_states(sequences, sets)) if states is COUNTED else states


def detect_states(sequences: Iterable[bytes]) -> StateSpace:
    """The space that sequences most likely belong to.

    They are multistate data, `COUNTED`, if at least half of their digits and letters are digits; else DNA if at least
    half of the unambiguous letters are bases. Nearly all letters of DNA are, and about a fifth of those of proteins.
    """
    counts = np.zeros(256, dtype=np.int64)
    for sequence in sequences:
        counts += np.bincount(np.frombuffer(sequence, dtype=np.uint8), minlength=256)
    letters = sum(int(counts[byte]) for byte in range(256) if chr(byte).isascii() and chr(byte).isalpha())
    digits, bases, silent = (int(counts[list(some)].sum()) for some in (b"0123456789", _CLEAR_BASES, _SILENT))
    if digits and digits >= letters:
        return COUNTED
    return DNA if 2 * bases >= letters - silent else PROTEIN
