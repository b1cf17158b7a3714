"""Models of binary and multistate data, doublets, genotypes, and states of the user's own.

Multistate: ``MULTI5_MK`` has five states. An *open* name, such as ``MK``, leaves their number to the data;
``MULTI*_MK`` also cuts the columns into a part for each number of states.

Doublets are paired columns in the stems of RNA: 16 states, the pairs of bases (Savill, Hoyle & Higgs 2001). Names are
RAxML's. S16: the general time-reversible model. S16A: five exchangeabilities, see `DOUBLET_KINDS`. S16B: all of these
equal. In S16A and S16B pairs do not change into each other if both bases change and one of the pairs is a mismatch.

Genotypes: GT10 and GT16, without and with phase (Kozlov, Alves, Stamatakis & Posada 2022).

The user's own: ``MATRIX{STATES}{exchangeabilities}``, or ``MATRIX{STATES}{rates}``. States are symbols, such as NSE, or
have names: ``north|south|east``. There is an exchangeability for each pair of states where the process is
time-reversible, else a rate for each ordered pair, twice as many; the frequencies at the root are then the stationary
ones. The name has all values, so that the model string of a run is complete without the file that it came from.
"""

import re
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from plltool import constants
from plltool.alignment.spaces import DOUBLET, OWN_STATES, doublet_space, join_states, split_states
from plltool.alignment.states import ALLELES, EITHER, GENOTYPES, MULTISTATE, PHASED_ALLELES, PHASED_GENOTYPES, SYMBOLS
from plltool.errors import InputError, show_name
from plltool.model import nucleotides
from plltool.model.checks import check_positive, format_values
from plltool.model.named import NamedModel, RateDesign, pair_names
from plltool.model.substitution import rates_matrix

MK, ORDERED, GTR = "MK", "ORDERED", "GTR"
MKV = "MKV"  # what MrBayes and RevBayes users call MK+ASC_LEWIS
# IQ-TREE's names, and RAxML-NG's BIN, for what would be MULTI_MK and so on
SHORT_NAMES = {"MK": "MULTI_MK", "ORDERED": "MULTI_ORDERED", "GTRX": "MULTI_GTR"}
SHORT_NAMES |= {"JC2": "MULTI2_MK", "BIN": "MULTI2_GTR"}
MULTISTATE_ALIASES = {"GTR2": "BIN"}
EACH = "*"  # in place of the number of states: that of each column; nothing: that of the data
_MULTISTATE = re.compile(rf"MULTI([0-9]{{1,3}}|\*|)_({MK}|{ORDERED}|{GTR})")


def find_name(word: str) -> str | None:
    """The canonical name of a model, from one of its spellings in upper case; None if it is none of these data."""
    is_canonical = word in (*GENOTYPE_MODELS, *DOUBLET_MODELS) or word.startswith(f"{OWN_PREFIX}{{")
    return word if is_canonical else find_multistate(word)


def named_model(name: str) -> NamedModel:
    """The model of a canonical name."""
    if name in GENOTYPE_MODELS:
        return _genotype_model(name)
    if name in DOUBLET_MODELS:
        return _doublet_model(name)
    return _own_model(name) if name.startswith(OWN_PREFIX) else _multistate_model(name)


def find_multistate(word: str) -> str | None:
    """The canonical name of a model, from one of its spellings in upper case; None if it is none of multistate data."""
    word = MULTISTATE_ALIASES.get(word, word)
    match = _MULTISTATE.fullmatch(word)
    if match is None:
        return word if word in SHORT_NAMES else None
    return _shorten(f"MULTI{int(match[1])}_{match[2]}" if match[1].isdigit() else word)


def split_name(name: str) -> tuple[str, str]:
    """The number of states as text, empty or EACH, and the kind of model: MK, ORDERED or GTR."""
    match = _MULTISTATE.fullmatch(SHORT_NAMES.get(name, name))
    assert match is not None, name
    return match[1], match[2]


def with_states(name: str, n_states: int) -> str:
    """The canonical name of the model of the same kind with this number of states."""
    return _shorten(f"MULTI{n_states}_{split_name(name)[1]}")


def _shorten(name: str) -> str:
    return next((short for short, full in SHORT_NAMES.items() if full == name), name)


def _multistate_model(name: str) -> NamedModel:
    """MK: equal exchangeabilities (Lewis 2001); ORDERED: none but between neighbours; GTR: free; open: no states."""
    number, kind = split_name(name)
    n_states = int(number) if number.isdigit() else 0
    symbols = tuple(SYMBOLS[:n_states])
    pairs = list(combinations(range(n_states), 2))
    if kind == GTR and pairs:
        rates = RateDesign.of_classes(range(len(pairs)))
    else:
        rare = [kind == ORDERED and b - a > 1 for a, b in pairs]
        rates = RateDesign.published(np.where(rare, constants.NEGLIGIBLE_EXCHANGEABILITY, 1.0))
    return NamedModel(MULTISTATE, symbols, rates, "optimised" if kind == GTR else "equal")


# --- doublets ---------------------------------------------------------------------------------------------

RARE_DOUBLET_RATE = 0.3  # where S16 starts for pairs that S16A keeps apart; from 1 it ends 2 lnL lower, from 0.01 0.02
GENERAL, FIVE_RATES, ONE_RATE = DOUBLET_MODELS = ("S16", "S16A", "S16B")
STEM_PAIRS = ("AT", "TA", "CG", "GC", "GT", "TG")  # those of Watson and Crick, and wobble pairs
TRANSITION, DOUBLE_TRANSITION, TRANSVERSION = "alpha_s", "alpha_d", "beta"  # between two pairs that hold
ONE_MISMATCH, TWO_MISMATCHES = "gamma", "epsilon"  # one base changes, and one or both pairs are mismatches
DOUBLET_KINDS = (TRANSITION, DOUBLE_TRANSITION, TRANSVERSION, ONE_MISMATCH, TWO_MISMATCHES)
_PURINES = "AG"


def kind_of_change(one: str, other: str) -> str | None:
    """Which of `DOUBLET_KINDS` a change from one pair of bases to another is; None if it does not happen."""
    changes = [(a in _PURINES) == (b in _PURINES) for a, b in zip(one, other, strict=True) if a != b]
    holding = (one in STEM_PAIRS) + (other in STEM_PAIRS)
    if holding == 2:
        kinds = (TRANSITION, DOUBLE_TRANSITION)
        return kinds[len(changes) - 1] if all(changes) else TRANSVERSION
    if len(changes) > 1:
        return None
    return ONE_MISMATCH if holding == 1 else TWO_MISMATCHES


def _doublet_model(name: str) -> NamedModel:
    """The model of a canonical name; its frequencies are counted, as in RAxML."""
    symbols = doublet_space().symbols
    kinds = [kind_of_change(*pair) for pair in combinations(symbols, 2)]
    base = np.array([constants.NEGLIGIBLE_EXCHANGEABILITY if kind is None else 1.0 for kind in kinds])
    n = len(DOUBLET_KINDS) if name == FIVE_RATES else len(kinds)
    limits = np.tile([constants.MIN_DOUBLET_RATE, constants.MAX_DOUBLET_RATE], (n, 1))
    if name == ONE_RATE:
        design = RateDesign.published(base)
    elif name == FIVE_RATES:
        powers = np.array([[float(kind == other) for other in DOUBLET_KINDS] for kind in kinds])
        design = RateDesign(base, powers, np.ones(n), DOUBLET_KINDS.index(ONE_MISMATCH), DOUBLET_KINDS, limits)
    else:
        starts = np.array([RARE_DOUBLET_RATE if kind is None else 1.0 for kind in kinds])
        design = RateDesign(np.ones(n), np.eye(n), starts, n - 1, (), limits)
    return NamedModel(DOUBLET, symbols, design, "empirical", between="-")


# --- genotypes --------------------------------------------------------------------------------------------

WITHOUT_PHASE, WITH_PHASE = GENOTYPE_MODELS = ("GT10", "GT16")


def exchanged_bases(one: str, other: str, has_phase: bool = False) -> str | None:
    """The two bases of which one replaces the other, in its place with phase; None if both alleles differ."""
    places = ((0, 0), (1, 1)) if has_phase else ((0, 0), (0, 1), (1, 0), (1, 1))
    for a, b in places:
        if one[a] == other[b]:
            return "".join(sorted(one[1 - a] + other[1 - b]))
    return None


def _genotype_model(name: str) -> NamedModel:
    """Where one allele changes, the exchangeability of its bases in GTR; where both do, none."""
    has_phase = name == WITH_PHASE
    space, alleles = (PHASED_GENOTYPES, PHASED_ALLELES) if has_phase else (GENOTYPES, ALLELES)
    exchanged = [exchanged_bases(*pair, has_phase) for pair in combinations(alleles, 2)]
    base = np.array([constants.NEGLIGIBLE_EXCHANGEABILITY if bases is None else 1.0 for bases in exchanged])
    powers = np.array([[float(bases == pair) for pair in nucleotides.PAIRS] for bases in exchanged])
    rates = RateDesign(base, powers, np.ones(len(nucleotides.PAIRS)), len(nucleotides.PAIRS) - 1)
    return NamedModel(space.name, space.symbols, rates, "optimised")


# --- states of the user's own -----------------------------------------------------------------------------

OWN_PREFIX = "MATRIX"
_SYMBOL = re.compile(r"[^\W_][\w.-]*")


def make_name(symbols: Sequence[str], rates: Sequence[float]) -> str:
    """The canonical name; exchangeabilities, by rows of the upper triangle, or rates are relative to the largest."""
    check_symbols(symbols)
    n_pairs = len(symbols) * (len(symbols) - 1) // 2
    if len(rates) not in (n_pairs, 2 * n_pairs):
        expected = f"{n_pairs} exchangeabilities, or {2 * n_pairs} rates of a model that is not reversible"
        raise InputError(f"expected {expected}, found {len(rates)}")
    what = "exchangeabilities" if len(rates) == n_pairs else "rates"
    values = check_positive(rates, what, 0.0)
    if not any(values):
        raise InputError(f"expected one of the {what} above 0, found none")
    if len(rates) > n_pairs:  # rates above 0 must lead from each state, perhaps through others, to each other one
        leads = (rates_matrix(np.array(values)) > 0) | np.eye(len(symbols), dtype=bool)
        for _ in range(len(symbols).bit_length()):
            leads = leads @ leads
        if not leads.all():
            a, b = np.argwhere(~leads)[0].tolist()
            found = f"found no way from state {symbols[a]} to state {symbols[b]}"
            raise InputError(f"{found}, expected rates that lead there")
    largest = max(values)
    relative = [max(value / largest, constants.NEGLIGIBLE_EXCHANGEABILITY) for value in values]
    return f"{OWN_PREFIX}{{{join_states(symbols)}}}{format_values(relative)}"


def check_symbols(symbols: Sequence[str]) -> None:
    """Raise InputError unless all are different words, and as many as states may be."""
    wrong = next((symbol for symbol in symbols if not _SYMBOL.fullmatch(symbol)), None)
    if wrong is not None:
        expected = "a letter or digit, and perhaps more of them, '_', '-' and '.'"
        raise InputError(f"found {show_name(wrong)} as the name of a state, expected {expected}")
    twice = next((symbol for symbol in symbols if list(symbols).count(symbol) > 1), None)
    if twice is not None:
        raise InputError(f"the state {show_name(twice)} is listed twice")
    if not constants.MIN_OWN_STATES <= len(symbols) <= constants.MAX_OWN_STATES:
        expected = f"{constants.MIN_OWN_STATES} to {constants.MAX_OWN_STATES}"
        raise InputError(f"found {len(symbols)} states, expected {expected}")


def _own_model(name: str) -> NamedModel:
    """The model of a canonical name; its frequencies are equal unless others are given."""
    text, values = name.removeprefix(f"{OWN_PREFIX}{{").removesuffix("}").split("}{")
    symbols = split_states(text)
    rates = RateDesign.published(np.array([float(value) for value in values.split("/")]))
    between = EITHER if EITHER in text else ""
    if len(rates.base) == len(pair_names(symbols)):
        return NamedModel(OWN_STATES + text, symbols, rates, "equal", between=between)
    return NamedModel(OWN_STATES + text, symbols, rates, between=between, is_directed=True, is_reversible=False)
