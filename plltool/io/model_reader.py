"""Read models: a string, a file with a matrix, the record of a run, or a partition file."""

import math
import os
import re
from collections.abc import Sequence

import numpy as np

from plltool.arrays import FloatArray
from plltool.constants import STDIN
from plltool.errors import InputError, errors_at, show_name
from plltool.io.definition_reader import expand_definitions
from plltool.io.files import names_files, parse_object, read_content, read_text, source_name
from plltool.io.nexus import starts_like_nexus
from plltool.io.partition_reader import read_lines, read_sets, split_line, unwrap
from plltool.model.checks import MAX_GIVEN, MIN_GIVEN, format_values
from plltool.model.model_string import parse_model
from plltool.model.other_data import OWN_PREFIX, check_symbols, make_name
from plltool.model.proteins import N_STATES, PAIRS, unpack_protein_matrix
from plltool.model.scheme import PartSpec, Scheme
from plltool.model.spec import ModelSpec

_FILE_NAME = re.compile(r"[^{}]*(/[^{}]*|\.[A-Za-z]\w*)")  # of models, only Q.plant and its like look so
_N_NUMBERS = len(PAIRS) + N_STATES


def read_model(text: str) -> ModelSpec:
    """The model that a string names; ``GTR20{FILE}``, ``MATRIX{FILE}`` and ``NAME{FILE}`` read a file."""
    if match := _FILE.fullmatch(text):
        name, frequencies = read_states(match[1].strip())
        if frequencies is not None and not re.search(r"\+F[A-Z]?(?![A-Z])", match[2].upper()):
            name += f"+FU{format_values(frequencies.tolist())}"
        text = name + match[2]
    return parse_model(expand_definitions(text), read_paml_matrix)


def read_scheme(text: str) -> Scheme:
    """The model of each part, given as a string or as the name of a file.

    A file is the JSON record of a run or RAxML 8's RAxML_info, whose values are used, a model string, a partition file,
    or a NEXUS file with charsets; see `read_lines`. Files that it names may be beside it. A string may also hold
    the lines of a partition file. A text that can be read as a model is never taken for a file name.
    """
    is_file = text == STDIN or os.path.isfile(text)
    if split_line(text.strip().split("\n", 1)[0]) and not is_file:
        return read_lines(text, "the partition given", read_model)
    try:
        return (PartSpec(read_model(text)),)
    except InputError as problem:
        if not is_file:
            if _FILE_NAME.fullmatch(text):
                raise InputError(f"{show_name(text)}: found neither a file nor a model of this name") from None
            is_answered = "{" in text or str(problem).endswith("?")  # with a hint at another model
            raise InputError(f"{problem}{'' if is_answered else '; nor is it the name of a file'}") from None
    content, source = read_text(text), source_name(text)
    if content.lstrip().startswith(b"{"):
        return _read_text(str(parse_object(content, source, ("model",), "the record of a run")["model"]), source)
    if b"\nSubstitution Matrix: " in content:
        return _read_raxml_info(content.decode("utf-8", "replace"), source)
    with names_files(text):
        if starts_like_nexus(content):
            return read_sets(content, source, read_model)
        return _read_text(content.decode("utf-8", "surrogateescape"), source)


def _read_raxml_info(text: str, source: str) -> Scheme:
    """The model with all values in RAxML_info of RAxML 8, as `-f e` writes it."""

    def find(pattern: str) -> list[str]:
        return re.findall(rf"^{pattern}: (\S+)", text, re.MULTILINE)

    matrices, rates, shares = find("Substitution Matrix"), find(r"rate \w <-> \w"), find(r"freq pi\(\w\)")
    if len(matrices) != 1 or not shares:
        found = f"{len(matrices)} partitions" if len(matrices) != 1 else "no frequencies"
        raise InputError(f"{source}: found {found}, expected one, with all values, as `raxmlHPC -f e` writes them")
    values = f"{{{'/'.join(rates)}}}" if matrices[0] == "GTR" else ""
    gamma = "".join(f"+G4{{{alpha}}}" for alpha in find("alpha"))
    return _read_text(f"{matrices[0]}{values}+FU{{{'/'.join(shares)}}}{gamma}", source)


def _read_text(text: str, source: str) -> Scheme:
    lines = unwrap(text)
    if len(lines) == 1 and not split_line(lines[0][1]):
        with errors_at(source):
            return (PartSpec(read_model(lines[0][1])),)
    return read_lines(text, source, read_model)


def read_paml_matrix(path: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Exchangeabilities (190,) in the order of PAIRS and frequencies (20,) from a file of PAML's layout.

    That is 19 rows of the lower triangle and 20 frequencies, in the order A R N D C Q E G H I L K M F P S T W Y V.
    What follows the last number that is needed is a comment.
    """
    words = read_content(path).decode("utf-8", "replace").split()
    if len(words) < _N_NUMBERS:
        raise InputError(f"{path}: found {len(words)} words, expected {_N_NUMBERS} numbers, a protein matrix as PAML's")
    word = ""
    try:
        numbers = np.array([float(word := text) for text in words[:_N_NUMBERS]])
    except ValueError:
        raise InputError(f"{path}: found {show_name(word)} in a protein matrix, expected a number") from None
    wrong = next((number for number in numbers.tolist() if not 0 <= number <= MAX_GIVEN), None)
    if wrong is not None or not numbers[len(PAIRS) :].any():
        found = "no frequency above 0" if wrong is None else f"{wrong:g}"
        raise InputError(f"{path}: found {found} in a protein matrix, expected numbers from 0 to {MAX_GIVEN:g}")
    exchangeabilities, frequencies = unpack_protein_matrix(numbers)
    return tuple(exchangeabilities.tolist()), tuple(frequencies.tolist())


_MATRIX = "matrix"  # the line between states and rates
_BALANCE = 1e-6  # relative difference of the flows between two states: files may have few digits
_FILE = re.compile(rf"\s*{OWN_PREFIX}\{{([^{{}}]+)\}}(?!\{{)(.*)", re.IGNORECASE | re.DOTALL)


def read_states(path: str) -> tuple[str, FloatArray | None]:
    """The canonical name of the model in a file, and its stationary frequencies (S,); None if it is not reversible.

    A line for each state has its symbol or name, as in the data, and perhaps a longer one for messages. After the line
    ``matrix`` there is a row for each state: its rates of change to the others, in their order; what stands on the
    diagonal does not count. Text after ``#`` is a comment.
    """
    source = source_name(path)
    text = read_content(path).decode("utf-8", "replace")
    whole = [(number, line.split("#", 1)[0].split()) for number, line in enumerate(text.splitlines(), start=1)]
    lines = [(number, words) for number, words in whole if words]
    start = next((place for place, (_, words) in enumerate(lines) if [w.lower() for w in words] == [_MATRIX]), None)
    if start is None:
        raise InputError(f"{source}: found no line 'matrix', expected a line for each state, 'matrix', rows of rates")
    states, rows = lines[:start], lines[start + 1 :]
    symbols = tuple(words[0] for _, words in states)
    names = [" ".join(words[1:]) or words[0] for _, words in states]
    with errors_at(source):
        check_symbols(symbols)
    rates = _read_rates(rows, names, source)
    balance = rates.T - np.diag(rates.sum(axis=1))
    system = np.vstack([balance / max(rates.max(), MIN_GIVEN), np.ones(len(rates))])
    frequencies: FloatArray = np.linalg.lstsq(system, np.append(np.zeros(len(rates)), 1.0), rcond=None)[0]
    if not np.all(frequencies > MIN_GIVEN):
        lost = names[int(frequencies.argmin())]
        raise InputError(f"{source}: state {show_name(lost)} is left for ever, expected rates that lead to every state")
    flow = frequencies[:, None] * rates
    if np.all(np.abs(flow - flow.T) <= _BALANCE * np.maximum(flow, flow.T)):  # as much each way
        upper = np.triu_indices(len(symbols), 1)
        return make_name(symbols, (rates / frequencies)[upper].tolist()), frequencies
    with errors_at(source):
        return make_name(symbols, rates[~np.eye(len(symbols), dtype=bool)].tolist()), None


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
                try:
                    rate = float(word)
                except ValueError:
                    rate = math.nan
                if not (rate == 0 or MIN_GIVEN <= rate <= MAX_GIVEN):
                    found = f"rate to {show_name(names[other])}: found {show_name(word)}"
                    raise InputError(f"{where}: {found}, expected 0, or {MIN_GIVEN:g} to {MAX_GIVEN:g}")
                rates[state, other] = rate
    return rates
