"""The shared library of `plltool.beagle`, as clients in C use it, one of which is MrBayes as it is installed."""

import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from beagle_library import load_library

from plltool.beagle import Code

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "benchmarks" / "beagle_front.py"


def need(*programs):
    pytest.importorskip("cffi")
    for needed in programs:
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed")


@pytest.mark.slow
def test_a_client_in_c(tmp_path):
    need("gcc")
    options = ["--build-only", "--folder", str(tmp_path)]
    library = subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, check=True).stdout
    folder, name = Path(library.strip()).parent, Path(library.strip()).name
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


@pytest.mark.slow
@pytest.mark.skipif(load_library() is None, reason="libhmsbeagle.so.1 is not installed (Debian: libhmsbeagle1v5)")
def test_mrbayes_samples_the_same_chain(tmp_path):
    need("mb", "gcc")
    options = ["--generations", "300", "--chains", "2", "--resource", "0", "--folder", str(tmp_path)]
    done = subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every number is the same" in done.stdout
