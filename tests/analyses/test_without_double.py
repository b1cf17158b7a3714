"""Analyses on a device without double precision, which a device that has it stands for."""

from dataclasses import replace
from pathlib import Path

import pytest

import plltool
from plltool.engine import select
from plltool.errors import DeviceError
from plltool.tree.splits import rf_distance

DATA = Path(__file__).parents[2] / "data" / "primates.phy"
pytestmark = pytest.mark.opencl


@pytest.fixture
def without_double(monkeypatch):
    """Every device of this process is one without double precision."""
    found, problems = select.list_devices()
    monkeypatch.setattr(select, "list_devices", lambda: ([replace(own, has_double=False) for own in found], problems))


def test_a_search_ends_in_double(without_double):
    settings = {"model": "GTR+G4", "start": "parsimony", "effort": "fast"}
    found = plltool.search(DATA, precision="single", device="opencl", workers=1, **settings)
    expected = plltool.search(DATA, device="numpy", **settings)
    assert found.layout["has_double"] is False
    assert rf_distance(found.tree, expected.tree) == 0
    assert found.lnl == pytest.approx(expected.lnl, abs=1e-3)
    again = plltool.evaluate(DATA, found.newick, found.model, fixed=True, device="numpy")
    assert found.lnl == pytest.approx(again.lnl, rel=1e-12)  # computed in double, not only near it
    assert found.parts[0].lnl == found.lnl
    assert found.as_record()["lnl_device"] == again.device
    assert "lnl_device" not in expected.as_record()


def test_an_evaluation_ends_in_double(without_double):
    found = plltool.evaluate(DATA, plltool.start_trees(DATA)[0], "JC", precision="single", device="opencl")
    again = plltool.evaluate(DATA, found.newick, "JC", fixed=True, device="numpy")
    assert found.lnl == pytest.approx(again.lnl, rel=1e-12)
    assert found.as_record()["lnl_device"] == again.device


def test_it_is_used_in_single_precision_only(without_double):
    with pytest.raises(DeviceError, match=r"no double precision; it can be used with --precision single$"):
        plltool.evaluate(DATA, plltool.start_trees(DATA)[0], "JC", device="opencl", fixed=True)
    with pytest.warns(plltool.PlltoolWarning, match="no double precision"):
        result = plltool.evaluate(DATA, plltool.start_trees(DATA)[0], "JC", fixed=True)
    assert result.device.startswith("numpy")
