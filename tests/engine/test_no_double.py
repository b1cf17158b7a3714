"""Sums in two floats: on devices without double precision, whose tables of branches the host makes, and in screens.

Kernels for them have no double at all, or do not compile; any device runs them. So the tests use whatever there is.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from agreement import Case
from engine_kinds import Kind
from helpers import random_mixture, random_tips

from plltool.engine import program as prog
from plltool.engine.branch_tables import Spectra, pack_matrices, pack_tables
from plltool.errors import DeviceError
from plltool.optimise.lengths import smooth

pytestmark = pytest.mark.opencl
FLOATS = Kind("lanes", 32, has_double=False)
SCREENS = Kind("vector", 4, 3), Kind("vector", 8, 2), Kind("vector", 16), Kind("lanes", 32)
EVERY = [
    pytest.param(FLOATS, "single", id="no double"),
    *(pytest.param(kind, "rough", id=f"rough {kind}") for kind in SCREENS),
]
# Measured: of lnL 7e-8, of slopes 8e-7. As in `test_engines.py`, and besides the logarithm of each pattern is rounded.
RTOL = {"lnl": 2e-7, "slope": 2e-6}


@pytest.mark.parametrize(("n_states", "n_components"), [(4, 1), (4, 4), (20, 2)])
@pytest.mark.parametrize(("kind", "precision"), EVERY)
def test_every_instruction(kind, precision, n_states, n_components, make_engine, record_property):
    case = Case(11, 12, (50, 33), n_states, n_components)
    program, n_values, kinds = case.everything()
    errors = case.errors(case.engine(make_engine, kind, precision=precision), program, n_values, kinds)
    for what, rtol in RTOL.items():
        found = errors[:, kinds == what].max()
        record_property(what, f"{found:.1e}")
        assert found < rtol


@pytest.mark.parametrize(("kind", "precision"), EVERY[:2])
def test_gradients(kind, precision, make_engine):
    case = Case(12, 7, (90,))
    (lnl, rates, masses), expected = (
        case.likelihood(make_engine, kind, precision=precision).rate_matrix_gradient()
        for kind, precision in ((kind, precision), (Kind("numpy", 4), "double"))
    )
    assert lnl == pytest.approx(expected[0], rel=RTOL["lnl"])
    for found, right in ((rates, expected[1]), (masses, expected[2])):
        np.testing.assert_allclose(found, right, rtol=0, atol=5e-6 * np.abs(right).max())


@pytest.mark.parametrize("groups", [1, 7, 4096])
def test_sums_lose_nothing(groups, make_engine):
    """The sum of the device is that of its own numbers for each pattern: of several tiles, and by levels of rows."""
    case = Case(3, 5, (9000,))
    case.weights = np.ones(9000)
    engine = case.engine(make_engine, replace(FLOATS, max_groups=groups), precision="single")
    assert case.lnl_on(engine)[0] == pytest.approx(math.fsum(case.sites_on(engine)), rel=1e-13)


@pytest.mark.parametrize("n_patterns", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_lnl_of_many_patterns(n_patterns, make_engine, record_property):
    """Within 1e-7 of numpy in double precision. Optimised lengths reach the same optimum."""
    case = Case(4, 4, (n_patterns,))
    floats, expected = (
        case.likelihood(make_engine, kind, precision=precision)
        for kind, precision in ((FLOATS, "single"), (Kind("numpy", 4), "double"))
    )
    lnl = expected.lnl()
    error = abs(floats.lnl() - lnl) / abs(lnl)
    record_property("error", f"{error:.1e}")
    assert error < 1e-7
    smooth(floats)
    best = smooth(expected)
    expected.tree.lengths[:] = floats.tree.lengths
    assert expected.lnl() == pytest.approx(best, abs=1e-8 * abs(best))


@pytest.mark.parametrize(("n_states", "n_components"), [(4, 4), (20, 2)])
def test_tables_of_branches(n_states, n_components, make_engine):
    """What the host makes is what the kernel `pmatrices` makes in double precision, number by number."""
    rng = np.random.default_rng(5)
    codes, state_sets = random_tips(rng, 3, 9, n_states)
    lengths, mixture = rng.random(4), random_mixture(rng, n_states, n_components)
    kind = replace(FLOATS, has_double=True)
    engine = make_engine(kind, 1, codes, np.ones(9), [mixture], precision="single", state_sets=state_sets)
    layout, wanted = engine.layout, ("decays", "slopes", "divided_differences")
    rows = [prog.derivative(0, ~0, ~1, 0), prog.triplet(3, ~0, 0, ~1, 1, ~2, 2)]
    rows += [prog.rate_matrix_gradient(13, ~0, ~1, 3)]
    engine.execute(prog.Request(np.concatenate(rows), 13 + layout.gradient_values), lengths)
    (eigen, _), *_ = engine.pack_models([[mixture.components]])
    made = Spectra.unpack(eigen, n_states).tables(lengths[None], wanted, layout.real)
    on_host = {
        **made,
        "matrices": pack_matrices(layout, made["matrices"]),
        "slopes": pack_tables(layout, made["slopes"]),
    }
    for name, table in on_host.items():
        found = engine._arrays.receive(np.empty(table.shape, dtype=np.float32), name)
        np.testing.assert_allclose(found, table, rtol=2e-6, atol=1e-7 * np.abs(table).max(), err_msg=name)


def test_kernels_with_double_do_not_compile(opencl_device):
    from plltool.engine.opencl.device import make_context
    from plltool.engine.opencl.kernels import build_program

    context, _ = make_context(opencl_device, None)
    layout = FLOATS.layout(4, 4, 5, (9,), "single")
    with pytest.raises(DeviceError, match="no_double_here"):
        build_program(context, layout, ("layout.h", "arithmetic.h", "pmatrices.cl"))
