"""`plltool compare`: exit 0 or 3, the traces side by side."""

import json

import pytest

QUICK = ("--model", "HKY+F", "--start", "random", "--radius", "3")


def test_widths_agree(plltool, small):
    result = plltool("compare", small, "--a", "numpy:vw=1", "--b", "numpy:vw=4", *QUICK)
    assert result.exit_code == 0, result.stderr
    assert "Robinson-Foulds distance: 0" in result.stdout
    assert "first difference beyond 0.01: none" in result.stdout
    assert "nni 1" in result.stdout


@pytest.mark.opencl
def test_numpy_and_opencl_agree(plltool, small):
    result = plltool("compare", small, "--a", "numpy:vw=2", "--b", "opencl", *QUICK)
    assert result.exit_code == 0, result.stderr


def test_a_difference_exits_3(plltool, small):
    arguments = ("--a", "numpy:precision=single", "--b", "numpy", "--tolerance", "0", "--json", *QUICK)
    result = plltool("compare", small, *arguments)
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["agree"] is False
    assert found["first_difference"] == 0
    assert found["difference"] != 0
    assert len(found["trace_a"]) > 3


def test_a_specification_that_cannot_be_read(plltool, small):
    result = plltool("compare", small, "--a", "numpy:wv=2", "--b", "numpy")
    assert result.exit_code == 1
    assert "wv=2" in result.stderr
