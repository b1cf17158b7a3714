"""A machine where pyopencl imports but finds no platform: a search runs on numpy and says so in one line."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from samples import small_records

from plltool.io.part_trees import read_tree

BUNDLED_DRIVER = ("libpocl*", "*.icd", "__pycache__")  # what pocl-binary-distribution puts beside pyopencl's loader


@pytest.fixture
def no_platform(tmp_path):
    """An environment whose pyopencl has a loader but nothing to load.

    OCL_ICD_VENDORS and OPENCL_VENDOR_PATH hide the drivers of the system. PoCL from PyPI is not among them: its wheel
    adds a driver file to pyopencl's own folder, where the loader in pyopencl's wheel looks as well. So the environment
    gets a copy of pyopencl without that file.
    """
    package = Path(pytest.importorskip("pyopencl").__file__).parent
    copies, empty = tmp_path / "copies", tmp_path / "vendors"
    shutil.copytree(package, copies / "pyopencl", ignore=shutil.ignore_patterns(*BUNDLED_DRIVER))
    libraries = package.parent / "pyopencl.libs"  # where other builds of the wheel keep the loader
    if libraries.is_dir():
        shutil.copytree(libraries, copies / libraries.name, ignore=shutil.ignore_patterns(*BUNDLED_DRIVER))
    empty.mkdir()
    changes = {"PYTHONPATH": copies, "OCL_ICD_VENDORS": empty, "OPENCL_VENDOR_PATH": empty}
    return os.environ | {name: str(folder) for name, folder in changes.items()}


def run(environment, *arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True, check=False
    )


def test_the_environment_has_no_platform(no_platform):
    """Else the test below would say nothing."""
    done = run(no_platform, "-c", "import pyopencl; pyopencl.get_platforms()")
    assert "PLATFORM_NOT_FOUND_KHR" in done.stderr


def test_search_runs_on_numpy_and_says_so(no_platform, data_dir, tmp_path):
    code = "from plltool.cli import main; main(prog_name='plltool')"
    done = run(no_platform, "-c", code, "search", data_dir / "primates.phy", "--prefix", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "numpy" in line]
    assert len(lines) == 1
    assert "no OpenCL platform" in lines[0]
    assert "pip install" in lines[0]
    tree = read_tree(tmp_path / "run.best.nwk")
    assert sorted(tree.names) == sorted(name for name, _ in small_records(data_dir, 12))
