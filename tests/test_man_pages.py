"""The manual pages in each wheel: one for every command, with every option. `test_packaging.py` looks into a wheel."""

import re
import tomllib
from pathlib import Path

import make_man_pages
import pytest

from plltool.cli import main

REPOSITORY = Path(__file__).resolve().parents[1]

PAGES = make_man_pages.make_pages()
COMMANDS = {f"plltool-{name}": command for name, command in main.commands.items()}
COMMANDS |= {f"plltool-trees-{name}": command for name, command in main.commands["trees"].commands.items()}


def test_every_command_has_a_page():
    assert PAGES.keys() == {f"{name}.1" for name in ("plltool", *COMMANDS)}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_all_sections_and_every_option(name):
    page, command = PAGES[f"{name}.1"], COMMANDS[name]
    assert re.match(rf'\.TH "{name.upper()}" "1" "" "plltool [0-9.]+" "plltool manual"\n\.SH NAME\n', page)
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"} <= set(re.findall(r"^\.SH (.*)$", page, re.MULTILINE))
    shown = page.replace("\\-", "-")
    assert [
        word for option in command.params for word in option.opts if word.startswith("--") and word not in shown
    ] == []


def test_wheels_install_what_is_built():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert make_man_pages.FOLDER == REPOSITORY / "build" / "man"
    assert project["tool"]["setuptools"]["data-files"] == {"share/man/man1": ["build/man/*.1"]}
