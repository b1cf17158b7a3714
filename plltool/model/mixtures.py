"""Mixtures of matrices and of profiles: those that are published, and the user's own.

``MIX{e/e/...|e/e/...}{f/f/...|f/f/...}{r/r}`` has the exchangeabilities, the frequencies and the relative rate of each
class; ``FMIX{f/f/...|f/f/...}{r/r}`` has frequencies and rates of classes that share their exchangeabilities. These are
canonical names, so that the model string of a run is complete without the file that it came from.

``MIX{MODEL,MODEL}``, ``MIX{MODEL:r,MODEL:r}`` and ``MIX{MODEL:r:w,MODEL:r:w}`` are free mixtures, whose classes have
parameters of their own.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import MAX_EXCHANGEABILITY, MIN_EXCHANGEABILITY
from plltool.errors import InputError
from plltool.model import nucleotides, proteins
from plltool.model.checks import check_frequencies, check_positive
from plltool.model.components import Classes
from plltool.model.named import NamedModel, RateDesign, read_figures

MATRICES, PROFILES = "MIX", "FMIX"
START_SPREAD, START_ANGLE = 0.5, 0.5  # logarithms of start values of equal classes, and no cosines of 0 or equal ones
BETWEEN_CLASSES, BETWEEN_LISTS = "|", "}{"
_STATES = {len(nucleotides.PAIRS): ("DNA", nucleotides.BASES), len(proteins.PAIRS): ("protein", proteins.AMINO_ACIDS)}

Rows = Sequence[Sequence[float]]


def has_matrices(name: str) -> bool:
    """Whether it is the canonical name of a mixture of matrices."""
    return name in proteins.MIXTURES or (name.startswith(f"{MATRICES}{{") and not is_free(name))


def is_free(name: str) -> bool:
    """Whether it is the name of a free mixture, which has the names of models and not only numbers."""
    return re.match(MATRICES + r"\{[^{}]*[A-DF-Za-df-z]", name) is not None


def is_own(name: str) -> bool:
    """Whether it is the canonical name of a mixture of the user's own."""
    return name.startswith((f"{MATRICES}{{", f"{PROFILES}{{"))


def name_matrices(exchangeabilities: Rows, frequencies: Rows, rates: Sequence[float]) -> str:
    """The canonical name of classes with different matrices; InputError for values that cannot be used."""
    n_pairs = len(exchangeabilities[0])
    if n_pairs not in _STATES:
        expected = " or ".join(f"{n} ({data})" for n, (data, *_) in _STATES.items())
        raise InputError(f"expected {expected} exchangeabilities in a class, found {n_pairs}")
    symbols = _STATES[n_pairs][1]
    for row in exchangeabilities:
        if len(row) != n_pairs:
            raise InputError(f"expected {n_pairs} exchangeabilities in each class, found {len(row)}")
        check_positive(row, "exchangeabilities", 0.0)
        if not any(row):
            raise InputError("expected one of the exchangeabilities of a class above 0, found none")
    if len(frequencies) != len(exchangeabilities):
        raise InputError(f"expected frequencies of {len(exchangeabilities)} classes, found {len(frequencies)}")
    _check_classes(frequencies, rates, symbols, len(frequencies))
    return f"{MATRICES}{write_rows(exchangeabilities)}{write_rows(frequencies)}{write_rows([rates])}"


def name_profiles(frequencies: Rows, rates: Sequence[float], symbols: Sequence[str], n_classes: int) -> str:
    """The canonical name of profiles; with one class more than profiles, rates begin with the rate of another class."""
    _check_classes(frequencies, rates, symbols, n_classes)
    return f"{PROFILES}{write_rows(frequencies)}{write_rows([rates])}"


def _check_classes(frequencies: Rows, rates: Sequence[float], symbols: Sequence[str], n_classes: int) -> None:
    for row in frequencies:
        check_frequencies(row, symbols)
    if len(rates) != n_classes:
        raise InputError(f"expected {n_classes} rates of classes, found {len(rates)}")
    check_positive(rates, "rates of classes")


def write_rows(rows: Rows) -> str:
    """Numbers of classes in braces, as a model string has them."""
    return "{" + BETWEEN_CLASSES.join("/".join(map(repr, row)) for row in rows) + "}"


def _read(name: str) -> list[FloatArray]:
    """The numbers in each pair of braces of a canonical name; one row for each class."""
    lists = name[name.index("{") + 1 : -1].split(BETWEEN_LISTS)
    return [np.array([row.split("/") for row in text.split(BETWEEN_CLASSES)], dtype=np.float64) for text in lists]


@functools.cache
def read_matrices(name: str) -> Classes:
    """The classes of a mixture of matrices, with equal weights."""
    if name in proteins.MIXTURES:
        matrices = map(proteins.read_matrix, proteins.MIXTURES[name])
        exchangeabilities, shares = map(np.array, zip(*matrices, strict=True))
        rates = np.array(list(proteins.MIXTURES[name].values()))
    else:
        exchangeabilities, frequencies, (rates,) = _read(name)
        shares = frequencies / frequencies.sum(axis=1, keepdims=True)
    return Classes(exchangeabilities, shares, rates, np.full(len(rates), 1.0 / len(rates)))


@functools.cache
def read_profiles(name: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights (n,), frequencies (n, n_states) and relative rates (n,) of the profiles of a canonical name.

    The weights of published profiles are theirs, those of the user's own are equal. There is one more rate, the first,
    if the user's profiles stand beside a class with frequencies of its own.
    """
    if name in proteins.PROFILES:
        rows = read_figures("profiles.txt", name).reshape(-1, 1 + proteins.N_STATES)
        frequencies, weights, rates = rows[:, 1:], rows[:, 0] / rows[:, 0].sum(), np.ones(len(rows))
    else:
        frequencies, (rates,) = _read(name)
        weights = np.full(len(frequencies), 1.0 / len(frequencies))
    return weights, frequencies / frequencies.sum(axis=1, keepdims=True), rates


def name_members(texts: Sequence[str], rates: Sequence[float], weights: Sequence[float]) -> str:
    """The name of a free mixture of models with these rates and weights; free weights are an empty list."""
    if not weights and set(rates) == {1.0}:
        return f"{MATRICES}{{{','.join(texts)}}}"
    numbers = zip(rates, weights, strict=True) if weights else zip(rates, strict=True)
    items = zip(texts, numbers, strict=True)
    return f"{MATRICES}{{{','.join(':'.join([text, *map(repr, own)]) for text, own in items)}}}"


def join_members(members: Sequence[NamedModel], rates: Sequence[Sequence[float] | None]) -> NamedModel:
    """A free mixture's model, with all free parameters; they start apart: between equal classes lnL has a saddle."""
    designs, n = [own.rates for own in members], len(members)
    free = [design.is_free & (given is None) for design, given in zip(designs, rates, strict=True)]
    ends = np.cumsum([0, *map(np.count_nonzero, free)])
    base, starts = np.ones((n, len(members[0].pairs))), np.ones(ends[-1])
    powers = np.zeros((*base.shape, ends[-1]))
    for k, (design, own, given) in enumerate(zip(designs, free, rates, strict=True)):
        at = slice(ends[k], ends[k + 1])
        base[k] = design.base if given is None else design.exchangeabilities(np.array(given))
        powers[k, :, at] = design.powers[:, own]
        starts[at] = design.starts[own] * apart(k, n, own.sum())
    limits = np.tile([MIN_EXCHANGEABILITY, MAX_EXCHANGEABILITY], (ends[-1], 1))
    design = RateDesign(base, powers, starts, limits=limits, class_weights=(1.0 / n,) * n)
    return replace(members[0], rates=design, frequency_mode="model", frequencies=None)


def apart(number: int, n_classes: int, size: int) -> FloatArray:
    """Factors (size,) of the start values of a class, which differ between all classes."""
    turns = number / n_classes + np.arange(size) / max(size, 1)
    return np.asarray(np.exp(START_SPREAD * np.cos(2 * np.pi * turns + START_ANGLE)))


def named_model(name: str) -> NamedModel:
    """The model of the user's own matrices, with the exchangeabilities of the first class; see `read_matrices`."""
    first = read_matrices(name).exchangeabilities[0]
    return NamedModel(*_STATES[len(first)], RateDesign.published(first))
