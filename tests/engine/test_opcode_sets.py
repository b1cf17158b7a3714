"""Kernels for sets of instructions answer as those for all instructions do, to the last bit."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from agreement import Case
from engine_kinds import Kind, compiled_quickly
from helpers import program_to_branch, program_to_node, random_ends

from plltool.engine import program as prog
from plltool.engine.base import EngineData
from plltool.engine.contract import OPCODE_SETS, OPCODES
from plltool.engine.storage import plan_storage

N_TAXA, N_PATTERNS, ROOT_BRANCH = 5, 70, 1


def requests(ends, layout):
    """A request for each set of instructions but the last, by its name."""
    rows, a, b = program_to_branch(ends, N_TAXA, ROOT_BRANCH)
    around, operands = program_to_node(ends, N_TAXA, N_TAXA)
    (x, px), (y, py), (z, pz) = operands
    scratch = N_TAXA - 2
    joins = [around, prog.propagate(scratch, z, pz)]
    found = {
        "likelihoods": [rows, prog.evaluate(0, a, b, 1), prog.derivative(1, a, b, 1)],
        "insertions": [*joins, prog.insert(0, x, px, y, py, scratch)],
        "triplets": [*joins, prog.triplet(0, x, px, y, py, z, pz)],
        "gradients": [rows, prog.rate_matrix_gradient(0, a, b, 1), prog.mass_gradient(layout.gradient_values, a, b, 1)],
    }
    n_masses = layout.n_components * layout.n_states
    sizes = {"likelihoods": 4, "insertions": 1, "triplets": 10, "gradients": layout.gradient_values + n_masses}
    return {name: prog.Request(np.concatenate(found[name]), sizes[name]) for name in found}


def test_a_program_gets_the_first_set_that_has_its_instructions():
    from plltool.engine.opencl.kernels import find_set

    ends, _ = random_ends(np.random.default_rng(3), N_TAXA)
    layout = Kind("lanes", 32).layout(4, 2, N_TAXA, (N_PATTERNS,))
    for name, request in requests(ends, layout).items():
        assert find_set(request.program) == name
    everything = np.concatenate([request.program for request in requests(ends, layout).values()])
    assert find_set(everything) == "all"
    assert find_set(everything[:0]) == "likelihoods"


def test_the_last_set_has_all_instructions():
    assert list(OPCODE_SETS.values())[-1] == set(OPCODES.values())


@pytest.mark.opencl
@pytest.mark.parametrize(("n_states", "n_components"), [(4, 4), (20, 2)])
def test_sets_change_no_bit(n_states, n_components, opencl_device):
    from plltool.engine.opencl.engine import OpenCLEngine

    case = Case(5, N_TAXA, (N_PATTERNS,), n_states, n_components)
    data, mixture = EngineData(case.codes, case.weights, case.state_sets), case.mixtures[0]
    whole = Kind("lanes", 32).layout(n_states, n_components, N_TAXA, (N_PATTERNS,), n_codes=data.n_codes)
    answers = []
    for layout in (whole, replace(whole, cut_kernels=True)):
        quickly = compiled_quickly(opencl_device, layout.shared_states)
        with quickly, OpenCLEngine(layout, plan_storage(layout, N_TAXA), data, opencl_device) as engine:
            engine.set_model([mixture.components])
            answers.append({name: engine.execute(r, case.lengths) for name, r in requests(case.ends, layout).items()})
    for name, expected in answers[0].items():
        assert np.all(np.isfinite(expected))
        np.testing.assert_array_equal(answers[1][name], expected, err_msg=name)


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("platform", "kind", "vw", "inlined"),
    [
        ("Portable Computing Language", "CPU", 32, False),
        ("Portable Computing Language", "CPU", 4, True),
        ("Portable Computing Language", "GPU", 32, True),
        ("Intel(R) OpenCL", "CPU", 32, True),
    ],
)
def test_instructions_are_functions_of_their_own_where_pocl_plays_a_gpu(platform, kind, vw, inlined):
    """A GPU would lose its registers; vectors on a CPU would lose time."""
    import pyopencl as cl

    from plltool.engine.opencl.kernels import traverse_options

    device = SimpleNamespace(type=getattr(cl.device_type, kind), platform=SimpleNamespace(name=platform))
    layout = Kind("vector" if vw == 4 else "lanes", vw).layout(4, 4, N_TAXA, (N_PATTERNS,))
    options = traverse_options(SimpleNamespace(devices=[device]), layout, "all")
    assert ("-DINLINE_INSTRUCTIONS=0" not in options) == inlined
    assert "-DOPCODE_SET=255" in options
