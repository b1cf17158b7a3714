"""What new users try first: rooted trees, doubtful data, standard input, RNA."""

import json

import pytest
from click.testing import CliRunner
from small_alignments import write_fasta

from plltool.cli import main

NUMPY = ("--device", "numpy")
ROOTED = "its root is removed; --outgroup roots the result"


@pytest.fixture
def tree(names, tmp_path):
    """A rooted tree of the small alignment, a zero and a negative length in it."""
    a, b, c, d, e, f = names
    path = tmp_path / "rooted.nwk"
    path.write_text(f"((({a}:0.1,{b}:0.1):0,{c}:0.1):0.1,({d}:-0.1,({e}:0.1,{f}:0.1):0.1):0.1);")
    return path


@pytest.mark.parametrize("command", ["evaluate", "alrt", "ancestral", "search", "support", "bootstrap"])
def test_a_rooted_tree(plltool, small, tree, command, tmp_path):
    options = {
        "search": ["--start", tree, "--effort", "fast", "--model", "JC"],
        "support": ["--tree", tree, "--replicates", tree],
        "bootstrap": ["--tree", tree, "--replicates", "1", "--model", "JC"],
    }.get(command, ["--tree", tree, "--model", "JC"])
    if command != "support":
        options += [small, *NUMPY]
    if command != "evaluate":
        options += ["--prefix", tmp_path / "x"]
    result = plltool(command, *options, status=0)
    assert f"{tree}: the tree is rooted, {ROOTED}" in result.stderr
    assert f"{tree}: 1 negative branch length read as 0" in result.stderr


def test_doubtful_data(plltool, tmp_path):
    """A warning is in what `check` prints, and in what a search prints and records, though it is quiet."""
    path = write_fasta(tmp_path / "x.fa", {"a": "ACCA", "b": "ACAC", "c": "CACC", "d": "CAAA"})
    message = "only the states A and C occur; are they binary data?"
    assert message in plltool("check", path, *NUMPY).stdout
    given = ("search", path, "--model", "JC", "--prefix", tmp_path / "x", "--quiet", *NUMPY)
    plltool(*given, status=0, told=message)
    assert any(message in warning for warning in json.loads((tmp_path / "x.json").read_text())["warnings"])


def test_standard_input(small, tree, tmp_path, monkeypatch):
    def call(offered, *arguments):
        return CliRunner().invoke(main, list(map(str, arguments)), input=offered.read_bytes(), prog_name="plltool")

    common = ("--model", "JC", "--fixed", *NUMPY, "--quiet")
    expected = call(small, "evaluate", small, "--tree", tree, *common).stdout
    assert expected.startswith("lnL: -")
    assert call(small, "evaluate", "-", "--tree", tree, *common).stdout == expected
    assert call(tree, "evaluate", small, "--tree", "-", *common).stdout == expected
    twice = call(small, "evaluate", "-", "--tree", "-", *common)
    assert twice.exit_code == 1
    assert twice.stderr == ("plltool: error: standard input: '-' can be read only once; name a file instead\n")
    monkeypatch.chdir(tmp_path)
    assert call(small, "search", "-", "--model", "JC", "--effort", "fast", *NUMPY).exit_code == 0
    assert (tmp_path / "stdin.plltool.best.nwk").exists()


def test_rna_is_dna(plltool, small):
    small.write_text(small.read_text().replace("T", "U").replace("t", "u"))
    assert "(DNA)" in plltool("check", small, "--data-type", "rna", *NUMPY).stdout
