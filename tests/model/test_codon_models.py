"""Codon models: rate matrices, names, values and frequencies."""

from pathlib import Path

import numpy as np
import pytest
from oracles.codons import codon_frequencies, mixture, position_frequencies, published, unscaled
from oracles.substitution import gamma_category_means

import plltool.model.codons
from plltool.constants import GENETIC_CODES
from plltool.errors import InputError
from plltool.model.codons import find_name, take_apart
from plltool.model.describe import describe_model
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.vector import get_bounds, get_vector, set_vector

AT_POSITIONS = np.array([[0.3, 0.2, 0.27, 0.23], [0.32, 0.24, 0.18, 0.26], [0.2, 0.3, 0.1, 0.4]])
FIGURES = Path(plltool.model.codons.__file__).parent / "figures" / "codons.txt"
ROWS = ("ATGAAACCCTTTGGG", "ATGAACCCGTTAGGT", "ATGAAGCCTTTGGGC")

GY_MODELS = {"GY{0.3/2.5}": (2.5, 1.0), "M0{0.3/2.5}": (2.5, 1.0), "GY0K{0.3}": (1.0, 1.0)}
GY_MODELS |= {"GY1KTV{0.3/0.4}": (1.0, 0.4), "GY2K{0.3/2.5/0.4}": (2.5, 0.4), "gy1kts{0.3,2.5}": (2.5, 1.0)}
MG_MODELS = {"MG{0.3}": (1.0, 1.0), "MGK{0.3/2.5}": (2.5, 1.0), "MG1KTV{0.3/0.4}": (1.0, 0.4)}
MG_MODELS |= {"MG2K{0.3/2.5/0.4}": (2.5, 0.4), "MGKAP2{0.3/2.5}": (2.5, 1.0)}


def given(frequencies):
    return "+FU{" + "/".join(map(repr, frequencies.tolist())) + "}"


def assert_components(model, expected):
    """The components of a model are these (weight, frequencies, Q)."""
    matrices, masses = model.rate_matrices()
    np.testing.assert_allclose(masses, [weight * np.asarray(pi) for weight, pi, _ in expected], rtol=1e-11)
    np.testing.assert_allclose(matrices, [q for _, _, q in expected], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("code", [1, 2, 5])
@pytest.mark.parametrize("text", GY_MODELS | MG_MODELS)
def test_one_omega(text, code):
    """Under MG a rate has the frequency of the new base, under GY that of the new codon."""
    pi = codon_frequencies(AT_POSITIONS, code)
    prefix = "" if code == 1 else f"CODON{code}_"
    model = Model(parse_model(prefix + text + given(pi)))
    of_bases = {"at_positions": AT_POSITIONS} if text in MG_MODELS else {}
    expected = unscaled(code, pi, 0.3, *(GY_MODELS | MG_MODELS)[text], **of_bases)
    assert_components(model, mixture([expected], [1.0], pi))


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("ECMK07", "ECMK07", ()),
        ("kosi07", "ECMK07", ()),
        ("ECMrest+G2{0.5}", "ECMrest", ()),
        ("ECMK07_GY0K{2}", "ECMK07", (2.0,)),
        ("KOSI07_M0{2/3}", "ECMK07", (2.0, 3.0)),
        ("ECMK07_GY1KTV{2/0.4}", "ECMK07", (2.0, 1.0, 0.4)),
        ("ECMK07_GYKAP4{2/0.3/0.4}", "ECMK07", (2.0, 0.3, 0.4)),
        ("ECMrest_GY2K{2/0.3/0.4}", "ECMrest", (2.0, 0.3, 0.4)),
    ],
)
def test_published_codon_models(text, name, values):
    q, pi = published(FIGURES.read_text(encoding="utf-8"), name, *values)
    model = Model(parse_model(text))
    shares, rates = [1.0], [1.0]
    if "+G2" in text:
        shares, rates = [0.5, 0.5], gamma_category_means(0.5, 2)
    expected = [(w, pi, r * one) for w, r in zip(shares, rates, strict=True) for _, _, one in mixture([q], [1.0], pi)]
    assert_components(model, expected)
    assert parse_model(str(model.spec)) == model.spec


@pytest.mark.parametrize(
    ("text", "omegas", "weights"),
    [
        ("M1a{0.1/3}{0.7/0.3}", (0.1, 1.0), (0.7, 0.3)),
        ("M2a{0.1/4/3}{0.6/0.3/0.1}", (0.1, 1.0, 4.0), (0.6, 0.3, 0.1)),
        ("M3{0.1/0.6/2/3}{0.5/0.3/0.2}", (0.1, 0.6, 2.0), (0.5, 0.3, 0.2)),
    ],
)
def test_classes_of_omega_share_one_scale(text, omegas, weights):
    pi = codon_frequencies(AT_POSITIONS, 1)
    model = Model(parse_model(text + given(pi)))
    expected = mixture([unscaled(1, pi, omega, 3.0) for omega in omegas], weights, pi)
    assert_components(model, expected)
    again = Model(parse_model(model.to_string()))
    assert_components(again, expected)
    assert again.to_string() == model.to_string()


@pytest.mark.parametrize("suffix", ["+F1X4", "+F3X4"])
@pytest.mark.parametrize("name", ["GY", "MG", "M1a"])
def test_products_of_the_frequencies_of_bases(name, suffix):
    codons = [row[k : k + 3] for row in ROWS for k in range(0, len(row), 3)]
    spec = parse_model(name + suffix)
    counted = np.array([max(codons.count(symbol), 1e-12) for symbol in spec.symbols])
    model = Model(spec, counted / counted.sum())
    at_positions = position_frequencies(ROWS, 1, suffix == "+F3X4")
    present = np.array([np.prod([at_positions[p]["ACGT".index(b)] for p, b in enumerate(s)]) for s in spec.symbols]) > 0
    expected = codon_frequencies(at_positions, 1)
    np.testing.assert_allclose(model.frequencies[present], expected[present], rtol=1e-6)


def test_products_are_taken_apart():
    symbols = parse_model("GY").symbols
    np.testing.assert_allclose(take_apart(codon_frequencies(AT_POSITIONS, 1), symbols), AT_POSITIONS, rtol=1e-10)


@pytest.mark.parametrize(
    ("text", "n"),
    [("GY+FE", 2), ("GY+F3X4", 11), ("GY+F1X4", 5), ("GY", 62), ("GY2K+FE", 2), ("MG", 10), ("MGK+F1X4", 5),
     ("M1a+FE", 3), ("M2a+FE", 5), ("M3+FE", 6), ("GY+F3X4+I+G4", 13), ("GY0K+FE", 1), ("CODON2_GY", 61),
     ("ECMK07", 0), ("ECMK07+F", 60), ("ECMK07_GY2K", 3), ("ECMrest_GY2K", 2)],
)  # fmt: skip
def test_numbers_of_free_parameters(text, n):
    spec = parse_model(text)
    model = Model(spec, np.full(len(spec.symbols), 1 / len(spec.symbols)))
    assert model.n_free_parameters == n


@pytest.mark.parametrize(
    "text", ["GY+F3X4", "CODON2_GY+F", "MG+F3X4", "M1a{0.1/3.0}{0.7/0.3}+F1X4", "GY{0.3/2.0}+FE+G4"]
)
def test_strings_are_read_back(text):
    spec = parse_model(text)
    assert str(spec) == text
    assert parse_model(str(spec)) == spec


def test_names():
    assert find_name("codon2_m0") == "CODON2_GY"
    assert find_name("CODON1_M2A") == "M2a"
    assert find_name("CODON7_GY") is None
    assert {parse_model(f"CODON{code}_GY").data for code in GENETIC_CODES} >= {"codon", "codon2", "codon33"}
    assert parse_model("GY").for_data("codon4").name == "CODON4_GY"
    assert parse_model("CODON2_GY").for_data("codon4").name == "CODON2_GY"
    assert parse_model("GTR").for_data("codon4").name == "GTR"
    assert parse_model("ECMK07_GY").for_data("codon4").name == "ECMK07_GY"
    assert find_name("CODON_ECMUNREST_GY1KTS") == "ECMK07_GY"


def test_given_frequencies_under_mg_must_be_products():
    pi = codon_frequencies(AT_POSITIONS, 1)
    pi[0] *= 1.1
    with pytest.raises(InputError, match="MG needs codon frequencies that are products of base frequencies"):
        parse_model("MG" + given(pi / pi.sum()))


def test_parameters_have_names():
    model = Model(parse_model("GY+FE"))
    model.set_rate_parameter("omega", 0.25)
    assert model.rate_parameters == {"omega": 0.25, "kappa": 2.0}
    assert describe_model(model)["rates"] == {"omega": 0.25, "kappa": 2.0}
    with pytest.raises(InputError, match="has no parameter 'beta', expected one of: omega, kappa"):
        model.set_rate_parameter("beta", 1)
    with pytest.raises(InputError, match="omega must lie between"):
        model.set_rate_parameter("omega", 0)
    with pytest.raises(InputError, match="the exchangeabilities of GY follow from omega, kappa and cannot be set"):
        model.set_exchangeabilities([1.0])


@pytest.mark.parametrize("text", ["GY+FE", "M1a+FE", "M2a+FE+G4", "M3+FE", "MG2K+FE", "GY+FO"])
def test_vectors_stay_within_bounds(text):
    model = Model(parse_model(text))
    low, high = np.array(get_bounds(model)).T
    assert (low <= get_vector(model)).all()
    assert (get_vector(model) <= high).all()
    for end in (low, high):
        set_vector(model, end + np.sign(end) * 3)
        np.testing.assert_allclose(get_vector(model), np.clip(end + np.sign(end) * 3, low, high), atol=1e-9)
    if text == "M2a+FE+G4":
        assert np.exp(get_bounds(model, ["rates"])) == pytest.approx(np.array([[1e-6, 1], [1, 1e3], [1e-3, 1e3]]))
