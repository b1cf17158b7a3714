"""Models from what a user gives: a string, a matrix in a file, the record of a run, or RAxML-NG's model file."""

from __future__ import annotations

import os
import re

import numpy as np

from plltool.errors import InputError
from plltool.io.content import read_content
from plltool.io.record import read_object
from plltool.model.proteins import N_STATES, PAIRS, unpack_matrix
from plltool.model.spec import parse_model
from plltool.model.specification import ModelSpec

_N_NUMBERS = len(PAIRS) + N_STATES
_MODEL_LINE = re.compile(r"(?P<model>(?:[^,{}]|\{[^{}]*\})+),\s*(?P<part>[^=,]+)=.*")  # MODEL, NAME = SITES


def read_model(text: str) -> ModelSpec:
    """The model that a string names, or that is in the file of this name.

    A file is the JSON record of a run, whose values are taken, or has one line: a model string, or RAxML-NG's
    ``MODEL, NAME = SITES``. What can be read as a model string is never looked for as a file.

    Raises
    ------
    InputError
        If it is neither, the file cannot be read, holds several models, or what is in it is no model.
    """
    try:
        return parse_model(text, read_paml_matrix)
    except InputError:
        if not os.path.isfile(text):
            raise
    content = read_content(text)
    if content.lstrip().startswith(b"{"):
        return parse_model(str(read_object(text, ("model",), "the record of a run")["model"]), read_paml_matrix)
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines() if line.strip()]
    if len(lines) != 1:
        raise InputError(f"{text}: found {len(lines)} lines, expected one model; partitions are not read so far")
    match = _MODEL_LINE.fullmatch(lines[0])
    try:
        return parse_model(match["model"] if match else lines[0], read_paml_matrix)
    except InputError as problem:
        raise InputError(f"{text}: {problem}") from None


def read_paml_matrix(path: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Exchangeabilities (190,) in the order of PAIRS and frequencies (20,) from a file of PAML's layout.

    That is 19 rows of the lower triangle and 20 frequencies, in the order A R N D C Q E G H I L K M F P S T W Y V.
    What follows the last number that is needed is a comment.

    Raises
    ------
    InputError
        If the file cannot be read, has too few numbers, or something else than a number among them.
    """
    words = read_content(path).decode("utf-8", "replace").split()
    if len(words) < _N_NUMBERS:
        raise InputError(f"{path}: found {len(words)} words, expected {_N_NUMBERS} numbers, a protein matrix as PAML's")
    try:
        numbers = np.array([float(word) for word in words[:_N_NUMBERS]])
    except ValueError as problem:
        raise InputError(f"{path}: found something else than a number in a protein matrix: {problem}") from None
    exchangeabilities, frequencies = unpack_matrix(numbers)
    return tuple(exchangeabilities.tolist()), tuple(frequencies.tolist())
