"""The commands of FastTree and EPA-ng."""

import io
import json
import re

import dendropy
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


def test_fasttree_quotes_names_that_newick_needs_in_quotes_once(call, folder):
    text = (folder / "a.fasta").read_text()
    (folder / "b.fasta").write_text(text.replace(">A\n", ">A (1): it's\n").replace(">B\n", ">B 2\n"))
    status, out, err = call("FastTree -quote -nt b.fasta")
    assert status == 0, err
    tree = dendropy.Tree.get(data=out, schema="newick", preserve_underscores=True)
    assert {taxon.label for taxon in tree.taxon_namespace} == {"A (1): it's", "B 2", *"CDEFG"}


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


@pytest.mark.usefixtures("reference")
def test_epa_ng_keeps_lengths_under_a_model_with_values(call, folder):
    line = "epa-ng --query query.fasta --ref-msa ref.fasta --tree ref.nwk --redo --model"
    for model, stay in ("HKY{3}+FU{0.3/0.2/0.2/0.3}+G4{0.8}", True), ("HKY+G4", False):
        status, _, err = call(f"{line} {model}")
        assert status == 0, err
        tree = json.loads((folder / "epa_result.jplace").read_text())["tree"]
        kept = [re.search(rf"{name}:([\d.e-]+)", tree)[1] for name in "ABCDEF"]
        assert (list(map(float, kept)) == [0.1, 0.2, 0.1, 0.15, 0.2, 0.18]) == stay


def test_epa_ng_says_what_is_missing(call):
    status, _, err = call("epa-ng --tree true.nwk --query a.fasta --model JC")
    assert status == 2
    assert "found no -s" in err


def test_fasttree_of_several_alignments(call, folder):
    """As FastTree -n: a tree for each, from the start tree of its own or one for all; interleaved as SEQBOOT writes."""
    rows = [f"{name:10}{'ACGTACGTAA'[k:]}{'ACGTACGTAA'[:k]}" for k, name in enumerate("ABCDE")]
    block = "\n".join(["    5    20", *rows, "", *(row[10:] for row in rows)])
    other = block.replace("ACGTA", "AAGTA")
    (folder / "two.phy").write_text(f"{block}\n{other}\n")
    trees = ["((A,B),(C,D),E);", "((A,E),(C,D),B);"]
    (folder / "starts.nwk").write_text("\n".join(trees))
    (folder / "one.nwk").write_text(trees[1])
    line = "FastTree -nt -nosupport -mllen -n 2 -out o.nwk"
    for word, expected in (("-intree starts.nwk", [0, 0]), ("-intree1 one.nwk", [2, 0])):
        status, _, err = call(f"{line} {word} two.phy")
        assert status == 0, err
        found = (folder / "o.nwk").read_text().splitlines()
        assert [plltool.tree_distances(pair)[0][1] for pair in zip(found, trees, strict=True)] == expected
    status, _, err = call(line.replace("-n 2", "-n 3") + " -intree starts.nwk two.phy")
    assert (status, "-n: found 3, expected 1 to 2, the number of alignments in two.phy" in err) == (2, True)
    status, _, err = call(f"{line} -intree one.nwk two.phy")
    assert (status, "-intree: found 1 trees, expected one for each alignment" in err) == (2, True)
