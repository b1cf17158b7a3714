"""What people read is plain English, and the table of other programs' options is the one that the hints use."""

import ast
import re
from pathlib import Path

import pytest
from pages import REPOSITORY

from plltool.cli.command import ALIGNMENT, ELSEWHERE

PACKAGE = REPOSITORY / "plltool"
DOCS = REPOSITORY / "docs"
GUIDES = [REPOSITORY / "README.md", *sorted(DOCS.glob("guide/*.md")), *sorted(DOCS.glob("commands/*.md"))]
GUIDES += [DOCS / "exit_codes.md", DOCS / "record.md"]
UNREAD = ("engine", "beagle")  # folders whose texts nobody but a developer sees


def read_patterns(name):
    """The regular expressions of a table beside this file."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


FOREIGN, FOREIGN_FIRST_LINES = read_patterns("foreign.txt"), read_patterns("foreign_first_lines.txt")


def texts_of(path):
    """The strings of a module that are no docstrings, with their lines; {} stands for a value in an f-string."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            is_help = isinstance(node, ast.FunctionDef) and node.decorator_list and path.parent.name == "cli"
            if not is_help:
                skipped.add(id(node.body[0].value))
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(value) for value in node.values}
            values = (value.value if isinstance(value, ast.Constant) else "{}" for value in node.values)
            yield node.lineno, "".join(map(str, values))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def first_lines(path):
    """The first lines of the docstrings of a module, with their lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            yield node.body[0].lineno, ast.get_docstring(node).splitlines()[0]


def find_foreign(texts, patterns=FOREIGN):
    """The lines of texts that have one of the constructions."""
    return [
        f"{line}: {found[0]!r} in {text.strip()[:100]!r}"
        for line, text in texts
        for pattern in patterns
        if (found := re.search(pattern, text))
    ]


@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=lambda path: path.name)
def test_messages_are_plain(folder):
    if folder.name in UNREAD or folder.parent.name in UNREAD:
        return
    if folder.name == "cli":  # the help of commands and options
        lines = (folder / "commands.txt").read_text(encoding="utf-8").replace("\n    ", " ").splitlines()
        assert find_foreign(enumerate(lines, start=1)) == []
    found = [f"{path.name}:{line}" for path in sorted(folder.glob("*.py")) for line in find_foreign(texts_of(path))]
    assert found == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=lambda path: path.name)
def test_first_lines_are_plain(folder):
    lines = [(path, *line) for path in sorted(folder.glob("*.py")) for line in first_lines(path)]
    found = [f"{path.name}:{text}" for path, *line in lines for text in find_foreign([line], FOREIGN_FIRST_LINES)]
    assert found == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_guides_are_plain(page):
    assert find_foreign(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)) == []


def test_foreign_text_is_found(tmp_path):
    path = tmp_path / "messages.py"
    path.write_text('"""The inner branches."""\n\nN = 3\nTEXT = f"found {N} inner branches"\nOTHER = "least ESS 3"\n')
    assert find_foreign(texts_of(path)) == [
        "4: 'inner branch' in 'found {} inner branches'",
        "5: 'least ESS' in 'least ESS 3'",
    ]


def test_options_of_other_programs():
    """The table of the guide has a row for each hint; the expected rows are to be pasted after a change."""
    rows = {}
    for option, texts in ELSEWHERE.items():
        here = "the argument ALIGNMENT" if texts == ALIGNMENT else " or ".join(map(_show, texts))
        rows.setdefault(here, []).append(f"`{option}`")
    expected = ["| option there | in plltool |", "|---|---|"]
    expected += [f"| {', '.join(options)} | {here} |" for here, options in rows.items()]
    page = (REPOSITORY / "docs" / "guide" / "coming_from.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- options -->\n(.*?)\n<!-- end of options -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1].strip().splitlines() == expected


def _show(text):
    return f"`{text}`" if text.startswith("--") else f"`plltool {text}`"
