"""`plltool date`: files, options, errors."""

import json

import pytest

pytest.importorskip("treetime", reason="TreeTime is not installed: pip install plltool[dating]")
TREE = "(({}:0.05,{}:0.1):0.02,{}:0.15,({}:0.1,({}:0.15,{}:0.2):0.03):0.05);\n"


@pytest.fixture
def given(small, tmp_path, names):
    """A run of six taxa with dates that fit a clock, more or less."""
    (tmp_path / "tree.nwk").write_text(TREE.format(*names))
    dates = ("2000-01-01", "2005-06-XX", "2010.5", "2008", "[2012.0:2013.5]", "2020-12-31")
    lines = [f"{name},{day}\n" for name, day in zip(names, dates, strict=True)]
    (tmp_path / "dates.csv").write_text("strain,date\n" + "".join(lines))
    files = ("date", small, "--tree", tmp_path / "tree.nwk", "--dates", tmp_path / "dates.csv")
    return (*files, "--model", "JC", "--fixed", "--lengths", "input", "--device", "numpy", "--prefix", tmp_path / "d")


def test_files(plltool, given, tmp_path):
    done = plltool(*given, "--clock-rate", 0.01, "--root", "oldest", "--no-report", status=0)
    assert "clock rate: 0.01 substitutions per site and year\n" in done.stdout
    assert f"time-scaled tree: {tmp_path / 'd.date.nwk'}\n" in done.stdout
    record = json.loads((tmp_path / "d.date.json").read_text())
    assert record["dating"]["clock"]["rate"] == pytest.approx(0.01)
    assert record["dated_tree"] + "\n" == (tmp_path / "d.date.nwk").read_text()
    assert record["dating"]["lengths"] == "input"
    rows = [line.split("\t") for line in (tmp_path / "d.date.tsv").read_text().splitlines()]
    assert rows[0] == ["node", "date", "numeric_date", "lower", "upper", "parent", "rate"]
    assert rows[1][0] == "Node1"
    assert f"root: {float(rows[1][2]):.2f} (" in done.stdout
    assert (tmp_path / "d.date.nex").read_text().startswith("#NEXUS")
    assert len((tmp_path / "d.date.clock.tsv").read_text().splitlines()) == 7
    assert sorted(path.name for path in tmp_path.glob("d.*")) == [
        "d.date.clock.tsv", "d.date.json", "d.date.log", "d.date.nex", "d.date.nwk", "d.date.tsv",
    ]  # fmt: skip
    plltool(*given, status=1, told="d.date.nwk: exists already; --redo replaces it")
    (tmp_path / "dates.csv").write_text("strain,day\n")
    plltool(*given, "--redo", status=1, told="dates.csv: found columns 'strain', 'day', expected one of dates")
