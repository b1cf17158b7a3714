"""Names of the models of binary and multistate data.

``MULTI5_MK`` has five states. An *open* name, such as ``MK``, leaves their number to the data; ``MULTI*_MK`` also cuts
the columns into a part for each number of states.
"""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np

from plltool.alignment.states import MULTISTATE, SYMBOLS
from plltool.constants import NEGLIGIBLE_EXCHANGEABILITY
from plltool.model.named import NamedModel, RateDesign

MK, ORDERED, GTR = "MK", "ORDERED", "GTR"
MKV = "MKV"  # what MrBayes and RevBayes users call MK+ASC_LEWIS
# IQ-TREE's names, and RAxML-NG's BIN, for what would be MULTI_MK and so on
SHORT_NAMES = {
    "MK": "MULTI_MK",
    "ORDERED": "MULTI_ORDERED",
    "GTRX": "MULTI_GTR",
    "JC2": "MULTI2_MK",
    "BIN": "MULTI2_GTR",
}
ALIASES = {"GTR2": "BIN"}
EACH = "*"  # in place of the number of states: that of each column; nothing: that of the data
_NAME = re.compile(rf"MULTI([0-9]{{1,3}}|\*|)_({MK}|{ORDERED}|{GTR})")


def find_name(word: str) -> str | None:
    """The canonical name of a model, from one of its spellings in upper case; None if it is none of multistate data."""
    word = ALIASES.get(word, word)
    match = _NAME.fullmatch(word)
    if match is None:
        return word if word in SHORT_NAMES else None
    return _shorten(f"MULTI{int(match[1])}_{match[2]}" if match[1].isdigit() else word)


def split_name(name: str) -> tuple[str, str]:
    """The number of states as text, empty or EACH, and the kind of model: MK, ORDERED or GTR."""
    match = _NAME.fullmatch(SHORT_NAMES.get(name, name))
    assert match is not None, name
    return match[1], match[2]


def is_multistate(name: str) -> bool:
    """Whether it is the canonical name of a model of multistate data."""
    return _NAME.fullmatch(SHORT_NAMES.get(name, name)) is not None


def with_states(name: str, n_states: int) -> str:
    """The canonical name of the model of the same kind with this number of states."""
    return _shorten(f"MULTI{n_states}_{split_name(name)[1]}")


def _shorten(name: str) -> str:
    return next((short for short, full in SHORT_NAMES.items() if full == name), name)


def named_model(name: str) -> NamedModel:
    """The model of a canonical name; without states if it is open.

    MK: equal exchangeabilities (Lewis 2001). ORDERED: 1 between neighbouring states, NEGLIGIBLE_EXCHANGEABILITY between
    others. GTR: all free.
    """
    number, kind = split_name(name)
    n_states = int(number) if number.isdigit() else 0
    symbols = tuple(SYMBOLS[:n_states])
    pairs = list(combinations(range(n_states), 2))
    if kind == GTR and pairs:
        rates = RateDesign.of_classes(range(len(pairs)))
    else:
        rare = [kind == ORDERED and b - a > 1 for a, b in pairs]
        rates = RateDesign.published(np.where(rare, NEGLIGIBLE_EXCHANGEABILITY, 1.0))
    return NamedModel(MULTISTATE, symbols, rates, "optimised" if kind == GTR else "equal")
