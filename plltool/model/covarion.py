"""Covarion models: each site switches between on and off along the tree, and changes its state only while it is on.

A state of the process is a pair of a state of the data and on or off; the states that are on come first. With the rates
s01 from off to on and s10 from on to off, the share p = s01 / (s01 + s10) of the sites that are on, and the rate r of a
category of sites,

    Q_cov = [[ r Q / p - s10 I,  s10 I ],
             [ s01 I,           -s01 I ]]

makes r substitutions per unit of length. The rate does not change how often a site switches (Tuffley & Steel 1998;
Huelsenbeck 2002). Q_cov has detailed balance if Q has, with the frequencies p pi and (1 - p) pi. Each eigenvalue of Q
gives two of Q_cov, those of a symmetric matrix of size 2, with eigenvectors that are products.
"""

from __future__ import annotations

import numpy as np

from plltool.arrays import FloatArray
from plltool.model.components import Components

N_HIDDEN = 2  # on and off
NAMES = ("off_to_on", "on_to_off")

System = tuple[FloatArray, FloatArray, FloatArray]


def on_share(switching: FloatArray) -> float:
    """The share p of sites that are on; `switching` (2,) are s01 and s10."""
    return float(switching[0] / switching.sum())


def hidden_frequencies(frequencies: FloatArray, switching: FloatArray) -> FloatArray:
    """The frequencies (C, 2 S) of the process, from the frequencies (C, S) of the states of the data."""
    p = on_share(switching)
    return np.hstack([p * frequencies, (1.0 - p) * frequencies])


def switching_matrices(matrices: FloatArray, switching: FloatArray) -> FloatArray:
    """Q_cov (C, 2 S, 2 S) of each matrix r Q (C, S, S)."""
    to_on, to_off = np.eye(matrices.shape[-1]) * switching[:, None, None]
    n = len(matrices)
    on = np.concatenate([matrices / on_share(switching) - to_off, np.tile(to_off, (n, 1, 1))], axis=2)
    off = np.tile(np.hstack([to_on, -to_on]), (n, 1, 1))
    return np.concatenate([on, off], axis=1)


def switching_components(
    systems: System, frequencies: FloatArray, rates: FloatArray, weights: FloatArray, switching: FloatArray
) -> Components:
    """The components of a covarion model, all of rate 1 except for invariable sites.

    systems : eigenvalues (C, S), right and left eigenvectors (C, S, S) of Q
    frequencies, rates, weights : (C, S), (C,) and (C,), of components without switching
    switching : (2,) s01 and s10
    """
    eigenvalues, right, left = systems
    (s01, s10), p = switching.tolist(), on_share(switching)
    on = rates[:, None] * eigenvalues / p - s10
    beside = np.sqrt(s01 * s10)
    half = (on + s01) / 2
    distance = np.hypot(half, beside)
    lower = (on - s01) / 2 - distance
    upper = -rates[:, None] * eigenvalues * s01 / p / lower  # their product is the determinant
    above = np.where(half > 0, distance + half, beside**2 / (distance + np.abs(half)))  # upper - (-s01), no digits lost
    cosine, sine = above / np.hypot(above, beside), beside / np.hypot(above, beside)
    roots = np.sqrt(p), np.sqrt(1.0 - p)

    def vectors(of_on: FloatArray, of_off: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Right and left eigenvectors, (C, 2 S, S) and (C, S, 2 S), from their parts (C, S) in on and off."""
        pairs = list(zip((of_on, of_off), roots, strict=True))
        columns = [right * (part / root)[:, None, :] for part, root in pairs]
        rows = [left * (part * root)[:, :, None] for part, root in pairs]
        return np.concatenate(columns, axis=1), np.concatenate(rows, axis=2)

    (right_low, left_low), (right_up, left_up) = vectors(-sine, cosine), vectors(cosine, sine)
    upper[:, -1] = 0.0
    return Components(
        np.hstack([lower, upper]),
        np.concatenate([right_low, right_up], axis=2),
        np.concatenate([left_low, left_up], axis=1),
        hidden_frequencies(frequencies, switching),
        (rates > 0).astype(np.float64),
        weights,
    )


def observed_slopes(
    by_rates: FloatArray, masses: FloatArray, rates: FloatArray, switching: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Slopes in Q (C, S, S), and in the logarithms of masses (C, S), from the slopes of the process.

    by_rates : (C, 2 S, 2 S) slopes in the matrices of the process
    masses : (C, 2 S) slopes in the logarithms of its masses
    rates : (C,) of components without switching
    """
    n_states = masses.shape[1] // N_HIDDEN
    on = by_rates[:, :n_states, :n_states] * (rates / on_share(switching))[:, None, None]
    return on, masses[:, :n_states] + masses[:, n_states:]
