"""Covarion models: lnL and gradients against a slow oracle, limits, simulation, and searches."""

import numpy as np
import pytest
from five_taxa import ENDS, LENGTHS, TREE, rows_of
from oracles.covarion import covarion_lnl, covarion_matrix
from oracles.likelihood import derivative
from oracles.models import processes_of
from oracles.substitution import q_matrix
from scipy.linalg import expm
from slopes import assert_slopes, disturb

import plltool
from plltool.codec import from_arrays, to_arrays
from plltool.model.model import Model
from plltool.model.model_string import parse_model
from plltool.model.vector import get_vector, scale_slope, set_vector

STEP = 1e-3
NUMPY, OPENCL, LANES = {"device": "numpy"}, {"device": "opencl"}, {"device": "opencl", "vw": 32}


def oracle_lnl(model, tips, factor=1.0):
    return covarion_lnl(ENDS, LENGTHS * factor, tips, processes_of(model), *model.switching)


CASES = [
    *((text, 4, NUMPY) for text in ("JC+COV", "GTR+FO+G2+COV", "HKY+FO+I+G2+COV", "K80+R2+COV{0.3/2}")),
    ("TN93+FO+I+COV", 4, NUMPY),
    *((text, 4, NUMPY) for text in ("RY3.4+COV", "WS4.4b+I+G2+COV")),
    *((text, 3, NUMPY) for text in ("MULTI3_GTR+COV", "MULTI3_MK+G2+COV")),
    ("BIN+G2+COV", 2, NUMPY),
    ("MULTI5_ORDERED+FO+COV", 5, NUMPY),
    *((text, 20, NUMPY) for text in ("WAG+FO+COV", "EX2+I+COV", "LG+C10+COV")),
    ("GY+F3X4+COV", 61, NUMPY),
    ("M1a+FE+COV", 61, NUMPY),
]
CASES += [
    pytest.param(text, n, device, marks=pytest.mark.opencl)
    for text, n, devices in (
        *(("GTR+FO+COV", 4, (OPENCL, LANES)), ("MK4.4b+G2+COV", 4, (OPENCL,))),
        ("LG+COV", 20, (OPENCL,)),
    )
    for device in devices
]
CASES.append(pytest.param("MULTI5_MK+COV", 5, LANES, marks=[pytest.mark.opencl, pytest.mark.slow]))


@pytest.mark.parametrize(("text", "n_states", "device"), CASES)
def test_likelihood_and_every_parameter(text, n_states, device):
    """Of many parameters eight; the difference of fourth order leaves about 1e-8 of a slope."""
    rows, tips = rows_of(n_states)
    with plltool.Likelihood(rows, TREE, text, **device) as likelihood:
        inner = likelihood._likelihood
        model = disturb(inner, 0.3)
        chosen = set(np.random.default_rng(3).permutation(len(get_vector(model)))[:6].tolist())
        if "switching" in model.free_parameters:
            chosen |= {k for k, name in enumerate(_names_of(model)) if name == "switching"}
        tolerance = {"rel": 1e-6, "abs": 1e-6}
        matrices = assert_slopes(inner, lambda one: oracle_lnl(one, tips), STEP, sorted(chosen), **tolerance)
    expected = derivative(lambda t: oracle_lnl(model, tips, np.exp(t)), 0.0, STEP)[0]
    assert scale_slope(model, matrices) == pytest.approx(expected, rel=1e-6)


def _names_of(model):
    return [name for name in model.free_parameters for _ in model.ratios(name)]


@pytest.mark.parametrize(("model", "n_states"), [("GTR+G4{0.5}", 4), ("LG+I", 20), ("GY+F3X4", 61)])
def test_fast_switching_is_no_switching(model, n_states):
    """Within about (substitutions per unit of length) / (switches) of lnL; likewise if sites are never off."""
    rows, _ = rows_of(n_states)
    plain = plltool.evaluate(rows, TREE, model, fixed=True, device="numpy").lnl
    fast = plltool.evaluate(rows, TREE, f"{model}+COV{{1e7/3e7}}", fixed=True, device="numpy").lnl
    always_on = plltool.evaluate(rows, TREE, f"{model}+COV{{1/1e-9}}", fixed=True, device="numpy").lnl
    assert fast == pytest.approx(plain, abs=1e-3)
    assert always_on == pytest.approx(plain, abs=1e-4)


def test_no_switching_is_invariable_sites():
    """Sites that never switch are on with p, which is +I with 1 - p."""
    rows, _ = rows_of(4)
    still = plltool.evaluate(rows, TREE, "HKY{1/3}+IU{0.6}", fixed=True, device="numpy").lnl
    stays = plltool.evaluate(rows, TREE, "HKY{1/3}+COV{4e-9/6e-9}", fixed=True, device="numpy").lnl
    assert stays == pytest.approx(still, abs=1e-5)


def test_strings_and_records():
    model = Model(parse_model("HKY+FO+COV+G4"))
    assert str(model.spec) == "HKY+FO+G4+COV"
    assert model.free_parameters == ("rates", "frequencies", "switching", "alpha")
    assert model.n_free_parameters == 7
    set_vector(model, get_vector(model) + 0.3)
    again = Model(parse_model(model.to_string()))
    assert again.free_parameters == ()
    assert again.to_string() == model.to_string()
    kept = Model(model.spec)
    kept.assign(from_arrays(to_arrays(model)))
    np.testing.assert_array_equal(get_vector(kept), get_vector(model))


def test_ascertainment_bias():
    """Sites are given to vary: the oracle's likelihood of the column that has state c everywhere, for each c."""
    rows = {"a": "0123", "b": "1013", "c": "2100", "d": "0312", "e": "1201"}
    tips = np.eye(4)[[[int(c) for c in row] for row in rows.values()]]
    found = plltool.evaluate(rows, TREE, "MULTI4_MK+COV{0.5/2}+ASC", fixed=True, device="numpy").lnl
    components = [(1.0, np.full(4, 0.25), q_matrix(np.ones(6), np.full(4, 0.25)), 1.0)]

    def lnl(cells):
        return covarion_lnl(ENDS, LENGTHS, cells, components, 0.5, 2)

    same = sum(np.exp(lnl(np.tile(np.eye(4)[c], (5, 1, 1)))) for c in range(4))
    assert found == pytest.approx(lnl(tips) - 4 * np.log(1 - same), rel=1e-10)


def test_parts_with_and_without_switching():
    """Parts of the same data whose processes have different numbers of states."""
    rows, _ = rows_of(4)
    whole = plltool.evaluate(rows, TREE, "JC, a = 1-9\nJC+COV{1/2}, b = 10-24", fixed=True, device="numpy").lnl
    first = plltool.evaluate({k: v[:9] for k, v in rows.items()}, TREE, "JC", fixed=True, device="numpy").lnl
    second = plltool.evaluate({k: v[9:] for k, v in rows.items()}, TREE, "JC+COV{1/2}", fixed=True, device="numpy").lnl
    assert whole == pytest.approx(first + second, rel=1e-11)


def test_states_at_inner_nodes():
    """Of a star of three tips: the state at its centre is on or off, and so are those of the tips in joint states."""
    rows, lengths, (on, off) = {"a": "A", "b": "C", "c": "A"}, [0.1, 0.2, 0.3], (0.7, 1.9)
    found = plltool.ancestral_states(rows, "(a:0.1,b:0.2,c:0.3);", "JC+COV{0.7/1.9}", fixed=True, device="numpy")
    q = q_matrix(np.ones(6), np.full(4, 0.25))
    marginal = []
    for state in range(4):
        tips = np.eye(4)[[[0], [1], [0], [state]]]
        branches = [(0, 4), (1, 4), (2, 4), (3, 4)]
        marginal.append(covarion_lnl(branches, [*lengths, 0.0], tips, [(1.0, np.full(4, 0.25), q, 1.0)], on, off))
    expected = np.exp(marginal) / np.exp(marginal).sum()
    np.testing.assert_allclose(np.ravel(found.ancestors[0].probabilities), expected, rtol=1e-10)
    matrix, share = covarion_matrix(q, 1.0, on, off), on / (on + off)
    joint = np.log(np.repeat([share / 4, (1 - share) / 4], 4))
    for tip, length in zip((0, 1, 0), lengths, strict=True):
        joint += np.log(expm(matrix * length))[:, [tip, tip + 4]].max(axis=1)
    assert found.ancestors[0].joint.tolist() == [[joint.argmax() % 4]]
    assert found.ancestors[0].joint_lnl == pytest.approx(joint.max(), rel=1e-10)


@pytest.mark.opencl
def test_simulation_recovers_the_parameters():
    """Under slow switching of 8,000 sites; standard errors are some per cent."""
    tree = "(((a:0.3,b:0.3):0.3,(c:0.3,d:0.3):0.3):0.3,(e:0.3,f:0.3):0.3,(g:0.3,h:0.3):0.3);"
    simulated = plltool.simulate(tree, "K80{1/4}+COV{0.5/1.0}", 8_000, seed=5)
    data = dict(zip(simulated.names, simulated.sequences, strict=True))
    found = plltool.evaluate(data, tree, "K80+COV", **OPENCL)
    switching = found.parameters["switching"]
    assert switching["off_to_on"] == pytest.approx(0.5, rel=0.25)
    assert switching["on_to_off"] == pytest.approx(1.0, rel=0.25)
    assert found.tree.lengths.sum() == pytest.approx(0.3 * 13, rel=0.1)
    plain = plltool.evaluate(data, found.tree, "K80", **OPENCL)
    assert found.lnl > plain.lnl + 50


@pytest.mark.opencl
def test_search(shared):
    found = plltool.search(shared / "data/primates.phy", "HKY+F+COV", effort="fast", device="opencl")
    plain = plltool.evaluate(shared / "data/primates.phy", found.tree, "HKY+F", device="opencl")
    assert found.lnl > plain.lnl + 10
    assert "+COV{" in found.model
