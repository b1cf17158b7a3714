"""RATE_MATRIX_GRADIENT and MASS_GRADIENT: lnL's slopes in rate matrices, weights and frequencies, by differences."""

import numpy as np
import pytest
from helpers import FixedModel, make_tree, random_codes, random_ends, random_mixture
from oracles.likelihood import pruning

from plltool.optimise.likelihood import TreeLikelihood

N_TAXA = 6
STEP = 1e-5


def oracle_lnl(ends, lengths, codes, weights, components):
    return float(weights @ np.array(pruning(ends.tolist(), lengths, codes.T.tolist(), components)))


@pytest.fixture(scope="module", params=[(2, 1), (4, 1), (4, 3)], ids=["2x1", "4x1", "4x3"])
def case(request):
    n_states, n_components = request.param
    rng = np.random.default_rng([n_states, n_components])
    ends, lengths = random_ends(rng, N_TAXA)
    codes = random_codes(rng, N_TAXA, 23, n_states)
    mixtures = [random_mixture(rng, n_states, n_components) for _ in range(2)]
    return ends, lengths, codes, rng.integers(1, 5, 23).astype(float), mixtures


def gradients(case, kind, make_engine):
    """(lnl, matrices, masses) of the case cut into two parts with a model each."""
    ends, lengths, codes, weights, mixtures = case
    engine = make_engine(kind, 3 * (N_TAXA - 2), codes, weights, mixtures, (14, 9))
    likelihood = TreeLikelihood(make_tree(ends, lengths, N_TAXA), [FixedModel(m.components) for m in mixtures], engine)
    launches = engine.counters.launches
    answer = likelihood.rate_matrix_gradient()
    assert engine.counters.launches - launches <= 3  # matrices, traversal, sums over groups
    return answer


def parts_of(case):
    ends, lengths, codes, weights, mixtures = case
    for part, columns in enumerate((slice(0, 14), slice(14, 23))):
        yield part, (ends, lengths, codes[:, columns], weights[columns]), mixtures[part]


def test_lnl(case, few_kind, make_engine):
    expected = [oracle_lnl(*data, mixture.oracle) for _, data, mixture in parts_of(case)]
    assert gradients(case, few_kind, make_engine)[0] == pytest.approx(expected, rel=1e-11)


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
    _, _, masses = gradients(case, few_kind, make_engine)
    for part, data, mixture in parts_of(case):
        for c in range(mixture.n_components):

            def shifted(step, data=data, mixture=mixture, c=c):
                moved = [(w * np.exp(step * (k == c)), f, q) for k, (w, f, q) in enumerate(mixture.oracle)]
                return oracle_lnl(*data, moved)

            expected = (shifted(STEP) - shifted(-STEP)) / (2 * STEP)
            assert masses[part][c].sum() == pytest.approx(expected, rel=1e-6, abs=1e-6 * data[3].sum())


def test_nothing_overflows(few_kind, make_engine):
    """Decays that differ by exp(5000) leave finite numbers."""
    rng = np.random.default_rng(3)
    ends, lengths = random_ends(rng, N_TAXA)
    mixture = random_mixture(rng, 4, 2, rates=[1e-3, 1e3])
    engine = make_engine(few_kind, 3 * (N_TAXA - 2), random_codes(rng, N_TAXA, 9), np.ones(9), [mixture])
    tree = make_tree(ends, np.full(len(lengths), 5.0), N_TAXA)
    _, matrices, masses = TreeLikelihood(tree, [FixedModel(mixture.components)], engine).rate_matrix_gradient()
    assert np.isfinite(matrices).all()
    assert np.isfinite(masses).all()
