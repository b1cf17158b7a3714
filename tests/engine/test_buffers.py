"""Engines of explicit buffers, against sums written out: every kind of engine, awkward numbers of patterns."""

import numpy as np
import pytest
from engine_kinds import compiled_quickly

from plltool.engine import program as prog
from plltool.engine.opencl.device import list_devices
from plltool.engine.select import find_device, open_buffers

KINDS = [
    pytest.param(("numpy", 1), id="numpy-1"),
    pytest.param(("numpy", 4), id="numpy-4"),
    *(pytest.param(("opencl", vw), id=f"opencl-{vw or 'default'}", marks=pytest.mark.opencl) for vw in (None, 4, 32)),
]
SHAPES = [(4, 4, 33), (4, 4, 1), (20, 2, 9)]
RTOL = {"double": 1e-12, "single": 3e-6}  # short sums of positive terms


def open_engine(kind, n_states, n_components, n_patterns, precision="double", n_slots=6, n_matrices=4):
    name, vw = kind
    device = None if name == "numpy" else find_device(list_devices()[0], "opencl")
    if device is not None and device.kind == "gpu" and vw == 4:
        pytest.skip("a GPU takes 32 or 64 lanes")
    with compiled_quickly(device, vw == 32 and n_states > 8):
        return open_buffers(device, (n_states, n_components, 2, n_patterns), n_slots, n_matrices, precision, vw)


class Values:
    """Random matrices, tips and CLAs, and what becomes of them."""

    def __init__(self, rng, n_states, n_components, n_patterns):
        self.matrices = rng.random((4, n_components, n_states, n_states))
        self.matrices[3] -= 0.5  # such as a derivative
        self.states = rng.integers(0, n_states + 1, (2, n_patterns))
        self.cla = rng.random((n_patterns, n_components, n_states))
        sets = np.vstack([np.eye(n_states), np.ones(n_states)])
        self.tips = [np.repeat(sets[row][:, None], n_components, axis=1) for row in self.states]

    def times(self, matrix, cla):
        return np.einsum("cij,pcj->pci", self.matrices[matrix], cla)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", RTOL)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_programs_over_given_matrices(kind, shape, precision):
    if precision == "single" and shape != SHAPES[0]:
        pytest.skip("one shape will do")
    rtol = RTOL[precision]
    values = Values(np.random.default_rng(1), *shape)
    with open_engine(kind, *shape, precision) as engine:
        for tip, states in enumerate(values.states):
            engine.set_codes(tip, engine.encode(states))
        engine.set_matrices([0, 2, 3], values.matrices[[0, 2, 3]])
        engine.set_matrices([1], values.matrices[[1]])
        engine.write_slot(0, values.cla)
        engine.make(
            np.concatenate(
                [
                    prog.newview(1, ~0, 0, ~1, 1),
                    prog.newview(2, ~0, 2, 0, 1),
                    prog.newview(3, 1, 0, 2, 2),
                    prog.propagate(4, 3, 1),
                    prog.propagate(5, 3, 3),
                ]
            )
        )
        one = values.times(0, values.tips[0]) * values.times(1, values.tips[1])
        two = values.times(2, values.tips[0]) * values.times(1, values.cla)
        three = values.times(0, one) * values.times(2, two)
        for slot, expected in enumerate([values.cla, one, two, three, values.times(1, three)]):
            found, counts = engine.read_slot(slot)
            np.testing.assert_allclose(np.ldexp(found, counts[..., None]), expected, rtol=rtol)
        maxima = engine.log_maxima([3, 0])()
        np.testing.assert_allclose(maxima, np.log([three.max(axis=(1, 2)), values.cla.max(axis=(1, 2))]), atol=rtol)
        masses = np.random.default_rng(2).random(shape[1::-1])
        rows = engine.dot_clas(0, 4, 2, masses)()
        for row, matrix in zip(rows, (1, 3), strict=False):
            expected = np.einsum("ci,pci,pci->p", masses, values.cla, values.times(matrix, three))
            np.testing.assert_allclose(np.ldexp(row, rows[2].astype(int)), expected, rtol=10 * rtol, atol=rtol)
        engine.set_matrices([0], values.matrices[[2]])  # after a launch
        engine.set_codes(0, engine.encode(values.states[1]))
        engine.make(prog.newview(1, ~0, 0, ~1, 1))
        found, _ = engine.read_slot(1)
        expected = values.times(2, values.tips[1]) * values.times(1, values.tips[1])
        np.testing.assert_allclose(found, expected, rtol=rtol)
        engine.finish()


@pytest.mark.parametrize("kind", KINDS)
def test_what_would_underflow_keeps_its_scale(kind):
    rng = np.random.default_rng(3)
    values = Values(rng, 4, 4, 5)
    with open_engine(kind, 4, 4, 5) as engine:
        small = values.cla * 2.0**-400
        small[0] = 0.0
        small[1, 0] = 0.0  # a component that has no say in the scale
        engine.set_matrices([0, 1], values.matrices[:2])
        engine.write_slot(0, small)
        engine.make(np.concatenate([prog.newview(1, 0, 0, 0, 1), prog.newview(2, 1, 0, 1, 1), prog.propagate(3, 2, 0)]))
        scaled = np.ldexp(small, 400)
        one = values.times(0, scaled) * values.times(1, scaled)
        two = values.times(0, one) * values.times(1, one)
        with np.errstate(divide="ignore"):
            expected = np.log(two.max(axis=(1, 2))) - 1600 * np.log(2)
        np.testing.assert_allclose(engine.log_maxima([2])()[0], expected, rtol=1e-13)
        masses = rng.random((4, 4))
        sums, scale = engine.dot_clas(1, 3, 1, masses)()
        expected = np.einsum("ci,pci,pci->p", masses, one, values.times(0, two))
        np.testing.assert_allclose(sums[1:] * 2.0 ** (scale[1:] + 2400), expected[1:], rtol=1e-12)
        assert sums[0] == 0
