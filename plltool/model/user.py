"""State spaces of the user's own: ``MATRIX{STATES}{exchangeabilities}``, or ``MATRIX{STATES}{rates}``.

States are symbols, such as NSE, or have names: ``north|south|east``.

There is an exchangeability for each pair of states where the process is time-reversible, else a rate for each ordered
pair, twice as many; the frequencies at the root are then the stationary ones.
The canonical name has all values, so that the model string of a run is complete without the file that it came from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from plltool.alignment.spaces import OWN_STATES, join_states, split_states
from plltool.alignment.states import EITHER
from plltool.arrays import FloatArray
from plltool.constants import MAX_OWN_STATES, MIN_OWN_STATES, NEGLIGIBLE_EXCHANGEABILITY
from plltool.errors import InputError, show_name
from plltool.model.named import NamedModel, RateDesign, pair_names
from plltool.model.nonreversible import rates_matrix
from plltool.model.values import check_positive, format_values

PREFIX = "MATRIX"
_NAME = re.compile(r"[^\W_][\w.-]*")


def is_user(name: str) -> bool:
    """Whether it is the canonical name of a model of the user's own states."""
    return name.startswith(f"{PREFIX}{{")


def make_name(symbols: Sequence[str], rates: Sequence[float]) -> str:
    """The canonical name; values are relative to the largest one.

    `rates` are exchangeabilities, the upper triangle row by row, or rates in the order of `ordered_pairs`.
    """
    check_symbols(symbols)
    n_pairs = len(symbols) * (len(symbols) - 1) // 2
    if len(rates) not in (n_pairs, 2 * n_pairs):
        expected = f"{n_pairs} exchangeabilities, or {2 * n_pairs} rates of a model that is not reversible"
        raise InputError(f"expected {expected}, found {len(rates)}")
    what = "exchangeabilities" if len(rates) == n_pairs else "rates"
    values = check_positive(rates, what, 0.0)
    if not any(values):
        raise InputError(f"expected one of the {what} above 0, found none")
    if len(rates) > n_pairs:
        _check_connected(symbols, rates_matrix(np.array(values)))
    largest = max(values)
    relative = [max(value / largest, NEGLIGIBLE_EXCHANGEABILITY) for value in values]
    return f"{PREFIX}{{{join_states(symbols)}}}{format_values(relative)}"


def check_symbols(symbols: Sequence[str]) -> None:
    """Raise InputError unless all are different words, and as many as states may be."""
    wrong = next((symbol for symbol in symbols if not _NAME.fullmatch(symbol)), None)
    if wrong is not None:
        expected = "a letter or digit, and perhaps more of them, '_', '-' and '.'"
        raise InputError(f"found {show_name(wrong)} as the name of a state, expected {expected}")
    twice = next((symbol for symbol in symbols if list(symbols).count(symbol) > 1), None)
    if twice is not None:
        raise InputError(f"the state {show_name(twice)} is listed twice")
    if not MIN_OWN_STATES <= len(symbols) <= MAX_OWN_STATES:
        raise InputError(f"found {len(symbols)} states, expected {MIN_OWN_STATES} to {MAX_OWN_STATES}")


def named_model(name: str) -> NamedModel:
    """The model of a canonical name; its frequencies are equal unless others are given."""
    text, values = name.removeprefix(f"{PREFIX}{{").removesuffix("}").split("}{")
    symbols = split_states(text)
    rates = RateDesign.published(np.array([float(value) for value in values.split("/")]))
    between = EITHER if EITHER in text else ""
    if len(rates.base) == len(pair_names(symbols)):
        return NamedModel(OWN_STATES + text, symbols, rates, "equal", between=between)
    return NamedModel(OWN_STATES + text, symbols, rates, between=between, is_directed=True, is_reversible=False)


def _check_connected(symbols: Sequence[str], rates: FloatArray) -> None:
    """Raise InputError unless rates (S, S) above 0 lead from each state, perhaps through others, to each other one."""
    leads = (rates > 0) | np.eye(len(rates), dtype=bool)
    for _ in range(len(rates).bit_length()):
        leads = leads @ leads
    if not leads.all():
        a, b = np.argwhere(~leads)[0].tolist()
        raise InputError(f"found no way from state {symbols[a]} to state {symbols[b]}, expected rates that lead there")
