"""State spaces of words of bases, and which state space data belong to: by name, by model, by their characters."""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from plltool.alignment import states
from plltool.alignment.states import DNA, EITHER, ILLEGAL_CODE, PROTEIN, CodeArray, StateSpace
from plltool.arrays import BoolArray, IndexArray
from plltool.constants import GENETIC_CODES, STANDARD_CODE

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
    """The sets of states (n_codes, n_states) that words of letters allow, and the code of each; all have one length."""
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


OWN_STATES = "states "  # and their symbols or names, see `join_states`: the name of a user's state space
# Stands for the space of as many states as the data show
COUNTED = states.multistate_space(len(states.COUNTED_SYMBOLS))
# As users call them
SPACES = {"dna": DNA, "rna": DNA, "protein": PROTEIN, "bin": states.multistate_space(2)}
SPACES |= dict.fromkeys(("morph", "multi"), COUNTED)
_OTHER_NAMES = {"nt": "dna", "nucleotide": "dna", "aa": "protein", "prot": "protein", "binary": "bin"}  # of programs

_CLEAR_BASES = b"ACGTUacgtu"
_SILENT = b"NXnx"  # any base, or any amino acid; N also is asparagine
_DIGITS = b"0123456789"
_LETTERS = string.ascii_letters.encode()
_NO_BASES = bytes(byte for byte in _LETTERS if DNA.code_of[byte] == ILLEGAL_CODE != PROTEIN.code_of[byte])
_MANY = 60  # letters of proteins, among which surely is one that DNA has not
_FEW = 20  # letters of DNA of which at most one is no base: a typing error


def space_called(name: str) -> StateSpace | None:
    """The space that users and other programs call so, in any case, such as AA or ``codon2``; None if there is none."""
    genetic_code, word = genetic_code_of(name), name.lower()
    return SPACES.get(_OTHER_NAMES.get(word, word)) if genetic_code is None else codon_space(genetic_code)


def find_space(data: str, n_states: int) -> StateSpace:
    """The space of a model for `data`, a `StateSpace.name`, with `n_states`."""
    genetic_code = genetic_code_of(data)
    if genetic_code is not None:
        return codon_space(genetic_code)
    if data.startswith(OWN_STATES):
        return own_space(data)
    if data == states.MULTISTATE:
        return states.multistate_space(n_states)
    if data == DOUBLET:
        return doublet_space()
    return next(space for space in (DNA, PROTEIN, states.GENOTYPES, states.PHASED_GENOTYPES) if space.name == data)


def join_states(symbols: Sequence[str]) -> str:
    """Symbols of a user's states as one text: NSE, or north|south|east if they are not single digits and letters."""
    single = all(re.fullmatch("[0-9A-Za-z]", symbol) for symbol in symbols)
    return ("" if single else EITHER).join(symbols)


def split_states(text: str) -> tuple[str, ...]:
    """The symbols that `join_states` joined."""
    return tuple(text.split(EITHER) if EITHER in text else text)


@cache
def own_space(name: str) -> StateSpace:
    """A user's states; names occur in tables only; the other case of a letter is the same state, if it is no other."""
    symbols = name.removeprefix(OWN_STATES)
    if EITHER in symbols:
        names = split_states(symbols)
        return NamedSpace(name, names, np.zeros(256, dtype=np.uint8), states.state_rows(len(names)), "")
    others = {symbol.swapcase(): symbol for symbol in symbols if symbol.swapcase() not in symbols}
    return states.make_space(name, symbols, others)


class NamedSpace(StateSpace):
    """States with names, which only the cells of a table can be: no character stands for one."""


NAMED = NamedSpace("named-state", (), np.zeros(256, dtype=np.uint8), np.zeros((1, 0), dtype=bool), "")  # of any names


def settle_space(shown: StateSpace, sequences: Iterable[bytes], sets: Mapping[int, bytes]) -> StateSpace:
    """The space `shown`; if it is `COUNTED`, the space with as many states as the sequences show."""
    return states.multistate_space(states.count_states(sequences, sets)) if shown is COUNTED else shown


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
    counts = (np.bincount(np.frombuffer(own, dtype=np.uint8), minlength=256) for own in sequences)
    return sum(counts, np.zeros(256, int))


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
