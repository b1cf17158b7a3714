"""Gradients and optima of corrected likelihoods, against differences and an optimiser of the oracle."""

import numpy as np
import pytest
from helpers import as_sequences, make_tree, mix, random_ends, simulate_codes
from oracles.ascertainment import correction, invariable_lnl
from oracles.likelihood import pruning
from oracles.models import components_of
from scipy.optimize import minimize
from slopes import assert_slopes, disturb

from plltool.model.vector import scale_slope
from plltool.optimise.lengths import predicted_gains, smooth
from plltool.run.likelihood import Likelihood

SUFFIXES = ["+ASC_LEWIS", "+ASC_FELS{25}", "+ASC_STAM{9/0/4/3.5}"]
STEP = 1e-4
N_TAXA, N_SITES = 5, 60


@pytest.fixture(scope="module")
def data():
    """A tree, its lengths, and codes of variable columns only; the last taxon has no data."""
    rng = np.random.default_rng(11)
    ends, lengths = random_ends(rng, N_TAXA, 0.2)
    mixture = mix([(1.0, [0.4, 0.3, 0.2, 0.1], np.full((4, 4), 1.0), 1.0)])
    codes = simulate_codes(rng, ends, lengths, N_TAXA, 8 * N_SITES, mixture)
    codes[-1] = 15
    codes = codes[:, (codes[:-1] != codes[0]).any(axis=0)][:, :N_SITES]
    assert codes.shape == (N_TAXA, N_SITES)
    return ends, lengths, codes


def oracle_lnl(data, model, lengths=None):
    """lnL of a Model's values with its correction; the taxon without data has any state in invariable sites."""
    ends, own, codes = data
    lengths = own if lengths is None else lengths
    components = components_of(model)
    lnl = pruning(ends.tolist(), lengths, codes.T.tolist(), components).sum()
    alike = invariable_lnl(ends.tolist(), lengths, components, N_TAXA, without_data=[N_TAXA - 1]).tolist()
    correct = model.spec.ascertainment
    return lnl + correction(correct.kind, correct.unseen, alike, N_SITES)


def opened(data, text, device, **settings):
    ends, lengths, codes = data
    return Likelihood(as_sequences(codes), make_tree(ends, lengths, N_TAXA), text, device=device, **settings)


def difference(f):
    return (f(STEP) - f(-STEP)) / (2 * STEP)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["HKY+FO", "GTR+FO+G2"])
def test_every_parameter_and_length(data, name, suffix, device):
    with opened(data, name + suffix, device) as opened_likelihood:
        likelihood = opened_likelihood._likelihood
        model = disturb(likelihood, 0.3, 2)
        assert likelihood.lnl() == pytest.approx(oracle_lnl(data, model), rel=1e-10)
        tolerance = {"rel": 1e-5, "abs": 1e-6 * N_SITES}
        matrices = assert_slopes(likelihood, lambda one: oracle_lnl(data, one), STEP, **tolerance)
        expected = difference(lambda step: oracle_lnl(data, model, data[1] * np.exp(step)))
        assert scale_slope(model, matrices) == pytest.approx(expected, **tolerance)
        _, slopes = likelihood.all_derivatives()
        for branch in range(len(data[0])):
            one = data[1][branch] * (np.arange(len(data[0])) == branch)
            expected = difference(lambda step, one=one: oracle_lnl(data, model, data[1] + step * one)) / one.sum()
            assert slopes[branch, 0] == pytest.approx(expected, rel=1e-5, abs=1e-5 * N_SITES)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("factor", [1.0, 1e-3, 10.0])
def test_another_optimiser_gains_nothing_after_smoothing(data, suffix, factor):
    """Newton steps use the exact second derivatives; lnL never falls, however far away they start."""
    with opened(data, "JC" + suffix, "numpy") as opened_likelihood:
        likelihood = opened_likelihood._likelihood
        (model,) = likelihood.models
        likelihood.tree.lengths[:] = np.clip(factor * data[1], 1e-6, 20)
        before = likelihood.lnl()
        result = smooth(likelihood, 1e-4)
        slopes = likelihood.all_derivatives()[1]
        assert predicted_gains(likelihood.tree.lengths, slopes[..., 0], slopes[..., 1]).sum() < 1e-4
        assert result >= before
        reached = likelihood.tree.lengths.copy()
    bounds = [(np.log(1e-6), np.log(20))] * len(reached)
    further = minimize(lambda x: -oracle_lnl(data, model, np.exp(x)), np.log(reached), bounds=bounds)
    assert result == pytest.approx(oracle_lnl(data, model, reached), rel=1e-10)
    assert -further.fun < result + 5e-3  # smoothing leaves a little, since the correction couples all lengths


def test_streamed_patterns_change_no_bit(data, device):
    """Where memory does not hold all conditional likelihoods, invariable sites are streamed like the others."""
    with opened(data, "JC+G4+ASC", device) as whole:
        assert whole.engine.resident
        lnl, (_, slopes, _) = whole.lnl(), whole.derivatives()
        least = whole.engine.cla_bytes // 3
    with opened(data, "JC+G4+ASC", device, memory=least) as streamed:
        assert not streamed.engine.resident
        assert streamed.lnl() == lnl
        assert np.array_equal(streamed.derivatives()[1], slopes)
