"""Small analyses in the shape of a GPU on a simulated device, which reports data races: `scripts/gpu/find_races.py`."""

import subprocess
import sys
from pathlib import Path

import find_races
import pytest

SCRIPT = Path(find_races.__file__)


@pytest.mark.slow
@pytest.mark.opencl
def test_no_races():
    if not any(Path(library).is_file() for library in find_races.LIBRARIES):
        pytest.skip("needs the simulator Oclgrind: Debian's package oclgrind")
    done = subprocess.run([sys.executable, SCRIPT, "--quick"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("0 reports") == len(find_races.QUICK)


def test_reports_are_recognised():
    """As Oclgrind 21.10 writes them."""
    written = "Read-write data race at global memory address 0x60\n\tKernel: traverse\nInvalid read of size 8 at 0x1\n"
    assert len(find_races.REPORT.findall(written)) == 2
    assert find_races.REPORT.findall("plltool: device: OpenCL device 0:0 Oclgrind Simulator\nlnL: -1\n") == []
