"""`plltool.TimeTreeDensity` against oracles of likelihoods and priors with Jacobians by differences."""

import numpy as np
import pytest
from oracles.coalescents import log_density
from oracles.likelihood import pruning
from oracles.substitution import q_matrix
from scipy import optimize, stats

import plltool
from plltool.errors import InputError

ROWS = {"a": "ACGTACGTTACGTACG", "b": "ACGTACGATACGTACG", "c": "ACGAACGTTACCTACT", "d": "TCGAACGTTACCTGCT"}
DATES = {"a": 2000.0, "b": 1999.0, "c": 2000.0, "d": 1998.5}
HEIGHTS = dict(zip("abcd", (0.0, 1.0, 0.0, 1.5), strict=True))
TREE = "((a:0.1,b:0.1):0.1,(c:0.1,d:0.1):0.1);"


def make(model, **more):
    priors = plltool.ClockPriors(rate="lognormal(-3,1)", population="gamma(2,0.5)")
    asked = {"dates": DATES, "clock_priors": priors, "device": "numpy"} | more
    return plltool.TimeTreeDensity(ROWS, TREE, model, **asked)


def draw(density, seed=3):
    vector = density.vector()
    return vector + np.random.default_rng(seed).normal(0, 0.3, len(vector))


def lnl(heights, rates, kappa, frequencies):
    """Of a tree with a root, node 4; `rates` of the branches by the clades below them."""
    tops = {"a": "ab", "b": "ab", "c": "cd", "d": "cd", "ab": "abcd", "cd": "abcd"}
    number = {"a": 0, "b": 1, "c": 2, "d": 3, "abcd": 4, "ab": 5, "cd": 6}
    lengths = [rates[low] * (heights[top] - heights[low]) for low, top in tops.items()]
    q = q_matrix([1, kappa, 1, 1, kappa, 1], frequencies)
    columns = [["ACGT".index(letter) for letter in column] for column in zip(*ROWS.values(), strict=True)]
    masks = [[1 << state for state in column] for column in columns]
    branches = [(number[top], number[low]) for low, top in tops.items()]
    return pruning(branches, lengths, masks, [(1.0, frequencies, q)]).sum()


def heights_of(density, vector):
    told = density.describe(vector)
    return HEIGHTS | {"".join(clade): told[f"height({','.join(clade)})"] for clade in density.clades}


def test_values_are_likelihood_prior_and_jacobian():
    """abs 1e-6: the Jacobian is by central differences; values are about -60."""
    density = make("HKY+FO")
    vector = draw(density)

    def numbers(at):
        told = density.describe(at)
        share = told["kappa"] / (1 + told["kappa"])
        names = [f"height({','.join(clade)})" for clade in density.clades]
        names += ["clockRate", "popSize", *(f"pi({x})" for x in "ACG")]
        return np.array([*map(told.get, names), share])

    assert len(numbers(vector)) == len(vector) == len(density.names)
    step = 1e-5
    matrix = [(numbers(vector + step * e) - numbers(vector - step * e)) / (2 * step) for e in np.eye(len(vector))]
    told, heights = density.describe(vector), heights_of(density, vector)
    rate, size = told["clockRate"], told["popSize"]
    expected = lnl(heights, dict.fromkeys(heights, rate), told["kappa"], [told[f"pi({x})"] for x in "ACGT"])
    expected += log_density(list(HEIGHTS.values()), [heights[key] for key in ("ab", "cd", "abcd")], lambda _: size)
    expected += stats.lognorm(1, scale=np.exp(-3)).logpdf(rate) + stats.gamma(2, scale=2).logpdf(size)
    expected += stats.dirichlet([1] * 4).logpdf([0.25] * 4) + np.linalg.slogdet(np.array(matrix))[1]
    assert density.log_density(vector) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("model", "clock", "more"),
    [("HKY+FO+G4", "relaxed", {}), ("GTR+FO+I", "strict", {}), ("JC", "relaxed", {"tree_prior": "birth-death"})],
)
def test_gradients_are_differences(model, clock, more):
    """abs 1e-5: central differences; +I and +G derivatives are exact to about 1e-9."""
    density = make(model, clock=clock, **more)
    vector, step = draw(density), 1e-5
    value, gradient = density.value_and_grad(vector)
    assert value == density.log_density(vector)
    ends = [[density.log_density(vector + side * step * e) for side in (1, -1)] for e in np.eye(len(vector))]
    assert gradient == pytest.approx(np.array([(high - low) / (2 * step) for high, low in ends]), abs=1e-5)


def test_the_root_is_that_of_the_tree_and_an_optimiser_climbs():
    density = make("JC")
    assert set(density.clades) == {("a", "b"), ("c", "d"), ("a", "b", "c", "d")}
    start = density.vector()

    def loss(vector):
        value, gradient = density.value_and_grad(vector)
        return -value, -gradient

    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B")
    assert -found.fun > density.log_density(start)
    assert np.abs(density.value_and_grad(found.x)[1]).max() < 1e-2
    assert density.value_and_grad(np.full(len(start), 1e3)) == (-np.inf, pytest.approx(np.zeros(len(start))))


def test_bad_input():
    with pytest.raises(InputError, match="clock: found None, expected one of: strict, relaxed"):
        make("JC", clock=None)
    density = make("JC")
    with pytest.raises(InputError, match=r"expected a vector of 5 elements, found an array of shape \(2,\)"):
        density.log_density([0.0, 1.0])
    assert density.log_density([0.0, 1.0, np.nan, 0.0, 0.0]) == -np.inf
