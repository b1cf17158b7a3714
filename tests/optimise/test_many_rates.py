"""Optimising the 379 rates of NONREV: the curvatures that it begins with, and that it ends above what it contains."""

import numpy as np
import pytest

import plltool
from plltool.model.vector import seen_changes

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
TREE = "((a:{0},b:{0}):{0},((c:{0},d:{0}):{0},(e:{0},f:{0}):{0}):{0});"


def test_a_change_that_is_certain():
    """On short branches, a difference between a and all others is a change from their state to its own."""
    rows = dict.fromkeys("bcdef", "LL") | {"a": "FF"}
    with plltool.Likelihood(rows, TREE.format(1e-4), "NONREV", device="numpy") as likelihood:
        (model,) = likelihood.models
        matrices = likelihood._likelihood.rate_matrix_gradient()[1][0]
    changes = seen_changes(model, matrices)
    assert len(changes) == 379
    start, end = AMINO_ACIDS.index("L"), AMINO_ACIDS.index("F")
    table = np.zeros((20, 20))
    table[~np.eye(20, dtype=bool)] = np.append(changes, 0)
    assert table[start, end] == pytest.approx(2, abs=0.01)  # at two sites
    unseen = 2 * 10e-4 * model.components().rate_matrices()[0, start]  # those expected from L on all 10 branches
    others = ~np.isin(np.arange(20), [start, end])
    assert table[start, others] == pytest.approx(unseen[others], rel=0.1)  # a part of one branch is spent in F
    assert changes.sum() < 2.01


def test_nothing_that_it_contains_is_better():
    data = plltool.simulate(TREE.format(0.4), "NQ.yeast", 80, seed=5).as_sequences()
    found = plltool.evaluate(data, TREE.format(0.4), "NONREV")
    assert found.parameters["n_free_parameters"] == 379
    for model in ("NQ.yeast", "LG"):
        assert found.lnl > plltool.evaluate(data, TREE.format(0.4), model).lnl + 20  # 379 rates for 480 amino acids
