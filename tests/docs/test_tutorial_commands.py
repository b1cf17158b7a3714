"""Every row of the page of tutorial commands: accepted or refused as it says, the files, and lnL beside the other's."""

import io
import re
import shlex
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from examples import commands
from pages import REPOSITORY
from test_commands import run_line

from plltool.front_ends.__main__ import main
from plltool.registry import FRONT_ENDS

PAGE = REPOSITORY / "docs/guide/tutorial_commands.md"
PROGRAMS = {name: program for program, names in FRONT_ENDS.items() for name in names}
ROW = re.compile(r"\| `(.*?)` \| (.*?) \| (\S*) \| (\S*?)\*? \|(?: (\S*?)\*? \|)?")
LNL = re.compile(r"(?:BEST SCORE FOUND : |Final LogLikelihood: |all lengths: LogLk = )(-\d+\.\d+)")
ENDS = 0.05  # lnL: another end of an optimisation
BELOW = 0.1  # lnL by which plltool may be below another program: ties of a search


def run(line, monkeypatch):
    """The exit status of a command, and what it printed; `<` and `>` as in a shell."""
    told, source, target = re.fullmatch(r"(.*?)(?: < (\S+))?(?: > (\S+))?", line).groups()
    program, *words = shlex.split(told)
    if source:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(source).read_bytes())))
    printed = io.StringIO()
    with redirect_stdout(printed):
        status = main(PROGRAMS[program], words)
    if target:
        Path(target).write_text(printed.getvalue())
    return status, printed.getvalue()


@pytest.mark.slow
def test_rows(tmp_path, monkeypatch, capsys):
    shutil.copytree(REPOSITORY / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    for command in commands(PAGE.read_text(encoding="utf-8")):
        assert run_line(command.line, tmp_path)[0] == 0, command.line
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert len(rows) == PAGE.read_text(encoding="utf-8").count("\n| `")
    for line, result, lnl, *others in rows:
        status, out = run(line, monkeypatch)
        err = capsys.readouterr().err
        if result.startswith("refused: "):
            assert (status, result.removeprefix("refused: ") in err) == (2, True), (line, err)
            continue
        assert status == 0, (line, err)
        assert all(Path(name).stat().st_size for name in re.findall("`(.*?)`", result)), line
        if lnl:
            found = float(LNL.findall(out + err)[-1])
            assert found == pytest.approx(float(lnl), abs=ENDS), line
            assert all(found >= float(there) - BELOW for there in filter(None, others)), line
