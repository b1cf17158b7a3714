"""MrBayes, as it is installed, samples the same chain on a shared library of `plltool.beagle` as on BEAGLE's."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from library import LIBRARY

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "beagle_front.py"


@pytest.mark.slow
@pytest.mark.skipif(LIBRARY is None, reason="libhmsbeagle.so.1 is not installed (Debian: libhmsbeagle1v5)")
def test_mrbayes_samples_the_same_chain(tmp_path):
    pytest.importorskip("cffi")
    for needed in ("mb", "gcc"):
        if shutil.which(needed) is None:
            pytest.skip(f"{needed} is not installed")
    options = ["--generations", "300", "--chains", "2", "--resource", "0", "--folder", str(tmp_path)]
    done = subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every number is the same" in done.stdout
