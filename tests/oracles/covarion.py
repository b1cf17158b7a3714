"""Slow, obvious likelihoods of covarion models. Imports nothing of plltool.

A site is in a state of the data, and on or off. Matrices are filled in element by element and exponentiated by scipy.
"""

import numpy as np
from oracles.likelihood import orient
from scipy.linalg import expm


def covarion_matrix(q, rate, off_to_on, on_to_off):
    """Rates between the states 0 .. S-1 that are on and S .. 2 S-1 that are off, `rate` substitutions per unit."""
    n = len(q)
    on = off_to_on / (off_to_on + on_to_off)
    matrix = np.zeros((2 * n, 2 * n))
    for i in range(n):
        for j in range(n):
            if i != j:
                matrix[i, j] = rate * q[i, j] / on
        matrix[i, n + i] = on_to_off
        matrix[n + i, i] = off_to_on
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def covarion_lnl(branches, lengths, tips, components, off_to_on, on_to_off):
    """lnL of all columns.

    `tips` (taxon, column, state) holds 1 for each state that a cell allows. `components` are (weight, frequencies, q,
    rate), q with one substitution per unit of length.
    """
    on = off_to_on / (off_to_on + on_to_off)
    n_tips = len(tips)
    total = 0.0
    for weight, frequencies, q, rate in components:
        matrix = covarion_matrix(q, rate, off_to_on, on_to_off)
        clas = {tip: np.hstack([cells, cells]) for tip, cells in enumerate(np.asarray(tips, dtype=float))}
        for parent, child, branch in reversed(orient(branches, n_tips)):
            above = clas.pop(child) @ expm(lengths[branch] * matrix).T
            clas[parent] = clas.get(parent, 1.0) * above
        root = np.concatenate([on * np.asarray(frequencies), (1 - on) * np.asarray(frequencies)])
        total = total + weight * (clas[n_tips] @ root)
    return np.log(total).sum()
