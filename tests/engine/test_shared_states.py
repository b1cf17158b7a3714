"""Many states where the work-items of a lane share them: the shape of a GPU, on whatever device there is."""

import numpy as np
import pytest
from engine_kinds import LOCAL_BYTES, MOST_ITEMS, Kind, as_params
from helpers import evaluate_edges, program_to_node
from test_many_states import OPENCL_RTOL, SINGLE_RTOL, Case, make_deep

from plltool.engine import program as prog

pytestmark = pytest.mark.opencl

NARROW, WIDE = Kind("lanes", 32, max_groups=2), Kind("lanes", 64)
TILES = Kind("lanes", 32, 2, max_groups=2)  # of two blocks; with 20 states and 4 components
PADDED = Kind("lanes", 32, workers=7)  # of 20 states; the last worker owns two, and one that is none
SHAPES = [
    (NARROW, 9, 2),  # as many padding states as fit: 10 rows
    (TILES, 20, 4),
    (Kind("lanes", 32, workers=1), 20, 2),  # nobody to share with
    (PADDED, 20, 2),
    (Kind("lanes", 32, workers=20), 20, 1),
    (WIDE, 61, 2),
    (WIDE, 122, 2),
]
SINGLE_SHAPES = [(WIDE, 20, "mixed"), (NARROW, 61, "single"), (WIDE, 122, "single")]  # with 2 components
AS_SHAPES = pytest.mark.parametrize(
    ("kind", "n_states", "n_components"),
    [pytest.param(*shape, id=f"{shape[0]}-{shape[1]}x{shape[2]}") for shape in SHAPES],
)


@AS_SHAPES
def test_every_request(make_engine, kind, n_states, n_components):
    """Two parts, one of several blocks where numpy is quick enough, the other of two lanes."""
    case = Case(n_states, n_components, (70 if n_states < 122 else 35, 2), n_taxa=5 if n_states < 122 else 4)
    case.assert_agrees(case.engine(make_engine, kind), OPENCL_RTOL)


@pytest.mark.parametrize(("kind", "n_states", "precision"), SINGLE_SHAPES, ids=str)
def test_precisions(make_engine, kind, n_states, precision):
    case = Case(n_states, 2, (40 if n_states < 122 else 10,), n_taxa=4)
    worst = case.assert_agrees(case.engine(make_engine, kind, precision=precision), SINGLE_RTOL)
    assert worst > 1e-12


@pytest.mark.parametrize(("n_states", "kind"), [(9, NARROW), (61, NARROW), (61, WIDE)], ids=str)
def test_gradients_sum_tiles_and_branches(make_engine, kind, n_states):
    """Both gradients over four tiles of two parts; twice, since sums must not build on those of the last request."""
    case = Case(n_states, 2, (2 * kind.vw + 6, 5), n_taxa=5)
    likelihoods = [case.likelihood(make_engine, one) for one in (kind, Kind("numpy", 4))]
    likelihoods[0].rate_matrix_gradient()
    found = [likelihood.rate_matrix_gradient() for likelihood in likelihoods]
    assert found[0][0] == pytest.approx(found[1][0], rel=OPENCL_RTOL)
    for values, expected in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(values, expected, atol=OPENCL_RTOL * np.abs(expected).max())


def test_weights(make_engine):
    """lnL by brute force, weighted here."""
    case = Case(20, 4, (50,))
    weights = case.rng.integers(0, 9, 50).astype(float)
    case.weights, site_lnl = weights, case.site_lnl()
    engine, (program, a, b) = case.engine(make_engine, TILES, 3), case.to(1)
    engine.run(program, case.lengths)
    found = evaluate_edges(engine, [(a, b, 1), (b, a, 1)], case.lengths)
    np.testing.assert_allclose(found, np.full((2, 1), weights @ site_lnl), rtol=1e-12)


@pytest.mark.parametrize("unclear", [False, True])
@pytest.mark.parametrize("kind", as_params([NARROW, PADDED]))
def test_a_cla_takes_the_place_of_its_operand(make_engine, kind, unclear):
    """Every component is read before it is written, by all workers; tips are looked up or multiplied.

    Nor does a CLA touch the next slot, of a CLA that is read later.
    """
    case = Case(20, 2, (40,))
    if not unclear:
        case.codes[:] = np.flatnonzero(case.state_sets.sum(axis=1) == 1)[case.codes % 20]
    lnl = []
    for a, b, c in ((0, 1, 2), (1, 0, 1), (1, 0, 0)):
        engine = case.engine(make_engine, kind)
        rows = [
            prog.newview(a, ~0, 0, ~1, 1),
            prog.newview(b, ~2, 2, ~3, 3),
            prog.newview(c, a, 4, b, 1),
            prog.evaluate(0, ~0, c, 0),
        ]
        lnl.append(engine.execute(prog.Request(np.concatenate(rows), 1), case.lengths))
    np.testing.assert_array_equal(lnl[1:], lnl[:1] * 2)


@pytest.mark.parametrize("kind", as_params([PADDED, WIDE]))
def test_three_tips(make_engine, kind):
    """Products that are all looked up, in all lanes of a block but the last one, which has the only ambiguous tip."""
    case = Case(20, 2, (2 * kind.vw,))
    sizes = case.state_sets.sum(axis=1)
    case.codes[:] = np.flatnonzero(sizes == 1)[case.codes % 20]
    case.codes[0, -1] = np.flatnonzero((sizes > 1) & (sizes < 20))[0]
    program = np.concatenate([prog.triplet(0, ~0, 0, ~1, 1, ~2, 2), prog.derivative(10, ~1, ~0, 0)])
    found, expected = (
        case.engine(make_engine, one).execute(prog.Request(program, 13), case.lengths)
        for one in (kind, Kind("numpy", 4))
    )
    np.testing.assert_allclose(found, expected, rtol=OPENCL_RTOL)


@pytest.mark.parametrize("rates", [(5.0, 0.001), (0.001, 5.0)], ids=["fast_first", "slow_first"])
@pytest.mark.parametrize("kind", as_params([NARROW, WIDE]))
def test_deep_trees(make_engine, kind, rates):
    """Either component may be the largest one; site lnL by the oracle, all else as in numpy."""
    deep = make_deep(20, rates=rates)
    branch, node = deep.n_taxa, deep.n_taxa + 130
    newviews, a, b = deep.to(branch)
    around, ((i, pi), (j, pj), (k, pk)) = program_to_node(deep.ends, deep.n_taxa, node)
    scratch = deep.n_taxa - 2
    of_branch = [
        prog.derivative(0, a, b, branch),
        prog.rate_matrix_gradient(3, a, b, branch),
        prog.mass_gradient(803, a, b, branch),
    ]
    of_node = [
        prog.propagate(scratch, k, pk), prog.insert(843, i, pi, j, pj, scratch), prog.triplet(844, i, pi, j, pj, k, pk)
    ]  # fmt: skip
    program = np.concatenate([newviews, *of_branch, around, *of_node])
    values = []
    for one in (kind, Kind("numpy", 4)):
        engine = deep.engine(make_engine, one)
        values.append(engine.execute(prog.Request(program, 854), deep.lengths)[0])
        np.testing.assert_allclose(deep.sites_on(engine, branch), deep.expected, rtol=1e-12)
    for some in (slice(0, 1), slice(1, 3), slice(3, 803), slice(803, 843), slice(843, 845), slice(845, 854)):
        np.testing.assert_allclose(
            values[0][some], values[1][some], rtol=1e-9, atol=OPENCL_RTOL * np.abs(values[1][some]).max()
        )


@pytest.mark.parametrize(
    ("kind", "n_states", "precision"),
    [*((kind, S, "double") for kind, S in ((NARROW, 9), (WIDE, 20), (WIDE, 61), (WIDE, 122))), *SINGLE_SHAPES],
    ids=str,
)
def test_local_memory_and_items_are_what_the_layout_says(make_engine, kind, n_states, precision):
    """The kernel's own numbers, as the driver has them."""
    import pyopencl as cl

    case = Case(n_states, 2, (3,))
    engine = case.engine(make_engine, kind, precision=precision)
    (device,) = engine._context.devices

    def ask(what):
        return engine._kernels.traverse(np.zeros((0, 8), dtype=np.int32))._kernel.get_work_group_info(what, device)

    assert engine.layout.local_bytes <= ask(cl.kernel_work_group_info.LOCAL_MEM_SIZE) <= LOCAL_BYTES
    items = list(ask(cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE))
    assert items == [engine.layout.group_items, 1, 1]
    assert items[0] <= MOST_ITEMS


@pytest.mark.slow
@pytest.mark.parametrize("kind", as_params([NARROW, WIDE]))
def test_repeated_requests(make_engine, kind):
    """The same bits every time, on all cores; see test_sums.py."""
    case = Case(20, 2, (90, 135), n_taxa=5)
    program, n_values, _ = case.everything()
    engine = case.engine(make_engine, kind, optimised=True)
    first = engine.execute(prog.Request(program, n_values), case.lengths)
    for _ in range(50):
        np.testing.assert_array_equal(engine.execute(prog.Request(program, n_values), case.lengths), first)
