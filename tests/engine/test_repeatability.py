"""The same request gives the same bits every time, on all cores: a race or a misplaced barrier would show here."""

import numpy as np
import pytest
from engine_kinds import Kind, as_params
from helpers import FixedModel, make_tree, random_codes, random_ends, random_mixture

from plltool.optimise.likelihood import TreeLikelihood

N_TAXA = 8
N_PATTERNS = 500
REPETITIONS = 200


@pytest.mark.parametrize(
    "kind", as_params([Kind("vector", 4), Kind("lanes", 32), Kind("lanes", 64), Kind("lanes", 32, 2, max_groups=2)])
)
def test_repeated_requests(kind, make_engine):
    rng = np.random.default_rng(8)
    ends, lengths = random_ends(rng, N_TAXA)
    mixture = random_mixture(rng, 4, 4)
    codes = random_codes(rng, N_TAXA, N_PATTERNS)
    engine = make_engine(kind, 3 * (N_TAXA - 2), codes, np.ones(N_PATTERNS), [mixture])
    likelihood = TreeLikelihood(make_tree(ends, lengths, N_TAXA), [FixedModel(mixture.components)], engine)
    lnl, slopes = likelihood.all_derivatives()
    _, matrices, masses = likelihood.rate_matrix_gradient()
    for _ in range(REPETITIONS):
        assert likelihood.lnl() == pytest.approx(lnl, rel=1e-12)
        again = likelihood.all_derivatives()
        assert again[0] == lnl
        assert np.array_equal(again[1], slopes)
        _, matrices_again, masses_again = likelihood.rate_matrix_gradient()
        assert np.array_equal(matrices_again, matrices)
        assert np.array_equal(masses_again, masses)
