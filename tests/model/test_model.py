import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.substitution import gamma_category_means, transition_matrix

import plltool.model.substitution
from plltool.constants import DEFAULT_ALPHA, EVEN_DEVIATION, MAX_ALPHA, MIN_ALPHA
from plltool.errors import InputError
from plltool.model.describe import describe_model, shorten_model
from plltool.model.model import Model, solve_together
from plltool.model.model_string import parse_model
from plltool.model.vector import get_bounds, get_vector, set_vector

RATES = (1.2, 3.4, 0.8, 1.1, 4.1, 1.0)
FREQUENCIES = (0.28, 0.21, 0.24, 0.27)
GTR_FIXED = "GTR{1.2/3.4/0.8/1.1/4.1/1.0}+FU{0.28/0.21/0.24/0.27}+G4{0.45}"

SITE_MODELS = ("HKY+I", "JC+I+GA3", "F81+R3", "GTR+F+I+R2")

COMPONENT_ARRAYS = ("eigenvalues", "right", "left", "frequencies", "rates", "weights")


def model_of(text, empirical=None):
    return Model(parse_model(text), empirical, invariable=0.3)


def p_matrices(components, t):
    """P(t) of each component, float64 (C, S, S), as an engine computes it."""
    decay = np.exp(components.eigenvalues * components.rates[:, None] * t)
    return np.einsum("cij,cj,cjk->cik", components.right, decay, components.left)


def assert_same_components(a, b, rtol):
    """The arrays are equal; eigenvectors are compared through their P(t)."""
    for name in ("eigenvalues", "frequencies", "rates", "weights"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol)
    np.testing.assert_allclose(p_matrices(a, 0.3), p_matrices(b, 0.3), rtol=rtol)


@pytest.fixture
def count_eigensystems(monkeypatch):
    """The calls of eigensystem, as a growing list."""
    calls = []
    original = plltool.model.substitution.eigensystem

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(plltool.model.substitution, "eigensystem", counted)
    return calls


def test_systems_are_made_together_and_not_again(count_eigensystems):
    """Models of 4 and of 20 states, one with four classes: a call for each number of states, with the same bits."""
    names = "LG4M", "HKY+FO", GTR_FIXED, "WAG"
    alone = [model_of(name).components() for name in names]
    models = [model_of(name) for name in names]
    count_eigensystems.clear()
    solve_together(models)
    assert len(count_eigensystems) == 2
    for model, own in zip(models, alone, strict=True):
        found = model.components()
        assert all(np.array_equal(getattr(found, name), getattr(own, name)) for name in COMPONENT_ARRAYS)
    assert len(count_eigensystems) == 2


@pytest.mark.parametrize(("name", "group"), [("JC+I+G4", "alpha"), ("LG4X", "free_rates"), ("JC+G4+B", "scaler")])
def test_components_follow_their_values(name, group):
    model, other = model_of(name), model_of(name)
    model.components()
    for own in (model, other):
        own.set_ratios(group, 0.9 * own.ratios(group))
    assert_same_components(model.components(), other.components(), rtol=0.0)


class TestComponents:
    def test_transition_matrices_of_gtr_with_gamma(self):
        components = model_of(GTR_FIXED).components()
        rates = gamma_category_means(0.45, 4)
        expected = [transition_matrix(RATES, FREQUENCIES, 0.3 * rate) for rate in rates]
        # rtol of the oracle's quadrature, see test_rates.py
        np.testing.assert_allclose(p_matrices(components, 0.3), expected, rtol=1e-12)

    def test_shapes(self):
        components = model_of(GTR_FIXED).components()
        shapes = {name: getattr(components, name).shape for name in COMPONENT_ARRAYS}
        assert shapes == {
            "eigenvalues": (4, 4),
            "right": (4, 4, 4),
            "left": (4, 4, 4),
            "frequencies": (4, 4),
            "rates": (4,),
            "weights": (4,),
        }
        for name in COMPONENT_ARRAYS:
            array = getattr(components, name)
            assert array.dtype == np.float64
            assert array.flags.c_contiguous

    @pytest.mark.parametrize("text", SITE_MODELS)
    def test_rates_over_sites(self, text):
        """Every component has the matrix of the model, invariable sites first."""
        model = model_of(text, FREQUENCIES)
        components = model.components()
        rates, weights = model.sites.categories()
        assert components.rates.tolist() == rates.tolist()
        assert components.weights.tolist() == weights.tolist()
        assert (components.rates[0] == 0) == ("+I" in text)
        expected = [transition_matrix(model.exchangeabilities, model.frequencies, 0.3 * rate) for rate in rates]
        np.testing.assert_allclose(p_matrices(components, 0.3), expected, rtol=1e-12, atol=1e-15)

    def test_changing_alpha_alone_keeps_the_eigensystem(self, count_eigensystems):
        model = model_of("GTR+FO+G4")
        model.components()
        model.set_alpha(0.3)
        set_vector(model, [0.7], ["alpha"])
        model.components()
        assert len(count_eigensystems) == 1

    @pytest.mark.parametrize(
        "change",
        [
            lambda model: model.set_exchangeabilities(RATES),
            lambda model: model.set_frequencies(FREQUENCIES),
            lambda model: set_vector(model, np.log([1.2, 3.4, 0.8, 1.1, 4.1]), ["rates"]),
            lambda model: set_vector(model, [0.1, 0.2, 0.3], ["frequencies"]),
        ],
    )
    def test_changing_anything_else_renews_it(self, change):
        model = model_of("GTR+FO+G4")
        model.components()
        change(model)
        expected = transition_matrix(model.exchangeabilities, model.frequencies, 0.3 * model.sites.categories()[0][2])
        np.testing.assert_allclose(p_matrices(model.components(), 0.3)[2], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "expected"), [("MULTI3_MK", [1, 1, 1]), ("MULTI4_ORDERED", [1, 0, 0, 1, 0, 1]), ("BIN", [1])]
)
def test_multistate_models_by_their_definition(text, expected):
    """All states are alike under Mk; ordered ones change to their neighbours."""
    assert Model(parse_model(text)).exchangeabilities == pytest.approx(expected, abs=1e-9)


class TestStart:
    @pytest.mark.parametrize(
        ("text", "rates", "frequencies", "alpha"),
        [
            ("GTR+FO+G4", (1.0,) * 6, (0.25,) * 4, DEFAULT_ALPHA),
            (GTR_FIXED, RATES, FREQUENCIES, 0.45),
            ("GTR+F", (1.0,) * 6, (0.1, 0.2, 0.3, 0.4), None),
        ],
    )
    def test_values(self, text, rates, frequencies, alpha):
        """Those given, or defaults; empirical frequencies are used only where they are asked for."""
        model = model_of(text, (0.1, 0.2, 0.3, 0.4))
        assert tuple(model.exchangeabilities) == rates
        assert tuple(model.frequencies) == frequencies
        assert model.alpha == alpha

    def test_missing_empirical_frequencies(self):
        with pytest.raises(ValueError, match=r"GTR\+F"):
            model_of("GTR+F")

    def test_base_that_does_not_occur(self):
        with pytest.raises(InputError, match=r"model 'GTR\+F': empirical frequencies cannot be used: .* found 0"):
            model_of("GTR+F", [0.5, 0.2, 0.3, 0.0])


class TestFreeParameters:
    @pytest.mark.parametrize(
        ("text", "groups", "count"),
        [
            # counts as IQ-TREE documents its models' degrees of freedom, plus 1 for alpha
            ("JC", (), 0),
            ("K80", ("rates",), 1),
            ("HKY", ("rates", "frequencies"), 4),
            ("TIM1uf", ("rates", "frequencies"), 6),
            ("GTR", ("rates", "frequencies"), 8),
            ("GTR+F", ("rates",), 8),
            ("GTR+F+G4", ("rates", "alpha"), 9),
            ("GTR+FU{0.28/0.21/0.24/0.27}+G4", ("rates", "alpha"), 6),
            ("K80{2.5}+G4", ("alpha",), 1),
            ("JC+FO+G4{0.5}", ("frequencies",), 3),
            (GTR_FIXED, (), 0),
            # IQ-TREE's: +I 1, +I+G 2, +R[k] 2 k - 2; the authors' of LG4X: 3 weights and 3 rates
            ("JC+I", ("pinv",), 1),
            ("JC+I+G", ("alpha", "pinv"), 2),
            ("JC+IC+G", ("alpha",), 2),
            ("JC+GA{1}+I", ("pinv",), 1),
            ("JC+R4", ("free_rates",), 6),
            ("JC+I+R3", ("pinv", "free_rates"), 5),
            ("JC+R2{0.5/1.5}{0.5/0.5}", (), 0),
            ("LG", (), 0),
            ("LG+F+G4", ("alpha",), 20),
            ("LG+FO", ("frequencies",), 19),
            ("GTR20", ("rates", "frequencies"), 208),
            ("LG4M", ("alpha",), 1),
            ("LG4X", ("free_rates",), 6),
            ("EX2+G4", ("class_weights", "alpha"), 2),
            ("UL3{0.2/0.3/0.5}", (), 0),
            ("LG+C60+I+G4", ("alpha", "pinv"), 2),
            ("GTR20+C10", ("rates",), 189),
            ("LG+C10+F+G4", ("class_weights", "alpha"), 30),  # IQ-TREE's: 10 weights, 19 frequencies, alpha
            ("LG+C10+FO", ("frequencies", "class_weights"), 29),
        ],
    )
    def test_groups_and_number(self, text, groups, count):
        spec = parse_model(text)
        model = Model(spec, np.full(spec.n_states, 1 / spec.n_states), invariable=0.3)
        assert model.free_parameters == groups
        assert model.n_free_parameters == count

    def test_vector_is_logarithms_of_ratios(self):
        model = model_of("TPM2+FO+G4")
        model.set_exchangeabilities([2, 3, 2, 1, 3, 1])
        model.set_frequencies([0.1, 0.2, 0.3, 0.4])
        model.set_alpha(0.5)
        like_alpha = 1 / (1 / np.sqrt(0.5) + EVEN_DEVIATION) ** 2
        expected = np.log([2, 3, 0.1 / 0.4, 0.2 / 0.4, 0.3 / 0.4, like_alpha])
        np.testing.assert_allclose(get_vector(model), expected, rtol=1e-15)

    def test_vector_sets_values(self):
        model = model_of("TIM1+FO+G4")
        set_vector(model, np.log([2, 3, 4, 0.5, 1, 1.5, 1 / (1 / np.sqrt(0.3) + EVEN_DEVIATION) ** 2]))
        # TIM1 is 012230: GT is of class 0, so classes 1, 2 and 3 vary
        np.testing.assert_allclose(model.exchangeabilities, [1, 2, 3, 3, 4, 1], rtol=1e-15)
        np.testing.assert_allclose(model.frequencies, [0.125, 0.25, 0.375, 0.25], rtol=1e-15)
        assert model.alpha == pytest.approx(0.3, rel=1e-14)

    def test_groups_restrict_the_vector(self):
        model = model_of("GTR+FO+G4")
        set_vector(model, [0.5], ["alpha"])
        set_vector(model, [0.1, 0.2, 0.3], ("frequencies",))
        np.testing.assert_allclose(get_vector(model, ["alpha", "frequencies"]), [0.1, 0.2, 0.3, 0.5], rtol=1e-14)
        assert model.exchangeabilities.tolist() == [1.0] * 6
        assert len(get_bounds(model, ["rates"])) == 5

    def test_groups_that_are_fixed_contribute_nothing(self):
        model = model_of("K80{2.5}+G4")
        assert get_vector(model, ["rates"]).shape == (0,)
        assert get_bounds(model, ["rates"]) == []
        set_vector(model, [], ["rates"])
        assert model.exchangeabilities.tolist() == [1, 2.5, 1, 1, 2.5, 1]

    def test_unknown_group(self):
        with pytest.raises(ValueError, match="kappa"):
            get_vector(model_of("GTR+G4"), ["kappa"])

    @pytest.mark.parametrize("vector", [[], [0.1, 0.2], [np.nan], [[0.1]]])
    def test_wrong_vectors(self, vector):
        with pytest.raises(ValueError, match="expected 1 finite values"):
            set_vector(model_of("JC+G4"), vector)

    @pytest.mark.parametrize("side", [0, 1])
    def test_both_ends_of_the_bounds_are_usable(self, side):
        model = model_of("GTR+FO+G4")
        ends = np.array(get_bounds(model))[:, side]
        set_vector(model, ends)
        np.testing.assert_allclose(get_vector(model), ends, rtol=1e-14)
        components = model.components()
        assert all(np.isfinite(getattr(components, name)).all() for name in COMPONENT_ARRAYS)

    @pytest.mark.parametrize(("text", "group"), [("JC+I", "pinv"), ("JC+R3", "free_rates")])
    def test_rounding_passes_no_bound(self, text, group):
        """exp(log(bound)) is above the bound here."""
        model = model_of(text)
        highest = np.log([high for _, high in np.exp(get_bounds(model, [group])).round(1)])
        set_vector(model, highest, [group])
        assert (np.exp(highest) > model.ratios(group)).all()

    def test_values_beyond_the_bounds_are_clipped(self):
        model = model_of("JC+G4")
        set_vector(model, [1e6])
        assert model.alpha == pytest.approx(MAX_ALPHA, rel=1e-9)  # exp(log(bound)) rounds
        assert model.alpha <= MAX_ALPHA
        set_vector(model, [-1e6])
        assert model.alpha == pytest.approx(MIN_ALPHA, rel=1e-12)
        assert model.alpha >= MIN_ALPHA

    @given(st.lists(st.floats(-3, 3), min_size=9, max_size=9))
    def test_vector_comes_back(self, vector):
        model = model_of("GTR+FO+G4")
        set_vector(model, vector)
        np.testing.assert_allclose(get_vector(model), vector, atol=1e-14)  # exp, normalisation and log round
        assert model.frequencies.sum() == pytest.approx(1, abs=1e-15)


class TestSetters:
    def test_only_ratios_of_exchangeabilities_matter(self):
        model = model_of("GTR")
        model.set_exchangeabilities([2.0 * rate for rate in RATES])
        assert tuple(model.exchangeabilities) == RATES

    @pytest.mark.parametrize(
        ("text", "what", "values", "words"),
        [
            ("HKY", "exchangeabilities", ([1, 2, 3],), "expected 6 exchangeabilities .* found 3"),
            ("HKY", "exchangeabilities", ([1, 2, 1, 1, 2, 0],), "found 0"),
            ("HKY", "exchangeabilities", ([1, np.inf, 1, 1, 2, 1],), "found inf"),
            ("HKY", "exchangeabilities", ([1, 2, 1, 1, 3, 1],), "HKY has equal .* AG and CT, found 2 and 3"),
            ("HKY", "frequencies", ([0.5, 0.5],), "base frequencies"),
            ("HKY", "frequencies", ([0.5, 0.5, 0, 0],), "base frequencies"),
            ("HKY", "frequencies", ([0.3, 0.3, 0.3, 0.3],), "base frequencies"),
            ("HKY", "frequencies", ([np.nan, 0.3, 0.3, 0.4],), "base frequencies"),
            *(("HKY+G4", "alpha", (value,), "alpha must lie between") for value in (0.0, -1.0, 1e-3, 1e11, np.nan)),
            ("HKY", "alpha", (0.5,), r"'HKY\+FO' has no gamma"),
            ("JC+I", "pinv", (1.0,), r"between 1e-10 and 0\.99, found 1"),
            ("JC", "pinv", (0.3,), "'JC' has no invariable sites"),
            ("JC+R2", "free_rates", ([1, 3], [0.5, 0.6]), "must sum to 1"),
            ("JC+R2", "free_rates", ([1, 2, 3], [0.5, 0.5]), "expected 2 rates"),
            ("JC+R2", "free_rates", ([1, 0], [0.5, 0.5]), "must be positive"),
            ("JC+G", "free_rates", ([1, 3], [0.75, 0.25]), r"no free rates \(\+R\)"),
        ],
    )
    def test_refused_values(self, text, what, values, words):
        with pytest.raises(InputError, match=words):
            getattr(model_of(text), f"set_{what}")(*values)

    def test_values_of_rates_across_sites(self):
        """Free rates are brought to mean one."""
        model = model_of("JC+I+R2")
        model.set_pinv(0.3)
        assert model.pinv == 0.3
        model = model_of("JC+R2")
        model.set_free_rates([1, 3], [0.75, 0.25])
        np.testing.assert_allclose(model.sites.categories()[0], [2 / 3, 2], rtol=1e-15)

    def test_returned_arrays_are_copies(self):
        model = model_of("HKY")
        model.frequencies[0] = 9
        model.exchangeabilities[0] = 9
        assert model.frequencies[0] == 0.25
        assert model.exchangeabilities[0] == 1.0

    def test_copies_are_independent(self):
        model = model_of("GTR+FO+G4")
        other = model.copy()
        set_vector(other, np.full(9, 0.5))
        assert get_vector(model)[:8].tolist() == [0.0] * 8
        assert model.alpha == DEFAULT_ALPHA
        model.set_alpha(0.1)
        assert other.alpha == pytest.approx((np.exp(-0.25) - EVEN_DEVIATION) ** -2)


class TestOutput:
    @pytest.mark.parametrize(
        "text", ["JC", "K80", "F81", "TPM2uf+G4", "GTR+F+G8", "DNA010210+FE", "GTR+FE+G2", GTR_FIXED, *SITE_MODELS]
    )
    @given(seed=st.integers(0, 1000))
    def test_string_is_read_back_as_the_same_fixed_model(self, text, seed):
        model = model_of(text, FREQUENCIES)
        set_vector(model, np.random.default_rng(seed).uniform(-2, 2, len(get_vector(model))))
        again = model_of(model.to_string())
        assert again.free_parameters == ()
        assert again.to_string() == model.to_string()
        assert_same_components(again.components(), model.components(), rtol=1e-14)

    def test_string_of_equal_frequencies_that_were_changed(self):
        model = model_of("JC")
        model.set_frequencies(FREQUENCIES)
        assert model.to_string() == "JC+FU{0.28/0.21/0.24/0.27}"

    def test_description_is_json(self):
        description = describe_model(model_of(GTR_FIXED))
        assert json.loads(json.dumps(description)) == description
        np.testing.assert_allclose(description.pop("category_rates"), gamma_category_means(0.45, 4), rtol=1e-12)
        np.testing.assert_allclose(description.pop("category_weights"), [0.25] * 4, rtol=1e-15)
        assert description == {
            "spec": GTR_FIXED,
            "model": GTR_FIXED,
            "data": "DNA",
            "pinv": None,
            "rates": dict(zip(("AC", "AG", "AT", "CG", "CT", "GT"), RATES, strict=True)),
            "frequencies": dict(zip("ACGT", FREQUENCIES, strict=True)),
            "alpha": 0.45,
            "n_free_parameters": 0,
        }


@pytest.mark.parametrize("text", ["GTR+FO+I+G4", "HKY{3}+F{0.1/0.2/0.3/0.4}", "LG4X", "LG+C10+R2", "EX2+I+G2", "UL3"])
def test_rate_matrices_are_those_of_the_eigensystems(text):
    """Reassembled from eigenvalues and eigenvectors, each times the component's rate."""
    model = Model(parse_model(text))
    parts = model.components()
    matrices, masses = model.rate_matrices()
    diagonals = (parts.eigenvalues * parts.rates[:, None])[:, None, :]
    np.testing.assert_allclose(matrices, (parts.right * diagonals) @ parts.left, atol=1e-12)
    np.testing.assert_array_equal(masses, parts.masses())


def test_a_model_for_some_of_the_patterns_keeps_their_rates():
    model = model_of("JC+PSR3")
    model.set_sites(model.sites.with_categories(np.array([0.5, 1.0, 2.0]), np.array([0, 2, 1, 2, 0]), np.ones(5)))
    assert model.of_patterns(np.array([1, 2, 4])).sites.category_of.tolist() == [2, 1, 0]
    assert model.sites.category_of.tolist() == [0, 2, 1, 2, 0]
    assert model.sites.weights == (0.4, 0.2, 0.4)
    assert model_of("JC+PSR3").of_patterns(np.array([0, 3])).sites.category_of is None


def braces(number):
    return "{" + "/".join(["0.5"] * number) + "}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"UNREST{braces(12)}", f"UNREST{braces(12)}"),
        (f"GTR20{braces(190)}+FU{braces(20)}", "GTR20{190 values, see the record}+F{20 values, see the record}"),
        ("GTR{9.129357069222289/57.9114463932829/1.0}+I{0.1}", "GTR{9.129/57.91/1}+I{0.1}"),
        ("HKY{1.0/12345.678}+G4{1.25e-05}", "HKY{1/1.235e+04}+G4{1.25e-05}"),
        (f"M1a{braces(2)}{braces(2)}+FU{braces(13)}", f"M1a{braces(2)}{braces(2)}+F{{13 values, see the record}}"),
        (f"MATRIX{{{'|'.join('x' * 13)}}}+I", "MATRIX{13 states, see the record}+I"),
        (f"MATRIX{{ABCDEFGHIJKLMNO}}{braces(105)}", "MATRIX{ABCDEFGHIJKLMNO}{105 values, see the record}"),
    ],
)
def test_long_lists_of_values_are_counted_where_a_model_is_shown(text, shown):
    assert shorten_model(text) == shown
