"""Free mixtures, such as MIX{GTR+FO,GTR+FO}: their matrices, parameters and lnL."""

import numpy as np
import pytest
from oracles.likelihood import brute_force, dna_columns
from oracles.substitution import gamma_category_means, q_matrix

import plltool
from plltool.errors import InputError
from plltool.io.model_reader import read_model
from plltool.model.model import Model
from plltool.model.vector import get_bounds, get_vector, set_vector

NUMPY = {"device": "numpy"}
EMPIRICAL = np.array([0.35, 0.25, 0.15, 0.25])
BRANCHES, LENGTHS = [(0, 5), (1, 5), (5, 6), (2, 6), (6, 7), (3, 7), (4, 7)], [0.1, 0.3, 0.05, 0.2, 0.15, 0.4, 0.1]
FIVE = "((a:0.1,b:0.3):0.05,c:0.2,(d:0.4,e:0.1):0.15);"
ROWS = {"a": "ACGTACGGTA", "b": "ACGAACTGTA", "c": "ATGTACGCTC", "d": "GCGTTCGGTC", "e": "GCATACAGTN"}
TREE = (
    "(Tarsius_syrichta:0.1975689860,Lemur_catta:0.1491553888,((((((Homo_sapiens:0.0414092131,Pan:0.0546511888):"
    "0.0192408414,Gorilla:0.0556002808):0.0543585496,Pongo:0.0933543597):0.0315823430,Hylobates:0.1100650409):"
    "0.0596577334,(((Macaca_fuscata:0.0154244664,M_mulatta:0.0217526462):0.0307720205,M_fascicularis:0.0479791361):"
    "0.0305239846,M_sylvanus:0.0617223621):0.1266376343):0.0523302398,Saimiri_sciureus:0.1949615585):0.1040716484);"
)
# Of IQ-TREE 2.0.7, -te TREE -m 'MIX{HKY,K2P}' -me 0.0001: the lnL, the tree above and the values; it has K2P's kappa at
# its bound, 100
IQTREE_LNL = -5974.1156
IQTREE = "MIX{HKY{4.25392}+FU{0.324121/0.30402/0.105528/0.266331}:1:0.8484,K2P{100}:1:0.1516}"
# The lnL of MIX{HKY,HKY}, at which IQ-TREE 2.0.7 ends with two equal classes: that of HKY+F
EQUAL_LNL = -5984.5428


@pytest.mark.parametrize(
    ("text", "name", "groups", "number"),
    [
        # numbers of parameters as IQ-TREE 2.0.7 counts them, without those of branches
        ("MIX{HKY+F,K2P}", "MIX{HKY+F,K80}", ("rates", "class_weights"), 6),
        ("MIX{HKY+F,GTR+F}", "MIX{HKY+F,GTR+F}", ("rates", "class_weights"), 10),
        ("MIX{GTR+F,GTR+F}", "MIX{GTR+F,GTR+F}", ("rates", "class_weights"), 14),
        # 2 x 5 rates, 2 x 3 frequencies, a weight, alpha
        ("mix{gtr+fo, gtr+fo}+g4", "MIX{GTR+FO,GTR+FO}+G4", ("rates", "frequencies", "class_weights", "alpha"), 18),
        ("MIX{LG+F,WAG+F}", "MIX{LG+F,WAG+F}", ("class_weights",), 20),
        ("MIX{LG+FO,WAG}+I", "MIX{LG+FO,WAG}+IO", ("frequencies", "class_weights", "pinv"), 21),
        ("MIX{GTR{1,2,3,4,5}+FO:2:1,JC:1:3}", None, ("frequencies",), 3),
    ],
)
def test_reading_and_writing(text, name, groups, number):
    spec = read_model(text)
    assert name is None or str(spec) == name
    assert read_model(str(spec)) == spec
    model = Model(spec, np.full(spec.n_states, 1 / spec.n_states))
    assert (model.free_parameters, model.n_free_parameters) == (groups, number)
    fixed = Model(read_model(model.to_string()))
    assert fixed.n_free_parameters == 0
    for mine, theirs in zip(fixed.rate_matrices(), model.rate_matrices(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_lnl_is_the_sum_over_the_classes():
    """Each class has its matrix, of one substitution in its own frequencies, and its rate; their mean rate is 1."""
    model = Model(read_model("MIX{HKY+F:0.5,GTR+FO:2,K80{3}+FU{0.1/0.2/0.3/0.4}}+G2{0.7}"), EMPIRICAL)
    rng = np.random.default_rng(3)
    set_vector(model, rng.normal(0, 0.5, len(get_vector(model))))
    ratios = np.exp(get_vector(model))
    kappa, five, frequencies, shares = ratios[0], ratios[1:6], ratios[6:9], np.append(ratios[9:], 1)
    weights = shares / shares.sum()
    own = [
        ([1, kappa, 1, 1, kappa, 1], EMPIRICAL),
        ([*five, 1], np.append(frequencies, 1) / (frequencies.sum() + 1)),
        ([1, 3, 1, 1, 3, 1], np.array([0.1, 0.2, 0.3, 0.4])),
    ]
    rates = np.array([0.5, 2, 1]) / (weights @ [0.5, 2, 1])
    components = [
        (weight / 2, pi, q_matrix(rows, pi) * rate * gamma)
        for weight, (rows, pi), rate in zip(weights, own, rates, strict=True)
        for gamma in gamma_category_means(0.7, 2)
    ]
    expected = brute_force(BRANCHES, LENGTHS, dna_columns(ROWS, ROWS), components).sum()
    for text in (model, model.to_string()):
        with plltool.Likelihood(ROWS, FIVE, text, **NUMPY) as likelihood:
            assert likelihood.lnl() == pytest.approx(expected, rel=1e-12)


def test_as_iqtree(primates):
    found = plltool.evaluate(primates, TREE, IQTREE, fixed=True, **NUMPY)
    assert found.lnl == pytest.approx(IQTREE_LNL, abs=0.01)  # it prints four digits of the weights
    free = plltool.evaluate(primates, TREE, "MIX{HKY+F,K2P{100}}", **NUMPY)
    assert free.lnl == pytest.approx(IQTREE_LNL, abs=0.05)  # its epsilon
    assert free.parameters["class_weights"] == pytest.approx([0.8484, 0.1516], abs=0.002)
    assert free.parameters["class_models"][1]["frequencies"] == dict.fromkeys("ACGT", 0.25)
    assert free.parameters["class_models"][0]["rates"]["AG"] == pytest.approx(4.25392, abs=0.02)


def test_equal_classes_leave_the_saddle(primates):
    """Where IQ-TREE stays; and the order of classes changes nothing."""
    found = plltool.evaluate(primates, TREE, "MIX{HKY+F,HKY+F}", **NUMPY)
    assert found.lnl > EQUAL_LNL + 3
    assert abs(np.log(found.parameters["class_models"][0]["rates"]["AG"])) > 1
    again = plltool.evaluate(primates, found.tree, found.model, fixed=True, **NUMPY)
    assert again.lnl == pytest.approx(found.lnl, abs=1e-8)
    lnls = [plltool.evaluate(primates, TREE, f"MIX{{{names}}}", **NUMPY).lnl for names in ("HKY+F,JC", "JC,HKY+F")]
    assert lnls[0] == pytest.approx(lnls[1], abs=0.01)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5])
def test_all_classes_start_apart(n_classes):
    model = Model(read_model(f"MIX{{{','.join(['HKY+FO'] * n_classes)}}}"), EMPIRICAL)
    kappas = np.log(model.classes.exchangeabilities[:, 1])
    assert np.diff(np.sort(kappas)).min() > 0.01
    assert np.diff(np.sort(model.classes.frequencies[:, 0])).min() > 0.001
    np.testing.assert_allclose(model.classes.frequencies.sum(axis=1), 1)
    low, high = np.array(get_bounds(model)).T
    assert np.all((low < get_vector(model)) & (get_vector(model) < high))


def test_what_was_simulated_is_found():
    """Two classes that differ in all: each is found within the errors of 20,000 sites."""
    true = "MIX{HKY{1}+FU{0.4/0.1/0.1/0.4}:1:0.3,HKY{8}+FU{0.15/0.35/0.35/0.15}:1:0.7}"
    tree = "((((a:0.2,b:0.3):0.1,c:0.2):0.1,(d:0.4,e:0.1):0.15):0.1,(f:0.3,g:0.3):0.2,(h:0.2,i:0.2):0.1);"
    data = plltool.simulate(tree, true, 20_000, seed=1).as_sequences()
    given = plltool.evaluate(data, tree, true, **NUMPY)
    found = plltool.evaluate(data, tree, "MIX{HKY+FO,HKY+FO}", **NUMPY)
    assert 0 < found.lnl - given.lnl < 15  # 9 parameters more: half a chi-square of 9 degrees of freedom
    classes = sorted(found.parameters["class_models"], key=lambda own: own["rates"]["AG"])
    assert [own["rates"]["AG"] for own in classes] == pytest.approx([1, 8], rel=0.2)
    assert classes[0]["frequencies"]["A"] == pytest.approx(0.4, abs=0.03)
    assert classes[1]["frequencies"]["A"] == pytest.approx(0.15, abs=0.03)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("MIX{GTR+FO,LG}", "found models of DNA and protein data, expected one kind"),
        ("MIX{GTR+FO+G4,JC}", r"found 'GTR\+FO\+G4' in a mixture, expected a reversible model of DNA or proteins"),
        ("MIX{UNREST,GTR}", "found 'UNREST' in a mixture"),
        ("MIX{GTR}", "found one class, expected two or more"),
        ("MIX{GTR,}", "found one class, expected two or more"),
        ("MIX{GY,GY}", "found 'GY.*' in a mixture"),
        ("MIX{RY8.8,GTR}", "found '.*' in a mixture"),
        ("MIX{GTR:1:0.5,JC}", "found 1 weights for 2 classes, expected all or none"),
        ("MIX{GTR:0,JC}", "rates of classes must be positive numbers"),
        ("MIX{GTR,HKX}", "'HKX' at character 1: unknown model"),
        ("MIX{GTR,HKY}+FO", "have frequencies of their own"),
        ("MIX{GTR,HKY}+PSR", "take no"),
    ],
)
def test_what_is_refused(text, problem):
    with pytest.raises(InputError, match=problem):
        read_model(text)
