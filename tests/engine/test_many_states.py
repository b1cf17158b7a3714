"""More than 8 states: codes that index a table of state sets, and kernels that loop over states."""

import numpy as np
import pytest
from agreement import Case as RandomCase
from engine_kinds import FEW_KINDS, WIDE, Kind, as_params
from helpers import caterpillar, numpy_engine, plain_engine, random_mixture, random_tips
from oracles.likelihood import pruning

from plltool.engine.base import EngineData
from plltool.engine.codes import encode_tips
from plltool.engine.layout import Layout
from plltool.errors import EngineError

NUMPY_RTOL = 1e-12  # both double, short sums
OPENCL_RTOL = 1e-11  # the order of sums differs; measured: 6e-15 with 122 states
# Measured: 2.1e-6 with 20 and 1.5e-6 with 61 states, of the sum of absolute contributions. A rounding of 6e-8 per
# multiplication along the path, as with 4 states; second derivatives, sums of S products of either sign, lose most.
SINGLE_RTOL = 1e-5

LANES, WIDE_LANES = Kind("lanes", 32), Kind("lanes", 64)
SHAPES = [  # each number of states and of components, each kind of vector, and lanes
    (Kind("vector", 2, 3), 20, 4),
    (Kind("vector", 4, 4), 61, 2),
    (Kind("vector", 4), 122, 1),
    (LANES, 20, 2),
    (LANES, 61, 2),
    (WIDE_LANES, 20, 2),
]


class Case(RandomCase):
    """A small tree with tips of every sort: single states, ambiguities, a taxon of gaps, a column of gaps."""

    def __init__(self, n_states, n_components, parts, n_taxa=4, n_ambiguous=5):
        seed = [n_states, n_components, *parts]
        super().__init__(seed, n_taxa, parts, n_states, n_components, n_ambiguous=n_ambiguous)
        gap = int(self.state_sets.all(axis=1).argmax())
        self.codes[:, -1] = gap
        if n_taxa > 4:
            self.codes[3] = gap


# --- likelihoods and brute force --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_states", [9, 20, 61])
def test_brute_force(few_kind, make_engine, n_states):
    if n_states == 9 and few_kind.kind != "numpy" and few_kind != WIDE:
        pytest.skip("every request is compared with numpy's there, see SHAPES")
    case = Case(n_states, 2, (3, 2) if n_states < 61 else (2,))
    expected, engine = case.site_lnl(), case.engine(make_engine, few_kind)
    for branch in range(len(case.ends)):
        site = case.sites_on(engine, branch)
        np.testing.assert_allclose(site, expected, rtol=NUMPY_RTOL, atol=1e-13)
        assert abs(site[-1]) < 1e-13  # the probability of no data is 1


@pytest.mark.parametrize("n_states", [20, 61])
def test_derivatives(few_kind, make_engine, n_states):
    """Against central differences of the oracle, as in test_derivatives.py."""
    case = Case(n_states, 2, (5,))
    engine, lnl = case.engine(make_engine, few_kind), case.weights @ case.site_lnl(pruning)
    for branch in range(len(case.ends)):
        program, a, b = case.to(branch)
        engine.run(program, case.lengths)
        found = engine.derivatives([(a, b, branch)], case.lengths)[0, 0]
        assert found[0] == pytest.approx(lnl, rel=NUMPY_RTOL)
        for value, slope in zip(found[1:], case.slopes(branch), strict=True):
            assert abs(value - case.weights @ slope) <= 1e-6 * (case.weights @ np.abs(slope))


# --- OpenCL and numpy -------------------------------------------------------------------------------------------


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("kind", "n_states", "n_components"),
    [pytest.param(*shape, id=f"{shape[0]}-{shape[1]}x{shape[2]}") for shape in SHAPES],
)
def test_every_request(make_engine, kind, n_states, n_components):
    case = Case(n_states, n_components, (9, 35), n_taxa=5)
    engine = case.engine(make_engine, kind)
    case.assert_agrees(engine, OPENCL_RTOL)
    site = [case.sites_on(same) for same in (engine, case.engine(make_engine, Kind("numpy", 4)))]
    np.testing.assert_allclose(site[0], site[1], rtol=OPENCL_RTOL, atol=1e-13)


@pytest.mark.opencl
@pytest.mark.parametrize("n_states", [20, 61])
def test_the_widest_vector(make_engine, opencl_device, n_states):
    """Eight lanes where the device's compiler can; register tiles have more rows there."""
    case = Case(n_states, 2, (37,), n_taxa=5)
    engine = case.engine(make_engine, Kind("vector", opencl_device.vector_width, 2))
    case.assert_agrees(engine, OPENCL_RTOL)


@pytest.mark.opencl
def test_codes_of_two_bytes(make_engine):
    case = Case(20, 1, (40,), n_ambiguous=300)
    assert len(np.unique(case.codes)) > 40
    engine = case.engine(make_engine, Kind("vector", 4, 3))
    assert engine.layout.code == np.uint16
    case.assert_agrees(engine, OPENCL_RTOL)


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params([k for k in FEW_KINDS if k.kind != "numpy"]))
@pytest.mark.parametrize("n_states", [20, 61])
def test_gradients(make_engine, kind, n_states):
    """RATE_MATRIX_GRADIENT and MASS_GRADIENT; the numpy engine's are checked against the oracle with few states."""
    case = Case(n_states, 2, (9, 20), n_taxa=5)
    found = [case.likelihood(make_engine, one).rate_matrix_gradient() for one in (kind, Kind("numpy", 4))]
    assert found[0][0] == pytest.approx(found[1][0], rel=OPENCL_RTOL)
    for values, expected in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(values, expected, atol=OPENCL_RTOL * np.abs(expected).max())


@pytest.mark.opencl
@pytest.mark.parametrize("kind", as_params([Kind("vector", 4, 3), LANES]))
def test_single_precision_is_near_double(make_engine, kind):
    """For 61 states see test_shared_states.py."""
    case = Case(20, 2, (50, 33), n_taxa=8)
    engine = case.engine(make_engine, kind, precision="single")
    worst = case.assert_agrees(engine, SINGLE_RTOL)
    assert worst > 1e-12  # it is single precision indeed


# --- rescaling --------------------------------------------------------------------------------------------------


BLOCK = 8


def make_deep(n_states, n_taxa=260, rates=(5.0, 0.001)):
    """A caterpillar whose likelihood underflows, with gaps and ambiguities in it.

    From column BLOCK on one half of it is constant: there the fast component falls far behind, and yet decides in the
    end, since the other half is random. Such columns fill blocks, so that no other one in them asks for rescaling.
    """
    rng = np.random.default_rng(n_states)
    ends = caterpillar(n_taxa)
    lengths = rng.exponential(0.5, len(ends)) + 0.05
    mixture = random_mixture(rng, n_states, 2, rates=list(rates))
    codes, state_sets = random_tips(rng, n_taxa, 3 * BLOCK, n_states, unclear=0.05)
    state = int((state_sets.sum(axis=1) == 1).argmax())
    codes[: n_taxa // 2, BLOCK : 2 * BLOCK] = state
    codes[n_taxa // 2 :, 2 * BLOCK :] = state
    case = RandomCase.of(ends, lengths, mixture, codes, state_sets=state_sets)
    case.expected = case.site_lnl(pruning)
    return case


@pytest.fixture(scope="module")
def deep():
    return make_deep(20, 300)


def test_the_case_underflows(deep):
    assert np.all(deep.expected < -745.1)


@pytest.mark.parametrize("precision", ["double", "mixed", "single"])
def test_deep_trees(few_kind, make_engine, deep, precision):
    engine = deep.engine(make_engine, few_kind, precision=precision)
    for branch in (0, 1, deep.n_taxa):
        rtol = 1e-12 if precision == "double" else 1e-6
        np.testing.assert_allclose(deep.sites_on(engine, branch), deep.expected, rtol=rtol)


# --- codes ------------------------------------------------------------------------------------------------------


def test_the_engines_order_of_codes():
    """Single states first, then none known, then the others as they come; equal sets in one."""
    table = np.zeros((5, 9), dtype=np.uint8)
    table[0, [1, 2]], table[1], table[2, 4], table[3, 4], table[4, [7, 8]] = 1, 1, 1, 1, 1
    codes, sets = encode_tips(9, np.array([[0, 1, 2, 3, 4]]), table)
    assert codes.tolist() == [[10, 9, 4, 4, 11]]
    np.testing.assert_array_equal(sets[codes[0]], table)
    np.testing.assert_array_equal(sets[:9], np.eye(9))


TABLE = np.concatenate([np.eye(20, dtype=int), np.ones((1, 20), dtype=int), np.zeros((1, 20), dtype=int)])


@pytest.mark.parametrize(
    ("codes", "state_sets", "message"),
    [
        ([[0, 1, 22]], TABLE, "code 22 of taxon 0, pattern 2 is not one of the 22 state sets"),
        ([[0, -1, 1]], TABLE, "code -1 of taxon 0, pattern 1 is not one of"),
        ([[0, 1, 21]], TABLE, "code 21 of taxon 0, pattern 2 is an empty set"),
        ([[0.0, 1.0, 2.0]], TABLE, "codes are float64"),
        ([[0, 1, 2]], TABLE[:, :19], "expected state sets, numbers from 0 to 1"),
        ([[0, 1, 2]], 2 * TABLE, "expected state sets, numbers from 0 to 1"),
        ([[0, 1, 2]], np.where(TABLE > 0, TABLE, np.nan), "expected state sets, numbers from 0 to 1"),
        ([[0, 1, 2]], None, "codes of 20 states need a table"),
        ([[0, 1]], TABLE, r"codes have shape \(1, 2\)"),
    ],
)
def test_codes_that_cannot_be(codes, state_sets, message):
    n_codes = 0 if state_sets is None else len(state_sets)
    with pytest.raises(EngineError, match=message):
        plain_engine(Layout(20, 1, 1, (3,), 2, n_codes=n_codes), 1, EngineData(np.array(codes), np.ones(3), state_sets))


def test_a_table_that_the_layout_does_not_know_of():
    with pytest.raises(EngineError, match="22 state sets, the layout has 21"):
        plain_engine(Layout(20, 1, 1, (1,), 2, n_codes=21), 1, EngineData(np.array([[0]]), np.ones(1), TABLE))


@pytest.mark.parametrize(
    ("code", "message"), [(0, "is an empty set"), (16, "is not one of the 16 state sets"), (-1, "is not one of")]
)
def test_masks_that_cannot_be(code, message):
    with pytest.raises(EngineError, match=f"code {code} of taxon 1, pattern 0 {message}"):
        numpy_engine(1, np.array([[1], [code]]), np.ones(1), [random_mixture(np.random.default_rng(1))])


def test_the_order_of_the_table_does_not_matter(few_kind, make_engine):
    case = Case(20, 2, (17,))
    order = np.random.default_rng(1).permutation(len(case.state_sets))
    found = []
    for _ in range(2):
        found.append(case.engine(make_engine, few_kind).execute(case.across(), case.lengths))
        case.codes, case.state_sets = np.argsort(order)[case.codes], case.state_sets[order]
    np.testing.assert_array_equal(found[0], found[1])
