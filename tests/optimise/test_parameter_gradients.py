"""Gradients in the optimiser's own parameters against differences of the oracle."""

import numpy as np
import pytest
from helpers import likelihood_of, make_tree, mix, random_ends, simulate_codes
from oracles.likelihood import derivative, pruning, with_root
from oracles.substitution import gamma_category_means, gamma_category_medians, q_matrix
from scipy.linalg import null_space
from slopes import assert_slopes, disturb

from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.parameter_slopes import parameter_slopes, scale_slope
from plltool.model.vector import get_bounds, get_vector, set_vector
from plltool.tree.rooted import add_root

STEP = 1e-4


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    ends, lengths = random_ends(rng, 5, 0.3)
    mixture = mix([(1.0, [0.4, 0.3, 0.2, 0.1], np.full((4, 4), 1.0), 1.0)])
    return ends, lengths, simulate_codes(rng, ends, lengths, 5, 60, mixture)


def oracle_categories(sites):
    """(weight, rate) of each kind of site."""
    if sites.kind == "free":
        categories = list(zip(sites.weights, sites.rates, strict=True))
    elif sites.kind == "gamma":
        quantiles = gamma_category_medians if sites.median else gamma_category_means
        categories = [(1 / sites.n_categories, rate) for rate in quantiles(sites.alpha, sites.n_categories)]
    else:
        categories = [(1.0, 1.0)]
    if not sites.invariable:
        return categories
    return [(sites.pinv, 0.0), *((w * (1 - sites.pinv), rate / (1 - sites.pinv)) for w, rate in categories)]


def oracle_lnl(data, model):
    """lnL of a Model's values, everything else from the oracles."""
    ends, lengths, codes = data
    q = q_matrix(model.exchangeabilities, model.frequencies)
    components = [(weight, model.frequencies, q * rate) for weight, rate in oracle_categories(model.sites)]
    return sum(pruning(ends.tolist(), lengths, codes.T.tolist(), components))


SITE_MODELS = ["JC+I", "HKY+FO+I+G4", "JC+GA4", "K80+R3", "GTR+FO+I+R2"]


@pytest.mark.parametrize("text", ["K80", "HKY+FO", "GTR+FO", "GTR+FO+G4", "TN93+FO+G2", "010021+G4", *SITE_MODELS])
def test_every_parameter(data, text):
    ends, lengths, codes = data
    model = Model(parse_model(text), np.full(4, 0.25))
    likelihood = likelihood_of(make_tree(ends, lengths, 5), codes, np.ones(codes.shape[1]), model)
    disturb(likelihood, 0.3, 2)
    assert_slopes(likelihood, lambda one: oracle_lnl(data, one), STEP, rel=1e-5, abs=1e-6 * codes.shape[1])


def test_almost_no_invariable_sites(data):
    """A step of the difference is many times the share itself, in which the likelihood of a site is linear."""
    ends, lengths, codes = data
    model = Model(parse_model("JC+I"))
    low, step = get_bounds(model)[0][0], 1e-3
    set_vector(model, [low])
    likelihood = likelihood_of(make_tree(ends, lengths, 5), codes, np.ones(codes.shape[1]), model)
    _, matrices, masses = likelihood.rate_matrix_gradient()
    moved = model.copy()
    set_vector(moved, [low + step])
    expected = (oracle_lnl(data, moved) - oracle_lnl(data, model)) / step
    # rel: the step is a share of 1e-6 of the sites; lnL is curved, and the ratio an exponential function of the vector
    assert parameter_slopes(model, ["pinv"], matrices[0], masses[0])[0] == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("text", ["HKY+FO", "JC+I+G4", "K80+R3"])
def test_factor_of_all_lengths(data, text):
    ends, lengths, codes = data
    model = Model(parse_model(text))
    likelihood = likelihood_of(make_tree(ends, lengths, 5), codes, np.ones(codes.shape[1]), model)
    _, matrices, _ = likelihood.rate_matrix_gradient()
    up, down = (oracle_lnl((ends, lengths * np.exp(step), codes), model) for step in (STEP, -STEP))
    expected = (up - down) / (2 * STEP)
    assert scale_slope(model, matrices[0]) == pytest.approx(expected, rel=1e-5, abs=1e-6 * codes.shape[1])


# --- models that are not time-reversible --------------------------------------------------------------------


def oracle_with_root(data, model):
    """lnL with the root on branch 2, at a third of it; the oracle's pruning goes away from the root."""
    ends, lengths, codes = data
    q = np.zeros((4, 4))
    q[~np.eye(4, dtype=bool)] = model.exchangeabilities
    np.fill_diagonal(q, -q.sum(axis=1))
    pi = null_space(q.T)[:, 0]
    pi /= pi.sum()
    q /= -(pi @ np.diag(q))
    components = [(weight, pi, q * rate) for weight, rate in oracle_categories(model.sites)]
    return sum(pruning(*with_root(ends.tolist(), lengths, 5, 2, 1 / 3), codes.T.tolist(), components))


@pytest.mark.parametrize("text", ["UNREST", "STRSYM+G4", "UNREST+I+G2", "RY8.8", "WS5.16+I+R2", "MK3.4+G2"])
def test_parameters_with_a_root(data, text):
    ends, lengths, codes = data
    model = Model(parse_model(text))
    tree = add_root(make_tree(ends, lengths, 5), 2, 1 / 3)
    rows = np.vstack([np.full_like(codes[:1], 15), codes])
    likelihood = likelihood_of(tree, rows, np.ones(codes.shape[1]), model)
    disturb(likelihood, 0.5, 2)
    assert_slopes(likelihood, lambda one: oracle_with_root(data, one), STEP, rel=1e-6, abs=1e-7 * codes.shape[1])


def test_factor_of_all_lengths_with_a_root(data):
    """Rates that circle A C G T A, so that two eigenvalues are complex."""
    ends, lengths, codes = data
    model = Model(parse_model("UNREST{9/1/1/1/9/1/1/1/9/9/1/1}+G2{0.7}"))
    assert np.any(model.components().rotations != 0)
    rows = np.vstack([np.full_like(codes[:1], 15), codes])
    tree = add_root(make_tree(ends, lengths, 5), 2, 1 / 3)
    _, matrices, _ = likelihood_of(tree, rows, np.ones(codes.shape[1]), model).rate_matrix_gradient()

    def longer(step):
        return oracle_with_root((ends, lengths * np.exp(step), codes), model)

    assert scale_slope(model, matrices[0]) == pytest.approx(derivative(longer, 0.0, STEP)[0], rel=1e-6)


# --- proteins -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def protein_data():
    rng = np.random.default_rng(12)
    ends, lengths = random_ends(rng, 4, 0.5)
    frequencies = rng.dirichlet(np.full(20, 5.0))
    mixture = mix([(1.0, frequencies, rng.random((20, 20)) + 0.1, 1.0)])
    return ends, lengths, simulate_codes(rng, ends, lengths, 4, 12, mixture)


def oracle_of_classes(data, model):
    """lnL of a protein model with its current classes and values."""
    ends, lengths, codes = data
    classes = model.classes
    categories = oracle_categories(model.sites)
    shared = len(classes.exchangeabilities) == 1
    matrices = [
        q_matrix(classes.exchangeabilities[0 if shared else k], frequencies)
        for k, frequencies in enumerate(classes.frequencies)
    ]
    if model.spec.is_tied:
        terms = zip(categories, classes.frequencies, matrices, strict=True)
        components = [(weight, frequencies, q * rate) for (weight, rate), frequencies, q in terms]
    else:
        rates = classes.rates / (classes.weights @ classes.rates)
        components = [
            (weight * classes.weights[k], classes.frequencies[k], matrices[k] * rates[k] * rate)
            for k in range(len(matrices))
            for weight, rate in categories
        ]
    return sum(pruning(ends.tolist(), lengths, codes.T.tolist(), components))


@pytest.mark.parametrize(
    "text",
    [
        *("LG+G2", "WAG+FO", "LG+I+R2", "GTR20", "LG4M", "LG4X", "EX2+G2", "UL3+I", "LG+C10+G2", "LG+C10+I"),
        *("LG+C10+FO+I", "GTR20+C10+FE+G2"),
    ],
)
def test_parameters_of_proteins(protein_data, text):
    """As above, for six of many parameters."""
    ends, lengths, codes = protein_data
    model = Model(parse_model(text))
    states = np.log2(codes).astype(int)
    tree = make_tree(ends, lengths, 4)
    likelihood = likelihood_of(tree, states, np.ones(codes.shape[1]), model, state_sets=np.eye(20, dtype=np.uint8))
    disturb(likelihood, 0.3, 4)
    chosen = np.random.default_rng(5).permutation(len(get_vector(model)))[:6]
    tolerance = {"rel": 1e-5, "abs": 1e-6 * codes.shape[1]}
    assert_slopes(likelihood, lambda one: oracle_of_classes(protein_data, one), STEP, chosen, **tolerance)
