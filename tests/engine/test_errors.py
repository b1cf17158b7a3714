"""What an engine refuses: likelihoods of 0, by pattern, and arrays that do not fit its layout."""

import dataclasses
import warnings

import numpy as np
import pytest
from engine_kinds import Kind
from helpers import evaluate_edges, jukes_cantor_mixture, lnl_of_sites, numpy_engine, plain_engine, random_mixture

from plltool.engine import program as prog
from plltool.engine.base import EngineData
from plltool.engine.layout import Layout
from plltool.errors import DeviceError, EngineError

AT_ZERO = np.array([0.0])
APART = np.array([0.1])
PARTS = (34, 36)  # pattern 33 is the last of its part, and padding follows
MIXTURE = jukes_cantor_mixture(n_components=4)  # as many as in other tests of all kinds


def contradictory(at, n_patterns=70):
    """Two tips that agree except in pattern `at`, impossible over a branch of length 0."""
    codes = np.ones((2, n_patterns), dtype=int)
    codes[1, at] = 2
    return codes


@pytest.mark.parametrize("at", [0, 1, 33, 69])
def test_a_likelihood_of_zero_names_the_pattern(any_kind, make_engine, at):
    engine = make_engine(any_kind, 1, contradictory(at), np.ones(70), [MIXTURE] * 2, PARTS)
    with pytest.raises(EngineError, match=rf"likelihood of pattern {at} is not positive"):
        evaluate_edges(engine, [(~0, ~1, 0)], AT_ZERO)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_part_and_the_branches_are_named(any_kind, make_engine):
    engine = make_engine(any_kind, 1, contradictory(40), np.ones(70), [MIXTURE] * 2, PARTS)
    lengths = np.array([0.25, 0.0, 0.5])
    engine.run(prog.propagate(0, ~0, 1), lengths)
    assert np.isfinite(evaluate_edges(engine, [(~0, ~1, 0), (~0, ~1, 2)], lengths)).all()
    with pytest.raises(EngineError, match=r"pattern 40 is not .* finite of part 1, across branches of length 0$"):
        evaluate_edges(engine, [(~0, ~1, 0), (~0, ~1, 1), (~0, ~1, 2)], lengths)
    with pytest.raises(EngineError, match=r"pattern 40 is not .* of part 1, across branches of length 0, 0$"):
        engine.execute(prog.Request(prog.insert(0, ~1, 1, ~0, 1, 0), 1), lengths)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_request_that_makes_numbers_refuses(any_kind, make_engine):
    engine = make_engine(any_kind, 1, contradictory(40), np.ones(70), [MIXTURE])
    engine.run(prog.propagate(0, ~0, 0), AT_ZERO)
    for request in (
        lambda: engine.derivatives([(~0, ~1, 0)], AT_ZERO),
        lambda: engine.triplets([(~0, 0, ~1, 0, ~1, 0)], AT_ZERO),
        lambda: engine.execute(prog.Request(prog.insert(0, ~1, 0, ~1, 0, 0), 1), AT_ZERO),
        lambda: lnl_of_sites(engine, ~0, ~1, 0, AT_ZERO),
    ):
        with pytest.raises(EngineError, match=r"likelihood of pattern 40 is not positive"):
            request()


def test_an_engine_goes_on_after_an_error(any_kind, make_engine):
    codes = contradictory(3)
    codes[1, 50] = 4
    engine = make_engine(any_kind, 1, codes, np.ones(70), [MIXTURE] * 2, (20, 50))
    for _ in range(2):
        with pytest.raises(EngineError, match="pattern 3 "):
            evaluate_edges(engine, [(~0, ~1, 0)], AT_ZERO)
        assert np.isfinite(evaluate_edges(engine, [(~0, ~1, 0)], APART)).all()
    with pytest.raises(EngineError, match="pattern 50 "):  # part 0 apart, part 1 not
        evaluate_edges(engine, [(~0, ~1, 0)], np.array([[0.1], [0.0]]))


@pytest.mark.parametrize(("weight", "length"), [(0, 0.0), (1, np.nan)], ids=["no weight", "no length"])
def test_what_weighs_nothing_or_has_no_length_is_refused_too(few_kind, make_engine, weight, length):
    weights = np.ones(70)
    weights[5] = weight
    engine = make_engine(few_kind, 1, contradictory(5), weights, [MIXTURE])
    with pytest.raises(EngineError, match="pattern 5 " if length == 0 else "is not positive and finite"):
        evaluate_edges(engine, [(~0, ~1, 0)], np.array([length]))


def test_an_empty_set_of_states_is_refused(few_kind, make_engine):
    codes = np.ones((2, 9), dtype=int)
    codes[0, 7] = 0
    with pytest.raises(EngineError, match="code 0 of taxon 0, pattern 7 is an empty set"):
        make_engine(few_kind, 1, codes, np.ones(9), [MIXTURE])


def test_errors_come_without_warnings():
    engine = numpy_engine(1, contradictory(5), np.ones(70), [MIXTURE])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(EngineError):
            evaluate_edges(engine, [(~0, ~1, 0)], AT_ZERO)


# --- arrays that do not fit ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "weights", "message"),
    [
        *((shape, (6,), r"codes have shape .* the layout \(3, 6\)") for shape in ((2, 6), (3, 5), (5, 3))),
        *(((3, 6), shape, r"weights have shape .* expected \(6,\)") for shape in ((5,), (2, 6), (6, 1))),
    ],
)
def test_data_that_do_not_fit(codes, weights, message):
    with pytest.raises(EngineError, match=message):
        plain_engine(Layout(4, 1, 3, (6,), 2), 1, EngineData(np.ones(codes, dtype=int), np.ones(weights)))


@pytest.mark.parametrize(
    "mixtures",
    [
        [random_mixture(np.random.default_rng(1), 4, 2)],
        [random_mixture(np.random.default_rng(1), 4, 2)] * 3,
        [random_mixture(np.random.default_rng(1), 4, 2), random_mixture(np.random.default_rng(1), 4, 1)],
        [random_mixture(np.random.default_rng(1), 2, 2)] * 2,
    ],
    ids=["too few parts", "too many parts", "components", "states"],
)
def test_models_that_do_not_fit(few_kind, make_engine, mixtures):
    fitting = [random_mixture(np.random.default_rng(1), 4, 2)] * 2
    engine = make_engine(few_kind, 1, np.ones((2, 6), dtype=int), np.ones(6), fitting, (2, 4))
    with pytest.raises(EngineError, match="2 parts of 4 states and 2 components"):
        engine.set_model([mixture.components for mixture in mixtures])


def test_the_last_eigenvalue_is_exactly_zero(few_kind, make_engine):
    """The OpenCL kernel leaves its term out."""
    mixture = random_mixture(np.random.default_rng(1))
    engine = make_engine(few_kind, 1, np.ones((2, 6), dtype=int), np.ones(6), [mixture])
    values = mixture.components.eigenvalues.copy()
    values[0, -1] = 1e-17
    with pytest.raises(EngineError, match="last eigenvalue"):
        engine.set_model([dataclasses.replace(mixture.components, eigenvalues=values)])


@pytest.mark.opencl
def test_a_tile_larger_than_the_largest_buffer(make_engine, opencl_device):
    tiny = dataclasses.replace(opencl_device, max_allocation=1000)
    with pytest.raises(DeviceError, match="largest buffer of the device: found 1000 bytes"):
        make_engine(Kind("vector", 4, 8), 10, contradictory(1), np.ones(70), [MIXTURE], device=tiny)
