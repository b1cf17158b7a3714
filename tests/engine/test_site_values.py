"""Site likelihoods of many edges in one launch, and patterns that a request allows to be impossible."""

import numpy as np
import pytest
from agreement import Case
from helpers import lnl_of_sites, mix

from plltool.engine import program as prog
from plltool.errors import EngineError

N_TAXA = 5


def test_every_edge(any_kind, make_engine):
    case = Case(4, N_TAXA, (11, 8))
    ends, lengths, expected = case.ends, case.lengths, case.site_lnl()
    engine = case.engine(make_engine, any_kind, 3 * N_TAXA)
    rows = []
    for value, edge in enumerate(range(len(ends))[::-1]):  # values in another order than edges
        program, a, b = case.to(edge)
        rows += [program, prog.evaluate(len(ends) - 1 - value, a, b, edge)]
    found = engine.execute_sites(prog.Request(np.concatenate(rows), len(ends)), lengths)
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-12)


def test_impossible_patterns(few_kind, make_engine):
    """Two tips without a common state at a distance of 0."""
    mixture = mix([(1.0, np.full(4, 0.25), np.ones((4, 4)), 1.0)])
    codes = np.array([[1, 2, 4, 1], [1, 1, 6, 15]])
    engine = make_engine(few_kind, 1, codes, np.ones(4), [mixture])
    request = prog.Request(prog.evaluate(0, ~0, ~1, 0), 1, impossible=True)
    found = engine.execute_sites(request, np.zeros(1))[0]
    np.testing.assert_allclose(found, [np.log(0.25), -np.inf, np.log(0.25), np.log(0.25)], rtol=1e-12)
    with pytest.raises(EngineError, match="pattern 1"):
        lnl_of_sites(engine, ~0, ~1, 0, np.zeros(1))
    assert lnl_of_sites(engine, ~0, ~1, 0, np.array([0.1])).shape == (4,)
