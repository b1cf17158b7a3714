"""Sites of many edges in one launch, sums over groups, and repeated requests: one number each, always the same."""

import numpy as np
import pytest
from agreement import Case
from engine_kinds import Kind, as_params
from helpers import lnl_of_sites, mix

from plltool.engine import program as prog
from plltool.engine.layout import Layout
from plltool.engine.sums import FAN_IN, plan_sums
from plltool.errors import EngineError

RTOL = 1e-11  # another order of the same sums


@pytest.mark.parametrize(
    ("groups", "n_levels"),
    [
        ((1,), 0),
        ((1, 1, 1), 0),
        ((2,), 1),
        ((FAN_IN,), 1),
        ((FAN_IN + 1,), 2),
        ((1, FAN_IN**2, 7), 2),
        ((FAN_IN**2 + 1, 1), 3),
    ],
)
def test_the_tree_adds_every_group_once(groups, n_levels):
    layout = Layout(4, 1, 4, groups, 1, lane_per_item=True, max_groups=sum(groups))
    tree = plan_sums(layout)
    assert len(tree.levels) == n_levels
    rows = np.zeros(tree.n_rows)
    rows[: tree.n_groups] = np.arange(1, tree.n_groups + 1)
    for level in tree.levels:
        known = tree.n_groups + level.start
        for made in level:
            begin, end = tree.made[made]
            assert 0 < end - begin <= FAN_IN
            assert end <= known  # of an earlier level
            rows[tree.n_groups + made] = rows[begin:end].sum()
    ends = np.cumsum(groups)
    expected = [n * (2 * end - n + 1) / 2 for n, end in zip(groups, ends, strict=True)]  # of consecutive integers
    assert rows[-len(groups) :].tolist() == expected


@pytest.mark.parametrize(
    "kind", as_params([Kind(*kind, max_groups=4096) for kind in (("vector", 4), ("lanes", 32), ("lanes", 64))])
)
def test_many_groups_of_several_parts(kind, make_engine):
    case = Case(12, 6, (9000, 40, 5000))

    def ask(likelihood):
        return [likelihood.part_lnl(), likelihood.all_derivatives()[1], *likelihood.rate_matrix_gradient()[1:]]

    likelihood, expected = case.likelihood(make_engine, kind), ask(case.likelihood(make_engine, Kind("numpy", 4)))
    found = ask(likelihood)
    assert len(plan_sums(likelihood.engine.layout).levels) >= 2
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=RTOL, atol=RTOL * np.abs(b).max())
    for _ in range(5):
        assert all(np.array_equal(a, b) for a, b in zip(found, ask(likelihood), strict=True))


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


REPETITIONS = 100


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
