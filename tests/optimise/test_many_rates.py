"""The curvatures with which optimisations of models begin; NONREV's 379 rates end above what it contains."""

import numpy as np
import pytest

import plltool
from plltool.model.vector import expected_curvature, get_vector, set_vector
from plltool.optimise.bounded import Curvatures
from plltool.optimise.density import model_slopes

TREE = "((a:{0},b:{0}):{0},((c:{0},d:{0}):{0},(e:{0},f:{0}):{0}):{0});"


def curvature_of(held, names, scaled):
    (model,) = held.models
    _, (matrices,), (masses,) = held._likelihood.rate_matrix_gradient()
    return expected_curvature(model, names, scaled, matrices, masses)


def test_changes_that_are_certain():
    """On short branches a difference between a and all others is a change, n_p of each pair p of states.

    With equal frequencies log Q_p = log r_p - log sum r + a constant, so its slope in log r_k is [p = k] - s_k with
    s = r / sum r, and the last of the six rates is no parameter.
    """
    changes = np.array([2, 5, 1, 0, 4, 3])  # AC AG AT CG CT GT
    pairs = [
        pair for pair, number in zip(("AC", "AG", "AT", "CG", "CT", "GT"), changes, strict=True) for _ in range(number)
    ]
    rows = dict.fromkeys("bcdef", "".join(first for first, _ in pairs)) | {"a": "".join(last for _, last in pairs)}
    rates = np.array([1.5, 3.0, 0.5, 0.8, 2.0, 1.0])
    model = f"GTR{{{'/'.join(map(str, rates))}}}+FE"
    with plltool.Likelihood(rows, TREE.format(1e-6), model, device="numpy") as given:
        values = given.models[0].exchangeabilities
    with plltool.Likelihood(rows, TREE.format(1e-6), "GTR+FE", device="numpy") as held:
        held.exchangeabilities = values
        found = curvature_of(held, ["rates"], True)
    slopes = np.vstack([np.eye(6)[:5] - (rates / rates.sum())[:5, None], np.ones(6)])
    assert found == pytest.approx((slopes * changes) @ slopes.T, abs=2e-3)


def test_changes_that_are_not_seen_are_expected_in_the_time():
    """Where no site differs, the factor of all rates has as many as there are sites times the tree's length."""
    rows = dict.fromkeys("abcdef", "ACGT" * 5)
    with plltool.Likelihood(rows, TREE.format(0.001), "GTR+FE", device="numpy") as held:
        found = curvature_of(held, ["rates"], True)
    assert found[-1, -1] == pytest.approx(20 * 10 * 0.001, rel=0.02)
    with plltool.Likelihood(dict.fromkeys("abcdef", "AAAA"), TREE.format(0.001), "UNREST", device="numpy") as held:
        from_a, to_a = curvature_of(held, ["rates"], False).diagonal()[[0, 3]]  # AC and CA
    assert from_a - to_a == pytest.approx(4 * 10 * 0.001 / 3, rel=0.2)


@pytest.mark.parametrize("model", ["GTR+FO+G4", "GTR+FE+R3", "JC+I+R2", "TVM+FO+I+G4", "UNREST+G4"])
def test_the_first_step_is_no_leap(model):
    """A Newton step with the expected curvature gains lnL where all parameters are free, from the start values."""
    data = plltool.simulate(TREE.format(0.2), "GTR{1/4/1/1/5/1}+FU{.3/.2/.1/.4}+G4{.4}", 400, seed=3).as_sequences()
    with plltool.Likelihood(data, TREE.format(0.2), model, device="numpy") as held:
        (own,), likelihood, curvatures = held._likelihood.models, held._likelihood, Curvatures(1)
        lnl, (slopes,) = model_slopes(likelihood, [own.free_parameters], curvatures=curvatures)
        step = np.linalg.solve(curvatures.matrices[0], slopes)
        set_vector(own, get_vector(own) + step)
        likelihood.model_changed()
        assert likelihood.lnl() - lnl.sum() > 0.1 * slopes @ step


def test_nothing_that_it_contains_is_better():
    data = plltool.simulate(TREE.format(0.4), "NQ.yeast", 80, seed=5).as_sequences()
    found = plltool.evaluate(data, TREE.format(0.4), "NONREV")
    assert found.parameters["n_free_parameters"] == 379
    for model in ("NQ.yeast", "LG"):
        assert found.lnl > plltool.evaluate(data, TREE.format(0.4), model).lnl + 20  # 379 rates for 480 amino acids
