"""lnL of multistate models and its slopes in all their parameters, against the oracle: 2 to 12 states, every kind."""

from types import SimpleNamespace

import numpy as np
import pytest
from engine_kinds import Kind
from helpers import make_tree, random_ends
from oracles.likelihood import brute_force, pruning
from oracles.substitution import gamma_category_means, q_matrix

from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.parameter_slopes import parameter_slopes
from plltool.model.vector import get_vector, set_vector
from plltool.optimise.likelihood import TreeLikelihood

STEP = 1e-4
N_TAXA, N_SITES = 5, 20
MODELS = ["BIN+G2", "JC2+I", "MULTI3_GTR+G2", "MULTI5_ORDERED+FO+R2", "MULTI10_GTR", "MULTI12_ORDERED+FO+I", "GT10+G2"]
# numpy for every model; of the devices each model has one, since no two share a compiled kernel
CASES = [
    pytest.param(text, kind, id=f"{text}-{kind}", marks=[] if kind.kind == "numpy" else pytest.mark.opencl)
    for number, text in enumerate(MODELS)
    for kind in (Kind("numpy", 4), (Kind("lanes", 32), Kind("vector", 4))[number % 2])
]


def exchangeabilities(model):
    """Those of the model's parameters, by its definition: MK 1; ORDERED 1 between neighbours; GTR free."""
    n_states = model.spec.n_states
    if "ORDERED" in model.spec.name:
        return [1.0 if b == a + 1 else 0.0 for a in range(n_states) for b in range(a + 1, n_states)]
    return [1.0] * (n_states * (n_states - 1) // 2) if n_states == 2 else model.exchangeabilities


def oracle_components(model):
    sites = model.sites
    if sites.kind == "gamma":
        categories = [(1 / sites.n_categories, rate) for rate in gamma_category_means(sites.alpha, sites.n_categories)]
    else:
        categories = list(zip(sites.weights, sites.rates, strict=True)) if sites.kind == "free" else [(1.0, 1.0)]
    if sites.invariable:
        scaled = [(w * (1 - sites.pinv), rate / (1 - sites.pinv)) for w, rate in categories]
        categories = [(sites.pinv, 0.0), *scaled]
    q = q_matrix(exchangeabilities(model), model.frequencies)
    return [(weight, model.frequencies, q * rate) for weight, rate in categories]


def oracle_lnl(case, model):
    ends, lengths, states = case
    return sum(pruning(ends.tolist(), lengths, (1 << states).T.tolist(), oracle_components(model)))


def make_case(text):
    rng = np.random.default_rng(5)
    model = Model(parse_model(text))
    ends, lengths = random_ends(rng, N_TAXA, 0.4)
    names = model.free_parameters
    set_vector(model, get_vector(model, names) + rng.normal(0, 0.3, len(get_vector(model, names))), names)
    n_states = model.spec.n_states
    lowest = rng.integers(0, max(1, n_states - 2), N_SITES)  # ORDERED has hardly any larger steps
    return (ends, lengths, lowest + rng.integers(0, min(3, n_states), (N_TAXA, N_SITES))), model


@pytest.mark.parametrize(("text", "kind"), CASES)
def test_likelihood_and_slopes(text, kind, make_engine):
    case, model = make_case(text)
    ends, lengths, states = case
    components = model.components()
    mixture = SimpleNamespace(n_states=components.n_states, n_components=components.n_components, components=components)
    sets = None if components.n_states <= 8 else np.eye(components.n_states, dtype=np.uint8)
    codes = 1 << states if sets is None else states
    engine = make_engine(kind, 3 * (N_TAXA - 2), codes, np.ones(N_SITES), [mixture], state_sets=sets)
    likelihood = TreeLikelihood(make_tree(ends, lengths, N_TAXA), [model], engine)
    lnl, matrices, masses = likelihood.rate_matrix_gradient()
    assert lnl.sum() == pytest.approx(oracle_lnl(case, model), rel=1e-10)
    names = model.free_parameters
    slopes = parameter_slopes(model, names, matrices[0], masses[0])
    start = get_vector(model, names)
    for k in np.random.default_rng(6).permutation(len(start))[:8]:
        ends_of_step = []
        for step in (STEP, -STEP):
            moved = model.copy()
            set_vector(moved, start + step * (np.arange(len(start)) == k), names)
            ends_of_step.append(oracle_lnl(case, moved))
        expected = (ends_of_step[0] - ends_of_step[1]) / (2 * STEP)
        assert slopes[k] == pytest.approx(expected, rel=1e-5, abs=1e-6 * N_SITES)


@pytest.mark.parametrize("text", ["MULTI3_MK", "MULTI4_ORDERED"])
def test_sum_over_all_inner_states(text, make_engine):
    """Brute force, and the closed form of Mk's P (Lewis 2001): 1/k + (k - 1)/k exp(-k t / (k - 1)) of no change."""
    rng = np.random.default_rng(7)
    model = Model(parse_model(text))
    n = model.spec.n_states
    ends, lengths = random_ends(rng, 4, 0.4)
    codes = rng.integers(1, 1 << n, (4, 12))
    components = model.components()
    mixture = SimpleNamespace(n_states=n, n_components=1, components=components)
    engine = make_engine(Kind("numpy", 4), 6, codes, np.ones(12), [mixture])
    found = TreeLikelihood(make_tree(ends, lengths, 4), [model], engine).rate_matrix_gradient()[0].sum()
    expected = brute_force(ends.tolist(), lengths, codes.T.tolist(), oracle_components(model))
    assert found == pytest.approx(expected.sum(), rel=1e-12)
    if "MK" in text:
        p = components.right[0] @ np.diag(np.exp(components.eigenvalues[0] * 0.3)) @ components.left[0]
        same = 1 / n + (n - 1) / n * np.exp(-n * 0.3 / (n - 1))
        assert p == pytest.approx(np.full((n, n), (1 - same) / (n - 1)) + (same - (1 - same) / (n - 1)) * np.eye(n))
