"""Child processes import the plltool of their parent, wherever they are started."""

import multiprocessing.spawn
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import plltool
from plltool.engine.opencl.device_faults import probe_device
from plltool.errors import DeviceError
from plltool.processes import workers
from plltool.processes.workers import can_start_children, child_command

PACKAGE = Path(plltool.__file__).parent
WHERE = "import plltool.processes.workers; print(plltool.__file__, plltool.processes.workers.__file__)"


@pytest.fixture
def decoy(tmp_path, monkeypatch):
    """The current folder, whose `plltool` and `json` must not be imported."""
    folder = tmp_path / "decoy"
    for name in ("plltool", "json", "numpy"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise RuntimeError('the decoy of {name} was imported')")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def copied(tmp_path):
    """A folder with a copy of plltool, without its kernels, that no interpreter finds by itself."""
    shutil.copytree(PACKAGE, tmp_path / "copy" / "plltool", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "copy"


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_child_calls_a_function_and_exits_with_its_result():
    done = subprocess.run(child_command("operator:concat", "3", "4"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (1, "34")


@pytest.mark.parametrize("entry", ["", ".", None])
def test_nothing_is_imported_from_the_current_folder(decoy, monkeypatch, entry):
    if entry is not None:  # what a notebook has first on its path
        monkeypatch.syspath_prepend(entry)
    assert run(*child_command("builtins:exec", WHERE)).split() == [str(PACKAGE / "__init__.py"), workers.__file__]


@pytest.mark.parametrize("is_relative", [False, True])
def test_a_child_imports_what_is_on_the_path(decoy, copied, is_relative):
    """What a script has put there, or a relative path led to: in a notebook whose current folder changes later."""
    code = (
        f"import sys; sys.path.insert(0, {'' if is_relative else str(copied)!r})\n"
        "from plltool.processes.workers import child_command\n"
        "import os, subprocess\n"
        f"os.chdir({str(decoy)!r})\n"
        f"print(subprocess.run(child_command('builtins:exec', {WHERE!r}), capture_output=True, text=True))"
    )
    done = run(sys.executable, "-P", "-c", code, cwd=copied if is_relative else decoy)
    assert f"stdout='{copied / 'plltool' / '__init__.py'} {copied / 'plltool' / 'processes' / 'workers.py'}" in done


def test_a_frozen_program_has_no_children(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not can_start_children()
    with pytest.raises(DeviceError, match="no Python interpreter"):
        child_command("builtins:exec", "")
    assert "no Python interpreter" in probe_device("0:0")
    monkeypatch.setattr(multiprocessing.spawn, "get_executable", lambda: "/usr/bin/python3")
    assert child_command("builtins:exec", "")[0] == "/usr/bin/python3"


@pytest.mark.opencl
def test_devices_are_tested_in_a_checkout(decoy):
    report = run(sys.executable, "-P", "-c", "import plltool; print(plltool.devices()['devices'][0]['problem'])")
    assert report == "None"


@pytest.mark.opencl
def test_python_in_a_checkout_finds_the_kernels_beside_the_package(copied):
    """Though another copy is installed: the current folder comes first on Python's path."""
    shutil.copytree(Path(__file__).resolve().parents[1] / "kernels", copied / "kernels")
    code = (
        "import sys\n"  # what `pip install --editable` adds would find the kernels of this checkout
        "sys.meta_path = [finder for finder in sys.meta_path if 'editable' not in finder.__module__]\n"
        "import plltool\n"
        "result = plltool.search({'a': 'ACGT', 'b': 'ACGA', 'c': 'ACTA'}, model='JC', device='opencl')\n"
        "print(plltool.__file__, result.n_taxa)"
    )
    assert run(sys.executable, "-c", code, cwd=copied).split() == [str(copied / "plltool" / "__init__.py"), "3"]


def test_workers_search_in_a_checkout(decoy, data_dir, tmp_path):
    code = "from plltool.cli import main; main(prog_name='plltool')"
    options = ("--device", "numpy", "--effort", "fast", "--workers", "2", "--starts", "2", "--model", "JC", "--quiet")
    command = ("search", str(data_dir / "primates.phy"), "--prefix", str(tmp_path / "run"), *options)
    assert "lnL from each start tree: " in run(sys.executable, "-P", "-c", code, *command)
