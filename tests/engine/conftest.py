"""Engines of every kind, by a short description."""

from __future__ import annotations

import pytest
from engine_kinds import FEW_KINDS, NUMPY_KINDS, OPENCL_KINDS, as_params
from helpers import numpy_engine

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
def opencl_device():
    """The first OpenCL device with double precision."""
    from plltool.engine.opencl.device import list_devices

    try:
        devices, problems = list_devices()
    except DeviceError as error:
        pytest.skip(f"no OpenCL: {error}")
    usable = [device for device in devices if device.has_double]
    if not usable:
        pytest.skip(f"no OpenCL device with double precision; {problems}")
    return usable[0]


@pytest.fixture
def make_engine(request):
    """A function that makes an engine of a Kind, its models set, and closes it after the test."""
    made = []

    def make(kind, n_slots, codes, weights, mixtures, part_patterns=None, precision="double", device=None):
        parts = (codes.shape[1],) if part_patterns is None else tuple(part_patterns)
        if kind.kind == "numpy":
            engine = numpy_engine(n_slots, codes, weights, mixtures, parts, kind.vw, precision=precision)
        else:
            from plltool.engine.opencl.engine import OpenCLEngine

            first = mixtures[0]
            layout = kind.layout(first.n_states, first.n_components, len(codes), parts, precision)
            device = device or request.getfixturevalue("opencl_device")
            engine = OpenCLEngine(layout, n_slots, codes, weights, device)
            engine.set_model([mixture.components for mixture in mixtures])
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.close()
