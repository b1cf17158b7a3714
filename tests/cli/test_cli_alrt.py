"""`plltool alrt`: labels, files, errors; the same supports from Python and after re-rooting."""

import json

import pytest

from plltool.analyses.supports.alrt import alrt

QUICK = ("--model", "HKY+F", "--device", "numpy")


def test_files_and_labels(plltool, small, tree, tmp_path):
    result = plltool("alrt", small, "--tree", tree, *QUICK, "--replicates", 100, "--prefix", tmp_path / "a", status=0)
    assert "supports: sh-alrt/abayes" in result.stdout
    record = json.loads((tmp_path / "a.alrt.json").read_text())["supports"]
    assert (tmp_path / "a.support.nwk").read_text() == record["tree"] + "\n"
    assert record["tree"] not in result.stdout, "a file has it"
    assert len(record["branches"]) == 3
    for branch in record["branches"]:
        label = f"{branch['sh-alrt']:.3g}/{round(branch['abayes'], 3):g}"
        assert f"){label}:" in record["tree"]
        assert 2 <= len(branch["taxa"]) <= 3
        assert max(branch["lnl"]) == branch["lnl"][0], "the tree is better than its interchanges"
    assert record == json.loads((tmp_path / "a.support.json").read_text())
    names = {path.name for path in tmp_path.glob("a.*")}
    assert names == {"a.alrt.json", "a.alrt.log", "a.html", "a.txt"} | {
        f"a.support.{ending}" for ending in ("nwk", "sh-alrt.nwk", "abayes.nwk", "nex", "json")
    }


def test_supports_stay_with_their_branches(plltool, small, tree):
    here = alrt(small, tree, "HKY+F", replicates=100, device="numpy")
    names = sorted(here.tree.names)
    there = alrt(small, tree, "HKY+F", replicates=100, device="numpy", outgroup=names[-1:])
    assert here.supports.newick() != there.supports.newick()
    assert there.supports.outgroup == names[-1:]
    assert here.as_record()["supports"]["branches"] == there.as_record()["supports"]["branches"]


def test_one_kind(plltool, small, tree):
    result = plltool("alrt", small, "--tree", tree, *QUICK, "--supports", "abayes,abayes", "--json")
    record = json.loads(result.stdout)["supports"]
    assert list(record["kinds"]) == ["abayes"]
    assert record["kinds"]["abayes"]["replicates"] is None
    assert all(0 < branch["abayes"] <= 1 and "sh-alrt" not in branch for branch in record["branches"])


def test_alrt_and_support_know_of_each_other(plltool):
    assert "plltool alrt" in " ".join(plltool("support", "--help").stdout.split())
    assert "plltool support" in " ".join(plltool("alrt", "--help").stdout.split())


def test_supports_of_a_search(plltool, small, tree, tmp_path):
    """As of the command itself, on the tree that the search finds."""
    plltool("search", small, *QUICK, "--supports", "sh-alrt,abayes,sprta", "--prefix", tmp_path / "s", status=0)
    rows = json.loads((tmp_path / "s.support.json").read_text())["branches"]
    kinds = ("sh-alrt", "abayes", "sprta")
    alone = alrt(small, tree, "HKY+F", kinds=kinds, device="numpy").as_record()["supports"]["branches"]
    expected = {frozenset(row["taxa"]): row for row in alone}
    for row in rows:
        other = expected[frozenset(row["taxa"])]
        assert row["sh-alrt"] == pytest.approx(other["sh-alrt"], abs=2)  # lengths differ in the last digits
        assert row["abayes"] == pytest.approx(other["abayes"], abs=1e-3)
        assert row["sprta"] == pytest.approx(other["sprta"], abs=1e-3)
    assert (tmp_path / "s.support.sprta.nwk").is_file()
    assert "SPR-based tree assessment (De Maio et al. 2025)" in " ".join((tmp_path / "s.txt").read_text().split())
    assert (tmp_path / "s.support.sh-alrt.nwk").is_file()
