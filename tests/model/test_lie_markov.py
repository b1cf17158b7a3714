"""Lie Markov models: closure, rays and time reversal from their definitions; rates, names and lnL of IQ-TREE 2.0.7."""

import numpy as np
import pytest
from analyses.test_rooted import IQTREE_TREE, PRIMATES, SMALL

import plltool
from plltool.errors import InputError
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.nucleotides import LIE_MODELS, PAIRINGS, WITHOUT_PAIRS, basis_of, find_rays

PAIRED = {"RY": ("AG", "CT"), "WS": ("AT", "CG"), "MK": ("AC", "GT")}
# -m RY8.8{0.3,0.2,0.1,-0.2,0.6,0.1,0.2} of IQ-TREE 2.0.7: rates AC AG AT CA CG CT GA GC GT TA TC TG
IQTREE_WEIGHTS = (0.3, 0.2, 0.1, -0.2, 0.6, 0.1, 0.2)
IQTREE_RATES = (0.4, 1.8, 0.4, 1.2, 1.2, 0.6, 2.0667, 0.4, 0.4, 1.2, 1.1333, 1.2)
REVERSIBLE = {"1.1", "2.2b", "3.3a", "3.3c", "3.4", "4.4a", "4.4b"}
EQUAL_TO = {"1.1": "JC", "2.2b": "K80", "3.3a": "K81", "3.3c": "TN93ef"}  # Woodhams et al. 2015, table 1


def matrices(name):
    """(dimension, 4, 4) the basis matrices, whose rows sum to 0."""
    basis = basis_of(name)
    found = np.zeros((basis.shape[1], 4, 4))
    found[:, ~np.eye(4, dtype=bool)] = basis.T
    found[:, range(4), range(4)] = -found.sum(axis=2)
    return found


def canonical(pairing, model):
    return model if model in WITHOUT_PAIRS else pairing + model


@pytest.mark.parametrize("pairing", PAIRINGS)
def test_the_name_counts_dimensions_and_rays(pairing):
    for model in LIE_MODELS:
        basis = basis_of(canonical(pairing, model))
        rays = find_rays(basis)
        dimension, n_rays = model.rstrip("abc").split(".")
        assert np.linalg.matrix_rank(basis) == basis.shape[1] == int(dimension)
        assert rays.shape[1] == int(n_rays)
        assert rays.min() == 0.0 or model == "1.1"
        assert np.linalg.matrix_rank(np.hstack([basis, rays])) == int(dimension)


@pytest.mark.parametrize("model", LIE_MODELS)
def test_closed(model):
    """Products of exp(Q) are closed if Q R - R Q is in the space for all Q and R of it."""
    found = matrices(canonical("WS", model))
    flat = found.reshape(len(found), -1)
    brackets = [(a @ b - b @ a).ravel() for a in found for b in found]
    assert np.linalg.matrix_rank(np.vstack([flat, brackets])) == len(found)


@pytest.mark.parametrize("model", LIE_MODELS)
def test_symmetry(model):
    """The space stays the same if the members of a pair change places, or the pairs; without pairs, under all."""
    for pairing, (first, second) in PAIRED.items():
        found = matrices(canonical(pairing, model))
        swaps = [(first, first[::-1]), (first + second, second + first)]
        swaps += [("ACGT", "CGTA")] * (model in WITHOUT_PAIRS)
        for old, new in swaps:
            places = ["ACGT".index(dict(zip(old, new, strict=True)).get(base, base)) for base in "ACGT"]
            moved = found[:, places][:, :, places]
            both = np.vstack([found.reshape(len(found), -1), moved.reshape(len(found), -1)])
            assert np.linalg.matrix_rank(both) == len(found)


def test_weights_as_another_program_reads_them():
    model = Model(parse_model(f"RY8.8{{{','.join(map(str, IQTREE_WEIGHTS))}}}"))
    rates = model.exchangeabilities
    assert rates / rates.mean() == pytest.approx(np.array(IQTREE_RATES) / np.mean(IQTREE_RATES), abs=5e-5)
    assert parse_model("8.8") == parse_model("ry8.8")


@pytest.mark.parametrize("model", [model for model in LIE_MODELS if model != "1.1"])
def test_every_matrix_has_parameters(model):
    """Rates close to and far from the walls of the cone are found again, in every pairing."""
    rng = np.random.default_rng(3)
    for pairing in PAIRINGS:
        basis = basis_of(canonical(pairing, model))
        weights = rng.uniform(-0.95, 0.95, basis.shape[1] - 1).round(3)
        found = Model(parse_model(f"{pairing}{model}{{{','.join(map(repr, weights.tolist()))}}}"))
        change = basis[:, 1:] @ weights
        expected = 1 - change * np.abs(weights).max() / change.min()
        rates = found.exchangeabilities
        assert rates / rates.mean() == pytest.approx(expected / expected.mean(), rel=1e-10)
        assert Model(parse_model(found.to_string())).exchangeabilities.tolist() == rates.tolist()


@pytest.mark.parametrize("model", LIE_MODELS)
def test_reversible(model):
    named = parse_model(canonical("MK", model)).named
    assert named.is_reversible == (model in REVERSIBLE)
    assert named.is_directed
    assert Model(parse_model(model)).n_free_parameters == int(model.split(".")[0]) - 1


@pytest.mark.parametrize(("model", "other"), EQUAL_TO.items())
def test_models_that_have_other_names(model, other):
    """The rates AC AG AT CG CT GT of the other model, as classes, in both directions."""
    found = Model(parse_model(model))
    free = np.exp(np.random.default_rng(4).normal(0, 1, len(found.ratios("rates"))))
    found.set_ratios("rates", free)
    components = found.components()
    named = Model(parse_model(other))
    rates = found.exchangeabilities
    named.set_exchangeabilities(rates[[0, 1, 2, 4, 5, 8]])
    assert components.is_reversible
    assert components.transition_matrices(0.3) == pytest.approx(named.components().transition_matrices(0.3), abs=1e-12)


def test_rates_cannot_be_set():
    with pytest.raises(InputError, match=r"of RY8\.8 follow from weights of rays and cannot be set"):
        Model(parse_model("RY8.8")).set_exchangeabilities(np.ones(12))


# -m MODEL -te IQTREE_TREE -blfix: lnL of the checkpoint
IQTREE_LNL = """
1.1 -6945.514890  WS2.2b{-0.71} -6767.162590  3.3a{0.0,0.19} -6935.768980  RY3.3b{-0.9,-0.67} -7908.798928
WS3.3c{0.81,-0.82} -8070.556201  MK3.4{-0.7,0.85} -6784.372963  4.4a{0.23,-0.25,0.02} -7319.302121
WS4.4b{0.31,-0.43,-0.69} -7835.272154  MK4.5a{0.55,0.32,0.02} -7005.676185  RY4.5b{0.6,0.09,0.91} -7867.791375
WS5.6a{-0.56,0.1,-0.03,-0.28} -6835.635773  MK5.6b{0.17,-0.5,0.57,0.7} -7743.652697
RY5.7a{-0.71,-0.06,-0.42,-0.79} -7465.426294  WS5.7b{0.75,-0.13,-0.67,0.33} -7301.723948
MK5.7c{-0.57,0.76,-0.54,-0.89} -6751.636898  RY5.11a{-0.57,-0.29,-0.06,0.77} -7489.834481
WS5.11b{0.37,-0.31,-0.92,-0.65} -7670.627246  MK5.11c{0.94,-0.08,0.36,-0.85} -7228.371721
RY5.16{-0.89,0.66,0.17,-0.36} -7243.131714  WS6.6{-0.35,-0.78,-0.62,-0.9,0.64} -6816.452724
6.7a{-0.06,-0.71,0.45,-0.58,-0.83} -7489.321285  RY6.7b{0.19,0.75,-0.9,0.58,-0.59} -6807.655549
WS6.8a{-0.77,-0.92,-0.39,0.43,-0.01} -6917.564809  MK6.8b{0.67,-0.54,-0.35,-0.46,0.91} -7645.866488
RY6.17a{0.84,-0.3,-0.12,-0.35,0.47} -6913.922048  WS6.17b{-0.87,-0.82,-0.18,-0.48,0.66} -6780.518605
MK8.8{0.46,0.09,0.31,0.37,0.53,0.81,-0.67} -7257.202980  RY8.10a{0.24,-0.68,-0.11,0.54,0.75,0.49,-0.88} -7352.524452
WS8.10b{-0.27,-0.64,0.95,-0.68,-0.49,-0.27,-0.83} -7149.210600
MK8.16{0.7,0.26,-0.65,0.0,-0.8,0.21,-0.51} -7822.147520  RY8.17{-0.88,-0.73,0.1,0.26,-0.33,0.27,-0.28} -7421.635309
WS8.18{-0.7,-0.35,-0.2,0.78,-0.73,-0.79,0.12} -6995.830988
MK9.20a{0.88,0.77,0.38,-0.82,0.58,0.35,-0.68,-0.07} -6953.329133
9.20b{-0.86,0.57,0.42,0.58,0.49,-0.44,0.55,-0.48} -7605.346032
WS10.12{-0.69,-0.21,0.0,-0.41,0.2,0.19,-0.49,0.23,-0.27} -6935.964066
MK10.34{0.45,-0.4,0.57,-0.16,0.1,0.33,0.03,-0.46,0.91} -7670.829910
12.12{-0.77,-0.33,0.09,-0.9,-0.66,0.57,0.54,0.26,0.76,0.49,-0.38} -7491.586208
"""
# -m MODEL+G4 -te IQTREE_TREE
IQTREE_OPTIMISED = [("RY8.8", -5715.322566), ("RY2.2b", -5955.832256)]


def test_the_lnl_of_another_program(device):
    models, lnls = IQTREE_LNL.split()[::2], IQTREE_LNL.split()[1::2]
    step = 1 if device == "numpy" else 6
    found = [plltool.evaluate(PRIMATES, IQTREE_TREE, model, fixed=True, device=device).lnl for model in models[::step]]
    assert found == pytest.approx([*map(float, lnls[::step])], abs=1e-5)


@pytest.mark.parametrize(("model", "lnl"), IQTREE_OPTIMISED)
def test_optimised_as_well_as_elsewhere(model, lnl):
    result = plltool.evaluate(PRIMATES, IQTREE_TREE, f"{model}+G4", device="numpy")
    assert result.lnl > lnl - 0.01
    again = plltool.evaluate(PRIMATES, result.newick, result.model, fixed=True, device="numpy")
    assert again.lnl == pytest.approx(result.lnl, abs=1e-8)


def test_simulated_rates_come_back():
    """A model with more rays than dimensions; 10,000 sites leave errors of a tenth or so."""
    name = "WS5.7a{0.4,-0.3,0.5,0.2}"
    data = plltool.simulate(SMALL, name, 10000, seed=5)
    result = plltool.evaluate(data.as_sequences(), SMALL, "WS5.7a", device="numpy")
    expected = Model(parse_model(name)).exchangeabilities
    found = result.models[0].exchangeabilities
    assert found / found.mean() == pytest.approx(expected / expected.mean(), abs=0.25)


def test_a_reversible_member_has_no_root():
    data = plltool.simulate(SMALL, "RY3.4{0.5,0.4}", 500, seed=2).as_sequences()
    result = plltool.search(data, "RY3.4", seed=1, effort="fast")
    assert not result.tree.is_rooted
    assert plltool.alrt(data, result.newick, "RY3.4", replicates=100).lnl == pytest.approx(result.lnl, abs=0.05)
