"""`plltool evaluate`: the same keys as a search, one JSON object, lnL of sites."""

import json
import math
from pathlib import Path

import pytest

from plltool.io.files import read_record

QUICK = ("--model", "HKY+F", "--device", "numpy")


def test_json_is_one_object_with_the_keys_of_a_search(plltool, small, tree):
    result = plltool("evaluate", small, "--tree", tree, *QUICK, "--json", status=0)
    found = json.loads(result.stdout)
    record = read_record(f"{small}.plltool.json")
    assert list(found) == [
        key for key in record if key not in ("trace", "start_distances", "climb_distances", "settings")
    ]
    assert found["lnl"] == pytest.approx(record["lnl"], abs=0.05)


def test_fixed_repeats_the_lnl_of_the_search(plltool, small, tree):
    record = read_record(f"{small}.plltool.json")
    arguments = ("--model", record["model"], "--device", "numpy", "--fixed", "--json")
    found = json.loads(plltool("evaluate", small, "--tree", tree, *arguments).stdout)
    assert found["lnl"] == pytest.approx(record["lnl"], rel=1e-11)  # the tree is written with all digits
    assert found["warnings"] == record["warnings"]


def test_the_tree_is_printed_unless_a_file_has_it(plltool, small, tree, tmp_path):
    arguments = ("evaluate", small, "--tree", tree, *QUICK, "--fixed")
    printed = [line for line in plltool(*arguments).stdout.splitlines() if line.startswith("tree: ")]
    written = [
        line
        for line in plltool(*arguments, "--prefix", tmp_path / "e").stdout.splitlines()
        if line.startswith("tree: ")
    ]
    assert written == [f"tree: {tmp_path / 'e.evaluate.nwk'}"]
    assert printed == [f"tree: {(tmp_path / 'e.evaluate.nwk').read_text().strip()}"]


def test_a_tree_in_nexus(plltool, small, tree, tmp_path):
    newick = plltool("evaluate", small, "--tree", tree, *QUICK, "--fixed")
    nexus = tmp_path / "tree.nex"
    text = Path(tree).read_text().strip()
    nexus.write_text(f"#NEXUS\nbegin trees;\ntree best = [&U] {text}\ntree again = {text}\nend;\n")
    found = plltool("evaluate", small, "--tree", nexus, *QUICK, "--fixed")
    assert found.stdout == newick.stdout
    assert "tree.nex: found 2 trees, the first one is taken" in found.stderr
    nexus.write_text("#NEXUS\nbegin trees;\nend;\n")
    assert "tree.nex: found no tree, expected at least one" in plltool("evaluate", small, "--tree", nexus).stderr


def test_two_things_do_not_go_to_one_file(plltool, small, tree, tmp_path):
    path = tmp_path / "sites.tsv"
    result = plltool("evaluate", small, "--tree", tree, *QUICK, "--site-lnl", path, "--site-rates", path, status=1)
    assert result.stderr.endswith("sites.tsv: two outputs have the same file name\n")
    assert not path.exists()


def test_site_lnl_sums_to_lnl(plltool, small, tree, tmp_path):
    sites = tmp_path / "sites.tsv"
    result = plltool("evaluate", small, "--tree", tree, *QUICK, "--site-lnl", sites, "--json")
    rows = [line.split("\t") for line in sites.read_text().splitlines()]
    assert rows[0] == ["site", "lnl"]
    assert [int(site) for site, _ in rows[1:]] == list(range(1, 301))
    assert math.fsum(float(lnl) for _, lnl in rows[1:]) == pytest.approx(json.loads(result.stdout)["lnl"], rel=1e-11)


def test_prefix_writes_the_same_record(plltool, small, tree, tmp_path):
    result = plltool("evaluate", small, "--tree", tree, *QUICK, "--prefix", tmp_path / "e", "--json", status=0)
    assert read_record(tmp_path / "e.evaluate.json") == json.loads(result.stdout)
    assert (tmp_path / "e.evaluate.nwk").is_file()
    assert "was computed under" in (tmp_path / "e.txt").read_text(), "the report has no methods"


def test_taxa_that_differ_are_named(plltool, small, tmp_path):
    path = tmp_path / "other.nwk"
    path.write_text("(Homo_sapiens,Pan,Gorilla,(x,y));")
    result = plltool("evaluate", small, "--tree", path, status=1)
    assert "'x'" in result.stderr
    assert "other.nwk" in result.stderr


def test_the_record_of_a_run_is_a_model(plltool, small, tree):
    """What a search ended with, taken from its record, has the same lnL and no free parameter."""
    record = read_record(f"{small}.plltool.json")
    result = plltool(
        "evaluate", small, "--tree", tree, "--model", f"{small}.plltool.json", "--fixed", "--device", "numpy", "--json"
    )
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["lnl"] == pytest.approx(record["lnl"], rel=1e-9)
    assert found["model"] == record["model"]
    assert found["parameters"]["n_free_parameters"] == 0


def test_alpha_at_its_bound_is_told(plltool, small, tree, tmp_path):
    run = ("evaluate", small, tree, "--fixed", "--device", "numpy", "--prefix")
    told = "rates: alpha is at its upper bound: rates are equal across sites\n"
    assert told in plltool(*run, tmp_path / "a", "--model", "JC+G4{9999999999}").stdout
    assert told not in plltool(*run, tmp_path / "b", "--model", "JC+G4{50}").stdout
    assert "Alpha is at its upper bound" in (tmp_path / "a.txt").read_text()
