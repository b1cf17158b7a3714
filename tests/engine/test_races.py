"""Small analyses in the shape of a GPU on a simulated device, which reports data races: `scripts/gpu/find_races.py`."""

import os
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


@pytest.mark.slow
@pytest.mark.opencl
def test_no_races_in_the_programs_of_gpus(tmp_path):
    """`traverse` for each set of instructions, with few states and many: `test_opcode_sets.py` on the simulator."""
    library = next((name for name in find_races.LIBRARIES if Path(name).is_file()), None)
    if library is None:
        pytest.skip("needs the simulator Oclgrind: Debian's package oclgrind")
    (tmp_path / "oclgrind.icd").write_text(f"{library}\n")
    variables = {"OCL_ICD_VENDORS": str(tmp_path), "OCLGRIND_DATA_RACES": "1", "PYOPENCL_NO_CACHE": "1"}
    tests = Path(__file__).with_name("test_opcode_sets.py")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-k", "change_no_bit", tests]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[:3000]
    assert "2 warnings generated" in done.stderr + done.stdout  # by its compiler: it was the simulator
    assert find_races.REPORT.findall(done.stdout + done.stderr) == []


def test_reports_are_recognised():
    """As Oclgrind 21.10 writes them."""
    written = "Read-write data race at global memory address 0x60\n\tKernel: traverse\nInvalid read of size 8 at 0x1\n"
    assert len(find_races.REPORT.findall(written)) == 2
    assert find_races.REPORT.findall("plltool: device: OpenCL device 0:0 Oclgrind Simulator\nlnL: -1\n") == []
