"""The manual pages in docs/man are those that the commands' help makes, and all of them are installed."""

import tomllib
from pathlib import Path

import make_man_pages

ROOT = Path(__file__).resolve().parents[1]


def test_the_pages_are_up_to_date():
    found = {path.name: path.read_text(encoding="utf-8") for path in make_man_pages.FOLDER.glob("*.1")}
    assert found == make_man_pages.make_pages(), "run scripts/tools/make_man_pages.py"


def test_all_pages_are_installed():
    with open(ROOT / "pyproject.toml", "rb") as stream:
        data_files = tomllib.load(stream)["tool"]["setuptools"]["data-files"]
    assert data_files == {"share/man/man1": ["docs/man/*.1"]}
