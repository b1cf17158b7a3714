"""Engines of every kind, by a short description."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from engine_kinds import FEW_KINDS, NUMPY_KINDS, OPENCL_KINDS, as_params, compiled_quickly, find_device
from helpers import numpy_engine

from plltool.engine.base import EngineData
from plltool.engine.layout import count_work_groups
from plltool.engine.storage import plan_storage
from plltool.errors import DeviceError


def pytest_generate_tests(metafunc):
    """Arguments `any_kind`, `opencl_kind` and `few_kind` run over the lists above."""
    for name, kinds in (
        ("any_kind", NUMPY_KINDS + OPENCL_KINDS),
        ("numpy_kind", NUMPY_KINDS),
        ("opencl_kind", OPENCL_KINDS),
        ("few_kind", FEW_KINDS),
    ):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, as_params(kinds))


@pytest.fixture(scope="session")
def opencl_devices():
    """OpenCL devices with double precision, one at least."""
    from plltool.engine.opencl.device import list_devices

    try:
        devices, problems = list_devices()
    except DeviceError as error:
        pytest.skip(f"no OpenCL: {error}")
    usable = [device for device in devices if device.has_double]
    if not usable:
        pytest.skip(f"no OpenCL device with double precision; {problems}")
    return usable


@pytest.fixture(scope="session")
def opencl_device(opencl_devices):
    """The first of them."""
    return opencl_devices[0]


@pytest.fixture
def make_engine(request):
    """A function that makes an engine of a Kind, its models set, and closes it after the test.

    See `compiled_quickly`: a test of many requests asks for `optimised` kernels.
    """
    made = []

    def make(
        kind,
        n_slots,
        codes,
        weights,
        mixtures,
        part_patterns=None,
        precision="double",
        device=None,
        state_sets=None,
        memory=None,
        compute_units=None,
        optimised=False,
    ):
        parts = (codes.shape[1],) if part_patterns is None else tuple(part_patterns)
        if kind.kind == "numpy":
            engine = numpy_engine(
                n_slots, codes, weights, mixtures, parts, kind.vw, state_sets, memory, precision=precision
            )
        else:
            from plltool.engine.opencl.engine import OpenCLEngine

            first = mixtures[0]
            n_codes = 0 if state_sets is None else len(state_sets)
            reversible = first.components.is_reversible
            layout = kind.layout(first.n_states, first.n_components, len(codes), parts, precision, n_codes, reversible)
            device = device or find_device(request.getfixturevalue("opencl_devices"), kind, precision)
            if device is None:
                pytest.skip(f"no OpenCL device is known to handle {precision} vectors of {kind.vw} lanes")
            if compute_units and device.kind != "cpu":
                pytest.skip(f"{device.name} has no threads to choose from")
            data, units = EngineData(codes, weights, state_sets), min(compute_units or 1 << 30, device.compute_units)
            storage = plan_storage(layout, n_slots, memory, device.max_allocation, count_work_groups(layout, units))
            with nullcontext() if optimised else compiled_quickly(device, layout.shared_states):
                engine = OpenCLEngine(layout, storage, data, device, compute_units)
            engine.set_model([mixture.components for mixture in mixtures])
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()
