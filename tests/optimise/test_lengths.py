"""Branch lengths against closed forms and another optimiser."""

import numpy as np
import pytest
from helpers import (
    jukes_cantor_mixture,
    likelihood_of,
    make_tree,
    many_taxa,
    random_codes,
    random_ends,
    random_mixture,
    simulate_codes,
)
from oracles.likelihood import pruning
from scipy.optimize import minimize

from plltool.constants import MAX_BRANCH_LENGTH, MIN_BRANCH_LENGTH
from plltool.optimise import lengths as lengths_module
from plltool.optimise.lengths import (
    SMOOTHING_EPSILON,
    apply_step,
    at_bound,
    newton_step,
    predicted_gains,
    smooth,
    try_scales,
)
from plltool.optimise.polish import polish

STAR = [(0, 3), (1, 3), (2, 3)]
FINE = 1e-9  # lnL that may still be gained
MEAN_RATE_RTOL = 0.5  # 3 standard errors of the mean rate of the 40 sites of `many_taxa`
LENGTH_RTOL = 1e-4  # what FINE leaves open: lnL is flat to 1e-9 within about 1e-5 of the optimum


def promise(likelihood):
    """The gain in lnL that a full Newton step promises at the lengths of the tree."""
    slopes = likelihood.all_derivatives()[1]
    return predicted_gains(likelihood.tree.lengths, slopes[..., 0], slopes[..., 1]).sum()


STARTS = pytest.mark.parametrize("start", [0.1, 1e-6, 5.0])


@STARTS
@pytest.mark.parametrize("differing", [1, 20, 60])
def test_jukes_cantor_distance(start, differing):
    """Two taxa and one of gaps: d = -3/4 log(1 - 4/3 p); the data determine only the sum of two lengths."""
    codes = np.array([[1, 1], [1, 2], [15, 15]])
    weights = np.array([100.0 - differing, differing])
    tree = make_tree(STAR, [start] * 3, 3)
    likelihood = likelihood_of(tree, codes, weights, jukes_cantor_mixture())
    reached = smooth(likelihood, FINE)
    p = differing / 100
    assert promise(likelihood) < FINE
    assert tree.lengths[0] + tree.lengths[1] == pytest.approx(-3 / 4 * np.log(1 - 4 / 3 * p), rel=LENGTH_RTOL)
    expected = 100 * ((1 - p) * np.log((1 - p) / 4) + p * np.log(p / 12))
    assert reached == pytest.approx(expected, abs=1e-7)


@STARTS
def test_three_taxa_two_states(start):
    """CFN on a star fits the pattern frequencies exactly: exp(-2 t_i) = sqrt(x_ij x_ik / x_jk), x = 1 - 2 p."""
    weights = np.array([70.0, 5.0, 9.0, 16.0])
    codes = np.array([[1, 2, 1, 1], [1, 1, 2, 1], [1, 1, 1, 2]])
    share = weights / weights.sum()
    agree = {(0, 1): share[0] + share[3], (0, 2): share[0] + share[2], (1, 2): share[0] + share[1]}
    x = {pair: 2 * value - 1 for pair, value in agree.items()}
    products = [(x[0, 1], x[0, 2], x[1, 2]), (x[0, 1], x[1, 2], x[0, 2]), (x[0, 2], x[1, 2], x[0, 1])]
    expected = [-0.25 * np.log(a * b / c) for a, b, c in products]
    tree = make_tree(STAR, [start] * 3, 3)
    likelihood = likelihood_of(tree, codes, weights, jukes_cantor_mixture(2))
    reached = smooth(likelihood, FINE)
    assert promise(likelihood) < FINE
    np.testing.assert_allclose(tree.lengths, expected, rtol=LENGTH_RTOL)
    assert reached == pytest.approx(weights @ np.log(share / 2), abs=1e-7)


@STARTS
def test_identical_sequences_have_the_least_length(start):
    tree = make_tree(STAR, [start] * 3, 3)
    likelihood = likelihood_of(tree, np.array([[1, 2, 4, 8]] * 3), np.full(4, 25.0), jukes_cantor_mixture())
    smooth(likelihood, FINE)
    assert promise(likelihood) < FINE
    np.testing.assert_allclose(tree.lengths, MIN_BRANCH_LENGTH, rtol=1e-12)


def test_saturated_sequences_have_the_greatest_length():
    """Three quarters of the sites differ or more: no finite distance."""
    tree = make_tree(STAR, [0.1] * 3, 3)
    codes = np.array([[1, 1], [1, 2], [15, 15]])
    reached = smooth(likelihood_of(tree, codes, np.array([10.0, 90.0]), jukes_cantor_mixture()), FINE)
    assert reached == pytest.approx(10 * np.log(1 / 16) + 90 * np.log(1 / 16), abs=1e-6)
    assert np.all(tree.lengths <= MAX_BRANCH_LENGTH)


@pytest.mark.parametrize("seed", range(6))
@STARTS
def test_lnl_never_falls_and_the_result_is_consistent(monkeypatch, seed, start):
    rng = np.random.default_rng(seed)
    n_taxa = 12
    ends, _ = random_ends(rng, n_taxa)
    tree = make_tree(ends, start * rng.exponential(1.0, len(ends)), n_taxa)
    mixture = random_mixture(rng, 4, 4)
    codes = random_codes(rng, n_taxa, 30)
    tree.lengths[:] = np.clip(tree.lengths, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH)
    likelihood = likelihood_of(tree, codes, np.ones(30), mixture)
    before, derivatives, asked = likelihood.lnl(), likelihood.all_derivatives, []
    likelihood.all_derivatives = lambda lengths: asked.append(lengths) or derivatives(lengths)
    for rounds in (1, 2, 3, 5, 500):
        monkeypatch.setattr(lengths_module, "MAX_SMOOTHING_ROUNDS", rounds)
        reached = smooth(likelihood)
        assert reached >= before - 1e-9 * abs(before)
        assert len(asked) <= rounds
        asked.clear()
        assert likelihood.lnl() == pytest.approx(reached, rel=1e-12)
        # directed CLAs are those of the tree's lengths
        view = likelihood.view
        node = n_taxa
        edge = (int(view.outgoing[node, 0]), int(view.incoming[node, 0]), int(tree.edges[node, 0]))
        found = likelihood.directed().derivatives([edge], tree.lengths)[0, 0, 0]
        assert found == pytest.approx(reached, rel=1e-12)
        before = reached
    likelihood.all_derivatives = derivatives
    assert promise(likelihood) < SMOOTHING_EPSILON
    slack = 1e-12  # a damped step between two lengths within bounds may round to just outside
    assert tree.lengths.min() >= MIN_BRANCH_LENGTH * (1 - slack)
    assert tree.lengths.max() <= MAX_BRANCH_LENGTH * (1 + slack)


def test_another_optimiser_on_the_oracle_agrees():
    rng = np.random.default_rng(3)
    ends, lengths = random_ends(rng, 4)
    mixture = random_mixture(rng, 4, 1)
    codes = simulate_codes(rng, ends, lengths, 4, 60, mixture)
    columns = codes.T.tolist()
    found = minimize(
        lambda logs: -pruning(ends.tolist(), np.exp(logs), columns, mixture.oracle).sum(),
        np.log(lengths),
        method="L-BFGS-B",
        bounds=[(np.log(MIN_BRANCH_LENGTH), np.log(MAX_BRANCH_LENGTH))] * len(ends),
    )
    tree = make_tree(ends, np.full(len(ends), 0.1), 4)
    reached = smooth(likelihood_of(tree, codes, np.ones(60), mixture), 1e-6)
    assert reached == pytest.approx(-found.fun, abs=1e-3)


# --- steps ----------------------------------------------------------------------------------------------------


def test_newton_step_goes_uphill():
    lengths, slopes = np.array([0.1, 0.1]), np.array([2.0, -2.0])
    np.testing.assert_allclose(newton_step(lengths, slopes, np.array([-40.0, -40.0])), [0.05, -0.05])
    step = newton_step(lengths, slopes, np.array([40.0, 0.0]))  # where lnL is convex
    assert step[0] > 0 > step[1]


def test_apply_step_is_newton_for_small_steps_and_exact_for_x_log_t_minus_c_t():
    np.testing.assert_allclose(apply_step(np.array([0.1]), np.array([1e-6])), [0.1 + 1e-6], rtol=1e-9)
    changes, per_length, t = 3.0, 20.0, np.array([0.01, 0.1, 0.29])
    d1, d2 = changes / t - per_length, -changes / t**2
    np.testing.assert_allclose(apply_step(t, newton_step(t, d1, d2)), changes / per_length)


def test_apply_step_stays_positive_and_bounded():
    t = np.array([1e-6, 0.1, 100.0, 0.1])
    moved = apply_step(t, np.array([-1.0, -1e9, 1e9, 1e9]))
    assert np.all((moved >= MIN_BRANCH_LENGTH) & (moved <= MAX_BRANCH_LENGTH))
    assert moved[3] == pytest.approx(1.6)  # MAX_LENGTH_FACTOR


def test_at_bound():
    lengths = np.array([MIN_BRANCH_LENGTH, MIN_BRANCH_LENGTH, MAX_BRANCH_LENGTH, MAX_BRANCH_LENGTH, 0.1])
    assert at_bound(lengths, np.array([-1.0, 1.0, 1.0, -1.0, -1.0])).tolist() == [True, False, True, False, False]


def test_predicted_gains():
    """d1^2 / (2 |d2|) for a small step; nothing at a bound."""
    lengths = np.array([0.1, MIN_BRANCH_LENGTH])
    found = predicted_gains(lengths, np.array([0.01, -5.0]), np.array([-100.0, -100.0])).sum()
    assert found == pytest.approx(0.01**2 / 200)


def return_at_once(likelihood):
    """`try_scales` where Newton's steps stay."""
    lost = smooth(likelihood, 0.1)
    assert likelihood.tree.lengths.sum() > 3 * many_taxa("JC+G4{0.5}").tree.lengths.sum()
    reached = try_scales(likelihood, lost, 0.1)
    assert reached > lost
    return reached


@pytest.mark.parametrize("find", [return_at_once, polish])
def test_lengths_on_a_wrong_scale_return(find):
    """Where sites have moved to a neighbouring category, Newton's steps stay; the truth tells the tree's length."""
    likelihood = many_taxa("JC+G4{0.5}")
    lengths = likelihood.tree.lengths
    true_length = lengths.sum()
    lengths *= 3.4
    reached = find(likelihood)
    assert lengths.sum() == pytest.approx(true_length, rel=MEAN_RATE_RTOL)
    assert likelihood.lnl() == pytest.approx(reached, rel=1e-12)


@pytest.mark.parametrize("model", ["JC+G4{0.5}", "JC"])
def test_lengths_on_the_right_scale_stay(model):
    likelihood = many_taxa(model)
    best = smooth(likelihood, 0.1)
    optimum = likelihood.tree.lengths.copy()
    assert try_scales(likelihood, best, 0.1) == best
    np.testing.assert_array_equal(likelihood.tree.lengths, optimum)


def test_scales_that_gain_too_little_are_not_taken():
    likelihood = many_taxa("JC+G4{0.5}")
    best = smooth(likelihood, 0.1)
    likelihood.tree.lengths /= 2
    lnl, halves = likelihood.lnl(), likelihood.tree.lengths.copy()
    assert lnl < best
    assert try_scales(likelihood, lnl, 2 * (best - lnl)) == lnl
    np.testing.assert_array_equal(likelihood.tree.lengths, halves)
