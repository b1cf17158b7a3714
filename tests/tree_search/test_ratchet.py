"""Perturbations: lnL never falls, and they leave local optima below the lnL of another program."""

from itertools import pairwise

import numpy as np
import pytest
from helpers import likelihood_of, make_tree, random_ends, random_mixture, simulate_codes

from plltool.analyses.search.analysis import search
from plltool.optimise.lengths import smooth
from plltool.tree_search.effort import SearchOptions
from plltool.tree_search.fusing import RATCHET_FACTOR, RATCHET_SHARE, perturb, resample, reweight

# HKY+FQ, seed 1, its default search: IQ-TREE 2.0.7
IQTREE_LNL = -3586.302


def test_reweighting_multiplies_a_share_of_the_weights():
    weights = np.arange(1.0, 20_001.0)
    found = reweight(weights, np.random.default_rng(1)) / weights
    assert set(found.tolist()) == {1.0, RATCHET_FACTOR}
    # five standard deviations of a binomial
    assert abs(np.mean(found > 1) - RATCHET_SHARE) < 5 * (RATCHET_SHARE * (1 - RATCHET_SHARE) / 20_000) ** 0.5


def test_resampling_multiplies_the_weights_by_exponential_numbers():
    weights = np.arange(1.0, 20_001.0)
    found = resample(weights, np.random.default_rng(1)) / weights
    for quantile in (0.1, 0.5, 0.9):  # five standard deviations of a binomial
        share = np.mean(found < -np.log1p(-quantile))
        assert abs(share - quantile) < 5 * (quantile * (1 - quantile) / 20_000) ** 0.5


def make_case(seed, n_taxa=14, n_patterns=40):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng, 4, 1)
    codes = simulate_codes(rng, *random_ends(rng, n_taxa), n_taxa, n_patterns, mixture)
    likelihood = likelihood_of(make_tree(*random_ends(rng, n_taxa), n_taxa), codes, np.ones(n_patterns), mixture)
    return likelihood, rng, np.ones(n_patterns)


@pytest.mark.parametrize("seed", range(3))
def test_steps_never_lead_down_and_weights_come_back(seed):
    likelihood, rng, weights = make_case(seed)
    lnls = [smooth(likelihood)]
    for _ in range(6):
        lnl, n_changes = perturb(likelihood, lnls[-1], rng)
        assert likelihood.lnl() == pytest.approx(lnl, rel=1e-12)
        lnls.append(lnl)
        assert bool(n_changes) == (lnls[-1] > lnls[-2])
        np.testing.assert_array_equal(likelihood.engine.weights, weights)
    assert all(after >= before for before, after in pairwise(lnls))
    assert lnls[-1] > lnls[0]  # from a random tree there is a way up


@pytest.mark.parametrize("n_parts", [1, 2])
def test_several_parts_are_resampled(monkeypatch, n_parts):
    likelihood, rng, _ = make_case(0)
    drawn = []
    monkeypatch.setattr(likelihood.engine, "set_weights", drawn.append)
    likelihood.models *= n_parts
    perturb(likelihood, likelihood.lnl(), rng)
    factors = set(drawn[0].tolist())  # all patterns have weight 1
    assert factors <= {1.0, RATCHET_FACTOR} if n_parts == 1 else len(factors) == len(drawn[0])


@pytest.fixture(scope="module")
def hard(data_dir):
    """Results on a small alignment that traps a single climb: (single climb, with perturbations)."""
    path, settings = data_dir / "hard.fasta", {"model": "HKY+FE", "device": "opencl", "seed": 2}
    climb = search(path, options=SearchOptions("default", starts=1, perturbations=0), **settings)
    return climb, search(path, options=SearchOptions("thorough", starts=1, perturbations=20), **settings)


@pytest.mark.opencl
def test_perturbations_reach_what_another_program_found(hard):
    climb, perturbed = hard
    assert climb.lnl < IQTREE_LNL - 0.5  # else the data are too easy to show anything
    assert perturbed.lnl > IQTREE_LNL - 0.1


def test_branches_without_end_are_no_trap(data_dir):
    """Climbs end where three groups are 20 substitutions per site apart, so that no place in another group is better.

    MK+G4, IQ-TREE 2.0.7: -238.8089; that optimum: -241.17.
    """
    found = search(data_dir / "treebase" / "standard-S127-M2108.fasta.gz", "MK+G4", seed=1, device="numpy")
    assert found.lnl > -238.8089 - 0.2


@pytest.mark.opencl
@pytest.mark.parametrize("threads", [(1, 1), (1, None)], ids=["again", "on more threads"])
def test_the_same_seed_gives_the_same_tree(data_dir, threads):
    options = SearchOptions("fast", starts=2, perturbations=3)
    settings = {"model": "JC", "device": "cpu", "seed": 3, "options": options}
    first, second = (search(data_dir / "hard.fasta", threads=number, **settings) for number in threads)
    assert (first.lnl, first.newick) == (second.lnl, second.newick)
