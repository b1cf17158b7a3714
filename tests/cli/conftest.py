"""Small alignment files, a tree that a search found, and running the command in this process."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_alignments import STRANGE_NAMES, primates, write_fasta

from plltool.cli import main


@pytest.fixture
def small(data_dir, tmp_path) -> Path:
    """A FASTA file of 6 primates and 300 sites."""
    return write_fasta(tmp_path / "small.fasta", primates(data_dir, 6, 300))


@pytest.fixture
def binary(data_dir, tmp_path) -> Path:
    """The same with 0 for A and C, 1 for G and T: two substitution models are tried, not 22."""
    digits = str.maketrans("ACGT", "0011")
    rows = primates(data_dir, 6, 300)
    return write_fasta(tmp_path / "binary.fasta", {name: row.translate(digits) for name, row in rows.items()})


@pytest.fixture
def names(data_dir):
    """The names of the small file in its order."""
    return list(primates(data_dir, 6))


@pytest.fixture
def some_tree(names, tmp_path) -> Path:
    """A file with a tree of the small file's taxa, without lengths."""
    path = tmp_path / "some_tree.nwk"
    path.write_text("((({},{}),{}),{},({},{}));".format(*names))
    return path


@pytest.fixture(scope="session")
def searched(plltool, data_dir, tmp_path_factory) -> Path:
    """A folder with the small file and all that a search under HKY+F writes."""
    folder = tmp_path_factory.mktemp("searched")
    path = write_fasta(folder / "small.fasta", primates(data_dir, 6, 300))
    plltool("search", path, "--model", "HKY+F", "--device", "numpy", status=0)
    return folder


@pytest.fixture
def tree(searched, small):
    """The tree that a search of the small file found; the other files of the search are beside it."""
    for path in searched.glob("small.fasta.plltool.*"):
        shutil.copy(path, small.parent)
    return f"{small}.plltool.best.nwk"


@pytest.fixture
def strange(data_dir, tmp_path) -> Path:
    """A FASTA file whose names have blanks, quotes, commas and letters beyond ASCII."""
    rows = primates(data_dir, len(STRANGE_NAMES), 300).values()
    return write_fasta(tmp_path / "strange.fasta", dict(zip(STRANGE_NAMES, rows, strict=True)))


@pytest.fixture(scope="session")
def plltool():
    """Call the command: ``plltool("check", path, status=1, told="no file")`` returns click's result.

    Its exit status must be the one given, and stderr must have the words given.
    """

    def call(*arguments, status=None, told=""):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="plltool")
        assert status in (None, result.exit_code), result.stderr
        assert told in result.stderr
        return result

    return call


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch):
    """A terminal that can do everything, and a user who has not said how wide it is or what to do with colour."""
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
