"""Likelihoods of other programs on fixed trees with fixed values: the rows of scripts/checks/reference_rows.json."""

import json

import pytest
from verify_reference import ROWS, row_label, take_data

import plltool

LARGE = {"dna59.phy", "aa140.phy"}  # scripts/checks/verify_reference.py has the time
READ = [row for row in json.loads(ROWS.read_text(encoding="utf-8")) if row["data"] not in LARGE]


@pytest.mark.parametrize("row", READ, ids=row_label)
def test_another_programs_likelihood(shared, row):
    data = take_data(shared / "data", row["data"], row["take"])
    found = plltool.evaluate(data, row["tree"], row["fixed"], fixed=True, brlen="linked", device="numpy")
    assert found.lnl == pytest.approx(row["lnl"], abs=1e-3)  # its parameters have 6 digits, and those of IQ-TREE 10


def test_a_rate_that_does_not_stay_near_zero(shared):
    """The rate of T to A; with a tenth of its best value lnL is 0.16 lower, and its slope in the logarithm almost 0."""
    row = next(row for row in READ if row["data"] == "lysozymeSmall.nuc" and row["model"] == "UNREST+G4")
    found = plltool.evaluate(take_data(shared / "data", row["data"], row["take"]), row["tree"], row["model"])
    assert found.lnl > row["lnl"] - 0.01
