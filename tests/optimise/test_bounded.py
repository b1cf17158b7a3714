"""Minima within bounds, all known in closed form."""

import numpy as np
import pytest

from plltool.codec import from_arrays, to_arrays
from plltool.optimise.bounded import REMEMBERED_STEPS, Curvatures, LimitedMemory, minimise

UNBOUNDED = np.array([-np.inf, np.inf])


class Sum:
    """Functions of their own variables that count their calls and check their bounds."""

    def __init__(self, functions, members, bounds):
        self.functions, self.members, self.bounds = functions, members, bounds
        self.calls = np.zeros(len(functions), dtype=int)
        self.evaluations = 0

    def __call__(self, x, wanted):
        assert np.all(x >= self.bounds[:, 0])
        assert np.all(x <= self.bounds[:, 1])
        self.evaluations += 1
        self.calls += wanted
        values, gradients = np.full(len(wanted), np.nan), [np.full(len(own), np.nan) for own in self.members]
        for number in np.flatnonzero(wanted):  # what is not wanted is not a number, and must not be read
            values[number], gradients[number] = self.functions[number](x[self.members[number]])
        return values, gradients


def minimise_alone(function, start, bounds, epsilon, most):
    """The minimum of a single function, and how often it was called."""
    counted = Sum([function], [np.arange(len(start))], bounds)
    return minimise(counted, start, bounds, counted.members, epsilon, most), counted.evaluations


def rosenbrock(x):
    """The narrow curved valley of Rosenbrock (1960); its minimum 0 lies at (1, 1)."""
    a, b = 1 - x[0], x[1] - x[0] ** 2
    return a**2 + 100 * b**2, np.array([-2 * a - 400 * x[0] * b, 200 * b])


def quadratic(rng, n):
    """A quadratic function with a minimum inside, its Hessian, and its gradient at 0."""
    root = rng.normal(0, 1, (n, n))
    hessian, slope = root @ root.T + 0.5 * np.eye(n), rng.normal(0, 3, n)
    return (lambda x: (slope @ x + x @ hessian @ x / 2, slope + hessian @ x)), hessian, slope


@pytest.mark.parametrize("by_memory", [False, True])
@pytest.mark.parametrize(("first", "minimum"), [(UNBOUNDED, [1.0, 1.0]), (np.array([-2.0, 0.5]), [0.5, 0.25])])
def test_a_curved_valley(first, minimum, by_memory):
    """For x up to 0.5 the minimum is x = 0.5, y = 0.25, in the valley, whose height is (1 - x)^2."""
    bounds = np.array([first, UNBOUNDED])
    counted = Sum([rosenbrock], [np.arange(2)], bounds)
    curvatures = LimitedMemory(np.array([800.0, 200.0]), []) if by_memory else None
    found = minimise(counted, np.array([-1.2, 1.0]), bounds, counted.members, 1e-14, 200, curvatures)
    np.testing.assert_allclose(found, minimum, atol=1e-5)  # what a decrease of 1e-14 leaves open along the valley
    assert counted.evaluations < (150 if by_memory else 100)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("together", [False, True])
def test_many_variables_each_for_itself(seed, together):
    """sum c (x - m)^2 with curvatures over four orders of magnitude: each minimum is m, moved to its bounds.

    In lock-step each variable learns its own curvature in one step; a single function learns them one by one.
    """
    rng = np.random.default_rng(seed)
    n = 40 if together else 300
    curvature, middle = 10 ** rng.uniform(-2, 2, n), rng.normal(0, 2, n)
    bounds = np.tile([-1.0, 1.5], (n, 1))
    members = [np.arange(n)] if together else list(np.arange(n)[:, None])

    def part(own):
        c, m = curvature[own], middle[own]
        return lambda x: (c @ (x - m) ** 2, 2 * c * (x - m))

    counted = Sum([part(own) for own in members], members, bounds)
    found = minimise(counted, rng.uniform(-3, 3, n), bounds, members, 1e-12, 300)
    expected = np.clip(middle, -1, 1.5)
    excess = curvature @ ((found - middle) ** 2 - (expected - middle) ** 2)
    assert 0 <= excess < 1e-6  # what steps that gain 1e-12 leave open
    assert together or counted.evaluations < 20


@pytest.mark.parametrize("seed", range(3))
def test_functions_without_common_variables_go_their_own_way(seed):
    """Together they need as many evaluations as the slowest one, and each ends with the bits that it has alone."""
    rng = np.random.default_rng(seed)
    functions = [rosenbrock, quadratic(rng, 3)[0], lambda x: (x[0] ** 4, 4 * x**3), quadratic(rng, 2)[0]]
    sizes = [2, 3, 1, 2]
    members = np.split(np.arange(8), np.cumsum(sizes)[:-1])
    bounds, start = np.tile(UNBOUNDED, (8, 1)), rng.normal(0, 2, 8)
    counted = Sum(functions, members, bounds)
    found = minimise(counted, start, bounds, members, 4e-9, 500)
    alone = [
        minimise_alone(function, start[own], bounds[own], 1e-9, 500)
        for function, own in zip(functions, members, strict=True)
    ]
    np.testing.assert_array_equal(found, np.concatenate([point for point, _ in alone]))
    assert counted.calls.tolist() == [calls for _, calls in alone]
    assert counted.evaluations == counted.calls.max()


@pytest.mark.parametrize("seed", range(3))
def test_functions_with_a_common_variable(seed):
    """A sum of quadratic functions, each with its own variables and two that some share: H x = -g at the minimum."""
    rng = np.random.default_rng(seed)
    members = [np.array(own) for own in ([0, 1, 7], [2, 7, 8], [3, 4, 8], [], [5, 6], [8])]
    hessian, slope, functions = np.zeros((9, 9)), np.zeros(9), []
    for own in members:
        function, curvature, gradient = quadratic(rng, len(own))
        functions.append(function)
        if len(own):
            hessian[np.ix_(own, own)] += curvature
            slope[own] += gradient
    bounds = np.tile(UNBOUNDED, (9, 1))
    counted = Sum(functions, members, bounds)
    found = minimise(counted, rng.normal(0, 2, 9), bounds, members, 1e-13, 300)
    np.testing.assert_allclose(found, np.linalg.solve(hessian, -slope), atol=1e-5)
    assert counted.calls[4] < counted.calls[0] == counted.calls[1] == counted.calls[2] == counted.calls[5]
    assert counted.calls[3] == 0


@pytest.mark.parametrize("low", [-np.inf, 0.0])
def test_what_was_learnt_of_the_curvature_serves_again(low):
    """After a minimisation of shifted functions one step leads to the minimum; packing changes no bit of it."""
    rng = np.random.default_rng(7)
    members = [np.array([0, 2]), np.array([1, 2])]
    (first, a, g), (second, b, h) = quadratic(rng, 2), quadratic(rng, 2)
    bounds = np.column_stack([[-np.inf, -np.inf, low], np.full(3, np.inf)])
    hessian, slope = np.zeros((3, 3)), np.zeros(3)
    for own, curvature, gradient in zip(members, (a, b), (g, h), strict=True):
        hessian[np.ix_(own, own)] += curvature
        slope[own] += gradient
    curvatures = Curvatures(2)
    minimise(Sum([first, second], members, np.tile(UNBOUNDED, (3, 1))), np.full(3, 3.0), bounds, members, 1e-13, 300,
             curvatures)  # fmt: skip
    again = from_arrays(to_arrays(curvatures))
    for one, other in zip(again.matrices, curvatures.matrices, strict=True):
        np.testing.assert_array_equal(one, other)
    shift = np.array([0.1, -0.2, 0.05])
    functions = [lambda x: first(x - shift[[0, 2]]), lambda x: second(x - shift[[1, 2]])]
    counted = Sum(functions, members, bounds)
    expected = shift - np.linalg.solve(hessian, slope)
    if low == 0.0 and expected[2] < 0:
        expected[2] = 0.0
        expected[:2] = shift[:2] - np.linalg.solve(hessian[:2, :2], slope[:2] + hessian[:2, 2] * (0.0 - shift[2]))
    found = minimise(counted, expected + 0.1, bounds, members, 1e-10, 300, again)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert counted.evaluations <= 6


def test_a_first_step_that_gains_little_is_not_the_last():
    """At (x - 100)^2 the first step is of length 1 and gains 199, the second one knows the curvature and arrives."""
    found, _ = minimise_alone(lambda x: ((x[0] - 100) ** 2, 2 * (x - 100)), np.zeros(1), UNBOUNDED[None], 1000.0, 50)
    np.testing.assert_allclose(found, 100.0)


def test_where_nothing_can_be_gained():
    bounds = np.array([[0.0, 1.0], [0.0, 1.0]])
    found, evaluations = minimise_alone(lambda x: (float(x.sum()), np.ones(2)), np.zeros(2), bounds, 1e-9, 50)
    assert found.tolist() == [0.0, 0.0]
    assert evaluations == 1


@pytest.mark.parametrize("beyond", [1e6, np.inf])
def test_values_that_cannot_be_had_are_turned_away_from(beyond):
    """Beyond 2 the function is far worse, without a slope, like a likelihood that cannot be represented."""

    def function(x):
        if x[0] > 2:
            return beyond, np.zeros(1)
        return (-10 * np.log(x[0]) + 10 * x[0] if x[0] > 0 else beyond), 10 - 10 / x

    found, _ = minimise_alone(function, np.array([0.01]), UNBOUNDED[None], 1e-12, 100)
    np.testing.assert_allclose(found, 1.0, atol=1e-4)


def test_a_hill_on_the_way():
    """x^4 - 8 x^2 curves downwards between its minima, so that no step there tells a positive curvature."""
    found, evaluations = minimise_alone(
        lambda x: (x[0] ** 4 - 8 * x[0] ** 2, 4 * x**3 - 16 * x), np.array([0.05]), UNBOUNDED[None], 1e-12, 100
    )
    np.testing.assert_allclose(found, 2.0, atol=1e-5)
    assert evaluations < 30


@pytest.mark.parametrize("seed", range(3))
def test_hills_are_damped(seed):
    """Powell (1978): along a step the new Hessian has the curvature that the gradient shows, or 0.2 of the old if less.

    So it stays positive definite on a hill, where the gradient shows that the function curves downwards.
    """
    rng = np.random.default_rng(seed)
    before, step = quadratic(rng, 3)[1], rng.normal(0, 1, 3)
    expected = step @ before @ step
    across = rng.normal(0, 1, 3)
    across -= (across @ step) / (step @ step) * step
    for share, kept in [(-2.0, 0.2), (0.0, 0.2), (0.1, 0.2), (0.5, 0.5), (3.0, 3.0)]:
        curvatures = Curvatures(1)
        curvatures.matrices = [before]
        curvatures.update(0, step, share * expected / (step @ step) * step + across)
        after = curvatures.matrices[0]
        np.testing.assert_allclose(step @ after @ step, kept * expected, rtol=1e-12)
        np.testing.assert_array_less(0, np.linalg.eigvalsh(after))


def conjugate_steps(hessian, rng):
    """Conjugate steps that span all directions: the update learns the inverse of the Hessian exactly from them."""
    steps = []
    for candidate in rng.normal(size=hessian.shape):
        for step in steps:
            candidate = candidate - (step @ hessian @ candidate) / (step @ hessian @ step) * step
        steps.append(candidate)
    return steps


def remembered(start, hessian, steps):
    memory = LimitedMemory(*start)
    for step in steps:
        memory.update(0, step, hessian @ step)
    return memory


def test_as_many_conjugate_steps_as_variables_teach_the_hessian():
    """Whatever the start (Nocedal 1980)."""
    rng = np.random.default_rng(1)
    _, hessian, slope = quadratic(rng, REMEMBERED_STEPS)
    memory = remembered((np.ones(REMEMBERED_STEPS), []), hessian, conjugate_steps(hessian, rng))
    found = memory.solve(slope, np.ones(REMEMBERED_STEPS, dtype=bool))
    np.testing.assert_allclose(found, np.linalg.solve(hessian, slope), rtol=1e-8)


@pytest.mark.parametrize("fixed", [[], [0, 6]])
def test_steps_add_to_a_diagonal_and_blocks(fixed):
    """By the update as its definition has it, with whole matrices; variables that are not free play no part."""
    rng = np.random.default_rng(4)
    _, hessian, slope = quadratic(rng, 7)
    blocks = [block @ block.T for block in (hessian[3:5, 3:5], hessian[5:, 5:])]
    steps = rng.normal(size=(4, 7))
    free = ~np.isin(np.arange(7), fixed)
    start = np.zeros((7, 7))
    start[:3, :3] = np.diag(1 / np.diag(hessian)[:3])
    start[3:5, 3:5], start[5:, 5:] = (np.linalg.inv(block) for block in blocks)
    inverse = start[np.ix_(free, free)]
    for step in steps:
        own, turn = step[free], (hessian @ step)[free]
        if own @ turn > 0:
            left = np.eye(len(own)) - np.outer(own, turn) / (own @ turn)
            inverse = left @ inverse @ left.T + np.outer(own, own) / (own @ turn)
    found = remembered((np.diag(hessian)[:3], blocks), hessian, steps).solve(slope, free)
    np.testing.assert_allclose(found[free], inverse @ slope[free], rtol=1e-8)
    assert np.all(found[fixed] == 0)


def test_steps_along_which_a_function_is_concave_teach_nothing():
    memory = LimitedMemory(np.array([10.0, 10.0]), [])
    memory.update(0, np.array([1.0, 2.0]), np.array([-3.0, -1.0]))
    np.testing.assert_allclose(memory.solve(np.array([2.0, -1.0]), np.array([True, True])), [0.2, -0.1])
    memory.matrices[0] = None  # the next line is one of steepest descent, and so is the one after a concave step
    memory.update(0, np.array([1.0, 2.0]), np.array([-3.0, -1.0]))
    assert memory.matrices[0] is None


def test_the_first_step_tells_the_size_of_a_guess():
    """A guess of the right proportions, but far too large: its size becomes right, and so is the second step."""
    hessian, start, values = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([4.0, -3.0]), []
    curvatures = Curvatures(1)
    curvatures.guess(0, 50 * hessian)

    def function(point, _):
        values.append(point)
        return np.array([point @ hessian @ point / 2]), [hessian @ point]

    found = minimise(function, start, np.tile([-9.0, 9.0], (2, 1)), [np.arange(2)], 1.0, 20, curvatures)
    np.testing.assert_allclose(found, 0.0, atol=1e-9)
    np.testing.assert_allclose(values[1], start * (1 - 1 / 50))
    assert len(values) <= 4
    np.testing.assert_allclose(curvatures.matrices[0], hessian)


def test_a_guess_that_no_step_has_tried_is_forgotten():
    curvatures = Curvatures(1)
    curvatures.guess(0, np.eye(1))
    at_minimum = lambda point, _: (np.array([0.0]), [np.array([0.0])])  # noqa: E731
    minimise(at_minimum, np.zeros(1), np.array([[-1.0, 1.0]]), [np.arange(1)], 0.1, 9, curvatures)
    assert curvatures.matrices == [None]
    assert not curvatures.guessed
