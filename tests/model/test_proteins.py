"""Protein models: their figures against the authors' files, their components against the oracle."""

import numpy as np
import pytest
from helpers import figure_source
from oracles.substitution import gamma_category_means, q_matrix
from scipy.linalg import expm

from plltool.alignment.states import PROTEIN
from plltool.errors import InputError
from plltool.model import mixtures, proteins
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.vector import get_vector, set_vector

MATRICES = sorted(proteins.published_matrices())
PARTS = [(name, part) for name, parts in proteins.MIXTURES.items() for part in parts]


def model_of(text):
    return Model(parse_model(text), np.linspace(0.02, 0.08, 20))


def read_dat(path):
    """The lower triangle as a dictionary of pairs, and the frequencies, word by word."""
    words = iter(path.read_text().split())
    order = "ARNDCQEGHILKMFPSTWYV"
    rates = {frozenset((order[i], order[j])): float(next(words)) for i in range(20) for j in range(i)}
    return rates, {state: float(next(words)) for state in order}


def assert_is(read, file):
    """The figures of `read_matrix` are those of an author's file, with frequencies scaled to sum 1."""
    exchangeabilities, frequencies = read
    rates, shares = file
    total = sum(shares.values())
    for pair, found in zip(proteins.PAIRS, exchangeabilities, strict=True):
        assert found == rates[frozenset(pair)], pair
    for state, found in zip(proteins.AMINO_ACIDS, frequencies, strict=True):
        assert found == pytest.approx(shares[state] / total, rel=1e-14)


def author_file(shared, name):
    path = shared / "data" / "aa_matrices" / f"{name}.dat"
    return path if path.exists() else path.with_stem(name.upper())


@pytest.mark.parametrize("name", MATRICES)
def test_figures_are_the_authors(shared, name):
    assert_is(proteins.read_matrix(name), read_dat(author_file(shared, name)))


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_figures_of_mixtures_are_the_authors(shared, name, part):
    classes = mixtures.read_matrices(name)
    index = list(proteins.MIXTURES[name]).index(part)
    read = classes.exchangeabilities[index], classes.frequencies[index]
    assert_is(read, read_dat(author_file(shared, part)))


def test_figures_known_by_heart():
    """Le & Gascuel 2008: LG's first exchangeability, AR, and the frequency of alanine; Dayhoff 1978: 27."""
    exchangeabilities, frequencies = proteins.read_matrix("LG")
    assert exchangeabilities[proteins.PAIRS.index("AR")] == 0.425093
    assert frequencies[0] == pytest.approx(0.079066, abs=1e-6)
    assert proteins.read_matrix("Dayhoff")[0][0] == 27


def test_states_are_in_the_order_of_alignments():
    assert PROTEIN.symbols == proteins.AMINO_ACIDS


@pytest.mark.parametrize("name", [*MATRICES, *proteins.directed_matrices(), *proteins.MIXTURES, *proteins.PROFILES])
def test_every_figure_has_a_source(name):
    assert any(character.isdigit() for character in figure_source(name))


@pytest.mark.parametrize("name", proteins.PROFILES)
def test_profiles(name):
    weights, frequencies, _ = mixtures.read_profiles(name)
    assert len(weights) == int(name[1:])
    assert weights.sum() == pytest.approx(1, rel=1e-15)
    np.testing.assert_allclose(frequencies.sum(axis=1), 1, rtol=1e-15)
    assert frequencies.min() > 1e-4


def assert_components(text, expected):
    """The components of a model are `expected`: (weight, frequencies, exchangeabilities, rate) of each."""
    components = model_of(text).components()
    assert components.n_components == len(expected)
    for c, (weight, frequencies, exchangeabilities, rate) in enumerate(expected):
        assert components.weights[c] == pytest.approx(weight, rel=1e-14)
        np.testing.assert_allclose(components.frequencies[c], frequencies, rtol=1e-14)
        decay = np.diag(np.exp(0.4 * components.rates[c] * components.eigenvalues[c]))
        p = components.right[c] @ decay @ components.left[c]
        q = rate * q_matrix(exchangeabilities, frequencies)
        np.testing.assert_allclose(p, expm(0.4 * q), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["LG", "Dayhoff", "Q.pfam", "Poisson"])
def test_one_matrix(name):
    exchangeabilities, frequencies = proteins.read_matrix(name)
    assert_components(name, [(1.0, frequencies, exchangeabilities, 1.0)])


def test_frequencies_of_a_matrix_are_replaced():
    exchangeabilities, _ = proteins.read_matrix("WAG")
    empirical = np.linspace(0.02, 0.08, 20)
    assert_components("WAG+F", [(1.0, empirical / empirical.sum(), exchangeabilities, 1.0)])
    assert_components("WAG+FE", [(1.0, np.full(20, 0.05), exchangeabilities, 1.0)])


def test_profiles_times_rates():
    """Every profile has every rate; each matrix has one substitution per unit of length."""
    exchangeabilities, _ = proteins.read_matrix("LG")
    weights, frequencies, _ = mixtures.read_profiles("C10")
    rates = gamma_category_means(0.5, 2)
    expected = [(weights[k] / 2, frequencies[k], exchangeabilities, rate) for k in range(10) for rate in rates]
    assert_components("LG+C10+G2{0.5}", expected)


def test_a_class_beside_the_profiles():
    """+F adds a first class; weights in braces are those of all classes."""
    exchangeabilities, _ = proteins.read_matrix("LG")
    frequencies = mixtures.read_profiles("C10")[1]
    own = np.linspace(0.02, 0.08, 20) / np.linspace(0.02, 0.08, 20).sum()
    weights = np.arange(1, 12) / 66
    text = "LG+F+C10{" + "/".join(map(repr, weights.tolist())) + "}"
    expected = [(weights[k], f, exchangeabilities, 1.0) for k, f in enumerate([own, *frequencies])]
    assert_components(text, expected)
    with pytest.raises(InputError, match="expected 11 weights, found 2"):
        parse_model("LG+C10{0.5/0.5}+F")
    with pytest.raises(InputError, match="expected 10 weights, found 11"):
        parse_model(text.replace("+F", ""))


def test_invariable_sites_have_the_mean_of_the_profiles():
    exchangeabilities, _ = proteins.read_matrix("LG")
    weights, frequencies, _ = mixtures.read_profiles("C10")
    expected = [(0.25, weights @ frequencies, exchangeabilities, 0.0)]
    expected += [(0.75 * weights[k], frequencies[k], exchangeabilities, 4 / 3) for k in range(10)]
    assert_components("LG+C10+IU{0.25}", expected)


def test_classes_have_relative_rates_of_mean_one():
    """EX2: the authors' rates of buried and exposed sites, divided by their weighted mean."""
    classes = mixtures.read_matrices("EX2")
    slow, fast = proteins.MIXTURES["EX2"].values()
    mean = 0.25 * slow + 0.75 * fast
    expected = [
        (weight, classes.frequencies[k], classes.exchangeabilities[k], rate / mean)
        for k, (weight, rate) in enumerate([(0.25, slow), (0.75, fast)])
    ]
    assert_components("EX2{0.25/0.75}", expected)


def test_a_matrix_for_each_rate():
    classes = mixtures.read_matrices("LG4X")
    rates, weights = (0.25, 0.75, 1.0, 2.0), (0.25, 0.25, 0.25, 0.25)
    expected = [(weights[k], classes.frequencies[k], classes.exchangeabilities[k], rates[k]) for k in range(4)]
    assert_components("LG4X+R4{0.25/0.75/1/2}{0.25/0.25/0.25/0.25}", expected)


@pytest.mark.parametrize(
    "text",
    [*("WAG+F+I+G4", "LG+FO", "GTR20+G2", "LG4X", "LG4M+I", "EX_EHO+R2", "LG+C20+G4", "LG+C10+F", "LG+C10+FO", "LG")],
)
def test_string_is_read_back_as_the_same_fixed_model(text):
    model = model_of(text)
    set_vector(model, np.random.default_rng(3).uniform(-1, 1, len(get_vector(model))))
    again = model_of(model.to_string())
    assert again.free_parameters == ()
    assert again.to_string() == model.to_string()
    for name in ("weights", "rates", "frequencies", "eigenvalues"):
        here, there = getattr(model.components(), name), getattr(again.components(), name)
        np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-14)


def test_published_values_cannot_be_set():
    with pytest.raises(InputError, match="LG are published"):
        model_of("LG").set_exchangeabilities(np.ones(190))
    with pytest.raises(InputError, match="have frequencies of their own"):
        model_of("LG+C20").set_frequencies(np.full(20, 0.05))


def test_frequencies_of_a_matrix_that_were_changed_are_printed():
    model = model_of("LG")
    model.set_frequencies(np.full(20, 0.05))
    assert model.to_string().startswith("LG+FU{0.05/0.05/")
