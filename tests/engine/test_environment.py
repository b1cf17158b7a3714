"""What drivers need before they load, and that the process's environment is the same afterwards."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from plltool.engine.opencl import device, environment
from plltool.engine.opencl.environment import (
    IntelThreads,
    caches_settled,
    child_environment,
    describe_offer,
    intel_offered,
)
from plltool.errors import DeviceError, PlltoolWarning


@pytest.fixture
def intel_library(tmp_path, monkeypatch):
    """An empty file where pip installs the library of Intel's driver; a system without drivers."""
    library = tmp_path / "prefix" / "lib" / "libintelocl.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"")
    (tmp_path / "system").mkdir()
    monkeypatch.setattr(sysconfig, "get_path", lambda _name, _scheme: str(tmp_path / "prefix"))
    monkeypatch.setattr(os, "environ", {"OPENCL_VENDOR_PATH": str(tmp_path / "system")})
    monkeypatch.setattr(environment, "_absent", {})
    return library


def vendor_files():
    files = sorted(Path(os.environ["OCL_ICD_VENDORS"]).iterdir())
    assert all(file.suffix == ".icd" for file in files)
    return [file.read_text().strip() for file in files]


class TestOffer:
    @pytest.mark.parametrize("why", ["nothing is installed", "the user's choice", "the system has the driver"])
    def test_nothing_is_offered(self, intel_library, tmp_path, why):
        if why == "nothing is installed":
            intel_library.unlink()
        elif why == "the user's choice":
            os.environ["OCL_ICD_VENDORS"] = "/somewhere"
        else:
            (tmp_path / "system" / "intel.icd").write_text("/opt/intel/lib/libintelocl.so\n")
        before = dict(os.environ)
        with intel_offered(False) as problems:
            assert os.environ == before
        assert problems == []

    def test_beside_the_drivers_of_the_system(self, intel_library, tmp_path):
        (tmp_path / "system" / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
        (tmp_path / "system" / "empty.icd").write_text("")
        before = dict(os.environ)
        with intel_offered(False):
            assert vendor_files() == ["libnvidia-opencl.so.1", str(intel_library)]
            folder = Path(os.environ["OCL_ICD_VENDORS"])
        assert os.environ == before
        assert not folder.exists()

    def test_the_environment_is_restored_after_an_error(self, intel_library):
        before = dict(os.environ)
        with pytest.raises(ZeroDivisionError), intel_offered(False):
            raise ZeroDivisionError
        assert os.environ == before

    def test_a_library_that_cannot_be_loaded(self, intel_library):
        for _ in range(2):
            with intel_offered(False) as problems:
                pass
            (problem,) = problems
            assert str(intel_library) in problem
            assert "cannot be loaded: " in problem
        assert describe_offer() == []

    def test_no_temporary_folder(self, intel_library, monkeypatch):
        def fail(**_options):
            raise FileNotFoundError("No usable temporary directory found")

        monkeypatch.setattr("tempfile.TemporaryDirectory", fail)
        with intel_offered(False) as problems:
            pass
        assert "No usable temporary directory" in problems[0]

    def test_a_child_does_without_what_its_parent_lacks(self, intel_library):
        with intel_offered(False) as of_parent:
            pass
        os.environ |= child_environment(1)
        environment._absent.clear()
        with intel_offered(False) as of_child:
            assert "OCL_ICD_VENDORS" not in os.environ
        assert of_child == of_parent != []

    def test_a_warning_where_there_are_other_devices(self, intel_library, monkeypatch):
        platform = SimpleNamespace(get_devices=lambda: [])
        fake = SimpleNamespace(Error=RuntimeError, get_platforms=lambda: [platform])
        monkeypatch.setitem(sys.modules, "pyopencl", fake)
        device._warn_once.cache_clear()
        with pytest.warns(PlltoolWarning, match="Intel's OpenCL driver is installed .* but not used") as caught:
            answers = [device.list_devices()[1] for _ in range(2)]
        problems = answers[0]
        assert problems == answers[1]
        assert len(caught) == 1
        assert str(caught[0].message) in problems

    def test_an_error_where_there_are_none(self, intel_library, monkeypatch):
        def fail():
            raise RuntimeError("PLATFORM_NOT_FOUND_KHR")

        monkeypatch.setitem(sys.modules, "pyopencl", SimpleNamespace(Error=RuntimeError, get_platforms=fail))
        with pytest.raises(DeviceError, match="PLATFORM_NOT_FOUND_KHR; Intel's OpenCL driver is installed"):
            device.list_devices()


class TestCaches:
    def test_a_cache_that_can_be_written(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "there" / "yet"))
        before = dict(os.environ)
        with caches_settled() as remarks:
            assert os.environ == before
        assert remarks == []
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
    def test_a_cache_that_cannot_be_written(self, tmp_path, monkeypatch, variable):
        (tmp_path / "file").touch()
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv(variable, str(tmp_path / "file"))
        monkeypatch.delenv("PYOPENCL_NO_CACHE", raising=False)
        monkeypatch.setenv("POCL_CACHE_DIR", "/chosen")
        before = dict(os.environ)
        with caches_settled() as remarks:
            assert os.environ == before | {"PYOPENCL_NO_CACHE": "1"}
        assert os.environ == before
        assert str(tmp_path / "file") in remarks[0]
        assert "cannot be written" in remarks[0]

    def test_a_cache_on_a_full_disk(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # files end here, as they do where it is full
        try:
            with caches_settled() as remarks:
                pass
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert f"{tmp_path} cannot be written" in remarks[0]

    @pytest.mark.opencl
    def test_devices_work_without_a_cache(self, tmp_path, data_dir):
        (tmp_path / "file").touch()
        (tmp_path / "temporary").mkdir()
        code = (
            "import plltool\n"
            f"print(plltool.search({str(data_dir / 'primates.phy')!r}, 'JC', effort='fast', device='opencl').lnl)"
        )
        changes = {"XDG_CACHE_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path / "temporary")}
        done = run_python(code, os.environ | changes)
        assert float(done.stdout) < 0
        assert done.stderr.count("PlltoolWarning") == 1
        assert "every run has to compile" in done.stderr
        assert list((tmp_path / "temporary").iterdir()) == []


class TestIntelThreads:
    def variable(self):
        return os.environ.get(environment.INTEL_THREADS_VARIABLE)

    @pytest.fixture(autouse=True)
    def no_variable(self, monkeypatch):
        monkeypatch.delenv(environment.INTEL_THREADS_VARIABLE, raising=False)

    @pytest.mark.parametrize(
        ("user", "first", "seen", "limit"),
        [(None, 3, "3", 3), (None, None, None, None), ("7", 3, "7", 7)],
        ids=["three", "all cores", "what the user has set"],
    )
    def test_the_first_context_settles_it(self, monkeypatch, user, first, seen, limit):
        if user:
            monkeypatch.setenv(environment.INTEL_THREADS_VARIABLE, user)
        threads = IntelThreads()
        with threads.settled(first):
            assert self.variable() == seen
        assert self.variable() == user
        with threads.settled(2):
            assert self.variable() == user
        assert threads.limit == limit

    def test_a_context_that_fails_settles_nothing(self):
        threads = IntelThreads()
        with pytest.raises(ZeroDivisionError), threads.settled(3):
            raise ZeroDivisionError
        assert self.variable() is None
        with threads.settled(2):
            assert self.variable() == "2"


def run_python(code, variables=None):
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    return done


def test_importing_changes_nothing_and_loads_no_opencl():
    run_python(
        "import os, sys; before = dict(os.environ)\n"
        "import plltool.cli.tools, plltool.analyses.machine.devices, plltool.engine.opencl.probe\n"
        "assert dict(os.environ) == before\n"
        "assert 'pyopencl' not in sys.modules"
    )


@pytest.mark.opencl
class TestIntelsDriver:
    """The driver from PyPI, in processes of their own: what a loader finds, it finds once."""

    @pytest.fixture(autouse=True)
    def installed(self):
        try:
            importlib.metadata.version("intel-opencl-rt")
        except importlib.metadata.PackageNotFoundError:
            pytest.skip("Intel's OpenCL driver from PyPI is not installed")

    def test_the_library_finds_it_and_leaves_the_environment_alone(self):
        run_python(
            "import os, pyopencl; before = dict(os.environ)\n"
            "from plltool.engine.opencl.device import list_devices\n"
            "found, problems = list_devices()\n"
            "assert any(device.is_intel_cpu for device in found) and not problems, (found, problems)\n"
            "assert dict(os.environ) == before"
        )

    def test_a_loader_that_was_used_before(self):
        done = run_python(
            "import pyopencl\n"
            "try: pyopencl.get_platforms()\n"
            "except pyopencl.Error: pass\n"
            "import plltool; report = plltool.devices()\n"
            "assert all(row['problem'] is None for row in report['devices']), report\n"
            "print(report['failures'])"
        )
        assert "this process had listed the OpenCL platforms before" in done.stdout

    @pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="has one core")
    def test_the_first_run_settles_the_threads(self, data_dir):
        done = run_python(
            "import plltool\n"
            f"path = {str(data_dir / 'primates.phy')!r}\n"
            "run = lambda n: plltool.search(path, 'JC', effort='fast', device='intel', threads=n).reason\n"
            "print(run(1)); print(run(2))"
        )
        first, second = done.stdout.splitlines()
        assert ", 1 of " in first
        assert "not" not in first
        assert ", 1 of " in second
        assert "uses 1 threads, not 2" in second
        assert "PlltoolWarning: Intel's OpenCL driver uses 1 threads, not 2" in done.stderr
