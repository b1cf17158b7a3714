"""Where the tests find their data, and what becomes of those that need an OpenCL device.

Without an option they are skipped, with a reason, where there is no device. ``--require-opencl`` makes them fail there:
a check that never reached a device must not look like one that passed. ``--no-opencl`` takes pyopencl away, here and in
the processes that tests start.
"""

import json
import os
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before numpy loads: oracles work on thousands of matrices of a few states each, where threads only wait for each other
# (one took 11 s of processor time with them on two busy cores, 1 s without).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Examples may take as long as a busy machine needs.
settings.register_profile("plltool", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plltool")

_REPOSITORY = Path(__file__).resolve().parents[1]
_BLOCKING_FOLDER = Path(__file__).resolve().parent / "without_opencl"


def pytest_addoption(parser):
    group = parser.getgroup("OpenCL")
    group.addoption("--no-opencl", action="store_true", help="run as if pyopencl were not installed")
    group.addoption("--require-opencl", action="store_true", help="fail, not skip, where there is no OpenCL device")


def pytest_configure(config):
    if not config.option.no_opencl:
        return
    if config.option.require_opencl:
        raise pytest.UsageError("--no-opencl and --require-opencl exclude each other")
    if sys.modules.get("pyopencl") is not None:
        raise pytest.UsageError("--no-opencl comes too late: something has imported pyopencl")
    sys.modules["pyopencl"] = None  # the import system's own way to say that there is none
    sys.path.insert(0, str(_BLOCKING_FOLDER))  # for worker processes, which look where this one does
    paths = [str(_BLOCKING_FOLDER), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def pytest_report_header(config):
    problem = "blocked by --no-opencl" if config.option.no_opencl else _find_opencl_problem()
    return f"OpenCL: {problem or 'present'}"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Decide about a test marked `opencl` before its fixtures are made."""
    if item.get_closest_marker("opencl") is None:
        return
    if item.config.option.no_opencl:
        pytest.skip("needs OpenCL, which --no-opencl takes away")
    problem = _find_opencl_problem()
    if problem is None:
        return
    if item.config.option.require_opencl:
        pytest.fail(f"no OpenCL device, but --require-opencl was given: {problem}", pytrace=False)
    pytest.skip(f"no OpenCL device: {problem}")


@cache
def _find_opencl_problem() -> str | None:
    """Why no OpenCL device can be used here; None if one can."""
    from plltool.engine.opencl.device import list_devices
    from plltool.errors import DeviceError

    try:
        devices, problems = list_devices()
    except DeviceError as error:
        return str(error)
    found = [device.problem_in("double") for device in devices]
    if None in found:
        return None
    labelled = (f"{device.label}: {problem}" for device, problem in zip(devices, found, strict=True))
    return "; ".join([*problems, *labelled]) or "none found"


@cache
def _validator(result):
    """What validates records of a class of results."""
    from jsonschema import Draft202012Validator

    from plltool.schema import json_schema

    return Draft202012Validator(json_schema(result))


@pytest.fixture(autouse=True)
def _records_follow_their_schema(monkeypatch):
    """The record of every result that a test turns into JSON follows the schema of the result's class."""
    from plltool.io.files import Recorded

    write = Recorded.to_json

    def write_and_check(self, command=None):
        text = write(self, command)
        _validator(type(self)).validate(json.loads(text))
        return text

    monkeypatch.setattr(Recorded, "to_json", write_and_check)


@pytest.fixture(scope="session")
def has_opencl(request) -> bool:
    """Whether tests may use an OpenCL device, for those that can do a part of their work without one."""
    return not request.config.option.no_opencl and _find_opencl_problem() is None


@pytest.fixture
def unoptimised(has_opencl, monkeypatch):
    """PoCL compiles kernels as they are: 0.3 to 1 s for each in place of 1 to 4 s, and they are 4 times as slow.

    For tests of one request, or a few, of kernels that no other file uses; the fixture does not reach other processes.
    """
    if not has_opencl:
        return
    from plltool.engine.opencl import kernels
    from plltool.engine.opencl.device import is_pocl

    build = kernels._build

    def build_quickly(context, source, options):
        more = ["-cl-opt-disable"] if is_pocl(context.devices[0].platform.name) else []
        return build(context, source, (*options, *more))

    build_quickly.cache_clear = build.cache_clear
    monkeypatch.setattr(kernels, "_build", build_quickly)


@pytest.fixture(params=["numpy", pytest.param("opencl", marks=pytest.mark.opencl)])
def device(request):
    """Both kinds of engine, for tests that do not name their own."""
    return request.param


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The small inputs that come with the repository."""
    return _REPOSITORY / "data"


@pytest.fixture(scope="session")
def primates(data_dir) -> Path:
    return data_dir / "primates.phy"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of larger alignments and reference results: $PLLTOOL_SHARED, or `shared` beside the repository."""
    folder = Path(os.environ.get("PLLTOOL_SHARED", _REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}; set PLLTOOL_SHARED to where the larger alignments are")
    return folder
