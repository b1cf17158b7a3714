"""Models of nucleotides: classes of equal exchangeabilities or rates, and Lie Markov models."""

import functools
import re
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import MAX_LIE_WEIGHT, RAY_DIGITS
from plltool.errors import InputError
from plltool.model.named import NamedModel, RateDesign, ordered_pairs, pair_names, read_words
from plltool.model.substitution import is_balanced

BASES = tuple("ACGT")
PAIRS = pair_names(BASES)

# The symmetry code of each name: one digit per rate, equal digits for equal rates
EQUAL_FREQUENCY_MODELS = read_words("nucleotides.txt", "equal frequencies")
FREE_FREQUENCY_MODELS = read_words("nucleotides.txt", "free frequencies")
ALIASES = read_words("nucleotides.txt", "aliases")

# Models that are not time-reversible: a character per rate, in the order of `ordered_pairs`, equal ones for equal rates
DIRECTED = {
    "UNREST": "0123456789AB",  # Yang 1994; model 12.12 of Woodhams, Fernandez-Sanchez & Sumner 2015
    "STRSYM": "012345543210",  # of both strands: a rate is that of the complements; model WS6.6
}

CUSTOM_PREFIX = "DNA"  # RAxML-NG's prefix of six digits

SYMMETRIES = EQUAL_FREQUENCY_MODELS | FREE_FREQUENCY_MODELS
CANONICAL_NAMES = {name.upper(): name for name in (*SYMMETRIES, *DIRECTED)}
CANONICAL_NAMES |= {alias.upper(): name for alias, name in ALIASES.items()}


def renumber(code: str) -> str:
    """A symmetry code with its classes numbered in the order in which they first occur: 313313 -> 010010."""
    order = "".join(dict.fromkeys(code))
    return "".join(str(order.index(digit)) for digit in code)


def symmetry(name: str) -> str:
    """The classes of the exchangeabilities AC AG AT CG CT GT, or of rates, as digits, numbered as they first occur."""
    return SYMMETRIES.get(name) or DIRECTED.get(name) or name.removeprefix(CUSTOM_PREFIX)


def find_name(word: str) -> str | None:
    """The canonical name of a model, from one of its spellings in upper case; None if it is none of nucleotides."""
    if custom := re.fullmatch(f"(?:{CUSTOM_PREFIX})?([0-9]{{6}})", word):
        return CUSTOM_PREFIX + renumber(custom[1])
    lie_markov = lie_markov_names().get(word)
    return CANONICAL_NAMES.get(word) or (lie_markov and LIE_ALIASES.get(lie_markov, lie_markov))


def named_model(name: str) -> NamedModel:
    """The model of a canonical name."""
    if _split_lie_markov(name)[1] in LIE_MODELS:
        design = RateDesign.of_rays(find_rays(basis_of(name)))
        rates = design.exchangeabilities(design.starts + np.linspace(0, 0.1, design.n_parameters))  # in no way special
        return NamedModel("DNA", BASES, design, is_directed=True, is_reversible=is_balanced(rates))
    design = RateDesign.of_classes([int(digit, 16) for digit in symmetry(name)])
    if name in DIRECTED:
        return NamedModel("DNA", BASES, design, is_directed=True, is_reversible=False)
    return NamedModel("DNA", BASES, design, "equal" if name in EQUAL_FREQUENCY_MODELS else "optimised")


# --- Lie Markov models ------------------------------------------------------------------------------------
#
# A model is a space of matrices ``sum_k w_k B_k`` without negative rates that is closed under products of transition
# probabilities. The matrices B_k, their names and those of the models are of Fernandez-Sanchez, Sumner, Jarvis &
# Woodhams (2015, J Math Biol 70:855) and Woodhams, Fernandez-Sanchez & Sumner (2015, Syst Biol 64:638). In 8.10a, say,
# 8 is the dimension of the space and 10 the number of rays of the cone without negative rates, whose sums are all these
# matrices. One pairing of the bases is treated apart.

WALL_TOLERANCE = 1e-9  # of the rates of a ray, the largest about 1; others that are not 0 are 0.1 or more
LIE_BASIS = {name: [*map(int, rates.split())] for name, rates in read_words("lie_markov.txt", "basis").items()}
LIE_MODELS = read_words("lie_markov.txt", "models")  # the basis matrices of each beside A; E stands for E1 and E2
WITHOUT_PAIRS = ("1.1", "3.3a", "4.4a", "6.7a", "9.20b", "12.12")  # the same for each pairing
LIE_ALIASES = {"12.12": "UNREST", "WS6.6": "STRSYM"}  # canonical names of models that are not only these
# The base that has the part of each base A C G T; the pairs are AG CT, AT CG and AC GT
PAIRINGS = {"RY": "ACGT", "WS": "ACTG", "MK": "AGCT"}


@functools.cache
def lie_markov_names() -> dict[str, str]:
    """The name of each model by all its spellings, in upper case."""
    pairs = [(prefix, model) for model in LIE_MODELS for prefix in ("", *PAIRINGS)]
    return {p + m.upper(): m if m in WITHOUT_PAIRS else (p or "RY") + m for p, m in pairs}


@functools.cache
def basis_of(name: str) -> FloatArray:
    """(12, dimension) the rates of each basis matrix of a model, A first."""
    pairing, model = _split_lie_markov(name)
    letters = re.sub(r"\b([EFG])\b", r"\g<1>1 \g<1>2", LIE_MODELS[model]).split()
    part = dict(zip(BASES, PAIRINGS[pairing], strict=True))
    pairs = ordered_pairs(BASES)
    places = [pairs.index(part[pair[0]] + part[pair[1]]) for pair in pairs]
    return np.array([LIE_BASIS[letter] for letter in ("A", *letters)], dtype=np.float64).T[places]


def _split_lie_markov(name: str) -> tuple[str, str]:
    return (name[:2], name[2:]) if name[:2] in PAIRINGS else ("RY", name)


def find_rays(basis: FloatArray) -> FloatArray:
    """(12, n_rays) the rays of the cone of matrices ``basis @ weights`` without negative rates, each with mean rate 1.

    On a ray all but one degree of freedom is taken by rates that are 0, so every such set of rates is tried.
    """
    walls = np.unique(basis, axis=0)
    n_weights = basis.shape[1]
    chosen = walls[np.array([*combinations(range(len(walls)), n_weights - 1)], dtype=np.intp)]
    _, sizes, vectors = np.linalg.svd(chosen)
    rates = vectors[(sizes > WALL_TOLERANCE).all(axis=1), -1] @ basis.T
    rates *= np.sign(rates.sum(axis=1, keepdims=True))
    rates[np.abs(rates) < WALL_TOLERANCE] = 0.0
    rates = rates[(rates >= 0).all(axis=1) & rates.any(axis=1)]
    rates /= rates.mean(axis=1, keepdims=True)
    _, first = np.unique(rates.round(RAY_DIGITS), axis=0, return_index=True)
    return rates[first].T


def rates_of_weights(weights: Sequence[float], name: str) -> FloatArray:
    """(12,) the rates of the weights of basis matrices as IQ-TREE gives them, without the weight 1 of A.

    Only the direction of the weights u counts, and the largest of them: the rates are ``1 + f sum_k u_k B_k`` with f
    such that the lowest rate is ``1 - max |u|``.
    """
    basis = basis_of(name)[:, 1:]
    if len(weights) != basis.shape[1]:
        raise InputError(f"expected {basis.shape[1]} weights separated by commas, found {len(weights)}")
    for weight in weights:
        if not abs(weight) <= MAX_LIE_WEIGHT:
            found = f"weights must lie between {-MAX_LIE_WEIGHT:g} and {MAX_LIE_WEIGHT:g}, found {weight:g}"
            raise InputError(found)
    change = basis @ weights
    largest = np.abs(weights).max(initial=0.0)
    return np.asarray(1.0 - change * largest / change.min() if largest else np.ones(len(change)))
