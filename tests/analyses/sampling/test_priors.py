"""Densities of priors against closed forms, and their names."""

import math

import numpy as np
import pytest
from sampling.toys import LENGTHS, draw_lengths, draw_topology, make_space
from scipy import integrate, stats

from plltool.analyses.sampling.priors import Dirichlet, Exponential, GammaDirichlet, Uniform, parse_prior
from plltool.analyses.sampling.settings import Priors, SampleOptions
from plltool.errors import InputError

ALL = ("exponential", "uniform", "dirichlet", "gammadir")


@pytest.fixture
def topology():
    return draw_topology(make_space(), np.random.default_rng(1))


def test_densities(topology):
    """rel 1e-12: a few terms in double."""
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    for powers in ([1.0] * 4, [2.0, 0.5, 1.0, 3.0]):
        expected = stats.dirichlet(powers).logpdf(shares)
        assert Dirichlet(tuple(powers)).log_density(shares) == pytest.approx(expected, rel=1e-12)
    assert Exponential(10.0).log_density(0.3) == pytest.approx(stats.expon(scale=0.1).logpdf(0.3), rel=1e-12)
    assert Uniform(0.5, 3.0).log_density(1.0) == pytest.approx(-math.log(2.5), rel=1e-12)
    assert Uniform(0.5, 3.0).log_density(4.0) == -math.inf
    lengths = [0.0, 0.1, 0.2, 0.05, 0.3, 0.4, 0.15, 0.25]
    each = stats.expon(scale=0.1).logpdf(lengths[1:]).sum()
    assert Exponential(10.0).log_density_of_lengths(topology, lengths) == pytest.approx(each, rel=1e-12)


def test_gamma_dirichlet_is_a_gamma_times_a_dirichlet(topology):
    """b = T x: the density of b is that of T times that of x over T^(K - 1)."""
    prior = GammaDirichlet(3.0, 0.5, 0.7, 2.0)
    lengths = [0.0, 0.1, 0.2, 0.05, 0.3, 0.4, 0.15, 0.25]
    powers = [0.7 if node < 5 or node == topology.top else 1.4 for node in range(1, 8)]
    total = sum(lengths)
    expected = stats.gamma(3.0, scale=2.0).logpdf(total) - 6 * math.log(total)
    expected += stats.dirichlet(powers).logpdf(np.array(lengths[1:]) / total)
    assert prior.log_density_of_lengths(topology, lengths) == pytest.approx(expected, rel=1e-12)
    assert powers.count(0.7) == 5


@pytest.mark.parametrize("prior", [Exponential(10.0), GammaDirichlet(3.0, 0.5, 0.7, 2.0)], ids=str)
def test_slopes_of_lengths(topology, prior):
    """rel 1e-6: central differences of steps of 1e-4."""
    lengths = [0.0, 0.1, 0.2, 0.05, 0.3, 0.4, 0.15, 0.25]

    def density(node, change):
        at = lengths.copy()
        at[node] *= 1.0 + change
        return prior.log_density_of_lengths(topology, at)

    expected = [(density(k, 1e-4) - density(k, -1e-4)) / (2e-4 * lengths[k]) for k in range(1, 8)]
    assert prior.slopes_of_lengths(topology, lengths) == pytest.approx(expected, rel=1e-6)


def test_the_length_of_trees_under_the_gamma_dirichlet(topology):
    rng = np.random.default_rng(2)
    totals = [sum(draw_lengths(LENGTHS, topology, rng)) for _ in range(500)]
    assert stats.kstest(totals, stats.gamma(2.0, scale=0.5).cdf).pvalue > 1e-3
    density = lambda x: math.exp(Exponential(2.0).log_density(x))  # noqa: E731
    assert integrate.quad(density, 0, 50)[0] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("prior", [Exponential(10.0), Uniform(0.0, 1.0), Dirichlet((1.0, 2.5)), LENGTHS], ids=str)
def test_names_are_read_back(prior):
    assert parse_prior(str(prior), "it", ALL) == prior
    assert parse_prior(f"  {str(prior).upper()} ", "it", ALL) == prior


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lengths": "exp(10)"}, "prior of lengths: found 'exp(10)', expected exponential(10) or gammadir(1,0.1,1,1)"),
        ({"lengths": "exponential(0)"}, "prior of lengths: found 0, expected positive numbers from 1e-10 to 1e+10"),
        ({"lengths": "exponential(\n0)"}, "prior of lengths: found 0, expected positive numbers from 1e-10 to 1e+10"),
        ({"lengths": "gammadir(1,1,1e11,1)"}, "prior of lengths: found 1,1,1e11,1, expected positive numbers from "),
        ({"alpha": "uniform(0,1e11)"}, "prior of alpha: found bounds 0,1e11, expected two ascending numbers from 0 "),
        ({"lengths": "gammadir(1,1)"}, "prior of lengths: found 2 values of gammadir, expected 4, as in "),
        ({"rates": "dirichlet(a)"}, "prior of rates: found 'dirichlet(a)', expected numbers, as in dirichlet(1)"),
        ({"frequencies": "dirichlet(-1)"}, "prior of frequencies: found -1, expected positive numbers"),
        ({"alpha": "uniform(2,1)"}, "prior of alpha: found bounds 2,1, expected two ascending numbers from 0 to 1e+10"),
        ({"alpha": "exponential(nan)"}, "prior of alpha: found nan, expected positive numbers"),
        ({"pinv": "uniform(0,2)"}, "prior of pinv: found uniform(0,2), expected bounds from 0 to 1"),
        ({"pinv": "exponential(1)"}, "prior of pinv: found 'exponential(1)', expected uniform(0,1)"),
    ],
)
def test_priors_out_of_range(given, message):
    with pytest.raises(InputError) as caught:
        Priors(**given).canonical()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"generations": 0}, "generations: found 0, expected at least 1"),
        ({"generations": "many"}, "generations: found 'many', expected a whole number or auto"),
        ({"runs": 1}, "runs: found 1, expected at least 2 with generations auto, which compares runs"),
        ({"runs": 9}, "runs: found 9, expected at most 8"),
        ({"chains": 0}, "chains: found 0, expected at least 1"),
        ({"temperature": -0.1}, "temperature: found -0.1, expected a number from 0 to 10 or auto"),
        ({"burnin": 1.0}, "burnin: found 1.0, expected a share from 0 to below 1"),
        ({"sample_every": 0}, "sample_every: found 0, expected at least 1"),
        ({"runs": 2.5}, "runs: found 2.5, expected a whole number of at least 1"),
        ({"generations": True}, "generations: found True, expected a whole number of at least 1"),
        ({"generations": None}, "generations: found None, expected a whole number of at least 1"),
        ({"burnin": "a"}, "burnin: found 'a', expected a share from 0 to below 1"),
        ({"temperature": "a"}, "temperature: found 'a', expected a number from 0 to 10 or auto"),
        (
            {"generations": 50, "sample_every": 100},
            "generations: found 50, expected at least 100, those between two samples",
        ),
    ],
)
def test_options_out_of_range(given, message):
    with pytest.raises(InputError) as caught:
        SampleOptions(**given).check()
    assert str(caught.value) == message
