"""Engines of explicit buffers, against sums written out: every kind of engine, awkward numbers of patterns."""

import numpy as np
import pytest
from engine_kinds import compiled_quickly

from plltool.engine import program as prog
from plltool.engine.contract import Step
from plltool.engine.layout import DataShape
from plltool.engine.opencl.device import list_devices
from plltool.engine.select import find_device, open_buffers
from plltool.hardware import Hardware

pytestmark = pytest.mark.usefixtures("unoptimised")
KINDS = [
    pytest.param(("numpy", 1), id="numpy-1"),
    pytest.param(("numpy", 4), id="numpy-4"),
    *(pytest.param(("opencl", vw), id=f"opencl-{vw or 'default'}", marks=pytest.mark.opencl) for vw in (None, 4, 32)),
]
SHAPES = [(4, 4, 33), (4, 4, 1), (20, 2, 9)]
N_LOGS = 4
RTOL = {"double": 1e-12, "single": 3e-6}  # short sums of positive terms


def open_engine(kind, n_states, n_components, n_patterns, precision="double", reversible=True, n_slots=6, n_matrices=4):
    name, vw = kind
    device = None if name == "numpy" else find_device(list_devices()[0], "opencl")
    if device is not None and device.kind == "gpu" and vw == 4:
        pytest.skip("a GPU takes 32 or 64 lanes")
    with compiled_quickly(device, vw == 32 and n_states > 8):
        shape = DataShape(n_states, n_components, 2, (n_patterns,), reversible=reversible)
        return open_buffers(device, shape, n_slots, n_matrices, N_LOGS, Hardware(precision=precision, vw=vw))


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
        steps = [[Step.LARGEST, 0, 3, -1], [Step.LARGEST, 1, 0, -1], [Step.LARGEST, 2, 3, 1], [Step.ADD, 3, 0, 2]]
        steps += [[Step.SUBTRACT, 3, 3, 1], [Step.ADD, 1, 1, -1]]
        engine.note_scales(np.array(steps, dtype=np.int32))
        three_at, cla_at = (np.log(cla.max(axis=(1, 2))) for cla in (three, values.cla))
        for row, expected in enumerate([three_at, cla_at, three_at - cla_at, 2 * (three_at - cla_at)]):
            np.testing.assert_allclose(engine.read_logs(row), expected, atol=4 * rtol)
        weights = np.arange(1, 1 + shape[2])
        engine.set_weights(weights)
        masses = np.random.default_rng(2).random((1, *shape[1::-1]))
        queries = np.array([[0, 4, 5, 0, 1, 2]], dtype=np.int32)
        sums = engine.add_sites(queries, masses, 2)()
        found = engine.read_sites(2)
        products = [np.einsum("ci,pci,pci->p", masses[0], values.cla, values.times(m, three)) for m in (1, 3)]
        lnl = np.log(products[0]) - three_at - cla_at + (three_at - cla_at)
        np.testing.assert_allclose(found, [lnl, products[1] / products[0]], rtol=10 * rtol, atol=10 * rtol)
        np.testing.assert_allclose(sums, found @ weights, rtol=1e-12)
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
        engine.make(np.concatenate([prog.newview(1, 0, 0, 0, 1), prog.newview(2, 1, 0, 1, 1)]))
        scaled = np.ldexp(small, 400)
        one = values.times(0, scaled) * values.times(1, scaled)
        two = values.times(0, one) * values.times(1, one)
        expected = np.log(two.max(axis=(1, 2))[1:]) - 1600 * np.log(2)
        engine.note_scales(np.array([[Step.LARGEST, 0, 2, -1]], dtype=np.int32))
        np.testing.assert_allclose(engine.read_logs(0), [0, *expected], rtol=1e-13)
        masses = rng.random((1, 4, 4))
        engine.make(prog.propagate(3, 2, 0))
        engine.add_sites(np.array([[1, 3, -1, -1, -1, -1]], dtype=np.int32), masses, 1)
        found = engine.read_sites(1)[0]
        products = np.einsum("ci,pci,pci->p", masses[0], one, values.times(0, two))
        expected = np.log(products[1:]) - 2400 * np.log(2)
        np.testing.assert_allclose(found[1:], expected, rtol=1e-13)
        assert found[0] == -np.inf
