"""Sums over groups: the tree covers each part's groups once, and many groups give what the numpy engine gives."""

import numpy as np
import pytest
from agreement import Case
from engine_kinds import Kind, as_params

from plltool.engine.layout import Layout
from plltool.engine.sums import FAN_IN, plan_sums

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

    def ask(kind):
        likelihood = case.likelihood(make_engine, kind)
        answers = [likelihood.part_lnl(), likelihood.all_derivatives()[1], *likelihood.rate_matrix_gradient()[1:]]
        for _ in range(5):
            again = [likelihood.part_lnl(), likelihood.all_derivatives()[1], *likelihood.rate_matrix_gradient()[1:]]
            assert all(np.array_equal(a, b) for a, b in zip(answers, again, strict=True))
        return likelihood.engine, answers

    engine, found = ask(kind)
    assert len(plan_sums(engine.layout).levels) >= 2
    _, expected = ask(Kind("numpy", 4))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=RTOL, atol=RTOL * np.abs(b).max())
