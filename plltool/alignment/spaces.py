"""Which state space data belong to: by name, by what their model knows, and by what their characters show."""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from plltool.alignment.codons import DOUBLET, codon_space, doublet_space, genetic_code_of
from plltool.alignment.states import (
    COUNTED_SYMBOLS,
    DNA,
    EITHER,
    GENOTYPES,
    ILLEGAL_CODE,
    MULTISTATE,
    PHASED_GENOTYPES,
    PROTEIN,
    StateSpace,
    count_states,
    make_space,
    multistate_space,
    state_rows,
)
from plltool.arrays import BoolArray, IndexArray

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
_OTHER_NAMES = {"nt": "dna", "nucleotide": "dna", "aa": "protein", "prot": "protein", "binary": "bin"}  # of programs

_CLEAR_BASES = b"ACGTUacgtu"
_SILENT = b"NXnx"  # any base, or any amino acid; N also is asparagine
_DIGITS = b"0123456789"
_LETTERS = string.ascii_letters.encode()
_NO_BASES = bytes(byte for byte in _LETTERS if DNA.code_of[byte] == ILLEGAL_CODE != PROTEIN.code_of[byte])
_MANY = 60  # letters of proteins, among which surely is one that DNA has not
_FEW = 20  # letters of DNA of which at most one is no base: a typing error


def space_called(name: str) -> StateSpace | None:
    """The space that users call so: one of SPACES, ``codon``, or ``codon2`` for another genetic code; None if none.

    Case does not matter, and other programs' names are known, such as AA and NT.
    """
    genetic_code, word = genetic_code_of(name), name.lower()
    return SPACES.get(_OTHER_NAMES.get(word, word)) if genetic_code is None else codon_space(genetic_code)


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
    others = {symbol.swapcase(): symbol for symbol in symbols if symbol.swapcase() not in symbols}
    return make_space(name, symbols, others)


class NamedSpace(StateSpace):
    """States with names, which only the cells of a table can be: no character stands for one."""


NAMED = NamedSpace("named-state", (), np.zeros(256, dtype=np.uint8), np.zeros((1, 0), dtype=bool), "")  # of any names


def settle_space(states: StateSpace, sequences: Iterable[bytes], sets: Mapping[int, bytes]) -> StateSpace:
    """`states`, or what stands for: if these are `COUNTED`, the space of as many states as the sequences show."""
    return multistate_space(count_states(sequences, sets)) if states is COUNTED else states


def detect_states(sequences: Iterable[bytes]) -> StateSpace:
    """The space that sequences most likely belong to.

    They are multistate data, `COUNTED`, if at least half of their digits and letters are digits. Otherwise they are
    what most sequences are, however long each of them is, and where there are as many of both, what all of them
    together are; see `has_bases`. Many letters that DNA all has, ambiguous ones included, are DNA. A sequence is no DNA
    either if one in `_FEW` of its letters is none that DNA has. Proteins have such a letter in every third place.
    """
    total, lead = np.zeros(256, dtype=np.intp), 0  # sequences of DNA over those of proteins
    for sequence in sequences:
        counts = count_bytes([sequence])
        total += counts
        known = _count(counts, _LETTERS) - _count(counts, _SILENT)
        if known:
            is_dna = has_bases(counts) and _FEW * _count(counts, _NO_BASES) <= known
            lead += 1 if is_dna else -1
    digits = _count(total, _DIGITS)
    if digits and digits >= _count(total, _LETTERS):
        return COUNTED
    if not _count(total, _NO_BASES) and _count(total, _LETTERS) - _count(total, _SILENT) >= _MANY:
        return DNA
    return DNA if lead > 0 or (lead == 0 and has_bases(total)) else PROTEIN


def count_bytes(sequences: Iterable[bytes]) -> IndexArray:
    """How often each byte occurs (256,)."""
    return sum(
        (np.bincount(np.frombuffer(own, dtype=np.uint8), minlength=256) for own in sequences), np.zeros(256, int)
    )


def has_bases(counts: IndexArray) -> bool:
    """Whether at least half of the letters are bases; `counts` are the numbers of each byte (256,).

    Nearly all letters of DNA are bases, and about a fifth of those of proteins. N and X do not count.
    """
    return 2 * _count(counts, _CLEAR_BASES) >= _count(counts, _LETTERS) - _count(counts, _SILENT)


def _count(counts: IndexArray, members: bytes) -> int:
    return int(counts[list(members)].sum())


def find_digits(sequences: Sequence[bytes]) -> BoolArray | None:
    """Which columns have digits (n_sites,), where columns of digits and of letters lie side by side; otherwise None."""
    has_digit, has_letter = np.zeros((2, len(sequences[0])), dtype=bool)
    for row in (np.frombuffer(sequence, dtype=np.uint8) for sequence in sequences):
        has_digit |= np.isin(row, list(_DIGITS))
        has_letter |= np.isin(row, list(_LETTERS))
    apart = has_digit.any() and has_letter.any() and not (has_digit & has_letter).any()
    return has_digit if apart else None
