"""Processes that are not time-reversible: names, frequencies, eigensystems, slopes; against scipy and definitions."""

import numpy as np
import pytest
from scipy.linalg import expm, null_space

from plltool.codec import from_arrays, to_arrays
from plltool.errors import InputError
from plltool.model import proteins
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.named import read_figures
from plltool.model.substitution import rates_matrix, real_eigensystem, scaled_matrix, stationary_frequencies

PAIRS = ("AC", "AG", "AT", "CA", "CG", "CT", "GA", "GC", "GT", "TA", "TC", "TG")
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def random_rates(rng, n_states, spread=2.0):
    rates = np.exp(rng.normal(0, spread, (n_states, n_states)))
    np.fill_diagonal(rates, 0)
    np.fill_diagonal(rates, -rates.sum(axis=1))
    return rates


@pytest.mark.parametrize("n_states", [2, 4, 5, 20])
def test_stationary_frequencies(n_states):
    rng = np.random.default_rng(n_states)
    for _ in range(20):
        q = random_rates(rng, n_states)
        expected = null_space(q.T)[:, 0]
        assert stationary_frequencies(q) == pytest.approx(expected / expected.sum(), rel=1e-8, abs=1e-13)


def test_frequencies_that_differ_by_orders_of_magnitude():
    """Two states in closed form: pi is (b, a) / (a + b), to the last digits."""
    for a, b in ((1e-12, 1.0), (1e9, 1e-9)):
        found = stationary_frequencies(np.array([[-a, a], [b, -b]]))
        assert found == pytest.approx([b / (a + b), a / (a + b)], rel=1e-15)


@pytest.mark.parametrize("n_states", [2, 3, 4, 5, 20])
def test_eigensystem(n_states):
    rng = np.random.default_rng(n_states)
    for spread in (0.0, 0.5, 2.0):
        matrix, pi = scaled_matrix(random_rates(rng, n_states, spread))
        assert -(pi @ np.diag(matrix)) == pytest.approx(1.0, rel=1e-14)
        eigenvalues, rotations, right, left = real_eigensystem(matrix, pi)
        block = np.diag(eigenvalues)
        for k in np.flatnonzero(rotations):
            assert rotations[k ^ 1] == -rotations[k]
            assert eigenvalues[k ^ 1] == eigenvalues[k]
            block[k, k ^ 1] = rotations[k]
        assert right @ block @ left == pytest.approx(matrix, rel=1e-9, abs=1e-9)
        assert right @ left == pytest.approx(np.eye(n_states), abs=1e-9)
        assert eigenvalues[-1] == 0
        assert left[-1] == pytest.approx(pi)


@pytest.mark.parametrize("text", ["UNREST{9/1/2/3/7/1/2/8/1/1/3/1}+G4{0.5}", "STRSYM{1/5/2/0.2/3/1}", "UNREST+I{0.2}"])
def test_components(text):
    model = Model(parse_model(text))
    components = model.components()
    rates, masses = model.rate_matrices()
    assert not components.is_reversible
    for t in (0.0, 1e-6, 0.3, 20.0):
        assert components.transition_matrices(t) == pytest.approx(np.array([expm(q * t) for q in rates]), abs=1e-13)
    assert masses == pytest.approx(components.masses())
    assert model.frequencies @ rates[-1] == pytest.approx(np.zeros(4), abs=1e-14)


def test_the_order_of_rates():
    model = Model(parse_model("UNREST{2/3/4/5/6/7/8/9/10/11/12/1}"))
    assert model.spec.pairs == PAIRS
    q = model.rate_matrices()[0][0]
    for pair, rate in zip(PAIRS, [*range(2, 13), 1], strict=True):
        i, j = ("ACGT".index(base) for base in pair)
        assert q[i, j] / q[3, 2] == pytest.approx(rate)


def test_rates_of_both_strands():
    """Under STRSYM a rate is that of the complements, and so is a frequency."""
    model = Model(parse_model("STRSYM{2/3/4/5/6/1}"))
    rates = dict(zip(PAIRS, model.exchangeabilities, strict=True))
    assert len(set(rates.values())) == 6
    for pair, rate in rates.items():
        assert rates[pair.translate(COMPLEMENT)] == rate
    assert model.frequencies == pytest.approx(model.frequencies[::-1])
    assert model.n_free_parameters == 0
    assert Model(parse_model("STRSYM")).n_free_parameters == 5
    assert Model(parse_model("UNREST+G4")).n_free_parameters == 12


def test_text():
    for text in ("UNREST", "STRSYM+I+G4", "UNREST{2/3/4/5/6/7/8/9/10/11/12/1}+R2"):
        assert str(parse_model(str(parse_model(text)))) == str(parse_model(text))
    assert parse_model("12.12+G4") == parse_model("unrest+G4")
    assert parse_model("WS6.6") == parse_model("STRSYM")
    again = Model(parse_model(Model(parse_model("UNREST+G4")).to_string()))
    assert again.free_parameters == ()


def test_values_are_packed():
    model, other = Model(parse_model("UNREST")), Model(parse_model("UNREST"))
    model.set_exchangeabilities(np.arange(1.0, 13.0))
    other.components()
    other.assign(from_arrays(to_arrays(model)))
    assert np.array_equal(other.frequencies, model.frequencies)
    assert np.array_equal(other.components().right, model.components().right)


def test_frequencies_cannot_be_set():
    with pytest.raises(InputError, match="follow from its rates and cannot be set"):
        Model(parse_model("UNREST")).set_frequencies([0.25] * 4)


# --- proteins -----------------------------------------------------------------------------------------------

NQ = ("NQ.bird", "NQ.insect", "NQ.mammal", "NQ.pfam", "NQ.plant", "NQ.yeast")


@pytest.mark.parametrize("name", NQ)
def test_published_matrices(name):
    """The figures are a matrix that is scaled already: rows sum to 0, and one substitution is expected per unit."""
    model = Model(parse_model(name.upper()))
    matrix, pi = scaled_matrix(rates_matrix(model.exchangeabilities))
    printed = read_figures("directed.txt", name).reshape(20, 20)
    assert matrix == pytest.approx(printed, abs=2e-5)  # 20 rates of 6 decimals
    assert model.frequencies == pytest.approx(pi)
    assert model.n_free_parameters == 0
    components = model.components()
    assert components.transition_matrices(0.4)[0] == pytest.approx(expm(0.4 * matrix), abs=1e-10)
    assert not components.is_reversible
    assert name not in proteins.published_matrices()  # candidates of select-model have no root


def test_free_rates_of_proteins():
    """NONREV starts as LG, which is reversible; its parameters are all ratios to the last rate, VY."""
    model, lg = Model(parse_model("NR")), Model(parse_model("LG"))
    assert model.n_free_parameters == 379
    assert model.components().transition_matrices(0.7) == pytest.approx(lg.components().transition_matrices(0.7))
    values = np.random.default_rng(8).uniform(0.1, 2, 380)
    given = Model(parse_model(f"NONREV{{{'/'.join(map(repr, values.tolist()))}}}"))
    assert given.exchangeabilities == pytest.approx(values / values[-1], rel=1e-14)
    assert given.spec.pairs[0] == "AR"
    assert given.spec.pairs[-1] == "VY"
    with pytest.raises(InputError, match="expected 380 exchangeabilities"):
        parse_model("NONREV{1/2/3}")


def test_states_of_the_user():
    """Six rates between three states: P is the exponential of their matrix, and nothing is free."""
    model = Model(parse_model("MATRIX{ABC}{1/2/3/4/5/6}"))
    matrix, pi = scaled_matrix(rates_matrix(np.array([1.0, 2, 3, 4, 5, 6])))
    assert model.components().transition_matrices(0.3)[0] == pytest.approx(expm(0.3 * matrix), abs=1e-10)
    assert model.frequencies == pytest.approx(pi)
    assert model.n_free_parameters == 0
