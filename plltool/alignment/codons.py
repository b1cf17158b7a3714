"""State spaces of words, of which several bases are one state: doublets, and the sense codons of the genetic codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from plltool.alignment.states import DNA, ILLEGAL_CODE, CodeArray, StateSpace
from plltool.arrays import BoolArray, IndexArray
from plltool.constants import GENETIC_CODES, STANDARD_CODE
from plltool.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plltool.alignment.alignment import Sequences

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


# --- codons -----------------------------------------------------------------------------------------------

CODON = "codon"  # the kind of data under the standard code; other codes have their number after it
WIDTH = 3
STOP = "*"
TRIPLETS = tuple(a + b + c for a in DNA.symbols for b in DNA.symbols for c in DNA.symbols)  # in alphabetical order

# The amino acid of each codon, in the order of `TRIPLETS` (NCBI, https://www.ncbi.nlm.nih.gov/Taxonomy/Utils, 2024).
_STANDARD = "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"
_CODES = files("plltool.alignment").joinpath("genetic_codes.txt")  # what differs in each of the others


@dataclass(frozen=True, eq=False)
class CodonSpace(WordSpace):
    """The sense codons of a genetic code, in alphabetical order."""

    genetic_code: int  # its number, as NCBI counts


def translation(genetic_code: int) -> dict[str, str]:
    """The amino acid of each codon, or `STOP`, in the order of `TRIPLETS`."""
    standard = dict(zip(TRIPLETS, _STANDARD, strict=True))
    if genetic_code == STANDARD_CODE:
        return standard
    lines = _CODES.read_text(encoding="utf-8").splitlines()
    changes = next(line.split()[1:] for line in lines if line.split()[0] == str(genetic_code))
    return standard | dict(change.split("=") for change in changes)


def data_name(genetic_code: int) -> str:
    """What data of a genetic code are called: ``codon`` under the standard code, else with its number."""
    return CODON if genetic_code == STANDARD_CODE else f"{CODON}{genetic_code}"


def genetic_code_of(name: str) -> int | None:
    """The number of the genetic code in a kind of data such as ``codon2``; None if that names no codons."""
    number = name.lower().removeprefix(CODON)
    if not name.lower().startswith(CODON) or (number and not (number.isdecimal() and number.isascii())):
        return None
    genetic_code = int(number[:9] or STANDARD_CODE)
    return genetic_code if genetic_code in GENETIC_CODES else None


@cache
def codon_space(genetic_code: int) -> CodonSpace:
    symbols = tuple(codon for codon, acid in translation(genetic_code).items() if acid != STOP)
    sets, code_of_word = word_tables(symbols)
    return CodonSpace(data_name(genetic_code), symbols, DNA.code_of, sets, DNA.doubtful, code_of_word, genetic_code)


def read_codons(
    given: Sequences, states: CodonSpace, rows: Sequence[bytes], sites: IndexArray
) -> tuple[CodeArray, tuple[str, ...]]:
    """The codes of columns of DNA, and warnings; a last codon that is a stop wherever it is known is dropped.

    `rows`, `sites`: the columns, with characters of DNA only, and their places in `given`, from 0.
    """
    n_codons, left = divmod(len(sites), WIDTH)
    if left:
        found = f"found {len(sites)} sites, that is {n_codons} codons and {left} more"
        raise InputError(f"{given.source}: {found}, expected a multiple of {WIDTH} for {states.name} data")
    codes = np.stack([states.encode(row) for row in rows])
    warnings: tuple[str, ...] = ()
    last = codes[:, -1]
    if (last == ILLEGAL_CODE).any() and np.isin(last, (ILLEGAL_CODE, states.all_states_code)).all() and n_codons > 1:
        codes = np.ascontiguousarray(codes[:, :-1])
        warnings = (f"{given.source}: the last codon, site {sites[-WIDTH] + 1}, is a stop codon and left out",)
    if (codes == ILLEGAL_CODE).any():
        taxon, codon = np.argwhere(codes == ILLEGAL_CODE)[0].tolist()
        triplet = rows[taxon][WIDTH * codon : WIDTH * (codon + 1)].decode("ascii")
        where = f"{given.describe_taxon(taxon)}, site {sites[WIDTH * codon] + 1} (codon {codon + 1})"
        code = f"genetic code {states.genetic_code}"
        hint = "--data-type codonN says which code it is; else check the reading frame"
        found = f"found the stop codon {triplet}, expected a codon of {code} ({hint})"
        raise InputError(f"{given.source}: {where}: {found}")
    return codes, warnings
