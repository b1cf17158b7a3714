"""State spaces of the user's own, with a reversible matrix of rates: ``MATRIX{SYMBOLS}{exchangeabilities}``.

The canonical name has all values, so that the model string of a run is complete without the file that it came from.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np

from plltool.alignment.spaces import OWN_STATES
from plltool.constants import MAX_OWN_STATES, MIN_OWN_STATES, NEGLIGIBLE_EXCHANGEABILITY
from plltool.errors import InputError, show_name
from plltool.model.named import NamedModel, RateDesign, pair_names
from plltool.model.values import check_positive, format_values

PREFIX = "MATRIX"


def is_user(name: str) -> bool:
    """Whether it is the canonical name of a model of the user's own states."""
    return name.startswith(f"{PREFIX}{{")


def make_name(symbols: str, exchangeabilities: Sequence[float]) -> str:
    """The canonical name; exchangeabilities, the upper triangle row by row, are relative to the largest one.

    Raises InputError for symbols that cannot be used, a wrong number of values, and negative ones.
    """
    check_symbols(symbols)
    n_pairs = len(symbols) * (len(symbols) - 1) // 2
    if len(exchangeabilities) != n_pairs:
        raise InputError(f"expected {n_pairs} exchangeabilities, found {len(exchangeabilities)}")
    values = check_positive(exchangeabilities, "exchangeabilities", 0.0)
    if not any(values):
        raise InputError("expected an exchangeability above 0, found none")
    relative = [max(value / max(values), NEGLIGIBLE_EXCHANGEABILITY) for value in values]
    return f"{PREFIX}{{{symbols}}}{format_values(relative)}"


def check_symbols(symbols: str) -> None:
    """Raise InputError unless all are different digits or letters, and as many as states may be."""
    legal = re.fullmatch(f"[0-9A-Za-z]{{{MIN_OWN_STATES},{MAX_OWN_STATES}}}", symbols)
    if not legal or len(set(symbols)) < len(symbols):
        expected = f"{MIN_OWN_STATES} to {MAX_OWN_STATES} different digits or letters"
        raise InputError(f"found {show_name(symbols)} as the symbols of states, expected {expected}")


@functools.cache
def named_model(name: str) -> NamedModel:
    """The model of a canonical name; its frequencies are equal unless others are given."""
    symbols, values = name.removeprefix(f"{PREFIX}{{").removesuffix("}").split("}{")
    rates = RateDesign.published(np.array([float(value) for value in values.split("/")]))
    frequencies = np.full(len(symbols), 1.0 / len(symbols))
    return NamedModel(OWN_STATES + symbols, tuple(symbols), pair_names(symbols), rates, "equal", frequencies)
