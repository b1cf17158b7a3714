"""Diploid genotypes: pairs of bases with a character for each, and their state spaces.

Homozygotes are the letters of their bases, and heterozygotes of unknown phase the letters for both bases, such as M for
A/C (Kozlov, Alves, Stamatakis & Posada 2022). Phased heterozygotes have characters of plltool's own, see `PHASED`.
"""

from __future__ import annotations

import numpy as np

from plltool.alignment.multistate import UNDETERMINED
from plltool.alignment.states import DNA, make_space, state_rows

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
