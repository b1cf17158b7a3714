"""State spaces: the characters of a kind of data, and the set of states that each of them stands for."""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from plltool.arrays import BoolArray
from plltool.constants import MASK_STATES

CodeArray = npt.NDArray[np.unsignedinteger[Any]]
CellArray = npt.NDArray[np.bytes_]

ILLEGAL_CODE = 0
UNKNOWN_CELL, EITHER = "?", "|"  # in tables: any state; between states of which one is meant
WORD_BITS = 64  # of the largest integers of numpy


@dataclass(frozen=True, eq=False)
class StateSpace:
    """The states of a substitution model and the codes that an alignment is stored in.

    A code stands for a set of states: one state, an ambiguity, or all states where nothing is known. Only
    ``state_sets`` defines what a code means. So a space of 20 or 61 states need not number its codes as bit masks;
    `DNA` does (code c holds state i if bit i of c is set).
    """

    name: str  # str As messages call the data, such as "DNA"
    # tuple of str The name of each state, in the order of the rate matrix; one character for bases and amino acids.
    symbols: tuple[str, ...]
    # uint8 array (256,) The code of each byte of a sequence; `ILLEGAL_CODE` where the byte means nothing. For codons,
    # that of a base.
    code_of: CodeArray
    # bool array (n_codes, n_states) Row c holds the states that code c allows; the row of `ILLEGAL_CODE` is empty.
    state_sets: BoolArray
    doubtful: str  # str Characters that are read as undetermined but deserve a warning

    @property
    def width(self) -> int:
        """The number of characters that a cell has in a sequence: 3 for codons."""
        return 1

    @property
    def letters(self) -> StateSpace:
        """The space of single characters: DNA for codons."""
        return self

    def encode(self, sequence: bytes) -> CodeArray:
        """The codes of a sequence, whose length is a multiple of `width`."""
        return self.code_of[np.frombuffer(sequence, dtype=np.uint8)]

    @property
    def n_states(self) -> int:
        return self.state_sets.shape[1]

    @property
    def n_codes(self) -> int:
        return self.state_sets.shape[0]

    @property
    def masks(self) -> npt.NDArray[Any]:
        """The set of each code as a bit mask (n_codes,): bit i for state i; Python's integers beyond 64 states."""
        if self.n_states > WORD_BITS:
            bits = np.array([1 << state for state in range(self.n_states)], dtype=object)
            return np.array([sum(bits[row], 0) for row in self.state_sets], dtype=object)
        masks = (self.state_sets.astype(np.uint64) << np.arange(self.n_states, dtype=np.uint64)).sum(axis=1)
        return masks.astype(np.min_scalar_type(int(masks.max())))

    @property
    def all_states_code(self) -> int:
        """The code of an undetermined cell."""
        return int(self.state_sets.all(axis=1).argmax())

    @property
    def state_codes(self) -> CodeArray:
        """The code of each state alone (n_states,)."""
        alone = [(self.state_sets == row).all(axis=1).argmax() for row in np.eye(self.n_states, dtype=bool)]
        return np.array(alone, dtype=self.code_of.dtype)

    @cached_property
    def characters(self) -> str:
        """The characters for messages: letters in upper case, then the others; doubtful ones are left out."""
        legal = [chr(byte) for byte in np.flatnonzero(self.code_of[:128] != ILLEGAL_CODE)]
        offered = [c for c in legal if not c.islower() and c not in self.doubtful]
        return "".join(sorted(offered, key=lambda c: (not c.isalpha(), c)))

    def with_sets(self, sets: Mapping[int, bytes]) -> StateSpace:
        """The space with more characters: byte b stands for any of ``sets[b]``, if these are legal characters."""
        code_of, rows = self.code_of.copy(), list(self.state_sets)
        for byte, members in sets.items():
            codes = self.code_of[np.frombuffer(members, dtype=np.uint8)]
            if len(codes) and np.all(codes != ILLEGAL_CODE):
                union = self.state_sets[codes].any(axis=0)
                known = next((code for code, row in enumerate(rows) if (row == union).all()), len(rows))
                rows += [union] * (known == len(rows))
                code_of[byte] = known
        return replace(self, code_of=code_of, state_sets=np.array(rows))

    def with_cells(self, cells: Sequence[str]) -> StateSpace:
        """The space of a table's cells: byte b stands for ``cells[b]``, see `UNKNOWN_CELL` and `EITHER`."""
        place = {symbol: state for state, symbol in enumerate(self.symbols)}
        code_of, rows = np.full(256, ILLEGAL_CODE, dtype=np.uint16), list(self.state_sets)
        code_of_row = {row.tobytes(): code for code, row in enumerate(rows)}
        for byte, cell in enumerate(cells):
            members = self.symbols if cell == UNKNOWN_CELL else cell.split(EITHER)
            if all(member in place for member in members):
                row = np.zeros(self.n_states, dtype=bool)
                row[[place[member] for member in members]] = True
                code_of[byte] = code_of_row.setdefault(row.tobytes(), len(rows))
                rows += [row] * (len(code_of_row) > len(rows))
        return replace(self, code_of=code_of, state_sets=np.array(rows))

    def letter_for(self, members: bytes) -> bytes:
        """The character that stands for any of some characters, such as R for AG; empty if there is none."""
        codes = self.code_of[np.frombuffer(members, dtype=np.uint8)]
        if not len(codes) or np.any(codes == ILLEGAL_CODE):
            return b""
        union = self.state_sets[codes].any(axis=0)
        matching = (self.state_sets == union).all(axis=1)
        if not matching.any():
            return b""
        code = matching.argmax()
        return next(letter.encode("ascii") for letter in self.characters if self.code_of[ord(letter)] == code)


def spell(states: npt.NDArray[np.integer], symbols: Sequence[str], width: int) -> CellArray:
    """What is written for states (rows, n_cells): a name each, or `width` characters; (rows, n_cells * width)."""
    written = [list(symbol) if width > 1 else [symbol] for symbol in symbols]
    cells = np.array([[text.encode() for text in texts] for texts in written])
    return cells[states].reshape(len(states), -1)


def join_cells(cells: CellArray) -> list[str]:
    """Each row as one text; names, which have several characters, are separated by tabs."""
    separator = b"" if cells.dtype.itemsize == 1 else b"\t"
    return [separator.join(row).decode() for row in cells.tolist()]


_DNA_SYMBOLS = "ACGT"
_DNA_UNDETERMINED = "NXO?-."
_DNA_DOUBTFUL = "*!~"  # a stop or a frame shift (MACSE), a terminal gap (GCG): legal elsewhere, rarely meant here
_DNA_AMBIGUITIES = {  # Cornish-Bowden 1985, table 1
    "U": "T",
    "R": "AG",
    "Y": "CT",
    "S": "CG",
    "W": "AT",
    "K": "GT",
    "M": "AC",
    "B": "CGT",
    "D": "AGT",
    "H": "ACT",
    "V": "ACG",
}


def _make_dna() -> StateSpace:
    """The space of `DNA`: every IUPAC letter in both cases; U is T."""
    sets = {symbol: symbol for symbol in _DNA_SYMBOLS} | _DNA_AMBIGUITIES
    sets |= dict.fromkeys(_DNA_UNDETERMINED + _DNA_DOUBTFUL, _DNA_SYMBOLS)
    return make_space("DNA", _DNA_SYMBOLS, sets, every_set(len(_DNA_SYMBOLS)), _DNA_DOUBTFUL)


def every_set(n_states: int) -> BoolArray:
    """Each set of states (2^n_states, n_states); the number of a row is its bit mask."""
    sets: BoolArray = (np.arange(1 << n_states)[:, None] >> np.arange(n_states)) & 1 == 1
    return sets


def state_rows(n_states: int) -> BoolArray:
    """Sets (n_codes, n_states) of a space without ambiguities; up to `MASK_STATES` all sets, as engines take them."""
    if n_states <= MASK_STATES:
        return every_set(n_states)
    return np.vstack([np.zeros(n_states), np.eye(n_states), np.ones(n_states)]).astype(bool)


_PROTEIN_SYMBOLS = "ARNDCQEGHILKMFPSTWYV"
_PROTEIN_UNDETERMINED = "X?-."
_PROTEIN_DOUBTFUL = "UO*!~"  # selenocysteine and pyrrolysine, which no published matrix knows; a stop; a frame shift
_PROTEIN_AMBIGUITIES = {"B": "ND", "Z": "QE", "J": "IL"}  # IUPAC-IUB 1984


def _make_protein() -> StateSpace:
    """The space of `PROTEIN`: amino acids in the order of PAML's matrices, in both cases."""
    sets = {symbol: symbol for symbol in _PROTEIN_SYMBOLS} | _PROTEIN_AMBIGUITIES
    sets |= dict.fromkeys(_PROTEIN_UNDETERMINED + _PROTEIN_DOUBTFUL, _PROTEIN_SYMBOLS)
    distinct = ["", *dict.fromkeys(sets.values())]
    state_sets = np.array([[symbol in states for symbol in _PROTEIN_SYMBOLS] for states in distinct])
    return make_space("protein", _PROTEIN_SYMBOLS, sets, state_sets, _PROTEIN_DOUBTFUL)


def make_space(name: str, symbols: str, sets: Mapping[str, str], state_sets: BoolArray, doubtful: str) -> StateSpace:
    """A space from the set of states of each character; the codes are the rows of `state_sets`."""
    rows = {"".join(np.array(list(symbols))[row]): code for code, row in enumerate(state_sets)}
    code_of = np.zeros(256, dtype=np.uint8)
    for character, states in sets.items():
        code = rows["".join(symbol for symbol in symbols if symbol in states)]
        code_of[[ord(character), ord(character.lower())]] = code
    code_of.setflags(write=False)
    state_sets.setflags(write=False)
    return StateSpace(name, tuple(symbols), code_of, state_sets, doubtful)


DNA = _make_dna()
PROTEIN = _make_protein()


# --- binary and multistate data, such as morphology: digits and letters stand for numbered states ---------

MULTISTATE = "multistate"  # the name of all these spaces; the number of states tells them apart
COUNTED_SYMBOLS = string.digits + string.ascii_uppercase  # from which a number of states is inferred
SYMBOLS = COUNTED_SYMBOLS + "!\"#$%&'()*+,/:;<=>@[\\]^_{|}~"  # RAxML-NG's order
MIN_STATES, MAX_STATES = 2, len(SYMBOLS)
UNDETERMINED = "?-."


@functools.cache
def multistate_space(n_states: int) -> StateSpace:
    """The space of 2 to 64 states, the first of SYMBOLS; upper and lower case are the same."""
    symbols = SYMBOLS[:n_states]
    sets = {symbol: symbol for symbol in symbols} | dict.fromkeys(UNDETERMINED, symbols)
    return make_space(MULTISTATE, symbols, sets, state_rows(n_states), "")


def count_states(sequences: Iterable[bytes], sets: Mapping[int, bytes]) -> int:
    """The number of states that sequences show: the largest of COUNTED_SYMBOLS counts, and all before it.

    `sets` are those of `Sequences`. Other characters are for `encode` to refuse.
    """
    found: set[int] = set()
    for sequence in sequences:
        found.update(sequence)
    members = found.union(*(sets[byte] for byte in found if byte in sets))
    places = [COUNTED_SYMBOLS.find(chr(byte).upper()) for byte in members if chr(byte).isascii()]
    return max(MIN_STATES, 1 + max(places, default=-1))


# --- diploid genotypes ------------------------------------------------------------------------------------
#
# Homozygotes are the letters of their bases, and heterozygotes of unknown phase the letters for both bases, such as M
# for A/C (Kozlov, Alves, Stamatakis & Posada 2022). Phased heterozygotes have characters of plltool's own.

HETEROZYGOTES = ("AC", "AG", "AT", "CG", "CT", "GT")
UNPHASED = dict(zip(HETEROZYGOTES, "MRWSYK", strict=True))
PHASED = dict(zip((*HETEROZYGOTES, *(pair[::-1] for pair in HETEROZYGOTES)), "123456EFIJLP", strict=True))
HOMOZYGOTES = {base + base: base for base in DNA.symbols}
ALLELES = (*HOMOZYGOTES, *HETEROZYGOTES)  # of each state of `GENOTYPES`
PHASED_ALLELES = (*HOMOZYGOTES, *PHASED)  # of each state of `PHASED_GENOTYPES`
_UNKNOWN = "NX" + UNDETERMINED

_SYMBOLS = "".join((HOMOZYGOTES | UNPHASED)[pair] for pair in ALLELES)
GENOTYPES = make_space(  # a phased heterozygote is the same state as one of unknown phase
    "genotype",
    _SYMBOLS,
    {symbol: symbol for symbol in _SYMBOLS}
    | {character: UNPHASED["".join(sorted(pair))] for pair, character in PHASED.items()}
    | dict.fromkeys(_UNKNOWN, _SYMBOLS),
    state_rows(len(_SYMBOLS)),
    "",
)

_PHASED_SYMBOLS = "".join((HOMOZYGOTES | PHASED)[pair] for pair in PHASED_ALLELES)
_SETS = {symbol: symbol for symbol in _PHASED_SYMBOLS}
_SETS |= {letter: PHASED[pair] + PHASED[pair[::-1]] for pair, letter in UNPHASED.items()}
_SETS |= dict.fromkeys(_UNKNOWN, _PHASED_SYMBOLS)
_ROWS = [[symbol in some for symbol in _PHASED_SYMBOLS] for some in ("", *dict.fromkeys(_SETS.values()))]
PHASED_GENOTYPES = make_space("phased genotype", _PHASED_SYMBOLS, _SETS, np.array(_ROWS), "")
