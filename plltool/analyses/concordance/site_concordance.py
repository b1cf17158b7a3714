"""How many sites agree with a branch: by quartets of taxa around it, or by the states at the roots of its subtrees.

A branch has four subtrees A, B, C, D. A site is decisive if two of them have one state and the other two have another.
The subtree that shares its state with A is B (AB|CD), C (AC|BD) or D (AD|BC).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from plltool.arrays import BoolArray, FloatArray, IndexArray
from plltool.constants import QUARTET_VALUES

PAIRS = ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))  # the subtrees that have the same state: the first two, the last two


def draw_quartets(ends: Sequence[Sequence[IndexArray]], number: int, rng: np.random.Generator) -> IndexArray:
    """Quartets of taxa around a branch: (n, 4), each with a taxon of two subtrees at each end.

    Parameters
    ----------
    ends : the taxa of each subtree at both ends, two or more at each
    number : how many are drawn, with replacement; if there are no more, and each end has two subtrees, all are taken
    """
    if all(len(end) == 2 for end in ends):
        sides = [taxa for end in ends for taxa in end]
        if np.prod([float(len(taxa)) for taxa in sides]) <= number:
            return np.array(list(product(*(taxa.tolist() for taxa in sides))))
        return np.column_stack([rng.choice(taxa, number) for taxa in sides])
    chosen = [[end[k] for end in ends for k in rng.permutation(len(end))[:2]] for _ in range(number)]
    return np.array([[rng.choice(taxa) for taxa in sides] for sides in chosen])


def may_be_decisive(states: IndexArray, n_states: int) -> BoolArray:
    """(n_patterns,) whether at least two states occur in at least two taxa each: parsimony-informative sites."""
    counts = np.stack([(states == state).sum(axis=0) for state in range(n_states)])
    return np.asarray((counts >= 2).sum(axis=0) >= 2)


def count_sites(states: IndexArray, weights: FloatArray, quartets: IndexArray) -> FloatArray:
    """The number of sites that agree with AB|CD, AC|BD and AD|BC: (n_quartets, 3).

    Parameters
    ----------
    states : (n_taxa, n_patterns), negative where the state is not known
    weights : (n_patterns,)
    quartets : (n_quartets, 4) taxa
    """
    counts = np.empty((len(quartets), len(PAIRS)))
    step = max(1, QUARTET_VALUES // max(1, 4 * states.shape[1]))
    for start in range(0, len(quartets), step):
        own = states[quartets[start : start + step]]
        known = (own >= 0).all(axis=1)
        for k, (a, b, c, d) in enumerate(PAIRS):
            agree = (own[:, a] == own[:, b]) & (own[:, c] == own[:, d]) & (own[:, a] != own[:, c])
            counts[start : start + step, k] = (agree & known) @ weights
    return counts


def expect_sites(states: FloatArray, weights: FloatArray) -> FloatArray:
    """The expected number of sites that agree with AB|CD, AC|BD and AD|BC: (3,).

    Parameters
    ----------
    states : (4, n_patterns, n_states) probabilities of the states at the roots of A, B, C and D, which are independent
    weights : (n_patterns,)
    """
    same = states.prod(axis=0).sum(axis=1)
    pairs = [(states[a] * states[b]).sum(axis=1) * (states[c] * states[d]).sum(axis=1) - same for a, b, c, d in PAIRS]
    return np.asarray(np.stack(pairs) @ weights)


def average(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean shares of three kinds of sites, over the quartets that have any, and mean numbers: (3,), (3,).

    The shares are NaN if no quartet has such sites.
    """
    totals = counts.sum(axis=1)
    has_any = totals > 0
    if not has_any.any():
        return np.full(len(PAIRS), np.nan), counts.mean(axis=0)
    return (counts[has_any] / totals[has_any, None]).mean(axis=0), counts.mean(axis=0)
