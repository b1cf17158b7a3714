"""Start values of a model from those of another: what a nested model describes, the wider one describes as well."""

import numpy as np
import pytest

from plltool.alignment.spaces import translation
from plltool.analyses.selection.carry import carry_over
from plltool.constants import MIN_EXCHANGEABILITY
from plltool.model.model import Model
from plltool.model.model_string import parse_model

FREQUENCIES = [0.4, 0.3, 0.2, 0.1]


def model(text):
    return Model(parse_model(text), FREQUENCIES)


def mixture(own, factor=1.0):
    """Weights by rates, which are multiplied by the factor; rates equal to 3 digits are one, rare ones none."""
    rates, weights = own.sites.categories()
    total = {}
    for rate, weight in zip((factor * rates).round(3).tolist(), weights.tolist(), strict=True):
        total[rate] = total.get(rate, 0.0) + weight
    return {rate: weight for rate, weight in total.items() if weight > 1e-9}


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("JC", "GTR+G4"),
        ("JC", "JC+I"),
        ("K80{3.0}+G4{0.5}", "TIM2uf+I+G4"),
        ("HKY{3.0}+FU{0.4/0.3/0.2/0.1}+G4{0.5}", "GTR+R4"),
        ("HKY{3.0}+FU{0.4/0.3/0.2/0.1}+G4{0.5}", "HKY+R6"),
        ("JC+I{0.2}", "JC+I+G4"),
        ("JC+R2{0.5/2}{0.6/0.4}", "JC+R3"),
    ],
)
def test_an_exact_start_is_the_nested_model(narrow, wide):
    source = model(narrow)
    [(start, factor)] = carry_over(source, parse_model(wide), FREQUENCIES, exact=True)
    relative = start.exchangeabilities / start.exchangeabilities[-1]
    assert relative == pytest.approx(source.exchangeabilities / source.exchangeabilities[-1], rel=1e-12)
    assert start.frequencies == pytest.approx(source.frequencies, rel=1e-12)
    assert mixture(start, factor) == pytest.approx(mixture(source), abs=1e-6)


@pytest.mark.parametrize(
    ("narrow", "wide", "exact"),
    [
        ("GTR{1/2/3/4/5/6}+FU{0.4/0.3/0.2/0.1}", "UNREST", True),
        ("STRSYM{2/3/1/0.5/4/1}", "UNREST", True),
        ("UNREST{2/5/1/0.5/1/9/3/1/0.6/1.5/8/1}", "STRSYM", False),
        ("UNREST{2/5/1/0.5/1/9/3/1/0.6/1.5/8/1}", "GTR", False),
        ("UNREST{2/5/1/0.5/1/9/3/1/0.6/1.5/8/1}", "JC+FO", False),
    ],
)
def test_rates_of_changes_are_carried_over(narrow, wide, exact):
    """Between models with rates both ways and those with exchangeabilities: as many changes between any two bases."""

    def changes(own):
        [q], [pi] = own.components().rate_matrices(), own.components().frequencies
        flow = pi[:, None] * q
        np.fill_diagonal(flow, 0.0)
        return flow / flow.sum()

    source = model(narrow)
    [(start, _)] = carry_over(source, parse_model(wide), FREQUENCIES)
    before, after = changes(source), changes(start)
    if exact:
        assert after == pytest.approx(before, rel=1e-9)
    elif wide == "GTR":
        assert after + after.T == pytest.approx(before + before.T, rel=1e-9)
    assert start.frequencies == pytest.approx(source.frequencies, rel=1e-9) or wide == "STRSYM"


def test_rates_of_another_model_are_kept_within_bounds():
    """Those between states that are not neighbours are all but 0 in ORDERED."""
    [(start, _)] = carry_over(model("MULTI4_ORDERED"), parse_model("MULTI4_GTR"), FREQUENCIES)
    rare = MIN_EXCHANGEABILITY
    assert start.exchangeabilities.tolist() == [1.0, rare, rare, 1.0, rare, 1.0]


def test_parameters_of_codon_models_are_kept_by_name():
    counted = [1 / 61] * 61
    source = Model(parse_model("GY0K{0.3}+F3X4"), counted)
    [(start, _)] = carry_over(source, parse_model("GY+F1X4"), counted)
    assert start.rate_parameters == {"omega": 0.3, "kappa": 1.0}
    start.set_rate_parameter("kappa", 5.0)
    [(other, _)] = carry_over(start, parse_model("MGK+F1X4"), counted)
    assert other.rate_parameters == {"omega": 0.3, "kappa": 5.0}


@pytest.mark.parametrize(
    ("narrow", "wide", "expected"),
    [
        ("ECMK07_GY{0.7/0.6}", "ECMK07_GY2K", {"omega": 0.7, "kappa_transition": 0.6, "kappa_transversion": 1.0}),
        ("ECMK07_GY1KTV{0.7/0.6}", "ECMK07_GY2K", {"omega": 0.7, "kappa_transition": 1.0, "kappa_transversion": 0.6}),
        ("MGK{0.7/4}", "MG2K", {"omega": 0.7, "kappa_transition": 4.0, "kappa_transversion": 1.0}),
        ("GY{0.7/4}+F1X4", "M1a+F1X4", {"omega0": 0.1, "kappa": 4.0}),
    ],
)
def test_a_parameter_of_codon_models_is_that_of_the_same_changes(narrow, wide, expected):
    """Whatever its name; kappa is one for transitions, or for transversions. Omegas of classes begin where they do."""
    counted = [1 / 61] * 61
    source = Model(parse_model(narrow), counted)
    [(start, _)] = carry_over(source, parse_model(wide), counted)
    assert start.rate_parameters == expected


def shares(model):
    """Of changes of the amino acid, and of changes with a transition, among all changes."""
    aligned = [tuple(pair.split("-")) for pair in model.spec.named.pairs]
    upper = np.triu_indices(61, 1)
    changes = model.exchangeabilities * np.outer(model.frequencies, model.frequencies)[upper]
    amino_acid = translation(1)
    replaced = np.array([amino_acid[a] != amino_acid[b] for a, b in aligned])
    differing = [[x + y for x, y in zip(a, b, strict=True) if x != y] for a, b in aligned]
    transition = np.array([any(d in ("AG", "GA", "CT", "TC") for d in own) for own in differing])
    return [changes[replaced].sum() / changes.sum(), changes[transition].sum() / changes.sum()]


@pytest.mark.parametrize("name", ["ECMrest_GY", "ECMK07_GY"])
def test_published_codon_models_start_with_as_many_changes(name):
    """From a model without their exchangeabilities, with which their omega and kappa mean something else."""
    counted = [1 / 61] * 61
    source = Model(parse_model("GY{0.7/4}"), counted)
    [(plain, _), (start, _)] = carry_over(source, parse_model(name), counted)
    assert plain.rate_parameters == {"omega": 1.0, "kappa": 1.0}
    assert shares(start) == pytest.approx(shares(source), abs=1e-3)


def test_published_codon_models_are_special_cases_of_those_with_omega():
    [(start, _)] = carry_over(Model(parse_model("ECMK07")), parse_model("ECMK07_GY2K"), None, exact=True)
    assert start.exchangeabilities.tolist() == Model(parse_model("ECMK07")).exchangeabilities.tolist()


def test_a_rate_is_added_beside_the_old_ones():
    source = model("JC+R2{0.5/2}{0.6/0.4}")
    old, old_weights = source.sites.categories()
    starts = carry_over(source, parse_model("JC+R3"), FREQUENCIES)
    assert len(starts) > 10
    for start, factor in starts:
        rates, weights = start.sites.categories()
        assert weights @ rates == pytest.approx(1.0, abs=1e-12)
        kept = [int(np.argmin(abs(factor * rates - rate))) for rate in old]
        assert factor * rates[kept] == pytest.approx(old, rel=1e-12)
        assert weights[kept] / weights[kept].sum() == pytest.approx(old_weights, rel=1e-12)


def test_merged_rates_keep_the_number_of_changes():
    source = model("GTR{1/2/3/4/5/1}+FU{0.4/0.3/0.2/0.1}")
    [(start, _)] = carry_over(source, parse_model("HKY"), FREQUENCIES)
    flows = {}
    for own in (source, start):
        pi, r = own.frequencies, own.exchangeabilities
        flow = r * [pi[0] * pi[1], pi[0] * pi[2], pi[0] * pi[3], pi[1] * pi[2], pi[1] * pi[3], pi[2] * pi[3]]
        flows[own.spec.name] = (flow[1] + flow[4]) / flow.sum()
    assert flows["GTR"] == pytest.approx(flows["HKY"], rel=1e-12)


def test_free_rates_do_not_lead_to_gamma_rates():
    assert carry_over(model("JC+R2{0.5/2}{0.6/0.4}"), parse_model("JC+G4"), FREQUENCIES) == []
    assert carry_over(model("JC+R2{0.5/2}{0.6/0.4}"), parse_model("JC+R4"), FREQUENCIES) == []
