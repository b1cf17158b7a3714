"""Small alignment files, and running the command in this process."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from samples import STRANGE_NAMES, small_records

from plltool.cli import main


@pytest.fixture
def small(data_dir, tmp_path) -> Path:
    """A FASTA file of 6 primates and 300 sites."""
    path = tmp_path / "small.fasta"
    path.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in small_records(data_dir, 6)))
    return path


@pytest.fixture
def strange(data_dir, tmp_path) -> Path:
    """A FASTA file whose names have blanks, quotes, commas and letters beyond ASCII."""
    records = small_records(data_dir, len(STRANGE_NAMES))
    path = tmp_path / "strange.fasta"
    lines = [f">{name}\n{sequence}\n" for name, (_, sequence) in zip(STRANGE_NAMES, records, strict=True)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def plltool():
    """Call the command: ``plltool("check", path, status=0)`` returns click's result, whose exit status must be this."""

    def call(*arguments, status=None):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="plltool")
        assert status in (None, result.exit_code), result.stderr
        return result

    return call


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch):
    """A terminal that can do everything, and a user who has not said how wide it is or what to do with colour."""
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
