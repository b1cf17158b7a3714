"""Published figures in ``figures/``: a file has a section for each model, with its source, and is read when needed."""

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
