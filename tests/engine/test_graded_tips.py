"""Tips that give each state a likelihood: a table for few states, too, and kernels that loop over states."""

import numpy as np
import pytest
from agreement import Case
from engine_kinds import FEW_KINDS, WIDEST, Kind, as_params
from oracles.likelihood import pruning

from plltool.engine.codes import encode_tips

pytestmark = pytest.mark.usefixtures("unoptimised")
NUMPY_RTOL = 1e-12  # both double, short sums
OPENCL_RTOL = 1e-11  # the order of sums differs
SINGLE_RTOL = 1e-5  # as in test_many_states.py

SHAPES = [(4, 2), (2, 2), (10, 1)]  # states, components


def make_case(n_states=4, n_components=2, parts=(9, 35), **more):
    return Case([n_states, *parts], 5, parts, n_states, n_components, graded=True, n_ambiguous=40, **more)


def test_brute_force(few_kind, make_engine):
    case = make_case(parts=(3, 2))
    expected, engine = case.site_lnl(), case.engine(make_engine, few_kind)
    for branch in range(len(case.ends)):
        np.testing.assert_allclose(case.sites_on(engine, branch), expected, rtol=NUMPY_RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params(FEW_KINDS[1:]))
@pytest.mark.parametrize(("n_states", "n_components"), SHAPES)
def test_every_request(make_engine, kind, n_states, n_components):
    """Two states are fewer than the lanes of a vector, and than the columns that work-items share."""
    case = make_case(n_states, n_components)
    case.assert_agrees(case.engine(make_engine, kind), OPENCL_RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params([Kind("vector", 4, 3), WIDEST, Kind("lanes", 32)]))
def test_single_precision_is_near_double(make_engine, kind):
    case = make_case()
    worst = case.assert_agrees(case.engine(make_engine, kind, precision="single"), SINGLE_RTOL)
    assert worst > 1e-12  # it is single precision indeed


@pytest.mark.parametrize("kind", as_params([Kind("numpy", 4), Kind("vector", 4, 3)]))
def test_a_component_without_change(make_engine, kind):
    """Its likelihood is a product of the tips', which falls below any double; no state is impossible."""
    case = make_case(parts=(7,), n_components=2)
    case.mixtures[0].components.rates[0] = 0.0
    weight, frequencies, matrix = case.mixtures[0].oracle[0]
    case.mixtures[0].oracle[0] = weight, frequencies, 0 * matrix
    case.state_sets = np.where(case.state_sets > 0, case.state_sets, 1e-200)
    found = case.sites_on(case.engine(make_engine, kind))
    np.testing.assert_allclose(found, case.site_lnl(pruning), rtol=NUMPY_RTOL)


@pytest.mark.parametrize("kind", as_params([Kind("numpy", 4), Kind("vector", 4, 3)]))
def test_a_table_of_sets_is_as_good_as_masks(make_engine, kind):
    masks = Case(1, 5, (17,), 4, 2)
    table = (np.arange(16)[:, None] >> np.arange(4)) & 1
    expected = masks.sites_on(masks.engine(make_engine, kind))
    masks.state_sets = table
    np.testing.assert_allclose(masks.sites_on(masks.engine(make_engine, kind)), expected, rtol=NUMPY_RTOL)


def test_the_engines_order_of_codes():
    """A row that sums to 1 need not be a single state."""
    table = [[0.5, 0.5, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]]
    codes, sets = encode_tips(4, np.array([[0, 1, 2, 3]]), table)
    assert codes.tolist() == [[5, 1, 4, 6]]
    np.testing.assert_array_equal(sets[codes[0]], table)


@pytest.mark.opencl
def test_codes_of_four_bytes(make_engine):
    case = make_case(parts=(40,))
    case.state_sets = np.concatenate([np.repeat(case.state_sets, 2000, axis=0)])
    case.codes = case.codes * 2000 + 1999
    engine = case.engine(make_engine, Kind("vector", 4, 3))
    assert engine.layout.code == np.uint32
    np.testing.assert_allclose(case.sites_on(engine), case.site_lnl(), rtol=OPENCL_RTOL)
