"""`plltool concordance`: files, labels, errors; gene trees alone, sites alone, both."""

import json

import pytest
from small_alignments import write_fasta

TREE = "(a:.1,b:.2,((c:.1,d:.2)90:.1,(e:.1,f:.1)100:.2)55:.1);"
GENES = ["((a,b),(c,d),(e,f));", "((a,b),((c,e),d));", "(a,(b,c),(d,(e,f)));"]


@pytest.fixture
def files(tmp_path):
    rows = {"a": "AACAAT", "b": "AACAAT", "c": "CAAGAA", "d": "CAAGCA", "e": "CACCAA", "f": "CACACA"}
    (tmp_path / "tree.nwk").write_text(TREE)
    (tmp_path / "genes.nwk").write_text("\n".join(GENES))
    write_fasta(tmp_path / "sites.fasta", rows)
    return tmp_path


def table_of(path):
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def test_gene_trees_and_sites(plltool, files):
    given = ("--tree", files / "tree.nwk", "--gcf", files / "genes.nwk", "--prefix", files / "x")
    result = plltool("concordance", files / "sites.fasta", *given, status=0)
    assert "decisive gene trees that contain the branch (per cent, 3 gene trees)" in result.stdout
    rows = {row["Label"]: row for row in table_of(files / "x.cf.stat")}
    assert [rows["55"][name] for name in ("gCF", "gCF_N", "gDFP_N", "gN")] == ["66.6667", "2", "1", "3"]
    assert [rows["90"][name] for name in ("gCF_N", "gN")] == ["1", "3"]
    assert rows["55"]["Length"] == "0.1"
    ends = ["nwk", "stat", "branch.nwk", "nex", "json"]
    assert {path.name for path in files.glob("x.*")} == {
        *(f"x.cf.{end}" for end in ends), "x.concordance.log", "x.html", "x.txt",
    }  # fmt: skip
    assert "3 gene trees" in (files / "x.txt").read_text()
    tree = (files / "x.cf.nwk").read_text()
    assert f")55/66.7/{float(rows['55']['sCF']):.3g}:0.1" in tree
    assert f"){rows['100']['ID']}:0.2" in (files / "x.cf.branch.nwk").read_text()
    assert f"[&ID={rows['90']['ID']},gCF={rows['90']['gCF']}," in (files / "x.cf.nex").read_text()
    record = json.loads((files / "x.cf.json").read_text())
    by_id = {str(row["id"]): row for row in record["branches"]}
    assert sorted(by_id[rows["90"]["ID"]]["taxa"]) == ["c", "d"]
    assert by_id[rows["90"]["ID"]]["around"] == ["a", "e", "c", "d"]
    assert by_id[rows["90"]["ID"]]["columns"]["gCF_N"] == 1
    assert record["command"].startswith("plltool concordance ")
    assert plltool("concordance", *given, "--redo").exit_code == 0
    assert "sCF" not in table_of(files / "x.cf.stat")[0]


def test_likelihood(plltool, files):
    given = (files / "sites.fasta", "--tree", files / "tree.nwk", "--scf", 0, "--scfl", "--model", "JC")
    result = plltool("concordance", *given, "--device", "numpy", "--json", "--no-report", "--prefix", files / "y")
    assert not (files / "y.html").exists()
    record = json.loads(result.stdout)
    assert list(record["kinds"]) == ["scfl"]
    assert record["evaluation"]["lnl"] < 0
    assert record["seed"] is None
    assert all(row["columns"]["sNL"] > 0 for row in record["branches"])


def test_the_outgroup_leaves_labels_with_their_branches(plltool, files):
    given = ("--tree", files / "tree.nwk", "--gcf", files / "genes.nwk", "--outgroup", "c,d", "--prefix", files / "z")
    assert plltool("concordance", *given).exit_code == 0
    assert "((a:0.1,b:0.2)55/66.7:0.1" in (files / "z.cf.nwk").read_text()


def test_gene_trees_of_other_taxa(plltool, files):
    (files / "genes.nwk").write_text("((a,b),c,d);\n((a,b),c,x);\n")
    told = "genes.nwk: tree 2: taxa of the gene tree that are not in the tree: 'x'"
    plltool("concordance", "--tree", files / "tree.nwk", "--gcf", files / "genes.nwk", status=1, told=told)
