"""The same request gives the same bits every time, on all cores: a race or a misplaced barrier would show here."""

import numpy as np
import pytest
from agreement import Case
from engine_kinds import Kind, as_params

REPETITIONS = 200


@pytest.mark.parametrize(
    "kind", as_params([Kind("vector", 4), Kind("lanes", 32), Kind("lanes", 64), Kind("lanes", 32, 2, max_groups=2)])
)
def test_repeated_requests(kind, make_engine):
    likelihood = Case(8, 8, (500,)).likelihood(make_engine, kind)
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
