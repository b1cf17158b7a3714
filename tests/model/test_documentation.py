"""docs/models.md lists every model of the parser with its source, and the bounds in use."""

import re
from pathlib import Path

import pytest
from helpers import figure_source

from plltool import constants
from plltool.model import codons, nucleotides, proteins
from plltool.model.model import Model
from plltool.model.model_string import parse_model

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
NAMES = {name for row in ROWS for cell in (*row[:2], *row[4:5]) for name in re.split(r"[,\s]+", cell)}


UPPER = {known.upper() for known in NAMES}
PROTEINS = sorted({*proteins.canonical_names().values(), *proteins.ALIASES})


@pytest.mark.parametrize("name", [*nucleotides.SYMMETRIES, *nucleotides.ALIASES, *PROTEINS])
def test_models(name):
    assert name in NAMES
    assert name not in proteins.canonical_names().values() or figure_source(name) in PAGE


@pytest.mark.parametrize("name", [*codons.NAMES, *codons.ALIASES])
def test_codon_models(name):
    assert name.upper() in UPPER


@pytest.mark.parametrize("part", [*map("+{}".format, proteins.PROFILES), "+FE", "+FQ", "+F", "+FC", "+FO", "+FU{"])
def test_profiles_and_frequencies(part):
    assert f"`{part}" in PAGE


@pytest.mark.parametrize("part", ["+I", "+IO", "+IC", "+IU{0.2}", "+G", "+G8", "+GA", "+GA8", "+G8a", "+R", "+R6"])
def test_rates(part):
    assert f"`{part}`" in PAGE
    parse_model(f"JC{part}")


@pytest.mark.parametrize("name", nucleotides.SYMMETRIES)
def test_code_and_count_of_nucleotide_models(name):
    row = next(row for row in ROWS if row[0] == name)
    assert row[1] == nucleotides.SYMMETRIES[name]
    assert int(row[3]) == Model(parse_model(name)).n_free_parameters


@pytest.mark.parametrize("name", [*proteins.MIXTURES, proteins.GTR20])
def test_count_of_mixtures(name):
    row = next(row for row in ROWS if row[0] == name)
    model = Model(parse_model(name))
    if name == proteins.GTR20:
        assert row[2].startswith("189, and 19")
        assert model.n_free_parameters == 189 + 19
    else:
        assert int(row[1]) == len(proteins.MIXTURES[name])
        assert int(row[3].split()[0]) == model.n_free_parameters


def test_bounds():
    for what, names, *ends in ROWS[-9:]:
        constant_names = re.findall(r"`(M\w+)`", names)
        values = [getattr(constants, name) for name in constant_names]
        for value in values:
            assert f"{value:g}" in [f"{float(end):g}" for end in ends if end[0].isdigit()], what
