"""The tables of options, and the command line that they read."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from plltool.cli import main
from plltool.front_ends.__main__ import main as run_program
from plltool.front_ends.options import Given, UsageError, read_table
from plltool.registry import FRONT_ENDS

PROGRAMS = tuple(FRONT_ENDS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_tables_of_options(program):
    """Names are given once; each option is explained, in the help as well; each field is read somewhere."""
    options = read_table(program)[0]
    names = [name for option in options for name in option.names]
    assert len(names) == len(set(names))
    assert all(len(option.what.split()) > 1 for option in options)
    run = [sys.executable, "-m", "plltool.front_ends", program, "-help"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert all(option.what in done.stdout for option in options)
    source = "".join(path.read_text() for path in Path("plltool/front_ends").glob("*.py"))
    fields = {option.field for option in options if option.field and option.field[0] != "-"}
    assert [field for field in fields if f'"{field}"' not in source] == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("-s a.phy -B x", "-B: found 'x', expected a whole number from 0 on"),
        ("-s a.phy --wpl", "--wpl: the front end does not know this option"),
        ("-s a.phy -mtree", "-mtree: the front end cannot do this: plltool compares all models on the same tree"),
        ("-s a.phy -q missing", "-q: found 'missing', expected the name of a file or folder that exists"),
        ("-s a.phy -m", "-m: found nothing behind it"),
        ("-s a.phy --redo=yes", "--redo: found a value, 'yes', expected none"),
        ("-s a.phy --aln b.phy", "--aln: found also -s, expected only one of them"),
        ("-s a.phy --merit DIC", "--merit: found 'DIC', expected among BIC, AIC, AICc"),
        ("-s a.phy -T 0", "-T: found '0', expected a number from 1 on, or auto"),
        ("a.phy", "found 'a.phy', expected an option"),
    ],
)
def test_a_wrong_command_line_is_refused_by_the_name_of_the_option(line, told):
    with pytest.raises(UsageError) as caught:
        Given("iqtree", line.split())
    assert told in str(caught.value)


def test_long_names_of_raxml_ng_may_be_cut_and_have_one_dash():
    given = Given(
        "raxml-ng", ["-msa", "a.phy", "--bs-tr", "50", "--opt-model=OFF", "--bs-metric", "TBE,fbp"], one_dash=True
    )
    found = given.text("alignment"), given.text("replicates"), given.text("opt_model"), given.text("metrics")
    assert found == ("a.phy", "50", "off", "tbe,fbp")
    with pytest.raises(UsageError):
        Given("raxml-ng", ["--bs", "50"], one_dash=True)  # --bs-trees, --bs-metric or --bs-cutoff


def test_an_option_that_changes_nothing_is_kept_with_its_reason():
    given = Given("iqtree", ["-s", "a.phy", "--ninit", "2"])
    assert [option.names for option in given.without_effect] == [("-ninit", "--ninit")]


def test_an_option_that_no_task_has_read_is_refused():
    given = Given("iqtree", ["-s", "a.phy", "--scf", "2"])
    given.text("alignment")
    with pytest.raises(UsageError, match="--scf"):
        given.refuse_rest()


def test_written_commands_run_and_replace_nothing_else(tmp_path):
    done = CliRunner().invoke(main, ["front-ends", str(tmp_path / "bin")])
    assert done.exit_code == 0, done.output
    names = sorted(path.name for path in (tmp_path / "bin").iterdir())
    assert names == sorted(name for own in FRONT_ENDS.values() for name in own)
    told = subprocess.run(
        [tmp_path / "bin" / "iqtree2", "--version"], capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("IQ-TREE multicore version ")
    assert "plltool" in told.split()[3]
    other = tmp_path / "bin" / "iqtree"
    other.write_text("another program")
    done = CliRunner().invoke(main, ["front-ends", str(tmp_path / "bin"), "iqtree"])
    assert done.exit_code == 1
    assert "is not a front end of plltool" in done.output
    assert other.read_text() == "another program"
    other = tmp_path / "bin" / "raxml-ng"
    before = other.read_text()
    other.write_text(before.replace("exec ", "exec /opt/another/"))
    for words, status in ([], 1), (["--redo"], 0), ([], 0):
        done = CliRunner().invoke(main, ["front-ends", str(tmp_path / "bin"), "raxml-ng", *words])
        assert done.exit_code == status
        assert ("--redo replaces it" in done.output) == bool(status)
        assert (other.read_text() == before) == (not status)


def test_a_front_end_has_the_names_of_its_commands(capsys):
    for program in (name for names in FRONT_ENDS.values() for name in names):
        assert run_program(program, ["-h"]) == 0
        assert "+plltool" in capsys.readouterr().out
    assert run_program("phyml", []) == 2
    assert "phyml (plltool): error: found no front end of this name, expected one of: iqtree" in capsys.readouterr().err
