"""What a model string says to a report, and the sources that it owes, which are those of the documentation."""

import re
from pathlib import Path

import pytest
from page_records import record_of_search, record_of_supports, write

import plltool
from plltool.constants import SUPPORT_KINDS
from plltool.model.nucleotides import EQUAL_FREQUENCY_MODELS, FREE_FREQUENCY_MODELS
from plltool.reports.methods import CRITERION_SOURCES, RATE_SOURCES, read_table, source_of_model
from plltool.reports.tree_sections import SUPPORT_SOURCES


def test_names_are_found_in_any_model_string():
    assert source_of_model("CODON2_GY{0.2/4}+F3X4") == ("Goldman & Yang 1994",)
    assert source_of_model("MULTI3_MK+G4") == source_of_model("MK") == ("Lewis 2001",)
    assert source_of_model("DNA010020+FO") == ("Tavaré 1986",)
    assert source_of_model("MATRIX{x}") == ()
    for name in (*EQUAL_FREQUENCY_MODELS, *FREE_FREQUENCY_MODELS):
        assert source_of_model(name), name


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("GTR+FO+IO+G4", ["a proportion of invariable sites", "gamma-distributed rates across sites"]),
        ("GTR+FC+I", ["a proportion of invariable sites"]),
        ("LG+C20+R4", ["free rates across sites", "amino acid frequency profiles"]),
        ("HKY+FO+GA8+B", ["gamma-distributed rates across sites"]),
        ("GY+F3X4", []),
        ("MK+ASC_LEWIS", ["a correction for ascertainment bias"]),
    ],
)
def test_rates_of_a_model_string(spec, expected):
    assert [what for pattern, what, *_ in RATE_SOURCES if re.search(pattern, spec)] == expected


def test_every_source_has_a_reference():
    used = {source for _, _, *sources in RATE_SOURCES for source in sources}
    used |= {source for _, source in SUPPORT_SOURCES.values()} | set(CRITERION_SOURCES.values())
    used |= set(read_table("models.txt").values())
    assert used <= read_table("citations.txt").keys()
    assert SUPPORT_SOURCES.keys() == set(SUPPORT_KINDS)


def test_a_model_with_values_is_named_without_them(tmp_path):
    record = record_of_search()
    spec = "GTR{1.23456789012345/2.34567890123456/3.4/4.5/5.6/1.0}+FU{0.3/0.2/0.1/0.4}+G4{0.543210987654321}"
    record["parts"][0]["parameters"]["spec"] = spec
    write(tmp_path / "x.json", record)
    text = " ".join(plltool.report(tmp_path / "x").text.split())
    assert "under the model GTR+F+G4 (Tavaré 1986) with gamma-distributed rates" in text
    assert "Model:GTR{1.235/2.346/3.4/4.5/5.6/1}+F{0.3/0.2/0.1/0.4}+G4{0.5432}" in text.replace(" ", "")


def test_a_bootstrap_alone_has_methods(tmp_path):
    write(tmp_path / "x.support.json", record_of_supports())
    text = " ".join(plltool.report(tmp_path / "x").text.split())
    assert "Branch support was assessed with the nonparametric bootstrap (Felsenstein 1985; 50 replicates) and" in text


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
