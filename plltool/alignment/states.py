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

from plltool.arrays import AnyArray, BoolArray, FloatArray, WholeArray
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

    name: str  # as messages call the data, such as "DNA"
    symbols: tuple[str, ...]  # of the states, in the order of the rate matrix; a character for a base or an amino acid
    code_of: CodeArray  # (256,) of each byte of a sequence, for codons of a base; `ILLEGAL_CODE` if it means nothing
    state_sets: BoolArray  # (n_codes, n_states) the states that each code allows; those of `ILLEGAL_CODE` are none
    doubtful: str  # characters that are read as undetermined but deserve a warning

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
    def tips(self) -> BoolArray | FloatArray:
        """The likelihood of each state at a tip with each code (n_codes, n_states); 1 for each in its set."""
        return self.state_sets

    @property
    def masks(self) -> AnyArray:
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
        unions = {byte: union for byte, members in sets.items() if (union := self._union(members)) is not None}
        code_of, (codes, state_sets) = self.code_of.copy(), self._number(unions.values())
        code_of[list(unions)] = codes
        return replace(self, code_of=code_of, state_sets=state_sets)

    def _union(self, members: bytes) -> BoolArray | None:
        """(n_states,) the states that any of some characters allows; None if there is none, or one is illegal."""
        codes = self.code_of[np.frombuffer(members, dtype=np.uint8)]
        if not len(codes) or np.any(codes == ILLEGAL_CODE):
            return None
        return np.asarray(self.state_sets[codes].any(axis=0))

    def _number(self, sets: Iterable[BoolArray]) -> tuple[list[int], BoolArray]:
        """The code of each of some sets (n_states,), and the sets of all codes; new ones come last."""
        code_of_set = {row.tobytes(): code for code, row in enumerate(self.state_sets)}
        codes = [code_of_set.setdefault(row.tobytes(), len(code_of_set)) for row in sets]
        return codes, np.array([np.frombuffer(row, dtype=np.bool_) for row in code_of_set])

    def with_cells(self, cells: Sequence[str]) -> StateSpace:
        """The space of a table's cells: byte b stands for ``cells[b]``, see `UNKNOWN_CELL` and `EITHER`."""
        states = [self.symbols if cell == UNKNOWN_CELL else cell.split(EITHER) for cell in cells]
        legal = {byte: own for byte, own in enumerate(states) if set(own) <= set(self.symbols)}
        codes, state_sets = self._number(np.isin(self.symbols, own) for own in legal.values())
        code_of = np.full(256, ILLEGAL_CODE, dtype=np.uint16)
        code_of[list(legal)] = codes
        return replace(self, code_of=code_of, state_sets=state_sets)

    def with_likelihoods(self, vectors: FloatArray) -> tuple[StateSpace, CodeArray]:
        """The space with codes for likelihoods of states, `vectors` (n, n_states), and the code of each of them (n,).

        Those that are 0 and 1 are sets. If all are, there is nothing to grade, and the space has at most more sets. New
        codes are in the order of the likelihoods, whatever that of `vectors` is.
        """
        likely = vectors == vectors.max(axis=1, keepdims=True)
        distinct, which = np.unique(likely, axis=0, return_inverse=True)
        set_codes, state_sets = self._number(distinct)
        codes = np.array(set_codes, dtype=np.intp)[which.ravel()]
        plain = self if len(state_sets) == self.n_codes else replace(self, state_sets=state_sets)
        is_set = np.isin(vectors, (0, 1)).all(axis=1)
        graded, places = np.unique(vectors[~is_set], axis=0, return_inverse=True)
        likelihoods = np.concatenate([plain.state_sets, graded])
        plain_codes = np.arange(len(likelihoods))
        plain_codes[plain.n_codes + places.ravel()] = codes[~is_set]
        codes[~is_set] = plain.n_codes + places.ravel()
        found: CodeArray = codes.astype(np.promote_types(self.code_of.dtype, np.min_scalar_type(len(likelihoods))))
        if is_set.all():
            return plain, found
        of_sets = plain_codes.astype(found.dtype)
        fields = (plain.code_of, plain.state_sets[plain_codes], plain.doubtful, likelihoods, plain, of_sets)
        return GradedSpace(self.name, self.symbols, *fields), found

    def letter_for(self, members: bytes) -> bytes:
        """The character that stands for any of some characters, such as R for AG; empty if there is none."""
        union = self._union(members)
        is_same = np.zeros(self.n_codes, dtype=bool) if union is None else (self.state_sets == union).all(axis=1)
        found = (letter for letter in self.characters if is_same[self.code_of[ord(letter)]])
        return next(found, "").encode("ascii")


@dataclass(frozen=True, eq=False)
class GradedSpace(StateSpace):
    """A space with codes for likelihoods of states behind the codes of `plain`; sets are the most likely states."""

    likelihoods: FloatArray  # (n_codes, n_states) from 0 to 1
    plain: StateSpace  # the space of sets
    plain_codes: CodeArray  # (n_codes,) the code of each set in it

    @property
    def tips(self) -> FloatArray:
        return self.likelihoods


def spell(states: WholeArray, symbols: Sequence[str], width: int) -> CellArray:
    """What is written for states (rows, n_cells): a name each, or `width` characters; (rows, n_cells * width)."""
    written = [list(symbol) if width > 1 else [symbol] for symbol in symbols]
    cells = np.array([[text.encode() for text in texts] for texts in written])
    return cells[states].reshape(len(states), -1)


def join_cells(cells: CellArray) -> list[str]:
    """Each row as one text; names, which have several characters, are separated by tabs."""
    separator = b"" if cells.dtype.itemsize == 1 else b"\t"
    return [separator.join(row).decode() for row in cells.tolist()]


UNDETERMINED = "?-."


def state_rows(n_states: int, *others: tuple[bool, ...]) -> BoolArray:
    """Sets (n_codes, n_states): all up to `MASK_STATES` states, row c is mask c; else none, each, `others` and all."""
    if n_states <= MASK_STATES:
        sets: BoolArray = (np.arange(1 << n_states)[:, None] >> np.arange(n_states)) & 1 == 1
        return sets
    single = map(tuple, np.eye(n_states, dtype=bool).tolist())
    return np.array(list(dict.fromkeys([(False,) * n_states, *single, *others, (True,) * n_states])))


def make_space(
    name: str, symbols: str, ambiguities: Mapping[str, str], unknown: str = UNDETERMINED, doubtful: str = ""
) -> StateSpace:
    """A space of characters in both cases; `ambiguities` have several states, `unknown` and `doubtful` ones any."""
    sets = {symbol: symbol for symbol in symbols} | dict(ambiguities) | dict.fromkeys(unknown + doubtful, symbols)
    rows = {key: tuple(symbol in states for symbol in symbols) for key, states in sorted(sets.items())}
    state_sets = state_rows(len(symbols), *(rows[key] for key in ambiguities))
    codes = {tuple(row): code for code, row in enumerate(state_sets.tolist())}
    code_of = np.zeros(256, dtype=np.uint8)
    for character, row in rows.items():  # lower case last, where it is a character of its own
        code_of[[ord(character), ord(character.lower())]] = codes[row]
    code_of.setflags(write=False)
    state_sets.setflags(write=False)
    return StateSpace(name, tuple(symbols), code_of, state_sets, doubtful)


_BASES = {"U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"}  # Cornish-Bowden 1985, table 1
_BASES |= {"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG"}
# doubtful: a stop or a frame shift (MACSE), a terminal gap (GCG): legal elsewhere, rarely meant here
DNA = make_space("DNA", "ACGT", _BASES, unknown="NXO?-.", doubtful="*!~")
_ACIDS = {"B": "ND", "Z": "QE", "J": "IL"}  # IUPAC-IUB 1984
# in the order of PAML's matrices; doubtful: selenocysteine and pyrrolysine, which no published matrix knows, and these
PROTEIN = make_space("protein", "ARNDCQEGHILKMFPSTWYV", _ACIDS, unknown="X?-.", doubtful="UO*!~")


# --- binary and multistate data, such as morphology: digits and letters stand for numbered states ---------

MULTISTATE = "multistate"  # the name of all these spaces; the number of states tells them apart
COUNTED_SYMBOLS = string.digits + string.ascii_uppercase  # from which a number of states is inferred
SYMBOLS = COUNTED_SYMBOLS + "!\"#$%&'()*+,/:;<=>@[\\]^_{|}~"  # RAxML-NG's order
MIN_STATES, MAX_STATES = 2, len(SYMBOLS)


@functools.cache
def multistate_space(n_states: int) -> StateSpace:
    """The space of 2 to 64 states, the first of SYMBOLS; upper and lower case are the same."""
    return make_space(MULTISTATE, SYMBOLS[:n_states], {})


def count_states(sequences: Iterable[bytes], sets: Mapping[int, bytes]) -> int:
    """The number of states that sequences show: the largest of COUNTED_SYMBOLS, in `sets` too, and all before."""
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
_SAME = {character: UNPHASED["".join(sorted(pair))] for pair, character in PHASED.items()}  # whatever the phase
GENOTYPES = make_space("genotype", _SYMBOLS, _SAME, _UNKNOWN)
_PHASED_SYMBOLS = "".join((HOMOZYGOTES | PHASED)[pair] for pair in PHASED_ALLELES)
_EITHER = {letter: PHASED[pair] + PHASED[pair[::-1]] for pair, letter in UNPHASED.items()}
PHASED_GENOTYPES = make_space("phased genotype", _PHASED_SYMBOLS, _EITHER, _UNKNOWN)
