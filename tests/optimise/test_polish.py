"""The end of an optimisation is an optimum: L-BFGS-B gains nothing from there; and given lengths may be better."""

import numpy as np
import pytest
from scipy.optimize import minimize

import plltool
from plltool.tree.random_tree import random_tree


def primates(data_dir, n_taxa=6, n_sites=300):
    rows = [line.split() for line in (data_dir / "primates.phy").read_text().splitlines()[1 : n_taxa + 1]]
    return {name: sequence[:n_sites] for name, sequence in rows}


@pytest.mark.parametrize("seed", [4, 6])
def test_nothing_is_gained_by_going_on_with_all_variables_together(data_dir, seed):
    """On a random tree; lengths and parameters in turn end 0.015 and 0.044 below."""
    data = primates(data_dir)
    tree = random_tree(sorted(data), np.random.default_rng(seed))
    with plltool.Likelihood(data, tree, "GTR+FO+I+G4", device="numpy") as likelihood:
        lnl = likelihood.optimise()

        def loss(vector):
            value, gradient = likelihood.value_and_grad(vector)
            return -value, -np.array(gradient)

        options = {"maxiter": 500, "maxfun": 1500, "ftol": 1e-14}
        start, bounds = likelihood.vector(), likelihood.vector_bounds()
        best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    assert -best.fun - lnl < 0.01


def test_given_lengths_with_a_model_that_fits_them_may_be_the_better_start(data_dir, monkeypatch):
    """The lengths that a search found never lead below its lnL, even if the present model would lead away from them."""
    data = primates(data_dir, 8, 600)
    tree = random_tree(sorted(data), np.random.default_rng(1))
    with plltool.Likelihood(data, tree, "GTR+F+G4", device="numpy") as likelihood:
        best, found, models = likelihood.optimise(), likelihood.tree, likelihood.models
    with plltool.Likelihood(data, found, models[0].to_string(), device="numpy") as likelihood:
        assert likelihood.lnl() == pytest.approx(best, abs=1e-9)
    with plltool.Likelihood(data, found, "GTR+F+G4", device="numpy") as likelihood:
        assert likelihood.lnl() < best - 10, "the start values of the model fit badly"
        assert likelihood.optimise() > best - 0.01
