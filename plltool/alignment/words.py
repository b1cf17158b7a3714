"""State spaces of words: several bases, such as those of a codon, are one state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from plltool.alignment.states import DNA, ILLEGAL_CODE, CodeArray, StateSpace
from plltool.arrays import BoolArray

DOUBLET = "doublet"  # the name of `doublet_space`


@dataclass(frozen=True, eq=False)
class WordSpace(StateSpace):
    """States that are words of bases.

    A word of letters stands for all states that the letters allow. Gaps and undetermined letters allow every base, so a
    word of gaps is undetermined, and ``A-`` is any word that begins with A.
    """

    # uint16 array (16^width,), the code of each word, ``16 a + b`` for the codes a, b of its letters in `DNA`, and so
    # on for longer ones; `ILLEGAL_CODE` where they allow no state
    code_of_word: CodeArray

    @property
    def width(self) -> int:
        return len(self.symbols[0])

    @property
    def letters(self) -> StateSpace:
        return DNA

    def encode(self, sequence: bytes) -> CodeArray:
        letters = DNA.encode(sequence).astype(np.uint16).reshape(-1, self.width)
        return self.code_of_word[letters @ (DNA.n_codes ** np.arange(self.width)[::-1]).astype(np.uint16)]


def word_tables(symbols: tuple[str, ...]) -> tuple[BoolArray, CodeArray]:
    """The sets of states (n_codes, n_states) that words of letters allow, and the code of each word.

    `symbols` are words of the same length.
    """
    allows = DNA.state_sets.astype(bool)
    sets = np.ones((1, len(symbols)), dtype=bool)
    for letters in zip(*symbols, strict=True):
        own = allows[:, [DNA.symbols.index(letter) for letter in letters]]
        sets = (sets[:, None] & own[None]).reshape(-1, len(symbols))
    distinct, code_of_word = np.unique(sets, axis=0, return_inverse=True)  # the empty set is first
    assert not distinct[ILLEGAL_CODE].any(), "a letter without a base has no state"
    codes = code_of_word.astype(np.uint16).ravel()
    for table in (distinct, codes):
        table.setflags(write=False)
    return distinct, codes


@cache
def doublet_space() -> WordSpace:
    """The 16 pairs of bases that two columns may have, in alphabetical order."""
    symbols = tuple(a + b for a in DNA.symbols for b in DNA.symbols)
    sets, code_of_word = word_tables(symbols)
    return WordSpace(DOUBLET, symbols, DNA.code_of, sets, DNA.doubtful, code_of_word)
