"""`plltool genes`: its files, the same as JSON, and that the same command line does nothing twice."""

import json
import shutil


def test_files(plltool, data_dir, tmp_path):
    folder = tmp_path / "genes"
    folder.mkdir()
    for number in (1, 2):
        shutil.copy(data_dir / "genes" / f"gene{number}.fasta", folder)
    given = ("genes", folder, "--model", "JC", "--effort", "fast", "--device", "numpy", "--workers", 1, "--scf", 20)
    result = plltool(*given, "--scfl", "--prefix", tmp_path / "x", status=0)
    assert "genes: 2\n" in result.stdout
    assert "scfl: " in result.stdout
    names = {path.name.removeprefix("x.") for path in tmp_path.glob("x.*")}
    assert names == {
        *("genes.nwk", "genes.tsv", "genes.fasta", "genes.part", "best.nwk", "best.model", "json", "log"),
        *("cf.nwk", "cf.stat", "cf.branch.nwk", "cf.nex", "cf.json", "html", "txt"),
    } | ({"collapsed.nwk"} & names)
    assert len((tmp_path / "x.genes.nwk").read_text().splitlines()) == 2
    report = (tmp_path / "x.txt").read_text()
    for title in ("TREE", "SEARCH", "GENES", "CONCORDANCE"):
        assert f"\n{title}\n" in report
    plltool(*given, "--prefix", tmp_path / "x", status=1, told="--redo")
    record = json.loads(plltool(*given, "--prefix", tmp_path / "y", "--json", status=0).stdout)
    assert [gene["tree"] for gene in record["genes"]] == (tmp_path / "y.genes.nwk").read_text().splitlines()
    assert record["search"]["lnl"] == json.loads((tmp_path / "y.json").read_text())["lnl"]
