"""The manual pages in docs/man are those that the commands' help makes, and all of them are installed."""

import importlib.util
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_pages_are_up_to_date():
    spec = importlib.util.spec_from_file_location("make_man_pages", ROOT / "scripts" / "make_man_pages.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found = {path.name: path.read_text(encoding="utf-8") for path in script.FOLDER.glob("*.1")}
    assert found == script.make_pages(), "run scripts/make_man_pages.py"


def test_all_pages_are_installed():
    with open(ROOT / "pyproject.toml", "rb") as stream:
        data_files = tomllib.load(stream)["tool"]["setuptools"]["data-files"]
    assert data_files == {"share/man/man1": ["docs/man/*.1"]}
