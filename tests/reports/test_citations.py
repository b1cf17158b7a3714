"""The sources of models and methods that a report names are those of the documentation."""

import re
from pathlib import Path

import pytest

from plltool.reports.methods import read_table, source_of_model

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCES = " ".join((DOCS / "references.md").read_text(encoding="utf-8").split())
PAGE = (DOCS / "models.md").read_text(encoding="utf-8")
MODELS = " ".join(PAGE.split())
ROWS = re.findall(r"^\| ([\w.]+) \|.*\| ([^|]*\b(?:19|20)\d\d\b[^|]*) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("key", read_table("citations.txt"))
def test_every_reference_stands_in_the_documentation(key):
    text = read_table("citations.txt")[key]
    assert text in REFERENCES or text.removesuffix(".") in MODELS
    year = re.search(r"\d{4}", key)[0]
    assert year in text
    assert text.startswith(key.split()[0].rstrip(","))


@pytest.mark.parametrize(("name", "source"), ROWS, ids=[name for name, _ in ROWS])
def test_every_model_with_a_source_has_it_here(name, source):
    (found,) = source_of_model(f"{name.replace('MULTIx', 'MULTI5')}+FO+G4")
    assert source.startswith(re.sub(r"(?<=\d)[ab]$", "", found))
