"""Read models: a string, a file with a matrix, the record of a run, or a partition file."""

from __future__ import annotations

import os
import re

import numpy as np

from plltool.constants import STDIN
from plltool.errors import InputError, show_name
from plltool.io.content import names_files, read_content, read_text, source_name
from plltool.io.definition_reader import expand_definitions
from plltool.io.matrix_reader import expand_matrix
from plltool.io.nexus_commands import starts_like_nexus
from plltool.io.nexus_sets import read_sets
from plltool.io.partition_reader import is_partition_line, read_lines, unwrap
from plltool.io.record import parse_object
from plltool.model.model_string import parse_model
from plltool.model.proteins import N_STATES, PAIRS, unpack_protein_matrix
from plltool.model.scheme import PartSpec, Scheme
from plltool.model.spec import ModelSpec
from plltool.model.values import MAX_GIVEN

_FILE_NAME = re.compile(r"[^{}]*(/[^{}]*|\.[A-Za-z]\w*)")  # of models, only Q.plant and its like look so
_N_NUMBERS = len(PAIRS) + N_STATES


def read_model(text: str) -> ModelSpec:
    """The model that a string names; ``GTR20{FILE}``, ``MATRIX{FILE}`` and ``NAME{FILE}`` read a file.

    Raises InputError for other strings.
    """
    return parse_model(expand_definitions(expand_matrix(text)), read_paml_matrix)


def read_scheme(text: str) -> Scheme:
    """The model of each part, given as a string or as the name of a file.

    A file is the JSON record of a run, whose values are used, a model string, a partition file, or a NEXUS file with
    charsets; see `partition_reader` and `nexus_sets`. Files that it names may be beside it. A string may also hold the
    lines of a partition file. A text that can be read as a model is never taken for a file name.

    Raises
    ------
    InputError
        If the text is neither a model nor the name of a file, the file cannot be read, or it holds neither a model nor
        a partition.
    """
    if is_partition_line(text.strip().split("\n", 1)[0]) and not _is_file(text):
        return read_lines(text, "the partition given", read_model)
    try:
        return (PartSpec(read_model(text)),)
    except InputError as problem:
        if not _is_file(text):
            if _FILE_NAME.fullmatch(text):
                raise InputError(f"{show_name(text)}: found neither a file nor a model of this name") from None
            is_answered = "{" in text or str(problem).endswith("?")  # with a hint at another model
            raise InputError(f"{problem}{'' if is_answered else '; nor is it the name of a file'}") from None
    content, source = read_text(text), source_name(text)
    if content.lstrip().startswith(b"{"):
        return _read_text(str(parse_object(content, source, ("model",), "the record of a run")["model"]), source)
    with names_files(text):
        if starts_like_nexus(content):
            return read_sets(content, source, read_model)
        return _read_text(content.decode("utf-8", "surrogateescape"), source)


def _is_file(text: str) -> bool:
    return text == STDIN or os.path.isfile(text)


def _read_text(text: str, source: str) -> Scheme:
    """A model string, or the lines of a partition file."""
    lines = unwrap(text)
    if len(lines) == 1 and not is_partition_line(lines[0][1]):
        try:
            return (PartSpec(read_model(lines[0][1])),)
        except InputError as problem:
            raise InputError(f"{source}: {problem}") from None
    return read_lines(text, source, read_model)


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
