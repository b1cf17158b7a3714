"""Structures in dot-bracket notation, and partitions made of them."""

import pytest
from refusals import refused

from plltool.io.model_reader import read_scheme
from plltool.io.partition_reader import read_structure
from plltool.run.inputs import resolve_inputs

ROWS = dict.fromkeys("abcd", "ACGUACGUAC")


@pytest.mark.parametrize("text", ["((.[.))]..\n", " ((.[\r\n.))]\n..", "<<.(.>>)..", "{[.<.]}>.."])
def test_brackets_that_cross(write, text):
    pairs, unpaired, n_sites = read_structure(write(text))
    assert [str(pair) for pair in pairs] == ["1:7", "2:6", "4:8"]
    assert [str(run) for run in unpaired] == ["3", "5", "9-10"]
    assert n_sites == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(.))", "found ')' at position 4, expected '(' before it"),
        ("(.]", "found ']' at position 3, expected '[' before it"),
        (".((.).", "found '(' at position 2, expected a closing bracket after it"),
        (".[(.].", "found '(' at position 3, expected a closing bracket after it"),
        ("(.A.)", "found 'A' at position 3, expected '.' or one of the brackets"),
        (" \n", "found an empty file, expected a structure in dot-bracket notation"),
    ],
)
def test_errors(write, text, message):
    path = write(text)
    with refused("", f"{path}: {message}"):
        read_structure(path)


def test_partitions_of_a_structure(write):
    path = write("((.[.))]..")
    lines = f"S16B, stems = pairs{{{path}}}\nJC, loops = unpaired{{{path}}}\n"
    sets = f"#NEXUS begin sets; charset s = pairs{{{path}}}; charset l = unpaired{{{path}}};"
    for scheme in (lines, write(f"{sets} charpartition p = S16B: s, JC: l; end;", "x.nex")):
        parts = resolve_inputs(ROWS, scheme)[0].parts
        assert [part.ranges for part in parts] == ["1:7, 2:6, 4:8", "3, 5, 9-10"]
    assert [str(spec.model) for spec in read_scheme(write(f"{sets} end;", "x.nex"))] == ["S16+F+G4", "None"]
    (stems,) = read_scheme(write("#NEXUS begin sets; charset s = 1:7 2:6, 8:4; end;", "x.nex"))
    assert [str(some) for some in stems.ranges] == ["1:7", "2:6", "4:8"]


@pytest.mark.parametrize(
    ("text", "scheme", "message"),
    [
        ("((.)).", "S16, x = pairs", "found a structure of 6 columns, expected 10 as in"),
        ("..........", "S16, x = pairs", "found no brackets in"),
        ("()", "JC, x = unpaired", "found no dot in"),
    ],
)
def test_structures_that_do_not_fit(write, text, scheme, message):
    with refused(f"partition 'x': {message}"):
        resolve_inputs(ROWS, f"{scheme}{{{write(text)}}}")
