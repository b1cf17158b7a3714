"""Every script starts, and the mutants of `scripts/mutate.py` are those of the code as it is."""

import subprocess
import sys
from pathlib import Path

import mutate
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "scripts"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))


def test_every_line_to_mutate_is_there_exactly_once():
    assert mutate.check_mutants(mutate.MUTANTS) == []


def test_lines_that_are_gone_are_found():
    gone = mutate.Mutant("it", "plltool/errors.py", "no such line", "", ("tests/test_nothing.py",))
    lost = mutate.Mutant("it", "plltool/nothing.py", "a", "b", ("tests/test_scripts.py", "-k", "none"))
    assert mutate.check_mutants([gone, lost]) == [
        "plltool/errors.py: it: STALE: 'no such line' is 0 times in plltool/errors.py",
        "plltool/errors.py: it: no tests/test_nothing.py",
        "plltool/nothing.py: it: the file is gone",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_starts(script, tmp_path):
    if script == "fuzz_coverage.py":
        pytest.importorskip("atheris")
    done = subprocess.run([sys.executable, FOLDER / script, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_script_is_listed():
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [script for script in SCRIPTS if f"`{script}`" not in listed] == []


def test_without_a_browser_no_page_is_checked_and_a_line_says_so(tmp_path):
    command = [sys.executable, FOLDER / "check_pages.py", "x.html"]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "nothing is checked: found no node and no npm and no Chromium\n")
