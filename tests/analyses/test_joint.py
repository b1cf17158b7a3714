"""Joint states against all combinations of states of the inner nodes, for each category."""

from itertools import product

import numpy as np
import pytest
from helpers import make_tree, random_codes, random_ends, random_mixture
from oracles.likelihood import orient, transition_matrices

from plltool.alignment import resampling
from plltool.alignment.patterns import Patterns
from plltool.alignment.states import DNA
from plltool.analyses.ancestral.analysis import joint_states


def best_states(ends, lengths, sets, components, n_tips):
    """The largest joint probability of the data, a category and states of the inner nodes; all states that reach it."""
    best, reached = 0.0, []
    matrices = transition_matrices(components, lengths)
    for (weight, frequencies, _), p in zip(components, matrices, strict=True):
        for states in product(range(4), repeat=n_tips - 2):
            value = weight * frequencies[states[0]]
            for parent, child, branch in orient(ends, n_tips):
                row = p[branch][states[parent - n_tips]]
                allowed = [s for s in range(4) if sets[child] >> s & 1] if child < n_tips else [states[child - n_tips]]
                value *= max(row[s] for s in allowed)
            if value > best * (1 + 1e-9):
                best, reached = value, [states]
            elif value > best * (1 - 1e-9):
                reached.append(states)
    return best, reached


@pytest.mark.parametrize(("seed", "n_taxa", "rates"), [(1, 4, None), (2, 5, None), (3, 5, [0.0, 0.5, 1.5])])
def test_no_other_states_are_more_probable(seed, n_taxa, rates, monkeypatch):
    rng = np.random.default_rng(seed)
    ends, lengths = random_ends(rng, n_taxa)
    mixture = random_mixture(rng, 4, 3, rates)
    codes = random_codes(rng, n_taxa, 9).astype(np.uint8)
    tree, patterns = make_tree(ends, lengths, n_taxa), Patterns(codes, np.ones(9), np.arange(9), DNA)
    monkeypatch.setattr(resampling, "RESAMPLED_VALUES", 4 * 4 * tree.n_nodes)  # four patterns at a time
    values, states = joint_states(tree, np.array(lengths), mixture.components, patterns)
    n_unique = 0
    for column, sets in enumerate(codes.T.tolist()):
        best, reached = best_states(ends.tolist(), lengths, sets, mixture.oracle, n_taxa)
        assert values[column] == pytest.approx(np.log(best), rel=1e-10)
        assert tuple(states[:, column]) in reached
        n_unique += len(reached) == 1
    assert n_unique >= 5, "else nothing was tested"
