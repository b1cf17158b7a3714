"""Processes of birth and death against differential equations, closed forms and exact posteriors."""

import numpy as np
import pytest
from oracles.birth_deaths import log_density, probability_of_number, stadler
from sampling.time_toys import DATED, THREE_DATES, THREE_TIPS, assert_three_are_sampled, draw_tree, three_lnls
from scipy import integrate, stats

import plltool
from plltool.analyses.sampling.tree_priors import BirthDeath

GROWTH, TURNOVER, SAMPLING = 0.8, 0.4, 0.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("tips", "is_yule", "share"),
    [((0.0,) * 5, True, 1.0), ((0.0,) * 5, False, 0.6), (DATED, True, 0.0), (DATED, False, 0.0), (DATED, False, 0.3)],
)
def test_densities_are_those_of_the_equations(tips, is_yule, share, seed):
    """abs 1e-9: the oracle integrates to a relative 1e-12; probabilities that no sample is seen are near 1."""
    rooted, heights = draw_tree(tips, 1.0, np.random.default_rng(seed))
    has_dates = max(tips) > 0
    numbers = [GROWTH, *[TURNOVER] * (not is_yule), *[SAMPLING] * has_dates]
    birth = GROWTH if is_yule else GROWTH / (1 - TURNOVER)
    rates = birth, birth - GROWTH, SAMPLING * has_dates, share
    found = BirthDeath(is_yule, has_dates, share).density(np.array(tips), np.array(heights[6:]), numbers)
    assert found.value == pytest.approx(log_density(rooted.parent, heights, 5, *rates), abs=1e-9)


@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_trees_of_one_age_sum_to_the_probability_of_their_number(n, share):
    """Over topologies, which are alike, and heights; rel 1e-6: the quadrature."""
    root, prior = 1.7, BirthDeath(False, False, share)
    topologies = {2: 1, 3: 3, 4: 18}[n]  # with the order of their nodes

    def density(*inner):
        return np.exp(prior.density(np.zeros(n), np.array([*inner, root]), [GROWTH, TURNOVER]).value)

    bounds = [(lambda upper=root, *_: (0.0, upper)), (0.0, root)][: n - 2] if n == 4 else [(0.0, root)] * (n - 2)
    total = topologies * (integrate.nquad(density, bounds)[0] if n > 2 else density())
    birth = GROWTH / (1 - TURNOVER)
    assert total == pytest.approx(probability_of_number(n, root, birth, birth - GROWTH, share), rel=1e-6)


@pytest.mark.parametrize("prior_only", [True, False])
def test_three_dated_taxa_under_births_and_deaths(prior_only):
    """Draws of rates, root, cherry and topology, weighted by Stadler's density and the likelihood, are the oracle."""
    rng, n = np.random.default_rng(5), 400_000
    texts = {"rate": "lognormal(-2,0.7)", "diversification": "lognormal(-1,0.5)", "root": "lognormal(1,0.4)"}
    priors = plltool.ClockPriors(**texts, sampling="lognormal(-1,0.5)", turnover="uniform(0.1,0.9)")
    rate, growth, root = rng.lognormal(-2, 0.7, n), rng.lognormal(-1, 0.5, n), rng.lognormal(1, 0.4, n)
    sampling, turnover, outside = rng.lognormal(-1, 0.5, n), rng.uniform(0.1, 0.9, n), rng.integers(0, 3, n)
    least = np.array([1.5, 1.5, 0.8])[outside]  # the older one of the tips of the cherry
    cherry = least + (root - least) * rng.random(n)
    birth = growth / (1 - turnover)
    with np.errstate(all="ignore"):  # of roots below tips
        logs = stadler(THREE_TIPS, [root, cherry], birth, birth - growth, sampling) + np.log(root - least)
        lnls = 0.0 if prior_only else three_lnls(cherry, root, outside, rate)
    logs = np.where(root > 1.5, logs + lnls, -np.inf)
    weights = np.exp(logs - logs.max())
    expected = {"treeHeight": root, "clockRate": rate, "diversificationRate": growth}
    expected |= {"relativeDeathRate": turnover, "samplingRate": sampling}
    asked = {"dates": THREE_DATES, "clock_priors": priors, "tree_prior": "birth-death"}
    assert_three_are_sampled(weights / weights.sum(), outside, expected, prior_only=prior_only, **asked)


@pytest.mark.parametrize("tree_prior", ["yule", "birth-death(0.5)"])
def test_prior_runs_of_tips_of_one_age(tree_prior):
    """Four taxa: rates and root have their priors times the probability of four samples; 5 standard errors."""
    priors = plltool.ClockPriors(diversification="gamma(4,4)", turnover="uniform(0.2,0.8)", root="gamma(4,3)")
    options = plltool.SampleOptions(generations=6_000, chains=1, sample_every=4, burnin=0.1, prior_only=True)
    asked = {"clock": "strict", "clock_priors": priors, "tree_prior": tree_prior, "seed": 2}
    dates = dict.fromkeys("abcd", 2000.0)
    found = plltool.sample(dict.fromkeys("abcd", "ACGT"), "JC", dates=dates, options=options, **asked)
    growth, turnover, root = np.meshgrid(*(np.linspace(0.001, end, 120) for end in (5.0, 0.999, 7.0)), indexing="ij")
    birth, share = growth / (1 - turnover), 0.5
    weights = stats.gamma(4, scale=1 / 4).pdf(growth) * stats.gamma(4, scale=1 / 3).pdf(root)
    weights = weights * stats.uniform(0.2, 0.6).pdf(turnover)
    expected = {"diversificationRate": growth, "relativeDeathRate": turnover, "treeHeight": root}
    if tree_prior == "yule":
        birth, share = growth, 1.0
        expected = {"birthRate": growth, "treeHeight": root}
    weights *= probability_of_number(4, root, birth, birth - growth, share)
    for name, values in expected.items():
        own = found.posterior.numbers[name]
        mean = (weights * values).sum() / weights.sum()
        assert abs(own.mean - mean) < 5 * own.deviation / own.size**0.5, f"{name}: {own.mean}, expected {mean}"
