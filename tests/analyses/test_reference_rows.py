"""Likelihoods of other programs on fixed trees with fixed values: the rows of scripts/checks/reference_rows.json."""

import json

import pytest
from verify_reference import REPOSITORY, ROWS, row_label, take_data

import plltool

LARGE = {"dna59.phy", "aa140.phy"}  # scripts/checks/verify_reference.py has the time
READ = [row for row in json.loads(ROWS.read_text(encoding="utf-8")) if row["data"] not in LARGE]
# those that are optimised, too: corrections for ascertainment bias; models of codeml; a rate that does not stay near
# zero, that of T to A: with a tenth of its best value lnL is 0.16 lower, and its slope in the logarithm almost 0
OPTIMISED = [row for row in READ if row["data"] == "primates.phy" and row["model"].startswith("GTR+F+G4+ASC")]
OPTIMISED += [row for row in READ if (row["data"], row["model"]) == ("lysozymeSmall.nuc", "UNREST+G4")]
OF_CODEML = [row for row in READ if row["program"].startswith("codeml") and row["data"] != "replicase.nex"]
SLOW = [pytest.param(row, marks=pytest.mark.slow) for row in OF_CODEML if row["model"].endswith("+F3X4")]


@pytest.fixture
def take(request):
    """What a row takes of its data, which are in this repository or among the larger ones."""

    def read(row):
        own = REPOSITORY / "data"
        folder = own if (own / row["data"]).exists() else request.getfixturevalue("shared") / "data"
        return take_data(folder, row["data"], row["take"])

    return read


@pytest.mark.parametrize("row", READ, ids=row_label)
def test_another_programs_likelihood(take, row):
    found = plltool.evaluate(take(row), row["tree"], row["fixed"], fixed=True, brlen="linked", device="numpy")
    assert found.lnl == pytest.approx(row["lnl"], abs=1e-3)  # its parameters have 6 digits, and those of IQ-TREE 10


@pytest.mark.parametrize("row", [*OPTIMISED, *SLOW], ids=row_label)
def test_another_programs_optimum(take, row):
    found = plltool.evaluate(take(row), row["tree"], row["model"], device="numpy")
    assert found.lnl > row["lnl"] - 0.01
    if row["program"].startswith("codeml"):  # others do not end at their optima
        assert found.lnl < row["lnl"] + 0.001
