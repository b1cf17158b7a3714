"""Where `Likelihood.optimise` ends, scipy's L-BFGS-B gains nothing more."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import plltool
from plltool.optimise.polish import Other
from plltool.run.messages import remarks_on_optima
from plltool.tree.random_tree import random_tree

PRIMATES = Path(__file__).resolve().parents[2] / "data" / "primates.phy"
GAIN = 0.01  # lnL, the precision of an optimisation
CASES = [(0, "GTR+FO+G4"), (7, "TIM2+F+R3"), (8, "TIM2+F+R3"), (10, "TIM2+F+R3")]


def case(seed):
    """Some taxa and columns, and a random tree of them."""
    rng = np.random.default_rng(seed)
    whole = plltool.read_alignment(PRIMATES)
    rows = np.array([np.frombuffer(row, dtype="S1") for row in whole.rows])
    taxa = np.sort(rng.choice(len(rows), int(rng.integers(4, 9)), replace=False))
    cells = rows[taxa][:, rng.choice(rows.shape[1], int(rng.integers(100, 301)))]
    names = tuple(f"t{k}" for k in range(len(taxa)))
    return {name: row.tobytes().decode() for name, row in zip(names, cells, strict=True)}, random_tree(names, rng)


@pytest.mark.parametrize(("seed", "model"), CASES)
def test_nothing_is_left_to_gain(seed, model):
    data, tree = case(seed)
    with plltool.Likelihood(data, tree, model, device="numpy") as likelihood:
        reached = likelihood.optimise()
        start, bounds = likelihood.vector(), likelihood.vector_bounds()

        def loss(vector):
            value, gradient = likelihood.value_and_grad(vector)
            return -value, -gradient

        start = np.clip(start, *bounds.T)
        best = minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "maxiter": 500}
        )
    assert -best.fun - reached < GAIN


def test_two_optima_are_reported_only_if_their_lengths_differ():
    """Twice the sum, or half of it, makes two optima; nan stands for none."""
    lengths = np.array([1.0, 2.0])
    found = [Other(-1.0, length).is_other_than(lengths) for length in (6.1, 5.9, 1.6, 1.4, np.nan)]
    assert found == [True, False, False, True, False]
    assert remarks_on_optima(-10.0, 3.0, Other()) == []
    (remark,) = remarks_on_optima(-10.0, 3.0, Other(-12.5, 6.1))
    assert "-10.00 with a sum of 3" in remark
    assert "-12.50 with a sum of 6.1" in remark


@pytest.mark.parametrize(("brlen", "expected"), [("scaled", -3766.6), ("unlinked", -3759.4)])
def test_parts_of_very_different_rates(shared, brlen, expected):
    """One part of dna8 has 99 % of all changes; expected are the values that RAxML-NG 1.2.2 reaches."""
    data, tree, model = (shared / "data" / "constraints" / f"dna8.{kind}" for kind in ("fa", "tree", "part"))
    if not data.exists():
        pytest.skip(f"no {data}")
    assert plltool.evaluate(data, tree, model, brlen=brlen, device="numpy").lnl > expected
