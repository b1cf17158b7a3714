"""The composition of sequences: how often each has each state, and whether as often as the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from plltool.alignment.alignment import Alignment
from plltool.alignment.homogeneity import composition_statistic, p_values
from plltool.arrays import FloatArray
from plltool.constants import ROOT_NAME

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
    sets = alignment.states.state_sets
    single = np.where((sets.sum(axis=1) == 1)[:, None], sets, False).astype(np.float64)
    counts = alignment.code_counts @ single
    return composition_statistic(counts, shared_frequencies(alignment))


def shared_frequencies(alignment: Alignment) -> FloatArray:
    """State frequencies (n_states,); sets of states, gaps included, are shared out by the frequencies, again and again.

    Each round uses those of the one before; the first ones are equal.
    """
    sets = alignment.states.state_sets
    counts = alignment.code_counts.sum(axis=0).astype(np.float64)
    frequencies = np.full(alignment.states.n_states, 1.0 / alignment.states.n_states)
    for _ in range(FREQUENCY_ROUNDS):
        shares = sets * frequencies
        totals = shares.sum(axis=1)
        frequencies = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0) @ shares
        frequencies /= frequencies.sum()
    return frequencies
