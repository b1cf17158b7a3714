"""Codon models: the rates between sense codons that differ in one base (Goldman & Yang 1994; Muse & Gaut 1994).

The rate from codon i to j is a product of omega if their amino acids differ, of kappa where the change is a transition
(or, in models that end in 1KTV, a transversion), and of a frequency: under GY that of codon j, under MG that of the new
base at its position. Codons that differ in several bases do not change into each other. Names are IQ-TREE's and PAML's.

Under another genetic code than the standard one the name has its number in front, such as ``CODON2_GY``.
"""

import functools
import re

import numpy as np

from plltool.alignment.spaces import CODON, codon_space, data_name, genetic_code_of, translation
from plltool.arrays import FloatArray
from plltool.constants import MAX_EXCHANGEABILITY, MAX_OMEGA, MIN_EXCHANGEABILITY, MIN_OMEGA, STANDARD_CODE
from plltool.model.named import FrequencyMode, NamedModel, RateDesign, read_figures, read_words, unpack_matrix

START_OMEGA, START_KAPPA = 0.4, 2.0  # where they are optimised (PAML's example)
# What a change must be that the kappas of a model multiply
TRANSITION, TRANSVERSION = "transition", "transversion"
SINGLE_OMEGA = {name: tuple(kinds.split()) for name, kinds in read_words("codons.txt", "kappas").items()}
# The omega of each class of sites (Yang, Wong & Nielsen 2005; Yang et al. 2000): a value, or its bounds and its start.
NEUTRAL = 1.0
_PURIFYING, _POSITIVE = (MIN_OMEGA, 1.0, 0.1), (1.0, MAX_OMEGA, 2.0)
OMEGA_CLASSES: dict[str, tuple[float | tuple[float, float, float], ...]] = {
    "M1a": (_PURIFYING, NEUTRAL),
    "M2a": (_PURIFYING, NEUTRAL, _POSITIVE),
    "M3": tuple((MIN_OMEGA, MAX_OMEGA, start) for start in (0.3, 2.0, 8.0)),
}
CLASS_WEIGHTS = {"M1a": (0.7, 0.3), "M2a": (0.7, 0.2, 0.1), "M3": (0.8, 0.15, 0.05)}  # to start from
ALIASES = read_words("codons.txt", "aliases")
# Published exchangeabilities and frequencies, for the standard code; their figures are in ``figures/codons.txt``.
EMPIRICAL = ("ECMK07", "ECMrest")
SEMI_EMPIRICAL = {f"{name}_{other}": (name, other) for name in EMPIRICAL for other in ("GY", "GY0K", "GY1KTV", "GY2K")}
NAMES = (*SINGLE_OMEGA, *OMEGA_CLASSES, *EMPIRICAL, *SEMI_EMPIRICAL)
_CANONICAL = {name.upper(): name for name in NAMES} | ALIASES
_CANONICAL |= {
    f"{word}_{other}": f"{name}_{plain}"
    for word, name in _CANONICAL.copy().items()
    for other, plain in _CANONICAL.copy().items()
    if f"{name}_{plain}" in SEMI_EMPIRICAL
}
_PREFIX = re.compile(rf"({CODON}[0-9]*)_(.*)", re.IGNORECASE)
_PURINES = "AG"


def find_name(word: str) -> str | None:
    """The name of a codon model in its usual spelling; None for another word or an unknown genetic code."""
    genetic_code, plain = _split(word)
    name = _CANONICAL.get(plain.upper())
    if name is None or genetic_code is None or (genetic_code != STANDARD_CODE and name.startswith(EMPIRICAL)):
        return None
    return under_code(name, genetic_code)


def under_code(name: str, genetic_code: int) -> str:
    """The name of a model of the standard code under another one; published figures are of the standard code only."""
    if genetic_code == STANDARD_CODE or name.startswith(EMPIRICAL):
        return name
    return f"{CODON.upper()}{genetic_code}_{name}"


def named_model(name: str) -> NamedModel:
    """The codon model of a canonical name."""
    genetic_code, plain = _split(name)
    assert genetic_code is not None, name
    symbols = codon_space(genetic_code).symbols
    if plain.startswith(EMPIRICAL):
        return _empirical(plain, symbols)
    of_bases = plain.startswith("MG")
    mode: FrequencyMode = "f3x4" if of_bases else "empirical"
    design = _omega_classes(plain, genetic_code) if plain in OMEGA_CLASSES else _single_omega(plain, genetic_code)
    return NamedModel(data_name(genetic_code), symbols, design, mode, between="-", of_bases=of_bases)


def base_frequencies(codon_frequencies: FloatArray, symbols: tuple[str, ...], per_position: bool) -> FloatArray:
    """Frequencies (3, 4) of bases at the positions of codons, or in all positions, three times."""
    counts = np.einsum("s,spb->pb", codon_frequencies, _bases_at(symbols))
    return counts if per_position else np.tile(counts.mean(axis=0), (3, 1))


def product_frequencies(at_positions: FloatArray, symbols: tuple[str, ...]) -> FloatArray:
    """Codon frequencies: the products of base frequencies (3, 4), scaled to sum 1."""
    products = np.prod(np.einsum("pb,spb->sp", at_positions, _bases_at(symbols)), axis=1)
    return np.asarray(products / products.sum())


def per_base_factors(codon_frequencies: FloatArray, symbols: tuple[str, ...]) -> FloatArray:
    """Factors (n_pairs,) of exchangeabilities that make rates proportional to the frequency of the new base alone.

    The frequency of a codon is a product over its bases, so that of the new base is that of the codon over those of the
    two other bases, which both codons of the pair have.
    """
    bases = _bases_at(symbols)
    own = np.einsum("pb,spb->sp", take_apart(codon_frequencies, symbols), bases)
    first, second = np.triu_indices(len(symbols), 1)
    shared = (bases[first] * bases[second]).any(axis=2)
    return np.asarray(np.prod(np.where(shared, own[first], 1.0), axis=1) ** -1)


def take_apart(codon_frequencies: FloatArray, symbols: tuple[str, ...]) -> FloatArray:
    """The frequencies of bases (3, 4) of which codon frequencies are products, nearly so by least squares of logs."""
    design = _bases_at(symbols).reshape(len(symbols), -1)
    logs = np.linalg.lstsq(design, np.log(codon_frequencies), rcond=None)[0].reshape(3, 4)
    frequencies = np.exp(logs)
    return np.asarray(frequencies / frequencies.sum(axis=1, keepdims=True))


def are_products(codon_frequencies: FloatArray, symbols: tuple[str, ...], tolerance: float) -> bool:
    """Whether codon frequencies are products over their bases, up to this relative error."""
    products = product_frequencies(take_apart(codon_frequencies, symbols), symbols)
    return bool(np.abs(np.log(products / codon_frequencies)).max() <= tolerance)


def _split(name: str) -> tuple[int | None, str]:
    """The genetic code, None for an unknown one, and the name without it."""
    match = _PREFIX.fullmatch(name)
    return (genetic_code_of(match[1]), match[2]) if match else (STANDARD_CODE, name)


@functools.cache
def _bases_at(symbols: tuple[str, ...]) -> FloatArray:
    """(n_codons, 3, 4) 1 for the base that a codon has at a position."""
    return np.array([[[float(base == other) for other in "ACGT"] for base in codon] for codon in symbols])


def _changes(genetic_code: int) -> tuple[FloatArray, FloatArray, dict[str, FloatArray]]:
    """For each pair of codons: whether one base differs, whether the amino acid does, and changes by kind."""
    symbols, acids = codon_space(genetic_code).symbols, translation(genetic_code)
    pairs = [(a, b) for i, a in enumerate(symbols) for b in symbols[i + 1 :]]
    changed = [[(x, y) for x, y in zip(a, b, strict=True) if x != y] for a, b in pairs]
    single = np.array([float(len(bases) == 1) for bases in changed])
    replaced = np.array([float(acids[a] != acids[b]) for a, b in pairs])
    transitions = np.array([sum((x in _PURINES) == (y in _PURINES) for x, y in bases) for bases in changed], float)
    transversions = np.array([len(bases) for bases in changed], float) - transitions
    return single, replaced, {TRANSITION: transitions, TRANSVERSION: transversions}


def _empirical(plain: str, symbols: tuple[str, ...]) -> NamedModel:
    """Published figures, whose codons are sorted by the order of bases T C A G; perhaps times omega and kappas."""
    name, other = SEMI_EMPIRICAL.get(plain, (plain, ""))
    square, frequencies = unpack_matrix(read_figures("codons.txt", name), len(symbols))
    authors = sorted(symbols, key=lambda codon: ["TCAG".index(base) for base in codon])
    places = [authors.index(codon) for codon in symbols]
    rates = square[np.ix_(places, places)][np.triu_indices(len(symbols), 1)]
    design = _single_omega(other, STANDARD_CODE, rates) if other else RateDesign.published(rates)
    return NamedModel(CODON, symbols, design, frequencies=frequencies[places], between="-")


def _single_omega(plain: str, genetic_code: int, published: FloatArray | None = None) -> RateDesign:
    """One omega for all sites, perhaps times published exchangeabilities, from which an optimisation then starts."""
    single, replaced, kinds = _changes(genetic_code)
    base = single if published is None else published
    kappas = SINGLE_OMEGA[plain]
    names = ("omega", *(["kappa"] if len(kappas) == 1 else [f"kappa_{kind}" for kind in kappas]))
    starts = [START_OMEGA, *(START_KAPPA if kind == TRANSITION else 1.0 for kind in kappas)]
    if published is not None:
        starts = [1.0] * len(starts)
    limits = [(MIN_OMEGA, MAX_OMEGA)] + [(MIN_EXCHANGEABILITY, MAX_EXCHANGEABILITY)] * len(kappas)
    powers = np.column_stack([replaced, *(kinds[kind] for kind in kappas)]) * (base > 0)[:, None]
    reference = 2 if len(kappas) == 2 and not base[single == 0].any() else None
    return RateDesign(base, powers, np.array(starts), reference, names, np.array(limits))


def _omega_classes(plain: str, genetic_code: int) -> RateDesign:
    """Classes of sites that differ in omega and share kappa."""
    single, replaced, kinds = _changes(genetic_code)
    classes = OMEGA_CLASSES[plain]
    free = {number: omega for number, omega in enumerate(classes) if isinstance(omega, tuple)}
    powers = np.zeros((len(classes), len(single), len(free) + 1))
    for parameter, number in enumerate(free):
        powers[number, :, parameter] = replaced
    powers[:, :, -1] = kinds[TRANSITION] * single
    names = (*(f"omega{number}" for number in free), "kappa")
    bounds_and_starts = np.array([*free.values(), (MIN_EXCHANGEABILITY, MAX_EXCHANGEABILITY, START_KAPPA)])
    limits, starts = bounds_and_starts[:, :2], bounds_and_starts[:, 2]
    return RateDesign(single, powers, starts, None, names, limits, CLASS_WEIGHTS[plain])
