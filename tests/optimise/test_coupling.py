"""Steps of lengths that interact, against Newton's step of a quadratic function."""

import numpy as np
import pytest

from plltool.constants import REMEMBERED_STEPS
from plltool.optimise.coupling import Coupling

N = REMEMBERED_STEPS - 1  # lengths, so that the steps remembered span all directions


def a_ridge(rng, n):
    """Minus the Hessian of a function whose variables are strongly coupled, and one of its starts and its maximum."""
    vectors, _ = np.linalg.qr(rng.normal(size=(n, n)))
    return (vectors * np.geomspace(1, 1e3, n)) @ vectors.T, rng.normal(size=n), rng.normal(size=n)


def conjugate_steps(hessian, rng):
    """Conjugate steps that span all directions: the update learns the inverse of the Hessian exactly from them."""
    steps = []
    for candidate in rng.normal(size=hessian.shape):
        for step in steps:
            candidate = candidate - (step @ hessian @ candidate) / (step @ hessian @ step) * step
        steps.append(candidate)
    return steps


def learnt(hessian, steps, n_parts=None):
    coupling = Coupling()
    is_near = np.array(True) if n_parts is None else np.ones(n_parts, dtype=bool)
    for step in steps:
        pair = (step, hessian @ step)
        coupling.learn(*(np.stack([v] * n_parts, axis=1) if n_parts else v for v in pair), is_near)
    return coupling


def test_newton_steps_after_as_many_conjugate_steps_as_lengths():
    """The inverse that conjugate steps teach is exact (Nocedal 1980), whatever the steps of each length alone."""
    rng = np.random.default_rng(1)
    hessian, start, top = a_ridge(rng, N)
    coupling = learnt(hessian, conjugate_steps(hessian, rng))
    slopes = hessian @ (top - start)
    coupled, is_coupled = coupling.couple(slopes / np.diag(hessian), slopes)
    assert is_coupled
    np.testing.assert_allclose(start + coupled, top, rtol=1e-8)


def test_parts_are_coupled_on_their_own():
    """A part that forgets gets its own steps back; the other one is none the worse for it."""
    rng = np.random.default_rng(2)
    hessian, start, top = a_ridge(rng, N)
    coupling = learnt(hessian, conjugate_steps(hessian, rng), 2)
    coupling.forget(np.array([True, False]))
    slopes = np.stack([hessian @ (top - start)] * 2, axis=1)
    steps = slopes / np.diag(hessian)[:, None]
    coupled, is_coupled = coupling.couple(steps, slopes)
    assert is_coupled.tolist() == [False, True]
    np.testing.assert_allclose(coupled[:, 0], steps[:, 0])
    np.testing.assert_allclose(start + coupled[:, 1], top, rtol=1e-8)


def test_steps_that_are_not_conjugate():
    """The inverse is that of the update as its definition has it, with whole matrices (Nocedal 1980)."""
    rng = np.random.default_rng(4)
    hessian, start, top = a_ridge(rng, N)
    steps = rng.normal(size=(4, N))
    inverse = np.diag(1 / np.diag(hessian))
    for step in steps:
        turn = hessian @ step
        share = 1 / (step @ turn)
        left = np.eye(N) - share * np.outer(step, turn)
        inverse = left @ inverse @ left.T + share * np.outer(step, step)
    slopes = hessian @ (top - start)
    coupled, _ = learnt(hessian, steps).couple(slopes / np.diag(hessian), slopes)
    np.testing.assert_allclose(coupled, inverse @ slopes, rtol=1e-8)


def test_lengths_that_stay_do_not_count():
    """A length whose own step is 0, as at a bound, stays, and the others take the steps that they take without it."""
    rng = np.random.default_rng(3)
    hessian, start, top = a_ridge(rng, N)
    steps = rng.normal(size=(4, N))
    slopes = hessian @ (top - start)
    own = np.append(0.0, (slopes / np.diag(hessian))[1:])
    coupled, _ = learnt(hessian, steps).couple(own, slopes)
    without = Coupling()
    for step in steps:
        without.learn(step[1:], (hessian @ step)[1:], np.array(True))
    assert coupled[0] == 0.0
    np.testing.assert_allclose(coupled[1:], without.couple(own[1:], slopes[1:])[0], rtol=1e-12)


@pytest.mark.parametrize("is_near", [True, False])
def test_only_steps_near_the_maximum_count(is_near):
    coupling = Coupling()
    coupling.learn(np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.array(is_near))
    slopes = np.array([2.0, -1.0])
    coupled, is_coupled = coupling.couple(0.1 * slopes, slopes)
    assert is_coupled == is_near
    assert np.allclose(coupled, 0.1 * slopes) != is_near


def test_a_part_far_from_the_maximum_learns_nothing_beside_one_that_is_near():
    coupling = Coupling()
    coupling.learn(np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([[3.0, 3.0], [1.0, 1.0]]), np.array([False, True]))
    slopes = np.array([[2.0, 2.0], [-1.0, -1.0]])
    coupled, is_coupled = coupling.couple(0.1 * slopes, slopes)
    assert is_coupled.tolist() == [False, True]
    np.testing.assert_allclose(coupled[:, 0], 0.1 * slopes[:, 0])


def test_steps_along_which_the_function_is_convex_teach_nothing():
    coupling = Coupling()
    coupling.learn(np.array([1.0, 2.0]), np.array([-3.0, -1.0]), np.array(True))
    slopes = np.array([2.0, -1.0])
    coupled, is_coupled = coupling.couple(0.1 * slopes, slopes)
    assert not is_coupled
    np.testing.assert_allclose(coupled, 0.1 * slopes)
