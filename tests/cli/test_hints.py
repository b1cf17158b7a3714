"""Options and commands that plltool does not have get a hint at what may have been meant."""

import pytest

from plltool.cli import main
from plltool.cli.command import ALIGNMENT, ELSEWHERE, OTHER_COMMANDS


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("search -s x.phy", "no such option: -s; did you mean plltool search x.phy?"),
        ("search --msa=x.phy", "no such option: --msa; did you mean plltool search x.phy?"),
        ("evaluate -s x.phy --tree t", "no such option: -s; did you mean plltool evaluate x.phy?"),
        ("-s x.phy -m GTR", "no such options: -s -m; did you mean plltool search x.phy --model GTR?"),
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
        (
            "search -s x -m GTR+G -B 1000 -alrt 1000 -T AUTO",
            "no such options: -s -m -B -alrt -T; did you mean plltool search x --model GTR+G --threads auto"
            " --supports ufboot,sh-alrt?",
        ),
        ("-s x -te t -m LG", "no such options: -s -te -m; did you mean plltool evaluate x --tree t --model LG?"),
        ("-s x -z t -au", "no such options: -s -z -au; did you mean plltool test x --trees t?"),
        (
            "search x --seed 3 -m GTR -p y -bnni",
            "no such options: -m -p -bnni; did you mean plltool search x --seed 3 --model GTR --partitions y,"
            " without -bnni?",
        ),
        ("--all --msa x.phy", "no such options: --all --msa; did you mean plltool search --bootstrap auto x.phy?"),
        ("--all", "no such option: --all; did you mean plltool search --bootstrap auto?"),
        ("search x --threads zwei", "Invalid value for '--threads': found 'zwei', expected a whole number."),
        ("search x --epsilon x", "Invalid value for '--epsilon': found 'x', expected a number."),
        ("search x.phy --colour", "no such option: --colour"),
        ("test x.phy -t t", "no such option: -t; did you mean --trees?"),
        ("bootstrap x.phy --effort fast", "no such option: --effort; did you mean --replicate-effort?"),
        ("evaluate x.phy --effort fast", "no such option: --effort"),
        ("search x.phy -st AA", "no such option: -st; did you mean --data-type?"),
        ("search x.phy -v", "no such option: -v"),
        ("search x.phy -safe", "no such option: -safe"),
        ("search x.phy --lmap 5", "no such option: --lmap"),
        ("search x.phy --search1", "no such option: --search1; did you mean --starts 1?"),
        ("bootstrap x.phy -wsl", "no such option: -wsl; did you mean plltool evaluate --site-lnl?"),
        ("evaluate x.phy -wsl", "no such option: -wsl; did you mean --site-lnl?"),
        ("search x --gene-trees", "no such option: --gene-trees; did you mean plltool genes?"),
        ("support --gcf x", "no such option: --gcf; did you mean plltool concordance --gcf?"),
        ("asr x.phy", "no such command: asr; did you mean ancestral?"),
        ("rf x.nwk", "no such command: rf; did you mean trees distances?"),
        ("ModelFinder x.phy", "no such command: ModelFinder; did you mean select-model?"),
        ("serch x.phy", "no such command: serch; did you mean search?"),
        ("serach x.phy", "no such command: serach; did you mean search?"),
        ("xyzzy", "no such command: xyzzy"),
    ],
)
def test_hints(plltool, line, answer):
    result = plltool(*line.split(), status=2)
    assert result.stderr.splitlines()[-1] == f"Error: {answer}"


WRONG = """\
date x.phy t --dates d --resolve -1: Invalid value for '--resolve': -1 is not in the range x>=0.
date x.phy t --dates d --relaxed 1: Option '--relaxed' requires 2 arguments.
search x.phy --starts 0: '--starts': 0 is not in the range x>=1.
search x.phy --seed=-1: '--seed': -1 is not in the range x>=0.
search x.phy --epsilon 0: '--epsilon': 0.0 is not in the range x>0.
search x.phy --radius five: '--radius': found 'five', expected whole numbers from 1, separated by commas
search x.phy --precision half: '--precision': 'half' is not one of 'double', 'mixed', 'single'.
search x.phy --time 0: '--time': found '0', expected a time above 0, such as 90s, 10m or 1h30m
search x.phy --supports tbe: --supports tbe needs replicates: --bootstrap N or --bootstrap auto
search x.phy --supports x: found 'x', expected some of: fbp, tbe, rootstrap, ufboot, sh-alrt, abayes, lbp, sprta
bootstrap x.phy --supports x: '--supports': found 'x', expected some of: fbp, tbe, rootstrap
support x y --supports fbp,x: '--supports': found 'x', expected some of: fbp, tbe, rootstrap
support x y --supports fbp,abayes: found 'abayes', expected some of: fbp, tbe, rootstrap; `plltool alrt` knows it
alrt x y --supports tbe: found 'tbe', expected some of: sh-alrt, abayes, lbp, sprta; `plltool support` knows it
search x.phy --write-replicates: --write-replicates is for --bootstrap
bootstrap x.phy --replicates 0: found '0', expected a whole number from 1 on, or auto or autoMRE or autoFC
bootstrap x.phy --replicates -3: found '-3', expected a whole number from 1 on, or auto or autoMRE or autoFC
bootstrap x.phy --replicates many: found 'many', expected a whole number from 1 on, or auto or autoMRE or autoFC
bootstrap x.phy --replicates 1.5: found '1.5', expected a whole number from 1 on, or auto or autoMRE or autoFC
select-model x.phy --merge greedy: --merge needs --partitions
select-model x.phy --ascertainment --partitions p: --ascertainment cannot be used with --partitions
check x.phy --memory 5X: '--memory': found '5X', expected a size such as 2G, 500M or a number of bytes
check x --data-type RNAX: found 'RNAX', expected one of: auto, dna, rna, protein, bin, morph, multi, codon, or codon2
show t --output tree.gif: expected a name that ends in .svg, .pdf or .png
check x.phy --share 1;2: '--share': found '1;2', expected a number for each device, such as 0.6,0.4
bench --shape 5: '--shape': found '5', expected TAXAxPATTERNS, 4x1 at least
bench --shape 3x10: '--shape': found '3x10', expected TAXAxPATTERNS, 4x1 at least
bench --shape 5x0: '--shape': found '5x0', expected TAXAxPATTERNS, 4x1 at least
bench --shape 4x4 --quick: --quick and --shape cannot be used together
bench --states 1: '--states': 1 is not in the range x>=2.
compare x.phy: expected one alignment or folder with --a and --b, or with --tree and --all
compare x.phy --a numpy: expected one alignment or folder with --a and --b, or with --tree and --all
compare x.phy --all --a numpy --b numpy: expected one alignment or folder with --a and --b
compare x.phy --all: --all needs --tree
compare x.phy --a numpy --b numpy --fixed: --fixed is for the tree of --tree
compare x.phy --all --tree t --bootstrap 3: --bootstrap and --constraint are for searches, not for the tree of --tree
compare . --a numpy --b numpy --start t.nwk: are for one alignment, not for a folder
compare . --a numpy --b numpy --constant-sites 1,2,3,4: are for one alignment, not for a folder
concordance --tree t: found neither gene trees nor an alignment
concordance --tree t --gcf g --scfl: --scfl needs an alignment
bootstrap x.phy --write-replicates --constant-sites 1,2,3,4: goes without --constant-sites and --site-weights
bootstrap x.phy --write-replicates --site-weights w: --write-replicates goes without --constant-sites and
check x.phy --constant-sites 1,2,3: found '1,2,3', expected numbers of constant sites with A, C, G and T: four whole
check x.phy --constant-sites 1,2,3,x: found '1,2,3,x', expected numbers of constant sites with A, C, G and T
check x.phy --constant-sites 1,2,3,-4: found '1,2,3,-4', expected numbers of constant sites with A, C, G and T
check x.phy --constant-sites 1,2,3,0.5: found '1,2,3,0.5', expected numbers of constant sites with A, C, G and T
check x.phy --constant-sites 1e3,2,3,4: found '1e3,2,3,4', expected numbers of constant sites with A, C, G and T
check x.phy --constant-sites=: found '', expected numbers of constant sites with A, C, G and T: four whole
"""


LONG = pytest.param(f"bootstrap x.phy --replicates {5000 * '9'}: expected a whole number from 1 on", id="long")


@pytest.mark.parametrize("row", [*WRONG.splitlines(), LONG])
def test_wrong_usage(plltool, row):
    line, answer = row.split(": ", 1)
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
