"""`plltool evaluate`: the same keys as a search, one JSON object, lnL of sites."""

import json
import math
from pathlib import Path

import pytest

from plltool.io.files import read_record

QUICK = ("--model", "HKY+F", "--device", "numpy")


def test_json_is_one_object_with_the_keys_of_a_search(plltool, small, tree, tmp_path):
    """The record of --prefix is the same, and lnL of sites sum to its lnL."""
    sites = tmp_path / "sites.tsv"
    options = ("--prefix", tmp_path / "e", "--site-lnl", sites, "--json")
    found = json.loads(plltool("evaluate", small, "--tree", tree, *QUICK, *options, status=0).stdout)
    record = read_record(f"{small}.plltool.json")
    assert list(found) == [
        key for key in record if key not in ("trace", "start_distances", "climb_distances", "settings")
    ]
    assert found["lnl"] == pytest.approx(record["lnl"], abs=0.05)
    assert read_record(tmp_path / "e.evaluate.json") == found
    assert (tmp_path / "e.evaluate.nwk").is_file()
    assert "was computed under" in (tmp_path / "e.txt").read_text(), "the report has no methods"
    rows = [line.split("\t") for line in sites.read_text().splitlines()]
    assert rows[0] == ["site", "lnl"]
    assert [int(site) for site, _ in rows[1:]] == list(range(1, 301))
    assert math.fsum(float(lnl) for _, lnl in rows[1:]) == pytest.approx(found["lnl"], rel=1e-11)


@pytest.mark.parametrize("is_file", [False, True], ids=["its text", "the record as a file"])
def test_the_model_of_a_search_repeats_its_lnl(plltool, small, tree, is_file):
    record = read_record(f"{small}.plltool.json")
    model = f"{small}.plltool.json" if is_file else record["model"]
    arguments = ("--model", model, "--device", "numpy", "--fixed", "--json")
    found = json.loads(plltool("evaluate", small, "--tree", tree, *arguments, status=0).stdout)
    assert found["lnl"] == pytest.approx(record["lnl"], rel=1e-11)  # the tree is written with all digits
    assert found["model"] == record["model"]
    assert found["parameters"]["n_free_parameters"] == 0
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


def test_equal_rates_are_told(plltool, small, tree, tmp_path):
    run = ("evaluate", small, tree, "--fixed", "--device", "numpy", "--prefix")
    told = "rates: alpha is so large that rates are equal across sites\n"
    assert told in plltool(*run, tmp_path / "a", "--model", "JC+G4{20000}").stdout
    assert told not in plltool(*run, tmp_path / "b", "--model", "JC+G4{5000}").stdout
    assert "Alpha is so large that rates are equal across sites" in (tmp_path / "a.txt").read_text()
