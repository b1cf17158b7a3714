"""The commands of FastTree and EPA-ng."""

import io
import json
import re

import pytest

import plltool


def test_fasttree_of_augur(call, folder):
    status, out, err = call("FastTree -nt -nosupport a.fasta")
    assert status == 0, err
    assert re.fullmatch(r"\([^)]*\(.*\);\n", out)
    assert set(re.findall(r"[(,]([A-G]):", out)) == set("ABCDEFG")


def test_fasttree_of_qiime_quotes_names_and_reads_stdin(call, folder, monkeypatch):
    text = (folder / "a.fasta").read_text().replace(">A\n", ">A_1 x\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    status, out, err = call("FastTree -quote -nt")
    assert status == 0, err
    assert "'A_1 x':" in out
    labels = [float(label) for label in re.findall(r"\)([\d.]+):", out)]
    assert len(labels) == 4
    assert all(0 <= label <= 1 for label in labels)


def test_fasttree_of_gubbins_fits_a_model(call, folder):
    line = "FastTree -nt -rawdist -gtr -nocat -seed 1 -mllen -nome -nosupport -intree true.nwk -log g.log"
    status, out, err = call(f"{line} -out g.nwk a.fasta")
    assert status == 0, err
    assert out == ""
    assert plltool.tree_distances([folder / "true.nwk", folder / "g.nwk"])[0][1] == 0
    log = (folder / "g.log").read_text()
    assert re.search(r"^GTRRates(\t[\d.]+){6}$", log, re.MULTILINE)
    assert re.search(r"^GTRFreq(\t[\d.]+){4}$", log, re.MULTILINE)


def test_fasttree_refuses_a_model_of_other_data(call):
    status, _, err = call("FastTree -gtr a.fasta")
    assert status == 2
    assert "GTR" in err


@pytest.fixture
def reference(folder, call):
    """A reference of 6 taxa, a query, and the model."""
    rows = (folder / "a.fasta").read_text().split(">")[1:]
    (folder / "ref.fasta").write_text("".join(f">{row}" for row in rows if row[0] != "G"))
    (folder / "query.fasta").write_text("".join(f">{row}" for row in rows if row[0] == "G"))
    (folder / "ref.nwk").write_text("((A:0.1,B:0.2):0.1,(C:0.1,D:0.15):0.12,(E:0.2,F:0.18):0.1);")
    line = "raxml-ng --evaluate --msa ref.fasta --model JC --tree ref.nwk --prefix r"
    assert call(line)[0] == 0


@pytest.mark.usefixtures("reference")
def test_epa_ng_of_nf_core(call, folder):
    (folder / "out").mkdir()
    line = (
        "epa-ng --threads 1 --query query.fasta --ref-msa ref.fasta --tree r.raxml.bestTree --model r.raxml.bestModel"
    )
    status, _, err = call(f"{line} --outdir out")
    assert status == 0, err
    found = json.loads((folder / "out" / "epa_result.jplace").read_text())
    assert found["version"] == 3
    [placed] = found["placements"]
    best = max(placed["p"], key=lambda row: row[found["fields"].index("like_weight_ratio")])
    assert re.search(rf"F:[\d.e-]+\{{{best[found['fields'].index('edge_num')]}\}}", found["tree"])
    assert "not EPA-ng" in (folder / "out" / "epa_info.log").read_text()
    status, _, err = call(f"{line} --outdir out")
    assert status == 1
    assert "epa_result.jplace: exists already; --redo replaces it" in err


def test_epa_ng_says_what_is_missing(call):
    status, _, err = call("epa-ng --tree true.nwk --query a.fasta --model JC")
    assert status == 2
    assert "found no -s" in err
