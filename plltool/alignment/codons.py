"""Codons: the genetic codes, state spaces of sense codons, and sequences that are cut into codons."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from plltool.alignment.states import DNA, ILLEGAL_CODE, CodeArray
from plltool.alignment.words import WordSpace, word_tables
from plltool.arrays import IndexArray
from plltool.constants import GENETIC_CODES, STANDARD_CODE
from plltool.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plltool.alignment.alignment import Sequences

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
    """The space of the sense codons of a genetic code."""
    symbols = tuple(codon for codon, acid in translation(genetic_code).items() if acid != STOP)
    sets, code_of_word = word_tables(symbols)
    return CodonSpace(data_name(genetic_code), symbols, DNA.code_of, sets, DNA.doubtful, code_of_word, genetic_code)


def read_codons(
    given: Sequences, states: CodonSpace, rows: Sequence[bytes], sites: IndexArray
) -> tuple[CodeArray, tuple[str, ...]]:
    """The codes of columns of DNA, and warnings; a last codon that is a stop wherever it is known is dropped.

    `rows`, `sites`: the columns, with characters of DNA only, and their places in `given`, from 0.

    Raises InputError if the number of columns is not a multiple of 3, or a sequence has a stop codon.
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
