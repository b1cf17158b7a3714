"""Protein models: published matrices and profiles, and mixtures of them.

The figures and their sources are in ``figures/matrices.txt``, ``figures/directed.txt`` and ``figures/profiles.txt``.
"""

import functools

import numpy as np

from plltool.arrays import FloatArray
from plltool.model import named
from plltool.model.named import NamedModel, RateDesign
from plltool.model.rates import RateKind
from plltool.model.substitution import exchangeability_matrix

AMINO_ACIDS = tuple("ARNDCQEGHILKMFPSTWYV")
N_STATES = len(AMINO_ACIDS)
PAIRS = named.pair_names(AMINO_ACIDS)

GTR20 = "GTR20"  # 190 free exchangeabilities
NONREV = "NONREV"  # 380 rates, 379 of them free
POISSON = "Poisson"  # equal exchangeabilities
# other names in use, among them RAxML-NG's
ALIASES = {"PROTGTR": GTR20, "JTT-DCMut": "JTTDCMut", "LG4": "LG4M", "F81AA": POISSON, "NR": NONREV}

# The matrices of each mixture, and the relative rates of its classes if its authors give them
MIXTURES: dict[str, dict[str, float]] = {
    name: {part: float(rate) for part, rate in (word.split("=") for word in words.split())}
    for name, words in named.read_words("mixtures.txt", "relative rates").items()
}
# Mixtures in which each rate category has a matrix of its own, and their usual rates.
TIED_RATES: dict[str, RateKind] = {"LG4M": "gamma", "LG4X": "free"}
PROFILES = ("C10", "C20", "C30", "C40", "C50", "C60")
_PARTS = {part for mixture in MIXTURES.values() for part in mixture}


@functools.cache
def published_matrices() -> tuple[str, ...]:
    """The names of the published matrices that are models by themselves."""
    return tuple(name for name in named.published_figures("matrices.txt") if name not in _PARTS)


@functools.cache
def directed_matrices() -> tuple[str, ...]:
    """The names of the published matrices that are not time-reversible."""
    return tuple(named.published_figures("directed.txt"))


@functools.cache
def canonical_names() -> dict[str, str]:
    """The name of each protein model by all its spellings, in upper case."""
    names = [*published_matrices(), *directed_matrices(), GTR20, NONREV, POISSON, *MIXTURES]
    return {name.upper(): name for name in names} | {alias.upper(): name for alias, name in ALIASES.items()}


def find_name(word: str) -> str | None:
    """The canonical name of a model, from one of its spellings in upper case; None if it is none of proteins."""
    return canonical_names().get(word)


def named_model(name: str) -> NamedModel:
    """The protein model of a canonical name; a mixture has its first matrix only."""
    rates, frequencies = read_matrix("LG")  # from which free rates start
    off_diagonal = ~np.eye(N_STATES, dtype=bool)
    if name == NONREV:
        rates = (exchangeability_matrix(rates) * frequencies)[off_diagonal]
        design = RateDesign.of_classes(range(len(rates)), rates / rates[-1])
        return NamedModel("protein", AMINO_ACIDS, design, is_directed=True, is_reversible=False)
    if name in directed_matrices():
        rates = named.read_figures("directed.txt", name).reshape(N_STATES, N_STATES)[off_diagonal]
        design = RateDesign.published(rates)
        return NamedModel("protein", AMINO_ACIDS, design, is_directed=True, is_reversible=False)
    if name == GTR20:
        design = RateDesign.of_classes(range(len(PAIRS)), rates / rates[-1])
        return NamedModel("protein", AMINO_ACIDS, design, "optimised", frequencies)
    rates, own = read_matrix(next(iter(MIXTURES.get(name, [name]))))
    design = RateDesign.published(rates)
    return NamedModel("protein", AMINO_ACIDS, design, frequencies=None if name in MIXTURES else own)


@functools.cache
def read_matrix(name: str) -> tuple[FloatArray, FloatArray]:
    """Exchangeabilities (190,), pairs in the order of PAIRS, and frequencies (20,) of an empirical model."""
    if name == POISSON:
        return np.ones(len(PAIRS)), np.full(N_STATES, 1.0 / N_STATES)
    return unpack_protein_matrix(named.read_figures("matrices.txt", name))


def unpack_protein_matrix(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same from the 210 numbers of PAML's format."""
    square, frequencies = named.unpack_matrix(numbers, N_STATES)
    return square[np.triu_indices(N_STATES, 1)], frequencies
