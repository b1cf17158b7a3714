"""Marginal likelihoods: the estimate from exact samples, and whole runs against integrals over all lengths."""

import re
from itertools import product

import numpy as np
import pytest
from oracles.posteriors import all_topologies

import plltool
from plltool.analyses.sampling.stepping_stones import BATCHES, estimate, powers_of
from plltool.errors import InputError

RATE = 10.0  # of the prior of lengths
PRIORS = plltool.Priors(lengths=f"exponential({RATE})")
ROWS = {"a": "ACGTACGTACCA", "b": "ACGTACGTACCA", "c": "ACGAACCTAGCT", "d": "TCGAACCTAGGA"}


def test_powers():
    assert powers_of(4).tolist() == pytest.approx([1.0, 0.75 ** (1 / 0.3), 0.5 ** (1 / 0.3), 0.25 ** (1 / 0.3), 0.0])


def test_a_likelihood_that_is_the_same_everywhere():
    found = estimate(np.full((2, BATCHES, 9), -123.5), powers_of(8))
    assert found.value == pytest.approx(-123.5, abs=1e-9)
    assert found.error == 0.0


def test_the_mean_of_a_normal_distribution():
    """Prior N(0, 1), a datum y of N(mean, s^2): the density at power b is normal, and y is of N(0, 1 + s^2)."""
    rng, powers, y, s = np.random.default_rng(3), powers_of(8), 2.5, 0.2
    errors = []
    for _ in range(200):
        precision = 1.0 + powers / s**2
        means = rng.normal(powers * y / s**2 / precision, precision**-0.5, (2, 400, len(powers)))
        found = estimate(-0.5 * ((y - means) / s) ** 2 - np.log(s * np.sqrt(2 * np.pi)), powers)
        exact = -0.5 * y**2 / (1 + s**2) - 0.5 * np.log(2 * np.pi * (1 + s**2))
        errors.append((found.value - exact) / found.error)
    assert abs(np.mean(errors)) < 0.3  # 4 standard errors of the mean
    assert 0.8 < np.std(errors) < 1.2  # likewise, of the standard deviation


def integrate_lengths(rows, n_points):
    """Integrals over all lengths, under JC, by Gauss and Laguerre: (2, n_topologies), the second of lengths of trees.

    Each is divided by the number of topologies.
    """
    points, weights = np.polynomial.laguerre.laggauss(n_points)
    decay = np.exp(-4 / 3 * points / RATE)
    chance = np.where(np.eye(4, dtype=bool), 0.25 + 0.75 * decay[:, None, None], 0.25 - 0.25 * decay[:, None, None])
    columns = np.array([["ACGT".index(letter) for letter in row] for row in rows]).T
    columns, counts = np.unique(columns, axis=0, return_counts=True)
    found, topologies = [], list(all_topologies(len(rows)))
    for branches in topologies:
        inner = sorted({node for branch in branches for node in branch if node >= len(rows)})
        lnl = np.zeros((n_points,) * len(branches))
        for column, count in zip(columns, counts, strict=True):
            site = np.zeros(lnl.shape)
            for states in product(range(4), repeat=len(inner)):
                at = dict(enumerate(column)) | dict(zip(inner, states, strict=True))
                term = np.full(lnl.shape, 0.25)
                for axis, (a, b) in enumerate(branches):
                    shape = [1] * len(branches)
                    shape[axis] = n_points
                    term = term * chance[:, at[a], at[b]].reshape(shape)
                site += term
            lnl += count * np.log(site)
        whole = np.sum(np.meshgrid(*[points / RATE] * len(branches), indexing="ij"), axis=0)
        masses = np.exp(lnl), np.exp(lnl) * whole
        for _ in branches:
            masses = [np.tensordot(weights, mass, axes=(0, 0)) for mass in masses]
        found.append(masses)
    return np.array(found).T / len(topologies)


def exact(rows, n_points):
    """The logarithm of the mean over topologies of the integral over all lengths."""
    return np.log(integrate_lengths(rows, n_points)[0].sum())


@pytest.mark.parametrize(
    ("n_taxa", "generations", "seed"),
    [(3, 1_200, 2), pytest.param(4, 6_000, 4, marks=pytest.mark.slow)],
    ids=["three", "four"],
)
def test_all_lengths_and_topologies(n_taxa, generations, seed):
    rows = dict(list(ROWS.items())[-n_taxa:])
    options = plltool.StoneOptions(generations, steps=6, sample_every=4)
    found = plltool.marginal_likelihood(rows, "JC", options=options, priors=PRIORS, device="numpy", seed=seed)
    assert found.error < 0.2
    assert found.log_marginal_likelihood == pytest.approx(exact(rows.values(), 10), abs=4 * found.error)
    assert np.diff(found.mean_lnls).max() < 0, "lnL falls from the posterior to the prior"


def test_a_run_that_was_stopped_goes_on(tmp_path):
    """With the same bits; a parameter is sampled, too."""

    def run(**more):
        options = plltool.StoneOptions(60, steps=3, sample_every=2)
        return plltool.marginal_likelihood(ROWS, "K80", options=options, device="numpy", **more)

    def stop(event):
        raise plltool.StopSearch

    whole = run()
    stones = "plltool.analyses.sampling.stepping_stones"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{stones}.REPORT_SECONDS", 0.0)
        reached = f"interrupted at generation 2 and kept in {tmp_path}: found 0 samples of each run behind the burn-in"
        with pytest.raises(InputError, match=f"^{re.escape(reached)}"):
            run(checkpoint=tmp_path, listener=stop)
        with pytest.raises(InputError, match=r"^interrupted at generation 2: found 0 samples"):
            run(listener=stop)
    again = run(checkpoint=tmp_path)
    assert (again.log_marginal_likelihood, again.runs) == (whole.log_marginal_likelihood, whole.runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 1}, "steps: found 1, expected at least 2"),
        ({"steps": 2000}, "steps: found 2000, expected at most 1000"),
        ({"generations": 100}, "generations: found 7 samples of each run behind the burn-in, expected at least 20"),
        ({"runs": 0}, "runs: found 0"),
    ],
)
def test_options_that_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        plltool.marginal_likelihood(ROWS, "JC", options=plltool.StoneOptions(**options), device="numpy")
