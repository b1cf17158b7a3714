"""`plltool place`: files, options, errors."""

import gzip
import json

import pytest


@pytest.fixture
def given(small, some_tree, tmp_path):
    """Options: the reference without its last site as data of one query, in two files, one of them gzipped."""
    rows = small.read_text().splitlines()[1::2]
    gap = "-" * 100
    (tmp_path / "a.fasta").write_text(f">first\n{rows[0][:200]}{gap}\n>same\n{rows[0][:200]}{gap}\n>none\n{3 * gap}\n")
    with gzip.open(tmp_path / "b.fasta.gz", "wt") as file:
        file.write(f">second\n{gap}{rows[1][100:]}\n")
    queries = ("--queries", tmp_path / "a.fasta", "--query", tmp_path / "b.fasta.gz")
    options = ("--tree", some_tree, "--model", "HKY{5}+F", "--device", "numpy", "--prefix", tmp_path / "p")
    return ("place", "--reference", small, *options, *queries)


def read(tmp_path):
    return json.loads((tmp_path / "p.jplace").read_text())


def test_files(plltool, given, tmp_path):
    done = plltool(*given, status=0)
    assert "placed: 3 queries, 1 of them identical to another; 1 without data not placed" in done.stdout
    assert "1 query without data (only gaps) not placed, first 'none'" in done.stderr
    text = read(tmp_path)
    assert [entry["n"] for entry in text["placements"]] == [["first", "same"], ["second"]]
    assert text["metadata"]["invocation"].startswith("plltool place --reference")
    for entry in text["placements"]:
        weights = [row[text["fields"].index("like_weight_ratio")] for row in entry["p"]]
        assert weights == sorted(weights, reverse=True)
        assert 0.9 < sum(weights) < 1 + 1e-9
    record = json.loads((tmp_path / "p.place.json").read_text())
    assert record["placement"] == {"n_placed": 3, "n_distinct": 2, "without_data": ["none"]}
    report = (tmp_path / "p.txt").read_text()
    assert "Query sequences placed:                 3\n" in report
    assert report.count("\n  same ") == 1
    assert f"report: {tmp_path / 'p.html'}" in done.stdout
    plltool(*given, status=1, told="p.jplace: exists already; --redo replaces it")


def test_filters(plltool, given, tmp_path):
    def count(*options):
        plltool(*given, "--redo", *options, status=0)
        return [len(entry["p"]) for entry in read(tmp_path)["placements"]]

    assert count("--filter-max", 1) == [1, 1]
    assert count("--filter-acc-lwr", 0.1) == [1, 1]
    assert count("--filter-min-lwr", 1) == [1, 1]
    assert count("--no-heur", "--filter-acc-lwr", 1, "--filter-max", 99) == [9, 9]
    assert count("--dyn-heur", 1e-9, "--filter-acc-lwr", 1, "--filter-max", 99) == [5, 5], "the fewest branches"


def test_graft(plltool, given, tmp_path):
    done = plltool(*given, "--graft", status=0)
    assert f"tree with all queries: {tmp_path / 'p.grafted.nwk'}" in done.stdout
    tree = (tmp_path / "p.grafted.nwk").read_text()
    assert [name in tree for name in ("first", "same", "second", "none")] == [True, True, True, False]
    grafted = json.loads((tmp_path / "p.place.json").read_text())["placement"]["grafted"]
    assert grafted["tree"] == tree.strip()
    assert f"lnL of the tree with all queries: {grafted['lnl']:.6f}" in done.stdout
    report = " ".join((tmp_path / "p.txt").read_text().split())
    assert f"p.grafted.nwk is the reference tree with all queries placed. Its lnL is {grafted['lnl']:.4f}." in report
    assert "We then attached them to it one after another" in report
    plltool(*given, "--redo", status=0)
    assert not (tmp_path / "p.grafted.nwk").exists()


def test_errors(plltool, given, tmp_path):
    (tmp_path / "a.fasta").write_text(">short\nACGT\n")
    done = plltool(*given, status=1)
    assert "a.fasta: taxon 'short' (line 1) has 4 sites, expected 300 as in the reference" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    plltool(*given[:-4], status=2, told="--queries")
