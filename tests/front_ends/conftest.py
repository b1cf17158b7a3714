"""Front ends run in this process, on numpy, in a folder of their own."""

import pytest

import plltool
from plltool.front_ends.__main__ import main

TREE = "((A:0.1,B:0.2):0.1,(C:0.1,D:0.15):0.12,(E:0.2,(F:0.1,G:0.1):0.08):0.1);"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with an alignment of 7 taxa, its tree, and three trees."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLLTOOL_DEVICE", "numpy")
    found = plltool.simulate(TREE, "HKY{3}+FU{0.3/0.2/0.2/0.3}+G4{0.8}", 150, seed=5)
    (tmp_path / "a.fasta").write_text(found.format_alignment("a.fasta"))
    (tmp_path / "true.nwk").write_text(TREE + "\n")
    other = TREE.replace("(A:0.1,B:0.2)", "(A:0.1,C:0.2)").replace("(C:0.1,D", "(B:0.1,D")
    (tmp_path / "three.nwk").write_text(f"{TREE}\n{TREE}\n{other}\n")
    return tmp_path


@pytest.fixture
def call(folder, capsys):
    """Runs a command line; its exit status, stdout and stderr, which must be as expected and tell `told`, if given."""

    def run(line, expected=None, told=""):
        program, *words = line.split()
        status = main(program, words)
        out, err = capsys.readouterr()
        assert expected in (None, status), (line, err)
        assert told in err, line
        return status, out, err

    return run
