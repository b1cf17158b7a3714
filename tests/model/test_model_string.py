import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from plltool.errors import InputError
from plltool.model.model_string import parse_model
from plltool.model.nucleotides import ALIASES, EQUAL_FREQUENCY_MODELS, FREE_FREQUENCY_MODELS, symmetry
from plltool.model.proteins import GTR20, MIXTURES, TIED_RATES, canonical_names
from plltool.model.rates import SiteRates
from plltool.model.spec import ModelSpec, find_named

FREQUENCIES = (0.28, 0.21, 0.24, 0.27)
RATES = (1.2, 3.4, 0.8, 1.1, 4.1, 1.0)


def gamma(n, alpha):
    return SiteRates("gamma", n, alpha=alpha)


GTR_GIVEN = ModelSpec("GTR", "given", rates=RATES, frequencies=FREQUENCIES)
RAXML_GTR, RAXML_FU = "GTR{1.2/3.4/0.8/1.1/4.1/1.0}", "+FU{0.28/0.21/0.24/0.27}"
IQTREE_GTR, IQTREE_F = "GTR{1.2,3.4,0.8,1.1,4.1}", "+F{0.28,0.21,0.24,0.27}"

STILL = SiteRates(invariable=True, pinv=0.2)
WEIGHTS = (0.3, 0.45, 0.25)
MEAN = math.fsum((0.3 * 0.1, 0.45 * 0.8, 0.25 * 2.5))  # 1.015, rounded as the parser does

# the strings with which RAxML-NG and IQ-TREE computed the reference likelihoods of DNA, and what they mean
REFERENCE_STRINGS = [
    ("JC", "JC", ModelSpec("JC", "equal")),
    ("K80{1.0/2.5}", "K80{2.5}", ModelSpec("K80", "equal", rates=(1.0, 2.5))),
    ("F81+FC", "F81+F", ModelSpec("F81", "empirical")),
    ("HKY{1.0/3.0}+FC+G4{0.5}", "HKY{3.0}+F+G4{0.5}", ModelSpec("HKY", "empirical", gamma(4, 0.5), (1.0, 3.0))),
    (RAXML_GTR + RAXML_FU, IQTREE_GTR + IQTREE_F, GTR_GIVEN),
    (
        RAXML_GTR + RAXML_FU + "+G4{0.45}",
        IQTREE_GTR + IQTREE_F + "+G4{0.45}",
        ModelSpec("GTR", "given", gamma(4, 0.45), RATES, FREQUENCIES),
    ),
    (
        RAXML_GTR + RAXML_FU + "+G8{0.3}",
        IQTREE_GTR + IQTREE_F + "+G8{0.3}",
        ModelSpec("GTR", "given", gamma(8, 0.3), RATES, FREQUENCIES),
    ),
    (RAXML_GTR + RAXML_FU + "+IU{0.2}", IQTREE_GTR + IQTREE_F + "+I{0.2}", replace(GTR_GIVEN, sites=STILL)),
    (
        RAXML_GTR + RAXML_FU + "+IU{0.2}+G4{0.7}",
        IQTREE_GTR + IQTREE_F + "+I{0.2}+G4{0.7}",
        replace(GTR_GIVEN, sites=replace(gamma(4, 0.7), invariable=True, pinv=0.2)),
    ),
    (
        RAXML_GTR + RAXML_FU + "+R3{0.1/0.8/2.5}{0.3/0.45/0.25}",
        IQTREE_GTR + IQTREE_F + "+R3{0.3,0.1,0.45,0.8,0.25,2.5}",
        replace(GTR_GIVEN, sites=SiteRates("free", 3, rates=(0.1 / MEAN, 0.8 / MEAN, 2.5 / MEAN), weights=WEIGHTS)),
    ),
    (RAXML_GTR + "+FC+G4{0.45}", IQTREE_GTR + "+F+G4{0.45}", ModelSpec("GTR", "empirical", gamma(4, 0.45), RATES)),
]


@pytest.mark.parametrize(("raxml_ng", "iqtree", "expected"), REFERENCE_STRINGS)
def test_both_programs_strings_mean_the_same(raxml_ng, iqtree, expected):
    assert parse_model(raxml_ng) == expected
    assert parse_model(iqtree) == expected


def test_every_reference_of_dna_is_one_of_these(shared):
    references = json.loads((shared / "reference" / "fixed.json").read_text())
    of_dna = [references[name] for name in references.keys() - {"aa140", "avian"}]
    rows = [row for own in of_dna for label, row in own.items() if label != "bl_optimised"]
    assert rows
    pairs = {(row["raxml_ng"]["model"], row["iqtree3"]["model"]) for row in rows}
    assert pairs <= {(raxml_ng, iqtree) for raxml_ng, iqtree, _ in REFERENCE_STRINGS}


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("jc", "JC"),
        ("  GTR+G ", "GTR+FO+G4"),
        ("gtr + fo + g4", "GTR+FO+G4"),
        ("GTR+G4m{0.5}", "GTR+FO+G4{0.5}"),
        ("GTR+G{.5}+F", "GTR+F+G4{0.5}"),
        ("K2P+FQ", "K80"),
        ("trnEF", "TN93ef"),
        ("SYM+FC", "SYM+F"),
        ("GTR+FE", "GTR+FE"),
        ("TIM2", "TIM2"),
        ("TIM", "TIM1uf+FO"),
        ("010010", "DNA010010+FO"),
        ("DNA012345+FE", "DNA012345+FE"),
        ("K80{2.0/5.0}", "K80{1.0/2.5}"),
        ("K80+FU{0.1/0.2/0.3/0.4}", "K80+FU{0.1/0.2/0.3/0.4}"),
        ("JC+I", "JC+IO"),
        ("JC+G+i{0.25}", "JC+IU{0.25}+G4"),
        ("JC+IU{0.000000}+G", "JC+G4"),
        ("JC+IC+G", "JC+IC+G4"),
        ("JC+I+R4", "JC+IO+R4"),
        ("JC+GA", "JC+GA4"),
        ("JC+GA8{0.5}", "JC+GA8{0.5}"),
        ("JC+G8a", "JC+GA8"),
        ("JC+R", "JC+R4"),
        ("JC+I+R2{0.5/1.5}{0.5/0.5}", "JC+IO+R2{0.5/1.5}{0.5/0.5}"),
        ("JC+R2{0.25,3,0.75,1}", "JC+R2{2.0/0.6666666666666666}{0.25/0.75}"),
        ("lg", "LG"),
        ("jtt-dcmut+f", "JTTDCMut+F"),
        ("PROTGTR", "GTR20+FO"),
        ("Q.PFAM+G", "Q.pfam+G4"),
        ("LG4X", "LG4X+R4"),
        ("LG4M+I", "LG4M+IO+G4"),
        ("LG4M+R", "LG4M+R4"),
        ("lg+c20+g", "LG+C20+G4"),
        ("GTR20+C10", "GTR20+C10"),
        ("LG+C20+F+G4", "LG+C20+F+G4"),
        ("GTR20+FO+C10", "GTR20+C10+FO"),
        ("LG+FQ+C10", "LG+C10+FE"),
        ("Poisson+FO", "Poisson+FO"),
        ("EX2{0.25/0.75}+G", "EX2{0.25/0.75}+G4"),
        ("JC+asc+G", "JC+G4+ASC_LEWIS"),
        ("JC+B+ASC_FELS{5}", "JC+ASC_FELS{5.0}+B"),
        ("jc+asc_stam{1,2,0,4}", "JC+ASC_STAM{1.0/2.0/0.0/4.0}"),
        # MK of variable columns, as users of MrBayes and RevBayes call it
        ("MKv+G4", "MK+G4+ASC_LEWIS"),
        ("MULTI3_MKV", "MULTI3_MK+ASC_LEWIS"),
        ("MULTI*_MKV", "MULTI*_MK+ASC_LEWIS"),
    ],
)
def test_canonical_form(text, canonical):
    assert str(parse_model(text)) == canonical


@pytest.mark.parametrize(
    ("text", "exchangeabilities"),
    [
        # RAxML-NG: values in the order of the digits; GT is of the first class, then of the last
        ("TN93{1/2/3}", (1, 2, 1, 1, 3, 1)),
        ("TPM2{2/3/1}", (2, 3, 2, 1, 3, 1)),
        ("101101{3/1}", (1, 3, 1, 1, 3, 1)),
        ("DNA543210{1/2/3/4/5/6}", (6, 5, 4, 3, 2, 1)),
        ("030060{2/4/8}", (1, 2, 1, 1, 4, 1)),
        # IQ-TREE (as version 2 prints them in its report): the class of GT left out, the others as they first occur
        ("TN93{2,3}", (1, 2, 1, 1, 3, 1)),
        ("TPM2{2,3}", (2, 3, 2, 1, 3, 1)),
        ("TIM3{2,3,4}", (2, 3, 1, 2, 4, 1)),
        ("101101{3}", (1, 3, 1, 1, 3, 1)),
    ],
)
def test_order_of_rates(text, exchangeabilities):
    spec = parse_model(text)
    assert tuple(spec.named.rates.exchangeabilities(np.array(spec.rates))) == exchangeabilities


@pytest.mark.parametrize(("name", "code"), (EQUAL_FREQUENCY_MODELS | FREE_FREQUENCY_MODELS).items())
def test_default_frequencies_follow_the_name(name, code):
    """And its code is renumbered."""
    expected = "equal" if name in EQUAL_FREQUENCY_MODELS else "optimised"
    for spelling in (name, name.lower(), name.upper()):
        assert parse_model(spelling) == ModelSpec(name, expected)
    assert symmetry(parse_model(code).name) == code


def test_aliases():
    for alias, name in ALIASES.items():
        assert parse_model(alias) == parse_model(name)


def test_frequencies_are_normalised():
    spec = parse_model("F81+FU{0.3/0.2/0.2/0.2995}")
    assert sum(spec.frequencies) == pytest.approx(1, abs=1e-15)
    assert spec.frequencies[0] / spec.frequencies[1] == pytest.approx(1.5, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot read nothing at character 1"),
        ("GTR+", "cannot read nothing at character 5"),
        ("GTR G4", "cannot read 'GTR G4' at character 1"),
        ("GTR+G4{0.5", "cannot read 'G4{0.5' at character 5"),
        ("XYZ+G4", "'XYZ' at character 1: unknown model; accepted: JC, "),
        ("GTRGAMMA", "unknown model; did you mean GTR+G4?"),
        ("GTRGAMMAI", "unknown model; did you mean GTR+I+G4?"),
        ("PROTGAMMAILGF", "unknown model; did you mean LG+F+I+G4?"),
        ("PROTCATFLU", "unknown model; did you mean FLU+CAT?"),
        ("GTTR", "unknown model; did you mean GTR?"),
        ("HKY85X", "unknown model; did you mean HKY?"),
        ("GTR+GAMMA", "'+GAMMA' at character 4: unknown part of a model; did you mean +G4?"),
        ("LG{1/2}", "the exchangeabilities of this model are published"),
        ("LG4X+G8", "expected 4 categories of rates, one for each matrix"),
        ("EX2+F", "the matrices of EX2 have frequencies of their own"),
        ("EX2{0.2/0.3/0.5}", "expected 2 weights, found 3"),
        ("GTR+C20", "profiles need a single protein matrix"),
        ("LG4X+C20", "profiles need a single protein matrix"),
        ("LG+C20{1}", "expected 20 weights, found 1"),
        ("LG+FU{0.5/0.5}", "expected 20 state frequencies (A R N D C Q E G H I L K M F P S T W Y V), found 2"),
        ("GTR20{1/2/3}", "expected 190 exchangeabilities (AR AN .. YV), found 3"),
        ("GTR20{wag.dat}", "expected a number, found 'wag.dat'"),
        ("JC{1.0}", "only one exchangeability"),
        ("GTR{1/2/3/4/5}", "expected 6 rates separated by slashes"),
        ("GTR{1,2,3,4,5,6}", "expected 5 rates separated by commas"),
        ("K80{1,2}", "found 2"),
        ("K80{1/x}", "expected a number, found 'x'"),
        ("K80{}", "expected a number, found ''"),
        ("GTR{1/2,3/4/5/6}", "expected a number"),
        ("K80{1/0}", "positive numbers, from 1e-09 to 1e+09, found 0"),
        ("K80{nan}", "found nan"),
        ("K80{1e-7/1e7}", "relative to that of GT"),
        ("GTR+IC{0.2}", "'+IC{0.2}' at character 4: expected +I or +IO without a value, or +IU{share}"),
        ("GTR+IC+ASC", "(+ASC) take no invariable sites (+I)"),
        ("GTR+G4+IU", "'+IU' at character 7: expected +I or +IO without a value, or +IU{share}"),
        ("GTR+IO{0.2}", "expected +I or +IO without a value"),
        ("GTR+I+IU{0.2}", "invariable sites given twice"),
        ("GTR+IU{1}", "the proportion of invariable sites must lie between 1e-10 and 0.99, found 1"),
        ("GTR+IU{0.1/0.2}", "expected one value, the share; found 2"),
        ("GTR+G+R", "rates across sites given twice"),
        ("GTR+R2{0.1/0.8/2.5}{0.3/0.45/0.25}", "expected 2 rates and 2 weights"),
        ("GTR+R2{0.1/2}{0.3/0.3}", "weights of rates must sum to 1, found 0.6"),
        ("GTR+R2{0.3,0.1,0.7}", "expected 2 rates and 2 weights"),
        ("GTR+ASC{5}", "'+ASC{5}' at character 4: expected no numbers of unseen invariable sites; found 1"),
        ("GTR+ASC_X", "unknown correction; accepted: +ASC or +ASC_LEWIS, +ASC_FELS{n}, +ASC_STAM{n/n/...}"),
        ("GTR+ASC_FELS", "expected 1 number of unseen invariable sites; found 0"),
        ("GTR+ASC_FELS{1/2}", "expected 1 number of unseen invariable sites; found 2"),
        ("GTR+ASC_FELS{0}", "numbers of unseen invariable sites must be positive numbers, from 1e-09 to 1e+09,"),
        ("GTR+ASC_STAM{1/2/3}", "of unseen invariable sites, one for each of the states A C G T; found 3"),
        ("GTR+ASC_STAM{1/2/-3/4}", "numbers of unseen invariable sites must be numbers, from 0 to 1e+09, found -3"),
        ("GTR+ASC+ASC_LEWIS", "correction for ascertainment bias given twice"),
        ("GTR+PSR+ASC", "(+ASC) take no invariable sites (+I) and no per-site rates (+PSR)"),
        ("GTR+X4", "'+X4' at character 4: unknown part of a model; accepted: +FE, "),
        ("GTR+F+FO", "base frequencies given twice"),
        ("GTR+G1", "expected 2 to 64 categories"),
        ("GTR+G65", "expected 2 to 64 categories"),
        ("GTR+G4{0.01}", "alpha must lie between 0.02 and 1e+10, found 0.01"),
        ("GTR+G4{nan}", "found nan"),
        ("GTR+G4{1/2}", "expected one value, alpha; found 2"),
        ("GTR+FU", "+FU{A/C/G/T}"),
        ("GTR+FO{0.1/0.2/0.3/0.4}", "takes no values"),
        ("GTR+FU{0.3/0.3/0.4}", "expected 4 base frequencies (A C G T), found 3"),
        ("GTR+FU{0.3/0.3/0.4/0}", "found 0"),
        ("GTR+FU{0.3/0.3/0.3/0.2}", "must sum to 1, found 1.1"),
        # multistate
        ("MULTI1_MK", "'MULTI1_MK' at character 1: expected 2 to 64 states"),
        ("MULTI65_GTR", "'MULTI65_GTR' at character 1: expected 2 to 64 states"),
        ("MULTI5_JC", "unknown model"),
        ("MK{1/2/3}", "values need a number of states, such as MULTI3_MK{...}"),
        ("MULTI3_MK{1/2/3}", "the exchangeabilities of this model are fixed, so no values in braces are accepted"),
        ("MULTI3_GTR{1/2}", "expected 3 exchangeabilities (01 02 12), found 2"),
        ("MK+FU{0.5/0.5}", "given frequencies need a model with a number of states, such as MULTI3_MK"),
        ("MULTI3_MK+FU{0.5/0.5}", "expected 3 state frequencies (0 1 2), found 2"),
        # per-site rates
        ("JC+PSR0", "expected 1 to 64 categories"),
        ("JC+PSR2{1}", "expected 2 rates, found 1"),
        ("JC+PSR{1/2}", "expected 25 rates, found 2"),
        ("JC+I+PSR", "take no invariable sites"),
        ("LG4X+PSR", "(+I), no switching (+COV) and no mixture"),
        # not time-reversible
        ("UNREST+FO", "the frequencies of UNREST follow from its rates, so no others are accepted"),
        ("STRSYM+PSR", "per-site rates (+PSR) need a time-reversible model"),
        ("UNREST{1/2}", "expected 12 rates separated by slashes: one per distinct rate; found 2"),
        ("STRSYM{1/2/3/4/5/0}", "must be positive"),
        ("NQ.pfam+C20", "profiles need a single protein matrix"),
        ("NQ.pfam{1}", "are published"),
        # Lie Markov
        ("RY8.8{0.1,0.2}", "expected 7 weights separated by commas, found 2"),
        ("RY8.8{0.1/0.2}", "expected 8 parameters separated by slashes; found 2"),
        ("RY2.2b{1.0}", "weights must lie between -0.999 and 0.999, found 1"),
        ("RY2.2b{nan}", "weights must lie between"),
        ("RY2.2b{1/0}", "parameters must be positive numbers"),
        ("RY2.2b{1e-8/1e8}", "parameters relative to the one that is 1 must be positive"),
        ("RY8.9", "unknown model"),
        # switching
        ("GTR+COV{1}", "'+COV{1}' at character 4: expected 2 rates, from off to on and from on to off; found 1"),
        ("GTR+COV{1/0}", "rates of switching must be positive numbers, from 1e-09 to 1e+09, found 0"),
        ("UNREST+COV", "switching needs a time-reversible model"),
        # variable columns
        ("MKV+ASC_FELS{3}", "correction for ascertainment bias given twice"),
        ("MKV+I", "take no invariable sites"),
        ("ORDEREDV", "unknown model"),
        ("MULTI3_GTRV", "unknown model"),
        # codons
        ("GY{0.3}", "'GY{0.3}' at character 1: expected 2 values (omega, kappa), found 1"),
        ("GY{0.3/0}", "kappa must lie between 0.001 and 1000, found 0"),
        ("GY{-1/2}", "omega must lie between 1e-06 and 1000, found -1"),
        ("GY{0.3/2}{1}", "expected GY{omega/kappa}"),
        ("M1a{2/2}", "omega0 must lie between 1e-06 and 1, found 2"),
        ("M2a{0.1/0.5/2}", "omega2 must lie between 1 and 1000, found 0.5"),
        ("M1a{0.1/2}", "expected M1a{omega0/kappa}{weights of classes}"),
        ("M1a{0.1/2}{0.5/0.2/0.3}", "expected M1a{omega0/kappa}{weights of classes}"),
        ("M1a{0.1/2}{0.5/0.6}", "weights of classes must sum to 1, found 1.1"),
        ("MG+F", "'+F' at character 3: MG needs codon frequencies that follow from bases: +F1X4, +F3X4 or +FE"),
        ("HKY+F3X4", "'+F3X4' at character 4: frequencies of bases in codons need a codon model, such as GY"),
        ("GY+F3X4{0.1}", "takes no values; given frequencies are written +FU{AAA/AAC/.../TTT}"),
        ("SCHN05+F", "the empirical codon model of Schneider, Cannarozzi & Gonnet is not supported; accepted: "),
        ("CODON2_KOSI07_GY", "empirical codon models under other codes than the standard one are not supported"),
        ("ECMrest_MG", "empirical codon models with frequencies of bases are not supported"),
        ("ECMK07{0.2}", "the exchangeabilities of this model are published, so no values in braces are accepted"),
        ("ECMK07_M2a", "unknown model"),
        ("CODON7_GY", "unknown model"),
    ],
)
def test_refusals_are_one_line_that_says_why(text, words):
    with refused(words, f"model {text!r}: "):
        parse_model(text)


positive = st.floats(1e-4, 1e4)


def shares(draw, n):
    values = draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n))
    return "{" + "/".join(repr(value / sum(values)) for value in values) + "}"


@st.composite
def site_modifiers(draw):
    """Optional invariable sites and rates across sites."""
    still = draw(st.sampled_from(["", "+I", "+IO", "+I{0.25}", f"+IU{{{draw(st.floats(1e-6, 0.99))!r}}}"]))
    rates = draw(st.sampled_from(["", "+G", "+G4", "+G64", "+g2M", "+GA", "+GA8", "+G3a", "+R", "+R2", "given"]))
    if "g" in rates.lower() and rates != "given" and draw(st.booleans()):
        rates += f"{{{draw(st.floats(0.02, 100))!r}}}"
    if rates == "given":
        n = draw(st.integers(2, 6))
        given = draw(st.lists(positive, min_size=n, max_size=n))
        rates = f"+R{n}{{{'/'.join(map(repr, given))}}}{shares(draw, n)}"
    return [still, rates]


@st.composite
def protein_strings(draw):
    """Any accepted string of a protein model."""
    name = draw(st.sampled_from(sorted(set(canonical_names().values()))))
    if name in TIED_RATES:
        return name + draw(st.sampled_from(["", "+I", "+G", "+R4", "+GA4{0.3}", "+R{1/2/3/4}{0.25/0.25/0.25/0.25}"]))
    if name in MIXTURES:
        weights = draw(st.sampled_from(["", shares(draw, len(MIXTURES[name]))]))
        return name + weights + "".join(draw(site_modifiers()))
    if not find_named(name).is_reversible:
        return name + "".join(draw(site_modifiers()))
    values = ""
    if name == GTR20 and draw(st.booleans()):
        values = "{" + "/".join(map(repr, draw(st.lists(positive, min_size=190, max_size=190)))) + "}"
    frequencies = draw(st.sampled_from(["", "+F", "+FO", "+FE", "+C10", "+C60", "+F+C10", "+FU" + shares(draw, 20)]))
    frequencies += draw(st.sampled_from(["", "+COV", "+COV{0.5/2.0}"]))
    return name + values + frequencies + "".join(draw(site_modifiers()))


@st.composite
def model_strings(draw):
    """Any accepted model string."""
    codes = EQUAL_FREQUENCY_MODELS | FREE_FREQUENCY_MODELS
    name = draw(st.one_of(st.sampled_from(sorted(codes)), st.from_regex(r"[0-9]{6}", fullmatch=True)))
    if draw(st.booleans()):
        return draw(protein_strings())
    n_classes = len(set(codes.get(name, name)))
    parts = [name]
    if n_classes > 1 and draw(st.booleans()):
        separator, n_values = draw(st.sampled_from([("/", n_classes), (",", n_classes - 1)]))
        values = draw(st.lists(positive, min_size=n_values, max_size=n_values))
        parts.append("{" + separator.join(map(repr, values)) + "}")
    modifiers = [draw(st.sampled_from(["", "+F", "+FC", "+FO", "+FE", "+FQ", "given"]))]
    if modifiers[0] == "given":
        values = draw(st.lists(st.floats(0.01, 1), min_size=4, max_size=4))
        modifiers[0] = "+FU{" + "/".join(repr(value / sum(values)) for value in values) + "}"
    modifiers += draw(site_modifiers())
    return "".join(parts + draw(st.permutations(modifiers)))


@given(model_strings())
def test_printed_form_is_read_back(text):
    spec = parse_model(text)
    assert parse_model(str(spec)) == spec


@given(st.text("GTRJCKHYFOIULXW0123+{}/,.eE- \n", max_size=30))
def test_anything_is_read_or_refused(text):
    try:
        spec = parse_model(text)
    except InputError:
        return
    assert parse_model(str(spec)) == spec


# --- binary and multistate data -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical", "n_states", "mode"),
    [
        ("BIN+G4", "BIN+FO+G4", 2, "optimised"),
        ("GTR2+FQ", "BIN+FE", 2, "equal"),
        ("MULTI2_GTR", "BIN+FO", 2, "optimised"),
        ("jc2+F", "JC2+F", 2, "empirical"),
        ("multi02_mk", "JC2", 2, "equal"),
        ("MULTI5_MK+R3", "MULTI5_MK+R3", 5, "equal"),
        ("MULTI64_GTR+FC", "MULTI64_GTR+F", 64, "empirical"),
        ("MULTI7_ORDERED+FO", "MULTI7_ORDERED+FO", 7, "optimised"),
        ("MK", "MK", 0, "equal"),
        ("MULTI_MK", "MK", 0, "equal"),
        ("ORDERED+I", "ORDERED+IO", 0, "equal"),
        ("GTRX+G4", "GTRX+FO+G4", 0, "optimised"),
        ("MULTI*_MK", "MULTI*_MK", 0, "equal"),
        ("MULTI3_GTR{2/4/1}", "MULTI3_GTR{2.0/4.0/1.0}+FO", 3, "optimised"),
        ("MULTI3_GTR{2,4}", "MULTI3_GTR{2.0/4.0/1.0}+FO", 3, "optimised"),
        ("MULTI3_GTR{4/8/2}", "MULTI3_GTR{2.0/4.0/1.0}+FO", 3, "optimised"),
        ("MULTI2_MK+FU{0.2/0.8}", "JC2+FU{0.2/0.8}", 2, "given"),
    ],
)
def test_models_of_multistate_data(text, canonical, n_states, mode):
    """Names of RAxML-NG and IQ-TREE: MK and ORDERED have equal frequencies, GTR optimised ones."""
    spec = parse_model(text)
    assert (str(spec), spec.data, spec.n_states, spec.frequency_mode) == (canonical, "multistate", n_states, mode)
    assert parse_model(str(spec)) == spec
    assert spec.with_states(7).n_states == (n_states or 7)
    assert spec.splits_columns == ("*" in text)


# --- per-site rates -----------------------------------------------------------------------------------------

PER_SITE = {
    "JC+PSR": SiteRates("psr", 25),
    "JC+CAT": SiteRates("psr", 25),
    "jc+psr4": SiteRates("psr", 4),
    "JC+CAT1": SiteRates("psr", 1),
    "JC+PSR3{0.2/1/4}": SiteRates("psr", 3, rates=(0.2, 1.0, 4.0)),
}


@pytest.mark.parametrize("text", PER_SITE)
def test_per_site_rates(text):
    spec = parse_model(text)
    assert spec.sites == PER_SITE[text]
    assert parse_model(str(spec)) == spec
    assert "+PSR" in str(spec)
