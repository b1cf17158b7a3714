"""RATE_MATRIX_GRADIENT and MASS_GRADIENT: lnL's slopes in rate matrices, weights and frequencies, by differences."""

import numpy as np
import pytest
from agreement import Case
from helpers import random_mixture
from oracles.likelihood import pruning

N_TAXA = 6
STEP = 1e-5


def oracle_lnl(ends, lengths, codes, weights, components):
    return float(weights @ np.array(pruning(ends.tolist(), lengths, codes.T.tolist(), components)))


@pytest.fixture(scope="module", params=[(2, 1), (4, 1), (4, 3)], ids=["2x1", "4x1", "4x3"])
def case(request):
    return Case([*request.param], N_TAXA, (14, 9), *request.param)


def gradients(case, kind, make_engine):
    """(lnl, matrices, masses) of the case cut into two parts with a model each."""
    return case.likelihood(make_engine, kind).rate_matrix_gradient()


def parts_of(case):
    for part, mixture in enumerate(case.mixtures):
        own = case.of_part(part)
        yield part, (case.ends, case.lengths, case.codes[:, own], case.weights[own]), mixture


def test_rate_matrices(case, few_kind, make_engine):
    """A reversible process that changes by d Q: the sum over components of matrices * (left dQ right)."""
    _, matrices, _ = gradients(case, few_kind, make_engine)
    rng = np.random.default_rng(1)
    for part, data, mixture in parts_of(case):
        exchange = [rng.random((mixture.n_states,) * 2) for _ in mixture.oracle]
        changes = []
        for (_, frequencies, _), random in zip(mixture.oracle, exchange, strict=True):
            change = (random + random.T) * np.asarray(frequencies)
            np.fill_diagonal(change, 0)
            changes.append(change - np.diag(change.sum(axis=1)))

        def shifted(step, data=data, mixture=mixture, changes=changes):
            moved = [(w, f, np.asarray(q) + step * dq) for (w, f, q), dq in zip(mixture.oracle, changes, strict=True)]
            return oracle_lnl(*data, moved)

        expected = (shifted(STEP) - shifted(-STEP)) / (2 * STEP)
        components = mixture.components
        found = np.sum(matrices[part] * (components.left @ np.stack(changes) @ components.right))
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * data[3].sum())


def test_weights(case, few_kind, make_engine):
    """d lnL / d log weight of a component is the sum of its masses."""
    lnls, _, masses = gradients(case, few_kind, make_engine)
    for part, data, mixture in parts_of(case):
        assert lnls[part] == pytest.approx(oracle_lnl(*data, mixture.oracle), rel=1e-11)
        for c in range(mixture.n_components):

            def shifted(step, data=data, mixture=mixture, c=c):
                moved = [(w * np.exp(step * (k == c)), f, q) for k, (w, f, q) in enumerate(mixture.oracle)]
                return oracle_lnl(*data, moved)

            expected = (shifted(STEP) - shifted(-STEP)) / (2 * STEP)
            assert masses[part][c].sum() == pytest.approx(expected, rel=1e-6, abs=1e-6 * data[3].sum())


def test_nothing_overflows(few_kind, make_engine):
    """Decays that differ by exp(5000) leave finite numbers."""
    case = Case(3, N_TAXA)
    case.mixtures, case.lengths[:] = [random_mixture(case.rng, 4, 2, rates=[1e-3, 1e3])], 5.0
    _, matrices, masses = case.likelihood(make_engine, few_kind).rate_matrix_gradient()
    assert np.isfinite(matrices).all()
    assert np.isfinite(masses).all()
