"""`plltool bench`: its table, its file, and ratios to an older run."""

import json

import pytest

from plltool.analyses.machine.bench.run import Benchmark

SMALL = ("--device", "numpy", "--shape", "5x20", "--repetitions", "1")


def row(item, rate):
    return {
        "item": item,
        "states": 4,
        "components": 4,
        "precision": "double",
        "taxa": 32,
        "patterns": 1000,
        "seconds": 1e-3,
        "pattern_nodes_per_second": rate,
        "bytes_per_second": 2.5e9,
        "flops": 4e9,
        "copy_share": 0.25,
        "multiply_add_share": 0.5,
        "bound_share": 0.75 if item == "newview" else None,
        "rescaled_patterns": 500,
        "copy_bytes_per_second": 1e10,
        "multiply_adds_per_second": 4e9,
        "layout": {"vw": 8},
    }


@pytest.fixture
def fixed(monkeypatch):
    """A benchmark whose figures are known."""
    done = Benchmark("a device", "a driver", "a reason", (row("newview", 3e8), row("scan", 1e8)))
    monkeypatch.setattr("plltool.bench", lambda *_, **__: done)
    return done


def test_the_table(plltool, fixed):
    lines = plltool("bench", *SMALL).stdout.splitlines()
    assert lines[:2] == ["device: a device", "driver: a driver"]
    assert lines[3].startswith("32 taxa, 1000 patterns, 4 states, double, VW 8: copy 10.0 GB/s, peak 8.0 GFLOP/s, 50 %")
    assert lines[5].split() == ["newview", "1.000", "300.0", "2.50", "4.00", "25.0", "%", "50.0", "%", "75.0", "%"]
    assert lines[6].split()[-1] == "-"


def test_ratios_follow_the_table_and_change_nothing_else(plltool, fixed, tmp_path):
    older = tmp_path / "older.json"
    rows = [row("newview", 2e8), row("evaluate", 1e8)]
    older.write_text(json.dumps(Benchmark("b", "b", "b", tuple(rows)).as_record()))
    plain = plltool("bench", *SMALL).stdout
    compared = plltool("bench", *SMALL, "--compare", older, status=0)
    assert compared.stdout.startswith(plain)
    ratios = compared.stdout.removeprefix(plain).splitlines()
    assert ratios[1] == f"pattern-nodes per second over those in {older}"
    name = "32 taxa, 1000 patterns, 4 states x 4, double"
    assert [line.split("  ")[0] for line in ratios[2:]] == [f"newview, {name}", f"scan, {name}", f"evaluate, {name}"]
    assert [line.split("  ")[-1].strip() for line in ratios[2:]] == ["1.500", "not in the file", "in the file only"]


def test_a_real_run_writes_its_file(plltool, tmp_path):
    path = tmp_path / "x.json"
    result = plltool("bench", *SMALL, "--output", path, status=0)
    assert "shape 1 of 1: 5 taxa, 20 patterns" in result.stderr
    assert "shape" not in result.stdout
    record = json.loads(path.read_text())
    assert record["command"].startswith("plltool bench ")
    assert [row["item"] for row in record["rows"]] == ["newview", "evaluate", "derivatives", "scan"]
    again = plltool(
        "bench", *SMALL, "--output", tmp_path / "new.json", "--redo", "--compare", path, "--quiet", status=0
    )
    assert again.stderr == ""
    assert again.stdout.count("newview, 5 taxa, 20 patterns") == 1


def test_a_broken_file_is_one_line(plltool, tmp_path, monkeypatch):
    monkeypatch.setattr("plltool.bench", lambda *_: pytest.fail("it began to work"))
    path = tmp_path / "x.json"
    path.write_text("{")
    result = plltool("bench", *SMALL, "--compare", path, status=1)
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"plltool: error: {path}: found something other than JSON")
