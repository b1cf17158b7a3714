"""Options and commands that plltool does not have get a hint at what may have been meant."""

import pytest

from plltool.cli import main
from plltool.cli.hints import ALIGNMENT, ELSEWHERE


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("search -s x.phy", "no such option: -s; did you mean plltool search x.phy?"),
        ("search --msa=x.phy", "no such option: --msa; did you mean plltool search x.phy?"),
        ("evaluate -s x.phy --tree t", "no such option: -s; did you mean plltool evaluate x.phy?"),
        ("-s x.phy -m GTR", "no such option: -s; did you mean plltool search x.phy?"),
        ("search x.phy -m GTR", "no such option: -m; did you mean --model?"),
        ("search x.phy --modl GTR", "no such option: --modl; did you mean --model?"),
        ("search x.phy --modle GTR", "no such option: --modle; did you mean --model?"),
        ("search x.phy --seeds 4", "no such option: --seeds; did you mean --seed?"),
        ("search x.phy -nt 4", "no such option: -nt; did you mean --threads?"),
        ("search x.phy -T 4", "no such option: -T; did you mean --threads?"),
        ("search x.phy -bb 1000", "no such option: -bb; did you mean --supports ufboot?"),
        ("search x.phy -B 1000", "no such option: -B; did you mean --supports ufboot?"),
        ("search x.phy --bs-trees 100", "no such option: --bs-trees; did you mean --bootstrap?"),
        ("bootstrap x.phy --bs-trees 100", "no such option: --bs-trees; did you mean --replicates?"),
        ("search x.phy -pre y", "no such option: -pre; did you mean --prefix?"),
        ("search x.phy -te t", "no such option: -te; did you mean plltool evaluate --tree?"),
        ("evaluate x.phy -te t", "no such option: -te; did you mean --tree?"),
        ("search x.phy -t t", "no such option: -t; did you mean --start?"),
        ("--all --msa x.phy", "no such option: --all; did you mean plltool search --bootstrap auto?"),
        ("search x.phy --colour", "no such option: --colour"),
        ("serch x.phy", "no such command: serch; did you mean search?"),
        ("serach x.phy", "no such command: serach; did you mean search?"),
        ("xyzzy", "no such command: xyzzy"),
    ],
)
def test_hints(plltool, line, answer):
    result = plltool(*line.split())
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: {answer}"


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
