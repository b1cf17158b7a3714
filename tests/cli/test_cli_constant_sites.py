"""--constant-sites and --site-weights: what commands do, and what records and reports say."""

import json

import pytest

NUMPY = ("--device", "numpy")
COUNTS = ("--constant-sites", "10,20,0,30")
SITES = "6 taxa, 360 sites with 60 constant ones added"


def test_a_search_and_what_it_writes(plltool, small, tmp_path):
    made = plltool(
        "search", small, "--model", "JC", "--effort", "fast", *NUMPY, *COUNTS, "--prefix", tmp_path / "x", status=0
    )
    assert SITES in made.stderr
    record = json.loads((tmp_path / "x.json").read_text())
    assert record["n_sites"] == 360
    assert record["data"]["constant_sites"] == [10, 20, 0, 30]
    report = (tmp_path / "x.txt").read_text()
    assert "A 10, C 20, G 0, T 30" in report
    assert "360 sites" in report
    assert "including 60 constant sites that were added to the file" in " ".join(report.split())
    plltool("search", small, "--model", "JC", "--effort", "fast", *NUMPY, "--prefix", tmp_path / "y", status=0)
    plltool("compare", tmp_path / "x.json", tmp_path / "y.json", status=1, told="found a run of another alignment")


@pytest.mark.parametrize("command", ["evaluate", "alrt", "ancestral", "check", "compare"])
def test_others_take_it(plltool, small, some_tree, command, tmp_path):
    more = {
        "check": [*NUMPY],
        "compare": ["--a", "numpy", "--b", "numpy:vw=2", "--model", "JC", "--effort", "fast"],
    }.get(command, [some_tree, "--model", "JC", "--fixed", *NUMPY, "--prefix", tmp_path / "x"])
    made = plltool(command, small, *more, *COUNTS, status=0)
    assert SITES in made.stderr or "sites: 360" in made.stdout
    if command == "evaluate":
        plltool(command, small, *more, *COUNTS, "--redo", "--site-lnl", tmp_path / "sites.tsv", status=0)
        assert len((tmp_path / "sites.tsv").read_text().splitlines()) == 301  # a header, and the columns of the file


def test_weights_of_columns(plltool, small, some_tree, tmp_path):
    weights = tmp_path / "w.txt"
    weights.write_text("2 " * 300)
    arguments = ("--model", "JC", *NUMPY, "--site-weights", weights, "--prefix", tmp_path / "x")
    plltool("evaluate", small, some_tree, *arguments, status=0, told="6 taxa, 600 sites in 300 columns with weights")
    report = " ".join((tmp_path / "x.txt").read_text().split())
    assert "Columns of the file, which have weights: 300" in report
    assert "600 sites of DNA data" in report
    assert "they are the 300 columns of the file with their weights" in report
