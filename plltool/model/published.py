"""Published figures and names in ``figures/``: a file has sections, such as one for each model with its source."""

from __future__ import annotations

import functools
from importlib.resources import files

import numpy as np

from plltool.arrays import FloatArray


@functools.cache
def published_figures(file: str) -> dict[str, str]:
    """The figures of each model in a file, as text."""
    text = (files("plltool.model") / "figures" / file).read_text(encoding="utf-8")
    sections = {}
    for block in text.split("\n[")[1:]:
        header, figures = block.split("\n", 1)
        sections[header.split("]", 1)[0]] = figures
    return sections


def read_words(file: str, name: str) -> dict[str, str]:
    """A table of words in a file: what stands behind the first word of each line, by that word."""
    lines = published_figures(file)[name].strip().split("\n")
    return {word: rest for word, _, rest in (line.partition(" ") for line in lines)}


def read_figures(file: str, name: str) -> FloatArray:
    """The figures of a model as numbers."""
    return np.array([float(word) for word in published_figures(file)[name].split()])


def unpack_triangle(numbers: FloatArray, n_states: int) -> FloatArray:
    """Exchangeabilities (n, n), symmetric, from the lower triangle row by row, with which `numbers` begin."""
    lower = np.tril_indices(n_states, -1)
    square = np.zeros((n_states, n_states))
    square[lower] = numbers[: len(lower[0])]
    return square + square.T


def unpack_matrix(numbers: FloatArray, n_states: int) -> tuple[FloatArray, FloatArray]:
    """Exchangeabilities (n, n), symmetric, and frequencies (n,) of sum 1 from the numbers of PAML's format.

    These are the lower triangle row by row, then frequencies.
    """
    frequencies = numbers[-n_states:]
    return unpack_triangle(numbers, n_states), frequencies / frequencies.sum()
