"""The reference pages have every command, every option that pages mention, and every public name."""

import re

import pytest
from pages import PAGES, REPOSITORY, name_of

import plltool
from plltool.cli import main
from plltool.cli.options import declared_modules
from plltool.registry import ANALYSES

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = REPOSITORY / "docs" / "commands"
API = "".join(page.read_text(encoding="utf-8") for page in (COMMANDS.parent / "api.md", *COMMANDS.glob("*.md")))


def stem_of(command):
    """The stem of a command's module, function and page."""
    return "topology_tests" if command == "test" else command.replace("-", "_")


def options_of(group):
    """All options of a command or of the commands below it."""
    found = {name for parameter in group.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for command in getattr(group, "commands", {}).values():
        found |= options_of(command)
    return found


@pytest.mark.parametrize("command", ANALYSES)
def test_every_command_has_a_page(command):
    stem = stem_of(command)
    function = "test" if command == "test" else stem
    page = (COMMANDS / f"{stem}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {command}: ")
    module, _ = declared_modules()[command]
    assert f".. click:: plltool.cli.{module}:{function}\n   :prog: plltool {command}\n" in page


def test_the_readme_has_a_row_for_every_command():
    rows = re.findall(r"^\| \[`([a-z-]+)`\]\((.*?)\) \| ", README, re.MULTILINE)
    assert sorted(rows) == sorted((name, f"docs/commands/{stem_of(name)}.md") for name in ANALYSES)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("name", sorted(plltool.__all__))
def test_every_public_name_stands_in_the_python_reference(name):
    assert re.search(rf"^\.\. auto\w+:: {name}$", API, re.MULTILINE)


def test_the_python_reference_has_nothing_that_is_not_public():
    names = re.findall(r"^\.\. auto\w+:: (\w+)$", API, re.MULTILINE)
    assert sorted(names) == sorted(plltool.__all__)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_option_that_a_page_mentions_exists(page):
    text = re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    if page.name == "coming_from.md":  # the last cell of a row is plltool's
        text = re.sub(r"^\|.*\|(.*)\|$", r"\1", text, flags=re.MULTILINE)
    mentioned = set(re.findall(r"`(--[a-z-]+)[ `]|plltool [^`\n]*?(--[a-z-]+)", text))
    words = {word for pair in mentioned for word in pair if word}
    assert words <= options_of(main) | {"--help", "--version"}, name_of(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_function_that_a_page_mentions_exists(page):
    for name in re.findall(r"`plltool\.(\w+)[`(]", page.read_text(encoding="utf-8")):
        assert name in plltool.__all__ or name in ("kernels",), name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_rows_have_as_many_cells_as_their_header(page):
    """A bar within a cell is written with a backslash, and no blank line cuts off the rows that follow it."""
    text = re.sub(r"^(```+).*?^\1|^    .*?$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header, line, *rows = table.splitlines()
        assert re.fullmatch(r"(\| *:?-+:? *)+\|", line), header
        for row in (line, *rows):
            assert len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"(?<!\\)\|", header)), row


def test_the_guide_to_python_has_a_row_for_every_command():
    guide = (REPOSITORY / "docs/guide/python.md").read_text(encoding="utf-8")
    for command in (*ANALYSES, "Likelihood", "TimeTreeDensity"):
        function = {"test": "topology_tests", "ancestral": "ancestral_states"}.get(command, command.replace("-", "_"))
        if function in plltool.__all__:
            assert re.search(rf"^\|.*`plltool\.{function}`.*\|$", guide, re.MULTILINE), function
