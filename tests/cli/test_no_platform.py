"""A machine where pyopencl imports but finds no platform: a search runs on numpy and says so in one line.

And a machine that has Intel's driver from PyPI and no other: command and library find it.
"""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_alignments import primates

from plltool.io.tree_files import read_tree

BUNDLED_DRIVER = ("libpocl*", "*.icd", "__pycache__")  # what pocl-binary-distribution puts beside pyopencl's loader


@pytest.fixture(scope="module")
def no_pocl(tmp_path_factory):
    """An environment whose pyopencl does not have PoCL from PyPI, nor any driver of the system.

    The wheel of PoCL adds a driver file to pyopencl's own folder, where the loader in pyopencl's wheel looks as well.
    So the environment gets a copy of pyopencl without that file. OPENCL_VENDOR_PATH hides the drivers of the system.
    """
    package = Path(pytest.importorskip("pyopencl").__file__).parent
    folder = tmp_path_factory.mktemp("no_pocl")
    copies, empty = folder / "copies", folder / "vendors"
    shutil.copytree(package, copies / "pyopencl", ignore=shutil.ignore_patterns(*BUNDLED_DRIVER))
    libraries = package.parent / "pyopencl.libs"  # where other builds of the wheel keep the loader
    if libraries.is_dir():
        shutil.copytree(libraries, copies / libraries.name, ignore=shutil.ignore_patterns(*BUNDLED_DRIVER))
    empty.mkdir()
    return os.environ | {"PYTHONPATH": str(copies), "OPENCL_VENDOR_PATH": str(empty)}


@pytest.fixture(scope="module")
def no_platform(no_pocl):
    """An environment whose pyopencl has a loader but nothing to load. OCL_ICD_VENDORS hides Intel's driver."""
    return no_pocl | {"OCL_ICD_VENDORS": no_pocl["OPENCL_VENDOR_PATH"]}


def run(environment, *arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )


def test_the_environment_has_no_platform(no_platform):
    """Else the test below would say nothing."""
    done = run(no_platform, "-c", "import pyopencl; pyopencl.get_platforms()")
    assert "PLATFORM_NOT_FOUND_KHR" in done.stderr


COMMAND = "from plltool.cli import main; main(prog_name='plltool')"
OPTIONS = ("--model", "JC", "--effort", "fast")


def test_search_runs_on_numpy_and_says_so(no_platform, data_dir, tmp_path):
    prefix = ("--prefix", tmp_path / "run")
    done = run(no_platform, "-c", COMMAND, "search", data_dir / "primates.phy", *OPTIONS, *prefix)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "numpy" in line]
    assert len(lines) == 1
    assert lines[0].startswith("plltool: warning: ")
    assert "no OpenCL platform" in lines[0]
    assert "pip install" in lines[0]
    tree = read_tree(tmp_path / "run.best.nwk")
    assert sorted(tree.names) == sorted(primates(data_dir))
    (warning,) = json.loads((tmp_path / "run.json").read_text())["warnings"]
    assert lines[0].endswith(warning)
    assert warning in (tmp_path / "run.log").read_text()


@pytest.mark.parametrize(
    ("command", "options"), [("search", (*OPTIONS, "--quiet", "--starts", "2", "--workers", "2")), ("check", ())]
)
def test_neither_quiet_nor_the_lack_of_a_log_hides_it(no_platform, data_dir, tmp_path, command, options):
    given = ("--prefix", tmp_path / "run") if command == "search" else ()
    done = run(no_platform, "-c", COMMAND, command, data_dir / "primates.phy", *options, *given)
    (line,) = done.stderr.splitlines()
    assert line.startswith("plltool: warning: numpy")


def test_progress_as_json_has_it(no_platform, data_dir, tmp_path):
    prefix = ("--prefix", tmp_path / "run", "--json-progress", "-")
    done = run(no_platform, "-c", COMMAND, "search", data_dir / "primates.phy", *OPTIONS, *prefix)
    events = [json.loads(line) for line in done.stderr.splitlines()]
    (warning,) = [event for event in events if event.get("level") == "warning"]
    assert warning["message"].startswith("numpy")


SEARCH = """
import sys, warnings
import plltool

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    result = plltool.search(sys.argv[1], "JC", effort="fast")
print([str(warning.message) for warning in caught] == list(result.warnings))
print([(warning.category.__name__, warning.filename) for warning in caught])
print(result.reason)
"""


def test_the_library_gives_a_warning_for_the_callers_line(no_platform, data_dir, tmp_path):
    (tmp_path / "script.py").write_text(SEARCH)
    done = run(no_platform, tmp_path / "script.py", data_dir / "primates.phy")
    same, warnings, reason = done.stdout.splitlines()
    assert same == "True"
    assert warnings == str([("PlltoolWarning", str(tmp_path / "script.py"))])
    assert reason.startswith("numpy")
    assert done.stderr == ""


@pytest.mark.opencl
def test_the_library_finds_intels_driver(no_pocl, data_dir, tmp_path):
    try:
        importlib.metadata.version("intel-opencl-rt")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("Intel's OpenCL driver from PyPI is not installed")
    (tmp_path / "script.py").write_text(SEARCH)
    done = run(no_pocl, tmp_path / "script.py", data_dir / "primates.phy")
    same, warnings, reason = done.stdout.splitlines()
    assert (same, warnings) == ("True", "[]")
    assert "Intel(R) OpenCL" in reason
