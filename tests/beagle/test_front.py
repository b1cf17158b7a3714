"""The shared library of `plltool.beagle`, as clients in C use it, one of which is MrBayes as it is installed."""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from beagle_library import load_library

from plltool import build_beagle_library
from plltool.beagle import Code
from plltool.errors import InputError

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "benchmarks" / "beagle_front.py"


def need(*programs):
    pytest.importorskip("cffi")
    for needed in programs:
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed")


@pytest.mark.slow
def test_a_client_in_c(tmp_path):
    need("gcc")
    library = build_beagle_library(tmp_path)
    folder, name = library.parent, library.name
    source = Path(__file__).with_name("client.c")
    link = ["-L", folder, f"-l:{name}", f"-Wl,-rpath,{folder}"]
    subprocess.run(["gcc", "-o", tmp_path / "client", source, *link], check=True)
    done = subprocess.run([tmp_path / "client"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    words = [line.split() for line in done.stdout.splitlines() if not line.startswith("beagle")]
    lost = str(int(Code.UNINITIALIZED_INSTANCE))
    assert words == [
        ["matrices", "0", "0", "0", "0", "0.15", "0.16", "0.31"],
        ["sum", "0", "0", "0.16", "0.46"],
        ["speeds", "1", "0", "1", "1"],
        ["likelihood", "0", f"{5 * math.log(0.5):g}"],
        ["likelihood", str(int(Code.FLOATING_POINT)), words[4][2]],
        ["unknown", lost, lost],
        ["closed", "0", lost, lost],
    ]
    assert "nan" in words[4][2]


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"CC": "nowhere/cc"}, "found no nowhere/cc"),
        ({"CC": sys.executable}, "found an error of the compiler, expected a C compiler and the headers of Python"),
        ({}, "exists already; --redo replaces it"),
    ],
)
def test_what_the_library_needs(tmp_path, monkeypatch, settings, found):
    need("gcc")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    if not settings:
        (tmp_path / "libhmsbeagle.so.1").write_text("BEAGLE's own")
    with pytest.raises(InputError, match=re.escape(found)):
        build_beagle_library(tmp_path)
    assert settings or (tmp_path / "libhmsbeagle.so.1").read_text() == "BEAGLE's own"


def test_the_library_needs_cffi(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cffi", None)
    with pytest.raises(InputError, match=re.escape("pip install 'plltool[beagle]'")):
        build_beagle_library(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(load_library() is None, reason="libhmsbeagle.so.1 is not installed (Debian: libhmsbeagle1v5)")
def test_mrbayes_samples_the_same_chain(tmp_path):
    need("mb", "gcc")
    options = ["--generations", "300", "--chains", "2", "--resource", "0", "--folder", str(tmp_path)]
    done = subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every number is the same" in done.stdout
