"""Minima within bounds, all known in closed form."""

import numpy as np
import pytest

from plltool.optimise.bounded import minimise

UNBOUNDED = np.array([-np.inf, np.inf])


class Counted:
    """A function that counts its calls and checks its bounds."""

    def __init__(self, function, bounds):
        self.function, self.bounds, self.calls = function, bounds, 0

    def __call__(self, x):
        assert np.all(x >= self.bounds[:, 0])
        assert np.all(x <= self.bounds[:, 1])
        self.calls += 1
        return self.function(x)


def rosenbrock(x):
    """The narrow curved valley of Rosenbrock (1960); its minimum 0 lies at (1, 1)."""
    a, b = 1 - x[0], x[1] - x[0] ** 2
    return a**2 + 100 * b**2, np.array([-2 * a - 400 * x[0] * b, 200 * b])


def test_a_curved_valley():
    counted = Counted(rosenbrock, np.tile(UNBOUNDED, (2, 1)))
    found = minimise(counted, np.array([-1.2, 1.0]), counted.bounds, 1e-14, 200)
    np.testing.assert_allclose(found, 1.0, atol=1e-5)  # what a decrease of 1e-14 leaves open in the valley's direction
    assert counted.calls < 100


def test_a_bound_across_the_valley():
    """For x up to 0.5 the minimum is x = 0.5, y = 0.25, in the valley, whose height is (1 - x)^2."""
    bounds = np.array([[-2.0, 0.5], [-2.0, 2.0]])
    found = minimise(Counted(rosenbrock, bounds), np.array([-1.2, 1.0]), bounds, 1e-14, 200)
    np.testing.assert_allclose(found, [0.5, 0.25], atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_many_variables_each_for_itself(seed):
    """sum c (x - m)^2 with curvatures over four orders of magnitude: each minimum is m, moved to its bounds."""
    rng = np.random.default_rng(seed)
    n = 300
    curvature, middle = 10 ** rng.uniform(-2, 2, n), rng.normal(0, 2, n)
    bounds = np.column_stack([np.full(n, -1.0), np.full(n, 1.5)])
    counted = Counted(lambda x: (curvature @ (x - middle) ** 2, 2 * curvature * (x - middle)), bounds)
    found = minimise(counted, rng.uniform(-3, 3, n), bounds, 1e-12, 500)
    expected = np.clip(middle, -1, 1.5)
    excess = curvature @ ((found - middle) ** 2 - (expected - middle) ** 2)
    assert 0 <= excess < 1e-6  # measured 4e-8 of a sum above 100: what steps that gain 1e-12 leave open


def test_a_first_step_that_gains_little_is_not_the_last():
    """At (x - 100)^2 the first step is of length 1 and gains 199, the second one knows the curvature and arrives."""
    bounds = UNBOUNDED[None]
    found = minimise(Counted(lambda x: ((x[0] - 100) ** 2, 2 * (x - 100)), bounds), np.zeros(1), bounds, 1000.0, 50)
    np.testing.assert_allclose(found, 100.0)


def test_where_nothing_can_be_gained():
    bounds = np.array([[0.0, 1.0], [0.0, 1.0]])
    counted = Counted(lambda x: (float(x.sum()), np.ones(2)), bounds)
    assert minimise(counted, np.zeros(2), bounds, 1e-9, 50).tolist() == [0.0, 0.0]
    assert counted.calls == 1


def test_values_that_cannot_be_had_are_turned_away_from():
    """Beyond 2 the function is far worse, without a slope, like a likelihood that cannot be represented."""
    bounds = UNBOUNDED[None]

    def function(x):
        return (1e6, np.zeros(1)) if x[0] > 2 else (-10 * np.log(x[0]) + 10 * x[0] if x[0] > 0 else 1e6, 10 - 10 / x)

    found = minimise(Counted(function, bounds), np.array([0.01]), bounds, 1e-12, 100)
    np.testing.assert_allclose(found, 1.0, atol=1e-4)
