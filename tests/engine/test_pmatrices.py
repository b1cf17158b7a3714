"""P(t) through a small program: between two tips of known states, EVALUATE gives log(pi_i P_ij)."""

import math

import numpy as np
import pytest
from engine_kinds import NUMPY_KINDS
from helpers import evaluate_edges, jukes_cantor_mixture, lnl_of_sites, random_codes, random_mixture
from scipy.linalg import expm

from plltool.engine import program as prog

LENGTHS = [1e-8, 1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0]
RTOL = 1e-12  # both double; expm loses most, by squaring; measured: 1.4e-14


def pairs(n_states):
    """Codes (2, S * S) of all pairs of states."""
    first, second = np.divmod(np.arange(n_states**2), n_states)
    return np.stack([1 << first, 1 << second])


def joint(make_engine, kind, mixture, length):
    """pi_i P_ij(t) as the engine has it, and P'/P and P''/P - (P'/P)^2."""
    n_states = mixture.n_states
    codes = pairs(n_states)
    parts = (1,) * n_states**2
    engine = make_engine(kind, 1, codes, np.ones(n_states**2), [mixture] * n_states**2, parts)
    values = engine.derivatives([(~0, ~1, 0)], np.array([length]))[0]
    lnl = evaluate_edges(engine, [(~0, ~1, 0)], np.array([length]))[0]
    return lnl, values


@pytest.mark.parametrize("length", LENGTHS)
def test_jukes_cantor(few_kind, make_engine, length):
    lnl, values = joint(make_engine, few_kind, jukes_cantor_mixture(), length)
    differs = -math.expm1(-4 / 3 * length) / 16
    expected = np.where(np.eye(4, dtype=bool), 0.25 - 3 * differs, differs).ravel()
    np.testing.assert_allclose(np.exp(lnl), expected, rtol=RTOL)
    np.testing.assert_allclose(np.exp(values[:, 0]), expected, rtol=RTOL)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("n_states", [2, 4])
def test_any_reversible_process(few_kind, make_engine, n_states, length):
    mixture = random_mixture(np.random.default_rng(n_states), n_states, 1)
    ((_, frequencies, q),) = mixture.oracle
    lnl, values = joint(make_engine, few_kind, mixture, length)
    p = expm(q * length)
    expected = (np.array(frequencies)[:, None] * p).ravel()
    np.testing.assert_allclose(np.exp(lnl), expected, rtol=RTOL)
    slope, curve = (q @ p).ravel() / p.ravel(), (q @ q @ p).ravel() / p.ravel()
    scale = max(1.0, float(np.abs(slope).max()))  # 1 / t where states differ and t is small
    np.testing.assert_allclose(values[:, 1], slope, rtol=1e-11, atol=1e-12 * scale)
    np.testing.assert_allclose(values[:, 2], curve - slope**2, rtol=1e-10, atol=1e-12 * scale**2)


def test_length_zero_is_the_identity(few_kind, make_engine):
    codes = pairs(4)[:, ::5]  # equal states only: others have no likelihood
    mixture = random_mixture(np.random.default_rng(1))
    engine = make_engine(few_kind, 1, codes, np.ones(4), [mixture])
    found = lnl_of_sites(engine, ~0, ~1, 0, np.array([0.0]))
    np.testing.assert_array_equal(np.exp(found), np.exp(np.log(mixture.components.frequencies[0])))


def test_components_mix_by_weight_and_run_at_their_rates(few_kind, make_engine):
    mixture = random_mixture(np.random.default_rng(2), 4, 4)
    engine = make_engine(few_kind, 1, pairs(4), np.ones(16), [mixture])
    found = np.exp(lnl_of_sites(engine, ~0, ~1, 0, np.array([0.3])))
    expected = sum(weight * np.array(pi)[:, None] * expm(q * 0.3) for weight, pi, q in mixture.oracle)
    np.testing.assert_allclose(found, expected.ravel(), rtol=RTOL)


def test_tables_for_tips_are_made_where_a_later_program_needs_them(few_kind, make_engine):
    """Two programs at the same lengths; what one reads a tip through, the other reads a CLA through."""
    rng = np.random.default_rng(8)
    lengths, mixture, codes = rng.random(4), random_mixture(rng, 4, 2), random_codes(rng, 4, 20)
    engine, expected = (make_engine(kind, 2, codes, np.ones(20), [mixture]) for kind in (few_kind, NUMPY_KINDS[0]))
    for a, b in ((0, 1), (1, 0)):
        newviews = [prog.newview(0, ~0, 2, ~1, 2), prog.newview(1, 0, a, ~2, b)]
        request = prog.Request(np.concatenate([*newviews, prog.evaluate(0, ~3, 1, 3)]), 1)
        np.testing.assert_allclose(engine.execute(request, lengths), expected.execute(request, lengths), rtol=1e-11)
