"""Files with a state space of the user's own, and the rates between its states."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray
from plltool.errors import InputError, show_name
from plltool.io.content import read_content, source_name
from plltool.model.user import PREFIX, check_symbols, make_name
from plltool.model.values import MAX_GIVEN, MIN_GIVEN, format_values

_MATRIX = "matrix"  # the line between states and rates
_BALANCE = 1e-6  # relative difference of the flows between two states: files may have few digits
_FILE = re.compile(rf"\s*{PREFIX}\{{([^{{}}]+)\}}(?!\{{)(.*)", re.IGNORECASE | re.DOTALL)


def expand_matrix(text: str) -> str:
    """A model string with the values of its file in place of ``MATRIX{FILE}``; others as they are.

    Raises InputError as `read_states` does.
    """
    match = _FILE.fullmatch(text)
    if match is None:
        return text
    name, frequencies = read_states(match[1].strip())
    if frequencies is not None and not re.search(r"\+F[A-Z]?(?![A-Z])", match[2].upper()):
        name += f"+FU{format_values(frequencies.tolist())}"
    return name + match[2]


def read_states(path: str) -> tuple[str, FloatArray | None]:
    """The canonical name of the model in a file, and its stationary frequencies (S,); None if it is not reversible.

    A line for each state has its symbol or name, as in the data, and perhaps a longer one for messages. After the line
    ``matrix`` there is a row for each state: its rates of change to the others, in their order; what stands on the
    diagonal does not count. Text after ``#`` is a comment.

    Raises
    ------
    InputError
        If the file cannot be read, is no such file, or a state is left for ever.
    """
    source = source_name(path)
    lines = _split_lines(read_content(path).decode("utf-8", "replace"))
    start = next((place for place, (_, words) in enumerate(lines) if [w.lower() for w in words] == [_MATRIX]), None)
    if start is None:
        raise InputError(f"{source}: found no line 'matrix', expected a line for each state, 'matrix', rows of rates")
    states, rows = lines[:start], lines[start + 1 :]
    symbols = tuple(words[0] for _, words in states)
    names = [" ".join(words[1:]) or words[0] for _, words in states]
    try:
        check_symbols(symbols)
    except InputError as problem:
        raise InputError(f"{source}: {problem}") from None
    rates = _read_rates(rows, names, source)
    frequencies = _stationary(rates)
    if not np.all(frequencies > MIN_GIVEN):
        lost = names[int(frequencies.argmin())]
        raise InputError(f"{source}: state {show_name(lost)} is left for ever, expected rates that lead to every state")
    flow = frequencies[:, None] * rates
    if np.all(np.abs(flow - flow.T) <= _BALANCE * np.maximum(flow, flow.T)):  # as much each way
        upper = np.triu_indices(len(symbols), 1)
        return make_name(symbols, (rates / frequencies)[upper].tolist()), frequencies
    try:
        return make_name(symbols, rates[~np.eye(len(symbols), dtype=bool)].tolist()), None
    except InputError as problem:
        raise InputError(f"{source}: {problem}") from None


def _split_lines(text: str) -> list[tuple[int, list[str]]]:
    """Number and words of each line that has any."""
    lines = [(number, line.split("#", 1)[0].split()) for number, line in enumerate(text.splitlines(), start=1)]
    return [(number, words) for number, words in lines if words]


def _read_rates(rows: Sequence[tuple[int, list[str]]], names: Sequence[str], source: str) -> FloatArray:
    """The rates (S, S) from each state to each other one, 0 on the diagonal."""
    n_states = len(names)
    if len(rows) != n_states:
        raise InputError(f"{source}: found {len(rows)} rows of rates, expected {n_states}, one for each state")
    rates = np.zeros((n_states, n_states))
    for state, (number, words) in enumerate(rows):
        where = f"{source}: line {number}: state {show_name(names[state])}"
        if len(words) != n_states:
            raise InputError(f"{where}: found {len(words)} rates, expected {n_states}, with anything on the diagonal")
        for other, word in enumerate(words):
            if other != state:
                rates[state, other] = _read_rate(word, f"{where}: rate to {show_name(names[other])}")
    return rates


def _read_rate(word: str, where: str) -> float:
    try:
        rate = float(word)
    except ValueError:
        rate = math.nan
    if not (rate == 0 or MIN_GIVEN <= rate <= MAX_GIVEN):
        raise InputError(f"{where}: found {show_name(word)}, expected 0, or {MIN_GIVEN:g} to {MAX_GIVEN:g}")
    return rate


def _stationary(rates: FloatArray) -> FloatArray:
    """The frequencies (S,), summing to 1, that do not change under rates (S, S)."""
    balance = rates.T - np.diag(rates.sum(axis=1))
    system = np.vstack([balance / max(rates.max(), MIN_GIVEN), np.ones(len(rates))])
    return np.linalg.lstsq(system, np.append(np.zeros(len(rates)), 1.0), rcond=None)[0]
