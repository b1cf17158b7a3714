"""Lie Markov models: closure, rays and time reversal from their definitions; rates and names as IQ-TREE has them."""

import numpy as np
import pytest

from plltool.errors import InputError
from plltool.model.lie_markov import MODELS, PAIRINGS, WITHOUT_PAIRS, basis_of, find_rays
from plltool.model.model import Model
from plltool.model.model_string import parse_model

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
    for model in MODELS:
        basis = basis_of(canonical(pairing, model))
        rays = find_rays(basis)
        dimension, n_rays = model.rstrip("abc").split(".")
        assert np.linalg.matrix_rank(basis) == basis.shape[1] == int(dimension)
        assert rays.shape[1] == int(n_rays)
        assert rays.min() == 0.0 or model == "1.1"
        assert np.linalg.matrix_rank(np.hstack([basis, rays])) == int(dimension)


@pytest.mark.parametrize("model", MODELS)
def test_closed(model):
    """Products of exp(Q) are closed if Q R - R Q is in the space for all Q and R of it."""
    found = matrices(canonical("WS", model))
    flat = found.reshape(len(found), -1)
    brackets = [(a @ b - b @ a).ravel() for a in found for b in found]
    assert np.linalg.matrix_rank(np.vstack([flat, brackets])) == len(found)


@pytest.mark.parametrize("model", MODELS)
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


@pytest.mark.parametrize("model", [model for model in MODELS if model != "1.1"])
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


@pytest.mark.parametrize("model", MODELS)
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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("RY8.8{0.1,0.2}", "expected 7 weights separated by commas, found 2"),
        ("RY8.8{0.1/0.2}", "expected 8 parameters separated by slashes; found 2"),
        ("RY2.2b{1.0}", "weights must lie between -0.999 and 0.999, found 1"),
        ("RY2.2b{nan}", "weights must lie between"),
        ("RY2.2b{1/0}", "parameters must be positive numbers"),
        ("RY2.2b{1e-8/1e8}", "parameters relative to the one that is 1 must be positive"),
        ("RY8.9", "unknown model"),
        ("RY8.8+F", "the frequencies of RY8.8 follow from its rates"),
        ("RY8.8+C10", "profiles need a single protein matrix"),
    ],
)
def test_refused(text, problem):
    with pytest.raises(InputError) as raised:
        parse_model(text)
    assert problem in str(raised.value)


def test_rates_cannot_be_set():
    with pytest.raises(InputError, match=r"of RY8\.8 follow from weights of rays and cannot be set"):
        Model(parse_model("RY8.8")).set_exchangeabilities(np.ones(12))
