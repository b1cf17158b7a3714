"""The likelihood as a function of one vector, against differences of the oracle, which reads it as documented."""

import numpy as np
import pytest
from helpers import replaced
from oracles.likelihood import derivative, dna_columns, pruning
from oracles.substitution import gamma_category_means, q_matrix
from scipy.optimize import minimize

from plltool import InputError, Likelihood
from plltool.engine.base import NotFiniteError
from plltool.optimise.bounded import Curvatures
from plltool.optimise.density import LEAST_FOUND, Coordinates

TREE = "((a:0.2,b:0.3):0.1,c:0.4,(d:0.05,e:0.6):0.2);"
STEP = 1e-3  # of the oracle's difference, whose error is of the order of its fourth power
RNG = np.random.default_rng(5)
ROWS = {name: "".join(RNG.choice(list("ACGTACGN"), 40)) for name in "abcde"}
COLUMNS = dna_columns(ROWS, "abcde")


def invariable_gamma(vector, n_lengths):
    """Components of HKY+FO+I+G3 as the guide describes the vector: kappa, frequencies, alpha, pinv."""
    kappa, *ratios, alpha, pinv = np.exp(vector[n_lengths:])
    pi = np.append(ratios, 1.0) / (sum(ratios) + 1.0)
    alpha = (alpha**-0.5 - 0.1) ** -2
    share = (pinv - 0.1) / (0.9 + pinv)
    q = q_matrix([1, kappa, 1, 1, kappa, 1], pi)
    rates = gamma_category_means(alpha, 3) / (1 - share)
    return [(share, pi, 0.0 * q), *(((1 - share) / 3, pi, rate * q) for rate in rates)]


def oracle(tree, vector):
    n = tree.n_edges
    return pruning(tree.ends.tolist(), np.exp(vector[:n]), COLUMNS, invariable_gamma(vector, n)).sum()


@pytest.fixture
def likelihood(device):
    model = "HKY+FO+I+G3"
    with Likelihood(ROWS, TREE, model, device=device) as held:
        held.frequencies = [0.1, 0.2, 0.3, 0.4]
        held.alpha, held.pinv = 0.7, 0.2
        yield held


def test_value_and_gradient(likelihood):
    tree, start = likelihood.tree, likelihood.vector()
    assert likelihood.vector_names()[6:] == [
        "length 6", "rates 0", "frequencies 0", "frequencies 1", "frequencies 2", "alpha 0", "pinv 0"
    ]  # fmt: skip
    vector = start + np.random.default_rng(1).normal(0, 0.2, len(start))
    value, slopes = likelihood.value_and_grad(vector)
    assert value == pytest.approx(oracle(tree, vector), rel=1e-11)  # both double
    assert likelihood.log_density(vector) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(likelihood.vector(), vector, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(likelihood.gradient(), slopes)
    for k, found in enumerate(slopes):
        expected, _ = derivative(lambda x, k=k: oracle(tree, replaced(vector, k, x)), vector[k], STEP)
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-7), k
    lengths_only, model_only = likelihood.gradient(model=False), likelihood.gradient(lengths=False)
    np.testing.assert_allclose(np.concatenate([lengths_only, model_only]), slopes, rtol=1e-12)


def test_hessian_times_a_direction(likelihood):
    tree, vector, lnl = likelihood.tree, likelihood.vector(), likelihood.lnl()
    direction = np.random.default_rng(2).normal(0, 3, len(vector))
    found = likelihood.hessian_vector(direction)
    assert likelihood.lnl() == lnl
    np.testing.assert_array_equal(likelihood.vector(), vector)
    expected = derivative(lambda x: oracle(tree, vector + x * direction), 0.0, STEP)[1]
    assert direction @ found == pytest.approx(expected, rel=1e-5)
    assert np.all(likelihood.hessian_vector(np.zeros_like(direction)) == 0)


def test_hessian_at_a_bound(likelihood):
    likelihood.pinv = 1e-10
    tree, vector = likelihood.tree, likelihood.vector()
    along = np.eye(13)[12]

    def slope(x):  # forward differences, for there is nothing below the bound
        up, twice, here = (oracle(tree, vector + (x + step) * along) for step in (STEP, 2 * STEP, 0.0))
        return (4 * up - twice - 3 * here) / (2 * STEP)

    expected = (4 * slope(1e-2) - slope(2e-2) - 3 * slope(0)) / 2e-2
    # rel: the error of a one-sided difference of 1e-3 of a slope that is about as large as its slope
    assert likelihood.hessian_vector(along)[12] == pytest.approx(expected, rel=5e-3)


def test_hessian_at_two_bounds_between_which_a_direction_leads(likelihood):
    likelihood.pinv = 1e-10
    likelihood.set_vector(replaced(likelihood.vector(), 0, likelihood.vector_bounds()[0, 0]))
    tree, vector, unit = likelihood.tree, likelihood.vector(), np.eye(13)

    def mixed(element):  # forward differences of the slope in element 5
        def slope(x):
            ends = (oracle(tree, vector + x * unit[element] + side * STEP * unit[5]) for side in (1, -1))
            return np.subtract(*ends) / (2 * STEP)

        return (4 * slope(1e-2) - slope(2e-2) - 3 * slope(0)) / 2e-2

    found = likelihood.hessian_vector(unit[0] - unit[12])
    assert found[5] == pytest.approx(mixed(0) - mixed(12), rel=5e-3)


def test_parts_with_lengths_of_their_own():
    scheme = "JC, one = 1-25\nJC, two = 26-40"
    with Likelihood(ROWS, TREE, scheme, brlen="unlinked", device="numpy") as held:
        tree, vector = held.tree, held.vector()
        assert held.vector_names()[:3] == ["length 0 part 0", "length 0 part 1", "length 1 part 0"]
        jc = [(1.0, np.full(4, 0.25), q_matrix(np.ones(6), np.full(4, 0.25)))]

        def lnl(v):
            lengths = np.exp(v.reshape(-1, 2))
            parts = enumerate([slice(0, 25), slice(25, 40)])
            return sum(pruning(tree.ends.tolist(), lengths[:, k], COLUMNS[s], jc).sum() for k, s in parts)

        vector = vector + np.random.default_rng(3).normal(0, 0.3, len(vector))
        value, slopes = held.value_and_grad(vector)
        assert value == pytest.approx(lnl(vector), rel=1e-11)
        for k in (0, 1, 6, 7, 13):
            expected, _ = derivative(lambda x, k=k: lnl(replaced(vector, k, x)), vector[k], STEP)
            assert slopes[k] == pytest.approx(expected, rel=1e-7, abs=1e-7)


def assert_gradient(held, elements=None):
    """Slopes, or some of them, are those of `log_density`, whose values other tests compare with oracles."""
    start, slopes = held.vector(), held.gradient()
    for k in range(len(start)) if elements is None else elements:
        expected, _ = derivative(lambda x, k=k: held.log_density(replaced(start, k, x)), start[k], STEP)
        assert slopes[k] == pytest.approx(expected, rel=1e-6, abs=1e-6), held.vector_names()[k]


def test_models_of_parts_come_one_after_another():
    scheme = "K80, one = 1-25\nF81+FO+G2, two = 26-40"
    with Likelihood(ROWS, TREE, scheme, brlen="linked", device="numpy") as held:
        names = ["part 0 rates 0", *(f"part 1 frequencies {k}" for k in range(3)), "part 1 alpha 0"]
        assert held.vector_names(lengths=False) == names
        assert_gradient(held)


VARIABLE = [column for column in zip(*ROWS.values(), strict=True) if len(set(column) - {"N"}) > 1 and "N" not in column]
VARIABLE_ROWS = {name: "".join(row) for name, row in zip(ROWS, zip(*VARIABLE, strict=True), strict=True)}


@pytest.mark.parametrize(
    ("rows", "model", "brlen"),
    [
        (ROWS, "K80+PSR4", "scaled"),
        (VARIABLE_ROWS, "HKY+FO+ASC_LEWIS", "scaled"),
        (ROWS, "JC+COV", "scaled"),
        (ROWS, "JC+R2, one = 1-25\nK80, two = 26-40", "scaled"),
    ],
)
def test_every_kind_of_model(rows, model, brlen):
    with Likelihood(rows, TREE, model, brlen=brlen, device="numpy") as held:
        assert_gradient(held)


def test_the_branch_of_the_root_is_no_element():
    rooted = "(((a:0.2,b:0.3):0.1,c:0.4):0.1,(d:0.05,e:0.6):0.2);"
    with Likelihood(ROWS, rooted, "UNREST", device="numpy") as held:
        n_branches = held.tree.n_edges - 1
        assert n_branches == 8
        assert held.vector(model=False).shape == (n_branches,)
        assert np.all(held.gradient()[:n_branches] != 0)
        assert_gradient(held, (0, 3, 7, n_branches, n_branches + 10))


def test_scipy_finds_what_it_finds_with_the_oracle():
    with Likelihood(ROWS, TREE, "HKY+FE", device="numpy") as held:
        tree, start, bounds = held.tree, held.vector(), held.vector_bounds()

        def slow(vector):
            q = q_matrix([1, np.exp(vector[7]), 1, 1, np.exp(vector[7]), 1], np.full(4, 0.25))
            return -pruning(tree.ends.tolist(), np.exp(vector[:7]), COLUMNS, [(1, np.full(4, 0.25), q)]).sum()

        def loss(vector):
            value, slopes = held.value_and_grad(vector)
            return -value, -slopes

        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        expected = minimize(slow, start, method="L-BFGS-B", bounds=bounds)
        assert found.fun == pytest.approx(expected.fun, abs=1e-3)  # both stop where little is left to gain
        assert found.nfev < expected.nfev


def test_bounds(likelihood):
    vector, lnl = likelihood.vector(), likelihood.lnl()
    bounds = likelihood.vector_bounds()
    assert bounds.shape == (len(vector), 2)
    np.testing.assert_allclose(bounds[0], np.log([1e-6, 100]))
    for end in bounds.T:
        assert np.isfinite(likelihood.log_density(replaced(vector, 0, end[0])))
    likelihood.set_vector(vector)
    for outside in (replaced(vector, 0, bounds[0, 0] - 1e-6), replaced(vector, 12, np.inf)):
        assert likelihood.log_density(outside) == -np.inf
        value, slopes = likelihood.value_and_grad(outside)
        assert value == -np.inf
        np.testing.assert_array_equal(slopes, np.zeros_like(vector))
    assert likelihood.lnl() == pytest.approx(lnl, rel=1e-12)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (lambda v: v[:-1], r"expected a vector of 13 elements, found an array of shape \(12,\)"),
        (lambda v: replaced(v, 4, np.nan), "element 4 of the vector: found nan, expected a number"),
        (lambda v: ["high"] * len(v), "vector: found .*'high'.*, expected numbers"),
        (lambda v: replaced(v, 7, 20.0), r"rates 0 \(element 7 of the vector\): found 20, expected -6.9\d* .. 6.9\d*$"),
    ],
)
def test_vectors_that_cannot_be_set(likelihood, vector, message):
    with pytest.raises(InputError, match=message):
        likelihood.set_vector(vector(likelihood.vector()))


def test_what_has_no_slopes(likelihood):
    with pytest.raises(InputError, match="element 3 of the direction: found inf, expected a finite number"):
        likelihood.hessian_vector(replaced(likelihood.vector(), 3, np.inf))
    with pytest.raises(InputError, match="found neither lengths nor model"):
        likelihood.gradient(lengths=False, model=False)


def test_a_model_without_free_parameters():
    with Likelihood(ROWS, TREE, "JC", device="numpy") as held:
        assert held.vector(lengths=False).shape == (0,)
        value, slopes = held.value_and_grad([], lengths=False)
        assert (value, slopes.shape) == (held.lnl(), (0,))


def test_a_likelihood_of_zero(likelihood, monkeypatch):
    def fail(*_):
        raise NotFiniteError("the likelihood of pattern 3 is not positive and finite")

    vector = likelihood.vector()
    monkeypatch.setattr(likelihood.engine, "execute", fail)
    assert likelihood.log_density(vector) == -np.inf
    assert likelihood.value_and_grad(vector)[0] == -np.inf


def test_curvatures_of_lengths_and_parameters(likelihood):
    """Sizes of second differences of the oracle; a factor of lengths is left out of what is known of parameters."""
    tree, vector = likelihood.tree, likelihood.vector()
    known, n = Curvatures(1), len(likelihood.vector(model=False))
    known.matrices[0] = np.diag(np.arange(1.0, len(vector) - n + 2))
    alone, (hessian,) = Coordinates(likelihood._likelihood, True, True).curvatures(known)
    assert hessian.diagonal().tolist() == list(range(1, len(vector) - n + 1))
    for k, found in enumerate(alone):
        expected = derivative(lambda x, k=k: oracle(tree, replaced(vector, k, x)), vector[k], STEP)[1]
        assert found == pytest.approx(max(abs(expected), LEAST_FOUND), rel=1e-4)
    np.testing.assert_allclose(likelihood.vector(), vector, rtol=1e-12)


def test_slopes_that_a_caller_changes_are_not_those_of_optimisers(likelihood):
    inner = likelihood._likelihood
    expected = inner.all_derivatives()[1].copy()
    inner.all_derivatives()[1][:] = np.nan
    np.testing.assert_array_equal(inner.known_derivatives(inner.tree.lengths)[1], expected)
