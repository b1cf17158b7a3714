"""--names: whole headers of FASTA files or their first words, wherever a command reads an alignment."""

import json

import pytest
from small_alignments import primates, write_fasta

NUMPY = ("--device", "numpy")
FAST = ("--model", "JC", "--effort", "fast", *NUMPY)
NOTE = "names are whole headers with blanks"


@pytest.fixture
def described(data_dir, tmp_path):
    """The small alignment with descriptions behind the names, as databases write them."""
    rows = primates(data_dir, 6, 300)
    return write_fasta(tmp_path / "described.fasta", {f"{name} mitochondrion OX=1": row for name, row in rows.items()})


def names_in(newick, names):
    return [name in newick and f"{name} mitochondrion" not in newick for name in names]


def test_search_and_the_commands_after_it(plltool, described, names, tmp_path):
    plain = plltool("search", described, *FAST, "--prefix", tmp_path / "w")
    assert plain.stderr.count(NOTE) == 1
    assert "mitochondrion" in (tmp_path / "w.best.nwk").read_text()
    cut = plltool("search", described, *FAST, "--prefix", tmp_path / "x", "--names", "first-word", status=0)
    assert NOTE not in cut.stderr
    assert all(names_in((tmp_path / "x.best.nwk").read_text(), names))
    a, b = (json.loads((tmp_path / f"{prefix}.json").read_text()) for prefix in "wx")
    assert (a["data"]["names"], b["data"]["names"]) == ("whole", "first-word")
    plltool("compare", tmp_path / "w.json", tmp_path / "x.json", status=1, told="other taxa")


@pytest.mark.parametrize("command", ["evaluate", "alrt", "ancestral", "check", "select-model"])
def test_others_take_it(plltool, described, some_tree, command, tmp_path):
    if command == "select-model":  # binary data have two models, DNA 22
        lines = described.read_text().splitlines(keepends=True)
        binary = str.maketrans("ACGT", "0011")
        described.write_text("".join(line if line.startswith(">") else line.translate(binary) for line in lines))
    arguments = {"check": [], "select-model": ["--no-free-rates"]}.get(command, [some_tree, "--model", "JC", "--fixed"])
    prefix = [] if command == "check" else ["--prefix", tmp_path / "run"]
    plain = plltool(command, described, *arguments, *NUMPY, *prefix)
    assert (plain.stdout + plain.stderr).count(NOTE) == 1
    redo = [] if command == "check" else ["--redo"]
    cut = plltool(command, described, *arguments, *NUMPY, *prefix, *redo, "--names", "first-word", status=0)
    assert NOTE not in cut.stdout + cut.stderr


def test_genes(plltool, described, names, tmp_path):
    folder = tmp_path / "genes"
    folder.mkdir()
    for name in ("g1", "g2"):
        (folder / f"{name}.fasta").write_text(described.read_text())
    plain = plltool("genes", folder, *FAST, "--prefix", tmp_path / "w", "--workers", "1")
    assert plain.stderr.count(NOTE) == 1
    cut = plltool(
        "genes", folder, *FAST, "--prefix", tmp_path / "x", "--workers", "1", "--names", "first-word", status=0
    )
    assert NOTE not in cut.stderr
    assert all(names_in((tmp_path / "x.best.nwk").read_text(), names))
    assert all(names_in((tmp_path / "x.genes.nwk").read_text(), names))
    assert json.loads((tmp_path / "x.json").read_text())["data"]["names"] == "first-word"


def test_reference_and_queries_of_place(plltool, described, data_dir, some_tree, tmp_path):
    (query,) = primates(data_dir, 1, 300).values()
    queries = write_fasta(tmp_path / "queries.fasta", {"read1 length=300": query})
    arguments = ["--reference", described, "--tree", some_tree, "--model", "JC", "--queries", queries, *NUMPY]
    plltool("place", *arguments, "--prefix", tmp_path / "w", status=0, told=f"{queries}: {NOTE}")
    cut = plltool("place", *arguments, "--prefix", tmp_path / "x", "--names", "first-word", status=0)
    assert NOTE not in cut.stderr
    assert '"read1"' in (tmp_path / "x.jplace").read_text()
    assert "length=300" not in (tmp_path / "x.jplace").read_text()


def test_compare_a_folder(plltool, described, tmp_path):
    folder = tmp_path / "some"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.fasta").write_text(described.read_text())
    plain = plltool("compare", folder, "--a", "numpy", "--b", "numpy:vw=2", *FAST[:4])
    assert plain.stderr.count(NOTE) == 2  # of the first file, which is searched twice
    cut = plltool("compare", folder, "--a", "numpy", "--b", "numpy:vw=2", *FAST[:4], "--names", "first-word", status=0)
    assert NOTE not in cut.stderr


def test_cutting_that_makes_duplicates(plltool, names, tmp_path):
    path = write_fasta(tmp_path / "twice.fasta", {f"Homo {name}": "ACGT" for name in names})
    refused = plltool("check", path, *NUMPY, "--names", "first-word", status=1)
    headers = f"'Homo {names[0]}' (line 1) and 'Homo {names[1]}' (line 3)"
    assert refused.stderr.splitlines() == [
        f"plltool: error: {path}: headers {headers} have the same first word, expected words that differ, or"
        " --names whole"
    ]
