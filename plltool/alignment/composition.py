"""The composition of sequences, and whether they evolved alike: tests of it, and of the symmetry of pairs.

Two sequences that evolved under the same stationary, reversible and homogeneous process from a common ancestor change
from state i to j as often as from j to i. With n_ij the number of sites where one has i and the other j,

    symmetry             sum over i < j of (n_ij - n_ji)^2 / (n_ij + n_ji)       Bowker 1948
    marginal symmetry    u V^-1 u, with u_i = n_i. - n_.i                        Stuart 1955
    internal symmetry    the difference of the two                               Ababneh et al. 2006

are chi-square distributed. Degrees of freedom are the number of pairs of states that occur, the number of states less
one, and the difference.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from plltool.alignment.alignment import Alignment
from plltool.arrays import FloatArray
from plltool.constants import ROOT_NAME


def composition_statistic(counts: FloatArray, frequencies: FloatArray) -> FloatArray:
    """Chi-square (n_taxa,) of the states (n_taxa, n_states) of each taxon, expected with these frequencies (n_states,).

    There are n_states - 1 degrees of freedom. States without frequency are left out, and a taxon without states has 0.
    """
    occurs = frequencies > 0
    expected = counts.sum(axis=1, keepdims=True) * frequencies[occurs]
    gap = counts[:, occurs] - expected
    return np.asarray(np.sum(gap**2 / np.where(expected > 0, expected, 1.0), axis=1))


def symmetry_statistics(pairs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Chi-square and degrees of freedom of the tests of symmetry, marginal and internal symmetry; each (n, 3).

    `pairs`: (n, n_states, n_states), how often each state of one sequence meets each of the other.

    A test that cannot be made, because too few pairs of states occur, has 0 degrees of freedom.
    """
    n_states = pairs.shape[-1]
    upper = np.triu_indices(n_states, 1)
    sums = (pairs + pairs.swapaxes(1, 2))[:, upper[0], upper[1]]
    gaps = (pairs - pairs.swapaxes(1, 2))[:, upper[0], upper[1]]
    values, degrees = np.zeros((len(pairs), 3)), np.zeros((len(pairs), 3))
    values[:, 0] = np.sum(np.divide(gaps**2, sums, out=np.zeros_like(gaps), where=sums > 0), axis=1)
    degrees[:, 0] = np.sum(sums > 0, axis=1)
    rows, columns = pairs.sum(axis=2), pairs.sum(axis=1)
    u = (rows - columns)[:, :-1]
    v = -(pairs + pairs.swapaxes(1, 2))[:, :-1, :-1]
    diagonal = np.arange(n_states - 1)
    v[:, diagonal, diagonal] = (rows + columns - 2 * np.diagonal(pairs, axis1=1, axis2=2))[:, :-1]
    regular = np.linalg.matrix_rank(v) == n_states - 1
    values[regular, 1] = np.sum(u[regular] * np.linalg.solve(v[regular], u[regular][..., None])[..., 0], axis=1)
    degrees[regular, 1] = n_states - 1
    both = regular & (degrees[:, 0] >= n_states)
    values[both, 2] = np.maximum(0.0, values[both, 0] - values[both, 1])
    degrees[both, 2] = degrees[both, 0] - degrees[both, 1]
    return values, degrees


def p_values(values: FloatArray, degrees: FloatArray) -> FloatArray:
    """The probability of chi-square at least as large; NaN without degrees of freedom.

    Sums of as many positive terms as half the degrees of freedom (Abramowitz & Stegun 26.4.4 and 26.4.5), of the
    gamma distribution of half the values. scipy.special has them, but its import takes a fifth of a second.
    """
    halves, odd = values / 2.0, degrees % 2 == 1
    tails = np.exp(-halves)
    tails[odd] = [math.erfc(root) for root in np.sqrt(halves[odd]).tolist()]
    with np.errstate(divide="ignore"):
        logs = np.log(halves)
    for twice in range(1, int(degrees.max(initial=0.0)) - 1):
        shape, more = twice / 2.0, (degrees > twice) & (degrees % 2 == twice % 2)
        tails[more] += np.exp(shape * logs[more] - halves[more] - math.lgamma(shape + 1.0))
    return np.where(degrees > 0, tails, np.nan)


# --- the composition of sequences -------------------------------------------------------------------------

FREQUENCY_ROUNDS = 8  # as IQ-TREE has them, so that p-values are the same


def without_root(alignment: Alignment) -> Alignment:
    """The alignment without the row that stands for a root, if there is one."""
    first = int(alignment.names[0] == ROOT_NAME)
    return replace(alignment, names=alignment.names[first:], codes=alignment.codes[first:])


def composition_p_values(alignment: Alignment) -> FloatArray:
    """The p-value of each taxon (n_taxa,): whether its states are as frequent as in all taxa; a chi-square test."""
    values = composition(alignment)
    return p_values(values, np.full_like(values, alignment.states.n_states - 1))


def composition(alignment: Alignment) -> FloatArray:
    """Chi-square of each taxon's states (n_taxa,)."""
    sets = alignment.called.states.state_sets
    single = np.where((sets.sum(axis=1) == 1)[:, None], sets, False).astype(np.float64)
    counts = alignment.code_counts @ single
    return composition_statistic(counts, shared_frequencies(alignment))


def shared_frequencies(alignment: Alignment) -> FloatArray:
    """State frequencies (n_states,); sets of states, gaps included, are shared out by the frequencies, again and again.

    Each round uses those of the one before; the first ones are equal.
    """
    sets = alignment.called.states.state_sets
    counts = alignment.code_counts.sum(axis=0).astype(np.float64)
    frequencies = np.full(alignment.states.n_states, 1.0 / alignment.states.n_states)
    for _ in range(FREQUENCY_ROUNDS):
        shares = sets * frequencies
        totals = shares.sum(axis=1)
        frequencies = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0) @ shares
        frequencies /= frequencies.sum()
    return frequencies
