"""Peaks: what is copied and added up is what is said, and the figures are of the order that any processor has."""

import time

import numpy as np
import pytest
from engine_kinds import Kind, as_params
from helpers import random_codes, random_mixture


@pytest.mark.parametrize("kind", as_params([Kind("vector", 4), Kind("lanes", 32)]))
@pytest.mark.parametrize("precision", ["double", "single"])
def test_peaks(kind, precision, make_engine):
    """From a hundredth of what one core of any machine does up to what no machine does."""
    rng = np.random.default_rng(1)
    mixture = random_mixture(rng, 4, 4)
    engine = make_engine(kind, 4, random_codes(rng, 4, 10), np.ones(10), [mixture], precision=precision)
    peaks = engine.peaks()
    assert peaks.keys() == {"copy", "multiply_adds"}
    for peak in peaks.values():
        peak.run()
        began = time.perf_counter()
        peak.run()
        assert 1e7 < peak.amount / (time.perf_counter() - began) < 1e16


@pytest.mark.opencl
@pytest.mark.parametrize(("kind", "local"), [(Kind("vector", 4), 1), (Kind("lanes", 32), 32)])
def test_the_kernels_do_what_they_say(kind, local, opencl_device):
    """copy against numpy; multiply_adds against its closed form, x_n = f^n x_0 + t (1 - f^n) / (1 - f)."""
    import pyopencl as cl

    from plltool.engine.contract import PEAK_CHAINS
    from plltool.engine.opencl.kernels import Kernel, build_program

    layout = kind.layout(4, 4, 4, (10,))
    context = cl.Context([opencl_device.handle])
    queue = cl.CommandQueue(context)
    program = build_program(context, layout, ("layout.h", "peaks.cl"))
    n_groups, group_blocks, rounds = 3, 5, 7
    given = np.random.default_rng(2).random(n_groups * group_blocks * layout.vw)
    found, sums = np.zeros_like(given), np.zeros(n_groups * layout.vw)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays = {
        name: cl.Buffer(context, flags, hostbuf=array)
        for name, array in (("source", given), ("target", found), ("out", sums))
    }
    size = (n_groups * local,), (local,)
    numbers = {"group_blocks": group_blocks, "n_peak_blocks": n_groups * group_blocks}
    Kernel(program, "copy", layout)(queue, *size, arrays, numbers)
    cl.enqueue_copy(queue, found, arrays["target"])
    np.testing.assert_array_equal(found, given)
    factor, term = 0.5, 3.0
    numbers = {"factor": factor, "term": term, "rounds": rounds, "n_peak_groups": n_groups}
    Kernel(program, "multiply_adds", layout)(queue, *size, arrays, numbers)
    cl.enqueue_copy(queue, sums, arrays["out"])
    kept = factor**rounds
    expected = sum(kept * k + term * (1 - kept) / (1 - factor) for k in range(PEAK_CHAINS))
    np.testing.assert_allclose(sums, expected, rtol=1e-14)


def test_numpy_knows_no_peaks(make_engine):
    rng = np.random.default_rng(1)
    engine = make_engine(Kind("numpy", 4), 4, random_codes(rng, 4, 10), np.ones(10), [random_mixture(rng, 4, 4)])
    assert engine.peaks() == {}
