"""DERIVATIVE and TRIPLET against central differences of the oracle."""

import numpy as np
import pytest
from agreement import Case as RandomCase
from helpers import program_to_node, random_mixture
from oracles.likelihood import mixed_derivative

from plltool.engine.contract import TRIPLET_VALUES

# Of the sum of absolute weighted contributions, d1 itself may be near 0. The limit is that of the difference:
# steps of 1 % of the length leave errors of about 1e-8 (measured: at most 4e-8).
TOLERANCE = 1e-6
STEP = 0.01
N_TAXA, N_PATTERNS = 5, 9


class Case(RandomCase):
    """A tree, its data, and per-pattern derivatives from the oracle."""

    def __init__(self, seed, rates=None):
        super().__init__(seed, N_TAXA, (N_PATTERNS,))
        if rates is not None:
            self.mixtures = [random_mixture(self.rng, 4, 4, rates)]

    def mixed(self, first, second):
        t, u = self.lengths[first], self.lengths[second]
        return mixed_derivative(lambda x, y: self.lnl_at((first, x), (second, y)), t, u, STEP * t, STEP * u)

    def check(self, found, per_pattern, what):
        size = self.weights @ np.abs(per_pattern)
        error = abs(found - self.weights @ per_pattern)
        assert error <= TOLERANCE * size, f"{what}: {error / size:.2g}"


@pytest.fixture(scope="module")
def case():
    case = Case(1)
    case.per_branch = [case.slopes(branch) for branch in range(len(case.ends))]
    return case


def test_derivatives_of_every_branch(any_kind, make_engine, case):
    engine = case.engine(make_engine, any_kind)
    for branch, expected in enumerate(case.per_branch):
        program, a, b = case.to(branch)
        engine.run(program, case.lengths)
        for edge in ((a, b, branch), (b, a, branch)):
            lnl, d1, d2 = engine.derivatives([edge], case.lengths)[0, 0]
            assert lnl == pytest.approx(case.weights @ case.lnl_at(), rel=1e-12)
            case.check(d1, expected[0], f"d1 of branch {branch}")
            case.check(d2, expected[1], f"d2 of branch {branch}")


def test_derivatives_of_many_branches_at_once(few_kind, make_engine, case):
    """Axes: (edge, part, value)."""
    engine = case.engine(make_engine, few_kind)
    program, a, b = case.to(2)
    engine.run(program, case.lengths)
    lengths = np.array([0.1, 0.2, 0.4])
    together = engine.derivatives([(a, b, k) for k in range(3)], lengths)
    assert together.shape == (3, 1, 3)
    for k in range(3):
        np.testing.assert_array_equal(together[k], engine.derivatives([(a, b, k)], lengths)[0])


@pytest.mark.parametrize("place", ["tip", "inner"])
@pytest.mark.parametrize("length", [1e-6, 50.0])
def test_derivatives_at_extreme_lengths(few_kind, make_engine, length, place):
    """At 1e-6 all lengths are of that order, so that changes happen on the branch in question too.

    At 50 slow components keep the derivative above the rounding of the difference.
    """
    case = Case(2, rates=[0.02, 0.03, 0.04, 0.05] if length > 1 else None)
    is_tip = (case.ends < N_TAXA).any(axis=1)
    branch = int(np.flatnonzero(is_tip if place == "tip" else ~is_tip)[0])
    if length < 1:
        case.lengths[:] = length * (1 + np.arange(len(case.lengths)) / 3)
    case.lengths[branch] = length
    engine = case.engine(make_engine, few_kind)
    program, a, b = case.to(branch)
    engine.run(program, case.lengths)
    _, d1, d2 = engine.derivatives([(a, b, branch)], case.lengths)[0, 0]
    first, second = case.slopes(branch)
    assert length > 1 or np.abs(first).max() * length > 0.1
    case.check(d1, first, "d1")
    case.check(d2, second, "d2")


def test_triplet_gradient_and_hessian(any_kind, make_engine, case):
    engine = case.engine(make_engine, any_kind)
    node = 2 * N_TAXA - 3
    program, around = program_to_node(case.ends, N_TAXA, node)
    engine.run(program, case.lengths)
    join = [word for operand, branch in around for word in (operand, branch)]
    values = engine.triplets([join], case.lengths)[0, 0]
    branches = [branch for _, branch in around]
    if not hasattr(case, "mixed_slopes"):
        case.mixed_slopes = [case.mixed(branches[i], branches[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    assert values[0] == pytest.approx(case.weights @ case.lnl_at(), rel=1e-12)
    for k, branch in enumerate(branches):
        case.check(values[1 + k], case.per_branch[branch][0], f"gradient {k}")
        case.check(values[4 + k], case.per_branch[branch][1], f"Hessian {k}{k}")
    for k, expected in enumerate(case.mixed_slopes):
        case.check(values[7 + k], expected, f"mixed {k}")


def test_triplets_of_many_joins_at_once(few_kind, make_engine, case):
    """Axes: (join, part, value)."""
    engine = case.engine(make_engine, few_kind)
    program, around = program_to_node(case.ends, N_TAXA, N_TAXA)
    engine.run(program, case.lengths)
    (a, _), (b, _), (c, _) = around
    lengths = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    together = engine.triplets([(a, 0, b, 1, c, 2), (a, 3, b, 4, c, 5)], lengths)
    assert together.shape == (2, 1, TRIPLET_VALUES)
    np.testing.assert_array_equal(together[1], engine.triplets([(a, 3, b, 4, c, 5)], lengths)[0])
    assert not np.array_equal(together[0], together[1])
