"""Models from files: what is read equals the string that the file stands for."""

import gzip
import json

import pytest
from refusals import refused

from plltool.errors import InputError
from plltool.io.files import RECORD_KEYS
from plltool.io.model_reader import read_model, read_paml_matrix, read_scheme
from plltool.model.model_string import parse_model
from plltool.model.proteins import PAIRS

FIXED = "GTR{1.2/3.4/0.8/1.1/4.1/1.0}+FU{0.28/0.21/0.24/0.27}+IU{0.2}+G4{0.45}"


def matrix_text(comment=""):
    """Every exchangeability has the value of its place, counted from 1; frequencies are equal."""
    rows, value = [], 1
    for i in range(1, 20):
        rows.append(" ".join(str(value + j) for j in range(i)))
        value += i
    return "\n".join([*rows, "", " ".join(["0.05"] * 20), comment])


def test_a_string_is_a_model():
    assert read_model("GTR+I+G4") == parse_model("GTR+I+G4")


def test_neither_a_model_nor_a_file():
    with pytest.raises(InputError, match=r"unknown model; accepted: .*; nor is it the name of a file$"):
        read_scheme("mine")
    with pytest.raises(InputError, match=r"unknown model; did you mean GTR\+G4\?$"):
        read_scheme("GTRGAMMA")
    for name in ("mine.part", "folder/mine", "Q.plunt"):
        with pytest.raises(InputError, match=f"^'{name}': found neither a file nor a model of this name$"):
            read_scheme(name)


RUN = json.dumps(dict.fromkeys(RECORD_KEYS, 0) | {"model": FIXED})
COMMAS = "HKY{3.0}+F{0.1,0.2,0.3,0.4}"


@pytest.mark.parametrize(
    ("content", "model"),
    [
        (RUN, FIXED),
        (gzip.compress(RUN.encode(), mtime=0), FIXED),
        (FIXED, FIXED),
        (f"{FIXED}, noname = 1-898", FIXED),
        (f"{FIXED},part 1=1-10, 20-30\n\n", FIXED),
        (f"{COMMAS}, all = 1-100", COMMAS),
    ],
    ids=["record", "packed record", "model", "RAxML-NG's bestModel", "part with blanks", "commas in braces"],
)
def test_files_that_hold_a_model(write, content, model):
    assert read_scheme(write(content))[0].model == parse_model(model)


def test_a_matrix_in_a_file(write):
    """PAML's lower triangle: RA, NA, NR, DA, ... are 1, 2, 3, 4, ..."""
    path = write(matrix_text("the authors' remarks: 17 of them"), "mine+1.dat")
    rates, frequencies = read_paml_matrix(path)
    found = dict(zip(PAIRS, rates, strict=True))
    assert [found[pair] for pair in ("AR", "AN", "RN", "AD", "RD", "YV")] == [1, 2, 3, 4, 5, 190]
    assert frequencies == pytest.approx((0.05,) * 20, rel=1e-14)
    spec = read_model(f"PROTGTR{{{path}}}+G4")
    assert spec.rates == tuple(rate / 190 for rate in rates)
    assert spec.frequencies == pytest.approx(frequencies, rel=1e-14)
    assert read_model(f"GTR20{{{path}}}+F").frequency_mode == "empirical"
    assert parse_model(str(spec)) == spec


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("JC\nHKY\n", "line 1: found 'JC', expected MODEL, NAME = SITES"),
        ("XYZ, all = 1-10", "model 'XYZ': 'XYZ' at character 1: unknown model"),
        ("", "found no line with a model"),
        ('{"lnl": 1}', "not the record of a run, it lacks model"),
    ],
)
def test_files_that_hold_no_model(write, content, words):
    path = write(content)
    with refused(words, path):
        read_scheme(path)


@pytest.mark.parametrize(
    ("text", "words"), [("1 2 3", "found 3 words, expected 210 numbers"), (matrix_text().replace(" 5 ", " x "), "'x'")]
)
def test_matrices_that_are_none(write, text, words):
    with refused(words):
        read_model(f"GTR20{{{write(text)}}}")
