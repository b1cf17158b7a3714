"""Slopes of lnL in a model's parameters, against differences of an oracle."""

import numpy as np
import pytest
from oracles.likelihood import derivative

from plltool.model.vector import get_vector, parameter_slopes, set_vector


def disturb(likelihood, deviation, seed=3):
    """Change all free parameters of the only model at random; return it."""
    model, rng = likelihood.models[0], np.random.default_rng(seed)
    set_vector(model, get_vector(model) + rng.normal(0, deviation, len(get_vector(model))))
    likelihood.model_changed()
    return model


def assert_slopes(likelihood, oracle, step, chosen=None, **tolerance):
    """lnL, and its slopes in the parameters, or the `chosen` ones, by differences of fourth order of oracle(model).

    Returns the gradient in the rate matrices.
    """
    (model,) = likelihood.models
    lnl, matrices, masses = likelihood.rate_matrix_gradient()
    assert lnl.sum() == pytest.approx(oracle(model), rel=1e-10)
    start, names = get_vector(model), model.free_parameters
    slopes = parameter_slopes(model, names, matrices[0], masses[0])
    assert slopes.shape == start.shape
    for k in range(len(start)) if chosen is None else chosen:

        def shifted(x, k=k):
            moved = model.copy()
            set_vector(moved, start + x * (np.arange(len(start)) == k))
            return oracle(moved)

        assert slopes[k] == pytest.approx(derivative(shifted, 0.0, step)[0], **tolerance), (names, k)
    return matrices[0]
