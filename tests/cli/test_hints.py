"""Options and commands that plltool does not have get a hint at what may have been meant."""

from pathlib import Path

import pytest

from plltool.cli import main
from plltool.cli.command import ALIGNMENT, ELSEWHERE, OTHER_COMMANDS


def read_rows(name):
    """The command lines of a table beside this file, and what answers each."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return [line.split(": ", 1) for line in lines if not line.startswith("#")]


@pytest.mark.parametrize(("line", "answer"), read_rows("hints.txt"))
def test_hints(plltool, line, answer):
    result = plltool(*line.split(), status=2)
    assert result.stderr.splitlines()[-1] == f"Error: {answer}"


LONG = pytest.param(f"bootstrap x.phy --replicates {5000 * '9'}", "expected a whole number from 1 on", id="long")


@pytest.mark.parametrize(("line", "answer"), [*read_rows("wrong_usage.txt"), LONG])
def test_wrong_usage(plltool, line, answer):
    last = plltool(*line.split(), status=2).stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert answer in last


def test_an_alignment_without_a_command(plltool, small):
    result = plltool(small)
    assert result.stderr.splitlines()[-1] == f"Error: no such command: {small}; did you mean plltool search {small}?"


def test_all_hints_are_true():
    """What they name is there, and is not itself what was unknown everywhere."""
    names = {name for command in main.commands.values() for option in command.params for name in option.opts}
    for text in (text for texts in ELSEWHERE.values() if texts != ALIGNMENT for text in texts):
        first, *rest = text.split()
        if first.startswith("--"):
            assert first in names, text
        else:
            options = [option for option in rest if option.startswith("--")]
            own = {name for option in main.commands[first].params for name in option.opts}
            assert set(options) <= own, text
    for text in OTHER_COMMANDS.values():
        first, *rest = text.split()
        assert first in main.commands
        assert not rest or rest[0] in main.commands[first].commands


def test_threads_auto_is_no_limit(plltool, small):
    run = ("check", small, "--device", "numpy", "--json")
    assert plltool(*run, "--threads", "auto").stdout == plltool(*run).stdout
    assert "0 is not in the range x>=1" in plltool(*run, "--threads", "0").stderr
